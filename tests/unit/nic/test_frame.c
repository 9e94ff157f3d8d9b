/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/frame/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/nic/draft.h"

static const uint8_t host[3][16] = {
    {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 0},
    {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
    {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
};

static void make_write(struct draft *draft, size_t payload_bytes)
{
    uint8_t extensions[20];
    const struct draft_frame frame = {.source = 1,
                                      .destination = 2,
                                      .opcode = 0x0b,
                                      .qpn = 0x123456,
                                      .psn = 0xabcdef,
                                      .extensions = extensions,
                                      .extensions_bytes = sizeof extensions,
                                      .payload_bytes = payload_bytes,
                                      .traffic_class = 26 << 2 | 3};

    draft_reth(extensions, 0x7f0011223344, (uint32_t)payload_bytes);
    memcpy(extensions + 16, "\x01\x02\x03\x04", 4);
    draft_roce(draft, &frame);
}

static enum tally parse(struct frame *frame, const struct draft *draft)
{
    return frame_parse(frame, FRAME_LAYER_ETHERNET, draft->bytes, draft->length, draft->length);
}

static void test_every_field(void **state)
{
    struct draft draft;
    struct frame frame;

    (void)state;
    make_write(&draft, 1001);
    assert_int_equal(parse(&frame, &draft), TALLY_FRAMES_ROCE);
    assert_memory_equal(frame.key.source, host[1], 16);
    assert_memory_equal(frame.key.destination, host[2], 16);
    assert_int_equal(frame.key.destination_qpn, 0x123456);
    assert_int_equal(frame.psn, 0xabcdef);
    assert_int_equal(frame.opcode_number, 0x0b);
    assert_int_equal(frame.look.udp_source_port, 0xc123);
    assert_int_equal(frame.look.dscp, 26);
    assert_int_equal(frame.payload_bytes, 1001);
    assert_int_equal(frame.wire_bytes, 14 + 20 + 8 + 12 + 20 + 1004 + 4);
    assert_true(frame.place == 0x7f0011223344);
    assert_int_equal(frame.dma_bytes, 1001);
    assert_int_equal(frame.remote_key, 0x1234);
    assert_int_equal(frame.immediate, 0x01020304);
    assert_int_equal(frame.flags, FRAME_MARKED | FRAME_PLACED | FRAME_IMMEDIATE);
}

/* Cut by a snap length at every byte: left out by name before the BTH is whole, right behind it. */
static void test_cut_at_every_byte(void **state)
{
    struct draft draft;
    struct frame frame;

    (void)state;
    make_write(&draft, 64);
    for (size_t length = 0; length <= draft.length; length++) {
        uint8_t *bytes = malloc(length == 0 ? 1 : length); /* of this size, so that a sanitizer sees a read beyond */
        assert_non_null(bytes);
        memcpy(bytes, draft.bytes, length);
        enum tally verdict = frame_parse(&frame, FRAME_LAYER_ETHERNET, bytes, length, draft.length);
        assert_int_equal(verdict, length < 54 ? TALLY_FRAMES_CUT : TALLY_FRAMES_ROCE);
        if (verdict == TALLY_FRAMES_ROCE) {
            assert_int_equal(frame.payload_bytes, 64);
            assert_int_equal((frame.flags & FRAME_PLACED) != 0, length >= 70);
            assert_int_equal((frame.flags & FRAME_IMMEDIATE) != 0, length >= 74);
        }
        free(bytes);
    }
}

/* A port that hands out only the beginning does not say how long the frame was: the IP header does. */
static void test_unknown_length(void **state)
{
    struct draft draft;
    struct frame frame;

    (void)state;
    make_write(&draft, 64);
    enum tally verdict = frame_parse(&frame, FRAME_LAYER_ETHERNET, draft.bytes, 74, FRAME_BYTES_UNKNOWN);
    assert_int_equal(verdict, TALLY_FRAMES_ROCE);
    assert_int_equal(frame.wire_bytes, 14 + 20 + 8 + 12 + 20 + 64 + 4);
    assert_int_equal(frame.payload_bytes, 64);
    assert_int_equal(frame.flags & FRAME_IMMEDIATE, FRAME_IMMEDIATE);
    verdict = frame_parse(&frame, FRAME_LAYER_ETHERNET, draft.bytes, 53, FRAME_BYTES_UNKNOWN);
    assert_int_equal(verdict, TALLY_FRAMES_CUT);
}

/* Ended on the wire itself: never taken as RoCE, for its lengths say that there should be more. */
static void test_short_on_the_wire(void **state)
{
    struct draft draft;
    struct frame frame;

    (void)state;
    make_write(&draft, 64);
    for (size_t length = 0; length < draft.length; length++) {
        enum tally verdict = frame_parse(&frame, FRAME_LAYER_ETHERNET, draft.bytes, length, length);
        assert_true(verdict == TALLY_FRAMES_NOT_ROCE || verdict == TALLY_FRAMES_BAD_LENGTH);
    }
}

/* Random bytes changed: any verdict, but never more payload than the frame has bytes. */
static void test_random_bytes_changed(void **state)
{
    struct draft draft;
    struct frame frame;
    unsigned seed = 3;

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        make_write(&draft, 64);
        for (unsigned j = 0; j < 3; j++)
            draft.bytes[(unsigned)rand_r(&seed) % draft.length] = (uint8_t)rand_r(&seed);
        if (parse(&frame, &draft) == TALLY_FRAMES_ROCE)
            assert_true(frame.payload_bytes <= draft.length);
    }
}

static void expect_changed(size_t at, uint8_t byte, enum tally wanted)
{
    struct draft draft;
    struct frame frame;

    make_write(&draft, 64);
    draft.bytes[at] = byte;
    assert_int_equal(parse(&frame, &draft), wanted);
}

static void test_what_cannot_be_is_named(void **state)
{
    (void)state;
    expect_changed(12, 0x09, TALLY_FRAMES_NOT_ROCE);       /* EtherType 0x0900 */
    expect_changed(23, 6, TALLY_FRAMES_NOT_ROCE);          /* TCP */
    expect_changed(20, 0x20, TALLY_FRAMES_BAD_LENGTH);     /* more fragments, though it is all there */
    expect_changed(21, 1, TALLY_FRAMES_FRAGMENT);          /* fragment offset */
    expect_changed(37, 0xb8, TALLY_FRAMES_NOT_ROCE);       /* UDP port */
    expect_changed(38, 0x40, TALLY_FRAMES_BAD_LENGTH);     /* UDP longer than IP */
    expect_changed(42, 0x15, TALLY_FRAMES_UNKNOWN_OPCODE); /* reserved */
    expect_changed(42, 0x11, TALLY_FRAMES_BAD_LENGTH);     /* an acknowledgement with payload */
    expect_changed(43, 0x01, TALLY_FRAMES_BAD_VERSION);    /* transport version 1 */
}

static void expect_answer(uint8_t syndrome, enum tally verdict, int acknowledgement)
{
    const uint8_t aeth[4] = {syndrome};
    const struct draft_frame answer = {
        .source = 2, .destination = 1, .opcode = 0x11, .qpn = 5, .extensions = aeth, .extensions_bytes = 4};
    struct draft draft;
    struct frame frame;

    draft_roce(&draft, &answer);
    assert_int_equal(parse(&frame, &draft), verdict);
    if (verdict == TALLY_FRAMES_ROCE)
        assert_int_equal(frame.acknowledgement, acknowledgement);
}

static void test_kinds_of_answers(void **state)
{
    (void)state;
    expect_answer(0x00, TALLY_FRAMES_ROCE, FRAME_ACK);
    expect_answer(0x1f, TALLY_FRAMES_ROCE, FRAME_ACK);
    expect_answer(0x2e, TALLY_FRAMES_ROCE, FRAME_RNR_NAK);
    expect_answer(0x60, TALLY_FRAMES_ROCE, FRAME_NAK);
    expect_answer(0x64, TALLY_FRAMES_ROCE, FRAME_NAK);
    expect_answer(0x40, TALLY_FRAMES_UNKNOWN_SYNDROME, 0);
    expect_answer(0x80, TALLY_FRAMES_UNKNOWN_SYNDROME, 0);
}

/* Up to four tags are looked through, a fifth is not. */
static void test_vlan_tags(void **state)
{
    struct draft plain, tagged;
    struct frame frame;

    (void)state;
    make_write(&plain, 64);
    for (unsigned tags = 0; tags <= 5; tags++) {
        memcpy(tagged.bytes, plain.bytes, 12);
        for (unsigned i = 0; i < tags; i++)
            memcpy(tagged.bytes + 12 + 4 * i, (const uint8_t[4]){0x81, 0x00, 0x60, (uint8_t)(10 + i)}, 4);
        memcpy(tagged.bytes + 12 + 4 * tags, plain.bytes + 12, plain.length - 12);
        tagged.length = plain.length + 4 * tags;
        assert_int_equal(parse(&frame, &tagged), tags <= 4 ? TALLY_FRAMES_ROCE : TALLY_FRAMES_NOT_ROCE);
        if (tags <= 4) {
            uint32_t wanted = tags == 0 ? 0 : tags == 1 ? 10 : 10 | 11 << 12;
            assert_int_equal(frame.key.tunnel, wanted);
            assert_int_equal(frame.payload_bytes, 64);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field),          cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_unknown_length),       cmocka_unit_test(test_short_on_the_wire),
        cmocka_unit_test(test_random_bytes_changed), cmocka_unit_test(test_what_cannot_be_is_named),
        cmocka_unit_test(test_kinds_of_answers),     cmocka_unit_test(test_vlan_tags),
    };
    return cmocka_run_group_tests_name("nic_frame", tests, NULL, NULL);
}
