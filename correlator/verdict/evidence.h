/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the node stage hands to the job stage beside rank operations: what was counted that can say why a link was slow,
 * by whom, when, and which of the job's links it is about. A series is one count of one flow or port: its changes, in
 * order of time. A place says that a flow, or the port at one end, belongs to the link from one rank to another.
 *
 * Owners are opaque here: indices of flows, and of ports. Times in the reference clock. One thread.
 */
#pragma once

#include "correlator/job/job.h"
#include "correlator/rail/rail.h"
#include "correlator/verdict/host_evidence.h"

enum evidence_side { /* bits */
                     EVIDENCE_SENDER = 1,
                     EVIDENCE_RECEIVER = 2,
                     EVIDENCE_FLOW = 4,
                     EVIDENCE_ANSWER = 8,   /* in the flow that travels the other way */
                     EVIDENCE_CALLER = 16,  /* a thread that makes data calls */
                     EVIDENCE_LIBRARY = 32, /* a thread that the library made */
};

struct evidence_kind {
    bool of_port;
    uint16_t number; /* enum port_metric or enum flow_metric */
    enum verdict_class class;
    uint8_t sides;
    unsigned weight; /* per cent */
    uint64_t least;
    bool stalls;
};

struct evidence_change {
    uint64_t from_ns; /* it rose within [from_ns, to_ns) */
    uint64_t to_ns;
    uint64_t amount;
    int32_t row; /* its index in the table that the store keeps of it; those of a series follow each other */
};

struct evidence_series { /* by of_port, owner, kind, priority */
    bool of_port;
    int32_t owner;
    uint8_t kind;     /* index of evidence_kinds */
    uint8_t priority; /* PRIORITY_NONE: of the whole port, or of a flow */
    size_t first;     /* its changes lie together */
    size_t count;
};

struct evidence_place { /* by from, to, of_port, vantage, owner, side */
    int32_t from;       /* job's ranks */
    int32_t to;
    bool of_port;
    uint8_t side;    /* enum evidence_side */
    uint8_t vantage; /* enum vantage of a flow: sums are made of one vantage only */
    int32_t owner;
    uint32_t fields; /* enum source_field: what is seen of a flow there */
};

struct evidence_port {
    char name[33];
};

#define VERDICT_LEAST_PERMILLE 10
#define VERDICT_SPREADS        3

struct verdict_limits {      /* what a person set; 0: the default */
    uint64_t least_permille; /* of a step's median: what costs less is not worth a verdict (10) */
    uint64_t spreads;        /* times the spread of a wait that each step of a streak must exceed (3) */
};

struct evidence {
    struct verdict_limits limits;
    ARRAY(struct evidence_change) changes;
    ARRAY(struct evidence_series) series;
    ARRAY(struct evidence_place) places;
    ARRAY(struct evidence_port) ports;
    ARRAY(uint32_t) sights; /* by job rank: enum source_field, what any source sees of what it sends */
    struct host_evidence host;
    struct rails rails;
};

extern const struct evidence_kind evidence_kinds[];
extern const size_t evidence_kinds_count;

/* The time that flows waited for acknowledgements which did not come, before they sent again. */
size_t evidence_timeout_kind(void);

const char *evidence_metric_name(const struct evidence_kind *kind);
bool evidence_is_duration(const struct evidence_kind *kind); /* its amounts are nanoseconds */
uint32_t evidence_needs(const struct evidence_kind *kind);   /* enum source_field: what of flows must be seen for it */

void evidence_fini(struct evidence *evidence);

/* What is seen of what a rank sends (enum source_field). */
uint32_t evidence_sight(const struct evidence *evidence, int32_t rank);

struct evidence_span { /* a link and an interval */
    int32_t from;
    int32_t to;
    uint64_t from_ns;
    uint64_t to_ns;
};
typedef ARRAY(struct verdict_evidence) evidence_amounts;

/* A flow's count of a kind, or NULL; of a port the first of its priorities. */
const struct evidence_series *evidence_series_of(const struct evidence *evidence, bool of_port, int32_t owner,
                                                 uint8_t kind);

/*
 * How much of a kind was counted at the link while the interval ran: what changed in a time of which a quarter, or
 * which a quarter of, lies within it; of a duration its part that lies within. Flows of one vantage are added up, of
 * ports, priorities and vantages the largest is taken: several may count the same. `amounts`, when not NULL, gets one
 * entry for each series that is in the result.
 */
uint64_t evidence_count(const struct evidence *evidence, size_t kind, const struct evidence_span *span,
                        evidence_amounts *amounts);
