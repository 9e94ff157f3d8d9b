/* SPDX-License-Identifier: BSD-2-Clause */
/* The model's cutting against arithmetic: a ring moves 2 (n - 1) / n of an AllReduce over each link, whatever the size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/simulation/slicing.h"

static const struct slicing_options usual = {.buffer_bytes = 4u << 20, .round_bytes = 4096, .message_bytes = 131072};

/* All that all ranks send. */
static uint64_t moved(const struct slicing *slicing, uint32_t places)
{
    uint64_t sum = 0;

    for (uint32_t place = 0; place < places; place++)
        for (uint32_t channel = 0; channel < slicing->channels; channel++)
            for (uint32_t number = 0; number < slicing->count; number++)
                sum += slicing_bytes(slicing, place, channel, number);
    return sum;
}

static void a_ring_moves_its_volume(void **state)
{
    static const uint64_t sizes[] = {4, 4096, 65536, 1000000, 1 << 20, 33554432, 100000004};
    struct slicing slicing;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t ranks = 2; ranks <= 9; ranks++)
            for (uint32_t channels = 1; channels <= 4; channels += 3) {
                slicing_init(&slicing, &usual, OPERATION_ALL_REDUCE, sizes[i], ranks, channels);
                assert_int_equal(moved(&slicing, ranks), 2 * (ranks - 1) * sizes[i]);
                slicing_init(&slicing, &usual, OPERATION_ALL_GATHER, sizes[i], ranks, channels);
                assert_int_equal(moved(&slicing, ranks), (uint64_t)ranks * (ranks - 1) * sizes[i]);
                slicing_init(&slicing, &usual, OPERATION_REDUCE_SCATTER, sizes[i], ranks, channels);
                assert_int_equal(moved(&slicing, ranks), (uint64_t)ranks * (ranks - 1) * sizes[i]);
                slicing_init(&slicing, &usual, OPERATION_SEND, sizes[i], 2, 1);
                assert_int_equal(moved(&slicing, 1), sizes[i]);
            }
}

static void slices_fit_their_slots(void **state)
{
    struct slicing slicing;

    (void)state;
    slicing_init(&slicing, &usual, OPERATION_ALL_REDUCE, 33554432, 8, 2);
    assert_int_equal(slicing.slots_a_slice, 2);
    assert_int_equal(slicing.depth, 4);         /* eight slots, two a slice */
    assert_int_equal(slicing.count, 2 * 7 * 2); /* a round holds 2 x 8 chunks of 2 MiB: all of it */
    for (uint32_t number = 0; number < slicing.count; number++)
        assert_int_equal(slicing_bytes(&slicing, 3, 1, number), 1 << 20);
    slicing_init(&slicing, &usual, OPERATION_SEND, 300000, 2, 1);
    assert_int_equal(slicing.count, 3);
    assert_int_equal(slicing_bytes(&slicing, 0, 0, 0), 131072);
    assert_int_equal(slicing_bytes(&slicing, 0, 0, 2), 300000 - 2 * 131072);
}

/* 262144 bytes, 4 ranks, 2 channels: chunks of 32 KiB; the least slice is 32 KiB too, so every second slice is empty.
 */
static void small_chunks_leave_slices_empty(void **state)
{
    struct slicing slicing;

    (void)state;
    slicing_init(&slicing, &usual, OPERATION_ALL_REDUCE, 262144, 4, 2);
    assert_int_equal(slicing.count, 12);
    for (uint32_t number = 0; number < slicing.count; number++)
        assert_int_equal(slicing_bytes(&slicing, 1, 0, number), number % 2 == 0 ? 32768 : 0);
}

/*
 * 1747624 bytes a rank, 2 channels: the second one's chunk has 871080 left, which two slices of whole sixteens of
 * elements share: 435552 bytes of single bytes, 435584 of numbers of four.
 */
static void what_only_moves_is_split_in_bytes(void **state)
{
    struct slicing slicing;

    (void)state;
    slicing_init(&slicing, &usual, OPERATION_ALL_GATHER, 1747624, 6, 2);
    assert_int_equal(slicing_bytes(&slicing, 0, 1, 0), 435552);
    assert_int_equal(slicing_bytes(&slicing, 0, 1, 1), 871080 - 435552);
    slicing_init(&slicing, &usual, OPERATION_REDUCE_SCATTER, 1747624, 6, 2);
    assert_int_equal(slicing_bytes(&slicing, 0, 1, 0), 435584);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_moves_its_volume),
        cmocka_unit_test(slices_fit_their_slots),
        cmocka_unit_test(small_chunks_leave_slices_empty),
        cmocka_unit_test(what_only_moves_is_split_in_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
