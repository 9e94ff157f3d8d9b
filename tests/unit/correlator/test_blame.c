/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host that is late behind an operation of which nothing tells when it was over for the rank: made-up steps of one
 * all-reduce. What a late rank adds follows from when each rank was ready.
 */
#include "correlator/job/blame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define US         1000ULL
#define MS         1000000ULL
#define RANKS      4
#define STEPS      12
#define LATE_RANK  3
#define FIRST_STEP 4

/* How long each step takes, in thousandths of a usual one: as steps of real RCCL did, which say nothing of a tenth. */
static const uint64_t uneven[STEPS] = {1100, 1130, 980, 920, 1220, 1080, 950, 990, 850, 860, 1020, 1000};
static const uint64_t even[STEPS] = {1000, 1001, 1000, 999, 1000, 1001, 1000, 1000, 999, 1000, 1001, 1000};

static void add_step(struct job *job, int step, uint64_t from_ns, uint64_t duration_ns, uint64_t computed_ns,
                     uint64_t late_ns)
{
    size_t first = job->rank_operations.count;

    for (int rank = 0; rank < RANKS; rank++) {
        bool is_late = rank == LATE_RANK && step >= FIRST_STEP;
        uint64_t ready_ns = from_ns + computed_ns + (uint64_t)rank * US + (is_late ? late_ns : 0);
        *(struct rank_operation *)array_add(&job->rank_operations) = (struct rank_operation){
            .record = {.rank = rank, .enqueued_ns = ready_ns, .host_ready_ns = ready_ns, .gpu_ready_ns = ready_ns + US},
            .operation = (int32_t)job->operations.count,
            .rank = rank,
            .arrival_ns = ready_ns + US,
            .arrival_of = ARRIVAL_HOST,
            .late_known = true,
            .before_open = rank == LATE_RANK,
            .late_ns = is_late ? (int64_t)late_ns : 0,
            .before_ns = from_ns};
    }
    *(struct operation *)array_add(&job->operations) = (struct operation){.kind = OPERATION_ALL_REDUCE,
                                                                          .step = step,
                                                                          .ranks_count = RANKS,
                                                                          .ranks_seen = RANKS,
                                                                          .start_ns = from_ns,
                                                                          .end_ns = from_ns + duration_ns,
                                                                          .first_rank = first,
                                                                          .ranks = RANKS};
    *(struct step *)array_add(&job->steps) = (struct step){
        .kind = STEP_TRAINING, .start_ns = from_ns, .end_ns = from_ns + duration_ns, .duration_ns = duration_ns};
}

/* In how many of its steps the late rank's host is said to have added three quarters of its lateness or more. */
static int steps_blamed(const uint64_t lengths[STEPS], uint64_t usual_ns, uint64_t late_ns)
{
    struct job job = {0};
    uint64_t from_ns = MS;
    int blamed = 0;

    for (int step = 0; step < STEPS; step++) {
        add_step(&job, step, from_ns, lengths[step] * usual_ns / 1000, usual_ns / 3, late_ns);
        from_ns += lengths[step] * usual_ns / 1000;
    }
    struct blame *blames = blame_ranks(&job);
    for (size_t i = 0; i < job.rank_operations.count; i++)
        blamed += job.rank_operations.items[i].rank == LATE_RANK &&
                  blames[i].own_ns[BLAME_HOST] >= (int64_t)(late_ns - late_ns / 4);
    free(blames);
    array_fini(&job.operations);
    array_fini(&job.rank_operations);
    array_fini(&job.steps);
    return blamed;
}

static void test_uneven_long_steps_disprove_nothing(void **state)
{
    (void)state;
    assert_int_equal(steps_blamed(uneven, 1500 * MS, 194 * MS), STEPS - FIRST_STEP);
}

/* What the rank may have waited for no step got longer by. */
static void test_even_short_steps_do(void **state)
{
    (void)state;
    assert_int_equal(steps_blamed(even, 15 * MS, 2 * MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uneven_long_steps_disprove_nothing),
        cmocka_unit_test(test_even_short_steps_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
