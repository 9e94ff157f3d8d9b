/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files and batches for the tests. Invariant: nothing is left behind outside the directory that setup made.
 */
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

int scratch_setup(void **state)
{
    char template[] = "/tmp/qpscope-test-XXXXXX";

    if (mkdtemp(template) == NULL)
        return -1;
    *state = strdup(template);
    return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

int scratch_teardown(void **state)
{
    nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return 0;
}

const char *scratch_path(void **state, const char *prefix, const char *name)
{
    static char paths[16][256];
    static unsigned next;
    char *path = paths[next++ % 16];

    snprintf(path, sizeof paths[0], "%s%s/%s", prefix, (const char *)*state, name);
    return path;
}

void scratch_write(const char *path, const void *bytes, size_t length_bytes, unsigned mode)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

    assert_true(descriptor >= 0);
    assert_int_equal(fchmod(descriptor, mode), 0);
    assert_int_equal(write(descriptor, bytes, length_bytes), length_bytes);
    close(descriptor);
}

uint8_t *scratch_read(const char *path, size_t *length_bytes)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY);

    assert_true(descriptor >= 0);
    assert_int_equal(fstat(descriptor, &status), 0);
    uint8_t *bytes = malloc((size_t)status.st_size + 1);
    assert_non_null(bytes);
    assert_int_equal(read(descriptor, bytes, (size_t)status.st_size), status.st_size);
    close(descriptor);
    *length_bytes = (size_t)status.st_size;
    return bytes;
}

size_t scratch_batch(uint64_t sequence, uint64_t at_ns, uint8_t *bytes)
{
    const struct record_heartbeat record = {.header = {RECORD_HEARTBEAT, sizeof record, 0}, .at_ns = at_ns};
    const struct batch_header header = {
        .magic = BATCH_MAGIC,
        .version = BATCH_VERSION,
        .emitter_kind = EMITTER_NIC,
        .emitter_id = 7,
        .boot_id = 11,
        .sequence = sequence,
        .sent_ns = at_ns,
        .records_count = 1,
        .records_bytes = sizeof record,
    };

    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, &record, sizeof record);
    return SCRATCH_BATCH_BYTES;
}

const char *scratch_key(void **state, const char *name, char digit)
{
    const char *path = scratch_path(state, "", name);
    char text[65];

    memset(text, digit, 64);
    text[64] = '\n';
    scratch_write(path, text, sizeof text, 0600);
    return path;
}

void scratch_pause_ms(unsigned ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&pause, NULL);
}
