/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the hosts told beside the data calls, as the job stage needs it: what kept each rank's threads from running,
 * calls that waited for a GPU, posts that were followed, first signs of failures, and which ranks are still there. A
 * track is one thread's account of one kind of source: its stays, in order of time, of which none overlaps the next.
 *
 * Ranks are the job's; rows are indices in the tables that the store keeps. Times in the reference clock. One thread.
 */
#pragma once

#include "correlator/job/job.h"

enum host_amount {
    HOST_SLEEP,
    HOST_RUN_QUEUE,
    HOST_IO_WAIT,
    HOST_GPU_WAIT,
    HOST_DURATIONS, /* those before are nanoseconds, those behind are counted */
    HOST_MAJOR_FAULTS = HOST_DURATIONS,
    HOST_MINOR_FAULTS,
    HOST_RETRANSMISSIONS,
    HOST_TCP_BYTES,
    HOST_AMOUNTS
};

enum host_source {
    HOST_OF_DELAY,  /* sums of a tenth of a second or more */
    HOST_OF_STAY,   /* single stays off the CPU, told on request */
    HOST_OF_MARKER, /* a call that waited */
};

struct host_stay {
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t amounts[HOST_AMOUNTS];
};

struct host_track { /* by rank, tid, source */
    int32_t rank;
    uint32_t tid;
    uint16_t role; /* enum host_delay_role */
    uint8_t source;
    int32_t first_row; /* of the first stay; those of a track follow each other in their table */
    size_t first;
    size_t count;
};

struct host_post { /* by rank, wire_ns */
    int32_t rank;
    uint64_t posted_ns;
    uint64_t wire_ns; /* first frame of its first message */
    uint64_t bound_ns;
    int32_t row;
};

struct host_followed { /* each stay of the rank's threads was told */
    int32_t rank;
    uint64_t from_ns;
    uint64_t to_ns;
};

struct host_failure { /* by time */
    uint64_t at_ns;
    uint32_t cause; /* enum failure_cause */
    int32_t rank;   /* -1 = not known */
    int32_t result;
    int32_t row;
    int32_t communicator; /* the store's number, from 0; -1 = none is known */
    const char *text;     /* borrowed */
    size_t text_bytes;
};

struct host_member { /* a rank of a communicator whose host side is known; by communicator */
    uint8_t communicator[IDENTITY_BYTES];
    int32_t communicator_rank;
    int32_t rank;
    size_t machine;    /* alike for those of one host side */
    uint64_t gone_ns;  /* it was destroyed, or its process ended; 0 = it lives */
    uint64_t heard_ns; /* its host side was heard of until then */
};

struct host_watch { /* a NIC side, over all its starts */
    uint64_t emitter_id;
    uint64_t heard_ns; /* until then */
};

struct host_evidence {
    ARRAY(struct host_stay) stays;
    ARRAY(struct host_track) tracks;
    ARRAY(struct host_post) posts;
    ARRAY(struct host_followed) followed;
    ARRAY(struct host_failure) failures;
    ARRAY(struct host_member) members;
    ARRAY(struct host_watch) watches;
    ARRAY(uint64_t) back_offs; /* by rank: how often its host side took probes off to stay within their time */
};

struct host_kind {
    const char *metric;
    const char *words;
    enum verdict_class class;
    uint16_t role;
    uint8_t source;
    uint8_t amount;
    unsigned weight;
};

extern const struct host_kind host_kinds[];
extern const size_t host_kinds_count;
#define HOST_KINDS_MAX 16

void host_evidence_fini(struct host_evidence *evidence);

/* What of an amount lies in a time: nothing says how it lay in a stay that reaches beyond. */
struct host_sum {
    uint64_t likely; /* spread evenly over each stay */
    uint64_t most;
    int32_t first_row; /* -1 = none */
    int32_t last_row;
    uint32_t tid;
};

/*
 * Of the rank's threads of a kind's role the one with the most of it in [from_ns, to_ns): they run beside each other.
 * Where each single stay was followed in all of that time, of durations those are taken.
 */
struct host_sum host_evidence_sum(const struct host_evidence *evidence, const struct host_kind *kind, int32_t rank,
                                  uint64_t from_ns, uint64_t to_ns);

/* Whether a track holds sums of what a kind is about. */
bool host_evidence_sums(const struct host_track *track, const struct host_kind *kind);

struct host_pool { /* all of the sums that touch a time */
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t amount;
};

/* Of one thread of the rank; empty where single stays are known. */
struct host_pool host_evidence_pool(const struct host_evidence *evidence, const struct host_kind *kind, int32_t rank,
                                    uint32_t tid, uint64_t from_ns, uint64_t to_ns);

/* All that threads of a role counted in the time, added up. */
uint64_t host_evidence_total(const struct host_evidence *evidence, enum host_amount amount, int32_t rank, uint16_t role,
                             uint64_t from_ns, uint64_t to_ns);

/* For how much of the time one of the rank's calling threads was accounted for: then the probes were on. */
uint64_t host_evidence_seen_ns(const struct host_evidence *evidence, int32_t rank, uint64_t from_ns, uint64_t to_ns);

/* Whether single stays of the rank's threads were told for the whole time. */
bool host_evidence_followed(const struct host_evidence *evidence, int32_t rank, uint64_t from_ns, uint64_t to_ns);

/* The post of the rank whose first frame left at a time; NULL: none was followed. */
const struct host_post *host_evidence_post(const struct host_evidence *evidence, int32_t rank, uint64_t wire_ns);
