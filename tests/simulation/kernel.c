/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane goes step by step. In a step it takes a slice of each connection that it receives from and fills one of each
 * that it sends to; it waits until all of them can. In a ring the first chunk is sent without receiving and the last
 * one only received: the lag.
 */
#include "tests/simulation/kernel.h"

#include <stdlib.h>

#define SLICE_NS 700u  /* synchronising the GPU's threads */
#define GPU_GBPS 1200u /* that a channel's threads copy or reduce */

struct lane {
    struct kernel_lane given;
    struct kernel *kernel;
    uint32_t step, steps;
    bool busy;
    struct lane *next;
};

struct kernel {
    struct agenda *agenda;
    agenda_act *ended;
    void *subject;
    uint64_t argument;
    struct lane *lanes;
    uint32_t lanes_left;
};

struct kernel *kernel_create(struct agenda *agenda, agenda_act *ended, void *subject, uint64_t argument)
{
    struct kernel *kernel = calloc(1, sizeof *kernel);

    if (kernel == NULL)
        abort();
    kernel->agenda = agenda;
    kernel->ended = ended;
    kernel->subject = subject;
    kernel->argument = argument;
    return kernel;
}

void kernel_add(struct kernel *kernel, const struct kernel_lane *given)
{
    struct lane *lane = calloc(1, sizeof *lane);

    if (lane == NULL)
        abort();
    lane->given = *given;
    lane->kernel = kernel;
    lane->steps = given->slicing.count + given->lag;
    lane->next = kernel->lanes;
    kernel->lanes = lane;
    kernel->lanes_left++;
}

void kernel_queue(struct kernel *kernel, uint64_t step, uint64_t proxy_late_ns, struct ledger_row *row)
{
    for (struct lane *lane = kernel->lanes; lane != NULL; lane = lane->next) {
        const struct slicing *slicing = &lane->given.slicing;
        struct connection_share share = {.slices = slicing->count,
                                         .depth = slicing->depth,
                                         .slots_a_slice = slicing->slots_a_slice,
                                         .slots_a_chunk = slicing->slots_a_slice * slicing->slices_a_chunk,
                                         .step = step,
                                         .proxy_late_ns = proxy_late_ns,
                                         .row = row};
        for (int i = 0; i < KERNEL_ENDS_MAX && lane->given.receives[i] != NULL; i++)
            connection_expect(lane->given.receives[i], &share);
        for (int i = 0; i < KERNEL_ENDS_MAX && lane->given.sends[i] != NULL; i++)
            connection_offer(lane->given.sends[i], &share);
    }
}

static bool receives(const struct lane *lane)
{
    return lane->step >= lane->given.lag && lane->given.receives[0] != NULL;
}

static bool sends(const struct lane *lane)
{
    return lane->step < lane->given.slicing.count && lane->given.sends[0] != NULL;
}

static bool can_go(const struct lane *lane)
{
    for (int i = 0; receives(lane) && i < KERNEL_ENDS_MAX && lane->given.receives[i] != NULL; i++)
        if (!connection_has_data(lane->given.receives[i]))
            return false;
    for (int i = 0; sends(lane) && i < KERNEL_ENDS_MAX && lane->given.sends[i] != NULL; i++)
        if (!connection_has_room(lane->given.sends[i]))
            return false;
    return true;
}

static uint32_t bytes_now(const struct lane *lane)
{
    const struct kernel_lane *given = &lane->given;

    if (sends(lane))
        return slicing_bytes(&given->slicing, given->place, given->channel, lane->step);
    return receives(lane) ? connection_next_bytes(given->receives[0]) : 0;
}

static void step_done(void *subject, uint64_t bytes);

static void try_step(struct lane *lane)
{
    if (lane->busy || lane->step == lane->steps || !can_go(lane))
        return;
    uint32_t bytes = bytes_now(lane);
    lane->busy = true;
    agenda_add(lane->kernel->agenda, agenda_now_ns(lane->kernel->agenda) + SLICE_NS + (uint64_t)bytes * 8 / GPU_GBPS,
               step_done, lane, bytes);
}

static void watch(struct lane *lane, void *who)
{
    for (int i = 0; i < KERNEL_ENDS_MAX && lane->given.receives[i] != NULL; i++)
        connection_set_receiver(lane->given.receives[i], who);
    for (int i = 0; i < KERNEL_ENDS_MAX && lane->given.sends[i] != NULL; i++)
        connection_set_sender(lane->given.sends[i], who);
}

static void end(struct kernel *kernel)
{
    for (struct lane *lane = kernel->lanes, *next; lane != NULL; lane = next) {
        next = lane->next;
        free(lane);
    }
    agenda_add(kernel->agenda, 0, kernel->ended, kernel->subject, kernel->argument);
    free(kernel);
}

static void step_done(void *subject, uint64_t bytes)
{
    struct lane *lane = subject;
    bool takes = receives(lane), fills = sends(lane);

    for (int i = 0; takes && i < KERNEL_ENDS_MAX && lane->given.receives[i] != NULL; i++)
        connection_take(lane->given.receives[i]);
    for (int i = 0; fills && i < KERNEL_ENDS_MAX && lane->given.sends[i] != NULL; i++)
        connection_fill(lane->given.sends[i], (uint32_t)bytes);
    lane->busy = false;
    if (++lane->step < lane->steps) {
        try_step(lane);
        return;
    }
    watch(lane, NULL);
    if (--lane->kernel->lanes_left == 0)
        end(lane->kernel);
}

void kernel_woken(void *lane, uint64_t argument)
{
    (void)argument;
    try_step(lane);
}

void kernel_begin(struct kernel *kernel)
{
    for (struct lane *lane = kernel->lanes; lane != NULL; lane = lane->next) {
        watch(lane, lane);
        try_step(lane);
    }
    if (kernel->lanes == NULL)
        end(kernel);
}
