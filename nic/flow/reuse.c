/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of the last messages. Invariant: entry i % REUSE_STARTS is that of the i-th message noted. One in 256 new
 * connections' first frames looks like the old one by its fingerprint; the next frame then tells.
 */
#include "nic/flow/reuse.h"

static uint32_t entry_of(const struct frame *frame)
{
    uint64_t place = frame->place ^ (uint64_t)frame->remote_key << 32 ^ (uint64_t)frame->dma_bytes << 16;
    uint64_t mixed = (place ^ frame->opcode_number) * 0x9e3779b97f4a7c15u;

    return frame->psn | (uint32_t)(mixed >> 56) << 24;
}

void reuse_note(struct reuse *reuse, const struct frame *frame)
{
    if ((frame->flags & FRAME_PLACED) != 0)
        reuse->starts[reuse->count++ % REUSE_STARTS] = entry_of(frame);
}

bool reuse_is_new_connection(const struct reuse *reuse, const struct frame *frame)
{
    uint32_t held = reuse->count < REUSE_STARTS ? reuse->count : REUSE_STARTS;
    uint32_t entry = entry_of(frame);

    if ((frame->flags & FRAME_PLACED) == 0)
        return false;
    for (uint32_t back = 1; back <= held; back++) {
        uint32_t start = reuse->starts[(reuse->count - back) % REUSE_STARTS];
        if (((start ^ entry) & FRAME_PSN_MASK) == 0)
            return start != entry;
    }
    return held == REUSE_STARTS; /* nobody goes back so far */
}
