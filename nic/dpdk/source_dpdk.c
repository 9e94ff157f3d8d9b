/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DPDK ports as traffic sources: one source a receive queue, each read by a thread of its own, over ports that they
 * share; receive only (DPDK inside: here the receiving, in nic/dpdk the ports). What concerns a port as a whole (its
 * losses and statistics) is said by the source of the first queue. Time: what the driver stamps a frame with where it
 * is understood (stamp.h), else one reading of the clock a burst: it is read through the kernel's page, whose rate the
 * kernel keeps right, and never made of processor ticks here.
 */
#include "nic/source/source_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "nic/dpdk/environment.h"
#include "nic/dpdk/port.h"
#include "nic/dpdk/stamp.h"
#include "nic/source/kernel_ring.h"
#include "wire/clock.h"
#include "wire/log.h"

#define HAND_OVER_NS      2000000u /* from a frame's stamp until it lies where we read */
#define REST_MIN_NS       50000u
#define REST_MAX_NS       1000000u
#define REST_STAMPED_NS   8000000u /* where the driver stamps, late reading costs no accuracy */
#define POLLS_BEFORE_REST 64u

/* What all sources of the process share; goes with the last of them. */
struct shared {
    struct port ports[SOURCE_PORTS_MAX];
    size_t ports_count;
    unsigned queues_count;
    unsigned sources_count; /* that are open */
    bool is_started;        /* the EAL */
    struct port_pools pools[SOURCE_QUEUES_MAX];
    int stamp_offset; /* dynamic field; -1: no driver stamps */
    uint64_t stamp_flag;
};

struct dpdk_source {
    struct source source;
    struct shared *shared;
    uint16_t queue;
    bool is_registered; /* the thread that reads, with DPDK */
    size_t next_port;
    struct rte_mbuf *held[SOURCE_BURST_FRAMES];
    uint16_t held_count;
    struct stamp stamps[SOURCE_PORTS_MAX];
    uint64_t drained_ns[SOURCE_PORTS_MAX]; /* when there was last nothing left to read */
    uint64_t rest_ns;
    unsigned empty_polls;
    size_t polled; /* ports, since the last rest */
};

/* ---- receiving ---- */

static uint32_t original_bytes(const struct port *port, const struct rte_mbuf *mbuf)
{
    uint32_t there_bytes = rte_pktmbuf_pkt_len(mbuf);

    return port->specification.is_snapped && there_bytes == KERNEL_RING_SNAP_BYTES ? FRAME_BYTES_UNKNOWN : there_bytes;
}

static uint64_t frame_time(const struct shared *shared, struct stamp *stamp, struct rte_mbuf *mbuf, uint64_t now_ns)
{
    if (shared->stamp_offset < 0 || (mbuf->ol_flags & shared->stamp_flag) == 0) {
        stamp_missing(stamp);
        return now_ns;
    }
    return stamp_time(stamp, *RTE_MBUF_DYNFIELD(mbuf, shared->stamp_offset, uint64_t *), now_ns);
}

/* The clock was read as `now_ns` before: what is stamped until then has been handed out when the burst is not full. */
static int receive_port(struct dpdk_source *self, size_t index, uint64_t now_ns,
                        struct source_frame frames[SOURCE_BURST_FRAMES])
{
    struct port *port = &self->shared->ports[index];
    struct port_queue *queue = &port->queues[self->queue];
    uint16_t count = rte_eth_rx_burst(port->id, self->queue, self->held, SOURCE_BURST_FRAMES);

    self->held_count = count;
    atomic_store_explicit(&queue->seen, atomic_load_explicit(&queue->seen, memory_order_relaxed) + count,
                          memory_order_relaxed);
    if (count < SOURCE_BURST_FRAMES)
        self->drained_ns[index] = now_ns;
    if (count == 0)
        port_note_empty(port, queue);
    for (uint16_t i = 0; i < count; i++) {
        struct rte_mbuf *mbuf = self->held[i];
        frames[i] = (struct source_frame){.bytes = rte_pktmbuf_mtod(mbuf, const uint8_t *),
                                          .captured_bytes = rte_pktmbuf_data_len(mbuf),
                                          .original_bytes = original_bytes(port, mbuf),
                                          .at_ns = frame_time(self->shared, &self->stamps[index], mbuf, now_ns),
                                          .port = port->record.port,
                                          .layer = FRAME_LAYER_ETHERNET};
    }
    return count;
}

/* DPDK's buffers are cheaper for a thread that it knows; the first source's is the one that started it. */
static void register_thread(struct dpdk_source *self)
{
    self->is_registered = true;
    if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() != 0)
        log_warning("DPDK does not take the thread of queue %u: it is read all the same, but slower", self->queue);
}

static int receive_dpdk(struct source *source, struct source_frame frames[SOURCE_BURST_FRAMES])
{
    struct dpdk_source *self = (struct dpdk_source *)source;
    size_t ports_count = self->shared->ports_count;
    uint64_t now_ns = clock_now_ns();

    if (!self->is_registered)
        register_thread(self);
    rte_pktmbuf_free_bulk(self->held, self->held_count);
    self->held_count = 0;
    for (size_t i = 0; i < ports_count; i++) {
        size_t index = self->next_port;
        self->next_port = index + 1 == ports_count ? 0 : index + 1;
        self->polled++;
        stamp_check(&self->stamps[index], now_ns);
        int count = receive_port(self, index, now_ns, frames);
        if (count != 0)
            return count;
    }
    return 0;
}

static bool are_all_stamped(const struct dpdk_source *self)
{
    if (self->shared->stamp_offset < 0)
        return false;
    for (size_t i = 0; i < self->shared->ports_count; i++) {
        if (self->stamps[i].kind == STAMP_NONE)
            return false;
    }
    return true;
}

static void rest_dpdk(struct source *source, size_t received)
{
    struct dpdk_source *self = (struct dpdk_source *)source;
    bool stamped = are_all_stamped(self);
    uint64_t most_ns = stamped ? REST_STAMPED_NS : REST_MAX_NS;

    if (received == SOURCE_BURST_FRAMES || (received != 0 && !stamped)) {
        self->empty_polls = 0;
        self->polled = 0;
        self->rest_ns = REST_MIN_NS;
        return;
    }
    if (self->polled < self->shared->ports_count || (!stamped && ++self->empty_polls < POLLS_BEFORE_REST))
        return;
    self->polled = 0;
    const struct timespec rest = {.tv_nsec = (long)self->rest_ns};
    nanosleep(&rest, NULL);
    self->rest_ns = self->rest_ns * 2 < most_ns ? self->rest_ns * 2 : most_ns;
}

/* ---- what it says of itself and its ports ---- */

static bool take_dpdk_loss(struct source *source, struct source_loss *loss)
{
    struct dpdk_source *self = (struct dpdk_source *)source;
    uint64_t now_ns = clock_now_ns();

    for (size_t i = 0; i < self->shared->ports_count && self->queue == 0; i++) {
        if (port_take_loss(&self->shared->ports[i], now_ns, loss))
            return true;
    }
    return false;
}

static void visit_statistics(struct source *source, uint32_t port, source_statistic visit, void *context)
{
    struct dpdk_source *self = (struct dpdk_source *)source;

    if (self->queue == 0 && port >= 1 && port <= self->shared->ports_count)
        port_statistics(&self->shared->ports[port - 1], visit, context);
}

static size_t list_dpdk(const struct source *source, struct record_port *ports, size_t capacity)
{
    const struct shared *shared = ((const struct dpdk_source *)source)->shared;
    size_t count = shared->ports_count < capacity ? shared->ports_count : capacity;

    for (size_t i = 0; i < count; i++) {
        const struct steering_plan *plan = &shared->ports[i].steering.plan;
        ports[i] = shared->ports[i].record;
        ports[i].flags |= plan->edges_only ? PORT_EDGES_ONLY : 0;
        ports[i].flags |= plan->flows_part > 1 ? PORT_PART_OF_FLOWS : 0;
        ports[i].flags |= shared->queues_count > 1 ? PORT_ONE_QUEUE : 0;
    }
    return count;
}

static void describe_dpdk(const struct source *source, struct record_traffic_source *description)
{
    const struct dpdk_source *self = (const struct dpdk_source *)source;
    const struct shared *shared = self->shared;

    if (!are_all_stamped(self))
        description->fields &= ~(uint32_t)SOURCE_PASSING_TIMES;
    for (size_t i = 0; i < shared->ports_count; i++) {
        uint64_t bound_ns = stamp_bound_ns(&self->stamps[i]);
        if (bound_ns > description->stamp_bound_ns)
            description->stamp_bound_ns = bound_ns;
        if (shared->ports[i].steering.plan.edges_only)
            description->fields &= ~(uint32_t)(SOURCE_PACKETS | SOURCE_WIRE_BYTES | SOURCE_PAYLOAD_BYTES |
                                               SOURCE_WINDOWS | SOURCE_RETRANSMISSIONS);
    }
}

static uint64_t cover_dpdk(const struct source *source)
{
    const struct dpdk_source *self = (const struct dpdk_source *)source;
    uint64_t drained_ns = UINT64_MAX;

    for (size_t i = 0; i < self->shared->ports_count; i++)
        drained_ns = self->drained_ns[i] < drained_ns ? self->drained_ns[i] : drained_ns;
    return drained_ns > HAND_OVER_NS ? drained_ns - HAND_OVER_NS : 0;
}

/* ---- starting and ending ---- */

static void free_shared(struct shared *shared)
{
    for (size_t i = shared->ports_count; i > 0; i--)
        port_let_go(&shared->ports[i - 1]);
    for (size_t i = shared->ports_count; i > 0; i--)
        port_close(&shared->ports[i - 1]);
    for (unsigned i = 0; i < SOURCE_QUEUES_MAX; i++) {
        environment_free_pool(shared->pools[i].frames);
        environment_free_pool(shared->pools[i].rest);
    }
    if (shared->is_started)
        environment_end();
    free(shared);
}

static void close_dpdk(struct source *source)
{
    struct dpdk_source *self = (struct dpdk_source *)source;
    struct shared *shared = self->shared;

    rte_pktmbuf_free_bulk(self->held, self->held_count);
    free(self);
    if (--shared->sources_count == 0)
        free_shared(shared);
}

static const struct source_operations operations = {
    .kind = TRAFFIC_SOURCE_DPDK,
    .close = close_dpdk,
    .receive = receive_dpdk,
    .ports = list_dpdk,
    .covered_ns = cover_dpdk,
    .take_loss = take_dpdk_loss,
    .rest = rest_dpdk,
    .describe = describe_dpdk,
    .statistics = visit_statistics,
};

static int find_ports(struct shared *shared, const struct source_dpdk_options *options)
{
    static struct specification specifications[SOURCE_PORTS_MAX];
    size_t count = options->ports->count;
    int error = count > SOURCE_PORTS_MAX ? log_error_return(-E2BIG, "more than %d ports", SOURCE_PORTS_MAX) : 0;

    for (size_t i = 0; i < count && error == 0; i++)
        error = specification_read(&specifications[i], options->ports->values[i], options->queues);
    kernel_ring_set_promiscuous(options->is_promiscuous);
    if (error == 0)
        error = environment_start(specifications, count, options->queues, options->eal_arguments);
    if (error != 0)
        return error;
    shared->is_started = true;
    for (size_t i = 0; i < count && error == 0; i++) {
        shared->ports_count++;
        error = port_open(&shared->ports[i], &specifications[i], (uint32_t)i + 1, options->queues);
    }
    return error;
}

/* Pools for each queue; frames are split at their headers when every port can. */
static int make_pools(struct shared *shared)
{
    struct specification specifications[SOURCE_PORTS_MAX];
    bool splits = true;

    for (size_t i = 0; i < shared->ports_count; i++) {
        specifications[i] = shared->ports[i].specification;
        splits = splits && port_can_split(&shared->ports[i]);
    }
    unsigned room_bytes = environment_room_bytes(specifications, shared->ports_count);
    for (unsigned i = 0; i < shared->queues_count; i++) {
        struct port_pools *pools = &shared->pools[i];
        pools->frames = environment_make_pool("frames", i, specifications, shared->ports_count,
                                              splits ? SOURCE_HEADER_BYTES : room_bytes);
        if (splits && pools->frames != NULL)
            pools->rest = environment_make_pool("rest", i, specifications, shared->ports_count, room_bytes);
        if (pools->frames == NULL || (splits && pools->rest == NULL))
            return -ENOMEM;
    }
    return 0;
}

static int decide_steering(struct shared *shared, const struct source_dpdk_options *options,
                           struct steering_plan *plans)
{
    int error = 0;

    for (size_t i = 0; i < shared->ports_count && error == 0; i++) {
        struct steering_port known;
        port_describe(&shared->ports[i], shared->ports, shared->ports_count, &known);
        error = steering_decide(&plans[i], &known, &options->steering);
    }
    return error;
}

static int start_ports(struct shared *shared, const struct source_dpdk_options *options)
{
    static struct steering_plan plans[SOURCE_PORTS_MAX];
    int error = decide_steering(shared, options, plans);

    if (error == 0)
        error = make_pools(shared);
    for (size_t i = 0; i < shared->ports_count && error == 0; i++) {
        error = port_start(&shared->ports[i], &plans[i], shared->pools, options->is_promiscuous);
        shared->ports[i].checked_ns = clock_now_ns();
    }
    for (size_t i = 0; i < shared->ports_count && error == 0; i++)
        error = port_steer(&shared->ports[i]);
    shared->stamp_offset = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
    int flag = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);
    if (flag < 0)
        shared->stamp_offset = -1;
    else
        shared->stamp_flag = (uint64_t)1 << flag;
    return error;
}

static int read_port_clock(void *context, uint64_t *raw)
{
    return port_read_clock(context, raw);
}

static uint64_t read_now(void *context)
{
    (void)context;
    return clock_now_ns();
}

static void read_pair(void *context, struct record_clock_pair *pair)
{
    (void)context;
    clock_read_pair(pair, 0);
}

static int make_source(struct source **source, struct shared *shared, unsigned queue)
{
    struct dpdk_source *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->source.operations = &operations;
    made->shared = shared;
    made->queue = (uint16_t)queue;
    made->rest_ns = REST_MIN_NS;
    for (size_t i = 0; i < shared->ports_count; i++) {
        const struct stamp_clocks clocks = {.read_port = shared->stamp_offset < 0 ? NULL : read_port_clock,
                                            .now_ns = read_now,
                                            .read_pair = read_pair,
                                            .context = &shared->ports[i]};
        stamp_init(&made->stamps[i], &clocks, shared->ports[i].record.name);
    }
    shared->sources_count++;
    *source = &made->source;
    return 0;
}

int source_open_dpdk(struct source **sources, const struct source_dpdk_options *options)
{
    struct shared *shared = calloc(1, sizeof *shared);
    int error = shared == NULL ? -ENOMEM : 0;

    if (error != 0)
        return error;
    shared->queues_count = options->queues;
    error = find_ports(shared, options);
    if (error == 0)
        error = start_ports(shared, options);
    for (unsigned i = 0; i < options->queues && error == 0; i++)
        error = make_source(&sources[i], shared, i);
    if (error != 0 && shared->sources_count == 0)
        free_shared(shared);
    return error;
}

int source_print_dpdk(const struct source_dpdk_options *options, FILE *to)
{
    static struct steering_plan plans[SOURCE_PORTS_MAX];
    struct shared *shared = calloc(1, sizeof *shared);

    if (shared == NULL)
        return -ENOMEM;
    int error = find_ports(shared, options);
    if (error == 0)
        error = decide_steering(shared, options, plans);
    for (size_t i = 0; i < shared->ports_count && error == 0; i++)
        steering_print(&plans[i], to);
    free_shared(shared);
    return error;
}
