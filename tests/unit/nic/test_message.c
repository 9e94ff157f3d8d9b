/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/flow/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct tallies tallies;
    struct message_queue *queue;
    struct message_track track;
    struct sequence sequence; /* empty, but where a test says otherwise */
    uint64_t at_ns;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    *state = fixture;
    return fixture == NULL ? -1 : message_queue_create(&fixture->queue, 64, &fixture->tallies);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    message_queue_destroy(&fixture->queue);
    free(fixture);
    return 0;
}

static struct frame make(uint8_t opcode, uint32_t psn, uint32_t payload_bytes)
{
    struct frame frame = {.opcode_number = opcode,
                          .opcode = opcode_find(opcode),
                          .psn = psn & FRAME_PSN_MASK,
                          .payload_bytes = payload_bytes};

    frame.key.destination[0] = 1; /* not connected to itself */
    return frame;
}

/* Each frame comes one microsecond after the one before. */
static void note(struct fixture *fixture, uint8_t opcode, uint32_t psn, enum sequence_place place)
{
    struct frame frame = make(opcode, psn, 1000);

    fixture->at_ns += 1000;
    message_note(fixture->queue, &fixture->track, 9, &frame, fixture->at_ns, &fixture->sequence, place);
}

static struct record_message take(struct fixture *fixture)
{
    struct record_message message;

    assert_true(message_take(fixture->queue, &message));
    assert_int_equal(message.header.source, 9);
    return message;
}

static void expect_none(struct fixture *fixture)
{
    struct record_message message;

    assert_false(message_take(fixture->queue, &message));
}

static void test_first_to_last(void **state)
{
    struct fixture *fixture = *state;

    note(fixture, 0x06, 0xfffffe, SEQUENCE_NEXT);
    note(fixture, 0x07, 0xffffff, SEQUENCE_NEXT);
    note(fixture, 0x07, 0, SEQUENCE_NEXT);
    expect_none(fixture);
    note(fixture, 0x08, 1, SEQUENCE_NEXT);
    struct record_message message = take(fixture);
    assert_int_equal(message.first_ns, 1000);
    assert_int_equal(message.duration_ns, 3000);
    assert_int_equal(message.frames, 4);
    assert_int_equal(message.payload_bytes, 4000);
    assert_int_equal(message.role, ROLE_DATA);
    assert_int_equal(message.opcode, 0x08);
    assert_int_equal(message.flags, 0);
    expect_none(fixture);
}

/* 103 is lost; 104 and 105 come twice. */
static void test_go_back_n(void **state)
{
    struct fixture *fixture = *state;

    note(fixture, 0x06, 102, SEQUENCE_NEXT);
    note(fixture, 0x07, 104, SEQUENCE_NEXT);
    note(fixture, 0x07, 105, SEQUENCE_NEXT);
    note(fixture, 0x07, 103, SEQUENCE_LATE);
    note(fixture, 0x07, 104, SEQUENCE_REPEATED);
    note(fixture, 0x07, 105, SEQUENCE_REPEATED);
    note(fixture, 0x08, 106, SEQUENCE_NEXT);
    struct record_message message = take(fixture);
    assert_int_equal(message.frames, 5);
    assert_int_equal(message.payload_bytes, 5000);
    assert_int_equal(message.flags, MESSAGE_RETRANSMITTED);
    assert_int_equal(message.duration_ns, 6000);
}

/* The last frame of one message is lost, the next message has begun: each gets its own frames. */
static void test_last_frame_comes_late(void **state)
{
    struct fixture *fixture = *state;

    note(fixture, 0x06, 10, SEQUENCE_NEXT);
    note(fixture, 0x06, 12, SEQUENCE_NEXT);
    note(fixture, 0x07, 13, SEQUENCE_NEXT);
    note(fixture, 0x08, 11, SEQUENCE_LATE);
    struct record_message message = take(fixture);
    assert_int_equal(message.frames, 2);
    assert_int_equal(message.first_ns, 1000);
    note(fixture, 0x06, 12, SEQUENCE_REPEATED);
    note(fixture, 0x08, 14, SEQUENCE_NEXT);
    message = take(fixture);
    assert_int_equal(message.frames, 3);
    assert_int_equal(message.first_ns, 2000);
    assert_int_equal(message.flags, MESSAGE_RETRANSMITTED);
}

static void test_first_frame_comes_late(void **state)
{
    struct fixture *fixture = *state;

    note(fixture, 0x07, 21, SEQUENCE_NEXT);
    note(fixture, 0x06, 20, SEQUENCE_LATE);
    note(fixture, 0x08, 22, SEQUENCE_NEXT);
    struct record_message message = take(fixture);
    assert_int_equal(message.frames, 3);
    assert_int_equal(message.flags, 0);
    assert_int_equal(message.first_ns, 1000);
}

/* We came when it was under way. */
static void test_began_before_us(void **state)
{
    struct fixture *fixture = *state;

    note(fixture, 0x07, 31, SEQUENCE_NEXT);
    note(fixture, 0x08, 32, SEQUENCE_NEXT);
    struct record_message message = take(fixture);
    assert_int_equal(message.frames, 2);
    assert_int_equal(message.flags, MESSAGE_INCOMPLETE);
}

/* The whole message again, because its acknowledgement was lost: no second message. */
static void test_whole_message_again(void **state)
{
    struct fixture *fixture = *state;

    note(fixture, 0x06, 1, SEQUENCE_NEXT);
    note(fixture, 0x08, 2, SEQUENCE_NEXT);
    note(fixture, 0x06, 1, SEQUENCE_REPEATED);
    note(fixture, 0x08, 2, SEQUENCE_REPEATED);
    assert_int_equal(take(fixture).payload_bytes, 2000);
    expect_none(fixture);
}

static void test_abandoned_when_stale(void **state)
{
    struct fixture *fixture = *state;

    note(fixture, 0x06, 1, SEQUENCE_NEXT);
    note(fixture, 0x08, 3, SEQUENCE_NEXT);
    note(fixture, 0x06, 4, SEQUENCE_NEXT);
    assert_int_equal(message_abandon(fixture->queue, &fixture->track, 9, false, 2000), 0);
    assert_int_equal(message_abandon(fixture->queue, &fixture->track, 9, false, 2001), 1);
    struct record_message message = take(fixture);
    assert_int_equal(message.frames, 2);
    assert_int_equal(message.flags, MESSAGE_INCOMPLETE);
    expect_none(fixture);
    assert_int_equal(message_abandon(fixture->queue, &fixture->track, 9, false, UINT64_MAX), 1);
}

/* More messages with holes than there is room for: the oldest goes. */
static void test_no_room(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t i = 0; i <= MESSAGE_OPEN_MAX; i++)
        note(fixture, 0x06, 100 + 10 * i, SEQUENCE_NEXT);
    struct record_message message = take(fixture);
    assert_int_equal(message.first_ns, 1000);
    assert_int_equal(message.flags, MESSAGE_INCOMPLETE);
    expect_none(fixture);
}

static void expect_role(struct fixture *fixture, struct frame frame, enum message_role role)
{
    message_note(fixture->queue, &fixture->track, 9, &frame, 1, &fixture->sequence, SEQUENCE_NEXT);
    assert_int_equal(take(fixture).role, role);
}

static struct frame make_immediate(uint32_t payload_bytes, uint32_t immediate)
{
    struct frame frame = make(0x0b, 1, payload_bytes);

    frame.immediate = immediate;
    frame.flags = FRAME_IMMEDIATE;
    return frame;
}

static void test_roles(void **state)
{
    struct fixture *fixture = *state;
    struct frame flush = make(0x0c, 1, 0), read = make(0x0c, 1, 0);

    expect_role(fixture, make(0x0a, 1, 64), ROLE_CREDIT);
    expect_role(fixture, make(0x0a, 1, 512), ROLE_CREDIT);
    expect_role(fixture, make(0x0a, 1, 576), ROLE_DATA);
    expect_role(fixture, make(0x0a, 1, 100), ROLE_DATA);
    expect_role(fixture, make(0x0a, 1, 0), ROLE_OTHER);
    expect_role(fixture, make_immediate(0, 0x00000100), ROLE_DATA); /* 65536 in little-endian order */
    expect_role(fixture, make_immediate(64, 0x40), ROLE_DATA);
    expect_role(fixture, make_immediate(16, 0x10000000), ROLE_DATA); /* the size is its own */
    expect_role(fixture, make_immediate(16, 0x00000010), ROLE_DATA);
    expect_role(fixture, make_immediate(16, 0), ROLE_SIZE);
    expect_role(fixture, make(0x04, 1, 64), ROLE_OTHER);
    flush.dma_bytes = 1;
    flush.flags = FRAME_PLACED;
    flush.key.destination[0] = 0; /* to itself */
    expect_role(fixture, flush, ROLE_FLUSH);
    read.dma_bytes = 1;
    read.flags = FRAME_PLACED;
    expect_role(fixture, read, ROLE_OTHER);
}

static void test_a_full_queue_is_counted(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t i = 0; i < 70; i++)
        note(fixture, 0x0a, i, SEQUENCE_NEXT);
    assert_int_equal(fixture->tallies.values[TALLY_MESSAGES], 70);
    assert_int_equal(fixture->tallies.values[TALLY_MESSAGES_DROPPED], 70 - 64);
}

/* Frames of an RDMA write of 8000 bytes in 8 frames to 0x1000, or of the one behind it, with their real places. */
static void note_placed(struct fixture *fixture, uint32_t psn)
{
    uint32_t n = psn % 8;
    struct frame frame = make(n == 0 ? 0x06 : n == 7 ? 0x08 : 0x07, psn, 1000);

    if (n == 0) {
        frame.flags = FRAME_PLACED;
        frame.dma_bytes = 8000;
        frame.place = 0x1000 + psn * 1000;
    }
    fixture->at_ns += 1000;
    message_note(fixture->queue, &fixture->track, 9, &frame, fixture->at_ns, &fixture->sequence,
                 sequence_add(&fixture->sequence, psn));
}

static void expect_whole(struct fixture *fixture, uint32_t first_psn)
{
    struct record_message message = take(fixture);

    assert_int_equal(message.frames, 8);
    assert_int_equal(message.payload_bytes, 8000);
    assert_int_equal(message.flags & MESSAGE_INCOMPLETE, 0);
    assert_int_equal(message.place, 0x1000 + first_psn * 1000);
}

/* The first frame was lost, and comes when all the others are there. */
static void test_the_first_frame_last(void **state)
{
    static const uint32_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 8};
    struct fixture *fixture = *state;

    for (unsigned i = 0; i < 16; i++)
        note_placed(fixture, order[i]);
    expect_whole(fixture, 0);
    expect_whole(fixture, 8);
    expect_none(fixture);
}

/* One message's end and the next one's beginning are overtaken by what follows. */
static void test_overtaken_between_messages(void **state)
{
    static const uint32_t order[] = {0, 1, 2, 3, 4, 5, 9, 10, 6, 7, 8, 11, 12, 13, 14, 15};
    struct fixture *fixture = *state;

    for (unsigned i = 0; i < 16; i++)
        note_placed(fixture, order[i]);
    expect_whole(fixture, 0);
    expect_whole(fixture, 8);
    expect_none(fixture);
}

/* The first frames come late, in order: the message began with its fourth. */
static void test_the_beginning_comes_late(void **state)
{
    static const uint32_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 8, 9, 10, 13, 14, 15};
    struct fixture *fixture = *state;

    for (unsigned i = 0; i < 16; i++)
        note_placed(fixture, order[i]);
    expect_whole(fixture, 0);
    expect_whole(fixture, 8);
    expect_none(fixture);
}

/* We came in the middle of it: nothing before is waited for. */
static void test_a_beginning_that_was_never_seen(void **state)
{
    struct fixture *fixture = *state;

    fixture->at_ns = 1;
    for (uint32_t psn = 3; psn < 16; psn++)
        note_placed(fixture, psn);
    assert_int_equal(message_abandon(fixture->queue, &fixture->track, 9, false, UINT64_MAX), 1);
    expect_whole(fixture, 8);
    struct record_message message = take(fixture);
    assert_int_equal(message.frames, 5);
    assert_int_equal(message.flags, MESSAGE_INCOMPLETE);
}

static struct record_message pass_write(struct fixture *fixture, uint8_t opcode, uint32_t payload_bytes, uint64_t place)
{
    struct frame frame = make(opcode, (uint32_t)fixture->at_ns, payload_bytes);

    frame.flags = FRAME_PLACED | (opcode == 0x0b ? FRAME_IMMEDIATE : 0);
    frame.place = place;
    frame.dma_bytes = payload_bytes;
    frame.immediate = payload_bytes;
    message_note(fixture->queue, &fixture->track, 9, &frame, fixture->at_ns++, &fixture->sequence, SEQUENCE_NEXT);
    return take(fixture);
}

/* Credits go round a ring of 64-byte entries, here one that lies across a border of 4 GiB; what lies elsewhere is none.
 */
static void test_credits_lie_in_a_ring(void **state)
{
    struct fixture *fixture = *state;

    for (uint64_t round = 0; round < 2; round++)
        for (uint64_t i = 0; i < 256; i++)
            assert_int_equal(pass_write(fixture, 0x0a, 64, 0x7ffff0000 + i * 512).role, ROLE_CREDIT);
    assert_int_equal(pass_write(fixture, 0x0a, 512, 0x7ffff0000 + 255 * 512).role, ROLE_CREDIT);
    assert_int_equal(pass_write(fixture, 0x0a, 64, 0x7ffff0000 + (1 << 20)).role, ROLE_DATA);
    assert_int_equal(pass_write(fixture, 0x0a, 64, 0x7ffff0000 - (1 << 20)).role, ROLE_DATA);
}

/* A direction that carries data gives no credits: small parts of messages look like some. */
static void test_no_credits_beside_data(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(pass_write(fixture, 0x0b, 4096, 0x10000).role, ROLE_DATA);
    assert_int_equal(pass_write(fixture, 0x0a, 64, 0x20000).role, ROLE_DATA);
    assert_int_equal(pass_write(fixture, 0x0a, 128, 0x30000).role, ROLE_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_to_last, setup, teardown),
        cmocka_unit_test_setup_teardown(test_go_back_n, setup, teardown),
        cmocka_unit_test_setup_teardown(test_last_frame_comes_late, setup, teardown),
        cmocka_unit_test_setup_teardown(test_first_frame_comes_late, setup, teardown),
        cmocka_unit_test_setup_teardown(test_began_before_us, setup, teardown),
        cmocka_unit_test_setup_teardown(test_whole_message_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_abandoned_when_stale, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
        cmocka_unit_test_setup_teardown(test_roles, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_queue_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_credits_lie_in_a_ring, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_credits_beside_data, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_first_frame_last, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overtaken_between_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_beginning_comes_late, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_beginning_that_was_never_seen, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_message", tests, NULL, NULL);
}
