/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting queue pairs in a stand-in device: known traffic in, readings out. */
#include "nic/mlx5/mlx5_counters.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/nic/mlx5_standin.h"
#include "wire/clock.h"

#define PLACES 1024

static const struct standin_limits whole = {.counters = 4096,
                                            .bulk_log_most = 9,
                                            .rules = 2048,
                                            .has_memory = true,
                                            .has_offsets = true,
                                            .has_received = true,
                                            .has_table = true};

struct bench {
    struct mlx5_device *device;
    struct mlx5_counters *counters;
};

static struct bench open_bench(struct standin_limits limits)
{
    struct bench bench = {.device = standin_open(&limits)};

    assert_int_equal(mlx5_counters_open(&bench.counters, bench.device, PLACES), 0);
    return bench;
}

/* Nothing is left in the device, and nothing was asked of it that no device would take. */
static struct standin_tally close_bench(struct bench *bench)
{
    struct standin_tally tally;

    mlx5_counters_close(&bench->counters);
    standin_tally(bench->device, &tally);
    assert_int_equal(tally.rules, 0);
    assert_int_equal(tally.counters, 0);
    assert_int_equal(tally.unaligned, 0);
    if (tally.wrong != NULL)
        fail_msg("the device was asked for %s", tally.wrong);
    mlx5_device_close(&bench->device);
    return tally;
}

static void read_one(struct bench *bench, unsigned place, uint64_t sent, uint64_t sent_bytes, uint64_t received,
                     uint64_t received_bytes)
{
    struct record_reading reading;

    assert_int_equal(mlx5_counters_read(bench->counters), 0);
    assert_true(mlx5_counters_take(bench->counters, place, &reading));
    assert_int_equal(reading.sent_packets, sent);
    assert_int_equal(reading.sent_bytes_least, sent_bytes);
    assert_int_equal(reading.sent_bytes_most, sent_bytes);
    assert_int_equal(reading.received_packets, received);
    assert_int_equal(reading.received_bytes_most, received_bytes);
    assert_int_equal(reading.fields, SOURCE_PACKETS | SOURCE_WIRE_BYTES);
    assert_false(mlx5_counters_take(bench->counters, place, &reading));
}

static void each_queue_pair_has_its_own_counts(void **state)
{
    struct bench bench = open_bench(whole);
    struct record_reading reading;

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(mlx5_counters_add(bench.counters, i, 0x100 + i), 0);
    for (unsigned i = 0; i < 100; i++) {
        standin_pass(bench.device, MLX5_SENT, 0x100 + i, i, 4096 * i);
        standin_pass(bench.device, MLX5_RECEIVED, 0x100 + i, 2 * i, 90 * i);
    }
    standin_pass(bench.device, MLX5_SENT, 0x99, 1000, 1000);
    assert_int_equal(mlx5_counters_read(bench.counters), 0);
    assert_false(mlx5_counters_take(bench.counters, 0, &reading));
    for (unsigned i = 1; i < 100; i++) {
        assert_true(mlx5_counters_take(bench.counters, i, &reading));
        assert_int_equal(reading.sent_packets, i);
        assert_int_equal(reading.sent_bytes_most, 4096 * i);
        assert_int_equal(reading.received_packets, 2 * i);
        assert_int_equal(reading.received_bytes_least, 90 * i);
    }
    standin_pass(bench.device, MLX5_SENT, 0x107, 5, 500);
    read_one(&bench, 7, 5, 500, 0, 0);
    struct standin_tally tally = close_bench(&bench);
    assert_int_equal(tally.queries, 3); /* when the bulk was made, and one a reading, for 200 counters */
    assert_int_equal(tally.dumps, 3);
}

/* What happened between the two readings' questions and answers, and a query of 20 ms says so. */
static void a_reading_has_its_true_interval(void **state)
{
    struct standin_limits slow = whole;
    struct record_reading first, second;

    (void)state;
    slow.query_ms = 20;
    struct bench bench = open_bench(slow);
    uint64_t before_ns = clock_now_ns();
    assert_int_equal(mlx5_counters_add(bench.counters, 0, 5), 0);
    uint64_t added_ns = clock_now_ns();
    standin_pass(bench.device, MLX5_SENT, 5, 1, 1);
    mlx5_counters_read(bench.counters);
    uint64_t read_ns = clock_now_ns();
    assert_true(mlx5_counters_take(bench.counters, 0, &first));
    assert_in_range(first.from_ns, before_ns, added_ns);
    assert_in_range(first.to_ns, added_ns + 20000000, read_ns);
    assert_true(first.to_bound_ns >= 20000000);
    standin_pass(bench.device, MLX5_SENT, 5, 1, 1);
    mlx5_counters_read(bench.counters);
    assert_true(mlx5_counters_take(bench.counters, 0, &second));
    assert_int_equal(second.from_ns, first.to_ns - first.to_bound_ns);
    assert_int_equal(second.from_bound_ns, first.to_bound_ns);
    close_bench(&bench);
}

/* A slot that is given back is not given away before what it still counted is known. */
static void a_new_queue_pair_inherits_nothing(void **state)
{
    struct bench bench = open_bench(whole);

    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        assert_int_equal(mlx5_counters_add(bench.counters, round % 8, 0x500 + round), 0);
        standin_pass(bench.device, MLX5_SENT, 0x500 + round, 3, 300);
        read_one(&bench, round % 8, 3, 300, 0, 0);
        standin_pass(bench.device, MLX5_SENT, 0x500 + round, 1000, 1000); /* after its last reading */
        mlx5_counters_remove(bench.counters, round % 8);
        standin_pass(bench.device, MLX5_SENT, 0x500 + round, 5, 5); /* counted by nobody */
    }
    struct standin_tally tally;
    standin_tally(bench.device, &tally);
    assert_int_equal(tally.counters, 512); /* one bulk served all 300 */
    close_bench(&bench);
}

static void small_bulks_where_large_ones_are_refused(void **state)
{
    struct standin_limits limits = whole;
    struct standin_tally tally;

    (void)state;
    limits.bulk_log_most = 3;
    struct bench bench = open_bench(limits);
    standin_tally(bench.device, &tally);
    assert_int_equal(tally.counters, 8);
    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(mlx5_counters_add(bench.counters, i, 1 + i), 0);
    standin_tally(bench.device, &tally);
    assert_int_equal(tally.counters, 24); /* 4 queue pairs a bulk */
    standin_pass(bench.device, MLX5_RECEIVED, 9, 7, 70);
    read_one(&bench, 8, 0, 0, 7, 70);
    close_bench(&bench);
}

/* Without offsets a rule can name no counter within a bulk: two counters a queue pair, two commands a reading. */
static void one_by_one_without_offsets(void **state)
{
    struct standin_limits limits = whole;

    (void)state;
    limits.has_offsets = false;
    struct bench bench = open_bench(limits);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(mlx5_counters_add(bench.counters, i, 1 + i), 0);
    standin_pass(bench.device, MLX5_SENT, 2, 4, 40);
    standin_pass(bench.device, MLX5_RECEIVED, 2, 5, 50);
    read_one(&bench, 1, 4, 40, 5, 50);
    struct standin_tally tally = close_bench(&bench);
    assert_int_equal(tally.dumps, 0);
    assert_int_equal(tally.queries, 12); /* three pairs made, three pairs read */
}

static void answers_carry_what_memory_cannot(void **state)
{
    struct standin_limits limits = whole;

    (void)state;
    limits.has_memory = false;
    struct bench bench = open_bench(limits);
    assert_int_equal(mlx5_counters_add(bench.counters, 0, 9), 0);
    standin_pass(bench.device, MLX5_SENT, 9, 11, 1100);
    read_one(&bench, 0, 11, 1100, 0, 0);
    assert_int_equal(close_bench(&bench).dumps, 0);
}

/* Another function's packets, from a DPU: its table names the function; all else is the same. */
static void another_functions_packets(void **state)
{
    struct standin_limits limits = whole;
    struct standin_tally tally;
    struct record_reading reading;

    (void)state;
    limits.is_transport = true;
    limits.vport = 0x102;
    struct bench bench = open_bench(limits);
    assert_int_equal(mlx5_counters_add(bench.counters, 0, 9), 0);
    standin_pass(bench.device, MLX5_SENT, 9, 2, 200);
    standin_pass(bench.device, MLX5_RECEIVED, 9, 1, 100);
    mlx5_counters_read(bench.counters);
    assert_true(mlx5_counters_take(bench.counters, 0, &reading));
    assert_int_equal(reading.sent_packets, 2);
    assert_int_equal(reading.received_packets, 1);
    standin_tally(bench.device, &tally);
    assert_null(tally.wrong);
    close_bench(&bench);
}

/* Nowhere for received packets to go on: they are left alone, and readings say that only what is sent is counted. */
static void what_is_sent_alone(void **state)
{
    struct standin_limits limits = whole;
    struct record_reading reading;

    (void)state;
    limits.has_table = false;
    struct bench bench = open_bench(limits);
    assert_int_equal(mlx5_counters_add(bench.counters, 0, 9), 0);
    standin_pass(bench.device, MLX5_SENT, 9, 1, 100);
    standin_pass(bench.device, MLX5_RECEIVED, 9, 1, 100);
    mlx5_counters_read(bench.counters);
    assert_true(mlx5_counters_take(bench.counters, 0, &reading));
    assert_int_equal(reading.flags, READING_SENT_ONLY);
    assert_int_equal(reading.received_packets, 0);
    close_bench(&bench);
}

/* 16 counters are 8 queue pairs; a ninth is refused until one goes. Rules run out likewise. */
static void limits_refuse_and_recover(void **state)
{
    struct standin_limits few_counters = whole, few_rules = whole;

    (void)state;
    few_counters.counters = 16;
    few_rules.rules = 5;
    struct bench bench = open_bench(few_counters);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(mlx5_counters_add(bench.counters, i, 1 + i), 0);
    assert_int_equal(mlx5_counters_add(bench.counters, 8, 9), -ENOSPC);
    assert_int_equal(mlx5_counters_refused(bench.counters), 1);
    mlx5_counters_remove(bench.counters, 3);
    mlx5_counters_read(bench.counters);
    assert_int_equal(mlx5_counters_add(bench.counters, 8, 9), 0);
    close_bench(&bench);

    bench = open_bench(few_rules);
    assert_int_equal(mlx5_counters_add(bench.counters, 0, 1), 0);
    assert_int_equal(mlx5_counters_add(bench.counters, 1, 2), 0);
    assert_int_equal(mlx5_counters_add(bench.counters, 2, 3), -ENOSPC); /* the fifth rule was made, and is taken back */
    assert_false(mlx5_counters_has(bench.counters, 2));
    standin_pass(bench.device, MLX5_SENT, 2, 6, 60);
    read_one(&bench, 1, 6, 60, 0, 0);
    close_bench(&bench);
}

static void a_reset_is_said_and_not_counted(void **state)
{
    struct bench bench = open_bench(whole);
    struct record_reading reading;

    (void)state;
    assert_int_equal(mlx5_counters_add(bench.counters, 0, 9), 0);
    standin_pass(bench.device, MLX5_SENT, 9, 11, 1100);
    read_one(&bench, 0, 11, 1100, 0, 0);
    standin_reset(bench.device);
    mlx5_counters_read(bench.counters);
    assert_true(mlx5_counters_take(bench.counters, 0, &reading));
    assert_int_equal(reading.flags, READING_RESET);
    assert_int_equal(reading.sent_packets, 0);
    standin_pass(bench.device, MLX5_SENT, 9, 2, 200);
    read_one(&bench, 0, 2, 200, 0, 0);
    close_bench(&bench);
}

static void a_device_without_counters_is_no_source(void **state)
{
    struct standin_limits none = whole;
    struct mlx5_counters *counters = NULL;

    (void)state;
    none.counters = 0;
    struct mlx5_device *device = standin_open(&none);
    assert_int_equal(mlx5_counters_open(&counters, device, PLACES), -ENOSPC);
    assert_null(counters);
    mlx5_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_queue_pair_has_its_own_counts),
        cmocka_unit_test(a_reading_has_its_true_interval),
        cmocka_unit_test(a_new_queue_pair_inherits_nothing),
        cmocka_unit_test(small_bulks_where_large_ones_are_refused),
        cmocka_unit_test(one_by_one_without_offsets),
        cmocka_unit_test(answers_carry_what_memory_cannot),
        cmocka_unit_test(another_functions_packets),
        cmocka_unit_test(what_is_sent_alone),
        cmocka_unit_test(limits_refuse_and_recover),
        cmocka_unit_test(a_reset_is_said_and_not_counted),
        cmocka_unit_test(a_device_without_counters_is_no_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
