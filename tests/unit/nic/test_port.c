/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's life against a stand-in for DPDK's side of it (the functions below are found before the library's), which
 * writes down what is called: the order is what leaves other traffic alone.
 */
#include "nic/dpdk/port.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_flow.h>

#define PORT 5

static char calls[1024];
static struct rte_eth_dev_info card;
static struct rte_eth_conf configured;
static bool refuses_split;
static bool wants_senders; /* as many queues to send by as to receive by */
static bool knows_headers; /* splits behind a protocol's header only */
static struct rte_eth_stats counted;
static int statistics_count;
static struct rte_mempool *const frames = (struct rte_mempool *)0x1000;
static struct rte_mempool *const rest = (struct rte_mempool *)0x2000;

static void note(const char *what)
{
    size_t used = strlen(calls);

    snprintf(calls + used, sizeof calls - used, "%s ", what);
}

int rte_eth_dev_get_port_by_name(const char *name, uint16_t *id)
{
    *id = PORT;
    return strcmp(name, "card") == 0 ? 0 : -ENODEV;
}

int rte_eth_dev_get_name_by_port(uint16_t id, char *name)
{
    (void)id;
    strcpy(name, "card");
    return 0;
}

uint64_t rte_eth_find_next_owned_by(uint16_t id, const uint64_t owner)
{
    (void)owner;
    return id <= PORT ? PORT : RTE_MAX_ETHPORTS;
}

int rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *information)
{
    assert_int_equal(id, PORT);
    *information = card;
    return 0;
}

int rte_eth_buffer_split_get_supported_hdr_ptypes(uint16_t id, uint32_t *types, int count)
{
    (void)id;
    (void)types;
    (void)count;
    return knows_headers ? 3 : -ENOTSUP;
}

int rte_eth_dev_configure(uint16_t id, uint16_t receive, uint16_t send, const struct rte_eth_conf *configuration)
{
    assert_int_equal(id, PORT);
    assert_true(receive >= 1);
    configured = *configuration;
    note(send == 0 ? "configure" : "configure(send)");
    return wants_senders && send != receive ? -EINVAL : 0;
}

int rte_eth_tx_queue_setup(uint16_t id, uint16_t queue, uint16_t descriptors, unsigned socket,
                           const struct rte_eth_txconf *configuration)
{
    (void)id;
    (void)queue;
    (void)descriptors;
    (void)socket;
    (void)configuration;
    note("sender");
    return 0;
}

int rte_eth_dev_adjust_nb_rx_tx_desc(uint16_t id, uint16_t *receive, uint16_t *send)
{
    (void)id;
    (void)receive;
    assert_null(send);
    return 0;
}

int rte_eth_dev_socket_id(uint16_t id)
{
    (void)id;
    return 0;
}

int rte_eth_rx_queue_setup(uint16_t id, uint16_t queue, uint16_t descriptors, unsigned socket,
                           const struct rte_eth_rxconf *configuration, struct rte_mempool *pool)
{
    (void)id;
    (void)queue;
    (void)descriptors;
    (void)socket;
    if (configuration == NULL) {
        note(pool == frames ? "queue(frames)" : "queue(rest)");
        return 0;
    }
    assert_null(pool);
    assert_int_equal(configuration->rx_nseg, 2);
    assert_ptr_equal(configuration->rx_seg[0].split.mp, frames);
    assert_int_equal(configuration->rx_seg[0].split.length, 256);
    note("queue(split)");
    return refuses_split ? -EINVAL : 0;
}

int rte_eth_dev_start(uint16_t id)
{
    (void)id;
    note("start");
    return 0;
}

int rte_eth_dev_stop(uint16_t id)
{
    (void)id;
    note("stop");
    return 0;
}

int rte_eth_dev_close(uint16_t id)
{
    (void)id;
    note("close");
    return 0;
}

int rte_eth_promiscuous_enable(uint16_t id)
{
    (void)id;
    note("promiscuous");
    return 0;
}

int rte_eth_promiscuous_disable(uint16_t id)
{
    (void)id;
    note("modest");
    return 0;
}

int rte_eth_stats_get(uint16_t id, struct rte_eth_stats *stats)
{
    (void)id;
    *stats = counted;
    return 0;
}

int rte_eth_xstats_get_names(uint16_t id, struct rte_eth_xstat_name *names, unsigned size)
{
    (void)id;
    assert_int_equal(size, statistics_count);
    note("names");
    for (int i = 0; i < statistics_count; i++)
        snprintf(names[i].name, sizeof names[i].name, "statistic_%d", i);
    return statistics_count;
}

int rte_eth_xstats_get(uint16_t id, struct rte_eth_xstat *values, unsigned count)
{
    (void)id;
    if ((int)count < statistics_count)
        return statistics_count;
    for (int i = 0; i < statistics_count; i++) /* in another order than the names */
        values[i] = (struct rte_eth_xstat){.id = (uint64_t)(statistics_count - 1 - i), .value = 100 + (uint64_t)i};
    return statistics_count;
}

int rte_flow_isolate(uint16_t id, int set, struct rte_flow_error *error)
{
    (void)id;
    (void)error;
    note(set ? "isolate" : "mix");
    return 0;
}

int rte_flow_validate(uint16_t id, const struct rte_flow_attr *attributes, const struct rte_flow_item items[],
                      const struct rte_flow_action actions[], struct rte_flow_error *error)
{
    (void)id;
    (void)attributes;
    (void)items;
    (void)actions;
    (void)error;
    return 0;
}

struct rte_flow *rte_flow_create(uint16_t id, const struct rte_flow_attr *attributes,
                                 const struct rte_flow_item items[], const struct rte_flow_action actions[],
                                 struct rte_flow_error *error)
{
    (void)id;
    (void)attributes;
    (void)items;
    (void)actions;
    (void)error;
    note("rule");
    return (struct rte_flow *)0x3000;
}

int rte_flow_destroy(uint16_t id, struct rte_flow *flow, struct rte_flow_error *error)
{
    (void)id;
    (void)error;
    assert_ptr_equal(flow, (void *)0x3000);
    note("unrule");
    return 0;
}

/* The life of one port that shares its card with the kernel. */
static void live(struct port *port, enum steering_mode mode, unsigned queues, bool is_promiscuous)
{
    const struct specification specification = {.device = "card"};
    const struct steering_wish wish = {.mode = mode, .flows_part = 1};
    struct port_pools pools[2] = {{.frames = frames}, {.frames = frames}};
    struct steering_port known;
    struct steering_plan plan;

    calls[0] = '\0';
    memset(port, 0, sizeof *port);
    assert_int_equal(port_open(port, &specification, 1, queues), 0);
    port_describe(port, port, 1, &known);
    assert_true(known.is_shared);
    assert_int_equal(steering_decide(&plan, &known, &wish), 0);
    for (unsigned i = 0; i < queues; i++)
        pools[i].rest = port_can_split(port) ? rest : NULL;
    assert_int_equal(port_start(port, &plan, pools, is_promiscuous), 0);
    assert_int_equal(port_steer(port), 0);
    port_let_go(port);
    port_close(port);
    port_close(port); /* a second time: nothing */
}

static int reset(void **state)
{
    (void)state;
    card = (struct rte_eth_dev_info){.driver_name = "mlx5_pci", .max_rx_queues = 8};
    card.switch_info.domain_id = RTE_ETH_DEV_SWITCH_DOMAIN_ID_INVALID;
    refuses_split = knows_headers = wants_senders = false;
    return 0;
}

static void test_order(void **state)
{
    struct port port;

    (void)state;
    live(&port, STEERING_TAKE, 1, false);
    assert_string_equal(calls, "isolate configure queue(frames) start rule rule rule unrule unrule unrule stop close ");
    live(&port, STEERING_OFF, 1, true);
    assert_string_equal(calls, "configure queue(frames) start promiscuous modest stop close ");
}

static void test_split(void **state)
{
    struct port port;

    (void)state;
    card.rx_offload_capa = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
    card.rx_seg_capa.max_nseg = 2;
    card.rx_seg_capa.multi_pools = 1;
    live(&port, STEERING_OFF, 1, false);
    assert_string_equal(calls, "configure queue(split) start stop close ");
    refuses_split = true; /* whole frames then, in the larger buffers */
    live(&port, STEERING_OFF, 1, false);
    assert_string_equal(calls,
                        "configure queue(split) configure(send) queue(split) configure queue(rest) start stop close ");
    assert_int_equal(configured.rxmode.offloads, 0);
    knows_headers = true;
    live(&port, STEERING_OFF, 1, false);
    assert_string_equal(calls, "configure queue(frames) start stop close ");
}

static void test_a_driver_that_wants_senders(void **state)
{
    struct port port;

    (void)state;
    wants_senders = true;
    live(&port, STEERING_OFF, 1, false);
    assert_string_equal(calls, "configure configure(send) queue(frames) sender start stop close ");
}

static void test_queues(void **state)
{
    const struct specification specification = {.device = "card"};
    const struct port_pools pools[2] = {{.frames = frames}, {.frames = frames}};
    const struct steering_plan plan = {.mode = STEERING_OFF};
    struct port port = {.id = 0};

    (void)state;
    card.flow_type_rss_offloads = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_L4_SRC_ONLY | RTE_ETH_RSS_TCP;
    card.hash_key_size = 40;
    live(&port, STEERING_OFF, 2, false);
    assert_string_equal(calls, "configure queue(frames) queue(frames) start stop close ");
    assert_int_equal(configured.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
    assert_int_equal(configured.rx_adv_conf.rss_conf.rss_hf, RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_L4_SRC_ONLY);
    assert_int_equal(configured.rx_adv_conf.rss_conf.rss_key_len, 40);
    card.flow_type_rss_offloads = RTE_ETH_RSS_TCP; /* cannot spread UDP */
    assert_int_equal(port_open(&port, &specification, 1, 2), 0);
    assert_int_equal(port_start(&port, &plan, pools, false), -ENOTSUP);
    card.flow_type_rss_offloads = RTE_ETH_RSS_NONFRAG_IPV4_UDP;
    card.max_rx_queues = 1;
    assert_int_equal(port_start(&port, &plan, pools, false), -ENOTSUP);
    port_close(&port);
}

static void test_loss(void **state)
{
    const struct specification specification = {.device = "card"};
    struct source_loss loss;
    struct port port = {.id = 0};

    (void)state;
    assert_int_equal(port_open(&port, &specification, 7, 1), 0);
    counted = (struct rte_eth_stats){.imissed = 3, .rx_nombuf = 2};
    assert_true(port_take_loss(&port, 1000000000, &loss));
    assert_int_equal(loss.frames, 5);
    assert_int_equal(loss.port, 7);
    assert_int_equal(loss.to_ns, 1000000000);
    assert_false(port_take_loss(&port, 1100000000, &loss)); /* nothing new */
    counted.imissed = 10;
    assert_false(port_take_loss(&port, 1110000000, &loss)); /* not yet */
    assert_true(port_take_loss(&port, 1200000000, &loss));
    assert_int_equal(loss.frames, 7);
    assert_int_equal(loss.from_ns, 1100000000);
    port_close(&port);
}

static void sum_statistic(void *context, const char *name, uint64_t value)
{
    uint64_t *sum = context;

    if (strcmp(name, "statistic_0") == 0) /* stands last */
        assert_int_equal(value, 100 + statistics_count - 1);
    *sum += value;
}

static void test_statistics(void **state)
{
    const struct specification specification = {.device = "card"};
    struct port port = {.id = 0};
    uint64_t sum = 0;

    (void)state;
    assert_int_equal(port_open(&port, &specification, 1, 1), 0);
    calls[0] = '\0';
    statistics_count = 3;
    port_statistics(&port, sum_statistic, &sum);
    assert_int_equal(sum, 303);
    port_statistics(&port, sum_statistic, &sum);
    assert_string_equal(calls, "names "); /* once */
    statistics_count = 5;
    sum = 0;
    port_statistics(&port, sum_statistic, &sum);
    assert_int_equal(sum, 510);
    assert_string_equal(calls, "names names ");
    port_close(&port);
}

static void test_no_such_device(void **state)
{
    const struct specification specification = {.device = "nosuch"};
    struct port port = {.id = 0};

    (void)state;
    calls[0] = '\0';
    assert_int_equal(port_open(&port, &specification, 1, 1), -ENODEV);
    port_close(&port);
    assert_string_equal(calls, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_order, reset),
        cmocka_unit_test_setup(test_split, reset),
        cmocka_unit_test_setup(test_a_driver_that_wants_senders, reset),
        cmocka_unit_test_setup(test_queues, reset),
        cmocka_unit_test_setup(test_loss, reset),
        cmocka_unit_test_setup(test_statistics, reset),
        cmocka_unit_test_setup(test_no_such_device, reset),
    };

    return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
