/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"
#include "wire/batch.h"

#define FILE_HEADER_BYTES 16

static struct capture_writer *open_writer(const char *path, int append)
{
    struct capture_writer *writer;

    assert_int_equal(capture_writer_open(&writer, path, append), 0);
    return writer;
}

/* Batches first..last-1, a frame each. */
static void write_batches(struct capture_writer *writer, uint64_t first, uint64_t last)
{
    uint8_t bytes[SCRATCH_BATCH_BYTES];

    for (uint64_t i = first; i < last; i++) {
        size_t length = scratch_batch(i, 1000 + i, bytes);
        assert_int_equal(capture_write(writer, bytes, length), 0);
        assert_int_equal(capture_flush(writer), 0);
    }
}

static void write_file(const char *path, uint64_t count)
{
    struct capture_writer *writer = open_writer(path, 0);

    write_batches(writer, 0, count);
    assert_int_equal(capture_writer_close(&writer), 0);
    assert_null(writer);
}

/* Reads to the end: how many batches came, each the next of write_batches; *result is what ended it. */
static uint64_t count_batches(const char *path, int *result)
{
    struct capture_reader *reader;
    const void *bytes;
    size_t length;
    uint64_t count = 0;

    *result = capture_reader_open(&reader, path);
    if (*result != 0)
        return 0;
    while ((*result = capture_read(reader, &bytes, &length)) == 1) {
        uint8_t expected[SCRATCH_BATCH_BYTES];
        assert_int_equal(length, scratch_batch(count, 1000 + count, expected));
        assert_memory_equal(bytes, expected, length);
        count++;
    }
    if (*result < 0)
        assert_int_equal(capture_read(reader, &bytes, &length), *result);
    capture_reader_close(&reader);
    return count;
}

static void reads_what_was_written(void **state)
{
    const char *path = scratch_path(state, "", "plain.qps");
    int result;

    write_file(path, 5);
    assert_int_equal(count_batches(path, &result), 5);
    assert_int_equal(result, 0);
}

static void packs_batches_into_frames(void **state)
{
    const char *path = scratch_path(state, "", "packed.qps");
    struct capture_writer *writer = open_writer(path, 0);
    uint8_t bytes[SCRATCH_BATCH_BYTES];
    struct stat status;
    int result;

    for (uint64_t i = 0; i < 100000; i++)
        assert_int_equal(capture_write(writer, bytes, scratch_batch(i, 1000 + i, bytes)), 0);
    assert_int_equal(capture_writer_close(&writer), 0);
    assert_int_equal(count_batches(path, &result), 100000);
    assert_int_equal(result, 0);
    assert_int_equal(stat(path, &status), 0);
    assert_in_range(status.st_size, 1, 100000 * SCRATCH_BATCH_BYTES / 4);
}

static void takes_the_largest_batch_and_no_larger(void **state)
{
    const char *path = scratch_path(state, "", "large.qps");
    struct capture_writer *writer = open_writer(path, 0);
    static uint8_t bytes[BATCH_BYTES_MAX + 8];
    const struct batch_header header = {.magic = BATCH_MAGIC, .version = 1, .records_bytes = BATCH_BYTES_MAX - 48};
    struct capture_reader *reader;
    const void *read;
    size_t length;

    for (size_t i = 0; i < sizeof bytes; i++) /* does not compress */
        bytes[i] = (uint8_t)(rand() >> 7);
    memcpy(bytes, &header, sizeof header);
    for (int i = 0; i < 3; i++)
        assert_int_equal(capture_write(writer, bytes, BATCH_BYTES_MAX), 0);
    assert_int_equal(capture_write(writer, bytes, sizeof bytes), -EINVAL);
    assert_int_equal(capture_write(writer, bytes, 47), -EINVAL);
    assert_int_equal(capture_writer_close(&writer), 0);
    assert_int_equal(capture_reader_open(&reader, path), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(capture_read(reader, &read, &length), 1);
        assert_int_equal(length, BATCH_BYTES_MAX);
        assert_memory_equal(read, bytes, length);
    }
    assert_int_equal(capture_read(reader, &read, &length), 0);
    capture_reader_close(&reader);
}

/* The offset behind each frame, found by hand: 16 bytes, then (length, that many bytes) again and again. */
static size_t frame_ends(const uint8_t *file, size_t file_bytes, size_t *ends)
{
    size_t count = 0;

    for (size_t at = FILE_HEADER_BYTES; at < file_bytes; ends[count++] = at)
        at += 4 + (size_t)(file[at] | file[at + 1] << 8 | file[at + 2] << 16 | file[at + 3] << 24);
    return count;
}

static void reads_up_to_a_cut_at_every_byte(void **state)
{
    const char *path = scratch_path(state, "", "whole.qps"), *cut_path = scratch_path(state, "", "cut.qps");
    size_t file_bytes, ends[8];
    int result;

    write_file(path, 4);
    uint8_t *file = scratch_read(path, &file_bytes);
    assert_int_equal(frame_ends(file, file_bytes, ends), 4);
    assert_int_equal(ends[3], file_bytes);
    for (size_t cut = 0; cut <= file_bytes; cut++) {
        uint64_t whole = 0;
        while (whole < 4 && ends[whole] <= cut)
            whole++;
        bool is_clean = cut == FILE_HEADER_BYTES || (whole > 0 && ends[whole - 1] == cut);
        scratch_write(cut_path, file, cut, 0600);
        assert_int_equal(count_batches(cut_path, &result), whole);
        assert_int_equal(result, is_clean ? 0 : -EBADMSG);
    }
    free(file);
}

/*
 * Whichever bit is flipped: it is noticed, or all that is read is right all the same (count_batches compares). The
 * latter are the few bits that RFC 8878 leaves unused or reserved, and its single-segment flag: five a frame here.
 */
static void no_flipped_bit_makes_a_wrong_batch(void **state)
{
    const char *path = scratch_path(state, "", "good.qps"), *bad_path = scratch_path(state, "", "bad.qps");
    size_t file_bytes, ends[8];
    unsigned unnoticed = 0;
    int result;

    write_file(path, 2);
    uint8_t *file = scratch_read(path, &file_bytes);
    assert_int_equal(frame_ends(file, file_bytes, ends), 2);
    for (size_t bit = 0; bit < 8 * file_bytes; bit++) {
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
        scratch_write(bad_path, file, file_bytes, 0600);
        uint64_t count = count_batches(bad_path, &result);
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (result == 0) {
            assert_int_equal(count, 2);
            unnoticed++;
            continue;
        }
        assert_int_equal(result, -EBADMSG);
        assert_int_equal(count, bit / 8 < ends[0] ? 0 : 1);
    }
    assert_in_range(unnoticed, 0, 10);
    free(file);
}

static void refuses_other_files(void **state)
{
    const char *path = scratch_path(state, "", "other");
    struct capture_reader *reader;

    assert_int_equal(capture_reader_open(&reader, scratch_path(state, "", "none")), -ENOENT);
    scratch_write(path, "", 0, 0600);
    assert_int_equal(capture_reader_open(&reader, path), -EBADMSG);
    scratch_write(path, "\xd4\xc3\xb2\xa1\x02\x00\x04\x00 a pcap file, not ours", 30, 0600);
    assert_int_equal(capture_reader_open(&reader, path), -EBADMSG);
    scratch_write(path, "QPSCAPT\n\x02\0\0\0\0\0\0\0", 16, 0600); /* a later version */
    assert_int_equal(capture_reader_open(&reader, path), -EBADMSG);
}

static void starts_anew_or_appends(void **state)
{
    const char *path = scratch_path(state, "", "append.qps");
    int result;

    write_file(path, 3);
    struct capture_writer *writer = open_writer(path, 1);
    write_batches(writer, 3, 6);
    assert_int_equal(capture_writer_close(&writer), 0);
    assert_int_equal(count_batches(path, &result), 6);
    assert_int_equal(result, 0);
    write_file(path, 2);
    assert_int_equal(count_batches(path, &result), 2);
    writer = open_writer(scratch_path(state, "", "new.qps"), 1);
    write_batches(writer, 0, 1);
    assert_int_equal(capture_writer_close(&writer), 0);
    assert_int_equal(count_batches(scratch_path(state, "", "new.qps"), &result), 1);
}

static void appends_after_a_cut_at_every_byte(void **state)
{
    const char *path = scratch_path(state, "", "base.qps"), *cut_path = scratch_path(state, "", "again.qps");
    size_t file_bytes, ends[8];
    int result;

    write_file(path, 3);
    uint8_t *file = scratch_read(path, &file_bytes);
    frame_ends(file, file_bytes, ends);
    for (size_t cut = ends[1]; cut < file_bytes; cut++) {
        scratch_write(cut_path, file, cut, 0600);
        struct capture_writer *writer = open_writer(cut_path, 1);
        write_batches(writer, 2, 4);
        assert_int_equal(capture_writer_close(&writer), 0);
        assert_int_equal(count_batches(cut_path, &result), 4);
        assert_int_equal(result, 0);
    }
    free(file);
}

static void does_not_append_to_what_is_not_ours(void **state)
{
    const char *path = scratch_path(state, "", "notes.txt");
    struct capture_writer *writer;
    size_t length;

    scratch_write(path, "dear diary, today", 17, 0600);
    assert_int_equal(capture_writer_open(&writer, path, 1), -EBADMSG);
    uint8_t *text = scratch_read(path, &length);
    assert_int_equal(length, 17);
    assert_memory_equal(text, "dear diary, today", 17);
    free(text);
}

/* Damage with much behind it is not a cut end: nothing may be thrown away. */
static void does_not_cut_good_frames_away(void **state)
{
    const char *path = scratch_path(state, "", "hurt.qps");
    struct capture_writer *writer = open_writer(path, 0);
    static uint8_t bytes[BATCH_BYTES_MAX];
    const struct batch_header header = {.magic = BATCH_MAGIC, .version = 1, .records_bytes = BATCH_BYTES_MAX - 48};
    size_t file_bytes, after_bytes;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(rand() >> 7);
    memcpy(bytes, &header, sizeof header);
    for (int i = 0; i < 4; i++)
        assert_int_equal(capture_write(writer, bytes, sizeof bytes), 0);
    assert_int_equal(capture_writer_close(&writer), 0);
    uint8_t *file = scratch_read(path, &file_bytes);
    file[FILE_HEADER_BYTES + 3] = 0xff;
    scratch_write(path, file, file_bytes, 0600);
    assert_int_equal(capture_writer_open(&writer, path, 1), -EBADMSG);
    free(file);
    free(scratch_read(path, &after_bytes));
    assert_int_equal(after_bytes, file_bytes);
}

static void keeps_a_second_writer_out(void **state)
{
    const char *path = scratch_path(state, "", "shared.qps");
    struct capture_writer *writer = open_writer(path, 0), *second;
    int result;

    write_batches(writer, 0, 2);
    assert_int_equal(capture_writer_open(&second, path, 0), -EBUSY);
    write_batches(writer, 2, 3);
    assert_int_equal(capture_writer_close(&writer), 0);
    assert_int_equal(count_batches(path, &result), 3);
}

/* The batches from *written on, a frame each, until one is not taken; returns why. */
static int write_until_refused(struct capture_writer *writer, uint64_t *written)
{
    uint8_t bytes[SCRATCH_BATCH_BYTES];
    int error = 0;

    while (error == 0 && *written < 100000) {
        capture_write(writer, bytes, scratch_batch(*written, 1000 + *written, bytes));
        error = capture_flush(writer);
        *written += error == 0;
    }
    return error;
}

/* A file that may not grow: an error, no signal, whole frames up to there; and it goes on when it may grow again. */
static void survives_a_size_limit(void **state)
{
    const char *path = scratch_path(state, "", "limit.qps");
    struct capture_writer *writer = open_writer(path, 0);
    struct rlimit before, limit;
    struct stat status;
    uint64_t written = 0;
    int result, first_error, next_error;

    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 500;
    setrlimit(RLIMIT_FSIZE, &limit);
    first_error = write_until_refused(writer, &written);
    next_error = write_until_refused(writer, &written);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(capture_lost_batches(writer), 2);
    assert_int_equal(first_error, -EFBIG);
    assert_int_equal(next_error, -EFBIG);
    assert_in_range(written, 2, 20);
    assert_int_equal(stat(path, &status), 0);
    assert_in_range(status.st_size, 0, 500);
    assert_int_equal(count_batches(path, &result), written);
    assert_int_equal(result, 0);
    write_batches(writer, written, written + 1);
    assert_int_equal(capture_writer_close(&writer), -EFBIG);
    assert_int_equal(count_batches(path, &result), written + 1);
}

static int unmount_disk(void **state)
{
    umount(scratch_path(state, "", "disk"));
    return 0;
}

static void survives_a_full_disk(void **state)
{
    const char *directory = scratch_path(state, "", "disk");
    const char *path = scratch_path(state, "", "disk/full.qps"), *ballast = scratch_path(state, "", "disk/ballast");
    static uint8_t bytes[65536];
    uint64_t written = 0;
    int result;

    mkdir(directory, 0700);
    if (mount("qpscope-test", directory, "tmpfs", 0, "size=128k") != 0) {
        print_message("mounting a tmpfs needs root: a size limit stands in (survives_a_size_limit)\n");
        skip();
    }
    struct capture_writer *writer = open_writer(path, 0);
    scratch_write(ballast, bytes, sizeof bytes, 0600);
    assert_int_equal(write_until_refused(writer, &written), -ENOSPC);
    assert_int_equal(count_batches(path, &result), written);
    assert_int_equal(result, 0);
    unlink(ballast);
    write_batches(writer, written, written + 1);
    assert_int_equal(capture_writer_close(&writer), -ENOSPC);
    assert_int_equal(count_batches(path, &result), written + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(packs_batches_into_frames),
        cmocka_unit_test(takes_the_largest_batch_and_no_larger),
        cmocka_unit_test(reads_up_to_a_cut_at_every_byte),
        cmocka_unit_test(no_flipped_bit_makes_a_wrong_batch),
        cmocka_unit_test(refuses_other_files),
        cmocka_unit_test(starts_anew_or_appends),
        cmocka_unit_test(appends_after_a_cut_at_every_byte),
        cmocka_unit_test(does_not_append_to_what_is_not_ours),
        cmocka_unit_test(does_not_cut_good_frames_away),
        cmocka_unit_test(keeps_a_second_writer_out),
        cmocka_unit_test(survives_a_size_limit),
        cmocka_unit_test_teardown(survives_a_full_disk, unmount_disk),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
