/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go-back-N as in the InfiniBand Architecture Specification, volume 1, section 9.7.5: after a NAK, or when no answer
 * came for a while, a sender sends everything from one PSN on again. Invariant: a frame seen for the first time is
 * called sent again only when it lies in `asked`; one seen before is called doubled only when nothing explains it.
 */
#include "nic/recovery.h"

#define PAUSE_TIMES 8 /* a pause is many times the usual distance of frames */

static bool holds(const struct recovery_range *range, uint32_t psn)
{
    return range->known && sequence_distance(psn, range->from) >= 0 && sequence_distance(psn, range->to) <= 0;
}

static bool is_paused(const struct recovery_frame *frame)
{
    return frame->pause_ns >= RECOVERY_PAUSE_NS && frame->pause_ns / PAUSE_TIMES >= frame->usual_ns;
}

static bool judge_repeated(struct recovery *recovery, const struct recovery_frame *frame)
{
    bool is_explained = holds(&recovery->asked, frame->psn) || holds(&recovery->likely, frame->psn);

    if (!is_explained && frame->psn == frame->highest && !frame->at_sender && frame->answers_heard) {
        recovery->duplicate_frames++;
        return false;
    }
    if (!is_explained)
        recovery->likely = (struct recovery_range){.from = frame->psn, .to = frame->highest, .known = true};
    return true;
}

bool recovery_judge(struct recovery *recovery, const struct recovery_frame *frame)
{
    bool paused = is_paused(frame);

    if (frame->place == SEQUENCE_NEXT) {
        recovery->pauses += paused && frame->goes_on;
        return false;
    }
    if (paused) {
        recovery->timeouts++;
        recovery_ask(recovery, frame->psn, frame->highest, true);
    }
    if (frame->place != SEQUENCE_LATE)
        return judge_repeated(recovery, frame);
    if (holds(&recovery->asked, frame->psn))
        return true;
    recovery->late_unknown_frames++;
    return false;
}

void recovery_ask(struct recovery *recovery, uint32_t psn, uint32_t highest, bool sure)
{
    struct recovery_range *range = sure ? &recovery->asked : &recovery->likely;

    *range = (struct recovery_range){.from = psn, .to = highest, .known = true};
}
