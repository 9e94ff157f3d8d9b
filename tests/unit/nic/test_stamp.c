/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver's time stamps against a stand-in port clock, whose true relation to our clock the test sets: ticks that drift,
 * wrap, stop or are set, nanoseconds since 1970, and seconds and nanoseconds in one word.
 */
#include "nic/dpdk/stamp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND   1000000000ull
#define READ_NS  300u /* one reading of a clock */
#define MONO_NS  (5000 * SECOND)
#define REAL_NS  (1790000000ull * SECOND)
#define TAI_DIFF (37 * SECOND)

/* The world: true time moves with each reading of a clock. */
struct world {
    uint64_t now_ns;
    double ticks_a_ns;
    uint64_t raw_start; /* at MONO_NS */
    unsigned bits;
    bool is_split; /* the port's clock is CLOCK_REALTIME as seconds and nanoseconds */
    bool has_clock;
    uint64_t jump; /* added to the ticks */
    int64_t realtime_jump_ns;
};

static uint64_t raw_at(const struct world *world, uint64_t at_ns)
{
    if (world->is_split) {
        uint64_t real_ns = REAL_NS + (at_ns - MONO_NS);
        return (real_ns / SECOND) << 32 | real_ns % SECOND;
    }
    uint64_t ticks =
        world->raw_start + world->jump + (uint64_t)((long double)(at_ns - MONO_NS) * (long double)world->ticks_a_ns);
    return world->bits == 64 ? ticks : ticks & (((uint64_t)1 << world->bits) - 1);
}

static int read_port(void *context, uint64_t *raw)
{
    struct world *world = context;

    if (!world->has_clock)
        return -ENOTSUP;
    world->now_ns += READ_NS;
    *raw = raw_at(world, world->now_ns);
    world->now_ns += READ_NS;
    return 0;
}

static uint64_t read_now(void *context)
{
    struct world *world = context;

    return world->now_ns += 20;
}

static void read_pair(void *context, struct record_clock_pair *pair)
{
    struct world *world = context;
    uint64_t realtime_ns = REAL_NS + (world->now_ns - MONO_NS) + (uint64_t)world->realtime_jump_ns;

    *pair = (struct record_clock_pair){
        .monotonic_ns = world->now_ns, .realtime_ns = realtime_ns, .tai_ns = realtime_ns + TAI_DIFF, .bound_ns = 50};
}

static void begin(struct stamp *stamp, struct world *world)
{
    const struct stamp_clocks clocks = {
        .read_port = read_port, .now_ns = read_now, .read_pair = read_pair, .context = world};

    world->now_ns = MONO_NS;
    stamp_init(stamp, &clocks, "test");
}

/* Lets time pass in steps of 10 ms with a frame in each; the largest error of a frame's time. */
static int64_t pass(struct stamp *stamp, struct world *world, uint64_t duration_ns)
{
    int64_t worst_ns = 0;

    for (uint64_t end_ns = world->now_ns + duration_ns; world->now_ns < end_ns;) {
        world->now_ns += 10000000;
        uint64_t sent_ns = world->now_ns - 4000, now_ns = read_now(world);
        stamp_check(stamp, now_ns);
        int64_t error_ns = (int64_t)(stamp_time(stamp, raw_at(world, sent_ns), now_ns) - sent_ns);
        worst_ns = llabs(error_ns) > worst_ns ? llabs(error_ns) : worst_ns;
    }
    return worst_ns;
}

static void test_ticks(void **state)
{
    struct world world = {.has_clock = true, .bits = 64, .ticks_a_ns = 0.15625, .raw_start = 77777777777ull};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    assert_true(stamp.has_line);
    assert_int_equal(stamp_bound_ns(&stamp), 0);
    assert_true(pass(&stamp, &world, SECOND) < 1000);
    assert_int_equal(stamp.kind, STAMP_PORT);
    assert_true(pass(&stamp, &world, 100 * SECOND) < 500);
    assert_in_range(stamp_bound_ns(&stamp), pass(&stamp, &world, SECOND), 1000);
    assert_int_equal(stamp.refused, 0);
    assert_int_equal(stamp.steps, 0);
}

static void test_drift_is_followed(void **state)
{
    struct world world = {.has_clock = true, .bits = 64, .ticks_a_ns = 1.0, .raw_start = 1};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    pass(&stamp, &world, 40 * SECOND);
    /* The crystal warms up: 20 millionths faster, from now on. Without a look it would be off by 800 us in 40 s. */
    world.raw_start = raw_at(&world, world.now_ns) - (uint64_t)((double)(world.now_ns - MONO_NS) * 1.00002);
    world.ticks_a_ns = 1.00002;
    int64_t off_ns = pass(&stamp, &world, 40 * SECOND);
    assert_true(off_ns < 10000);
    assert_in_range(stamp_bound_ns(&stamp), off_ns, 20000);
    assert_true(pass(&stamp, &world, 20 * SECOND) < 1000);
    assert_int_equal(stamp.steps, 0);
}

static void test_times_do_not_run_backwards(void **state)
{
    struct world world = {.has_clock = true, .bits = 64, .ticks_a_ns = 0.99997, .raw_start = 12345};
    struct stamp stamp;
    uint64_t last_ns = 0;

    (void)state;
    begin(&stamp, &world);
    for (unsigned i = 0; i < 2000000; i++) {
        world.now_ns += 500;
        uint64_t now_ns = read_now(&world);
        stamp_check(&stamp, now_ns);
        uint64_t at_ns = stamp_time(&stamp, raw_at(&world, now_ns), now_ns);
        assert_true(at_ns >= last_ns);
        last_ns = at_ns;
    }
}

static void check_wrap(unsigned bits, double ticks_a_ns)
{
    struct world world = {.has_clock = true, .bits = bits, .ticks_a_ns = ticks_a_ns};
    struct stamp stamp;

    world.raw_start = ((uint64_t)1 << bits) - (uint64_t)(3.0 * 1e9 * ticks_a_ns); /* it begins again after 3 s */
    begin(&stamp, &world);
    assert_true(pass(&stamp, &world, 2 * SECOND) < 1000);
    /* A frame between the wrap and the next look gets the time at which it was read: 4 us late, as pass() reads it. */
    assert_true(pass(&stamp, &world, 4 * SECOND) < 5000);
    assert_int_equal(stamp.raw_bits, bits);
    assert_true(pass(&stamp, &world, 5 * SECOND) < 1000);
    assert_int_equal(stamp.steps, 0);
}

static void test_wrap(void **state)
{
    (void)state;
    check_wrap(32, 1.0);
    check_wrap(32, 0.15625);
    check_wrap(40, 1.0);
    check_wrap(48, 1.0);
}

static void test_clock_that_is_set(void **state)
{
    struct world world = {.has_clock = true, .bits = 64, .ticks_a_ns = 1.0, .raw_start = REAL_NS};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    pass(&stamp, &world, 2 * SECOND);
    world.jump = TAI_DIFF; /* a PTP daemon has put it to TAI */
    pass(&stamp, &world, SECOND);
    assert_int_equal(stamp.steps, 1);
    assert_true(pass(&stamp, &world, SECOND) < 1000);
}

static void test_clock_that_stands(void **state)
{
    struct world world = {.has_clock = true, .bits = 64, .ticks_a_ns = 1.0, .raw_start = 1};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    pass(&stamp, &world, SECOND);
    world.raw_start = raw_at(&world, world.now_ns);
    world.ticks_a_ns = 0;
    pass(&stamp, &world, 2 * SECOND);
    assert_int_equal(stamp.kind, STAMP_NONE);
    assert_int_equal(stamp_time(&stamp, world.raw_start, world.now_ns), world.now_ns);
}

static void test_split_word(void **state)
{
    struct world world = {.has_clock = true, .is_split = true};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    assert_true(stamp.is_split);
    assert_true(pass(&stamp, &world, 5 * SECOND) < 1000);
    assert_int_equal(stamp.kind, STAMP_PORT);
}

static void check_system_clock(uint64_t offset_ns, uint64_t unit_ns, enum stamp_kind kind)
{
    struct world world = {.has_clock = false};
    struct stamp stamp;

    begin(&stamp, &world);
    assert_false(stamp.has_line);
    world.now_ns += SECOND;
    uint64_t sent_ns = world.now_ns - 7000;
    uint64_t raw = (REAL_NS + (sent_ns - MONO_NS) + offset_ns) / unit_ns;
    assert_true(llabs((int64_t)(stamp_time(&stamp, raw, world.now_ns) - sent_ns)) <= (int64_t)unit_ns);
    assert_int_equal(stamp.kind, kind);
    world.realtime_jump_ns = 3600ll * (int64_t)SECOND; /* somebody sets the clock: it is seen at the next look */
    world.now_ns += SECOND;
    stamp_check(&stamp, world.now_ns);
    sent_ns = world.now_ns - 9000;
    raw = (REAL_NS + (sent_ns - MONO_NS) + offset_ns + 3600 * SECOND) / unit_ns;
    assert_true(llabs((int64_t)(stamp_time(&stamp, raw, world.now_ns) - sent_ns)) <= (int64_t)unit_ns);
}

static void test_system_clocks(void **state)
{
    (void)state;
    check_system_clock(0, 1, STAMP_REALTIME_NS);
    check_system_clock(0, 1000, STAMP_REALTIME_US);
    check_system_clock(TAI_DIFF, 1, STAMP_TAI_NS);
}

static void test_unknown_clock(void **state)
{
    struct world world = {.has_clock = false};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    assert_int_equal(stamp_time(&stamp, 4711, world.now_ns), world.now_ns);
    assert_int_equal(stamp.kind, STAMP_NONE);
}

static void test_stamps_of_another_clock_than_the_ports(void **state)
{
    struct world world = {.has_clock = true, .bits = 64, .ticks_a_ns = 0.15625, .raw_start = 99};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world); /* the port can be asked for its ticks, but stamps frames in nanoseconds since 1970 */
    assert_int_equal(stamp_time(&stamp, REAL_NS + (world.now_ns - 5000 - MONO_NS), world.now_ns), world.now_ns - 5000);
    assert_int_equal(stamp.kind, STAMP_REALTIME_NS);
}

/* 30 ms pass between reading the clock and taking the frames: their stamps are right all the same, the very first too.
 */
static void test_a_reader_that_is_held_up(void **state)
{
    struct world world = {.has_clock = false};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t before_ns = world.now_ns;
        world.now_ns += 30000000;
        uint64_t sent_ns = world.now_ns - 5000;
        assert_int_equal(stamp_time(&stamp, REAL_NS + (sent_ns - MONO_NS), before_ns), sent_ns);
    }
    assert_int_equal(stamp.kind, STAMP_REALTIME_NS);
    assert_int_equal(stamp.refused, 0);
}

static void test_a_wild_stamp_is_not_believed(void **state)
{
    struct world world = {.has_clock = true, .bits = 64, .ticks_a_ns = 1.0, .raw_start = 1000};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    pass(&stamp, &world, SECOND);
    assert_int_equal(stamp_time(&stamp, raw_at(&world, world.now_ns) + SECOND, world.now_ns), world.now_ns);
    assert_int_equal(stamp_time(&stamp, 0, world.now_ns + 100 * SECOND), world.now_ns + 100 * SECOND);
    assert_int_equal(stamp.refused, 2);
}

static void test_kept_from_the_processor(void **state)
{
    struct world world = {.has_clock = true, .bits = 64, .ticks_a_ns = 1.0, .raw_start = 1000};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    pass(&stamp, &world, SECOND);
    uint64_t read_ns = read_now(&world); /* and then nothing for 50 ms, in which a frame comes */
    world.now_ns += 50000000;
    uint64_t sent_ns = world.now_ns - 1000;
    assert_in_range(stamp_time(&stamp, raw_at(&world, sent_ns), read_ns), sent_ns - 1000, sent_ns + 1000);
    assert_int_equal(stamp.refused, 0);
}

static void test_missing(void **state)
{
    struct world world = {.has_clock = true, .bits = 64, .ticks_a_ns = 1.0, .raw_start = 1000};
    struct stamp stamp;

    (void)state;
    begin(&stamp, &world);
    stamp_missing(&stamp);
    assert_int_equal(stamp_time(&stamp, raw_at(&world, world.now_ns - 5), world.now_ns), world.now_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_drift_is_followed),
        cmocka_unit_test(test_times_do_not_run_backwards),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_clock_that_is_set),
        cmocka_unit_test(test_clock_that_stands),
        cmocka_unit_test(test_split_word),
        cmocka_unit_test(test_system_clocks),
        cmocka_unit_test(test_unknown_clock),
        cmocka_unit_test(test_stamps_of_another_clock_than_the_ports),
        cmocka_unit_test(test_a_reader_that_is_held_up),
        cmocka_unit_test(test_a_wild_stamp_is_not_believed),
        cmocka_unit_test(test_kept_from_the_processor),
        cmocka_unit_test(test_missing),
    };

    return cmocka_run_group_tests_name("stamp", tests, NULL, NULL);
}
