/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the probes tell user space: one event a hit, through one ring buffer, in the order in which they happened.
 * Included by both sides, which assert the sizes. Native byte order: an event never leaves the machine.
 *
 * Times are bpf_ktime_get_ns(): the kernel's CLOCK_MONOTONIC, which no time namespace shifts. Process and thread ids
 * are those of the initial pid namespace.
 */
#pragma once

#include <linux/types.h>

#define EVENT_ID_BYTES      128 /* ncclUniqueId */
#define EVENT_PENDING_MAX   64  /* communicators made in one group by one thread */
#define EVENT_NAME_BYTES    16
#define EVENT_ADDRESS_BYTES 16

enum event_kind {
    EVENT_PROCESS = 1,
    EVENT_PROCESS_EXIT,
    EVENT_THREAD_FORK,
    EVENT_THREAD_EXIT,
    EVENT_INIT,
    EVENT_POINTER,
    EVENT_INIT_RETURN,
    EVENT_GROUP_END,
    EVENT_GROUP_RETURN,
    EVENT_CALL,
    EVENT_CALL_RETURN,
    EVENT_DESTROY,
    EVENT_QUEUE_PAIR_CREATE,
    EVENT_QUEUE_PAIR_MODIFY,
    EVENT_QUEUE_PAIR_DESTROY,
    EVENT_COMMUNICATOR,
    EVENT_MARKER,
    EVENT_PROXY_MESSAGE,
    EVENT_PROXY_SOCKET,
    EVENT_DELAY,
    EVENT_WORK,
    EVENT_FAILURE,
};

/* A probe's attach cookie: the library's number, and above it which of its program's symbols it sits at. */
#define EVENT_VARIANT_SHIFT 32

/* What is told only when it is asked for, for a bounded time. */
enum detail_kind { DETAIL_SUBMISSIONS, DETAIL_DELAYS, DETAILS };
struct detail {
    __s64 left;    /* events that may still come; a few more do where CPUs race */
    __u32 process; /* thread group; 0 = all */
    __u32 reserved;
};

struct event_header {
    __u32 kind;
    __u32 lost; /* events dropped since the start, when this one was made (low 32 bits) */
    __u64 at_ns;
    __u32 tgid;
    __u32 tid;
};

enum event_process_flag {
    PROCESS_COLLECTIVE = 1, /* called the collective library */
    PROCESS_VERBS = 2,      /* made a queue pair */
    PROCESS_FLAGS = 255,
    PROCESS_CAPTURES = 256, /* above the flags, in the kernel only: the graphs that are being captured */
};

/* The first hit of a process, and again when it shows a new flag. */
struct event_process {
    struct event_header header;
    __u64 started_ns;
    __u64 library; /* number of the one whose probe was hit */
    __u32 flags;   /* all flags so far */
    __u32 reserved;
    char command[EVENT_NAME_BYTES];
};

/* EVENT_PROCESS_EXIT (its last thread ends, or it executes another program), EVENT_THREAD_EXIT. */
struct event_exit {
    struct event_header header;
};

/* header.tid is the thread that makes the new one. */
struct event_fork {
    struct event_header header;
    __u32 child;
    __u32 reserved;
};

enum event_creator {
#define CREATOR(name, number, text) CREATOR_##name = (number),
#include "wire/creator.def"
#undef CREATOR
};

/* Entry of a call that makes communicators. Its time and thread name it in the events that follow. */
struct event_init {
    struct event_header header;
    __u64 parent;      /* split, shrink, grow: ncclComm_t, 0 = none */
    __s32 ranks_count; /* init all: number of communicators; split: 0; shrink: number of the ranks that are left out */
    __s32 rank;        /* -1 = not given */
    __s32 color;
    __s32 key;
    __u8 creator;
    __u8 grouped;     /* within a group: the work is done by the outermost group end */
    __u8 nonblocking; /* its configuration says so */
    __u8 has_id;
    __u8 reserved[4];
    __u8 id[EVENT_ID_BYTES]; /* zeros where there is none; shrink: the first ranks that are left out, 4 bytes each */
};
#define EVENT_EXCLUDED_MAX (EVENT_ID_BYTES / 4)

/* The ncclComm_t that an init call has made. */
struct event_pointer {
    struct event_header header;
    __u64 entered_ns; /* of the init call */
    __u64 pointer;
    __u32 index; /* init all: which of them */
    __u32 reserved;
};

struct event_init_return {
    struct event_header header;
    __u64 entered_ns;
    __s32 result; /* ncclResult_t */
    __u32 grouped;
};

/* Entry and return of the outermost ncclGroupEnd of a group that held something. */
struct event_group {
    struct event_header header;
    __u32 group; /* counts the groups of the thread from 1 */
    __u32 inits; /* communicators to be made */
    __s32 result;
    __u32 nonblocking; /* one of them says so */
};

#define EVENT_NO_DATATYPE   255
#define EVENT_NO_REDUCTION  255
#define EVENT_OWN_REDUCTION 254
#define EVENT_REDUCTIONS    5  /* that the library brings along */
#define EVENT_WAITS_MAX     64 /* descriptors of one ncclWaitSignal */
enum event_call_flag {
    EVENT_CALL_CAPTURED = 1, /* a graph was being captured in the process */
    EVENT_CALL_RETURNS = 2,  /* its return will be told */
    EVENT_CALL_SAME = 4,     /* the thread's call before, with another peer */
};
/* Entry of a data call; of ncclWaitSignal one a descriptor. */
struct event_call {
    struct event_header header;
    __u64 communicator; /* ncclComm_t */
    __u64 count;
    __u64 stream;
    __s32 peer;  /* peer or root, -1 = none */
    __u32 group; /* as in event_group; 0 = not grouped */
    __u8 operation;
    __u8 datatype;
    __u8 reduction;
    __u8 flags;
    __u8 reserved[4];
};

/* Return of a data call outside of groups. */
struct event_call_return {
    struct event_header header;
    __s32 result;
    __u32 reserved;
};

enum event_marker_flag {
    EVENT_MARKER_SUBMITTED = 1, /* its entry only: entered_ns and nothing else of its time and result */
    EVENT_MARKER_DRIVER = 2,    /* seen at the driver */
};
/* Return of a call of the GPU's runtime or driver. */
struct event_marker {
    struct event_header header;
    __u64 entered_ns;
    __u64 stream;
    __u64 handle; /* what it is about: a graph, an event, a function, a number of bytes */
    __u64 made;   /* what it has made: a graph, memory */
    __s32 result;
    __u16 marker; /* enum marker_kind */
    __u16 flags;
};

enum event_delay_role {
    EVENT_DELAY_CALLS = 1,  /* the thread makes data calls */
    EVENT_DELAY_SERVES = 2, /* it descends from the making of a communicator, or was born in a call of the library */
};
enum event_delay_flag {
    EVENT_DELAY_ALONE = 1, /* one stay off the CPU */
};
/* What kept a thread from running from from_ns to the header's time. header.tid is that thread. */
struct event_delay {
    struct event_header header;
    __u64 from_ns;
    __u64 sleep_ns;
    __u64 run_queue_ns;
    __u64 wait_ns; /* for block devices */
    __u64 sent_bytes;
    __u32 run_queue_longest_ns;
    __u32 switches;
    __u32 minor_faults;
    __u32 major_faults;
    __u32 retransmissions;
    __u16 role;
    __u16 flags;
};

enum event_farewell {
    FAREWELL_DESTROY = 1,
    FAREWELL_ABORT,
    FAREWELL_FINALIZE, /* it still has to be destroyed, as with the next */
    FAREWELL_REVOKE,
};
/* Entry of ncclCommDestroy and its like. */
struct event_destroy {
    struct event_header header;
    __u64 communicator;
    __u32 farewell; /* enum event_farewell */
    __u32 reserved;
};

/* What the library itself notes of a communicator; once it is ready, or when it is first used. */
struct event_communicator {
    struct event_header header;
    __u64 pointer;
    __u64 hash; /* 0: this version of the library notes none */
    __s32 rank;
    __s32 ranks_count;
    __s32 cuda_device;
    __u32 reserved;
};

/* A queue pair was made. */
struct event_queue_pair_create {
    struct event_header header;
    __u64 pointer;
    __u64 send_queue; /* ibv_cq */
    __u32 qpn;
    __u32 type;
    char device[EVENT_NAME_BYTES];
    __u64 context;     /* its maker's own pointer */
    __u32 max_send;    /* work requests */
    __u32 max_receive; /* work requests */
    __s32 socket;      /* that its thread last used, 0 = none that is known */
    __u32 reserved;
};

/* ibv_modify_qp returned 0. A field counts where its bit in `mask` (enum ibv_qp_attr_mask) is set. */
struct event_queue_pair_modify {
    struct event_header header;
    __u64 pointer;
    __u32 mask;
    __u32 remote_qpn;
    __u32 access_flags;
    __u8 state;
    __u8 port;         /* IBV_QP_PORT */
    __u8 address_port; /* IBV_QP_AV: of the address, as the next four */
    __u8 address_index;
    __u8 traffic_class;
    __u8 service_level;
    __u8 global;
    __u8 path_mtu; /* enum ibv_mtu */
    __u8 timeout;
    __u8 retry_count;
    __u8 rnr_retry;
    __u8 min_rnr_timer;
    __u8 remote_address[EVENT_ADDRESS_BYTES];
};

/* Its memory may be another queue pair's by now: one made after `entered_ns`. */
struct event_queue_pair_destroy {
    struct event_header header;
    __u64 pointer;
    __u64 entered_ns;
};

enum event_failure_cause {
    EVENT_FAILURE_ASYNC_ERROR = 1,
    EVENT_FAILURE_WARNING,
};

#define EVENT_TEXT_BYTES 120
struct event_failure {
    struct event_header header;
    __u64 communicator; /* 0 = none is named */
    __u32 cause;
    __s32 result; /* ncclResult_t that it shows */
    char text[EVENT_TEXT_BYTES];
};

enum proxy_message_type { /* NCCL's ncclProxyMsgType */
                          PROXY_SETUP = 3,
                          PROXY_CONNECT = 4,
};

#define EVENT_REQUEST_BYTES 64
/* A service thread has read a message of the collective library's proxy. */
struct event_proxy_message {
    struct event_header header;
    __u64 connection; /* the proxy's own pointer */
    __s32 socket;
    __u32 type;
    __u32 request_bytes; /* all of it; `request` has its beginning */
    __u32 receives;      /* of the thread, up to this one */
    __u8 request[EVENT_REQUEST_BYTES];
};

enum proxy_socket_what {
    PROXY_SOCKET_LISTEN = 1,
    PROXY_SOCKET_CONNECT,
    PROXY_SOCKET_ACCEPT,
};

#define EVENT_SOCKET_ADDRESS_BYTES 32
/* A service thread has a new socket. */
struct event_proxy_socket {
    struct event_header header;
    __u32 what;
    __s32 socket;
    __s32 listener;                           /* accept: where it came in */
    __u32 receives;                           /* of the thread, so far */
    __u8 address[EVENT_SOCKET_ADDRESS_BYTES]; /* connect: struct sockaddr_in or sockaddr_in6 */
};

enum event_work_what {
    EVENT_WORK_POSTED = 1,
    EVENT_WORK_COMPLETED = 2,
};
enum event_work_flag {
    EVENT_WORK_CUT = 1, /* more was posted than was read: `bytes` and `requests` are too low */
};
/* A list of send requests was given to the provider; or one completion was taken from it. */
struct event_work {
    struct event_header header;
    __u64 pointer; /* posted: ibv_qp; completed: ibv_cq */
    __u64 work;    /* wr_id, of the list's last request */
    __u32 bytes;   /* posted: of all requests; completed: what the completion says, which for writes is nothing */
    __u32 qpn;     /* completed */
    __u16 requests;
    __u8 what;
    __u8 opcode; /* posted: enum ibv_wr_opcode of the last request; completed: enum ibv_wc_opcode, its low bits */
    __u8 status; /* enum ibv_wc_status */
    __u8 flags;
    __u16 reserved;
};

_Static_assert(sizeof(struct event_header) == 24, "event_header");
_Static_assert(sizeof(struct event_process) == 64, "event_process");
_Static_assert(sizeof(struct event_exit) == 24, "event_exit");
_Static_assert(sizeof(struct event_fork) == 32, "event_fork");
_Static_assert(sizeof(struct event_init) == 184, "event_init");
_Static_assert(sizeof(struct event_pointer) == 48, "event_pointer");
_Static_assert(sizeof(struct event_init_return) == 40, "event_init_return");
_Static_assert(sizeof(struct event_group) == 40, "event_group");
_Static_assert(sizeof(struct event_call) == 64, "event_call");
_Static_assert(sizeof(struct event_call_return) == 32, "event_call_return");
_Static_assert(sizeof(struct event_delay) == 88, "event_delay");
_Static_assert(sizeof(struct event_marker) == 64, "event_marker");
_Static_assert(sizeof(struct event_destroy) == 40, "event_destroy");
_Static_assert(sizeof(struct event_queue_pair_create) == 88, "event_queue_pair_create");
_Static_assert(sizeof(struct event_failure) == 160, "event_failure");
_Static_assert(sizeof(struct event_proxy_message) == 112, "event_proxy_message");
_Static_assert(sizeof(struct event_proxy_socket) == 72, "event_proxy_socket");
_Static_assert(sizeof(struct event_queue_pair_modify) == 72, "event_queue_pair_modify");
_Static_assert(sizeof(struct event_queue_pair_destroy) == 40, "event_queue_pair_destroy");
_Static_assert(sizeof(struct event_communicator) == 56, "event_communicator");
_Static_assert(sizeof(struct event_work) == 56, "event_work");
