/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs of rank operations: bytes by arithmetic, what goes in comes out, how small they are, and bytes that are none. */
#include "wire/operation_run.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/batch.h"

#define HEADER sizeof(struct record_rank_operation_run)
#define MANY   4000

/* Rank 1 of 2, all-reduce number 0 of 64 bytes, given at 100 and over at 180: what was not seen is 0. */
static const struct record_rank_operation one = {
    .header = {RECORD_RANK_OPERATION, 224, 0},
    .communicator = {0xc0},
    .rank = 1,
    .ranks_count = 2,
    .operation = OPERATION_ALL_REDUCE,
    .buffer_bytes = 64,
    .expected_bytes = 64,
    .observed_bytes = 64,
    .received_bytes = 64,
    .enqueued_ns = 100,
    .host_ready_ns = 110,
    .first_data_ns = 130,
    .last_data_ns = 150,
    .active_ns = 20,
    .end_ns = 180,
};
static const uint8_t one_bytes[27] = {
    49,   0, 0, 0, 1, 0, 0, 0,                         /* kind, length_bytes, source: how many */
    0,                                                 /* a new slot */
    0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* communicator */
    2,    4,                                           /* rank 1, of 2: folded */
};

static uint32_t bits_of(const unsigned *bits, size_t count)
{
    uint32_t word = 0;

    for (size_t i = 0; i < count; i++)
        word |= 1u << bits[i];
    return word;
}

/*
 * Bits in the order of operation_field.def behind the two of zeros and device: 2 operation, 11 buffer, 15 enqueued, 16
 * host ready, 19 first data, 20 last data, 21 end; 23 active is what first and last data say, 24 is not: 0 - 20.
 * Unknown are held (bit 2 of the times), gpu ready (3) and received (7).
 */
static void bytes_follow_from_the_rules(void **state)
{
    static const unsigned which[] = {0, 2, 11, 15, 16, 19, 20, 21, 24};
    static const uint8_t rest[] = {
        0x8c,       /* zeros: 4 + 8 + 128 */
        2,          /* operation: all-reduce is 1, folded */
        0x80, 0x01, /* buffer: 64 more than before, folded 128 */
        0xc8, 0x01, /* enqueued: 100 after 0 */
        20,         /* host ready: 10 later */
        60,         /* first data: 30 after the call, the GPU is not known */
        40,         /* last data: 20 later */
        60,         /* end: 30 later */
        39,         /* active while receiving: 20 less than while sending */
    };
    uint8_t bytes[HEADER + OPERATION_CODE_BYTES_MAX] = {0}, expected[48] = {0};
    struct operation_coder coder;
    uint32_t word = bits_of(which, sizeof which / sizeof *which);

    (void)state;
    operation_coder_init(&coder);
    uint8_t *end = operation_coder_put(&coder, bytes + HEADER, &one);
    memcpy(expected, one_bytes, sizeof one_bytes);
    memcpy(expected + 27, &word, sizeof word);
    memcpy(expected + 31, rest, sizeof rest);
    size_t whole = operation_run_end(bytes, (size_t)(end - bytes), 1);
    expected[2] = (uint8_t)((31 + sizeof rest + 7) / 8 * 8);
    assert_int_equal(whole, expected[2]);
    assert_memory_equal(bytes, expected, whole);
    /* The same once more, 1000 later: slot 1, the call, and each time that is told by the call's distance. */
    struct record_rank_operation again = one;
    again.sequence++;
    again.enqueued_ns += 1000;
    again.host_ready_ns += 1000;
    again.first_data_ns += 1000;
    again.last_data_ns += 1000;
    again.end_ns += 1000;
    assert_int_equal(operation_coder_put(&coder, bytes, &again) - bytes, 1 + 4 + 2 + 4 + 1);
}

static uint64_t chance(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed >> 11;
}

/* Mostly like others, sometimes anything at all. */
static struct record_rank_operation any(uint64_t *seed)
{
    struct record_rank_operation record = {.header = {RECORD_RANK_OPERATION, 224, 0}};
    unsigned wild = chance(seed) % 8;
    uint8_t *bytes = (uint8_t *)&record + sizeof record.header;

    for (size_t i = 0; i < sizeof record - sizeof record.header; i++)
        bytes[i] = wild == 0 ? (uint8_t)chance(seed) : wild == 1 ? 0xff : (uint8_t)(chance(seed) % 64 == 0);
    memset(record.reserved, 0, sizeof record.reserved);
    if (wild > 2) {
        memset(record.communicator, 0, sizeof record.communicator);
        record.communicator[0] = (uint8_t)(chance(seed) % 3);
        record.rank = (int32_t)(chance(seed) % 20); /* more than there are slots, with three communicators */
        record.ranks_count = 20;
        record.enqueued_ns = 5000000000ULL + chance(seed) % 1000000;
        record.first_data_ns = chance(seed) % 2 == 0 ? 0 : record.enqueued_ns + chance(seed) % 10000;
    }
    return record;
}

static void what_goes_in_comes_out(void **state)
{
    static uint8_t bytes[MANY * OPERATION_CODE_BYTES_MAX];
    static struct record_rank_operation records[MANY];
    struct operation_coder coder;
    struct cursor cursor;
    uint64_t seed = 7;
    uint8_t *at = bytes;

    (void)state;
    operation_coder_init(&coder);
    for (size_t i = 0; i < MANY; i++) {
        records[i] = any(&seed);
        uint8_t *next = operation_coder_put(&coder, at, &records[i]);
        assert_in_range(next - at, 5, OPERATION_CODE_BYTES_MAX);
        at = next;
    }
    operation_coder_init(&coder);
    cursor_init(&cursor, bytes, (size_t)(at - bytes));
    for (size_t i = 0; i < MANY; i++) {
        struct record_rank_operation back;
        assert_true(operation_coder_take(&coder, &cursor, &back));
        assert_memory_equal(&back, &records[i], sizeof back);
    }
    assert_int_equal(cursor_left(&cursor), 0);
}

/* Eight ranks of a node, steps of 30 operations of two communicators, each of another size, everything known. */
static void a_step_of_30_operations_is_small(void **state)
{
    enum { RANKS = 8, STEPS = 10, OPERATIONS = 30 };
    static uint8_t bytes[RANKS * STEPS * OPERATIONS * OPERATION_CODE_BYTES_MAX];
    struct operation_coder coder;
    uint64_t seed = 3;
    uint8_t *at = bytes;

    (void)state;
    operation_coder_init(&coder);
    for (uint64_t i = 0; i < (uint64_t)RANKS * STEPS * OPERATIONS; i++) {
        uint64_t rank = i % RANKS, n = i / RANKS, place = n % OPERATIONS;
        uint64_t enqueued = 1000000000000ULL + n * 3000000 + chance(&seed) % 500000;
        uint64_t held = enqueued + 50000 + chance(&seed) % 50000, first = held + chance(&seed) % 1000000;
        uint64_t last = first + 400000 + chance(&seed) % 100000;
        struct record_rank_operation record = {
            .communicator = {(uint8_t)(place % 2)},
            .sequence = n / 2,
            .rank = (int32_t)rank,
            .ranks_count = 4096,
            .operation = (uint8_t)(place % 3),
            .buffer_bytes = (place + 1) * 12345678,
            .expected_bytes = (place + 1) * 12345678 / 4096 * 8190,
            .observed_bytes = (place + 1) * 12345678 / 4096 * 8190,
            .received_bytes = (place + 1) * 12345678 / 4096 * 8190,
            .enqueued_ns = enqueued,
            .host_ready_ns = enqueued + 20000 + chance(&seed) % 10000,
            .held_ns = held,
            .gpu_ready_ns = first,
            .first_data_ns = first,
            .last_data_ns = last,
            .end_ns = last + chance(&seed) % 5000,
            .received_ns = last - chance(&seed) % 5000,
            .active_ns = 300000 + chance(&seed) % 100000,
            .receive_active_ns = 300000 + chance(&seed) % 100000,
            .bound_ns = 20000 + chance(&seed) % 10,
            .frames_bound_ns = 4000,
            .device = "mlx5_0/1",
        };
        at = operation_coder_put(&coder, at, &record);
    }
    size_t a_rank_and_step = (size_t)(at - bytes) / (RANKS * STEPS);
    print_message("# %zu bytes a rank and step, %zu an operation\n", a_rank_and_step, a_rank_and_step / OPERATIONS);
    assert_true(a_rank_and_step < 2700);
}

static size_t write_run(uint8_t *bytes, uint32_t count)
{
    struct operation_coder coder;
    uint64_t seed = 11;
    uint8_t *at = bytes + HEADER;

    operation_coder_init(&coder);
    for (uint32_t i = 0; i < count; i++) {
        struct record_rank_operation record = any(&seed);
        at = operation_coder_put(&coder, at, &record);
    }
    return operation_run_end(bytes, (size_t)(at - bytes), count);
}

static size_t read_run(const uint8_t *bytes, size_t length_bytes, int *end)
{
    static struct operation_run run;
    struct record_rank_operation_run head;
    struct record_rank_operation record;
    size_t count = 0;

    memcpy(&head, bytes, sizeof head);
    operation_coder_init(&run.coder);
    operation_run_begin(&run, &head, bytes + HEADER, length_bytes - HEADER);
    while ((*end = operation_run_next(&run, &record)) == 1)
        count++;
    return count;
}

static void what_is_cut_is_refused(void **state)
{
    enum { COUNT = 20 };
    static uint8_t bytes[HEADER + COUNT * OPERATION_CODE_BYTES_MAX];
    size_t length = write_run(bytes, COUNT);
    int end;

    (void)state;
    assert_int_equal(read_run(bytes, length, &end), COUNT);
    assert_int_equal(end, 0);
    for (size_t cut = HEADER; cut + 8 <= length; cut++) {
        assert_true(read_run(bytes, cut, &end) < COUNT);
        assert_int_equal(end, -EBADMSG);
    }
    for (size_t i = HEADER; i < length; i++) { /* whatever it reads, it ends */
        bytes[i] ^= 0x81;
        assert_true(read_run(bytes, length, &end) <= COUNT);
        bytes[i] ^= 0x81;
    }
}

static void a_batch_hands_them_out(void **state)
{
    static uint8_t bytes[sizeof(struct batch_header) + 2 * (HEADER + 10 * OPERATION_CODE_BYTES_MAX)];
    size_t first = write_run(bytes + sizeof(struct batch_header), 10);
    struct batch_header header = {.magic = BATCH_MAGIC, .version = BATCH_VERSION, .records_count = 1};
    union record record;
    struct batch batch;
    uint64_t unknown = 0, seed = 11;

    (void)state;
    header.records_bytes = (uint32_t)first;
    memcpy(bytes, &header, sizeof header);
    assert_int_equal(batch_read(&batch, bytes, sizeof header + first), 0);
    for (int i = 0; i < 10; i++) {
        struct record_rank_operation expected = any(&seed);
        assert_int_equal(batch_next(&batch, &record, &unknown), 1);
        assert_memory_equal(&record.rank_operation, &expected, sizeof expected);
    }
    assert_int_equal(batch_next(&batch, &record, &unknown), 0);
    assert_int_equal(unknown, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_follow_from_the_rules),      cmocka_unit_test(what_goes_in_comes_out),
        cmocka_unit_test(a_step_of_30_operations_is_small), cmocka_unit_test(what_is_cut_is_refused),
        cmocka_unit_test(a_batch_hands_them_out),
    };
    return cmocka_run_group_tests_name("operation_run", tests, NULL, NULL);
}
