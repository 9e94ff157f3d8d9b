/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs of messages: bytes by arithmetic, what goes in comes out, and bytes that are none of ours. */
#include "wire/message_run.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"
#include "wire/batch.h"
#include "wire/capture.h"
#include "wire/emitter.h"

#define HEADER sizeof(struct record_message_run)

/* Two of 512 KiB in 128 frames, one behind the other. Number by number: seven bits a byte, the lowest first. */
static const struct record_message two[2] = {
    {.header = {RECORD_MESSAGE, 40, 3},
     .first_ns = 1000,
     .duration_ns = 500,
     .payload_bytes = 524288,
     .frames = 128,
     .place = 0x12345678,
     .role = ROLE_DATA,
     .opcode = 8,
     .flags = MESSAGE_PLACED},
    {.header = {RECORD_MESSAGE, 40, 4},
     .first_ns = 2000,
     .duration_ns = 500,
     .payload_bytes = 524288,
     .frames = 128,
     .place = 0x123c5678,
     .role = ROLE_DATA,
     .opcode = 8,
     .flags = MESSAGE_PLACED},
};
static const uint8_t two_bytes[40] = {
    29,   0,    40,   0,    2,    0,    0, 0,    /* kind, length_bytes, source: how many */
    0xb9, 3,                                     /* role 1; payload 8, frames 16, look 32, place 128; flow */
    0xb8, 0x17, 0xf4, 0x03,                      /* ends 1500 after 0: folded 3000; lasts 500 */
    0x80, 0x80, 0x20, 0x80, 0x01,                /* 524288, 128 */
    8,    16,   0x78, 0x56, 0x34, 0x12,          /* opcode, flags, place */
    0x81, 4,    0xd0, 0x0f, 0xf4, 0x03,          /* place differs; ends 1000 later: folded 2000; lasts 500 */
    0x78, 0x56, 0x3c, 0x12, 0,    0,    0, 0, 0, /* place, and whole words */
};

static size_t write_two(uint8_t bytes[64])
{
    struct message_coder coder = {0};
    uint8_t *at = bytes + HEADER;

    for (int i = 0; i < 2; i++)
        at = message_coder_put(&coder, at, &two[i]);
    return message_run_end(bytes, (size_t)(at - bytes), 2);
}

static void begin(struct message_run *run, const uint8_t *bytes, size_t length_bytes)
{
    struct record_message_run record;

    memset(run, 0, sizeof *run);
    memcpy(&record, bytes, sizeof record);
    message_run_begin(run, &record, bytes + HEADER, length_bytes - HEADER);
}

static void test_a_run_is_these_bytes(void **state)
{
    struct record_message message;
    struct message_run run;
    uint8_t bytes[64];

    (void)state;
    assert_int_equal(write_two(bytes), sizeof two_bytes);
    assert_memory_equal(bytes, two_bytes, sizeof two_bytes);
    begin(&run, two_bytes, sizeof two_bytes);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(message_run_next(&run, &message), 1);
        assert_memory_equal(&message, &two[i], sizeof message);
    }
    assert_int_equal(message_run_next(&run, &message), 0);
}

static void test_damage_is_found(void **state)
{
    struct record_message message;
    struct message_run run;
    uint8_t bytes[sizeof two_bytes + 8] = {0};

    (void)state;
    for (size_t length = HEADER; length < sizeof two_bytes - 5; length++) {
        begin(&run, two_bytes, length);
        int result;
        while ((result = message_run_next(&run, &message)) == 1) {
        }
        assert_int_equal(result, -EBADMSG);
    }
    memcpy(bytes, two_bytes, sizeof two_bytes);
    begin(&run, bytes, sizeof bytes); /* more than whole words behind it */
    assert_int_equal(message_run_next(&run, &message), 1);
    assert_int_equal(message_run_next(&run, &message), -EBADMSG);
    bytes[sizeof two_bytes - 1] = 1; /* not zeros */
    begin(&run, bytes, sizeof two_bytes);
    assert_int_equal(message_run_next(&run, &message), 1);
    assert_int_equal(message_run_next(&run, &message), -EBADMSG);
}

/* A flow of 33 bits, an end of 65 bits, flags of 17 bits: numbers that are none of a message. */
static void test_numbers_that_do_not_fit(void **state)
{
    static const uint8_t flow[] = {1, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 0};
    static const uint8_t end[] = {1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0};
    static const uint8_t endless[] = {1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0, 0};
    static const uint8_t flags[] = {0x21, 1, 0, 0, 8, 0x80, 0x80, 0x04};
    static const uint8_t fits[] = {0x21, 1, 0, 0, 8, 0xff, 0xff, 0x03};
    const struct {
        const uint8_t *bytes;
        size_t length_bytes;
        bool is_good;
    } cases[] = {{flow, sizeof flow, false},
                 {end, sizeof end, false},
                 {endless, sizeof endless, false},
                 {flags, sizeof flags, false},
                 {fits, sizeof fits, true}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct message_coder coder = {0};
        struct record_message message;
        struct cursor cursor;
        cursor_init(&cursor, cases[i].bytes, cases[i].length_bytes);
        assert_int_equal(message_coder_take(&coder, &cursor, &message), cases[i].is_good);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Any value in any field, extremes often. */
static uint64_t odd(uint64_t *state)
{
    static const uint64_t extremes[] = {0, 1, UINT64_MAX, UINT32_MAX, 1ull << 63, 127, 128};
    uint64_t random = next_random(state);

    return random % 3 == 0 ? extremes[random / 3 % 7] : random;
}

static struct record_message make_odd(uint64_t *state)
{
    return (struct record_message){.header = {RECORD_MESSAGE, sizeof(struct record_message), (uint32_t)odd(state)},
                                   .first_ns = odd(state),
                                   .duration_ns = (uint32_t)odd(state),
                                   .payload_bytes = (uint32_t)odd(state),
                                   .frames = (uint32_t)odd(state),
                                   .immediate = (uint32_t)odd(state),
                                   .place = (uint32_t)odd(state),
                                   .role = odd(state) & 7,
                                   .opcode = (uint8_t)odd(state),
                                   .flags = (uint16_t)odd(state)};
}

static void test_whatever_goes_in_comes_out(void **state)
{
    struct message_coder put = {0}, take = {0};
    uint8_t bytes[MESSAGE_CODE_BYTES_MAX];
    uint64_t seed = 88172645463325252u;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        struct record_message message = make_odd(&seed), back;
        struct cursor cursor;
        size_t length = (size_t)(message_coder_put(&put, bytes, &message) - bytes);
        assert_true(length <= sizeof bytes);
        cursor_init(&cursor, bytes, length);
        assert_true(message_coder_take(&take, &cursor, &back));
        assert_int_equal(cursor_left(&cursor), 0);
        back.header.kind = RECORD_MESSAGE;
        back.header.length_bytes = sizeof back;
        assert_memory_equal(&back, &message, sizeof back);
        assert_memory_equal(&put, &take, sizeof put);
    }
}

/* Through an emitter, other records between them, over many batches: the same messages in the same order. */
static void test_through_batches(void **state)
{
    const char *path = scratch_path(state, "", "run.qps");
    const struct emitter_options options = {.kind = EMITTER_NIC, .instance = "run", .record_path = path};
    const uint32_t count = 200000;
    uint64_t put_seed = 4711, take_seed = 4711, unknown = 0;
    uint32_t messages = 0, windows = 0, batches = 0;
    struct emitter *emitter;
    struct capture_reader *reader;
    const void *bytes;
    size_t length;

    assert_int_equal(emitter_open(&emitter, &options), 0);
    for (uint32_t i = 0; i < count; i++) {
        struct record_message message = make_odd(&put_seed);
        struct record_window window = {.header.source = 1, .index = i};
        assert_in_range(emitter_add_message(emitter, &message), 4, MESSAGE_CODE_BYTES_MAX);
        if (i % 9001 == 0)
            emitter_add(emitter, RECORD_WINDOW, &window);
    }
    assert_int_equal(emitter_close(&emitter), 0);
    assert_int_equal(capture_reader_open(&reader, path), 0);
    while (capture_read(reader, &bytes, &length) == 1) {
        struct batch batch;
        union record record;
        int result;
        assert_int_equal(batch_read(&batch, bytes, length), 0);
        batches++;
        while ((result = batch_next(&batch, &record, &unknown)) == 1) {
            windows += record.header.kind == RECORD_WINDOW;
            if (record.header.kind != RECORD_MESSAGE)
                continue;
            struct record_message wanted = make_odd(&take_seed);
            assert_memory_equal(&record.message, &wanted, sizeof wanted);
            messages++;
        }
        assert_int_equal(result, 0);
    }
    capture_reader_close(&reader);
    assert_int_equal(messages, count);
    assert_int_equal(windows, count / 9001 + 1);
    assert_true(batches > 10);
}

/*
 * 64 flows, 400 Gb/s both ways: 200 000 messages of 512 KiB a second, and as many credits; each buffer of a ring of its
 * own. Of 3 MB/s there are 15 bytes for a message.
 */
static void test_a_busy_second(void **state)
{
    struct message_coder coder = {0};
    uint8_t bytes[MESSAGE_CODE_BYTES_MAX];
    size_t data = 0, credits = 0;

    (void)state;
    for (uint32_t i = 0; i < 200000; i++) {
        uint64_t end_ns = 5000ull * i + i * 2654435761u % 4000;
        struct record_message message = {.header.source = 1 + 2 * (i % 64),
                                         .first_ns = 7000000000000 + end_ns,
                                         .duration_ns = 640000 + i * 40503u % 1000,
                                         .payload_bytes = 524288,
                                         .frames = 129,
                                         .immediate = 524288,
                                         .place = i % 64 * 0x1000000 + i / 64 % 8 * 524288,
                                         .role = ROLE_DATA,
                                         .opcode = 9,
                                         .flags = MESSAGE_PLACED | MESSAGE_IMMEDIATE};
        data += (size_t)(message_coder_put(&coder, bytes, &message) - bytes);
        message = (struct record_message){.header.source = 2 + 2 * (i % 64),
                                          .first_ns = message.first_ns + 500,
                                          .payload_bytes = 64,
                                          .frames = 1,
                                          .place = 0x77000000 + i / 64 % 256 * 64 + i % 64 * 0x10000,
                                          .role = ROLE_CREDIT,
                                          .opcode = 10,
                                          .flags = MESSAGE_PLACED};
        credits += (size_t)(message_coder_put(&coder, bytes, &message) - bytes);
    }
    assert_true(data < 3000000 && credits < 3000000);
    assert_true(data > 8 * 200000); /* a place of 4 bytes, and what says when */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_is_these_bytes),
        cmocka_unit_test(test_damage_is_found),
        cmocka_unit_test(test_numbers_that_do_not_fit),
        cmocka_unit_test(test_whatever_goes_in_comes_out),
        cmocka_unit_test_setup_teardown(test_through_batches, scratch_setup, scratch_teardown),
        cmocka_unit_test(test_a_busy_second),
    };
    return cmocka_run_group_tests_name("message_run", tests, NULL, NULL);
}
