/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a batch that came from outside: checks the header and walks the records. Nothing is trusted: lengths are
 * checked, unknown kinds are skipped and counted by the caller, short records are refused. A run of messages or of rank
 * operations comes out as what it holds.
 */
#pragma once

#include "wire/cursor.h"
#include "wire/message_run.h"
#include "wire/operation_run.h"
#include "wire/record.h"

struct batch {
    struct batch_header header;
    struct cursor records;
    uint32_t records_left; /* a run is one of them */
    bool skips_runs;       /* set by the caller behind batch_read: runs of messages are left out unread */
    struct message_run run;
    struct operation_run operations;
};

union record {
    struct record_header header;
#define RECORD(upper, lower, number, help) struct record_##lower lower;
#include "wire/record.def"
#undef RECORD
};

/* 0, or -EBADMSG when it is no batch of a version that we read. */
int batch_read(struct batch *batch, const void *bytes, size_t length_bytes);

/*
 * The next record of a known kind, copied (the part that this version knows). Returns 1 with a record, 0 at the end,
 * -EBADMSG when the rest of the batch is damaged. Unknown kinds are skipped and added to *unknown_count.
 */
int batch_next(struct batch *batch, union record *record, uint64_t *unknown_count);
