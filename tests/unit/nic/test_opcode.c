/* SPDX-License-Identifier: BSD-2-Clause */
/* The opcode table against the list of the InfiniBand Architecture Specification 1.7, table 38, written down again
 * here. */
#include "nic/frame/opcode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Bytes between BTH and payload for opcodes 0x00 .. 0x1f of a transport; -1 = reserved. */
static const int reliable[32] = {0, 0, 0,  4,  0,  4,  16, 0, 0,  4,  16, 20, 16, 4,  0,  4,
                                 4, 4, 12, 28, 28, -1, 4,  4, -1, -1, -1, -1, 20, 16, -1, -1};
static const int unreliable[32] = {0,  0,  0,  4,  0,  4,  16, 0,  0,  4,  16, 20, -1, -1, -1, -1,
                                   -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
static const int datagram[32] = {12, 12, 12, 16, 12, 16, 28, 12, 12, 16, 28, 32, 28, 8,  4,  8,
                                 8,  8,  16, 40, 40, 12, -1, -1, -1, -1, -1, -1, 32, -1, -1, -1};
static const int unreliable_datagram[32] = {-1, -1, -1, -1, 8,  12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
static const int extended[32] = {4, 4, 4,  8,  4,  8,  20, 4, 4,  8,  20, 24, 20, 4,  0,  4,
                                 4, 4, 12, 32, 32, -1, 8,  8, -1, -1, -1, -1, -1, -1, -1, -1};

static void check_transport(uint8_t base, const int bytes[32])
{
    for (unsigned i = 0; i < 32; i++) {
        const struct opcode *opcode = opcode_find((uint8_t)(base + i));
        if (bytes[i] < 0)
            assert_null(opcode);
        else {
            assert_non_null(opcode);
            assert_int_equal(opcode->extension_bytes, bytes[i]);
        }
    }
}

static void test_every_transport(void **state)
{
    (void)state;
    check_transport(0x00, reliable);
    check_transport(0x20, unreliable);
    check_transport(0x40, datagram);
    check_transport(0x60, unreliable_datagram);
    check_transport(0xa0, extended);
}

static void test_congestion_and_the_rest(void **state)
{
    (void)state;
    assert_non_null(opcode_find(0x81));
    assert_int_equal(opcode_find(0x81)->kind, OPCODE_CONGESTION);
    assert_int_equal(opcode_find(0x80)->kind, OPCODE_CONGESTION);
    for (unsigned number = 0x80; number < 0xa0; number++)
        assert_true((opcode_find((uint8_t)number) != NULL) == (number == 0x80 || number == 0x81));
    for (unsigned number = 0xc0; number <= 0xff; number++)
        assert_null(opcode_find((uint8_t)number));
}

static void test_positions(void **state)
{
    static const uint8_t first[] = {0x00, 0x06, 0x0d}, middle[] = {0x01, 0x07, 0x0e};
    static const uint8_t last[] = {0x02, 0x03, 0x08, 0x09, 0x0f, 0x16};

    (void)state;
    for (unsigned number = 0; number < 0x18; number++) {
        uint8_t wanted = OPCODE_ONLY;
        if (number == 0x15)
            continue;
        if (memchr(first, (int)number, sizeof first) != NULL)
            wanted = OPCODE_FIRST;
        if (memchr(middle, (int)number, sizeof middle) != NULL)
            wanted = OPCODE_MIDDLE;
        if (memchr(last, (int)number, sizeof last) != NULL)
            wanted = OPCODE_LAST;
        assert_int_equal(opcode_find((uint8_t)number)->position, wanted);
        assert_int_equal(opcode_find((uint8_t)(0xa0 + number))->position, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_transport),
        cmocka_unit_test(test_congestion_and_the_rest),
        cmocka_unit_test(test_positions),
    };
    return cmocka_run_group_tests_name("nic_opcode", tests, NULL, NULL);
}
