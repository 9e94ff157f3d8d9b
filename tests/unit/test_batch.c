/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/batch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"

/* A batch that is put together byte by byte, as a stranger might. */
struct draft {
    uint8_t bytes[1024];
    size_t length;
};

static void draft_begin(struct draft *draft)
{
    memset(draft, 0, sizeof *draft);
    draft->length = sizeof(struct batch_header);
}

/* Appends a record header and `length_bytes` - 8 bytes of `fill`. */
static void draft_record(struct draft *draft, uint16_t kind, uint16_t length_bytes, uint8_t fill)
{
    const struct record_header header = {kind, length_bytes, 0};

    memcpy(draft->bytes + draft->length, &header, sizeof header);
    if (length_bytes > sizeof header)
        memset(draft->bytes + draft->length + sizeof header, fill, length_bytes - sizeof header);
    draft->length += length_bytes < sizeof header ? sizeof header : length_bytes;
}

static int draft_read(struct draft *draft, uint32_t count, struct batch *batch)
{
    const struct batch_header header = {
        .magic = BATCH_MAGIC,
        .version = BATCH_VERSION,
        .records_count = count,
        .records_bytes = (uint32_t)(draft->length - sizeof header),
    };

    memcpy(draft->bytes, &header, sizeof header);
    return batch_read(batch, draft->bytes, draft->length);
}

static void reads_what_was_written(void **state)
{
    uint8_t bytes[SCRATCH_BATCH_BYTES];
    struct batch batch;
    union record record;
    uint64_t unknown = 0;
    size_t length = scratch_batch(9, 1234, bytes);

    (void)state;
    assert_int_equal(batch_read(&batch, bytes, length), 0);
    assert_int_equal(batch.header.sequence, 9);
    assert_int_equal(batch.header.emitter_id, 7);
    assert_int_equal(batch_next(&batch, &record, &unknown), 1);
    assert_int_equal(record.header.kind, RECORD_HEARTBEAT);
    assert_int_equal(record.heartbeat.at_ns, 1234);
    assert_int_equal(batch_next(&batch, &record, &unknown), 0);
    assert_int_equal(unknown, 0);
}

static void refuses_every_shorter_or_longer_batch(void **state)
{
    uint8_t bytes[SCRATCH_BATCH_BYTES + 8] = {0};
    struct batch batch;
    size_t length = scratch_batch(0, 1, bytes);

    (void)state;
    for (size_t cut = 0; cut < length; cut++)
        assert_int_equal(batch_read(&batch, bytes, cut), -EBADMSG);
    assert_int_equal(batch_read(&batch, bytes, length), 0);
    assert_int_equal(batch_read(&batch, bytes, length + 8), -EBADMSG);
}

static void refuses_another_magic_or_version(void **state)
{
    uint8_t bytes[SCRATCH_BATCH_BYTES];
    struct batch batch;
    size_t length = scratch_batch(0, 1, bytes);

    (void)state;
    bytes[0] ^= 1;
    assert_int_equal(batch_read(&batch, bytes, length), -EBADMSG);
    bytes[0] ^= 1;
    bytes[4] = BATCH_VERSION + 1;
    assert_int_equal(batch_read(&batch, bytes, length), -EBADMSG);
}

static void skips_and_counts_unknown_kinds(void **state)
{
    struct draft draft;
    struct batch batch;
    union record record;
    uint64_t unknown = 5;

    (void)state;
    draft_begin(&draft);
    draft_record(&draft, 999, 8, 0);
    draft_record(&draft, RECORD_HEARTBEAT, 24, 1);
    draft_record(&draft, 1000, 64, 2);
    assert_int_equal(draft_read(&draft, 3, &batch), 0);
    assert_int_equal(batch_next(&batch, &record, &unknown), 1);
    assert_int_equal(record.header.kind, RECORD_HEARTBEAT);
    assert_int_equal(batch_next(&batch, &record, &unknown), 0);
    assert_int_equal(unknown, 7);
}

static void takes_the_known_part_of_a_longer_record(void **state)
{
    struct draft draft;
    struct batch batch;
    union record record;
    uint64_t unknown = 0;

    (void)state;
    memset(&record, 0xee, sizeof record);
    draft_begin(&draft);
    draft_record(&draft, RECORD_HEARTBEAT, 24 + 16, 1);
    draft_record(&draft, RECORD_HEARTBEAT, 24, 2);
    assert_int_equal(draft_read(&draft, 2, &batch), 0);
    assert_int_equal(batch_next(&batch, &record, &unknown), 1);
    assert_int_equal(record.heartbeat.at_ns, 0x0101010101010101);
    assert_int_equal(((uint8_t *)&record)[24], 0xee);
    assert_int_equal(batch_next(&batch, &record, &unknown), 1);
    assert_int_equal(record.heartbeat.at_ns, 0x0202020202020202);
}

static void refuses_bad_record_lengths(void **state)
{
    /* shorter than its kind; below a header; no multiple of 8; zero; beyond the batch */
    static const uint16_t lengths[] = {16, 4, 28, 0, 0xfff8};
    union record record;
    uint64_t unknown = 0;

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct draft draft;
        struct batch batch;
        draft_begin(&draft);
        draft_record(&draft, RECORD_HEARTBEAT, lengths[i] > 64 ? 24 : lengths[i], 1);
        memcpy(draft.bytes + sizeof(struct batch_header) + 2, &lengths[i], 2);
        assert_int_equal(draft_read(&draft, 1, &batch), 0);
        assert_int_equal(batch_next(&batch, &record, &unknown), -EBADMSG);
    }
}

static void refuses_a_wrong_count(void **state)
{
    struct draft draft;
    struct batch batch;
    union record record;
    uint64_t unknown = 0;

    (void)state;
    draft_begin(&draft);
    draft_record(&draft, RECORD_HEARTBEAT, 24, 1);
    assert_int_equal(draft_read(&draft, 2, &batch), 0);
    assert_int_equal(batch_next(&batch, &record, &unknown), 1);
    assert_int_equal(batch_next(&batch, &record, &unknown), -EBADMSG);
    assert_int_equal(draft_read(&draft, 0, &batch), 0);
    assert_int_equal(batch_next(&batch, &record, &unknown), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(refuses_every_shorter_or_longer_batch),
        cmocka_unit_test(refuses_another_magic_or_version),
        cmocka_unit_test(skips_and_counts_unknown_kinds),
        cmocka_unit_test(takes_the_known_part_of_a_longer_record),
        cmocka_unit_test(refuses_bad_record_lengths),
        cmocka_unit_test(refuses_a_wrong_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
