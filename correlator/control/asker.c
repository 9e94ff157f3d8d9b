/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Triggers. Invariant: steps below a link's `next_step` have been asked about on it, had no verdict when they were
 * looked at, or are too old; only new steps are asked about, since the NIC side holds windows for a second or two. A
 * link that takes nothing is tried again. Each NIC emitter is asked in its own clock; every one of them hears every
 * request, which names the one that is meant.
 */
#include "correlator/control/asker.h"

#include <stdlib.h>
#include <string.h>

#include "wire/clock.h"

#define ASK_INTERVAL_NS 250000000ULL
#define ASK_STEPS_MAX   8 /* older ones are over: their windows are gone */
#define MARGIN_PART     4 /* of the step, before and after it: its edges may move yet */

struct asked { /* of a control link */
    uint64_t asked_ns;
    int32_t next_step;
};

struct asker {
    struct controls *controls;
    struct asked links[OPTION_LIST_MAX];
    uint32_t trigger;
};

void asker_create(struct asker **asker, struct controls *controls)
{
    struct asker *made = array_zeroed(sizeof *made);

    made->controls = controls;
    *asker = made;
}

/* False when the link did not take the request. */
static bool ask(struct asker *asker, size_t link, const struct analysis *analysis, size_t stream,
                const struct step *step)
{
    uint64_t margin_ns = (step->end_ns - step->start_ns) / MARGIN_PART;
    const struct record_trigger trigger = {
        .header = {.kind = RECORD_TRIGGER, .length_bytes = sizeof trigger, .source = ++asker->trigger},
        .boot_id = analysis->intake.streams.items[stream].boot_id,
        .from_ns = timeline_unmap(&analysis->timeline, stream, step->start_ns - margin_ns),
        .to_ns = timeline_unmap(&analysis->timeline, stream, step->end_ns + margin_ns),
    };

    return controls_send(asker->controls, link, &trigger, sizeof trigger, 1);
}

static bool judged(const struct job *job, int32_t step)
{
    for (size_t i = 0; i < job->verdicts.count; i++)
        if (job->verdicts.items[i].step == step)
            return true;
    return false;
}

static bool ask_all(struct asker *asker, size_t link, const struct analysis *analysis, const struct step *step)
{
    const struct intake *intake = &analysis->intake;

    for (size_t i = 0; i < intake->streams.count; i++)
        if (intake->streams.items[i].kind == EMITTER_NIC && !intake->streams.items[i].ended &&
            !ask(asker, link, analysis, i, step))
            return false;
    return true;
}

static void look(struct asker *asker, size_t link, const struct analysis *analysis)
{
    struct asked *asked = &asker->links[link];
    int32_t steps = (int32_t)analysis->job.steps.count;
    uint64_t now_ns = clock_now_ns();

    if (now_ns - asked->asked_ns < ASK_INTERVAL_NS)
        return;
    if (asked->next_step < steps - ASK_STEPS_MAX)
        asked->next_step = steps - ASK_STEPS_MAX;
    while (asked->next_step < steps && !judged(&analysis->job, asked->next_step))
        asked->next_step++;
    if (asked->next_step == steps || !ask_all(asker, link, analysis, &analysis->job.steps.items[asked->next_step]))
        return;
    asked->asked_ns = now_ns;
    asked->next_step++;
}

void asker_look(struct asker *asker, const struct analysis *analysis)
{
    for (size_t i = 0; i < controls_count(asker->controls); i++)
        look(asker, i, analysis);
}

void asker_destroy(struct asker **asker)
{
    free(*asker);
    *asker = NULL;
}
