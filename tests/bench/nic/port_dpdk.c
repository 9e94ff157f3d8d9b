/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A net_ring port over a ring that holds one mbuf for each of the traffic's buffers. Invariant: between port_fill and
 * the end of the turn each mbuf is either in the ring or in the present burst; what was released is in the pool.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "tests/bench/nic/port.h"
#include "wire/log.h"

struct port {
    const struct traffic *traffic;
    struct rte_mempool *pool;
    struct rte_ring *ring;
    uint16_t id;
    uint16_t held_count;
    struct rte_mbuf *held[SOURCE_BURST_FRAMES];
    struct rte_mbuf **all;
};

static bool has_huge_pages(void)
{
    FILE *file = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
    unsigned count = 0;
    bool has_some = file != NULL && fscanf(file, "%u", &count) == 1 && count >= 64;

    if (file != NULL)
        fclose(file);
    return has_some;
}

int port_start(void)
{
    char *huge[] = {"bench_nic", "--no-pci", "--no-telemetry", "--log-level=error", "--in-memory", NULL};
    char *plain[] = {"bench_nic",   "--no-pci", "--no-telemetry", "--log-level=error", "--no-huge", "-m", "256",
                     "--no-shconf", NULL};
    bool is_huge = has_huge_pages();

    if (rte_eal_init(is_huge ? 5 : 8, is_huge ? huge : plain) < 0)
        return log_error_return(-EIO, "DPDK did not start");
    return 0;
}

bool port_has_dpdk(void)
{
    return true;
}

static int start(struct port *port)
{
    struct rte_eth_conf settings;
    int error;

    memset(&settings, 0, sizeof settings);
    error = rte_eth_dev_configure(port->id, 1, 1, &settings);
    if (error == 0)
        error = rte_eth_rx_queue_setup(port->id, 0, 1024, SOCKET_ID_ANY, NULL, port->pool);
    if (error == 0)
        error = rte_eth_tx_queue_setup(port->id, 0, 1024, SOCKET_ID_ANY, NULL);
    return error == 0 ? rte_eth_dev_start(port->id) : error;
}

static void take_buffer(struct rte_mempool *pool, void *context, void *object, unsigned index)
{
    const struct traffic *traffic = context;
    struct rte_mbuf *mbuf = object;

    (void)pool;
    mbuf->buf_addr = traffic_frame(traffic, index) - TRAFFIC_HEADROOM;
    mbuf->buf_len = TRAFFIC_BUFFER_BYTES;
}

/* One mbuf for each of the traffic's buffers, in place of the one that DPDK gave it. */
static int make_pool(struct port *port, const char *name)
{
    port->pool = rte_pktmbuf_pool_create(name, (unsigned)port->traffic->buffers_count, 0, 0, RTE_PKTMBUF_HEADROOM + 64,
                                         SOCKET_ID_ANY);
    if (port->pool == NULL)
        return -ENOMEM;
    rte_mempool_obj_iter(port->pool, take_buffer, (void *)(uintptr_t)port->traffic);
    return 0;
}

int port_create(struct port **port, const struct traffic *traffic, unsigned number)
{
    struct port *made = calloc(1, sizeof *made);
    unsigned slots = 64;
    char name[32];

    if (made == NULL)
        return -ENOMEM;
    made->traffic = traffic;
    made->all = calloc(traffic->buffers_count, sizeof *made->all);
    while (slots <= traffic->buffers_count)
        slots *= 2;
    snprintf(name, sizeof name, "bench%u", number);
    made->ring = rte_ring_create(name, slots, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    int id = made->ring == NULL ? -1 : rte_eth_from_ring(made->ring);
    made->id = (uint16_t)id;
    if (made->all == NULL || id < 0 || make_pool(made, name) != 0 || start(made) != 0) {
        port_destroy(&made);
        return log_error_return(-EIO, "cannot make a DPDK ring port of %zu buffers", traffic->buffers_count);
    }
    *port = made;
    return 0;
}

void port_destroy(struct port **port)
{
    if (*port == NULL)
        return;
    rte_ring_free((*port)->ring);
    rte_mempool_free((*port)->pool);
    free((*port)->all);
    free(*port);
    *port = NULL;
}

static size_t buffer_of(const struct port *port, const struct rte_mbuf *mbuf)
{
    return (size_t)((uint8_t *)mbuf->buf_addr - port->traffic->buffers) / TRAFFIC_BUFFER_BYTES;
}

void port_fill(struct port *port)
{
    size_t count = port->traffic->buffers_count;

    for (size_t i = 0; i < count; i++) {
        struct rte_mbuf *mbuf = rte_pktmbuf_alloc(port->pool);
        if (mbuf == NULL)
            break;
        mbuf->data_len = TRAFFIC_CAPTURED_BYTES;
        mbuf->pkt_len = traffic_frame_bytes(port->traffic);
        port->all[buffer_of(port, mbuf)] = mbuf;
    }
    for (size_t done = 0; done < count;)
        done += rte_ring_enqueue_burst(port->ring, (void **)port->all + done, (unsigned)(count - done), NULL);
}

unsigned port_receive(struct port *port, struct source_frame frames[SOURCE_BURST_FRAMES])
{
    port->held_count = rte_eth_rx_burst(port->id, 0, port->held, SOURCE_BURST_FRAMES);
    for (uint16_t i = 0; i < port->held_count; i++) {
        const struct rte_mbuf *mbuf = port->held[i];
        frames[i] = (struct source_frame){.bytes = rte_pktmbuf_mtod(mbuf, const uint8_t *),
                                          .captured_bytes = mbuf->data_len,
                                          .original_bytes = mbuf->pkt_len,
                                          .port = 1};
    }
    return port->held_count;
}

void port_release(struct port *port)
{
    rte_pktmbuf_free_bulk(port->held, port->held_count);
}
