/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How NCCL 2.20 to 2.30 divide collectives. All numbers were worked out with pencil and paper from the arithmetic that
 * division.c and shape.c state, with sizes that are no multiple of anything.
 */
#include "correlator/node/division.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/record.h"

#define INT8     0
#define FLOAT16  6
#define FLOAT32  7
#define FLOAT64  8
#define CHANNELS 8
#define SIMPLE   SHAPE_SIMPLE, 4u << 20
#define LL       SHAPE_LL, 512u << 10
#define LL128    SHAPE_LL128, 4915200

static struct collective collective_of(uint8_t kind, uint64_t count, uint8_t datatype, int32_t ranks)
{
    struct collective collective;

    assert_true(shape_collective(&collective, kind, count, datatype, ranks));
    return collective;
}

static struct shape shape_of(enum shape_division division, enum shape_protocol protocol, uint32_t buffer_bytes,
                             unsigned channels)
{
    return (struct shape){
        .protocol = protocol, .channels = channels, .threads = 256, .buffer_bytes = buffer_bytes, .division = division};
}

static void check_parts(const struct shape *shape, const struct collective *collective, const uint64_t *wanted,
                        unsigned count)
{
    for (unsigned channel = 0; channel < count; channel++) {
        assert_int_equal(division_part(shape, collective, channel), wanted[channel]);
        assert_int_equal(shape_takes(shape, collective, channel), wanted[channel] > 0);
    }
    assert_int_equal(division_part(shape, collective, count), 0);
}

static void test_versions(void **state)
{
    (void)state;
    assert_int_equal(division_of_version(0), SHAPE_LOOPS);
    assert_int_equal(division_of_version(2804), SHAPE_LOOPS);
    assert_int_equal(division_of_version(21304), SHAPE_LOOPS);
    assert_int_equal(division_of_version(21904), SHAPE_LOOPS);
    assert_int_equal(division_of_version(22003), SHAPE_RANGES);
    assert_int_equal(division_of_version(22105), SHAPE_RANGES);
    assert_int_equal(division_of_version(22203), SHAPE_CELLS_2_22);
    assert_int_equal(division_of_version(22304), SHAPE_CELLS_2_23);
    assert_int_equal(division_of_version(22501), SHAPE_CELLS_2_23);
    assert_int_equal(division_of_version(22602), SHAPE_CELLS_2_26);
    assert_int_equal(division_of_version(22809), SHAPE_CELLS_2_26);
    assert_int_equal(division_of_version(22902), SHAPE_CELLS_2_29);
    assert_int_equal(division_of_version(23007), SHAPE_CELLS_2_29);
}

/*
 * A gather of 40 000 bytes of each of 5 ranks on 3 channels: 66 666 bytes of traffic a channel.
 * 2.20: 13 334, rounded up to 4096, with LL to 256 x 8, with LL128 to 8 warps x 480.
 * 2.22: cells of 16 bytes are worth 80: 833.3 of 2500. 2.23: 16 KiB / 5, so 3280 bytes: 4.1 of 13 cells; with LL no
 * other before 2.26, then 16 KiB / 20, so 832 bytes of 16 640: 266 666 / 16 640 = 16.03 of 49. 2.29: 66 672; 6560
 * bytes of 32 800: 2.03 of 7; LL 32 KiB / 20, so 1648 of 32 960: 266 672 / 32 960 = 8.1 of 25.
 */
static void test_three_channels(void **state)
{
    static const uint64_t ranges[] = {16384, 16384, 7232}, ranges_ll[] = {14336, 14336, 11328};
    static const uint64_t ranges_ll128[] = {15360, 15360, 9280}, cells_22[] = {13328, 13344, 13328};
    static const uint64_t cells_23[] = {16400, 16400, 7200}, cells_26_ll[] = {14144, 14144, 11712};
    static const uint64_t cells_29[] = {19680, 19680, 640}, cells_29_ll[] = {14832, 14832, 10336};
    const struct collective gather = collective_of(OPERATION_ALL_GATHER, 10000, FLOAT32, 5);
    const struct {
        struct shape shape;
        const uint64_t *wanted;
    } cases[] = {
        {shape_of(SHAPE_RANGES, SIMPLE, 3), ranges},       {shape_of(SHAPE_RANGES, LL, 3), ranges_ll},
        {shape_of(SHAPE_RANGES, LL128, 3), ranges_ll128},  {shape_of(SHAPE_CELLS_2_22, SIMPLE, 3), cells_22},
        {shape_of(SHAPE_CELLS_2_23, SIMPLE, 3), cells_23}, {shape_of(SHAPE_CELLS_2_23, LL, 3), cells_23},
        {shape_of(SHAPE_CELLS_2_26, LL, 3), cells_26_ll},  {shape_of(SHAPE_CELLS_2_26, LL128, 3), cells_23},
        {shape_of(SHAPE_CELLS_2_29, LL128, 3), cells_29},  {shape_of(SHAPE_CELLS_2_29, LL, 3), cells_29_ll},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_parts(&cases[i].shape, &gather, cases[i].wanted, 3);
}

/* One element takes one channel, the first one; before, all channels sent, if nothing. */
static void test_one_element(void **state)
{
    static const uint64_t one[CHANNELS] = {1};
    const struct collective tiny = collective_of(OPERATION_ALL_REDUCE, 1, FLOAT32, 2);
    (void)state;
    for (enum shape_division division = SHAPE_RANGES; division < SHAPE_DIVISIONS; division++) {
        const struct shape shape = shape_of(division, SIMPLE, CHANNELS);
        check_parts(&shape, &tiny, one, CHANNELS);
        assert_int_equal(shape_blocks(&shape, &tiny), 1);
    }
    const struct shape loops = shape_of(SHAPE_LOOPS, SIMPLE, CHANNELS);
    assert_int_equal(shape_blocks(&loops, &tiny), CHANNELS);
}

/*
 * 2.22 rounds a channel's cells down: of 16 bytes from each of 64 ranks, worth 1024, none fits the first channel's 512,
 * so that the second one has them.
 */
static void test_first_channel_is_left_out(void **state)
{
    static const uint64_t wanted[] = {0, 16};
    const struct collective gather = collective_of(OPERATION_ALL_GATHER, 16, INT8, 64);
    const struct shape shape = shape_of(SHAPE_CELLS_2_22, SIMPLE, 2);
    (void)state;
    check_parts(&shape, &gather, wanted, 2);
    assert_int_equal(shape_blocks(&shape, &gather), 2);
}

/*
 * 49 153 bytes on 3 channels: 32 768 bytes of traffic each are two cells of 8192 bytes, worth 16 KiB each, and a
 * seventh one is left: a fourth channel's, if the communicator has one, else the last one's.
 */
static void test_a_cell_too_many(void **state)
{
    static const uint64_t four[] = {16384, 16384, 16384, 1}, three[] = {16384, 16384, 16385};
    const struct collective reduce = collective_of(OPERATION_ALL_REDUCE, 49153, INT8, 7);
    struct shape shape = shape_of(SHAPE_CELLS_2_23, SIMPLE, 3);
    (void)state;
    check_parts(&shape, &reduce, three, 3);
    shape.limit = 5;
    check_parts(&shape, &reduce, four, 4);
    assert_int_equal(shape_blocks(&shape, &reduce), 4);
}

/*
 * 8 TiB and 7 elements on 32 channels: 2^39 + 16 bytes of traffic a channel, 2^24 + 1 cells of 2048 elements of the
 * 2^29 + 1; 2^24 - 30 are left for the last one, which lacks 2041 elements of the last cell.
 */
static void test_huge(void **state)
{
    const uint64_t elements = (1ULL << 40) + 7;
    const struct collective reduce = collective_of(OPERATION_ALL_REDUCE, elements, FLOAT64, 512);
    struct shape shape = shape_of(SHAPE_CELLS_2_29, SIMPLE, 32);
    uint64_t sum = 0;
    (void)state;
    assert_int_equal(division_part(&shape, &reduce, 0), ((1ULL << 24) + 1) * 2048);
    assert_int_equal(division_part(&shape, &reduce, 30), ((1ULL << 24) + 1) * 2048);
    assert_int_equal(division_part(&shape, &reduce, 31), ((1ULL << 24) - 30) * 2048 - 2041);
    for (shape.division = SHAPE_RANGES; shape.division < SHAPE_DIVISIONS; shape.division++, sum = 0) {
        for (unsigned channel = 0; channel < 32; channel++)
            sum += division_part(&shape, &reduce, channel);
        assert_int_equal(sum, elements);
    }
}

/* A member that has only the last of eight channels on the wire has nothing of a call of nine cells: two a channel. */
static void test_little_leaves_the_last_channels_out(void **state)
{
    const struct collective reduce = collective_of(OPERATION_ALL_REDUCE, 9 * 16384, INT8, 4);
    (void)state;
    assert_true(shape_may_leave(&reduce, 7, CHANNELS, SHAPE_CELLS_2_29));
    assert_false(shape_may_leave(&reduce, 4, CHANNELS, SHAPE_CELLS_2_29));
    assert_false(shape_may_leave(&reduce, 7, CHANNELS, SHAPE_LOOPS));
}

struct slots {
    uint64_t bytes[16];
    size_t count;
};

static bool keep(void *context, uint64_t slot_bytes)
{
    struct slots *slots = context;

    assert_true(slots->count < 16);
    slots->bytes[slots->count++] = slot_bytes;
    return true;
}

static void check_slots(const struct shape *shape, const struct collective *collective, unsigned block,
                        const uint64_t *wanted, size_t count)
{
    struct slots slots = {.count = 0};

    assert_true(shape_walk(shape, collective, 0, block, keep, &slots));
    assert_int_equal(slots.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(slots.bytes[i], wanted[i]);
}
#define CHECK_SLOTS(shape, collective, block, ...)                                                                     \
    check_slots(shape, collective, block, (const uint64_t[]){__VA_ARGS__},                                             \
                sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/*
 * 100 001 floats of 3 ranks on 2 channels: 400 016 bytes of traffic are 13 of 25 cells of 4096 elements; 53 248 and
 * 46 753 elements. A third of these: 15 585, rounded up to 4: 15 588, 15 588, 15 577. Slices are at least 8192
 * elements (two of the buffer's steps / 32). The first of the ring sends the third part, the second, the first, the
 * third. 53 248 / 3 = 17 749.3, so 17 752 (slices of 8880, 8872) and 17 744 (8880, 8864).
 */
static void test_all_reduce(void **state)
{
    const struct collective reduce = collective_of(OPERATION_ALL_REDUCE, 100001, FLOAT32, 3);
    const struct shape shape = shape_of(SHAPE_CELLS_2_29, SIMPLE, 2);
    (void)state;
    CHECK_SLOTS(&shape, &reduce, 0, 35520, 35456, 35520, 35488, 35520, 35488, 35520, 35456);
    CHECK_SLOTS(&shape, &reduce, 1, 32768, 29540, 32768, 29584, 32768, 29584, 32768, 29540);
}

/* Nine halves: shared out in multiples of 16 bytes; in 2.20 of 4096. One element: the other rank's part is nothing. */
static void test_little_all_reduce(void **state)
{
    const struct collective halves = collective_of(OPERATION_ALL_REDUCE, 9, FLOAT16, 2);
    const struct collective one = collective_of(OPERATION_ALL_REDUCE, 1, FLOAT32, 2);
    const struct collective odd = collective_of(OPERATION_ALL_REDUCE, 3000, FLOAT32, 2);
    const struct shape cells = shape_of(SHAPE_CELLS_2_23, SIMPLE, 4), ranges = shape_of(SHAPE_RANGES, SIMPLE, 2);
    const struct shape ll = shape_of(SHAPE_CELLS_2_23, LL, 4), ll128 = shape_of(SHAPE_CELLS_2_23, LL128, 4);
    struct slots none = {.count = 0};
    (void)state;
    CHECK_SLOTS(&cells, &halves, 0, 2, 0, 16, 0);
    CHECK_SLOTS(&ranges, &halves, 0, 0, 0, 18, 0);
    CHECK_SLOTS(&cells, &one, 0, 0, 0, 4, 0);
    CHECK_SLOTS(&ll, &one, 0, 0, 16);
    CHECK_SLOTS(&ll128, &one, 0, 0, 2048);
    assert_true(shape_walk(&cells, &one, 0, 1, keep, &none));
    assert_int_equal(none.count, 0);
    CHECK_SLOTS(&ranges, &odd, 0, 4096, 0, 4096, 0);
    CHECK_SLOTS(&ranges, &odd, 1, 0, 0, 3808, 0);
}

/* Several loops: chunks are full until the last one takes what is left; nothing is shared out. */
static void test_chunks_are_full(void **state)
{
    const struct collective broadcast = collective_of(OPERATION_BROADCAST, 1500001, INT8, 4);
    const struct collective little = collective_of(OPERATION_BROADCAST, 40000, INT8, 4);
    const struct collective scatter = collective_of(OPERATION_REDUCE_SCATTER, 480001, FLOAT32, 2);
    const struct collective gather = collective_of(OPERATION_ALL_GATHER, 2097152 + 40001, INT8, 3);
    const struct shape simple = shape_of(SHAPE_CELLS_2_26, SIMPLE, 1), ranges = shape_of(SHAPE_RANGES, SIMPLE, 1);
    const struct shape ll = shape_of(SHAPE_CELLS_2_26, LL, 1), ll128 = shape_of(SHAPE_CELLS_2_26, LL128, 1);
    (void)state;
    CHECK_SLOTS(&simple, &broadcast, 0, 524288, 524288, 451425);
    CHECK_SLOTS(&ranges, &broadcast, 0, 524288, 524288, 451425);
    CHECK_SLOTS(&ll, &little, 0, 65536, 904 * 16);
    CHECK_SLOTS(&ll128, &scatter, 0, 614400, 614400, 614400, 101 * 2048);
    /* the rest's slices are 32 768 bytes at least */
    CHECK_SLOTS(&simple, &gather, 0, 1048576, 1048576, 1048576, 1048576, 32768, 7233, 32768, 7233);
}

/* An all-reduce of more than a loop: 2 ranks x 2 MiB, then 1001 floats: 501 is rounded up to 504. */
static void test_last_loop_is_shared_out(void **state)
{
    const struct collective reduce = collective_of(OPERATION_ALL_REDUCE, 1048576 + 1001, FLOAT32, 2);
    const struct shape shape = shape_of(SHAPE_CELLS_2_29, SIMPLE, 1);
    (void)state;
    CHECK_SLOTS(&shape, &reduce, 0, 1048576, 1048576, 1048576, 1048576, 1988, 0, 2016, 0);
}

/* Trees: one step a chunk, with LL128 halved to 18 000 bytes, which are nine whole grains of 1920 from 2.22 on. */
static void test_trees(void **state)
{
    const struct collective reduce = collective_of(OPERATION_ALL_REDUCE, 100001, FLOAT32, 3);
    const struct collective little = collective_of(OPERATION_ALL_REDUCE, 10000, FLOAT32, 3);
    struct shape simple = shape_of(SHAPE_CELLS_2_29, SIMPLE, 2);
    struct shape halved = shape_of(SHAPE_CELLS_2_29, SHAPE_LL128, 153600, 1);
    (void)state;
    simple.tree = halved.tree = true;
    CHECK_SLOTS(&simple, &reduce, 0, 53248 * 4);
    CHECK_SLOTS(&simple, &reduce, 1, 46753 * 4);
    CHECK_SLOTS(&halved, &little, 0, 18432, 18432, 3 * 2048);
    halved.division = SHAPE_RANGES;
    CHECK_SLOTS(&halved, &little, 0, 20480, 20480, 3 * 2048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_three_channels),
        cmocka_unit_test(test_one_element),
        cmocka_unit_test(test_first_channel_is_left_out),
        cmocka_unit_test(test_a_cell_too_many),
        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_little_leaves_the_last_channels_out),
        cmocka_unit_test(test_all_reduce),
        cmocka_unit_test(test_little_all_reduce),
        cmocka_unit_test(test_chunks_are_full),
        cmocka_unit_test(test_last_loop_is_shared_out),
        cmocka_unit_test(test_trees),
    };
    return cmocka_run_group_tests_name("division", tests, NULL, NULL);
}
