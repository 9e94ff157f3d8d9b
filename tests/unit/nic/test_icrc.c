/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames whose ICRC another implementation computed: hardware and soft-RoCE. Each bit of them matters, or must not. */
#include "nic/frame/icrc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A congestion notification that a ConnectX-4 Lx sent, with its time to live, type of service and UDP checksum. */
static const uint8_t hardware[] = {
    0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08, 0x00, 0x45, 0xc2, 0x00, 0x3c, 0x71,
    0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7,
    0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a,
};
/* An RDMA write with immediate that Linux' rxe sent: of 0 bytes, with RETH and ImmDt. */
static const uint8_t software[] = {
    0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x45, 0x00,
    0x00, 0x40, 0x21, 0xd1, 0x40, 0x00, 0x40, 0x11, 0x04, 0xda, 0x0a, 0x00, 0x00, 0x02, 0x0a, 0x00,
    0x00, 0x01, 0xc1, 0x32, 0x12, 0xb7, 0x00, 0x2c, 0x00, 0x00, 0x0b, 0x00, 0xff, 0xff, 0x00, 0x00,
    0x00, 0x12, 0x80, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x94, 0xda, 0x41, 0x6d,
};

struct state {
    struct icrc *icrc;
};

static int set_up(void **state)
{
    static struct state own;

    *state = &own;
    return icrc_create(&own.icrc);
}

static int tear_down(void **state)
{
    icrc_destroy(&((struct state *)*state)->icrc);
    return 0;
}

static enum tally verify(const struct state *state, const uint8_t *bytes, size_t captured_bytes, size_t original_bytes)
{
    struct frame frame;

    return frame_parse_verified(&frame, state->icrc, FRAME_LAYER_ETHERNET, bytes, captured_bytes, original_bytes);
}

static bool is_variant(size_t at)
{
    return at < 12 || at == 15 || at == 22 || at == 24 || at == 25 || at == 40 || at == 41 || at == 46;
}

/* Behind the Ethernet header: the type of service, time to live, both checksums and BTH's FECN byte may change. */
static void check_every_bit(const struct state *state, const uint8_t *original, size_t length)
{
    uint8_t bytes[128];

    assert_int_equal(verify(state, original, length, length), TALLY_FRAMES_ROCE);
    for (size_t at = 0; at < length; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(bytes, original, length);
            bytes[at] ^= (uint8_t)(1u << bit);
            enum tally verdict = verify(state, bytes, length, length);
            if (is_variant(at))
                assert_int_equal(verdict, TALLY_FRAMES_ROCE);
            else
                assert_int_not_equal(verdict, TALLY_FRAMES_ROCE);
        }
    }
}

static void test_hardware(void **state)
{
    check_every_bit(*state, hardware, sizeof hardware);
}

static void test_software(void **state)
{
    check_every_bit(*state, software, sizeof software);
}

static void test_cut(void **state)
{
    for (size_t length = 54; length < sizeof software; length++)
        assert_int_equal(verify(*state, software, length, sizeof software), TALLY_FRAMES_ICRC_UNVERIFIED);
    assert_int_equal(verify(*state, software, 53, sizeof software), TALLY_FRAMES_CUT);
}

/* Padding of a short Ethernet frame lies behind the ICRC and is no part of it. */
static void test_trailer(void **state)
{
    uint8_t bytes[128] = {0};

    memcpy(bytes, software, sizeof software);
    assert_int_equal(verify(*state, bytes, sizeof bytes, sizeof bytes), TALLY_FRAMES_ROCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hardware),
        cmocka_unit_test(test_software),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_trailer),
    };
    return cmocka_run_group_tests_name("nic_icrc", tests, set_up, tear_down);
}
