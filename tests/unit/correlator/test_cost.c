/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a late rank costs, in made-up steps of four operations that are 5 ms long. Either the ranks compute on beside
 * the operations, so that a delay at the step's begin is seen at each operation and costs once, or each computes for 10
 * ms when the operation before is over, so that delays add up. What a step costs follows from its own times.
 */
#include "correlator/job/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/log.h"

#define MS         1000000ULL
#define RANKS      4
#define STEPS      12
#define OPERATIONS 4
#define LATE_RANK  2
#define FIRST_STEP 5
#define COMPUTE_NS (10 * MS)
#define ACTIVE_NS  (5 * MS)

struct plan {
    bool waits;          /* each operation's compute begins when the one before is over */
    int late_operations; /* so many of a step's begin with the delay */
    uint64_t delay_ns;
    uint64_t unlike_ns; /* by which ranks and operations differ by nature */
};

/* Between 0 and what is natural, another for each rank, step and operation. */
static uint64_t nature(const struct plan *plan, int step, int operation, int rank)
{
    return plan->unlike_ns * ((uint64_t)(step * 31 + operation * 17 + rank * 7) * 2654435761U % 97) / 96;
}

static uint64_t delay(const struct plan *plan, int step, int operation, int rank)
{
    bool late = rank == LATE_RANK && step >= FIRST_STEP && operation < plan->late_operations;

    return late ? plan->delay_ns : 0;
}

static void add_operation(struct job *job, struct blame *blames, const struct plan *plan, int step, int place,
                          uint64_t computed[RANKS], uint64_t *over_ns)
{
    size_t first = job->rank_operations.count;
    uint64_t last_ns = 0, usual_ns = 0;

    for (int rank = 0; rank < RANKS; rank++) {
        uint64_t own = COMPUTE_NS + nature(plan, step, place, rank) + delay(plan, step, place, rank);
        computed[rank] = (plan->waits ? *over_ns : computed[rank]) + own;
        uint64_t arrival = computed[rank] > *over_ns ? computed[rank] : *over_ns;
        *(struct rank_operation *)array_add(&job->rank_operations) = (struct rank_operation){
            .operation = (int32_t)job->operations.count, .rank = rank, .arrival_ns = arrival, .before_ns = *over_ns};
        last_ns = arrival > last_ns ? arrival : last_ns;
        if (rank != LATE_RANK)
            usual_ns = arrival > usual_ns ? arrival : usual_ns;
    }
    for (int rank = 0; rank < RANKS; rank++) {
        struct blame *blame = &blames[first + (size_t)rank];
        *blame = (struct blame){.known = true, .place = (uint64_t)place};
        if (rank == LATE_RANK && last_ns > usual_ns)
            blame->own_ns[BLAME_GPU] = blame->late_ns[BLAME_GPU] = (int64_t)(last_ns - usual_ns);
    }
    *over_ns = last_ns + ACTIVE_NS;
    *(struct operation *)array_add(&job->operations) = (struct operation){.step = step,
                                                                          .place = place,
                                                                          .last_arrival_ns = last_ns,
                                                                          .end_ns = *over_ns,
                                                                          .first_rank = first,
                                                                          .ranks = RANKS};
}

/* Returns what the late rank costs in each step with the fault, all of them together. */
static int64_t cost_of(const struct plan *plan)
{
    struct job job = {0};
    struct blame blames[STEPS * OPERATIONS * RANKS] = {0};
    uint64_t over_ns = MS;
    int64_t cost_ns = 0;

    for (int step = 0; step < STEPS; step++) {
        uint64_t computed[RANKS] = {over_ns, over_ns, over_ns, over_ns}, start_ns = over_ns;
        for (int place = 0; place < OPERATIONS; place++)
            add_operation(&job, blames, plan, step, place, computed, &over_ns);
        *(struct step *)array_add(&job.steps) = (struct step){.kind = STEP_TRAINING,
                                                              .start_ns = start_ns,
                                                              .end_ns = over_ns,
                                                              .duration_ns = over_ns - start_ns,
                                                              .first_rank = job.rank_steps.count,
                                                              .ranks = RANKS};
        for (int rank = 0; rank < RANKS; rank++)
            *(struct rank_step *)array_add(&job.rank_steps) = (struct rank_step){.step = step, .rank = rank};
    }
    cost_find(&job, blames);
    for (size_t i = 0; i < job.rank_steps.count; i++) {
        const struct rank_step *own = &job.rank_steps.items[i];
        if (own->rank != LATE_RANK)
            assert_int_equal(own->cost_ns, 0);
        else if (own->step >= FIRST_STEP)
            cost_ns += own->cost_ns;
    }
    array_fini(&job.operations);
    array_fini(&job.rank_operations);
    array_fini(&job.steps);
    array_fini(&job.rank_steps);
    return cost_ns / (STEPS - FIRST_STEP);
}

static void assert_about(int64_t is_ns, uint64_t wanted_ns, uint64_t within_ns)
{
    assert_in_range((uint64_t)is_ns, wanted_ns - within_ns, wanted_ns + within_ns);
}

static void what_is_computed_beside_costs_once(void **state)
{
    const struct plan plan = {.waits = false, .late_operations = 1, .delay_ns = 4 * MS, .unlike_ns = MS / 10};

    (void)state;
    assert_about(cost_of(&plan), 4 * MS, OPERATIONS * MS / 10);
}

static void what_grows_beside_costs_all_of_it_once(void **state)
{
    const struct plan plan = {.waits = false, .late_operations = OPERATIONS, .delay_ns = MS, .unlike_ns = MS / 10};

    (void)state;
    assert_about(cost_of(&plan), 4 * MS, OPERATIONS * MS / 10);
}

static void what_waits_adds_up(void **state)
{
    const struct plan plan = {.waits = true, .late_operations = OPERATIONS, .delay_ns = 4 * MS, .unlike_ns = MS / 10};

    (void)state;
    assert_about(cost_of(&plan), 16 * MS, OPERATIONS * MS / 10);
}

static void what_waits_and_is_late_once_costs_that(void **state)
{
    const struct plan plan = {.waits = true, .late_operations = 1, .delay_ns = 4 * MS, .unlike_ns = MS / 10};

    (void)state;
    assert_about(cost_of(&plan), 4 * MS, OPERATIONS * MS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_computed_beside_costs_once),
        cmocka_unit_test(what_grows_beside_costs_all_of_it_once),
        cmocka_unit_test(what_waits_adds_up),
        cmocka_unit_test(what_waits_and_is_late_once_costs_that),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
