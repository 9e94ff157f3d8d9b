/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the job has come to so far, as sums that only rise: each step, operation and verdict is entered once, when it is
 * over and all that is told of its time has been heard; what the analysis later cuts out of its memory stays in. So the
 * sums are those of the store's rows (`step` and `past_step`), but for rows that a later analysis judged otherwise. The
 * first steps are entered when there are eight, or when the job is over: before, its pattern is not known.
 *
 * Label sets are bounded: ranks up to LEDGER_RANKS_MAX, and LEDGER_KINDS_MAX kinds of operations (communicator,
 * operation, algorithm), above which they are entered as communicator "other". One thread at a time.
 */
#pragma once

#include "correlator/analysis.h"
#include "wire/metric/histogram.h"

#define LEDGER_RANKS_MAX 8192
#define LEDGER_KINDS_MAX 256

struct ledger_rank {
    bool is_known;
    double late_seconds; /* over all steps, each by how much it was late at most; not less than 0 */
    double last_late_seconds;
    double cost_seconds;
};

struct ledger_kind { /* operations of one kind on one communicator */
    bool is_other;   /* of all communicators that found no room */
    uint8_t communicator[IDENTITY_BYTES];
    uint8_t operation; /* enum operation_kind, or OPERATION_GROUP */
    uint8_t algorithm; /* enum rank_operation_algorithm */
    uint64_t count;
    uint64_t incomplete;
    double message_bytes;
    double bus_bytes; /* as nccl-tests counts: what each link of the best algorithm carries */
    double wire_bytes;
    double wait_seconds;     /* from the first rank's arrival to the last one's */
    double transfer_seconds; /* from there to the end */
    double active_seconds;   /* of all ranks, without gaps */
    uint64_t retransmitted_frames;
    struct histogram size;     /* bytes */
    struct histogram duration; /* seconds: from the first rank's arrival to the end */
};

struct ledger_progress { /* of one communicator */
    uint8_t communicator[IDENTITY_BYTES];
    uint64_t sequence;  /* 1 + the last collective that was entered */
    uint64_t groups;    /* 1 + the last group, as groups are numbered at present */
    uint64_t groups_ns; /* its start, by which it is found again when a cut numbers them anew */
    size_t over;        /* 1 + the last operation, of all of the analysis, that is over */
};

struct ledger_verdict {
    uint64_t middle_ns;
    enum verdict_class class;
    int32_t rank;
    int32_t peer_rank;
};

struct ledger {
    uint64_t steps_until_ns; /* middle of the last step that was entered */
    uint64_t settled_ns;     /* of the run before: what began long before it is entered */
    struct histogram steps[STEP_KINDS];
    uint64_t steps_incomplete;
    uint64_t last_step_end_ns; /* 0 = none yet */
    double last_step_seconds;
    uint64_t verdicts[VERDICT_CLASSES];
    double verdict_seconds[VERDICT_CLASSES];
    uint64_t left_out; /* ranks and kinds that found no room, each time one came */
    ARRAY(struct ledger_rank) ranks;
    ARRAY(struct ledger_kind) kinds;
    ARRAY(struct ledger_progress) progress;
    ARRAY(struct ledger_verdict) entered;
};

void ledger_init(struct ledger *ledger);
void ledger_fini(struct ledger *ledger);

/* Enters what is new in the analysis, which has run. */
void ledger_take(struct ledger *ledger, const struct analysis *analysis);
