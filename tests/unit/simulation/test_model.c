/* SPDX-License-Identifier: BSD-2-Clause */
/* The model's rings against arithmetic: time by bandwidth and latency, depth of credit, and what a fault changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/simulation/group.h"
#include "tests/simulation/job.h"

#define BYTES (32u << 20)

static const struct setting usual = {
    .shape = SHAPE_PLAIN,
    .nodes = 8,
    .gpus = 1,
    .leaf_nodes = 16,
    .steps = 12,
    .channels = 2,
    .fault_rank = 3,
    .fault_first_step = 6,
    .fault_last_step = 11,
    .fault_delay_ns = 3000000,
    .fault_rate_percent = 25,
    .compute_ns = 20000000,
    .bytes = BYTES,
    .exchange_bytes = 1 << 20,
    .buffer_bytes = 4u << 20,
    .message_bytes = 512u << 10,
    .round_bytes = 4096,
    .link_gbps = 400,
    .latency_ns = 1500,
};

struct run {
    uint64_t took_ns, bytes, messages, credits, deepest;
};

static uint32_t ended;

static void count_end(void *subject, uint64_t argument)
{
    *(uint64_t *)subject = argument + 1;
    ended++;
}

/* One AllReduce of BYTES alone; rank 0 gets it `late_ns` later than the others. */
static struct run reduce_once(const struct setting *setting, uint64_t late_ns)
{
    struct world *world = world_create(setting);
    uint32_t ranks[16], count = (uint32_t)setting->nodes;
    struct kernel *kernels[16];
    const struct group_call call = {.operation = OPERATION_ALL_REDUCE, .bytes = BYTES};
    uint64_t mark = 0;
    struct run run = {0};

    for (uint32_t rank = 0; rank < count; rank++)
        ranks[rank] = rank;
    struct group *group = group_create(world, ranks, count, 1);
    ended = 0;
    for (uint32_t rank = 0; rank < count; rank++) {
        kernels[rank] = kernel_create(world_agenda(world), count_end, &mark, rank);
        group_add_lanes(group, rank, &call, kernels[rank]);
        kernel_queue(kernels[rank], 0, 0, NULL);
        if (rank > 0 || late_ns == 0)
            kernel_begin(kernels[rank]);
    }
    while (ended < count && agenda_step(world_agenda(world)))
        if (late_ns > 0 && world_now_ns(world) >= late_ns) {
            kernel_begin(kernels[0]);
            late_ns = 0;
        }
    if (late_ns > 0) { /* nothing else happens any more: all wait for rank 0 */
        run.took_ns = world_now_ns(world);
        kernel_begin(kernels[0]);
    }
    while (ended < count)
        assert_true(agenda_step(world_agenda(world)));
    run.took_ns = world_now_ns(world) - run.took_ns;
    const struct connection_sum *sum = group_ring_sum(group, 2, 0);
    run = (struct run){run.took_ns, sum->bytes, sum->messages, sum->credits, sum->deepest};
    group_destroy(group);
    world_destroy(world);
    return run;
}

static void a_link_carries_the_rings_volume(void **state)
{
    struct run run = reduce_once(&usual, 0);

    (void)state;
    assert_int_equal(run.bytes, (uint64_t)BYTES * 2 * 7 / 8 / 2); /* 2 (n - 1) / n, on each of two channels */
    assert_int_equal(run.messages, 2 * 7 * 2);                    /* chunks in two slices */
    assert_int_equal(run.credits, run.messages);
    assert_int_equal(run.deepest, 4); /* eight slots, two a slice */
}

/* Bandwidth alone is the least; each of 2 (n - 1) chunks adds latency and the hand-over of its first slice at most. */
static void an_undisturbed_ring_takes_its_time(void **state)
{
    struct run run = reduce_once(&usual, 0);
    double frames = (double)BYTES * 2 * 7 / 8 / 4096;
    double least_ns = ((double)BYTES * 2 * 7 / 8 + frames * 58) * 8 / 400;
    double slice_ns = 1048576.0 * 8 / 400;

    (void)state;
    assert_true((double)run.took_ns > least_ns);
    assert_true((double)run.took_ns < least_ns + 14 * (slice_ns + 15000));
}

/* Where latency rules, each of the 14 chunks that come one after the other takes it, and its own two slices at most. */
static void latency_adds_for_each_hop(void **state)
{
    struct setting far = usual;
    double slice_ns = 1048576.0 * 8 / 400;

    (void)state;
    far.latency_ns = 101500;
    struct run run = reduce_once(&far, 0);
    assert_true((double)run.took_ns > 14 * (101500 + slice_ns));
    assert_true((double)run.took_ns < 14 * (101500 + 2 * slice_ns + 15000));
}

/* While one rank's GPU is late, the others fill their slots and then wait. */
static void the_others_wait_for_the_last(void **state)
{
    struct run run = reduce_once(&usual, 50000000), quiet = reduce_once(&usual, 0);

    (void)state;
    assert_int_equal(run.bytes, quiet.bytes);
    assert_true(run.took_ns < 2 * quiet.took_ns);
}

static uint64_t step_ns(const struct setting *setting)
{
    struct job_outcome outcome;

    assert_int_equal(job_run(setting, &outcome), 0);
    return outcome.step_ns;
}

/* Without chance: what a fault of every step takes is exactly known. */
static void faults_cost_what_they_say(void **state)
{
    struct setting setting = usual;

    (void)state;
    setting.fault_first_step = 0;
    uint64_t quiet_ns = step_ns(&setting);
    assert_true(quiet_ns > 20000000 && quiet_ns < 23000000);
    static const int delays[] = {FAULT_GPU, FAULT_GPU_SPREAD, FAULT_HOST_CPU};
    for (size_t i = 0; i < 3; i++) {
        setting.fault = delays[i];
        assert_in_range(step_ns(&setting), quiet_ns + 2900000, quiet_ns + 3100000);
    }
    setting.fault = FAULT_RATE; /* a quarter of the rate: four times the link's time */
    uint64_t link_ns = (uint64_t)BYTES * 2 * 7 / 8 * 8 / 400;
    assert_in_range(step_ns(&setting), quiet_ns + 2 * link_ns, quiet_ns + 4 * link_ns);
}

/* Up and down a tree: all of it twice over each edge, so n - 1 edges carry what n links of a ring do; and no deadlock.
 */
static void trees_end(void **state)
{
    struct setting setting = usual;
    struct job_outcome outcome;

    (void)state;
    setting.tree = true;
    assert_in_range(step_ns(&setting), 20000000 + 1300000, 20000000 + 4000000);
    for (setting.nodes = 2; setting.nodes < 10; setting.nodes++)
        for (setting.gpus = 1; setting.gpus <= 3; setting.gpus += 2) {
            setting.shape = SHAPE_TENSOR;
            assert_int_equal(job_run(&setting, &outcome), 0);
            assert_in_range(outcome.step_ns, 20000000, 30000000);
        }
}

static void a_seed_is_a_run(void **state)
{
    struct setting setting = usual;
    struct job_outcome one, other;

    (void)state;
    setting.noise_percent = 100;
    setting.seed = 7;
    assert_int_equal(job_run(&setting, &one), 0);
    assert_int_equal(job_run(&setting, &other), 0);
    assert_int_equal(one.step_ns, other.step_ns);
    assert_int_equal(one.records, other.records);
    setting.seed = 8;
    assert_int_equal(job_run(&setting, &other), 0);
    assert_int_not_equal(one.step_ns, other.step_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_carries_the_rings_volume),
        cmocka_unit_test(an_undisturbed_ring_takes_its_time),
        cmocka_unit_test(latency_adds_for_each_hop),
        cmocka_unit_test(the_others_wait_for_the_last),
        cmocka_unit_test(faults_cost_what_they_say),
        cmocka_unit_test(trees_end),
        cmocka_unit_test(a_seed_is_a_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
