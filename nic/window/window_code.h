/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How windows are written into a block of bytes. An entry is one of
 *   single    shape, unit, flow, back, first                 one frame
 *   several   shape, unit, flow, back, first, span, frames   frames of one size
 *   long      everything else, as numbers of variable length
 *   advance   the newest index rises
 * where `back` is the newest index minus the window's, `span` the last offset minus the first, and `unit` one of four
 * pairs of payload and overhead bytes that a frame has; `single` and `several` have fields of fixed width within a
 * block, chosen by what the block before it held. Exact: what is read is what was written. Any thread.
 */
#pragma once

#include <string.h>

#include "nic/window/window.h"

#define WINDOW_CODE_BYTES_MAX 72 /* of one call of window_code_put, and what a read may look at behind an entry */
#define WINDOW_CODE_UNITS     4
#define WINDOW_CODE_HEAD_BITS 4 /* shape and unit */

struct window_code_unit {
    uint32_t payload_bytes;
    uint32_t wire_bytes;
};

/* Kept with a block. */
struct window_code {
    uint64_t newest;                                  /* index, while it is written */
    struct window_code_unit units[WINDOW_CODE_UNITS]; /* the commonest first; one that no frame has if there is none */
    uint32_t flow_max;
    uint32_t back_max;
    uint32_t frames_max;
    uint8_t units_count;
    uint8_t offset_bits;
    uint8_t flow_bits;
    uint8_t back_bits;
    uint8_t back_at; /* bits before `back`, and so on */
    uint8_t first_at;
    uint8_t span_at;
    uint8_t frames_at;
    uint8_t single_bytes;
    uint8_t several_bytes; /* 0: they do not fit into a word, and are written as long ones */
};

/* What was met while a block was written. */
struct window_code_met {
    uint32_t flows; /* all numbers, their bits together; so with what follows */
    uint32_t backs;
    uint32_t frames;
    uint32_t unit_entries[WINDOW_CODE_UNITS]; /* those that window_code_put_other wrote, by unit */
    uint32_t odd_entries;                     /* long ones because of their bytes */
    uint32_t far_entries;                     /* long ones because they were far back */
    uint32_t full_entries;
};

void window_code_begin(struct window_code *code, uint32_t window_ns);

/* The code of the next block, after one of so many entries in which `met` was met. */
void window_code_adapt(struct window_code *code, const struct window_code_met *met, uint32_t entries);

/* What window_code_put does with all but most. */
uint8_t *window_code_put_other(struct window_code *code, struct window_code_met *met, uint8_t *at,
                               const struct window *window, uint32_t flow);

/* Returns where the next one goes. */
static inline uint8_t *window_code_put(struct window_code *code, struct window_code_met *met, uint8_t *at,
                                       const struct window *window, uint32_t flow)
{
    const struct window_code_unit *unit = &code->units[0];
    uint32_t first_ns = window->first_offset_ns;
    uint64_t back = code->newest - window->index;

    if (window->frames != 1 || first_ns != window->last_offset_ns || window->payload_bytes != unit->payload_bytes ||
        window->wire_bytes != unit->wire_bytes || window->retransmitted_frames != 0 || window->marked_frames != 0 ||
        back > code->back_max || flow > code->flow_max)
        return window_code_put_other(code, met, at, window, flow);
    uint64_t word =
        (uint64_t)flow << WINDOW_CODE_HEAD_BITS | back << code->back_at | (uint64_t)first_ns << code->first_at;
    met->flows |= flow;
    met->backs |= (uint32_t)back;
    memcpy(at, &word, sizeof word);
    return at + code->single_bytes;
}

/*
 * Reads what lies at `at`; returns where the next one lies. *newest is the newest index so far, at a block's beginning
 * what code.newest was then. *flow is 0 when it was no window.
 */
const uint8_t *window_code_take(const struct window_code *code, uint64_t *newest, const uint8_t *at,
                                struct window *window, uint32_t *flow);
