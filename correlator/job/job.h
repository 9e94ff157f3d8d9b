/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job stage: one record a rank and operation (struct record_rank_operation) and what was counted beside
 * (evidence.h), all that it gets from the node stage -> operations across ranks, arrivals and who was late, steps,
 * verdicts. It knows of ranks and communicators, of no queue pair, frame or call.
 *
 * All times in the reference clock, 0 = unknown; indices are -1 = none. Owns its arrays. One thread.
 */
#pragma once

#include <stdbool.h>

#include "correlator/array.h"
#include "correlator/job/step_mark.h"
#include "wire/record.h"

enum arrival_of {
    ARRIVAL_UNKNOWN,
    ARRIVAL_ENQUEUE,
    ARRIVAL_HOST,
    ARRIVAL_GPU,
};

struct rank_operation { /* what one rank did in one operation; for a group of point-to-point calls their sum */
    struct record_rank_operation record;
    int32_t operation;
    int32_t rank; /* the job's rank, -1 = unknown */
    uint64_t arrival_ns;
    enum arrival_of arrival_of;
    bool late_known;
    bool before_open; /* the one before was over no earlier than before_ns, but nothing tells when for its GPU */
    int64_t late_ns;  /* arrival minus the median arrival of the operation's other ranks */
    uint64_t late_bound_ns;
    uint64_t before_ns; /* when the rank's operation before this one was over for it; 0 = none */
    uint64_t unseen_ns; /* enqueue of the first one behind that whose end nobody sees (NVLink only); 0 = none */
    uint64_t role; /* equal at the same place of steps that are made alike, of any rank: sizes apart; 0 = in no step */
};

/* How far a time of frames may be off, beside those of other ranks. */
static inline uint64_t job_frames_bound_ns(const struct record_rank_operation *record)
{
    return record->frames_bound_ns != 0 ? record->frames_bound_ns : record->bound_ns;
}

struct operation {
    uint8_t communicator[IDENTITY_BYTES];
    uint8_t kind; /* enum operation_kind; OPERATION_GROUP: a group of point-to-point calls */
    uint64_t sequence;
    int32_t step;
    int32_t place; /* n-th operation of the step */
    uint64_t buffer_bytes;
    uint8_t algorithm;
    int32_t ranks_count;
    uint32_t ranks_seen;
    uint64_t start_ns;
    uint64_t last_arrival_ns;
    uint64_t end_ns;
    uint64_t bound_ns;
    uint16_t flags;    /* enum rank_operation_flag: incomplete, no wire, unknown algorithm */
    size_t first_rank; /* its rank operations lie together */
    size_t ranks;
};
#define OPERATION_GROUP 64

enum step_kind {
#define STEP_KIND(name, text, meaning) STEP_##name,
#include "correlator/job/step_kind.def"
#undef STEP_KIND
    STEP_KINDS
};

struct step {
    uint8_t kind; /* enum step_kind: nobody is to blame for what a step that is no training step took longer */
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t duration_ns;
    uint64_t bound_ns;
    uint32_t operations;
    uint32_t incomplete;
    bool partial;
    bool fresh; /* nothing comes before it that it could be measured from: it starts with its first enqueue */
    int32_t slowest_rank;
    int64_t late_ns;
    uint64_t late_bound_ns;
    int32_t late_operation;
    size_t first_rank; /* its rank steps lie together */
    size_t ranks;
};

struct rank_step {
    int32_t step;
    int32_t rank;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t duration_ns;
    bool late_known;
    int64_t late_ns;
    int64_t cost_ns; /* by how much the step would have been shorter without what the rank added (cost.h) */
};

struct path_part { /* of a step's critical path (path.h) */
    int32_t step;
    bool
        is_transfer; /* the operation was under way, all its ranks having arrived; else the rank was on its way to it */
    int32_t rank;    /* who was on its way, or whose end was waited for */
    int32_t operation;
    uint64_t from_ns;
    uint64_t to_ns;
};

enum verdict_class {
#define VERDICT_CLASS(name, text, fields, meaning, more) VERDICT_##name,
#include "correlator/verdict/verdict_class.def"
#undef VERDICT_CLASS
    VERDICT_CLASSES
};

enum transport_kind {
    TRANSPORT_NONE, /* nothing was seen to be sent */
    TRANSPORT_RDMA,
    TRANSPORT_SOCKETS, /* no queue pair carried anything, and the library's threads sent enough over TCP */
    TRANSPORT_UNKNOWN, /* they sent something over TCP, but not enough */
};

struct transport { /* of one rank, in one step or in all that was seen of it */
    int32_t rank;
    int32_t step; /* -1 = in all */
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t asked_bytes; /* buffers of its data calls */
    uint64_t rdma_bytes;  /* payload that its queue pairs sent for them */
    uint64_t tcp_bytes;   /* that the library's threads in its process sent; a sum's share of the time is taken */
    enum transport_kind kind;
};

enum verdict_source { /* the table in which a number's rows are */
                      VERDICT_OF_PORT,
                      VERDICT_OF_FLOW,
                      VERDICT_OF_DELAY,
                      VERDICT_OF_MARKER,
                      VERDICT_OF_POST,
                      VERDICT_OF_TRANSPORT,
                      VERDICT_OF_FAILURE,
                      VERDICT_OF_RAIL,
};

struct verdict_evidence { /* one number beside a verdict */
    const char *metric;   /* its unit last */
    uint8_t kind;         /* of ports and flows: index of evidence_kinds */
    uint8_t source;       /* enum verdict_source */
    bool of_port;
    bool decides;     /* the class rests on it */
    bool is_duration; /* its amount is nanoseconds */
    uint8_t priority;
    uint8_t side;     /* enum evidence_side */
    int32_t owner;    /* port or flow */
    int32_t rank;     /* whose thread, post, transport or failure; of ports and flows -1 */
    uint32_t tid;     /* 0 = of no one thread */
    uint64_t from_ns; /* the time that was looked at */
    uint64_t to_ns;
    uint64_t amount;
    double usual;      /* what would have been usual in such a time, over the whole link; below 0: not known */
    int32_t first_row; /* its changes, in the table that the store keeps of them */
    int32_t last_row;
};

struct verdict {
    int32_t step; /* -1: of a hang, which belongs to no whole step */
    enum verdict_class class;
    int32_t rank;      /* -1 = all, or nobody in particular; the first of several candidates */
    int32_t peer_rank; /* -1 = none */
    char device[DEVICE_NAME_BYTES + 5];
    int32_t operation;
    uint64_t size_ns;
    uint64_t more_ns;  /* of a late rank: the same at other operations of the step, in the end part of size_ns */
    uint64_t limit_ns; /* of a late rank: what it stood out from, by the job's own spread */
    uint64_t bound_ns;
    double confidence;
    char evidence[1400];
    ARRAY(struct verdict_evidence) numbers;
    ARRAY(int32_t) candidates; /* ranks of which it is one, in order; empty: it is `rank` */
};

struct evidence;

/* Job rank of (communicator, rank in it), or -1: the only thing that the job stage asks back. */
struct job_ranks {
    const void *context;
    int32_t (*rank_of)(const void *context, const uint8_t *communicator, int32_t communicator_rank);
    struct step_mark mark; /* what steps end with, if a person said so */
    uint64_t digest;       /* as long as it is the same, rank_of answers the same */
};

struct turn { /* a rank operation, among its rank's in order of enqueue (turn.h) */
    int32_t rank;
    uint64_t enqueued_ns;
    size_t index;
};
typedef ARRAY(struct turn) turn_list;

struct job {
    struct job_ranks ranks;
    const struct evidence *evidence;              /* borrowed; NULL: there is none, and all is seen */
    ARRAY(struct operation) operations;           /* in order of first enqueue */
    ARRAY(struct rank_operation) rank_operations; /* grouped by operation, then by rank */
    ARRAY(int32_t) rank_operation_of;             /* for each record given to job_build: its rank operation */
    ARRAY(struct step) steps;
    ARRAY(struct rank_step) rank_steps;
    ARRAY(struct path_part) path;       /* by step, then in order of time */
    ARRAY(struct transport) transports; /* by rank; each rank's whole first, then its steps */
    ARRAY(struct verdict) verdicts;
    turn_list turns; /* while it is judged */
};

void job_build(struct job *job, struct job_ranks ranks, const struct evidence *evidence,
               const struct record_rank_operation *records, size_t count);

/* The same, and frees the records as soon as they are in the job: they are a third of what it takes. */
void job_take(struct job *job, struct job_ranks ranks, const struct evidence *evidence,
              struct record_rank_operation **records, size_t count);
void job_fini(struct job *job);
void verdict_fini(struct verdict *verdict);

const char *step_kind_name(enum step_kind kind);
const char *arrival_of_name(enum arrival_of of); /* NULL for unknown */
const char *verdict_class_name(enum verdict_class class);

/* What would tell more, if it was followed (enum follow_what: a set of bits); 0: nothing. */
uint32_t verdict_class_more(enum verdict_class class);
