/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/window/window.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WINDOW_NS 8000
#define MEMORY    (400u * 1024u) /* six blocks */

struct fixture {
    struct tallies tallies;
    struct window_ring *ring;
};

static const struct window_tallies *tallies_of(struct fixture *fixture)
{
    static struct window_tallies tallies;

    tallies = (struct window_tallies){&fixture->tallies, TALLY_WINDOWS, TALLY_WINDOWS_OVERWRITTEN};
    return &tallies;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    *state = fixture;
    return fixture == NULL ? -1 : window_ring_create(&fixture->ring, WINDOW_NS, MEMORY, 0, tallies_of(fixture));
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    window_ring_destroy(&fixture->ring);
    free(fixture);
    return 0;
}

static void note(struct fixture *fixture, struct window_track *window, uint32_t flow, uint64_t at_ns,
                 uint32_t payload_bytes)
{
    const struct window_frame frame = {
        .at_ns = at_ns, .wire_bytes = payload_bytes + 58, .payload_bytes = payload_bytes};

    window_note(fixture->ring, window, flow, &frame);
}

/* All records of an interval, at most `capacity`. */
static size_t read_back(struct fixture *fixture, uint64_t from_ns, uint64_t to_ns, uint32_t flow,
                        struct record_window *records, size_t capacity)
{
    struct window_walk walk;
    size_t count = 0;
    bool done = false;

    window_walk_begin(fixture->ring, &walk, from_ns, to_ns, flow);
    while (!done && count < capacity)
        count += window_walk_next(fixture->ring, &walk, records + count, capacity - count, 100, &done);
    assert_true(done);
    return count;
}

static void test_counts_of_a_window(void **state)
{
    struct fixture *fixture = *state;
    struct window_track window = {0};
    struct record_window records[8];

    note(fixture, &window, 7, 80000, 4096);
    note(fixture, &window, 7, 83000, 4096);
    note(fixture, &window, 7, 87999, 100);
    note(fixture, &window, 7, 88000, 1);
    window_close(fixture->ring, &window, 7);
    assert_int_equal(read_back(fixture, 0, UINT64_MAX, 0, records, 8), 2);
    assert_int_equal(records[0].header.source, 7);
    assert_int_equal(records[0].index, 10);
    assert_int_equal(records[0].frames, 3);
    assert_int_equal(records[0].payload_bytes, 8292);
    assert_int_equal(records[0].wire_bytes, 8292 + 3 * 58);
    assert_int_equal(records[0].first_offset_ns, 0);
    assert_int_equal(records[0].last_offset_ns, 7999);
    assert_int_equal(records[1].index, 11);
    assert_int_equal(records[1].frames, 1);
    assert_int_equal(fixture->tallies.values[TALLY_WINDOWS], 2);
}

static void test_an_interval_and_a_flow(void **state)
{
    struct fixture *fixture = *state;
    struct window_track windows[3] = {0};
    struct record_window records[64];

    for (uint64_t index = 0; index < 20; index++) {
        for (uint32_t flow = 1; flow <= 3; flow++)
            note(fixture, &windows[flow - 1], flow, index * WINDOW_NS + flow, 64);
    }
    for (uint32_t flow = 1; flow <= 3; flow++)
        window_close(fixture->ring, &windows[flow - 1], flow);
    assert_int_equal(read_back(fixture, 0, UINT64_MAX, 0, records, 64), 60);
    assert_int_equal(read_back(fixture, 5 * WINDOW_NS, 9 * WINDOW_NS, 2, records, 64), 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(records[i].index, 5 + i);
        assert_int_equal(records[i].header.source, 2);
    }
    /* Half-open: a window that the interval only touches at its end is not in it, one that it cuts is. */
    assert_int_equal(read_back(fixture, 5 * WINDOW_NS + 1, 6 * WINDOW_NS + 1, 2, records, 64), 2);
}

/* Values too large for the short form come back whole; so does a window that is much older than its neighbours. */
static void test_large_values(void **state)
{
    struct fixture *fixture = *state;
    const struct window large = {.index = 3000000000000u,
                                 .first_offset_ns = 999998,
                                 .last_offset_ns = 999999,
                                 .frames = 4000000000u,
                                 .wire_bytes = 4100000000u,
                                 .payload_bytes = 4050000000u,
                                 .retransmitted_frames = 65535,
                                 .marked_frames = 65534,
                                 .open = true};
    const struct window old = {.index = 2, .frames = 1, .wire_bytes = 58, .open = true};
    struct window_track first = {.present = large}, second = {.present = old};
    struct record_window records[4];

    window_close(fixture->ring, &first, WINDOW_FLOW_MAX);
    window_close(fixture->ring, &second, 1);
    assert_int_equal(read_back(fixture, 0, UINT64_MAX, 0, records, 4), 2);
    assert_int_equal(records[0].header.source, WINDOW_FLOW_MAX);
    assert_true(records[0].index == large.index);
    assert_int_equal(records[0].first_offset_ns, large.first_offset_ns);
    assert_int_equal(records[0].last_offset_ns, large.last_offset_ns);
    assert_true(records[0].frames == large.frames && records[0].wire_bytes == large.wire_bytes);
    assert_true(records[0].payload_bytes == large.payload_bytes);
    assert_int_equal(records[0].retransmitted_frames, large.retransmitted_frames);
    assert_int_equal(records[0].marked_frames, large.marked_frames);
    assert_int_equal(records[1].index, 2);
    assert_int_equal(records[1].frames, 1);
}

static void test_the_oldest_is_given_up(void **state)
{
    struct fixture *fixture = *state;
    static struct record_window records[200000];
    const uint64_t stored = 300000, first = 1000;
    struct window_track window = {0};

    for (uint64_t i = 0; i < stored; i++)
        note(fixture, &window, 1, (first + i) * WINDOW_NS, 4096);
    window_close(fixture->ring, &window, 1);
    uint64_t overwritten = fixture->tallies.values[TALLY_WINDOWS_OVERWRITTEN];
    size_t count = read_back(fixture, 0, UINT64_MAX, 0, records, 200000);
    assert_true(overwritten > 0);
    assert_int_equal(fixture->tallies.values[TALLY_WINDOWS], stored);
    assert_int_equal(count + overwritten, stored);
    assert_true(window_ring_held_from(fixture->ring) == first + overwritten);
    for (size_t i = 0; i < count; i++)
        assert_true(records[i].index == first + overwritten + i);
    assert_true(count * 8 > MEMORY); /* the aim: below 8 bytes a window */
}

/* A walk that is overtaken by the writer goes on with what is still there. */
static void test_a_walk_is_overtaken(void **state)
{
    struct fixture *fixture = *state;
    struct record_window records[16];
    struct window_track window = {0};
    struct window_walk walk;
    uint64_t index = 0, last = 0;
    bool done = false;

    for (; index < 60000; index++)
        note(fixture, &window, 1, index * WINDOW_NS, 1);
    window_walk_begin(fixture->ring, &walk, 0, UINT64_MAX, 0);
    assert_int_equal(window_walk_next(fixture->ring, &walk, records, 16, 16, &done), 16);
    for (; index < 120000; index++)
        note(fixture, &window, 1, index * WINDOW_NS, 1);
    while (!done) {
        size_t count = window_walk_next(fixture->ring, &walk, records, 16, 16, &done);
        for (size_t i = 0; i < count; i++) {
            assert_true(records[i].index > last);
            assert_true(records[i].index < 60000);
            assert_true(records[i].index >= window_ring_held_from(fixture->ring));
            last = records[i].index;
        }
    }
    assert_int_equal(last, 59998);
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* One of the shapes that traffic has, and some that it has not. */
static struct window draw_window(uint64_t *random, uint64_t index)
{
    static const uint32_t sizes[] = {4096, 4096, 4096, 1024, 64, 0, 7, 9000};
    struct window window = {.index = index, .frames = 1, .open = true};
    uint64_t what = draw(random) % 16;

    if (what < 6)
        window.frames = 1 + (uint32_t)(draw(random) % (what < 4 ? 4 : 3000));
    window.payload_bytes = window.frames * sizes[draw(random) % 8];
    window.wire_bytes = window.payload_bytes + window.frames * 58;
    window.first_offset_ns = (uint32_t)(draw(random) % WINDOW_NS);
    window.last_offset_ns = window.first_offset_ns;
    if (window.frames > 1)
        window.last_offset_ns += (uint32_t)(draw(random) % (WINDOW_NS - window.first_offset_ns));
    if (what == 7)
        window.wire_bytes += 16;
    if (what == 8)
        window.index -= draw(random) % 2000;
    if (what == 9)
        window.retransmitted_frames = (uint16_t)draw(random);
    if (what == 10)
        window.marked_frames = 1;
    if (what == 11)
        window.frames = window.payload_bytes = window.wire_bytes = 0;
    return window;
}

/* What is stored is what is read, whatever the mixture: over many blocks, which adapt to what they hold. */
static void test_every_window_comes_back_whole(void **state)
{
    enum { STORED = 60000 };
    struct fixture *fixture = *state;
    struct record_window *records = calloc(STORED, sizeof *records);
    struct window *stored = calloc(STORED, sizeof *stored);
    uint32_t *flows = calloc(STORED, sizeof *flows);
    uint64_t random = 7, index = 5000;
    size_t at = 0;

    for (size_t i = 0; i < STORED; i++) {
        index += draw(&random) % 64 == 0 ? draw(&random) % 1000 : draw(&random) % 40 == 0;
        stored[i] = draw_window(&random, index);
        flows[i] = 1 + (uint32_t)(draw(&random) % (i % 3 == 0 ? 3000 : 100));
        struct window_track closed = {.present = stored[i]};
        window_close(fixture->ring, &closed, flows[i]);
    }
    size_t count = read_back(fixture, 0, UINT64_MAX, 0, records, STORED);
    at = STORED - count;
    assert_int_equal(fixture->tallies.values[TALLY_WINDOWS_OVERWRITTEN], at);
    assert_true(count > 3 * STORED / 10);
    for (size_t i = 0; i < count; i++, at++) {
        struct record_window wanted;
        window_record(&stored[at], flows[at], &wanted);
        assert_memory_equal(&records[i], &wanted, sizeof wanted);
    }
    free(records);
    free(stored);
    free(flows);
}

#define PIN_MEMORY (20u * 66u * 1024u)

struct pinned {
    struct window_ring *ring;
    struct window_track window;
    uint64_t index;
};

static void fill(struct fixture *fixture, struct pinned *pinned, uint64_t windows)
{
    (void)fixture;
    for (uint64_t end = pinned->index + windows; pinned->index < end; pinned->index++) {
        const struct window_frame frame = {
            .at_ns = pinned->index * WINDOW_NS, .wire_bytes = 4154, .payload_bytes = 4096};
        window_note(pinned->ring, &pinned->window, 1, &frame);
    }
    window_close(pinned->ring, &pinned->window, 1);
}

static size_t count_between(const struct window_ring *ring, uint64_t from, uint64_t to, bool *has_pinned)
{
    struct record_window records[64];
    struct window_walk walk;
    size_t count = 0;
    bool done = false;

    window_walk_begin(ring, &walk, from * WINDOW_NS, to * WINDOW_NS, 0);
    while (!done)
        count += window_walk_next(ring, &walk, records, 64, 1000, &done);
    *has_pinned = walk.has_pinned;
    return count;
}

/* A pinned interval outlives the ring; the oldest pin makes room for the third one. */
static void test_pins(void **state)
{
    struct fixture *fixture = *state;
    struct pinned pinned = {.index = 1000};
    uint64_t from_ns = 0, to_ns = 0;
    bool has_pinned;

    assert_int_equal(window_ring_create(&pinned.ring, WINDOW_NS, PIN_MEMORY, PIN_MEMORY / 4, tallies_of(fixture)), 0);
    fill(fixture, &pinned, 50000);
    assert_true(window_pin(pinned.ring, 20000 * WINDOW_NS, 21000 * WINDOW_NS));
    fill(fixture, &pinned, 1000000);
    assert_true(window_ring_held_from(pinned.ring) > 21000);
    assert_int_equal(count_between(pinned.ring, 20000, 21001, &has_pinned), 1001);
    assert_true(has_pinned);
    from_ns = 20100 * WINDOW_NS;
    to_ns = 20200 * WINDOW_NS;
    assert_true(window_ring_holds(pinned.ring, &from_ns, &to_ns));
    assert_true(from_ns == 20100 * WINDOW_NS && to_ns == 20200 * WINDOW_NS);
    from_ns = 20900 * WINDOW_NS;
    to_ns = 30000 * WINDOW_NS;
    assert_true(window_ring_holds(pinned.ring, &from_ns, &to_ns));
    assert_true(from_ns == 20900 * WINDOW_NS && to_ns == 21001 * WINDOW_NS);
    from_ns = 1000 * WINDOW_NS;
    to_ns = 2000 * WINDOW_NS;
    assert_false(window_ring_holds(pinned.ring, &from_ns, &to_ns));
    assert_int_equal(count_between(pinned.ring, pinned.index - 100, pinned.index, &has_pinned), 100);
    assert_false(has_pinned);
    assert_int_equal(fixture->tallies.values[TALLY_PINS_GIVEN_UP], 0);
    for (unsigned i = 0; i < 8; i++) { /* each needs a block or two of the four or five that there are */
        uint64_t at = pinned.index - 20000;
        assert_true(window_pin(pinned.ring, at * WINDOW_NS, (at + 10) * WINDOW_NS));
        fill(fixture, &pinned, 1000000);
        assert_int_equal(count_between(pinned.ring, at, at + 11, &has_pinned), 11);
    }
    assert_true(fixture->tallies.values[TALLY_PINS_GIVEN_UP] > 0);
    assert_int_equal(count_between(pinned.ring, 20000, 21001, &has_pinned), 0);
    window_ring_destroy(&pinned.ring);
}

#define COARSE_MEMORY (1024u * 1024u)

struct sums {
    uint64_t windows;
    uint64_t frames;
    uint64_t bytes;
};

static struct sums sum_of(const struct window_ring *ring)
{
    struct record_window records[64];
    struct sums sums = {0};
    struct window_walk walk;
    bool done = false;

    window_walk_begin(ring, &walk, 0, UINT64_MAX, 0);
    while (!done) {
        size_t count = window_walk_next(ring, &walk, records, 64, 1000, &done);
        for (size_t i = 0; i < count; i++) {
            assert_true(records[i].last_offset_ns < window_ring_window_ns(ring));
            assert_true(records[i].first_offset_ns <= records[i].last_offset_ns);
            sums.windows++;
            sums.frames += records[i].frames;
            sums.bytes += records[i].payload_bytes;
        }
    }
    return sums;
}

/*
 * A frame each 3 us for 30 ms, the ring of the middle length passed over from 10 to 20 ms: the windows and the longest
 * ones hold everything, the middle ones what came outside of that time.
 */
static void test_coarser_rings(void **state)
{
    struct fixture *fixture = *state;
    struct window_ring *rings[3];
    struct window_track window = {0};
    uint64_t from_ns = 11000000, to_ns = 12000000;

    for (unsigned i = 0; i < 3; i++) {
        uint32_t window_ns = i == 0 ? WINDOW_NS : i == 1 ? 16 * WINDOW_NS : 256 * WINDOW_NS;
        assert_int_equal(window_ring_create(&rings[i], window_ns, COARSE_MEMORY, 0, tallies_of(fixture)), 0);
        if (i > 0)
            window_ring_add_coarser(rings[0], rings[i]);
    }
    for (uint64_t at_ns = 0; at_ns < 30000000; at_ns += 3000) {
        const struct window_frame frame = {.at_ns = at_ns, .wire_bytes = 1082, .payload_bytes = 1024};
        if (at_ns == 10002000 || at_ns == 20001000)
            window_ring_pass_over(rings[0], at_ns == 10002000, at_ns);
        window_note(rings[0], &window, 1, &frame);
        if (at_ns == 15000000)
            assert_false(window_ring_holds(rings[1], &from_ns, &to_ns));
    }
    window_close(rings[0], &window, 1);
    window_close_coarse(rings[0], &window, 1, UINT64_MAX);
    struct sums shortest = sum_of(rings[0]), middle = sum_of(rings[1]), longest = sum_of(rings[2]);
    assert_int_equal(shortest.windows, 3750); /* 30 ms in 8 us */
    assert_int_equal(shortest.frames, 10000);
    assert_int_equal(longest.windows, 15); /* in 2.048 ms */
    assert_int_equal(longest.frames, 10000);
    assert_int_equal(longest.bytes, 10000 * 1024);
    assert_true(middle.frames > 6600 && middle.frames < 6720);
    assert_true(middle.windows >= 156 && middle.windows <= 159);
    assert_false(window_ring_holds(rings[1], &from_ns, &to_ns));
    assert_true(window_ring_holds(rings[2], &from_ns, &to_ns));
    for (unsigned i = 0; i < 3; i++)
        window_ring_destroy(&rings[i]);
}

/* What was not stored cannot be pinned, and without room nothing can. */
static void test_what_cannot_be_pinned(void **state)
{
    struct fixture *fixture = *state;
    struct window_track window = {0};

    note(fixture, &window, 1, 100 * WINDOW_NS, 1);
    window_close(fixture->ring, &window, 1);
    assert_false(window_pin(fixture->ring, 0, UINT64_MAX));
    assert_int_equal(fixture->tallies.values[TALLY_PINS], 0);
}

static void test_refuses_what_makes_no_sense(void **state)
{
    struct fixture *fixture = *state;
    struct window_ring *ring = NULL;

    assert_int_equal(window_ring_create(&ring, 999, MEMORY, 0, tallies_of(fixture)), -EINVAL);
    assert_int_equal(window_ring_create(&ring, 1000000001, MEMORY, 0, tallies_of(fixture)), -EINVAL);
    assert_int_equal(window_ring_create(&ring, 8000, 1000, 0, tallies_of(fixture)), -EINVAL);
    assert_null(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counts_of_a_window, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_interval_and_a_flow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_oldest_is_given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_walk_is_overtaken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_window_comes_back_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_coarser_rings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_pinned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_what_makes_no_sense, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_window", tests, NULL, NULL);
}
