/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows that break their pattern, through the whole meter: what is pinned outlives the ring. */
#include "nic/window/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/nic/draft.h"

#define MS       1000000u
#define WINDOW   8000u
#define START_NS (1000u * (uint64_t)MS)
#define MESSAGE  16u    /* frames */
#define FRAME_NS 10000u /* usual distance */

struct fixture {
    struct tallies tallies;
    struct meter meter;
    struct watch *watch;
    uint64_t now_ns;
    uint32_t psns[4];
};

static int setup(void **state)
{
    const struct meter_options options = {
        .window_ns = WINDOW, .flows_max = 16, .messages_max = 1024, .memory_bytes = 2u << 20};
    struct fixture *fixture = calloc(1, sizeof *fixture);

    *state = fixture;
    if (fixture == NULL || meter_init(&fixture->meter, &options, &fixture->tallies) != 0)
        return -1;
    fixture->now_ns = START_NS;
    return watch_create(&fixture->watch, &fixture->meter);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    watch_destroy(&fixture->watch);
    meter_fini(&fixture->meter);
    free(fixture);
    return 0;
}

/* The next frame of a source's flow, in messages of 16 frames. */
static void pass(struct fixture *fixture, uint8_t source)
{
    uint32_t psn = fixture->psns[source]++, within = psn % MESSAGE;
    const struct draft_frame frame = {.source = source,
                                      .destination = 9,
                                      .opcode = within == 0             ? 0x00
                                                : within == MESSAGE - 1 ? 0x02
                                                                        : 0x01,
                                      .qpn = 7,
                                      .psn = psn,
                                      .payload_bytes = 1024};
    struct record_message message;
    struct draft draft;

    draft_roce(&draft, &frame);
    const struct source_frame seen = {.bytes = draft.bytes,
                                      .captured_bytes = (uint32_t)draft.length,
                                      .original_bytes = (uint32_t)draft.length,
                                      .at_ns = fixture->now_ns,
                                      .port = 1};
    meter_frames(&fixture->meter, &seen, 1);
    while (message_take(fixture->meter.messages, &message))
        watch_message(fixture->watch, &message);
    watch_go_on(fixture->watch, fixture->now_ns);
}

static void pass_many(struct fixture *fixture, uint8_t source, uint32_t frames)
{
    for (; frames > 0; frames--, fixture->now_ns += FRAME_NS)
        pass(fixture, source);
}

static size_t windows_between(struct fixture *fixture, uint64_t from_ns, uint64_t to_ns, uint32_t flow)
{
    struct record_window records[64];
    struct window_walk walk;
    size_t count = 0;
    bool done = false;

    window_walk_begin(fixture->meter.windows, &walk, from_ns, to_ns, flow);
    while (!done)
        count += window_walk_next(fixture->meter.windows, &walk, records, 64, 1000, &done);
    return count;
}

/* Five messages and a pause of 5 ms, again and again. */
static void pass_pattern(struct fixture *fixture, uint64_t for_ns)
{
    for (uint64_t end_ns = fixture->now_ns + for_ns; fixture->now_ns < end_ns; fixture->now_ns += 5 * MS)
        pass_many(fixture, 1, 5 * MESSAGE);
}

static void test_even_traffic_is_not_pinned(void **state)
{
    struct fixture *fixture = *state;
    struct record_pin pin;

    pass_many(fixture, 1, 3000 * MESSAGE);
    fixture->now_ns += 5000 * (uint64_t)MS; /* silent between two messages, but no pattern is known yet */
    pass_many(fixture, 1, 100 * MESSAGE);
    pass_pattern(fixture, 12000 * (uint64_t)MS);
    assert_int_equal(fixture->tallies.values[TALLY_STALLS], 0);
    assert_int_equal(fixture->tallies.values[TALLY_STALLS_BETWEEN], 0);
    assert_int_equal(fixture->tallies.values[TALLY_PINS], 0);
    assert_false(watch_take(fixture->watch, &pin));
}

/* A step's end every 4 s, of 700 ms: part of the pattern after 10 s, though each epoch is longer than a step. */
static void test_a_pause_that_comes_once_a_step(void **state)
{
    struct fixture *fixture = *state;

    for (unsigned step = 0; step < 8; step++) {
        pass_pattern(fixture, 3300 * (uint64_t)MS);
        fixture->now_ns += 700 * (uint64_t)MS;
    }
    assert_int_equal(fixture->tallies.values[TALLY_STALLS_BETWEEN], 0);
    assert_int_equal(fixture->tallies.values[TALLY_PINS], 0);
}

static void take_only(struct fixture *fixture, struct record_pin *pin)
{
    struct record_pin more;

    assert_true(watch_take(fixture->watch, pin));
    assert_false(watch_take(fixture->watch, &more));
    assert_int_equal(pin->header.source, 1);
}

/*
 * Silent for 40 ms after a message, where 5 ms had been the longest, while another flow goes on. Found after four
 * times the longest pause; and whole when the flow has gone on. Each window of both flows outlives the ring.
 */
static void test_a_stall_between_messages_is_pinned(void **state)
{
    struct fixture *fixture = *state;
    struct record_pin pin;

    pass_pattern(fixture, 11000 * (uint64_t)MS);
    fixture->now_ns -= 5 * MS;
    uint64_t stalled_ns = fixture->now_ns - FRAME_NS;
    pass_many(fixture, 2, 4000);
    assert_int_equal(fixture->tallies.values[TALLY_STALLS], 0);
    assert_int_equal(fixture->tallies.values[TALLY_STALLS_BETWEEN], 1);
    take_only(fixture, &pin);
    assert_int_equal(pin.cause, PIN_STALLED_BETWEEN);
    assert_true(pin.from_ns == stalled_ns - MS);
    assert_int_equal(pin.usual_ns, 5 * MS + FRAME_NS);
    assert_in_range(pin.found_ns, 20 * MS, 32 * MS);
    assert_true(pin.to_ns == stalled_ns + pin.found_ns);
    uint64_t resumed_ns = fixture->now_ns;
    pass_many(fixture, 1, MESSAGE);
    pass_many(fixture, 2, 6 * MESSAGE);
    take_only(fixture, &pin);
    assert_int_equal(pin.cause, PIN_STALLED_BETWEEN);
    assert_true(pin.from_ns == stalled_ns - MS && pin.to_ns == resumed_ns + 15 * FRAME_NS);
    assert_int_equal(pin.found_ns, resumed_ns - stalled_ns);
    size_t before = windows_between(fixture, pin.from_ns, pin.to_ns, 0);
    assert_in_range(before, 5 * MESSAGE + 4000 + MESSAGE - 1, 5 * MESSAGE + 4000 + MESSAGE); /* a frame a window */
    for (unsigned i = 0; i < 700; i++) { /* as it did before, but without a moment in which nobody sends */
        pass_many(fixture, 2, 32 * MESSAGE);
        pass_many(fixture, 1, 5 * MESSAGE);
    }
    assert_int_equal(fixture->tallies.values[TALLY_PINS], 2);
    assert_true(window_ring_held_from(fixture->meter.windows) * WINDOW > pin.to_ns);
    assert_int_equal(windows_between(fixture, pin.from_ns, pin.to_ns, 0), before);
    uint64_t from_ns = pin.from_ns, to_ns = pin.to_ns;
    assert_true(window_ring_holds(fixture->meter.windows, &from_ns, &to_ns));
    assert_true(from_ns == pin.from_ns && to_ns == pin.to_ns);
}

/* Silent in the middle of a message while another flow goes on: found within 20 ms, and kept when the ring has gone
 * round. */
static void test_a_stall_is_pinned(void **state)
{
    struct fixture *fixture = *state;
    struct record_pin pin;

    pass_many(fixture, 1, 20 * MESSAGE + 5);
    uint64_t stalled_ns = fixture->now_ns;
    pass_many(fixture, 2, 2000);
    assert_int_equal(fixture->tallies.values[TALLY_STALLS], 1);
    assert_int_equal(fixture->tallies.values[TALLY_PINS], 1);
    take_only(fixture, &pin);
    assert_int_equal(pin.cause, PIN_STALLED_WITHIN);
    assert_true(pin.from_ns == stalled_ns - FRAME_NS - MS && pin.usual_ns == FRAME_NS);
    assert_in_range(pin.found_ns, 2 * MS, 13 * MS);
    size_t before = windows_between(fixture, stalled_ns - MS / 2, stalled_ns, 1);
    assert_true(before >= 49);
    pass_many(fixture, 2, 400000);
    assert_true(window_ring_held_from(fixture->meter.windows) * WINDOW > stalled_ns);
    assert_int_equal(windows_between(fixture, stalled_ns - MS / 2, stalled_ns, 1), before);
    assert_int_equal(fixture->tallies.values[TALLY_STALLS], 1);
}

/* A message that takes eight times as long as the flow's messages do. */
static void test_a_slow_message_is_pinned(void **state)
{
    struct fixture *fixture = *state;
    struct record_pin pin;

    pass_many(fixture, 1, 20 * MESSAGE);
    uint64_t slow_ns = fixture->now_ns;
    for (uint32_t i = 0; i < MESSAGE; i++, fixture->now_ns += 8 * FRAME_NS)
        pass(fixture, 1);
    pass_many(fixture, 1, MESSAGE);
    assert_int_equal(fixture->tallies.values[TALLY_PINS], 1);
    take_only(fixture, &pin);
    assert_int_equal(pin.cause, PIN_SLOWED);
    assert_int_equal(pin.usual_ns, 15 * FRAME_NS);
    assert_int_equal(pin.found_ns, 15 * 8 * FRAME_NS);
    pass_many(fixture, 2, 400000);
    assert_true(window_ring_held_from(fixture->meter.windows) * WINDOW > slow_ns + MS);
    assert_int_equal(windows_between(fixture, slow_ns, slow_ns + 15 * 8 * FRAME_NS + 1, 1), MESSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_even_traffic_is_not_pinned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pause_that_comes_once_a_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stall_between_messages_is_pinned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stall_is_pinned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_message_is_pinned, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_watch", tests, NULL, NULL);
}
