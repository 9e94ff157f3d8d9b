/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Triggers. Invariant: what lies within one of a link's spans has been asked for on it; only the last steps are asked
 * about, since the NIC side holds windows for a second or two. A step is told by its time, since its number counts what
 * is held; one that has grown out of what was asked for, when more of it came to be known, is asked for again. A link
 * that takes nothing is tried again. Each NIC emitter is asked in its own clock; every one of them hears every
 * request, which names the one that is meant.
 */
#include "correlator/control/asker.h"

#include <stdlib.h>
#include <string.h>

#include "wire/clock.h"

#define ASK_INTERVAL_NS 250000000ULL
#define ASK_STEPS_MAX   8                   /* older ones are over: their windows are gone */
#define SPANS_MAX       (4 * ASK_STEPS_MAX) /* a step may grow more than once */
#define MARGIN_PART     4                   /* of the step, before and after it: its edges may move yet */

struct span {
    uint64_t from_ns;
    uint64_t to_ns;
};

struct asked { /* of a control link */
    uint64_t asked_ns;
    struct span spans[SPANS_MAX]; /* the last ones, in a ring */
    size_t next;
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

static struct span span_of(const struct step *step)
{
    uint64_t margin_ns = (step->end_ns - step->start_ns) / MARGIN_PART;

    return (struct span){step->start_ns - margin_ns, step->end_ns + margin_ns};
}

/* False when the link did not take the request. */
static bool ask(struct asker *asker, size_t link, const struct analysis *analysis, size_t stream,
                const struct span *span)
{
    const struct record_trigger trigger = {
        .header = {.kind = RECORD_TRIGGER, .length_bytes = sizeof trigger, .source = ++asker->trigger},
        .boot_id = analysis->intake.streams.items[stream].boot_id,
        .from_ns = timeline_unmap(&analysis->timeline, stream, span->from_ns),
        .to_ns = timeline_unmap(&analysis->timeline, stream, span->to_ns),
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

static bool ask_all(struct asker *asker, size_t link, const struct analysis *analysis, const struct span *span)
{
    const struct intake *intake = &analysis->intake;

    for (size_t i = 0; i < intake->streams.count; i++)
        if (intake->streams.items[i].kind == EMITTER_NIC && !intake->streams.items[i].ended &&
            !ask(asker, link, analysis, i, span))
            return false;
    return true;
}

static bool was_asked(const struct asked *asked, const struct step *step)
{
    for (size_t i = 0; i < SPANS_MAX; i++)
        if (asked->spans[i].from_ns <= step->start_ns && step->end_ns <= asked->spans[i].to_ns)
            return true;
    return false;
}

/* The oldest step that is to be asked about; -1: none. */
static int32_t find_step(const struct asked *asked, const struct job *job)
{
    int32_t steps = (int32_t)job->steps.count;

    for (int32_t step = steps > ASK_STEPS_MAX ? steps - ASK_STEPS_MAX : 0; step < steps; step++)
        if (!was_asked(asked, &job->steps.items[step]) && judged(job, step))
            return step;
    return -1;
}

static void look(struct asker *asker, size_t link, const struct analysis *analysis)
{
    struct asked *asked = &asker->links[link];
    uint64_t now_ns = clock_now_ns();

    if (now_ns - asked->asked_ns < ASK_INTERVAL_NS)
        return;
    int32_t step = find_step(asked, &analysis->job);
    if (step < 0)
        return;
    const struct span span = span_of(&analysis->job.steps.items[step]);
    if (!ask_all(asker, link, analysis, &span))
        return;
    asked->asked_ns = now_ns;
    asked->spans[asked->next++ % SPANS_MAX] = span;
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
