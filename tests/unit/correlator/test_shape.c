/* SPDX-License-Identifier: BSD-2-Clause */
#include "correlator/node/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "correlator/job/period.h"
#include "correlator/job/streak.h"
#include "wire/record.h"

#define FLOAT32 7
#define INT8    0

struct slots {
    uint64_t bytes[256];
    size_t count;
    uint64_t sum;
};

static bool keep(void *context, uint64_t slot_bytes)
{
    struct slots *slots = context;

    if (slots->count < 256)
        slots->bytes[slots->count] = slot_bytes;
    slots->count++;
    slots->sum += slot_bytes;
    return true;
}

static struct slots slots_of(uint8_t kind, uint64_t count, uint8_t datatype, int32_t ranks, struct shape shape,
                             int32_t index, unsigned block)
{
    struct collective collective;
    struct slots slots = {0};

    assert_true(shape_collective(&collective, kind, count, datatype, ranks));
    assert_true(shape_walk(&shape, &collective, index, block, keep, &slots));
    return slots;
}

static const struct shape simple = {.protocol = SHAPE_SIMPLE, .threads = 256, .buffer_bytes = 4u << 20};

static void check_slots(const struct slots *slots, const uint64_t *wanted, size_t count)
{
    assert_int_equal(slots->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(slots->bytes[i], wanted[i]);
}

/* What RCCL 5.4.3 was seen to send over soft-RoCE (its proxies' sizes, noted by the lab's runtime and by tcpdump). */
static void test_slots_as_seen_of_rccl(void **state)
{
    static const uint64_t two_ranks[] = {65536, 65536, 65536, 65536};
    static const uint64_t gather[] = {32768, 0, 32768, 0, 32768, 0};
    static const uint64_t pair[] = {16384, 0, 16384, 0};
    static const uint64_t broadcast[] = {32768};
    struct shape shape = simple;
    (void)state;
    shape.channels = 1;
    struct slots slots = slots_of(OPERATION_ALL_REDUCE, 65536, FLOAT32, 2, shape, 0, 0);
    check_slots(&slots, two_ranks, 4);
    shape.channels = 2;
    slots = slots_of(OPERATION_ALL_GATHER, 65536, INT8, 4, shape, 1, 1);
    check_slots(&slots, gather, 6);
    slots = slots_of(OPERATION_ALL_REDUCE, 16384, FLOAT32, 2, shape, 1, 0);
    check_slots(&slots, pair, 4);
    slots = slots_of(OPERATION_BROADCAST, 65536, INT8, 4, shape, 0, 0);
    check_slots(&slots, broadcast, 1);
}

/* A ring passes every byte on n - 1 times (all-reduce: twice), however it is cut: summed over ranks and channels. */
static void test_ring_conserves_bytes(void **state)
{
    static const uint64_t counts[] = {1, 7, 1000, 4099, 65536, 1000003};
    (void)state;
    for (int32_t ranks = 2; ranks <= 5; ranks++)
        for (unsigned channels = 1; channels <= 3; channels++)
            for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
                struct shape shape = simple;
                uint64_t reduce = 0;
                uint64_t gather = 0;
                shape.channels = channels;
                for (int32_t index = 0; index < ranks; index++)
                    for (unsigned block = 0; block < channels; block++) {
                        reduce += slots_of(OPERATION_ALL_REDUCE, counts[i], FLOAT32, ranks, shape, index, block).sum;
                        gather += slots_of(OPERATION_ALL_GATHER, counts[i], FLOAT32, ranks, shape, index, block).sum;
                    }
                assert_int_equal(reduce, 2 * (uint64_t)(ranks - 1) * counts[i] * 4);
                assert_int_equal(gather, (uint64_t)ranks * (uint64_t)(ranks - 1) * counts[i] * 4);
            }
}

/*
 * LL sends 16 bytes for 8, LL128 2048 for 1920, the lines of a warp, also where less is there (prims_ll128.h of NCCL
 * 2.13 rounds up so): 2 ranks, one chunk each way. A chunk of LL128 is a multiple of 30 bytes a thread, so that 1 KiB
 * lies in the first one and the other is empty.
 */
static void test_flags_cost_their_share(void **state)
{
    static const uint64_t little[] = {0, 2048}, uneven[] = {15 * 2048, 30 * 2048};
    struct shape shape = {.protocol = SHAPE_LL, .channels = 1, .threads = 256, .buffer_bytes = 256u << 10};
    (void)state;
    assert_int_equal(slots_of(OPERATION_ALL_REDUCE, 4096, FLOAT32, 2, shape, 0, 0).sum, 2 * 4096 * 4);
    shape = (struct shape){.protocol = SHAPE_LL128, .channels = 1, .threads = 640, .buffer_bytes = 4915200};
    uint64_t sum = slots_of(OPERATION_REDUCE_SCATTER, 15360, FLOAT32, 2, shape, 0, 0).sum;
    assert_int_equal(sum, 15360 * 4 / 120 * 128);
    struct slots slots = slots_of(OPERATION_ALL_REDUCE, 256, FLOAT32, 2, shape, 0, 0);
    check_slots(&slots, little, 2);
    slots = slots_of(OPERATION_ALL_REDUCE, 2 * 9600 + 4 * 481, FLOAT32, 2, shape, 0, 0);
    check_slots(&slots, uneven, 2);
}

static void test_nonsense_is_no_collective(void **state)
{
    struct collective collective;
    (void)state;
    assert_false(shape_collective(&collective, OPERATION_SEND, 5, FLOAT32, 4));
    assert_false(shape_collective(&collective, OPERATION_ALL_REDUCE, 5, 200, 4));
    assert_false(shape_collective(&collective, OPERATION_ALL_REDUCE, 5, FLOAT32, 1));
    assert_false(shape_collective(&collective, OPERATION_ALL_REDUCE, UINT64_MAX, FLOAT32, 4));
    assert_false(shape_collective(&collective, OPERATION_ALL_REDUCE, 5, FLOAT32, INT32_MAX));
}

/* Text as signatures: the period of a word repeated. */
static size_t period_of(const char *text, size_t *from, size_t *to)
{
    uint64_t signatures[512];
    size_t count = 0;

    while (text[count] != '\0') {
        signatures[count] = (uint64_t)text[count];
        count++;
    }
    return period_find(signatures, count, from, to);
}

static void test_period(void **state)
{
    size_t from = 99, to = 99;
    (void)state;
    assert_int_equal(period_of("abcabcabc", &from, &to), 3);
    assert_int_equal(from, 0);
    assert_int_equal(to, 9);
    assert_int_equal(period_of("xyzabababab", &from, &to), 2); /* warm-up */
    assert_int_equal(from, 3);
    assert_int_equal(period_of("aaabaaabaaabaaab", &from, &to), 4); /* equal buckets */
    assert_int_equal(period_of("aaaaaaaaabaaaaaaaaabaaaaaaaaabaaa", &from, &to), 10);
    assert_int_equal(period_of("aaaaaa", &from, &to), 1);
    assert_int_equal(period_of("abcdefg", &from, &to), 0);
    assert_int_equal(period_of("", &from, &to), 0);
}

/* Trees, by the library's arithmetic: chunks of 512 KiB in turn to each channel, and little calls in units of 12 KiB.
 */
static void test_trees(void **state)
{
    static const uint64_t first[] = {524288, 524288, 524288}, second[] = {524288, 524288, 0};
    static const uint64_t little[] = {4000}, nothing[] = {0}, unit[] = {12288}, rest[] = {12012};
    struct shape tree = {.channels = 2, .threads = 192, .buffer_bytes = 4u << 20, .tree = true};
    (void)state;
    for (unsigned block = 0; block < 2; block++) {
        struct slots slots = slots_of(OPERATION_ALL_REDUCE, 5 * 131072, FLOAT32, 8, tree, 0, block);
        check_slots(&slots, block == 0 ? first : second, 3);
        slots = slots_of(OPERATION_ALL_REDUCE, 1000, FLOAT32, 8, tree, 0, block);
        check_slots(&slots, block == 0 ? little : nothing, 1);
        slots = slots_of(OPERATION_ALL_REDUCE, 3072 + 3003, FLOAT32, 8, tree, 0, block);
        check_slots(&slots, block == 0 ? unit : rest, 1);
    }
}

static void test_streak(void **state)
{
    static const struct streak_limits limits = {.above = 45, .sure = 200};
    static const int64_t chance[] = {0, 50, 1, 0, 2, 60, 0, 1, 55, 3};
    static const int64_t uneven[] = {0, 46, 99, 50, 150, 70, 46, 120, 60, 0};
    static const int64_t large[] = {0, 610, 990, 600, 1500, 700, 650, 1200, 600, 0};
    static const int64_t lasting[] = {0, 1, 50, 0, 52, 46, 49, 51, 90, 48};
    int64_t common[10];
    (void)state;
    assert_int_equal(streak_find(chance, 10, limits, common), 0);
    assert_int_equal(streak_find(uneven, 10, limits, common), 0);
    assert_int_equal(streak_find(large, 10, limits, common), 8);
    assert_int_equal(streak_find(lasting, 10, limits, common), 6); /* not the one before the gap */
    assert_int_equal(common[2], 0);
    assert_int_equal(common[4], 48); /* the lower quartile of 46 48 49 51 52 90 */
    assert_int_equal(common[9], 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_as_seen_of_rccl),
        cmocka_unit_test(test_ring_conserves_bytes),
        cmocka_unit_test(test_flags_cost_their_share),
        cmocka_unit_test(test_nonsense_is_no_collective),
        cmocka_unit_test(test_period),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_streak),
    };
    return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
