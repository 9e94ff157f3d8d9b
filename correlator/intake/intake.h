/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was heard: every emitter's batches, each once, in order of their sequence numbers. The order of arrival leaves
 * no trace: the same set of batches gives the same intake. Holds at most `memory_bytes` of batches, however long the
 * job: above that, what is oldest is cut out of all streams alike - details, which is counted, and what later records
 * say again (heartbeats, clocks, counters, totals of flows), which is not. Who is who is never cut out.
 * Owns copies of the batches. One thread.
 */
#pragma once

#include <stdbool.h>

#include "correlator/array.h"
#include "wire/batch.h"

struct intake_batch { /* or a run of batches that nothing is left of: bytes is NULL */
    uint64_t sequence;
    uint64_t last_sequence;
    uint64_t sent_ns; /* the first one */
    uint64_t last_sent_ns;
    uint8_t *bytes;
    size_t length_bytes;
    uint32_t details_count; /* messages, windows, calls and so on in it */
    bool damaged;           /* its records cannot be walked to the end */
};

struct intake_stream { /* one boot of one emitter */
    uint16_t kind;     /* enum emitter_kind */
    uint64_t emitter_id;
    uint64_t boot_id;
    bool greeted; /* `hello` is valid */
    struct record_hello hello;
    uint64_t last_ns; /* the latest time that it sent or beat at, emitter's clock */
    bool ended;       /* it said that it ends */
    uint64_t unknown_count;
    uint64_t batches_count;   /* heard */
    uint64_t damaged_count;   /* batches whose records could not be walked to the end */
    uint64_t forgotten_count; /* details cut out to keep within memory_bytes: messages, windows, calls, delays */
    uint64_t forgotten_to_ns; /* emitter's clock */
    size_t forgotten_batches; /* how far the cutting went */
    ARRAY(uint64_t) totals;   /* by flow: 1 + the latest batch with its total, which supersedes those before */
    ARRAY(struct intake_batch) batches;
};

struct intake {
    ARRAY(struct intake_stream) streams; /* by kind, emitter, boot */
    size_t held_bytes;                   /* with what the analysis makes of each detail */
    size_t memory_bytes;
    uint64_t rejected_count;   /* not a batch that we read */
    uint64_t duplicates_count; /* heard before */
};

void intake_init(struct intake *intake, size_t memory_bytes);
void intake_fini(struct intake *intake);

/* Whether anything was cut out to keep within memory_bytes. */
bool intake_has_forgotten(const struct intake *intake);

/* 1 when it was new, 0 when it had been heard before, -EBADMSG (counted) when it is no batch. Copies the bytes. */
int intake_add(struct intake *intake, const void *bytes, size_t length_bytes);

struct intake_walk {
    const struct intake *intake;
    size_t stream; /* of the record that intake_next gave */
    size_t batch;
    bool open;
    bool skips_runs; /* set by the caller, who has no use for messages; of damaged batches they come all the same */
    struct batch reader;
};

/* Walks every record of every stream, in order. Returns false at the end. Damaged rests are skipped. */
bool intake_next(struct intake_walk *walk, union record *record);
