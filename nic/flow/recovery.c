/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go-back-N as in the InfiniBand Architecture Specification, volume 1, section 9.7.5: after a NAK, or when no answer
 * came for a while, a sender sends everything from one PSN on again. Invariant: a frame seen for the first time is
 * called sent again only when it lies in `asked`; one seen before is called doubled only when nothing explains it.
 */
#include "nic/flow/recovery.h"

#define PAUSE_TIMES 8 /* a pause is many times the usual distance of frames */

static bool holds(const struct recovery_range *range, uint32_t psn)
{
    return range->known && sequence_distance(psn, range->from) >= 0 && sequence_distance(psn, range->to) <= 0;
}

/* A frame seen before says itself that it was sent again; one seen for the first time could as well be idle's end. */
static bool is_paused(const struct recovery_frame *frame)
{
    return frame->pause_ns >= RECOVERY_PAUSE_NS && frame->pause_ns / PAUSE_TIMES >= frame->usual_ns;
}

static uint64_t late_bit(const struct recovery *recovery, uint32_t psn)
{
    int32_t distance = sequence_distance(psn, recovery->asked.from);

    return holds(&recovery->asked, psn) && distance < 64 ? (uint64_t)1 << distance : 0;
}

/* What came late was taken for what the NAK had asked for; now that comes. */
static void take_back(struct recovery *recovery, const struct recovery_frame *frame)
{
    uint64_t bit = late_bit(recovery, frame->psn);

    if ((recovery->came_late & bit) == 0)
        return;
    recovery->came_late &= ~bit;
    recovery->reordered_frames++;
    recovery->reordered_bytes += frame->payload_bytes;
}

static void count_timeout(struct recovery *recovery, const struct recovery_frame *frame)
{
    recovery->timeouts++;
    recovery->timeout_ns += frame->pause_ns;
}

static bool judge_repeated(struct recovery *recovery, const struct recovery_frame *frame)
{
    bool is_explained = holds(&recovery->asked, frame->psn) || holds(&recovery->likely, frame->psn);
    bool is_pause = frame->pause_ns >= RECOVERY_PAUSE_NS;

    if (!is_explained && !is_pause && frame->psn == frame->highest && !frame->at_sender && frame->answers_heard) {
        recovery->duplicate_frames++;
        return false;
    }
    take_back(recovery, frame);
    if (is_explained)
        return true;
    if (is_pause)
        count_timeout(recovery, frame);
    recovery->likely = (struct recovery_range){.from = frame->psn, .to = frame->highest, .known = true};
    return true;
}

static bool judge_late(struct recovery *recovery, const struct recovery_frame *frame)
{
    if (!holds(&recovery->asked, frame->psn)) {
        recovery->late_unknown_frames++;
        return false;
    }
    recovery->came_late |= late_bit(recovery, frame->psn);
    return true;
}

/* Those that were on their way when the NAK was sent come again too. */
static void widen(struct recovery *recovery, const struct recovery_frame *frame)
{
    if (holds(&recovery->asked, frame->psn))
        recovery->asked.to = frame->highest;
}

bool recovery_judge(struct recovery *recovery, const struct recovery_frame *frame)
{
    bool paused = is_paused(frame);

    if (frame->place == SEQUENCE_NEXT) {
        recovery->pauses += paused && frame->goes_on;
        return false;
    }
    if (paused) {
        count_timeout(recovery, frame);
        recovery_ask(recovery, frame->psn, frame->highest, true);
    }
    widen(recovery, frame);
    return frame->place == SEQUENCE_LATE ? judge_late(recovery, frame) : judge_repeated(recovery, frame);
}

void recovery_ask(struct recovery *recovery, uint32_t psn, uint32_t highest, bool sure)
{
    struct recovery_range *range = sure ? &recovery->asked : &recovery->likely;

    if (sure)
        recovery->came_late = 0;
    *range = (struct recovery_range){.from = psn, .to = highest, .known = true};
}
