/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key against a Toeplitz hash of our own, which is first checked with a value of Microsoft's "Verifying the RSS
 * Hash Calculation".
 */
#include "nic/dpdk/spread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TUPLE_BYTES 12

static uint32_t toeplitz(const uint8_t *key, const uint8_t *input, size_t length_bytes)
{
    uint32_t hash = 0;

    for (size_t bit = 0; bit < length_bytes * 8; bit++) {
        uint32_t window = 0;
        for (size_t i = bit; i < bit + 32; i++)
            window = window << 1 | (key[i / 8] >> (7 - i % 8) & 1);
        if (input[bit / 8] >> (7 - bit % 8) & 1)
            hash ^= window;
    }
    return hash;
}

static void make_tuple(uint8_t tuple[TUPLE_BYTES], uint32_t source, uint32_t destination, uint16_t source_port,
                       uint16_t destination_port)
{
    const uint32_t words[] = {source, destination, (uint32_t)source_port << 16 | destination_port};

    for (size_t i = 0; i < TUPLE_BYTES; i++)
        tuple[i] = (uint8_t)(words[i / 4] >> (24 - i % 4 * 8));
}

static void test_known_value(void **state)
{
    static const uint8_t key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                                    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                                    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
    uint8_t tuple[TUPLE_BYTES];

    (void)state;
    make_tuple(tuple, 0x420995bb, 0xa18e6450, 2794, 1766); /* 66.9.149.187 to 161.142.100.80 */
    assert_int_equal(toeplitz(key, tuple, sizeof tuple), 0x51ccc178);
}

static void test_both_directions_meet(void **state)
{
    uint8_t key[SPREAD_KEY_BYTES_MAX], there[TUPLE_BYTES], back[TUPLE_BYTES];
    unsigned counts[4] = {0};

    (void)state;
    spread_key(key, sizeof key);
    for (uint16_t port = 0xc000; port != 0; port++) {
        make_tuple(there, 0x0a000001, 0x0a000002, port, 4791);
        make_tuple(back, 0x0a000002, 0x0a000001, port, 4791);
        uint32_t hash = toeplitz(key, there, sizeof there);
        assert_int_equal(hash, toeplitz(key, back, sizeof back));
        counts[hash % 4]++;
    }
    for (unsigned i = 0; i < 4; i++) /* 16 384 ports over 4 queues */
        assert_in_range(counts[i], 3900, 4300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_value),
        cmocka_unit_test(test_both_directions_meet),
    };

    return cmocka_run_group_tests_name("spread", tests, NULL, NULL);
}
