/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Triggers. Invariant: steps below `next_step` have been asked about or had no verdict when they were looked at; only
 * new steps are asked about, since the NIC side holds windows for a second or two. The control links carry batches with
 * TRIGGER records; each NIC emitter is asked in its own clock, and every one of them hears every request.
 */
#include "correlator/asker.h"

#include <stdlib.h>
#include <string.h>

#include "wire/clock.h"
#include "wire/link.h"
#include "wire/log.h"

#define ASK_INTERVAL_NS 250000000ULL
#define ASK_STEPS_MAX   8 /* older ones are over: their windows are gone */

struct asker {
    struct link *links[OPTION_LIST_MAX];
    size_t links_count;
    uint64_t boot_id;
    uint64_t sequence;
    uint64_t asked_ns;
    uint32_t trigger;
    int32_t next_step;
};

int asker_open(struct asker **result, const struct option_list *urls, const char *key_file, uint64_t boot_id)
{
    struct asker *asker = array_zeroed(sizeof *asker);
    int error = 0;

    asker->boot_id = boot_id;
    for (size_t i = 0; i < urls->count && error == 0; i++) {
        const struct link_options options = {
            .role = LINK_SEND, .url = urls->values[i], .key_file = key_file, .boot_id = boot_id};
        error = link_open(&asker->links[i], &options);
        asker->links_count += error == 0;
    }
    if (error != 0)
        asker_close(&asker);
    else
        *result = asker;
    return error;
}

struct request {
    struct batch_header header;
    struct record_trigger trigger;
};

static void ask(struct asker *asker, const struct analysis *analysis, size_t stream, const struct step *step)
{
    struct request request = {
        .header = {.magic = BATCH_MAGIC,
                   .version = BATCH_VERSION,
                   .emitter_kind = EMITTER_COMMAND,
                   .boot_id = asker->boot_id,
                   .sequence = asker->sequence++,
                   .sent_ns = clock_now_ns(),
                   .records_count = 1,
                   .records_bytes = sizeof request.trigger},
        .trigger = {.header = {.kind = RECORD_TRIGGER,
                               .length_bytes = sizeof request.trigger,
                               .source = ++asker->trigger},
                    .from_ns = timeline_unmap(&analysis->timeline, stream, step->start_ns),
                    .to_ns = timeline_unmap(&analysis->timeline, stream, step->end_ns)},
    };

    for (size_t i = 0; i < asker->links_count; i++)
        if (link_send(asker->links[i], &request, sizeof request) != 0)
            log_debug("a request for the windows of %.3f ms found a control link full",
                      (double)(step->end_ns - step->start_ns) / 1e6);
}

static bool judged(const struct job *job, int32_t step)
{
    for (size_t i = 0; i < job->verdicts.count; i++)
        if (job->verdicts.items[i].step == step)
            return true;
    return false;
}

void asker_look(struct asker *asker, const struct analysis *analysis)
{
    const struct intake *intake = &analysis->intake;
    int32_t steps = (int32_t)analysis->job.steps.count;
    uint64_t now_ns = clock_now_ns();

    if (asker->links_count == 0 || now_ns - asker->asked_ns < ASK_INTERVAL_NS)
        return;
    if (asker->next_step < steps - ASK_STEPS_MAX)
        asker->next_step = steps - ASK_STEPS_MAX;
    for (; asker->next_step < steps; asker->next_step++) {
        if (!judged(&analysis->job, asker->next_step))
            continue;
        for (size_t i = 0; i < intake->streams.count; i++)
            if (intake->streams.items[i].kind == EMITTER_NIC && !intake->streams.items[i].ended)
                ask(asker, analysis, i, &analysis->job.steps.items[asker->next_step]);
        asker->asked_ns = now_ns;
        asker->next_step++;
        return;
    }
}

void asker_close(struct asker **asker)
{
    if (*asker == NULL)
        return;
    for (size_t i = 0; i < (*asker)->links_count; i++)
        link_close(&(*asker)->links[i], 0);
    free(*asker);
    *asker = NULL;
}
