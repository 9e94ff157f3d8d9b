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
    default:
        return "answers";
    }
}

static void put_number(struct store *store, size_t verdict, const struct verdict_evidence *number)
{
    const struct evidence_kind *kind = &evidence_kinds[number->kind];
    double share = (double)number->amount / (double)(number->to_ns - number->from_ns);

    store_put(store, STORE_verdict_evidence, "iisrrsskiiidpii", (i64)verdict + 1, (i64)number->decides,
              number->of_port ? "port_counter" : "flow_event", number->of_port ? row(number->owner) : (i64)-1,
              number->of_port ? (i64)-1 : row(number->owner), side_name(number->side), evidence_metric_name(kind),
              (int)(number->priority != PRIORITY_NONE), (i64)number->priority, (i64)number->from_ns, (i64)number->to_ns,
              (i64)number->amount, number->usual, (int)evidence_is_duration(kind), share, row(number->first_row),
              row(number->last_row));
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

void store_verdicts(struct store *store, const struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
        const struct verdict *verdict = &analysis->job.verdicts.items[i];
        store_put(store, STORE_verdict, "iisrrsiiids", (i64)i + 1, (i64)verdict->step,
                  verdict_class_name(verdict->class), (i64)verdict->rank, (i64)verdict->peer_rank,
                  verdict->device[0] == '\0' ? NULL : verdict->device, row(verdict->operation), (i64)verdict->size_ns,
                  (i64)verdict->bound_ns, verdict->confidence, verdict->evidence);
        for (size_t j = 0; j < verdict->numbers.count; j++)
            put_number(store, i, &verdict->numbers.items[j]);
    }
    put_withheld(store, analysis);
}
