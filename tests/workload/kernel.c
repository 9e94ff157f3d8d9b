/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of a launch as threads, each walking its channel's list of works. */
#include "kernel.h"

#include "collective.h"
#include "p2p.h"
#include "truth.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct block {
    struct launch *launch;
    int channel, number;
};

bool kernel_is_known(const char *name)
{
    return strstr(name, "ncclKernel") != NULL;
}

static void refuse_unless(bool can, const char *what, int index)
{
    if (can)
        return;
    fprintf(stderr, "standin: RCCL function %d: %s not emulated\n", index, what);
    abort();
}

static void work_check(const struct work *work)
{
    struct func func = func_decode(work->func);

    refuse_unless(work->func <= FUNC_P2P, "all-to-all pivot is", work->func);
    refuse_unless(work->func == FUNC_P2P || work->func < FUNC_P2P - NTYPES, "one-rank reductions are", work->func);
    refuse_unless(work->type == WORK_COLL || work->type == WORK_P2P, "registered buffers are", work->func);
    refuse_unless(func.algo == RING || (func.algo == TREE && func.coll == ALLREDUCE), "this algorithm is", work->func);
    refuse_unless(func.redop <= MIN, "average and scaled sums are", work->func);
}

static void *block_run(void *argument)
{
    const struct block *block = argument;
    const struct launch *launch = block->launch;
    const struct channel *channel = &launch->devcomm->channels[block->channel];
    const struct work *at = launch->works + block->number;

    for (;;) {
        struct work work = *at; /* the host may reuse its place once it is told so */
        struct place place = {launch->devcomm, channel, block->channel, &work, launch->facts};
        if (work.is_last && work.in_fifo)
            __atomic_store_n(channel->work_fifo_done, work.done_acks, __ATOMIC_SEQ_CST);
        work_check(&work);
        if (work.type == WORK_P2P)
            p2p_run(&place);
        else if (work.coll.is_used)
            collective_run(&place);
        if (work.is_last || *launch->devcomm->abort_flag)
            return NULL;
        at = launch->works + work.next;
    }
}

static void blocks_run(struct launch *launch)
{
    struct block blocks[CHANNELS_MAX];
    pthread_t threads[CHANNELS_MAX];
    int count = 0;

    for (int channel = 0; channel < CHANNELS_MAX; channel++) {
        if (!(launch->channels >> channel & 1))
            continue;
        blocks[count] = (struct block){launch, channel, count};
        count++;
    }
    for (int i = 1; i < count; i++) {
        if (pthread_create(&threads[i], NULL, block_run, &blocks[i]))
            abort();
        pthread_setname_np(threads[i], "standin-block");
    }
    if (count)
        block_run(&blocks[0]);
    for (int i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
}

void kernel_run(struct launch *launch)
{
    uint64_t delay_us = launch->times.delay_us;

    if (delay_us)
        nanosleep(&(struct timespec){(time_t)(delay_us / 1000000), (long)(delay_us % 1000000) * 1000}, NULL);
    launch->times.begun_ns = truth_now_ns();
    blocks_run(launch);
    launch->times.ended_ns = truth_now_ns();
    facts_write(launch->facts, &launch->times);
}
