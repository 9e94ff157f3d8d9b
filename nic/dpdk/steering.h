/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which frames a port gives us: rules as data, and the order in which they are made and taken away. The rule that
 * stands above all: traffic that is not ours goes on as if we were not there, also while we start and end. No DPDK
 * inside: the calls are handed in. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum steering_mode {
    STEERING_AUTO = 0, /* a port that the kernel shares with us: mirror; another: off */
    STEERING_OFF,      /* no rules: all that comes to the port is ours */
    STEERING_TAKE,     /* RoCE frames come to us and to nobody else; the rest stays with the kernel */
    STEERING_MIRROR,   /* RoCE frames go on their way, and a copy comes to us */
};

struct steering_wish {
    enum steering_mode mode;
    bool edges_only;     /* only the frames at which messages begin and end, acknowledgements and congestion notices */
    unsigned flows_part; /* whole flows, but only one in so many (a power of two); 0 or 1 = all */
};

/* What is known of a port before it is started. */
struct steering_port {
    uint16_t id;
    char name[32];
    bool is_shared;      /* the kernel's driver stays on it (bifurcated) */
    bool has_switch;     /* its e-switch takes rules from us */
    bool has_other_side; /* the e-switch's other port is watched too: where frames go that come from this one */
    uint16_t other_side;
    bool can_match_bth;
};

enum steering_network {
    STEERING_ANYTHING = 0,
    STEERING_IPV4,    /* and UDP to port 4791 */
    STEERING_IPV6,    /* and UDP to port 4791 */
    STEERING_ROCE_V1, /* Ethernet type 0x8915 */
};

enum steering_fate {
    STEERING_TO_QUEUES, /* ours, spread by the UDP source port when there are several */
    STEERING_TO_GROUP,
    STEERING_COPY_AND_TO_GROUP, /* a copy to our queues */
    STEERING_TO_OTHER_SIDE,     /* out of the e-switch's other port */
    STEERING_DISCARD,
};

struct steering_rule {
    uint16_t port;
    uint32_t group;
    uint32_t priority; /* 0 is the highest */
    bool in_switch;    /* matches what crosses the e-switch from this port; else what arrives in our function */
    enum steering_network network;
    uint16_t source_port_mask; /* UDP source ports of which these bits are 0 */
    bool has_opcode;           /* BTH */
    uint8_t opcode;
    enum steering_fate fate;
    uint32_t next_group;
    uint16_t other_side;
    const char *not_seen; /* what is missed when this rule is refused; NULL: nothing works without it */
};

#define STEERING_RULES_MAX 64

struct steering_plan {
    struct steering_port port;
    enum steering_mode mode; /* what AUTO became */
    bool isolates;           /* the port gives us what rules name and nothing else; asked for before it is set up */
    bool edges_only;
    unsigned flows_part;
    struct steering_rule rules[STEERING_RULES_MAX]; /* in the order in which they are made */
    size_t rules_count;
};

/* Foreign calls; each is 0 or -errno, with *why set to the driver's own words or NULL. */
struct steering_calls {
    int (*validate)(void *context, const struct steering_rule *rule, const char **why);
    int (*create)(void *context, const struct steering_rule *rule, void **handle, const char **why);
    int (*destroy)(void *context, void *handle);
    void *context;
};

struct steering {
    struct steering_calls calls;
    struct steering_plan plan;
    void *handles[STEERING_RULES_MAX]; /* of the plan's rules; NULL: refused */
    size_t made;
};

/* What to do at this port. -ENOTSUP (logged) when nothing that is wished can be done without touching other traffic. */
int steering_decide(struct steering_plan *plan, const struct steering_port *port, const struct steering_wish *wish);

/* One line a rule, as DPDK's testpmd would take it. */
void steering_print(const struct steering_plan *plan, FILE *to);

/*
 * Makes the plan's rules on a port that receives already. What the port refuses is said in one line each, with what is
 * not seen for it; -ENOTSUP (logged) when nothing is left, and then no rule is.
 */
int steering_begin(struct steering *steering, const struct steering_plan *plan, const struct steering_calls *calls);

/* Takes the rules away again, the last one first, before the port ends to receive. A no-op when there are none. */
void steering_end(struct steering *steering);
