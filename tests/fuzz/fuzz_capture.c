/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a capture file. Checked: each batch handed out is whole; the second reading gives the same; and where a
 * writer agrees to append, what could be read before is still read, with the new batch behind a file that was whole.
 */
#include "wire/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/log.h"
#include "wire/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check_batch(const void *bytes, size_t length)
{
    struct batch_header header;

    if (length < sizeof header)
        abort();
    memcpy(&header, bytes, sizeof header);
    if (header.magic != BATCH_MAGIC || header.records_bytes != length - sizeof header)
        abort();
}

/* How many batches there are; *result is what ended the reading. */
static size_t count_batches(const char *path, int *result)
{
    struct capture_reader *reader;
    const void *bytes;
    size_t length, count = 0;

    *result = capture_reader_open(&reader, path);
    if (*result != 0)
        return 0;
    while ((*result = capture_read(reader, &bytes, &length)) == 1) {
        check_batch(bytes, length);
        count++;
    }
    capture_reader_close(&reader);
    return count;
}

static void append_batch(struct capture_writer *writer)
{
    const struct batch_header header = {.magic = BATCH_MAGIC, .version = BATCH_VERSION};

    if (capture_write(writer, &header, sizeof header) != 0 || capture_writer_close(&writer) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct capture_writer *writer;
    char path[64];
    int before_result, after_result;
    int descriptor = memfd_create("capture", MFD_CLOEXEC);

    if (descriptor < 0 || write(descriptor, bytes, length_bytes) != (ssize_t)length_bytes)
        return -1;
    log_init("fuzz_capture", LOG_NONE);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    size_t before = count_batches(path, &before_result);
    if (length_bytes > 0 && capture_writer_open(&writer, path, 1) == 0) {
        append_batch(writer);
        size_t after = count_batches(path, &after_result);
        if (after < before || (before_result == 0 && (after != before + 1 || after_result != 0)))
            abort();
    }
    close(descriptor);
    return 0;
}
