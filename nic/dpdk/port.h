/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A DPDK port with its receive queues: started, steered, counted, ended (DPDK inside; receiving itself is the
 * source's). One thread starts, ends and asks for losses and statistics; each queue is read by a thread of its own,
 * which leaves its counts here.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "nic/dpdk/rule.h"
#include "nic/dpdk/specification.h"
#include "nic/dpdk/steering.h"
#include "nic/source/source.h"

struct rte_eth_xstat;
struct rte_eth_xstat_name;
struct rte_mempool;

/* What the thread that reads a queue tells the others; on a line of its own. */
struct port_queue {
    _Atomic uint64_t seen;          /* frames received */
    _Atomic uint32_t answered;      /* the last question that was answered by `seen_answered` */
    _Atomic uint64_t seen_answered; /* frames received when the queue was first found empty after that question */
} __attribute__((aligned(64)));

struct port {
    uint16_t id;
    bool is_open; /* by us: to be closed */
    bool is_started;
    bool is_promiscuous; /* by us */
    bool is_split;       /* headers come in a buffer of their own; the rest is not looked at, nor perhaps fetched */
    unsigned queues_count;
    struct specification specification;
    struct record_port record;
    struct steering_plan plan;
    struct steering steering;
    struct rule_context rules;
    _Atomic uint32_t question; /* for net_af_packet: how much has been seen by now? */
    bool is_asking;
    uint64_t counted;      /* by the interface, when the question was asked */
    uint64_t counted_base; /* and when we began */
    uint64_t lost;         /* in all */
    uint64_t lost_told;
    uint64_t checked_ns;
    struct rte_eth_xstat_name *statistic_names;
    struct rte_eth_xstat *statistics;
    int statistics_count;
    struct port_queue queues[SOURCE_QUEUES_MAX];
};

/* Where frames go: one pool a queue; `rest` takes what is split off, or is NULL. */
struct port_pools {
    struct rte_mempool *frames;
    struct rte_mempool *rest;
};

/* Finds the device, and says what may be wished of it. -errno, logged. */
int port_open(struct port *port, const struct specification *specification, uint32_t number, unsigned queues);

/* What steering wants to know of it; `ports` are all that are watched. */
void port_describe(const struct port *port, const struct port *ports, size_t ports_count, struct steering_port *known);

/* Whether frames can be split at their headers. */
bool port_can_split(const struct port *port);

/* Sets it up and starts it. -errno, logged. */
int port_start(struct port *port, const struct steering_plan *plan, const struct port_pools *pools,
               bool is_promiscuous);

/* Makes the plan's rules, when all ports have been started. -errno, logged. */
int port_steer(struct port *port);

/* Frames lost since the last call that found some; false when none. Reads files or the device every 50 ms. */
bool port_take_loss(struct port *port, uint64_t now_ns, struct source_loss *loss);

/* The thread that reads the queue has found it empty. */
static inline void port_note_empty(struct port *port, struct port_queue *queue)
{
    uint32_t question = atomic_load_explicit(&port->question, memory_order_relaxed);

    if (question == atomic_load_explicit(&queue->answered, memory_order_relaxed))
        return;
    atomic_store_explicit(&queue->seen_answered, atomic_load_explicit(&queue->seen, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&queue->answered, question, memory_order_release);
}

/* The port's own clock. -errno when it has none. */
int port_read_clock(const struct port *port, uint64_t *raw);

/* Each of the driver's statistics. One thread, which may be another than that of losses. */
void port_statistics(struct port *port, source_statistic visit, void *context);

/* Takes its rules away: of all ports before the first is closed. */
void port_let_go(struct port *port);

/* Stops and closes it; a no-op on a port that was not opened. */
void port_close(struct port *port);
