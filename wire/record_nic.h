/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of the NIC side: ports, flows, messages, windows, what is asked for, what others count. A part of
 * record.h, which says what holds for all of them, and through which it is included.
 */
#pragma once

enum port_flag {
    PORT_EDGES_ONLY = 1,    /* of messages only the first and the last frames come: no windows, no byte counts */
    PORT_PART_OF_FLOWS = 2, /* of the flows only a part is seen, each of them whole */
    PORT_ONE_QUEUE = 4,     /* this stream sees one of the port's queues; other streams see the others */
};
struct record_port {
    struct record_header header;
    uint32_t port; /* counts from 1 */
    uint32_t flags;
    char name[32];
    uint8_t address[ADDRESS_BYTES]; /* the port's own GID where it is known, else zeros */
};

enum vantage {
    VANTAGE_MIDDLE = 0,
    VANTAGE_TX = 1,
    VANTAGE_RX = 2,
};
struct record_flow {
    struct record_header header;
    uint32_t flow;
    uint32_t generation; /* rises when the same key is used by a new connection */
    uint8_t source[ADDRESS_BYTES];
    uint8_t destination[ADDRESS_BYTES];
    uint32_t destination_qpn;
    uint16_t udp_source_port;
    uint8_t vantage;
    uint8_t dscp;
    uint32_t port;
    uint32_t vlans; /* ids of the innermost Ethernet header's first two tags: first | second << 12; 0 = none */
    uint64_t first_ns;
    uint32_t tunnel;         /* the tunnel's id: VNI, GRE key, bottom MPLS label */
    uint32_t mirror_address; /* who mirrored it: an IPv4 address, or 32 bits made of an IPv6 address */
    uint16_t mirror_session;
    uint8_t tunnel_kind;
    uint8_t mirror_kind;
    uint32_t reserved;
};

enum tunnel_kind {
    TUNNEL_NONE = 0,
    TUNNEL_VXLAN = 1,
    TUNNEL_GRE = 2, /* without a key */
    TUNNEL_GRE_KEY = 3,
    TUNNEL_MPLS = 4,
};

enum mirror_kind {
    MIRROR_NONE = 0,
    MIRROR_ERSPAN1 = 1, /* has no session */
    MIRROR_ERSPAN2 = 2,
    MIRROR_ERSPAN3 = 3,
    MIRROR_V6 = 4, /* a flag beside these: the address is made of an IPv6 address */
};

enum message_role {
    ROLE_DATA = 1,
    ROLE_CREDIT = 2,
    ROLE_SIZE = 3,
    ROLE_FLUSH = 4,
    ROLE_OTHER = 5,
};
enum message_flag {
    MESSAGE_IMMEDIATE = 1,     /* `immediate` is valid */
    MESSAGE_INCOMPLETE = 2,    /* its first or last frame was not seen */
    MESSAGE_RETRANSMITTED = 4, /* some of its frames had been seen before; they are not in payload_bytes */
    MESSAGE_MERGED = 8,        /* a burst of several messages of one role */
    MESSAGE_PLACED = 16,       /* `place` is valid */
};
struct record_message { /* header.source: the flow */
    struct record_header header;
    uint64_t first_ns;
    uint32_t duration_ns; /* last frame minus first frame, saturates */
    uint32_t payload_bytes;
    uint32_t frames;
    uint32_t immediate; /* as on the wire, read big-endian; of a burst: how many messages it holds */
    uint32_t place;     /* low 32 bits of RETH's virtual address: the slot of the buffer */
    uint8_t role;
    uint8_t opcode; /* BTH opcode of the last frame */
    uint16_t flags;
};

struct record_window { /* header.source: the flow */
    struct record_header header;
    uint64_t index; /* the window is [index * window_ns, (index + 1) * window_ns) */
    uint32_t first_offset_ns;
    uint32_t last_offset_ns;
    uint32_t frames; /* data, first time seen */
    uint32_t wire_bytes;
    uint32_t payload_bytes;
    uint16_t retransmitted_frames;
    uint16_t marked_frames; /* ECN-CE */
};

enum paired_by {
    PAIRED_NOT = 0,
    PAIRED_BY_ACKNOWLEDGEMENTS = 1, /* their PSNs fit no other flow */
    PAIRED_BY_SET_UP = 2,           /* the connection was seen being made */
    PAIRED_BY_HOST = 3,
};
struct record_flow_total { /* header.source: the flow */
    struct record_header header;
    uint64_t at_ns;
    uint64_t data_frames; /* request frames and READ responses, retransmissions included */
    uint64_t wire_bytes;
    uint64_t payload_bytes;
    uint64_t messages;
    uint32_t acks;
    uint32_t naks;
    uint32_t rnr_naks;
    uint32_t cnps;
    uint32_t marked_frames;
    uint32_t repeated_frames;      /* PSN seen before */
    uint32_t late_frames;          /* first seen with a PSN below the highest */
    uint32_t retransmitted_frames; /* repeated, and late ones that are explained; without duplicates */
    uint64_t retransmitted_bytes;  /* payload of those */
    uint64_t last_ns;
    uint64_t covered_psns; /* progress: data frames, each PSN once */
    uint64_t rnr_wait_ns;  /* of got_rnr_naks, how long they told the sender to wait, together */
    uint32_t pair; /* the other direction's flow; 0: not known (yet), and then nothing below is known that is got */
    uint32_t source_qpn;                /* the sender's queue pair, known by the pair */
    uint32_t got_acks;                  /* answers that concern this flow: those that travelled in the pair */
    uint32_t got_naks[NAK_CODES_COUNT]; /* by code, the last one: all others */
    uint32_t got_rnr_naks;
    uint32_t got_cnps;
    uint32_t rnr_last_ns;
    uint32_t late_unknown_frames; /* of late_frames, those that nothing explains */
    uint32_t duplicate_frames;    /* of repeated_frames, those doubled on the way */
    uint32_t timeouts;            /* pauses as long as a time-out, after which frames were sent again */
    uint32_t pauses;              /* as long, inside a message, after which it went on; what was resent is not known */
    uint32_t source_port_changes; /* of the UDP source port */
    uint8_t codepoints;           /* ECN: bit n set = code point n was seen on data (1 << 3: congestion experienced) */
    uint8_t paired_by;            /* enum paired_by */
    uint8_t dscp;                 /* of the last data frame */
    uint8_t reserved;
    uint32_t reordered_frames; /* of late_frames, those that came once more after that: overtaken, not lost */
    uint32_t timeout_us;       /* how long the pauses of `timeouts` took, together; saturates */
};

enum trigger_tier { /* what is asked for, in falling detail */
                    TIER_WINDOWS = 0,
                    TIER_MESSAGES = 1,
                    TIER_WINDOWS_MIDDLE = 2, /* coarse_window records, the shorter ones */
                    TIER_WINDOWS_LONG = 3,
                    TIERS_COUNT,
};
enum trigger_rank { /* which flows come first when not all can */
                    RANK_BYTES = 0,
                    RANK_RETRANSMITTED = 1,
                    RANKS_COUNT,
};
#define TRIGGER_FLOWS_MAX 9
struct record_trigger { /* header.source: the trigger's number, chosen by the asker */
    struct record_header header;
    uint64_t from_ns; /* in the asked emitter's clock */
    uint64_t to_ns;
    uint32_t flow; /* the first of those that are asked for; 0 = all, ranked */
    uint32_t tier;
    uint32_t rank;
    uint32_t limit;         /* records at most; 0 = the emitter's own limit */
    uint32_t more_flows[8]; /* 0 = no more */
    uint64_t boot_id;       /* of the emitter that is asked: others that hear it do not answer; 0 = all are asked */
};

enum trigger_end_flag {
    TRIGGER_END_PINNED = 1, /* some of it was kept because a flow stalled or changed its rate */
};
struct record_trigger_end { /* header.source: the trigger's number */
    struct record_header header;
    uint64_t from_ns; /* what was still held of the interval; from == to: nothing */
    uint64_t to_ns;
    uint64_t windows;  /* records of the tier that were sent */
    uint64_t left_out; /* records of the tier that the limit left out */
    uint32_t flows;    /* that they are of */
    uint32_t flows_left_out;
    uint32_t tier;
    uint32_t flags;
};

struct record_coarse_window { /* header.source: the flow; as record_window, but of a length of its own */
    struct record_header header;
    uint64_t index; /* the window is [index * window_ns, (index + 1) * window_ns) */
    uint32_t window_ns;
    uint32_t first_offset_ns;
    uint32_t last_offset_ns;
    uint32_t frames;
    uint32_t wire_bytes;
    uint32_t payload_bytes;
    uint32_t retransmitted_frames;
    uint32_t marked_frames;
};

enum pin_cause {
    PIN_STALLED_WITHIN = 1,  /* the flow fell silent in the middle of a message */
    PIN_STALLED_BETWEEN = 2, /* ... after a message, for longer than it usually does */
    PIN_SLOWED = 3,          /* a message took far longer than the flow's messages of its size */
};
struct record_pin { /* header.source: the flow */
    struct record_header header;
    uint64_t from_ns; /* all windows of all flows in the interval are kept, until newer pins need the room */
    uint64_t to_ns;
    uint32_t cause; /* enum pin_cause */
    uint32_t reserved;
    uint64_t usual_ns; /* how long it was by the flow's pattern: a distance of frames, a pause, a message */
    uint64_t found_ns; /* how long it was */
};

struct record_message_run { /* header.source: how many messages follow (message_run.h) */
    struct record_header header;
};

enum source_field { /* a set of bits */
#define SOURCE_FIELD(name, bit, text, help) SOURCE_##name = 1 << (bit),
#include "wire/source_field.def"
#undef SOURCE_FIELD
};
enum traffic_source {
#define TRAFFIC_SOURCE(name, number, text, fields, grain, verdicts) TRAFFIC_SOURCE_##name = (number),
#include "wire/traffic_source.def"
#undef TRAFFIC_SOURCE
};
struct record_traffic_source {
    struct record_header header;
    uint32_t kind;     /* enum traffic_source */
    uint32_t fields;   /* enum source_field: what is not set here is not seen, however often it happens */
    uint64_t grain_ns; /* frames: the window; counting: the usual time between two readings, 0 = none made yet */
    uint64_t at_ns;
    char name[16];
    uint64_t stamp_bound_ns; /* how far a frame's time may be from when it passed the port; 0 = not known, or exact */
};

struct record_endpoint {
    struct record_header header;
    uint32_t endpoint;
    uint32_t generation; /* rises when the QPN is used by a new queue pair */
    uint8_t address[ADDRESS_BYTES];
    uint8_t remote_address[ADDRESS_BYTES]; /* zeros: not known */
    uint32_t qpn;
    uint32_t remote_qpn;
    uint32_t port;
    uint32_t path_mtu_bytes; /* 0 = not known */
    uint8_t state;           /* enum queue_pair_state; 255 = not known */
    uint8_t type;            /* enum ibv_qp_type; 255 = not known */
    uint16_t reserved;
    uint32_t pid;      /* of its process, as the device's machine sees it; 0 = not known */
    uint64_t first_ns; /* when it was first seen */
    uint64_t gone_ns;  /* when it was first missing; 0 while it is there */
};

enum reading_flag {
    READING_RESET = 1,          /* a counter stood below where it had been: its difference is not counted */
    READING_REWOUND = 2,        /* the sender went back to an earlier sequence number */
    READING_SENT_ONLY = 8,      /* what was received is not counted */
    READING_RECEIVED_ONLY = 16, /* what was sent is not counted */
    READING_AMBIGUOUS = 4,      /* so long after the reading before that a sequence number may have gone round unseen */
};
/*
 * A counter is read at some moment of the interval in which it was asked for and answered. So the difference of two
 * readings happened within [from_ns, to_ns), and all of what happened in [from_ns + from_bound_ns, to_ns - to_bound_ns)
 * is in it. It belongs to the whole interval: nothing says how it lay inside.
 */
struct record_reading { /* header.source: the endpoint */
    struct record_header header;
    uint64_t from_ns;
    uint64_t to_ns;
    uint32_t from_bound_ns;
    uint32_t to_bound_ns;
    uint32_t fields; /* enum source_field: which of the following say something */
    uint32_t flags;
    uint64_t sent_packets;     /* PACKETS: packets; PROGRESS: sequence numbers used */
    uint64_t sent_bytes_least; /* WIRE_BYTES or PAYLOAD_*; counted: both are equal */
    uint64_t sent_bytes_most;
    uint64_t received_packets;
    uint64_t received_bytes_least;
    uint64_t received_bytes_most;
    uint32_t acknowledged_packets;   /* PROGRESS: sequence numbers that the other end acknowledged */
    uint32_t unacknowledged_packets; /* PROGRESS: sent, but not acknowledged at to_ns */
};

enum port_metric {
#define PORT_METRIC(name, number, text, kind, help) PORT_METRIC_##name = (number),
#include "wire/port_metric.def"
#undef PORT_METRIC
};
enum port_metric_kind {
    PORT_METRIC_EVENT = 1,
    PORT_METRIC_VOLUME = 2,
    PORT_METRIC_DURATION = 3,
    PORT_METRIC_STATE = 4,
};
enum port_counter_flag {
    PORT_COUNTER_RESET = 1, /* it was set back in between: what it counted before that is not in `value` */
};
struct record_port_counter { /* header.source: the port */
    struct record_header header;
    uint16_t metric;  /* enum port_metric */
    uint8_t priority; /* 0 to 7; 255 = of the whole port */
    uint8_t reserved;
    uint32_t flags;
    uint64_t from_ns; /* it changed no earlier than this */
    uint64_t to_ns;
    uint64_t value; /* a state: what holds now; else what it counted since the NIC side began */
};
#define PRIORITY_NONE 255
