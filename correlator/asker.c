/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Triggers. Invariant: steps below a link's `next_step` have been asked about on it, had no verdict when they were
 * looked at, or are too old; only new steps are asked about, since the NIC side holds windows for a second or two. A
 * link that takes nothing (its NIC side is not there yet, or away) is tried again. The control links carry batches with
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

struct control {
    struct link *link;
    uint64_t asked_ns;
    int32_t next_step;
};

struct asker {
    struct control controls[OPTION_LIST_MAX];
    size_t controls_count;
    uint64_t boot_id;
    uint64_t sequence;
    uint32_t trigger;
};

int asker_open(struct asker **result, const struct option_list *urls, const char *key_file, uint64_t boot_id)
{
    struct asker *asker = array_zeroed(sizeof *asker);
    int error = 0;

    asker->boot_id = boot_id;
    for (size_t i = 0; i < urls->count && error == 0; i++) {
        const struct link_options options = {
            .role = LINK_SEND, .url = urls->values[i], .key_file = key_file, .boot_id = boot_id};
        error = link_open(&asker->controls[i].link, &options);
        asker->controls_count += error == 0;
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

/* False when the link did not take the request. */
static bool ask(struct asker *asker, struct link *link, const struct analysis *analysis, size_t stream,
                const struct step *step)
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
                    .boot_id = analysis->intake.streams.items[stream].boot_id,
                    .from_ns = timeline_unmap(&analysis->timeline, stream, step->start_ns),
                    .to_ns = timeline_unmap(&analysis->timeline, stream, step->end_ns)},
    };

    return link_send(link, &request, sizeof request) == 0;
}

static bool judged(const struct job *job, int32_t step)
{
    for (size_t i = 0; i < job->verdicts.count; i++)
        if (job->verdicts.items[i].step == step)
            return true;
    return false;
}

static bool ask_all(struct asker *asker, struct link *link, const struct analysis *analysis, const struct step *step)
{
    const struct intake *intake = &analysis->intake;

    for (size_t i = 0; i < intake->streams.count; i++)
        if (intake->streams.items[i].kind == EMITTER_NIC && !intake->streams.items[i].ended &&
            !ask(asker, link, analysis, i, step))
            return false;
    return true;
}

static void look(struct asker *asker, struct control *control, const struct analysis *analysis)
{
    int32_t steps = (int32_t)analysis->job.steps.count;
    uint64_t now_ns = clock_now_ns();

    if (now_ns - control->asked_ns < ASK_INTERVAL_NS)
        return;
    if (control->next_step < steps - ASK_STEPS_MAX)
        control->next_step = steps - ASK_STEPS_MAX;
    while (control->next_step < steps && !judged(&analysis->job, control->next_step))
        control->next_step++;
    if (control->next_step == steps ||
        !ask_all(asker, control->link, analysis, &analysis->job.steps.items[control->next_step]))
        return;
    control->asked_ns = now_ns;
    control->next_step++;
}

void asker_look(struct asker *asker, const struct analysis *analysis)
{
    for (size_t i = 0; i < asker->controls_count; i++)
        look(asker, &asker->controls[i], analysis);
}

void asker_close(struct asker **asker)
{
    if (*asker == NULL)
        return;
    for (size_t i = 0; i < (*asker)->controls_count; i++)
        link_close(&(*asker)->controls[i].link, 0);
    free(*asker);
    *asker = NULL;
}
