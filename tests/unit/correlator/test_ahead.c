/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that run ahead of their GPUs: each enqueues a step's all-reduce, and its proxy offers buffers, 20 ms before the
 * GPU comes to it. Records of one ring made by arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "correlator/job/job.h"

#define RANKS      8
#define STEPS      30
#define MS         1000000LL
#define US         1000LL
#define COMPUTE_NS (20 * MS)
#define SEND_NS    (2 * MS)
#define STEP_NS    (40 * MS)
#define TURN_NS    (5 * US) /* of a proxy */
#define LATE_RANK  5
#define LATE_FIRST 12
#define LATE_LAST  21

struct made {
    int64_t gpu_late_ns; /* of LATE_RANK, in its steps */
    int64_t apart_ns;    /* by so much each rank ends, and so begins, a step after the one before it */
};

static bool is_late(const struct made *made, int step, int rank)
{
    return made->gpu_late_ns != 0 && rank == LATE_RANK && step >= LATE_FIRST && step <= LATE_LAST;
}

static uint64_t begin_of(const struct made *made, int step, int rank)
{
    return (uint64_t)(1000 * MS + step * STEP_NS + rank * made->apart_ns);
}

static struct record_rank_operation make(const struct made *made, int step, int rank)
{
    int next = (rank + 1) % RANKS;
    uint64_t credit = begin_of(made, step, next) + TURN_NS;
    uint64_t enqueued = begin_of(made, step, rank);
    int64_t jitter = (step * 7 + rank * 3) % 11 * US; /* no GPU is even */
    uint64_t data = enqueued + COMPUTE_NS + (uint64_t)jitter;
    int64_t waited = made->gpu_late_ns != 0 && step >= LATE_FIRST && step <= LATE_LAST ? made->gpu_late_ns : 0;

    if (is_late(made, step, rank))
        data += (uint64_t)made->gpu_late_ns;
    uint64_t end = enqueued + COMPUTE_NS + (uint64_t)waited + SEND_NS;
    return (struct record_rank_operation){
        .communicator = {1},
        .operation = OPERATION_ALL_REDUCE,
        .sequence = (uint64_t)step,
        .rank = rank,
        .ranks_count = RANKS,
        .peer = -1,
        .next = next,
        .previous = (rank + RANKS - 1) % RANKS,
        .enqueued_ns = enqueued,
        .host_ready_ns = enqueued + TURN_NS,
        .held_ns = credit,
        .gpu_ready_ns = data,
        .first_data_ns = data,
        .last_data_ns = end,
        .end_ns = end,
        .received_ns = end,
        .active_ns = SEND_NS,
        .receive_active_ns = SEND_NS,
        .buffer_bytes = 1 << 20,
        .expected_bytes = 1 << 20,
        .observed_bytes = 1 << 20,
        .received_bytes = 1 << 20,
    };
}

static int32_t same_rank(const void *context, const uint8_t *communicator, int32_t rank)
{
    (void)context;
    (void)communicator;
    return rank;
}

static void build(struct job *job, const struct made *made)
{
    struct record_rank_operation records[STEPS * RANKS];

    for (int step = 0; step < STEPS; step++)
        for (int rank = 0; rank < RANKS; rank++)
            records[step * RANKS + rank] = make(made, step, rank);
    job_build(job, (struct job_ranks){.rank_of = same_rank}, NULL, records, STEPS * RANKS);
    assert_int_equal(job->steps.count, STEPS);
}

/* Credit lay there for 20 ms before each first data, and for 26 ms before the late one. */
static void the_late_gpu_is_found(void **state)
{
    const struct made made = {.gpu_late_ns = 6 * MS};
    struct job job;

    (void)state;
    build(&job, &made);
    assert_int_equal(job.verdicts.count, LATE_LAST - LATE_FIRST + 1);
    for (size_t i = 0; i < job.verdicts.count; i++) {
        assert_int_equal(job.verdicts.items[i].class, VERDICT_GPU_LATE);
        assert_int_equal(job.verdicts.items[i].rank, LATE_RANK);
        assert_int_equal(job.verdicts.items[i].step, LATE_FIRST + (int)i);
        assert_in_range(job.verdicts.items[i].size_ns, 6 * MS - 20 * US, 6 * MS + 20 * US);
    }
    job_fini(&job);
}

/* Only the last rank has its credit at once; that the others' comes later makes nobody's GPU slower. */
static void later_credit_makes_no_gpu_late(void **state)
{
    const struct made made = {.apart_ns = 600 * US};
    struct job job;

    (void)state;
    build(&job, &made);
    assert_int_equal(job.verdicts.count, 0);
    job_fini(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_late_gpu_is_found),
        cmocka_unit_test(later_credit_makes_no_gpu_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
