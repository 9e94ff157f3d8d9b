/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers around a frame, and what of them is in the flow's key. Values from the header layouts in the specifications.
 */
#include "nic/frame/encapsulation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/frame/icrc.h"
#include "tests/unit/nic/draft.h"

/* Bytes put together from the inside out. */
struct made {
    uint8_t room[1024];
    size_t begin;
};

static void put(struct made *made, const void *bytes, size_t length)
{
    assert_true(length <= made->begin);
    made->begin -= length;
    memcpy(made->room + made->begin, bytes, length);
}

static size_t length_of(const struct made *made)
{
    return sizeof made->room - made->begin;
}

static void put_write(struct made *made)
{
    uint8_t reth[16];
    const struct draft_frame frame = {.source = 1,
                                      .destination = 2,
                                      .opcode = 0x0a,
                                      .qpn = 0x240,
                                      .psn = 100,
                                      .extensions = reth,
                                      .extensions_bytes = sizeof reth,
                                      .payload_bytes = 64};
    struct draft draft;

    draft_reth(reth, 0x7000, 64);
    draft_roce(&draft, &frame);
    made->begin = sizeof made->room;
    put(made, draft.bytes, draft.length);
}

static void put_ethernet(struct made *made, uint16_t ethertype)
{
    uint8_t header[14] = {2, [12] = (uint8_t)(ethertype >> 8), [13] = (uint8_t)ethertype};

    put(made, header, sizeof header);
}

static void put_ip(struct made *made, uint8_t protocol, uint8_t last_of_source)
{
    size_t total = length_of(made) + 20;
    uint8_t header[20] = {0x45,
                          0,
                          (uint8_t)(total >> 8),
                          (uint8_t)total,
                          0,
                          0,
                          0,
                          0,
                          64,
                          protocol,
                          0,
                          0,
                          10,
                          99,
                          0,
                          last_of_source,
                          10,
                          99,
                          0,
                          99};

    put(made, header, sizeof header);
}

static void put_vxlan(struct made *made, uint32_t vni)
{
    size_t udp = length_of(made) + 16;
    uint8_t header[16] = {0xd0, 0, 0x12, 0xb5, (uint8_t)(udp >> 8), (uint8_t)udp, 0, 0, 8};

    header[12] = (uint8_t)(vni >> 16);
    header[13] = (uint8_t)(vni >> 8);
    header[14] = (uint8_t)vni;
    put(made, header, sizeof header);
    put_ip(made, 17, 1);
    put_ethernet(made, 0x0800);
}

static void put_erspan2(struct made *made, uint16_t session, uint8_t last_of_source)
{
    uint8_t header[16] = {0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 7, (uint8_t)(session >> 8), (uint8_t)session};

    put(made, header, sizeof header);
    put_ip(made, 47, last_of_source);
    put_ethernet(made, 0x0800);
}

static enum tally parse(struct frame *frame, const struct made *made)
{
    return frame_parse(frame, FRAME_LAYER_ETHERNET, made->room + made->begin, length_of(made), length_of(made));
}

static void expect_key(const struct made *made, const struct record_flow *wanted, uint32_t wire_bytes)
{
    struct record_flow record = {.flow = 0};
    struct frame frame;

    assert_int_equal(parse(&frame, made), TALLY_FRAMES_ROCE);
    encapsulation_describe(&frame.key, &record);
    assert_memory_equal(&record, wanted, sizeof record);
    assert_int_equal(frame.wire_bytes, wire_bytes);
    assert_int_equal(frame.payload_bytes, 64);
    assert_int_equal(((const uint8_t *)frame.key.source)[15], 1);
    assert_int_equal(((const uint8_t *)frame.key.destination)[15], 2);
}

#define WRITE_BYTES (14 + 20 + 8 + 12 + 16 + 64 + 4)

static void test_tunnel_and_mirror_are_in_the_key(void **state)
{
    const struct record_flow vxlan = {.tunnel_kind = TUNNEL_VXLAN, .tunnel = 0xabcdef};
    const struct record_flow mirror = {
        .mirror_kind = MIRROR_ERSPAN2, .mirror_session = 0x3ff, .mirror_address = 10u << 24 | 99u << 16 | 7};
    struct record_flow both = mirror;
    struct made made;

    (void)state;
    both.tunnel_kind = TUNNEL_VXLAN;
    both.tunnel = 0xabcdef;
    put_write(&made);
    put_vxlan(&made, 0xabcdef);
    expect_key(&made, &vxlan, WRITE_BYTES + 16 + 20 + 14);
    put_write(&made);
    put_erspan2(&made, 0x3ff, 7);
    expect_key(&made, &mirror, WRITE_BYTES);
    put_write(&made);
    put_vxlan(&made, 0xabcdef);
    put_erspan2(&made, 0x3ff, 7);
    expect_key(&made, &both, WRITE_BYTES + 16 + 20 + 14);
    put_write(&made);
    put_erspan2(&made, 0x3ff, 7);
    put_vxlan(&made, 0xabcdef);
    expect_key(&made, &both, WRITE_BYTES);
}

static void test_two_of_a_kind_are_too_deep(void **state)
{
    struct made made;
    struct frame frame;

    (void)state;
    put_write(&made);
    put_vxlan(&made, 1);
    put_vxlan(&made, 1);
    assert_int_equal(parse(&frame, &made), TALLY_FRAMES_TOO_DEEP);
    put_write(&made);
    put_erspan2(&made, 1, 1);
    put_erspan2(&made, 1, 1);
    assert_int_equal(parse(&frame, &made), TALLY_FRAMES_TOO_DEEP);
}

/* Cut at every byte: in the mirror, the tunnel or the frame, by a snap length. */
static void test_cut_at_every_byte(void **state)
{
    struct made made;
    struct frame frame;

    (void)state;
    put_write(&made);
    put_vxlan(&made, 5);
    put_erspan2(&made, 5, 1);
    size_t whole = length_of(&made), bth_end = whole - 64 - 16 - 4;
    for (size_t length = 0; length <= whole; length++) {
        uint8_t *bytes = malloc(length == 0 ? 1 : length);
        assert_non_null(bytes);
        memcpy(bytes, made.room + made.begin, length);
        enum tally verdict = frame_parse(&frame, FRAME_LAYER_ETHERNET, bytes, length, whole);
        assert_int_equal(verdict, length < bth_end ? TALLY_FRAMES_CUT : TALLY_FRAMES_ROCE);
        if (verdict == TALLY_FRAMES_ROCE)
            assert_int_equal(frame.wire_bytes, WRITE_BYTES + 16 + 20 + 14);
        free(bytes);
    }
}

/* The same on the wire itself: it is never counted, since the lengths say that there should be more. */
static void test_short_on_the_wire(void **state)
{
    struct made made;
    struct frame frame;

    (void)state;
    put_write(&made);
    put_vxlan(&made, 5);
    put_erspan2(&made, 5, 1);
    for (size_t length = 0; length < length_of(&made); length++)
        assert_false(frame_is_kept(frame_parse(&frame, FRAME_LAYER_ETHERNET, made.room + made.begin, length, length)));
}

/* A GRE header that says more than it has, and a label stack without an end. */
static void test_hostile_stacks(void **state)
{
    struct made made = {.begin = sizeof made.room};
    struct frame frame;

    (void)state;
    for (unsigned i = 0; i < 40; i++)
        put(&made, (const uint8_t[4]){0, 1, 0, 64}, 4);
    put_ethernet(&made, 0x8847);
    assert_int_equal(parse(&frame, &made), TALLY_FRAMES_TOO_DEEP);
    made.begin = sizeof made.room;
    put(&made, (const uint8_t[4]){0xb0, 0, 0x65, 0x58}, 4);
    put_ip(&made, 47, 1);
    put_ethernet(&made, 0x0800);
    assert_int_equal(parse(&frame, &made), TALLY_FRAMES_NOT_ROCE);
}

static void test_lids_and_fecn(void **state)
{
    uint8_t packet[8 + 12 + 16 + 64 + 4] = {0x00, 2,    0x12, 0x34, 0, sizeof packet / 4, 0xab, 0xcd, 0x0a, 0, 0,
                                            0,    0x80, 0,    0,    9};
    struct frame frame;

    (void)state;
    assert_int_equal(frame_parse(&frame, FRAME_LAYER_INFINIBAND, packet, sizeof packet, sizeof packet + 2),
                     TALLY_FRAMES_ROCE);
    assert_memory_equal(frame.key.source, ((const uint8_t[16]){[14] = 0xab, [15] = 0xcd}), 16);
    assert_memory_equal(frame.key.destination, ((const uint8_t[16]){[14] = 0x12, [15] = 0x34}), 16);
    assert_int_equal(frame.key.destination_qpn, 9);
    assert_int_equal(frame.payload_bytes, 64);
    assert_int_equal(frame.wire_bytes, sizeof packet);
    assert_true((frame.flags & FRAME_MARKED) != 0);
    assert_int_equal(frame.look.ecn, 3);
    packet[5]++; /* longer than the frame was on the wire */
    assert_int_equal(frame_parse(&frame, FRAME_LAYER_INFINIBAND, packet, sizeof packet, sizeof packet + 2),
                     TALLY_FRAMES_BAD_LENGTH);
}

/* Random bytes of a plain frame changed: the short way says what the long one says. */
static void test_both_ways_agree(void **state)
{
    struct icrc *icrc;
    struct made made;
    unsigned seed = 11;

    (void)state;
    assert_int_equal(icrc_create(&icrc), 0);
    for (unsigned i = 0; i < 300000; i++) {
        struct frame by_short = {.key.port = 0}, by_long = {.key.port = 0};
        put_write(&made);
        for (unsigned j = 0; j < 1 + i % 3; j++)
            made.room[made.begin + (unsigned)rand_r(&seed) % 70] = (uint8_t)rand_r(&seed);
        size_t captured = length_of(&made) - (i % 4 == 0 ? (unsigned)rand_r(&seed) % 90 : 0);
        enum tally verdict = frame_parse(&by_short, FRAME_LAYER_ETHERNET, made.room + made.begin, captured,
                                         i % 8 == 0 ? FRAME_BYTES_UNKNOWN : length_of(&made));
        enum tally verified = frame_parse_verified(&by_long, icrc, FRAME_LAYER_ETHERNET, made.room + made.begin,
                                                   captured, i % 8 == 0 ? FRAME_BYTES_UNKNOWN : length_of(&made));
        if (verified == TALLY_FRAMES_BAD_ICRC || verified == TALLY_FRAMES_ICRC_UNVERIFIED)
            verified = TALLY_FRAMES_ROCE;
        assert_int_equal(verdict, verified);
        if (frame_is_kept(verdict))
            assert_memory_equal(&by_short, &by_long, sizeof by_short);
    }
    icrc_destroy(&icrc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tunnel_and_mirror_are_in_the_key),
        cmocka_unit_test(test_two_of_a_kind_are_too_deep),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_short_on_the_wire),
        cmocka_unit_test(test_hostile_stacks),
        cmocka_unit_test(test_lids_and_fecn),
        cmocka_unit_test(test_both_ways_agree),
    };
    return cmocka_run_group_tests_name("nic_encapsulation", tests, NULL, NULL);
}
