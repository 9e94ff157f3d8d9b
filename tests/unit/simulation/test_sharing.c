/* SPDX-License-Identifier: BSD-2-Clause */
/* The model's channels with ranges of their own: they add up, and they are what pencil and paper give. */
#include "tests/simulation/sharing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const uint32_t versions[] = {22005, 22203, 22304, 22606, 22907};

static void channels_add_up(void **state)
{
    static const uint64_t sizes[] = {4, 36, 1028, 49156, 400004, 1000000, 33554436, 1ULL << 40};
    static const enum operation_kind operations[] = {OPERATION_ALL_REDUCE, OPERATION_ALL_GATHER, OPERATION_BROADCAST};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t channels = 1; channels <= 9; channels++)
            for (size_t version = 0; version < sizeof versions / sizeof *versions; version++)
                for (int protocol = SLICING_SIMPLE; protocol <= SLICING_LL128; protocol++)
                    for (size_t kind = 0; kind < 3; kind++) {
                        const struct sharing sharing = {versions[version], protocol, operations[kind], sizes[i], 6,
                                                        channels,          512};
                        uint64_t sum = 0;
                        for (uint32_t channel = 0; channel < channels; channel++)
                            sum += sharing_bytes(&sharing, channel);
                        assert_int_equal(sum, sizes[i]);
                    }
}

/* A gather of 40 000 bytes of each of 5 ranks on 3 channels; tests/unit/correlator/test_division.c has the steps. */
static void a_gather_by_hand(void **state)
{
    static const uint64_t wanted[][3] = {
        {16384, 16384, 7232}, {13328, 13344, 13328}, {16400, 16400, 7200}, {16400, 16400, 7200}, {19680, 19680, 640}};

    (void)state;
    for (size_t version = 0; version < sizeof versions / sizeof *versions; version++)
        for (uint32_t channel = 0; channel < 3; channel++) {
            const struct sharing sharing = {versions[version], SLICING_SIMPLE, OPERATION_ALL_GATHER, 40000, 5, 3, 512};
            assert_int_equal(sharing_bytes(&sharing, channel), wanted[version][channel]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(channels_add_up), cmocka_unit_test(a_gather_by_hand)};

    return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
