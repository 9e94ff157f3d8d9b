/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's life. Invariants: a port that the kernel shares with us is asked to leave the kernel's frames alone before
 * it is set up, and never asked for more again; rules are made after the queues run, and are gone before the queues
 * stop, so that no rule sends a frame where nobody reads. Loss: the driver's own count of missed frames, or, where it
 * keeps none (net_af_packet), what the interface counted more than all queues saw; that is a lower bound until the port
 * is quiet for a moment, and then exact.
 */
#define ALLOW_EXPERIMENTAL_API /* rte_eth_read_clock, rte_eth_buffer_split_get_supported_hdr_ptypes */

#include "nic/dpdk/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "nic/dpdk/interface.h"
#include "wire/log.h"

#define CHECK_INTERVAL_NS   50000000u
#define SENDING_DESCRIPTORS 64

/* Drivers that leave the kernel's driver on the device (bifurcated). */
static const char *const sharing_drivers[] = {"mlx5_pci", "mlx5_auxiliary", "net_mlx4", "mlx4_pci", "net_mana"};

static void list_ports(char *text, size_t capacity)
{
    char name[RTE_ETH_NAME_MAX_LEN];
    size_t used = 0;
    uint16_t id;

    text[0] = '\0';
    RTE_ETH_FOREACH_DEV(id)
    {
        if (rte_eth_dev_get_name_by_port(id, name) == 0 && used + sizeof name + 2 < capacity)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used == 0 ? "" : ", ", name);
    }
}

static int refuse_name(const char *name)
{
    char there[512];

    list_ports(there, sizeof there);
    return log_error_return(-ENODEV,
                            "--port %s: could not be opened: no such device or interface, or no right to it (root or "
                            "CAP_NET_RAW); 'dpdk-devbind.py -s' lists what DPDK can use; ports that there are now: %s",
                            name, there[0] == '\0' ? "none" : there);
}

int port_open(struct port *port, const struct specification *specification, uint32_t number, unsigned queues)
{
    port->specification = *specification;
    port->queues_count = queues;
    port->record.port = number;
    memcpy(port->record.address, specification->address, sizeof port->record.address);
    snprintf(port->record.name, sizeof port->record.name, "%.31s",
             specification->interface[0] == '\0' ? specification->device : specification->interface);
    if (rte_eth_dev_get_port_by_name(specification->device, &port->id) != 0)
        return refuse_name(specification->device);
    port->is_open = true;
    return 0;
}

static uint16_t switch_domain(uint16_t id)
{
    struct rte_eth_dev_info information;

    return rte_eth_dev_info_get(id, &information) == 0 ? information.switch_info.domain_id
                                                       : RTE_ETH_DEV_SWITCH_DOMAIN_ID_INVALID;
}

void port_describe(const struct port *port, const struct port *ports, size_t ports_count, struct steering_port *known)
{
    struct rte_eth_dev_info information;
    uint16_t domain = switch_domain(port->id);
    size_t others = 0;

    *known = (struct steering_port){.id = port->id, .can_match_bth = rule_can_match_bth()};
    snprintf(known->name, sizeof known->name, "%s", port->record.name);
    bool is_known = rte_eth_dev_info_get(port->id, &information) == 0 && information.driver_name != NULL;
    for (size_t i = 0; i < sizeof sharing_drivers / sizeof sharing_drivers[0] && is_known; i++)
        known->is_shared |= strcmp(information.driver_name, sharing_drivers[i]) == 0;
    known->has_switch = known->is_shared && domain != RTE_ETH_DEV_SWITCH_DOMAIN_ID_INVALID;
    for (size_t i = 0; i < ports_count && known->has_switch; i++) {
        if (ports[i].id == port->id || switch_domain(ports[i].id) != domain)
            continue;
        known->other_side = ports[i].id;
        others++;
    }
    known->has_other_side = others == 1;
}

/* At a length; drivers that split behind a protocol's header (ice) name those that they know, and want to be asked so.
 */
bool port_can_split(const struct port *port)
{
    struct rte_eth_dev_info information;

    return rte_eth_dev_info_get(port->id, &information) == 0 &&
           (information.rx_offload_capa & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT) != 0 &&
           information.rx_seg_capa.max_nseg >= 2 && information.rx_seg_capa.multi_pools &&
           rte_eth_buffer_split_get_supported_hdr_ptypes(port->id, NULL, 0) <= 0;
}

/* By the UDP source port, which names the connection between two addresses; with a key that treats both ways alike. */
static void choose_spread(struct port *port, const struct rte_eth_dev_info *information)
{
    const uint64_t udp = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
    uint64_t offered = information->flow_type_rss_offloads;

    port->rules.spread_by = 0;
    if ((offered & udp) == 0)
        return;
    port->rules.spread_by = offered & (udp | RTE_ETH_RSS_L4_SRC_ONLY);
    if (information->hash_key_size == 0 || information->hash_key_size > SPREAD_KEY_BYTES_MAX)
        return;
    port->rules.spread_key_bytes = information->hash_key_size;
    spread_key(port->rules.spread_key, port->rules.spread_key_bytes);
}

static int check_queues(struct port *port, const struct rte_eth_dev_info *information)
{
    if (port->queues_count == 1)
        return 0;
    if (information->max_rx_queues < port->queues_count)
        return log_error_return(-ENOTSUP, "port %s: has %u receive queues; give --queues %u", port->record.name,
                                information->max_rx_queues, information->max_rx_queues);
    choose_spread(port, information);
    if (port->rules.spread_by == 0 && !port->specification.is_ring)
        return log_error_return(-ENOTSUP,
                                "port %s: cannot spread frames over queues by their UDP ports; give --queues 1",
                                port->record.name);
    if (port->rules.spread_key_bytes == 0)
        log_warning(
            "port %s: its driver spreads frames by a key of its own: a connection's two directions may meet different "
            "queues, and then an answer in one is not put to the flow in the other",
            port->record.name);
    return 0;
}

static int configure(struct port *port, const struct rte_eth_dev_info *information, unsigned sending)
{
    struct rte_eth_conf configuration = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};

    configuration.rxmode.offloads =
        information->rx_offload_capa & (RTE_ETH_RX_OFFLOAD_TIMESTAMP | RTE_ETH_RX_OFFLOAD_SCATTER);
    if (port->is_split)
        configuration.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
    if (port->rules.spread_by != 0) {
        configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        configuration.rx_adv_conf.rss_conf.rss_hf = port->rules.spread_by;
        configuration.rx_adv_conf.rss_conf.rss_key_len = (uint8_t)port->rules.spread_key_bytes;
        configuration.rx_adv_conf.rss_conf.rss_key = port->rules.spread_key_bytes == 0 ? NULL : port->rules.spread_key;
    }
    return rte_eth_dev_configure(port->id, (uint16_t)port->queues_count, (uint16_t)sending, &configuration);
}

static bool can_discard(const struct rte_eth_dev_info *information)
{
#ifdef HAVE_SELECTIVE_READ
    return information->rx_seg_capa.selective_read;
#else
    (void)information;
    return false;
#endif
}

static int set_up_queue(const struct port *port, const struct rte_eth_dev_info *information, uint16_t queue,
                        const struct port_pools *pools)
{
    bool discards = can_discard(information);
    union rte_eth_rxseg segments[2] = {
        {.split = {.mp = pools->frames, .length = SOURCE_HEADER_BYTES}},
        {.split = {.mp = discards ? NULL : pools->rest, .length = discards ? UINT16_MAX : 0}},
    };
    struct rte_eth_rxconf split = information->default_rxconf;
    unsigned socket = (unsigned)rte_eth_dev_socket_id(port->id);
    uint16_t descriptors = (uint16_t)port->specification.descriptors;
    int error = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &descriptors, NULL);

    split.offloads |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
    split.rx_seg = segments;
    split.rx_nseg = 2;
    if (error != 0)
        return error;
    if (port->is_split)
        return rte_eth_rx_queue_setup(port->id, queue, descriptors, socket, &split, NULL);
    return rte_eth_rx_queue_setup(port->id, queue, descriptors, socket, NULL,
                                  pools->rest == NULL ? pools->frames : pools->rest);
}

static int set_up(struct port *port, const struct rte_eth_dev_info *information, const struct port_pools *pools,
                  unsigned sending)
{
    unsigned socket = (unsigned)rte_eth_dev_socket_id(port->id);
    int error = configure(port, information, sending);

    for (uint16_t queue = 0; queue < port->queues_count && error == 0; queue++) {
        port->rules.queues[queue] = queue;
        error = set_up_queue(port, information, queue, &pools[queue]);
    }
    for (uint16_t queue = 0; queue < sending && error == 0; queue++)
        error = rte_eth_tx_queue_setup(port->id, queue, SENDING_DESCRIPTORS, socket, NULL);
    port->rules.queues_count = port->queues_count;
    return error == 0 ? rte_eth_dev_start(port->id) : error;
}

/*
 * With frames split at their headers where that works, else whole; and without queues to send by, which we never do,
 * unless the driver wants as many of them as for receiving (net_tap).
 */
static int start(struct port *port, const struct rte_eth_dev_info *information, const struct port_pools *pools)
{
    const unsigned sending[] = {0, port->queues_count};
    int error = -EINVAL;

    for (unsigned attempt = pools[0].rest != NULL ? 0 : 2; attempt < 4 && error != 0; attempt++) {
        port->is_split = attempt < 2;
        error = set_up(port, information, pools, sending[attempt % 2]);
    }
    if (error != 0)
        return log_error_return(error, "--port %s: cannot be started: %s", port->specification.device,
                                rte_strerror(-error));
    if (pools[0].rest != NULL && !port->is_split)
        log_info("port %s: cannot split frames at their headers: they are received whole", port->record.name);
    port->is_started = true;
    return 0;
}

/* An interface below net_pcap is put into it where it is opened: kernel_ring.h. */
static int set_promiscuous(struct port *port)
{
    int error = port->specification.is_snapped ? 0 : rte_eth_promiscuous_enable(port->id);

    if (error != 0)
        return log_error_return(error, "port %s: its driver cannot make it promiscuous (%s); leave --promiscuous out",
                                port->record.name, rte_strerror(-error));
    port->is_promiscuous = !port->specification.is_snapped;
    return 0;
}

int port_start(struct port *port, const struct steering_plan *plan, const struct port_pools *pools, bool is_promiscuous)
{
    struct rte_eth_dev_info information;
    int error = rte_eth_dev_info_get(port->id, &information);

    port->plan = *plan;
    if (error == 0 && plan->isolates)
        error = rule_isolate(port->id);
    if (error == 0)
        error = check_queues(port, &information);
    if (error == 0)
        error = start(port, &information, pools);
    if (error == 0 && is_promiscuous)
        error = set_promiscuous(port);
    port->counted_base = port->specification.is_ring ? interface_frames(port->specification.interface) : 0;
    return error;
}

int port_steer(struct port *port)
{
    const struct steering_calls calls = rule_calls(&port->rules);

    return port->plan.rules_count == 0 ? 0 : steering_begin(&port->steering, &port->plan, &calls);
}

/* ---- loss ---- */

/* When each queue has been found empty since the question: what was counted before, and not seen, is lost. */
static void compare_counts(struct port *port)
{
    uint32_t question = atomic_load_explicit(&port->question, memory_order_relaxed);
    uint64_t counted = port->counted - port->counted_base, seen = 0;

    for (unsigned i = 0; i < port->queues_count; i++) {
        if (atomic_load_explicit(&port->queues[i].answered, memory_order_acquire) != question)
            return;
        seen += atomic_load_explicit(&port->queues[i].seen_answered, memory_order_relaxed);
    }
    port->is_asking = false;
    if (counted > seen && counted - seen > port->lost)
        port->lost = counted - seen;
}

static void ask(struct port *port)
{
    port->counted = interface_frames(port->specification.interface);
    port->is_asking = true;
    atomic_fetch_add_explicit(&port->question, 1, memory_order_release);
}

static void count_loss(struct port *port)
{
    struct rte_eth_stats stats;

    if (port->specification.is_ring) {
        if (port->is_asking)
            compare_counts(port);
        if (!port->is_asking)
            ask(port);
    } else if (rte_eth_stats_get(port->id, &stats) == 0 && stats.imissed + stats.rx_nombuf > port->lost) {
        port->lost = stats.imissed + stats.rx_nombuf;
    }
}

bool port_take_loss(struct port *port, uint64_t now_ns, struct source_loss *loss)
{
    uint64_t before_ns = port->checked_ns;

    if (now_ns - before_ns < CHECK_INTERVAL_NS)
        return false;
    port->checked_ns = now_ns;
    count_loss(port);
    if (port->lost == port->lost_told)
        return false;
    *loss = (struct source_loss){
        .port = port->record.port, .from_ns = before_ns, .to_ns = now_ns, .frames = port->lost - port->lost_told};
    port->lost_told = port->lost;
    return true;
}

/* ---- what else the port can say ---- */

int port_read_clock(const struct port *port, uint64_t *raw)
{
    return rte_eth_read_clock(port->id, raw);
}

/* The driver's names, asked for again when there are more of them. */
static int name_statistics(struct port *port, int count)
{
    if (count <= port->statistics_count)
        return 0;
    free(port->statistic_names);
    free(port->statistics);
    port->statistic_names = calloc((size_t)count, sizeof *port->statistic_names);
    port->statistics = calloc((size_t)count, sizeof *port->statistics);
    port->statistics_count = 0;
    if (port->statistic_names == NULL || port->statistics == NULL ||
        rte_eth_xstats_get_names(port->id, port->statistic_names, (unsigned)count) != count)
        return -ENOMEM;
    port->statistics_count = count;
    return 0;
}

void port_statistics(struct port *port, source_statistic visit, void *context)
{
    int count = rte_eth_xstats_get(port->id, port->statistics, (unsigned)port->statistics_count);

    if (count > port->statistics_count && name_statistics(port, count) == 0)
        count = rte_eth_xstats_get(port->id, port->statistics, (unsigned)port->statistics_count);
    if (count > port->statistics_count)
        return;
    for (int i = 0; i < count; i++) {
        if (port->statistics[i].id < (uint64_t)port->statistics_count)
            visit(context, port->statistic_names[port->statistics[i].id].name, port->statistics[i].value);
    }
}

void port_let_go(struct port *port)
{
    steering_end(&port->steering);
}

void port_close(struct port *port)
{
    if (!port->is_open)
        return;
    if (port->is_promiscuous)
        (void)rte_eth_promiscuous_disable(port->id);
    if (port->is_started)
        (void)rte_eth_dev_stop(port->id);
    (void)rte_eth_dev_close(port->id);
    free(port->statistic_names);
    free(port->statistics);
    port->is_started = port->is_open = false;
}
