/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is who: the host side's processes, communicators, queue pairs and calls, the NIC side's ports, flows and
 * messages, and the joins between them. The two ends of a connection are joined on (address, QPN) <-> (remote address,
 * remote QPN), a flow with the queue pairs at its ends on (source, destination, destination QPN), both among those that
 * lived at the time, since QPNs are used again. A member's rank is its rank in the largest communicator of its process,
 * or where these are several side by side the launcher's (naming_rank.c); two ranks in one process are told apart by
 * the threads that call.
 *
 * All times in the reference clock, 0 = unknown. Indices (int32_t) point into the arrays here, -1 = none. Order of
 * every array follows from the records alone. One thread.
 */
#pragma once

#include "correlator/intake/timeline.h"
#include "correlator/naming/flow_event.h"

struct process {
    size_t stream;
    struct record_process record;
    uint64_t started_ns;
    uint64_t ended_ns;
    bool has_ownerless; /* a queue pair of it carried a communicator's data, and which one's is not known */
};

struct fact { /* of a process */
    size_t stream;
    struct record_process_fact record;
    int32_t process;
};

struct communicator { /* sorted by first creation, then identity */
    uint8_t identity[IDENTITY_BYTES];

    int32_t ranks_count;
    uint32_t ranks_seen;
    uint64_t created_ns;
    uint64_t destroyed_ns;
};

struct member {
    size_t stream;
    struct record_communicator record; /* its identity is never zeros here */
    int32_t process;
    int32_t parent; /* member that it was made of */
    int32_t communicator;
    int32_t rank; /* the job's rank, -1 = unknown */
    uint64_t created_ns;
    uint64_t ready_ns;
    uint64_t destroyed_ns;
    uint64_t bound_ns;
    ARRAY(int32_t) calls; /* in order of enqueue */
    ARRAY(int32_t) queue_pairs;
    ARRAY(int32_t) borrowed; /* queue pairs of other members, which send for this one (PXN) */
};

enum queue_pair_role {
    QUEUE_PAIR_ROLE_UNKNOWN,
    QUEUE_PAIR_ROLE_SENDER,
    QUEUE_PAIR_ROLE_RECEIVER,
    QUEUE_PAIR_ROLE_UNUSED,
    QUEUE_PAIR_ROLE_FLUSH,
    QUEUE_PAIR_ROLE_FOREIGN,
};

struct queue_pair {
    size_t stream;
    struct record_queue_pair record;
    int32_t process;
    int32_t member; /* owner */
    int32_t origin; /* member whose data it sends: with PXN not its owner */
    int32_t peer;
    enum queue_pair_role role;
    bool is_between_pairs; /* of one whose making nobody saw: it carried sends and receives (adoption/) */
    uint64_t created_ns;
    uint64_t ready_ns;
    uint64_t destroyed_ns;
    uint64_t error_ns;
    ARRAY(int32_t) flows_out; /* flows that it sends */
    ARRAY(int32_t) flows_in;  /* flows that end at it */
};

struct port {
    size_t stream;
    struct record_port record;
};

struct flow {
    size_t stream;
    struct record_flow record;
    struct record_flow_total total;
    int32_t port;
    int32_t sender;    /* queue pair */
    int32_t receiver;  /* queue pair */
    bool is_contested; /* several networks have flows like this one: whose it is is not known */
    uint64_t first_ns;
    uint64_t last_ns;
    ARRAY(int32_t) messages; /* as they ended, which after a loss is not the order in which they began */
};

struct message {
    int32_t flow;
    int32_t rank_operation; /* set by the node stage */
    uint64_t first_ns;
    uint64_t last_ns;
    uint32_t payload_bytes;
    uint32_t frames;
    uint32_t immediate;
    uint16_t flags;
    uint8_t role;
};

struct call {
    size_t stream;
    bool is_inferred; /* nobody told it: found by what was sent (node/replay.h), its times are what was seen first */
    int32_t member;
    int32_t rank_operation; /* set by the node stage */
    struct record_call record;
    uint64_t entered_ns;
    uint64_t enqueued_ns;
};

struct failure {
    size_t stream;
    struct record_failure record;
    int32_t process;
    int32_t member;
    int32_t queue_pair;
    uint64_t at_ns;
};

struct window {
    int32_t flow;
    uint64_t start_ns;
    uint32_t length_ns;
    struct record_window record;
};

struct port_state { /* of an RDMA port of a host: from at_ns on */
    size_t stream;
    struct record_rdma_port record;
    uint64_t at_ns;
    uint64_t before_ns; /* it was otherwise then; 0 = it is the first that was told of it */
};

struct counter_total {
    size_t stream;
    struct record_counter record;
};

struct naming {
    ARRAY(struct process) processes;
    ARRAY(struct fact) facts;
    ARRAY(struct communicator) communicators;
    ARRAY(struct member) members;
    ARRAY(struct queue_pair) queue_pairs;
    ARRAY(struct port) ports;
    ARRAY(struct flow) flows;
    ARRAY(struct message) messages;
    ARRAY(struct call) calls;
    ARRAY(struct window) windows;
    ARRAY(struct failure) failures;
    ARRAY(struct counter_total) counters;
    ARRAY(struct port_state) port_states; /* by stream, then as they were told */
    flow_event_list flow_events;          /* by flow, metric, time */
    int32_t ranks_count;                  /* of the job: of its largest communicator */
    uint64_t bound_ns;                    /* the largest error of any mapped time here */
    uint64_t frames_bound_ns;             /* and of the NIC sides' times, among each other */
    uint64_t contradicted_count; /* connections whose ends were told different things: of those nothing is known */
    uint64_t orphans_count;      /* messages, calls and windows that name a flow or communicator never described */
};

void naming_build(struct naming *naming, const struct intake *intake, const struct timeline *timeline);
void naming_fini(struct naming *naming);

/* The member that is `rank` of the communicator `identity`, or -1. */
int32_t naming_member(const struct naming *naming, const uint8_t *identity, int32_t communicator_rank);

/* True when other ranks of its communicator are in the member's machine: what they hand it is not seen. */
bool naming_has_neighbour(const struct naming *naming, int32_t member);

/* The member at the other end of a queue pair's connection, or -1. */
int32_t naming_peer_member(const struct naming *naming, int32_t queue_pair);

/*
 * One flow of several that show the same direction from different vantages: the wanted vantage first, then the middle,
 * then what there is. -1 of none.
 */
int32_t naming_view(const struct naming *naming, const int32_t *flows, size_t count, enum vantage wanted);
