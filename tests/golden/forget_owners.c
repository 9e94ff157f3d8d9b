/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forget_owners IN OUT SECONDS: a host side's capture as if its agent had come SECONDS after the first call: what it
 * told of queue pairs is what a kernel lists of them, and calls before are gone. Communicators stay known.
 */
#include "wire/batch.h"
#include "wire/capture.h"
#include "wire/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODY = 0x7fffffff };

static void forget_queue_pair(struct record_queue_pair *pair)
{
    pair->communicator = 0;
    pair->flags = QUEUE_PAIR_LATE;
    memset(pair->remote_address, 0, sizeof pair->remote_address);
    pair->connection = pair->context = pair->created_ns = pair->ready_ns = 0;
    pair->side = QUEUE_PAIR_SIDE_UNKNOWN;
    pair->origin_rank = pair->far_rank = pair->channel = -1;
}

struct forgetting {
    uint64_t first_ns; /* the first call of the job */
    uint64_t late_ns;
};

/* A call of a communicator that does not exist is left out by whoever reads it. */
static void forget_call(struct forgetting *forgetting, struct record_call *call)
{
    if (forgetting->first_ns == 0)
        forgetting->first_ns = call->entered_ns;
    if (call->entered_ns < forgetting->first_ns + forgetting->late_ns)
        call->header.source = NOBODY;
}

static void forget(struct forgetting *forgetting, uint8_t *batch, size_t length_bytes)
{
    struct record_header header;

    for (size_t at = sizeof(struct batch_header); at + sizeof header <= length_bytes; at += header.length_bytes) {
        memcpy(&header, batch + at, sizeof header);
        if (header.length_bytes < sizeof header)
            return;
        if (header.kind == RECORD_QUEUE_PAIR && header.length_bytes >= sizeof(struct record_queue_pair)) {
            struct record_queue_pair pair;
            memcpy(&pair, batch + at, sizeof pair);
            forget_queue_pair(&pair);
            memcpy(batch + at, &pair, sizeof pair);
        } else if (header.kind == RECORD_CALL && header.length_bytes >= sizeof(struct record_call)) {
            struct record_call call;
            memcpy(&call, batch + at, sizeof call);
            forget_call(forgetting, &call);
            memcpy(batch + at, &call, sizeof call);
        }
    }
}

static int copy(struct capture_reader *from, struct capture_writer *to, struct forgetting *forgetting)
{
    static uint8_t copied[BATCH_BYTES_MAX];
    const void *batch;
    size_t length_bytes;
    int more;

    while ((more = capture_read(from, &batch, &length_bytes)) > 0) {
        if (length_bytes > sizeof copied)
            return -EMSGSIZE;
        memcpy(copied, batch, length_bytes);
        forget(forgetting, copied, length_bytes);
        int error = capture_write(to, copied, length_bytes);
        if (error != 0)
            return error;
    }
    return more;
}

int main(int argc, char **argv)
{
    struct capture_reader *from;
    struct capture_writer *to;

    log_init("forget_owners", LOG_WARNING);
    if (argc != 4) {
        fputs("usage: forget_owners IN OUT SECONDS\n", stderr);
        return 2;
    }
    struct forgetting forgetting = {.late_ns = (uint64_t)(strtod(argv[3], NULL) * 1e9)};
    if (capture_reader_open(&from, argv[1]) != 0 || capture_writer_open(&to, argv[2], 0) != 0)
        return 1;
    int error = copy(from, to, &forgetting);
    capture_reader_close(&from);
    int lost = capture_writer_close(&to);
    return error != 0 || lost != 0;
}
