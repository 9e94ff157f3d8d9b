/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rank operations in about 40 bytes each instead of a record_rank_operation's 224: what goes from node stage to job
 * stage. Each is told by what differs from what is expected after the operation before of the same rank in the same
 * communicator (operation_field.def). Both ends begin with operation_coder_init: on a link at the beginning of each
 * batch. What comes out is what went in, field by field but for header and reserved. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cursor.h"
#include "wire/record.h"

#define OPERATION_SLOTS          32
#define OPERATION_CODE_BYTES_MAX 352u    /* of one operation */
#define OPERATION_RUN_BYTES_MAX  0xfff8u /* of a record_rank_operation_run, header and padding included */

struct operation_coder { /* ranks in communicators, each with its operation before; the oldest gives way */
    struct record_rank_operation last[OPERATION_SLOTS];
    uint8_t zeros[OPERATION_SLOTS]; /* which times are unknown in it */
    unsigned used;
    unsigned next;
};

void operation_coder_init(struct operation_coder *coder);

/* Writes at most OPERATION_CODE_BYTES_MAX bytes; returns where the next one goes. */
uint8_t *operation_coder_put(struct operation_coder *coder, uint8_t *at, const struct record_rank_operation *record);

/* False, and the cursor has failed, when the bytes are none of ours. */
bool operation_coder_take(struct operation_coder *coder, struct cursor *bytes, struct record_rank_operation *record);

/* The operations of a batch's run that have not been read yet. */
struct operation_run {
    struct operation_coder coder; /* goes on from run to run of one batch */
    struct cursor bytes;
    uint32_t left;
};

/* What is left of the run is to be nothing before the next one begins. */
void operation_run_begin(struct operation_run *run, const struct record_rank_operation_run *record,
                         const uint8_t *bytes, size_t length_bytes);

/* 1 with an operation, 0 when there is none left, -EBADMSG. */
int operation_run_next(struct operation_run *run, struct record_rank_operation *record);

/* Makes `length_bytes` at `bytes`, room for a header and then operations, a record; returns how long it is. */
size_t operation_run_end(uint8_t *bytes, size_t length_bytes, uint32_t operations_count);
