/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records that the programs share, and the batch that carries them.
 *
 * Layout: little-endian, naturally aligned, no padding, sizes asserted in record.c. A batch is `struct batch_header`
 * followed by records; each record starts with `struct record_header`, whose length lets a reader skip kinds that it
 * does not know. A reader takes the known prefix of a longer record (fields are only ever appended) and refuses a
 * shorter one.
 *
 * Times: `_ns`, unsigned, the emitter's own CLOCK_MONOTONIC (for the host side: the clock its probes use), 0 = unknown.
 * Addresses: 16 bytes, a GID; IPv4 as ::ffff:a.b.c.d. Text: NUL-padded, not necessarily terminated.
 * The records of the NIC side are in record_nic.h, which this includes.
 * Identifiers (flow, process, communicator, queue_pair) count from 1 within one boot of one emitter; 0 = none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BATCH_MAGIC       0x42535051u /* "QPSB" */
#define BATCH_VERSION     1
#define BATCH_BYTES_MAX   (256u * 1024u)
#define ADDRESS_BYTES     16
#define IDENTITY_BYTES    16
#define DEVICE_NAME_BYTES 16
#define NAK_CODES_COUNT   6
#define FACT_TEXT_BYTES   160

enum emitter_kind {
    EMITTER_NIC = 1,
    EMITTER_HOST = 2,
    EMITTER_NODE = 3,
    EMITTER_COMMAND = 4,
};

enum record_kind {
#define RECORD(upper, lower, number, help) RECORD_##upper = (number),
#include "wire/record.def"
#undef RECORD
};

struct batch_header {
    uint32_t magic;
    uint16_t version;
    uint16_t emitter_kind;
    uint64_t emitter_id; /* stable for one agent on one machine */
    uint64_t boot_id;    /* random at each start of the process */
    uint64_t sequence;   /* counts batches from 0 within a boot, also those that could not be sent */
    uint64_t sent_ns;
    uint32_t records_count;
    uint32_t records_bytes; /* all that follows this header */
};

struct record_header {
    uint16_t kind;
    uint16_t length_bytes; /* header included, a multiple of 8 */
    uint32_t source;       /* kind-specific small field, see each record; 0 where unused */
};

struct record_hello {
    struct record_header header;
    uint64_t started_ns;
    uint32_t pid;
    uint32_t window_ns;      /* NIC side: window length; 0 elsewhere */
    uint8_t kernel_boot[16]; /* the machine's boot id: emitters with the same one share CLOCK_REALTIME */
    char host[64];
    char version[32];
    char instance[32]; /* what the emitter watches, for people */
};

enum heartbeat_flag {
    HEARTBEAT_LAST = 1, /* the emitter ends in order: silence after this is no gap */
};
struct record_heartbeat {
    struct record_header header;
    uint64_t at_ns;
    uint32_t flags;
    uint32_t reserved;
};

struct record_clock_pair {
    struct record_header header;
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
    uint64_t tai_ns;
    uint64_t bound_ns; /* the three were read within this time */
};

struct record_clock_sample {
    struct record_header header;
    uint64_t reference_boot; /* whose clock received_ns and replied_ns are: boot id of the answering correlator */
    uint64_t sent_ns;        /* emitter's clock */
    uint64_t received_ns;    /* reference clock */
    uint64_t replied_ns;     /* reference clock */
    uint64_t returned_ns;    /* emitter's clock */
};

struct record_counter { /* header.source: port number where the counter belongs to one, else 0 */
    struct record_header header;
    uint64_t at_ns;
    uint64_t total;
    char name[40];
};

enum loss_cause {
    LOSS_LINK_FULL = 1,   /* batches dropped because the receiver did not take them */
    LOSS_PORT_DROP = 2,   /* frames that the port or its driver dropped before we saw them */
    LOSS_RING_FULL = 3,   /* probe events dropped in the kernel */
    LOSS_TABLE_FULL = 4,  /* something new refused because a fixed table is full */
    LOSS_OVERWRITTEN = 5, /* windows asked for, but no longer held */
};
struct record_loss { /* header.source: port number, else 0 */
    struct record_header header;
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t lost; /* frames, events, batches or windows, by cause; 0 = unknown number */
    uint32_t cause;
    uint32_t reserved;
};

#include "wire/record_nic.h"

struct record_process {
    struct record_header header;
    uint32_t process;
    uint32_t pid; /* in the initial pid namespace */
    uint64_t started_ns;
    uint64_t ended_ns; /* 0 while it lives */
    char command[16];
    char library[96]; /* the collective library's file as the process sees it */
};

enum process_fact {
#define FACT(name, number, text, help) PROCESS_FACT_##name = (number),
#define VARIABLE(name, number, help)   PROCESS_FACT_##name = (number),
#include "wire/process_fact.def"
#undef VARIABLE
#undef FACT
};
/* Named by (process, fact, index): sent again, it replaces what was sent before. */
struct record_process_fact {
    struct record_header header;
    uint32_t process;
    uint16_t fact;       /* enum process_fact */
    uint16_t index;      /* of facts of which there are several, from 0 */
    uint32_t text_bytes; /* of the whole text: more than its field holds = it is cut */
    uint32_t reserved;
    char text[FACT_TEXT_BYTES];
};

/* "rank" and so on; NULL = no such. */
const char *process_fact_name(uint16_t fact);

enum communicator_flag {
    COMMUNICATOR_LATE = 1,      /* its creation was not seen */
    COMMUNICATOR_FINALIZED = 2, /* ncclCommFinalize was called */
    COMMUNICATOR_REVOKED = 4,   /* ncclCommRevoke was called */
};
enum communicator_creator {
#define CREATOR(name, number, text) COMMUNICATOR_BY_##name = (number),
#include "wire/creator.def"
#undef CREATOR
};
enum communicator_ending {
#define ENDING(name, number, text, help) COMMUNICATOR_##name = (number),
#include "wire/ending.def"
#undef ENDING
};
enum identity_kind { /* what an identity was made of; the same communicator may have several, see doc/records.md */
                     IDENTITY_UNKNOWN = 0,
                     IDENTITY_OF_ID = 1,     /* the bytes of its ncclUniqueId */
                     IDENTITY_OF_PARENT = 2, /* its parent's identity, which of its children it is, and which part */
                     IDENTITY_OF_CALL = 3,   /* ncclCommInitAll: all ranks are of one call */
                     IDENTITY_OF_HASH = 4, /* the library's own hash and the number of ranks: weaker than all others */
};
#define COLOR_NONE (-1) /* ncclCommSplit: takes no part */
struct record_communicator {
    struct record_header header;
    uint32_t communicator;
    uint32_t process;
    uint64_t pointer;                 /* ncclComm_t */
    uint8_t identity[IDENTITY_BYTES]; /* the same on every rank, unique in the cluster; zeros = unknown */
    int32_t ranks_count;
    int32_t rank;    /* -1 = unknown */
    uint32_t parent; /* communicator it was split from, 0 = none */
    int32_t color;
    int32_t key;
    uint32_t flags;
    uint64_t created_ns; /* entry of the creating call */
    uint64_t ready_ns;   /* its return; 0 = not yet */
    uint64_t destroyed_ns;
    uint64_t hash;       /* the library's own (commHash): the same on every rank; 0 = not known */
    int32_t cuda_device; /* as its process counts; -1 = not known */
    uint32_t child;      /* which child of its parent it is, from 0 */
    uint8_t creator;     /* enum communicator_creator */
    uint8_t ending;      /* enum communicator_ending */
    uint8_t identity_kind;
    uint8_t reserved;
    uint32_t library_version; /* as ncclGetVersion of its library has it (2.20.5: 22005); 0 = not known */
};

enum queue_pair_state {
    QUEUE_PAIR_RESET = 0,
    QUEUE_PAIR_INIT = 1,
    QUEUE_PAIR_RTR = 2,
    QUEUE_PAIR_RTS = 3,
    QUEUE_PAIR_SQD = 4,
    QUEUE_PAIR_SQE = 5,
    QUEUE_PAIR_ERR = 6,
};
enum queue_pair_flag {
    QUEUE_PAIR_FLUSH = 1,   /* connected to itself */
    QUEUE_PAIR_FOREIGN = 2, /* made by a thread that serves no communicator */
    QUEUE_PAIR_PXN = 4,     /* sends for another rank of the node: origin_rank is not its owner's */
    QUEUE_PAIR_SHARED = 8,  /* several origin ranks may send through it; origin_rank is the one that asked for it */
    QUEUE_PAIR_LATE = 16,   /* it was there before the host side: who made it, and with whom it talks, was not seen */
};
enum queue_pair_side {
    QUEUE_PAIR_SIDE_UNKNOWN = 0,
    QUEUE_PAIR_SIDE_SENDER = 1,
    QUEUE_PAIR_SIDE_RECEIVER = 2,
};
struct record_queue_pair {
    struct record_header header;
    uint32_t queue_pair; /* a QPN used again is a new queue pair */
    uint32_t process;
    uint32_t communicator; /* 0 = none known */
    uint32_t qpn;
    uint32_t remote_qpn;
    uint32_t flags;
    uint8_t address[ADDRESS_BYTES];
    uint8_t remote_address[ADDRESS_BYTES];
    char device[DEVICE_NAME_BYTES];
    uint8_t port;
    uint8_t state;
    uint8_t type; /* enum ibv_qp_type */
    uint8_t traffic_class;
    uint32_t creator_tid;
    uint64_t connection; /* send completion queue: the same for the QPs of one connection */
    uint64_t created_ns;
    uint64_t ready_ns; /* RTS, or RTR of a receiver */
    uint64_t destroyed_ns;
    uint64_t context;      /* qp_context: NCCL from 2.23.4 on gives the QPs of one connection the same; 0 = none */
    uint64_t error_ns;     /* first change to ERR; 0 = none */
    uint32_t attributes;   /* enum ibv_qp_attr_mask: which have been set so far; what was not set is 0 below */
    uint32_t generation;   /* n-th queue pair of its device and QPN that was seen, from 1; 0 = not counted */
    uint32_t access_flags; /* enum ibv_access_flags */
    uint32_t max_send_requests;
    uint32_t max_receive_requests;
    uint16_t path_mtu_bytes;
    uint8_t service_level;
    uint8_t timeout;       /* 4.096 us x 2^timeout; 0 = for ever */
    uint8_t retry_count;   /* after time-outs */
    uint8_t rnr_retry;     /* 7 = for ever */
    uint8_t min_rnr_timer; /* as in AETH */
    uint8_t side;          /* enum queue_pair_side: of its connection's data */
    int32_t origin_rank;   /* who asked for the connection, in the communicator whose thread made it; -1 = unknown */
    int32_t far_rank;      /* the rank at its other end; -1 = unknown */
    int32_t channel;       /* -1 = unknown */
};

enum call_flag { /* the lower four bits */
                 CALL_GROUPED = 1,
                 CALL_AFTER_LOSS = 2, /* probe events were lost before it: `sequence` may be too low */
                 CALL_CAPTURED = 4,   /* into a graph, not run: `sequence` counts the communicator's captured calls */
                 CALL_REPLAYED = 8,   /* by the launch of a graph, which is when it was entered and enqueued */
};
#define CALL_FLAGS         15
#define CALL_RESULT_SHIFT  4 /* the upper four: 1 + ncclResult_t, 0 = not known */
#define CALL_NO_DATATYPE   255
#define CALL_NO_REDUCTION  255
#define CALL_OWN_REDUCTION 254 /* made by ncclRedOpCreatePreMulSum */
struct record_call {           /* header.source: the communicator; sent again if it had not returned for a while */
    struct record_header header;
    uint32_t sequence;          /* collectives: n-th on the communicator, from 0; point-to-point: n-th of its pair and
                                   direction (waiting for signals: the first signal's); modulo 2^32 */
    uint32_t returned_after_ns; /* return of the call, or of the outermost group end, minus entered_ns; saturates;
                                   0 = not known, or has not returned */
    uint64_t count;             /* elements, as given; waiting for signals: signals */
    uint64_t entered_ns;
    uint64_t enqueued_ns; /* the call, or the outermost group end */
    uint64_t stream;
    int32_t peer; /* peer or root, -1 = none */
    uint32_t tid;
    uint32_t group;    /* counts groups of a process; calls of one group share it; 0 = not grouped */
    uint8_t operation; /* enum operation_kind */
    uint8_t datatype;  /* ncclDataType_t */
    uint8_t reduction; /* ncclRedOp_t */
    uint8_t flags;     /* and the result */
};

enum marker_flag {
    MARKER_SUBMITTED = 1,     /* only its entry is known: duration_ns and result are 0 */
    MARKER_DRIVER = 2,        /* seen at the driver: a submission may have been seen at the runtime too */
    MARKER_GRAPH_UNKNOWN = 4, /* what the graph holds was not seen */
};
struct record_marker { /* header.source: the process; a call of the GPU's runtime or driver: never the GPU's own time */
    struct record_header header;
    uint64_t entered_ns;
    uint64_t duration_ns;
    uint64_t stream;
    uint64_t handle; /* what it is about: a graph, an event, a function, a number of bytes */
    uint64_t made;   /* what it has made: a graph, memory */
    uint32_t tid;
    int32_t result;          /* 0 = good */
    uint32_t captured_calls; /* data calls: of a capture's end those that it captured, of a graph those that it holds */
    uint16_t marker;         /* wire/marker.def */
    uint16_t flags;
};

enum host_delay_role {
    HOST_DELAY_CALLS = 1,  /* the thread makes data calls */
    HOST_DELAY_SERVES = 2, /* the library made it: a proxy, mostly */
};
enum host_delay_flag {
    HOST_DELAY_ALONE = 1, /* one stay off the CPU, which the sums hold too; sent when asked for */
};
struct record_host_delay { /* header.source: the process; what kept one thread from running */
    struct record_header header;
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t sleep_ns;     /* waited for something that it asked for */
    uint64_t run_queue_ns; /* could have run, but had no CPU */
    uint64_t io_wait_ns;   /* waited for a block device */
    uint64_t tcp_bytes;    /* sent */
    uint32_t run_queue_longest_ns;
    uint32_t switches;
    uint32_t minor_faults;
    uint32_t major_faults;
    uint32_t tcp_retransmissions; /* on sockets that it sent on */
    uint32_t tid;
    uint32_t communicator; /* that the thread serves; 0 = none known */
    uint16_t role;         /* enum host_delay_role: a set of bits */
    uint16_t flags;
};

enum failure_cause {
#define FAILURE(name, number, text, help) FAILURE_##name = (number),
#include "wire/failure.def"
#undef FAILURE
};
struct record_failure { /* header.source: the process */
    struct record_header header;
    uint64_t at_ns;
    uint32_t communicator; /* 0 = none is known to be concerned, or several are */
    uint32_t queue_pair;   /* the first one concerned; 0 = none */
    uint32_t cause;        /* enum failure_cause */
    int32_t result;        /* ncclResult_t; 0 = none */
    uint32_t tid;
    uint32_t reserved;
    char text[120]; /* of a warning its format */
};

enum rdma_port_state {                     /* as the kernel numbers them */
                       RDMA_PORT_GONE = 0, /* it is not there any longer */
                       RDMA_PORT_DOWN = 1,
                       RDMA_PORT_INITIALISING = 2,
                       RDMA_PORT_ARMED = 3,
                       RDMA_PORT_ACTIVE = 4,
};
enum rdma_link_layer {
    RDMA_LINK_UNKNOWN = 0,
    RDMA_LINK_INFINIBAND = 1,
    RDMA_LINK_ETHERNET = 2,
};
struct record_rdma_port { /* header.source: counts the ports that the emitter has told of, from 1 */
    struct record_header header;
    uint64_t at_ns;         /* what follows was read then */
    uint64_t before_ns;     /* read before, when it was otherwise: it changed in between; 0 = it is the first time */
    uint64_t bits_a_second; /* 0 = not known */
    char device[DEVICE_NAME_BYTES];
    char interface[16]; /* the network interface below it; empty where there is none */
    char bus[16];       /* PCI address of the device; empty: it has none, or it is not known */
    char
        root_port[16]; /* of the PCI root port that it is behind: devices with the same one are equally near to a GPU */
    int32_t numa_node; /* -1 = none, or not known */
    uint32_t ports_count; /* that the machine had then: all of them are told */
    uint8_t number;       /* of the device's ports, from 1 */
    uint8_t state;        /* enum rdma_port_state */
    uint8_t link_layer;   /* enum rdma_link_layer */
    uint8_t reserved[5];
};

/* "active" and so on. */
const char *rdma_port_state_name(uint8_t state);

/* The name of a cause, or "unknown". */
const char *failure_name(uint32_t cause);

enum operation_kind {
#define OPERATION(name, number, text, point_to_point) OPERATION_##name = (number),
#include "wire/operation.def"
#undef OPERATION
};
#define OPERATION_TRAFFIC 65  /* of a rank operation: a burst of traffic, where no host tells what it is */
#define TRAFFIC_ASTRAY    253 /* its data type, where it fits into no repeat of the job's */
#define TRAFFIC_HEAD      254 /* the same, where it begins one */

enum follow_what {                         /* a set of bits */
                   FOLLOW_WORK = 1,        /* posts and completions: work records */
                   FOLLOW_SUBMISSIONS = 2, /* kernels, events, copies, memory of the GPU: marker records */
                   FOLLOW_DELAYS = 4,      /* each stay of a thread off its CPU: host_delay records */
};
struct record_follow { /* header.source: the request's number, chosen by the asker */
    struct record_header header;
    uint64_t duration_ns; /* from when it is begun; 0 or too long = as long as the emitter allows */
    uint64_t hits_max;    /* of the probes, of each kind; 0 or too many = as many as the emitter allows */
    uint32_t what;
    uint32_t pid; /* of the one process, in the initial pid namespace; 0 = all */
};

enum followed_end {
    FOLLOWED_IN_TIME = 1,  /* for as long as was asked */
    FOLLOWED_SPENT = 2,    /* as many hits as were asked came before that: what came last is not known */
    FOLLOWED_REPLACED = 3, /* by another request */
    FOLLOWED_REFUSED = 4,  /* nothing was followed; the emitter's log says why */
};
struct record_followed { /* header.source: the request's number */
    struct record_header header;
    uint64_t from_ns; /* everything was seen from here on, losses apart */
    uint64_t to_ns;
    uint64_t hits;
    uint32_t what; /* one bit */
    uint32_t end;
};

enum work_what {
    WORK_POSTED = 1,    /* a list of send requests was given to the provider */
    WORK_COMPLETED = 2, /* a completion was taken from it */
};
enum work_flag {
    WORK_CUT = 1, /* the list was longer than what is read of it: `bytes` and `requests` are too low */
};
struct record_work { /* header.source: the queue pair */
    struct record_header header;
    uint64_t at_ns;
    uint64_t request; /* wr_id, of the list's last request: the completion of it has the same */
    uint32_t bytes;   /* posted: of all requests; completed: what the completion says, which for writes is 0 */
    uint16_t requests;
    uint8_t what;
    uint8_t opcode; /* posted: enum ibv_wr_opcode of the last request; completed: enum ibv_wc_opcode, its low 8 bits */
    uint8_t status; /* enum ibv_wc_status; 0 = success */
    uint8_t flags;
    uint16_t reserved;
    uint32_t tid;
};

enum rank_operation_flag {
    RANK_OPERATION_INCOMPLETE = 1,
    RANK_OPERATION_NO_WIRE = 2,
    RANK_OPERATION_UNKNOWN_ALGORITHM = 4,
    RANK_OPERATION_GPU_READY_LATEST = 8,  /* the GPU was ready no later than gpu_ready_ns */
    RANK_OPERATION_EXPECTED_UNKNOWN = 16, /* expected_bytes is not known */
    RANK_OPERATION_ENQUEUE_UNKNOWN =
        32, /* enqueued_ns is when its first credit or data was seen: no call tells of it */
    RANK_OPERATION_HOLDS_CREDIT =
        64, /* incomplete, and for a second it has sent nothing on any connection, though it held credit on each */
};
enum rank_operation_algorithm {
    ALGORITHM_UNKNOWN = 0,
    ALGORITHM_RING = 1,
    ALGORITHM_TREE = 2,
    ALGORITHM_POINT_TO_POINT = 3,
};
struct record_rank_operation { /* times in the reference clock */
    struct record_header header;
    uint8_t communicator[IDENTITY_BYTES];
    uint64_t sequence;
    int32_t rank;
    int32_t ranks_count;
    int32_t peer;
    uint8_t operation;
    uint8_t datatype;
    uint16_t flags;
    uint64_t buffer_bytes; /* count x element size */
    uint64_t expected_bytes;
    uint64_t observed_bytes;
    uint64_t enqueued_ns;
    uint64_t host_ready_ns; /* 0 = unknown */
    uint64_t gpu_ready_ns;  /* 0 = unknown */
    uint64_t first_data_ns;
    uint64_t last_data_ns;
    uint64_t active_ns;
    uint64_t bound_ns; /* of all times above against the reference clock */
    uint32_t retransmitted_frames;
    uint32_t marked_frames;
    uint64_t end_ns;  /* last data sent or received; 0 = none was seen */
    uint64_t held_ns; /* when it held credit (and what it forwards) for its first data; 0 = unknown */
    uint64_t group;   /* point-to-point: what one group of calls on this rank shares; counts from 1, 0 = collective */
    uint64_t received_bytes;
    uint64_t received_ns; /* last data received; 0 = none */
    uint64_t receive_active_ns;
    int32_t next; /* communicator rank that it sent to; -1: none, several or unknown */
    int32_t previous;
    char device[DEVICE_NAME_BYTES]; /* with its port, "rxe1/1" */
    uint8_t algorithm;              /* enum rank_operation_algorithm */
    uint8_t reserved[7];
    uint64_t frames_bound_ns; /* of the times of frames above against those of other ranks' records; 0 = bound_ns */
};

struct record_reference {
    struct record_header header;
    uint64_t boot_id; /* of the clock that its agents exchange with; 0 = they exchange with none */
};

struct record_rank_operation_run { /* header.source: how many operations follow (operation_run.h) */
    struct record_header header;
};

/* The name of a kind, or NULL when it is not known. */
const char *record_kind_name(uint16_t kind);

/* The size that this version gives to a kind, or 0 when it is not known. */
size_t record_kind_bytes(uint16_t kind);

/* The names of a traffic source, a field and a metric, or NULL when they are not known; a metric's kind, or 0. */
const char *traffic_source_name(uint32_t kind);
const char *source_field_name(unsigned bit);
const char *port_metric_name(uint16_t metric);
unsigned port_metric_kind(uint16_t metric);

/* The fields that a kind of source fills; 0 when it is not known. */
uint32_t traffic_source_fields(uint32_t kind);

/* The element size in bytes of an ncclDataType_t, or 0 when it is not known. */
uint32_t datatype_bytes(uint8_t datatype);

/* The name of an operation as people write it ("AllReduce"), or "Unknown". */
const char *operation_name(uint8_t operation);

/* What a marker says, or NULL when it is not known. */
const char *marker_name(uint16_t marker);
