/* SPDX-License-Identifier: BSD-2-Clause */
/* Patterns of made-up sequences: a letter is an operation, '|' a wait of the host for its GPU before it. */
#include "correlator/job/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BEATS_MAX 512
#define MS        1000000ULL

struct made {
    struct beat beats[BEATS_MAX];
    size_t count;
    uint64_t now_ns;
};

/* Bytes of an operation: 'A' 1 MiB, 'B' 2 MiB ..., lower case 64 KiB; of '1' to '9' the same call with other sizes. */
static struct beat beat_of(char letter)
{
    bool varies = letter >= '1' && letter <= '9';
    uint64_t bytes = varies          ? (uint64_t)(letter - '0') << 18
                     : letter >= 'a' ? 65536
                                     : (uint64_t)(letter - 'A' + 1) << 20;

    return (struct beat){.exact = (uint64_t)letter, .loose = varies ? 1 : (uint64_t)letter, .bytes = bytes};
}

/* Operations take 1 ms on the GPU; it computes for `rest_ms` before each. The host enqueues 10 us apart. */
static void add(struct made *made, const char *text, uint64_t rest_ms)
{
    static const uint64_t BETWEEN_NS = 100000;

    for (; *text != '\0'; text++) {
        bool waited = *text == '|';
        struct beat *last = made->count == 0 ? NULL : &made->beats[made->count - 1];
        text += waited;
        assert_true(made->count < BEATS_MAX);
        struct beat *beat = &made->beats[made->count++];
        *beat = beat_of(*text);
        uint64_t free_ns = last == NULL ? MS : last->end_ns;
        beat->waited = waited && last != NULL;
        made->now_ns = waited ? free_ns + BETWEEN_NS : made->now_ns + 10000;
        beat->enqueued_ns = made->now_ns;
        beat->first_ns = (free_ns > made->now_ns ? free_ns : made->now_ns) + rest_ms * MS;
        beat->end_ns = beat->first_ns + MS;
    }
}

/* The bars as text: sizes, with e behind an evaluation's and o behind another's; `expected` comes again and again. */
static void expect(const struct made *made, const char *const expected[], size_t length, size_t count)
{
    struct pattern pattern;
    bar_list bars = {0};
    char text[16];

    pattern_init(&pattern, made->beats, made->count);
    if (pattern.period != 0)
        pattern_bars(&pattern, 0, &bars);
    assert_int_equal(bars.count, count);
    for (size_t i = 0; i < count; i++) {
        size_t beats = bars.items[i].to - bars.items[i].from;
        snprintf(text, sizeof text, "%zu%s", beats,
                 bars.items[i].kind == STEP_TRAINING     ? ""
                 : bars.items[i].kind == STEP_EVALUATION ? "e"
                                                         : "o");
        assert_string_equal(text, expected[i % length]);
    }
    array_fini(&bars);
    pattern_fini(&pattern);
}

#define ALL(size) ((const char *const[]){size}), 1

/* Four equal buckets, the GPU computes longer before the first: steps of four. */
static void test_equal_buckets(void **state)
{
    struct made made = {0};

    (void)state;
    for (int i = 0; i < 10; i++) {
        add(&made, "|A", 12);
        add(&made, "AAA", 3);
    }
    expect(&made, ALL("4"), 10);
}

/* A host that waits every fifth step only: before each operation the GPU computes as long. */
static void test_host_that_waits_every_fifth_step(void **state)
{
    struct made made = {0};

    (void)state;
    for (int i = 0; i < 6; i++)
        add(&made, "|AAAAA", 20);
    expect(&made, ALL("1"), 30);
    memset(&made, 0, sizeof made);
    for (int i = 0; i < 6; i++)
        add(&made, "|ABABABABAB", 20);
    expect(&made, ALL("2"), 30);
}

static void test_evaluation_every_tenth_step(void **state)
{
    struct made made = {0};

    (void)state;
    for (int i = 0; i < 4; i++) {
        for (int step = 0; step < 9; step++)
            add(&made, "|ABC", 5);
        add(&made, "|Aa", 5);
    }
    expect(&made, (const char *const[]){"3", "3", "3", "3", "3", "3", "3", "3", "3", "2e"}, 10, 40);
}

/* What follows twenty equal parts is more than one of them: all of it is one step. */
static void test_layers_that_are_waited_for(void **state)
{
    struct made made = {0};

    (void)state;
    for (int i = 0; i < 5; i++) {
        for (int layer = 0; layer < 20; layer++)
            add(&made, "|A", 1);
        add(&made, "|D", 1);
    }
    expect(&made, ALL("21"), 5);
}

/* Something tiny now and then with a wait of its own belongs to the step before; more in a step leaves it one. */
static void test_tiny_extras(void **state)
{
    struct made made = {0};

    (void)state;
    for (int i = 0; i < 4; i++) {
        for (int step = 0; step < 4; step++)
            add(&made, "|ABC", 5);
        add(&made, "|a", 0);
    }
    expect(&made, (const char *const[]){"3", "3", "3", "4"}, 4, 16);
}

/* Lengths of sequences vary, so no two steps are alike but in their calls. */
static void test_sizes_that_vary(void **state)
{
    static const char *const steps[] = {"|1111A", "|5555A", "|2222A", "|9999A", "|4444A", "|7777A", "|3333A", "|8888A"};
    struct made made = {0};

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        add(&made, steps[i], 2);
    expect(&made, ALL("5"), 8);
}

/* Without a wait the order of the calls must do, and what comes first belongs to no step. */
static void test_no_waits(void **state)
{
    struct made made = {0};

    (void)state;
    add(&made, "XYZ", 1);
    for (int i = 0; i < 10; i++)
        add(&made, "AABC", 2);
    expect(&made, ALL("4"), 10);
}

/* A person says that a step ends with D. */
static void test_said_by_a_person(void **state)
{
    struct made made = {0};

    (void)state;
    for (int i = 0; i < 6; i++)
        add(&made, i % 2 == 0 ? "|ABCD" : "|A|CBD", 2);
    for (size_t i = 0; i < made.count; i++)
        made.beats[i].ends = made.beats[i].exact == 'D';
    expect(&made, ALL("4"), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_buckets),
        cmocka_unit_test(test_host_that_waits_every_fifth_step),
        cmocka_unit_test(test_evaluation_every_tenth_step),
        cmocka_unit_test(test_layers_that_are_waited_for),
        cmocka_unit_test(test_tiny_extras),
        cmocka_unit_test(test_sizes_that_vary),
        cmocka_unit_test(test_no_waits),
        cmocka_unit_test(test_said_by_a_person),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
