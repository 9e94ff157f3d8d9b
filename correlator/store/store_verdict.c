/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of verdicts, of the numbers beside them, and of what cannot be told of a port. */
#include <stdio.h>
#include <string.h>

#include "correlator/analysis.h"
#include "correlator/store/store_private.h"
#include "correlator/verdict/verdict.h"

typedef int64_t i64;

static i64 row(int32_t index)
{
    return index < 0 ? -1 : index + 1;
}

static const char *side_name(uint8_t side)
{
    switch (side) {
    case EVIDENCE_SENDER:
        return "sender";
    case EVIDENCE_RECEIVER:
        return "receiver";
    case EVIDENCE_FLOW:
        return "flow";
    case EVIDENCE_CALLER:
        return "caller";
    case EVIDENCE_LIBRARY:
        return "library";
    default:
        return "answers";
    }
}

static const char *source_name(uint8_t source)
{
    static const char *const names[] = {"port_counter", "flow_event", "host_delay", "marker", "post",
                                        "transport",    "failure",    "rdma_port"}; /* enum verdict_source */
    return names[source];
}

static void put_number(struct store *store, size_t verdict, const struct verdict_evidence *number)
{
    double share = (double)number->amount / (double)(number->to_ns - number->from_ns);
    bool of_flow = number->source == VERDICT_OF_FLOW;

    store_put(store, STORE_verdict_evidence, "iisrrsskiiippiirk", (i64)verdict + 1, (i64)number->decides,
              source_name(number->source), number->of_port ? row(number->owner) : (i64)-1,
              of_flow ? row(number->owner) : (i64)-1, side_name(number->side), number->metric,
              (int)(number->priority != PRIORITY_NONE), (i64)number->priority, (i64)number->from_ns, (i64)number->to_ns,
              (i64)number->amount, (int)(number->usual >= 0), number->usual,
              (int)(number->is_duration && number->to_ns > number->from_ns), share, row(number->first_row),
              row(number->last_row), (i64)number->rank, (int)(number->tid != 0), (i64)number->tid);
}

/* ---- what would tell more ---- */

/* "work, or submissions" */
static void follow_words(uint32_t what, char *text, size_t bytes)
{
    static const char *const words[] = {"work", "submissions", "delays"}; /* by bit of enum follow_what */
    size_t length = 0;

    text[0] = '\0';
    for (unsigned bit = 0; bit < sizeof words / sizeof words[0]; bit++)
        if ((what >> bit & 1) != 0 && length < bytes)
            length += (size_t)snprintf(text + length, bytes - length, "%s%s", length == 0 ? "" : ", or ", words[bit]);
}

/* The process of a rank, or -1. */
static int32_t process_of(const struct naming *naming, int32_t rank)
{
    for (size_t i = 0; i < naming->members.count && rank >= 0; i++)
        if (naming->members.items[i].rank == rank)
            return naming->members.items[i].process;
    return -1;
}

/* "on node-a: qpscope follow --pid 17 --what work, or submissions"; NULL when nothing would. */
static const char *say_more(const struct analysis *analysis, const struct verdict *verdict, char *text, size_t bytes)
{
    uint32_t what = verdict_class_more(verdict->class);
    int32_t index = process_of(&analysis->naming, verdict->rank);
    char words[40];

    if (what == 0)
        return NULL;
    follow_words(what, words, sizeof words);
    if (index < 0) {
        snprintf(text, bytes, "on its host: qpscope follow --what %s", words);
        return text;
    }
    const struct process *process = &analysis->naming.processes.items[index];
    const struct intake_stream *stream = &analysis->intake.streams.items[process->stream];
    bool named = stream->greeted && stream->hello.host[0] != '\0';
    snprintf(text, bytes, "on %.*s: qpscope follow --pid %u --what %s", (int)sizeof stream->hello.host,
             named ? stream->hello.host : "its host", process->record.pid, words);
    return text;
}

/* What a port leaves out, or "all". */
const char *store_port_sees(const struct port *port, char text[64])
{
    static const char *const names[] = {"edges only", "part of flows", "one queue"};

    snprintf(text, 64, "%s", (port->record.flags & 7) == 0 ? "all" : "");
    for (unsigned bit = 0; bit < sizeof names / sizeof names[0]; bit++) {
        size_t length = strlen(text);
        if ((port->record.flags >> bit & 1) != 0)
            snprintf(text + length, 64 - length, "%s%s", length == 0 ? "" : ", ", names[bit]);
    }
    return text;
}

/* What is seen of those who send over a port, there and elsewhere; false: nobody is known to. */
static bool port_sight(const struct evidence *evidence, int32_t port, uint32_t *fields)
{
    bool is_used = false;

    *fields = 0;
    for (size_t i = 0; i < evidence->places.count; i++) {
        const struct evidence_place *place = &evidence->places.items[i];
        if (!place->of_port || place->owner != port || place->side != EVIDENCE_SENDER)
            continue;
        is_used = true;
        *fields |= evidence_sight(evidence, place->from);
    }
    return is_used;
}

static void put_withheld(struct store *store, const struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->naming.ports.count; i++) {
        uint32_t fields;
        if (!port_sight(&analysis->evidence, (int32_t)i, &fields))
            continue;
        for (enum verdict_class class = 0; class < VERDICT_CLASSES; class ++) {
            char missing[128];
            enum verdict_sight sight =
                verdict_sight(class, fields, analysis->naming.ports.items[i].record.flags, missing, sizeof missing);
            if (sight != VERDICT_SIGHT_WHOLE)
                store_put(store, STORE_withheld, "siss", verdict_class_name(class), (i64)i + 1,
                          sight == VERDICT_SIGHT_NONE ? "none" : "part", missing);
        }
    }
}

/* "4, 5"; NULL where it is known which. */
const char *store_candidates(const struct verdict *verdict, char *text, size_t bytes)
{
    size_t length = 0;

    for (size_t i = 0; i < verdict->candidates.count && length < bytes; i++)
        length +=
            (size_t)snprintf(text + length, bytes - length, "%s%d", i == 0 ? "" : ", ", verdict->candidates.items[i]);
    return length == 0 ? NULL : text;
}

void store_verdicts(struct store *store, const struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
        const struct verdict *verdict = &analysis->job.verdicts.items[i];
        char more[192], candidates[STORE_CANDIDATES_BYTES];
        if (!limit_has_step(store_limit(store), &analysis->job, verdict->step))
            continue;
        const char *several = store_candidates(verdict, candidates, sizeof candidates);
        store_put(store, STORE_verdict, "irsrsrsiiidss", (i64)i + 1, store_step(store, verdict->step),
                  verdict_class_name(verdict->class), several != NULL ? (i64)-1 : (i64)verdict->rank, several,
                  (i64)verdict->peer_rank, verdict->device[0] == '\0' ? NULL : verdict->device, row(verdict->operation),
                  (i64)verdict->size_ns, (i64)verdict->bound_ns, verdict->confidence, verdict->evidence,
                  say_more(analysis, verdict, more, sizeof more));
        for (size_t j = 0; j < verdict->numbers.count; j++)
            put_number(store, i, &verdict->numbers.items[j]);
    }
    put_withheld(store, analysis);
}
