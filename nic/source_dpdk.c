/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DPDK ports as a traffic source: all of one process on one core, receive only (DPDK inside; nowhere else).
 * Time: what the driver stamps a frame with where it is understood (net_pcap: the kernel's CLOCK_REALTIME stamp),
 * turned into our CLOCK_MONOTONIC; else one reading of the clock a burst. CLOCK_REALTIME minus CLOCK_MONOTONIC only
 * changes when somebody sets the clock, so it is taken once and again only when a later reading contradicts it. Loss:
 * the driver's own count of missed frames, or, where it keeps none (net_af_packet), what the interface counted more
 * than we saw; that is a lower bound until the port is quiet for a moment, and then exact.
 */
#include "nic/kernel_ring.h"
#include "nic/source_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "wire/clock.h"
#include "wire/log.h"

#define ARGUMENTS_MAX     (2 * OPTION_LIST_MAX + 32)
#define ARGUMENT_BYTES    256
#define BASE_MEMORY_MIB   64
#define DESCRIPTORS       1024
#define MBUFS_A_PORT      2048u
#define HEADER_ROOM_BYTES 2048u /* more of a frame than its headers need not be in one piece */
#define RING_FRAMES       2048u /* of net_af_packet: 20 ms at 60 MB/s are 300 frames of 4 KiB */
#define RING_BLOCK_FRAMES 8u
#define RING_EXTRA_BYTES  128u /* the kernel's own header, and room for VLAN tags */
#define INTERVAL_NS       100000000u
#define HAND_OVER_NS      2000000u     /* from a frame's stamp until it lies where we read */
#define STAMP_TRUST_NS    60000000000u /* a stamp further than this from now is of another clock */
#define PAIR_TRIES        64
#define REST_MIN_NS       50000u
#define REST_MAX_NS       1000000u
#define REST_STAMPED_NS   8000000u /* where the driver stamps, late reading costs no accuracy */
#define POLLS_BEFORE_REST 64u

enum stamp_unit {
    STAMP_UNDECIDED = 0,
    STAMP_NANOSECONDS,
    STAMP_MICROSECONDS,
    STAMP_NONE,
};

struct port {
    uint16_t id;
    char device[64];    /* DPDK's name */
    char interface[64]; /* the kernel's, where the port is one; else empty */
    enum stamp_unit unit;
    bool is_ring;    /* net_af_packet */
    bool is_snapped; /* net_pcap on an interface, see kernel_ring.h */
    bool is_asked;   /* `counted` was read and waits for the port to be drained */
    uint64_t counted;
    uint64_t counted_base; /* the interface's count when we began */
    uint64_t seen;         /* frames received */
    uint64_t lost;         /* in all */
    uint64_t lost_told;
    uint64_t checked_ns;
    uint64_t drained_ns; /* when there was last nothing left to read */
    struct record_port record;
};

struct dpdk_source {
    struct source source;
    struct port ports[SOURCE_PORTS_MAX];
    size_t ports_count;
    size_t next_port;
    bool is_started; /* the EAL */
    struct rte_mempool *pool;
    struct rte_mbuf *held[SOURCE_BURST_FRAMES];
    uint16_t held_count;
    int stamp_offset; /* dynamic field; -1: no driver stamps */
    uint64_t stamp_flag;
    struct record_clock_pair pair;
    uint64_t pair_due_ns;
    uint64_t rest_ns;
    unsigned empty_polls;
    size_t polled; /* ports, since the last rest */
    char arguments[ARGUMENTS_MAX][ARGUMENT_BYTES];
    char *argument_list[ARGUMENTS_MAX + 1];
    int arguments_count;
};

/* ---- the command line: "SPEC[@ADDRESS]" ---- */

static int read_address(const char *text, uint8_t address[ADDRESS_BYTES])
{
    uint8_t mapped[ADDRESS_BYTES] = {[10] = 0xff, [11] = 0xff};

    if (inet_pton(AF_INET6, text, address) == 1)
        return 0;
    if (inet_pton(AF_INET, text, mapped + 12) != 1)
        return log_error_return(-EINVAL, "--port: '%s' is no GID, IPv6 or IPv4 address", text);
    memcpy(address, mapped, ADDRESS_BYTES);
    return 0;
}

/* The value of NAME=... in a device's arguments; empty when it is not there. */
static void find_argument(const char *spec, const char *name, char *value, size_t capacity)
{
    size_t length = strlen(name);

    value[0] = '\0';
    for (const char *at = strchr(spec, ','); at != NULL; at = strchr(at + 1, ',')) {
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == '=')
            snprintf(value, capacity, "%.*s", (int)strcspn(at + length + 2, ","), at + length + 2);
    }
}

static unsigned read_mtu(const char *interface)
{
    struct ifreq request = {.ifr_mtu = 0};
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    if (descriptor < 0 || ioctl(descriptor, SIOCGIFMTU, &request) != 0)
        request.ifr_mtu = 1500;
    if (descriptor >= 0)
        close(descriptor);
    return (unsigned)request.ifr_mtu;
}

/* Frame size of a net_af_packet ring: one frame of the interface's MTU, a whole number of pages for every block. */
static unsigned ring_frame_bytes(const char *interface)
{
    unsigned bytes = read_mtu(interface) + 14 + RING_EXTRA_BYTES;
    unsigned unit = (unsigned)sysconf(_SC_PAGESIZE) / RING_BLOCK_FRAMES;

    return (bytes + unit - 1) / unit * unit;
}

static bool is_pci_address(const char *spec)
{
    unsigned numbers[4];
    int length = 0;

    return sscanf(spec, "%4x:%2x:%2x.%1x%n", &numbers[0], &numbers[1], &numbers[2], &numbers[3], &length) == 4 &&
           (spec[length] == '\0' || spec[length] == ',');
}

static int add_argument(struct dpdk_source *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int add_argument(struct dpdk_source *self, const char *format, ...)
{
    char *text = self->arguments[self->arguments_count];
    va_list arguments;

    if (self->arguments_count == ARGUMENTS_MAX)
        return log_error_return(-E2BIG, "too many --port and --eal arguments");
    va_start(arguments, format);
    int length = vsnprintf(text, ARGUMENT_BYTES, format, arguments);
    va_end(arguments);
    if (length >= ARGUMENT_BYTES)
        return log_error_return(-ENAMETOOLONG, "'%s...' is too long for an argument of DPDK", text);
    self->argument_list[self->arguments_count++] = text;
    return 0;
}

/* Takes one --port apart. A device that DPDK has to make becomes one of its arguments. */
static int add_port(struct dpdk_source *self, const char *spec)
{
    struct port *port = &self->ports[self->ports_count];
    const char *at = strrchr(spec, '@');
    int length = at == NULL ? (int)strlen(spec) : (int)(at - spec);
    char device[ARGUMENT_BYTES];

    if (self->ports_count == SOURCE_PORTS_MAX)
        return log_error_return(-E2BIG, "more than %d ports", SOURCE_PORTS_MAX);
    snprintf(device, sizeof device, "%.*s", length, spec);
    snprintf(port->device, sizeof port->device, "%.*s", (int)strcspn(device, ","), device);
    find_argument(device, "iface", port->interface, sizeof port->interface);
    if (at != NULL && read_address(at + 1, port->record.address) != 0)
        return -EINVAL;
    port->is_ring = strncmp(device, "net_af_packet", strlen("net_af_packet")) == 0;
    port->is_snapped = strncmp(device, "net_pcap", strlen("net_pcap")) == 0 && port->interface[0] != '\0';
    port->record.port = (uint32_t)++self->ports_count;
    snprintf(port->record.name, sizeof port->record.name, "%.31s",
             port->interface[0] == '\0' ? port->device : port->interface);
    if (is_pci_address(device))
        return add_argument(self, "--allow=%s", device);
    if (strncmp(device, "net_", 4) != 0)
        return 0; /* the name of a port that is there */
    if (!port->is_ring || strstr(device, "framesz=") != NULL || strstr(device, "blocksz=") != NULL)
        return add_argument(self, "--vdev=%s", device);
    unsigned frame_bytes = ring_frame_bytes(port->interface);
    return add_argument(self, "--vdev=%s,framesz=%u,blocksz=%u,framecnt=%u", device, frame_bytes,
                        frame_bytes * RING_BLOCK_FRAMES, RING_FRAMES);
}

/* ---- starting ---- */

static bool has_huge_pages(void)
{
    char line[128];
    unsigned long free_pages = 0;
    FILE *file = fopen("/proc/meminfo", "re");

    while (file != NULL && free_pages == 0 && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "HugePages_Free: %lu", &free_pages);
    if (file != NULL)
        fclose(file);
    return free_pages != 0;
}

/* What one mbuf must hold: net_af_packet copies a whole frame into one, others chain them. */
static unsigned data_room_bytes(const struct dpdk_source *self)
{
    unsigned room_bytes = HEADER_ROOM_BYTES;

    for (size_t i = 0; i < self->ports_count; i++) {
        unsigned frame_bytes = self->ports[i].is_ring ? ring_frame_bytes(self->ports[i].interface) : 0;
        room_bytes = frame_bytes > room_bytes ? frame_bytes : room_bytes;
    }
    return room_bytes + RTE_PKTMBUF_HEADROOM;
}

/* The processors that we may run on, so that DPDK does not bind us to one of them. */
static void list_processors(char *text, size_t capacity)
{
    cpu_set_t set;
    size_t used = 0;

    text[0] = '\0';
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < capacity; cpu++) {
        if (CPU_ISSET(cpu, &set))
            used += (size_t)snprintf(text + used, capacity - used, "%s%d", used == 0 ? "" : ",", cpu);
    }
}

static int add_own_arguments(struct dpdk_source *self)
{
    char processors[ARGUMENT_BYTES - 16];
    bool has_pci = false;
    unsigned memory_mib = BASE_MEMORY_MIB + (unsigned)((self->ports_count + 1) * MBUFS_A_PORT *
                                                       (data_room_bytes(self) + 256) / (1024 * 1024));

    for (int i = 0; i < self->arguments_count; i++)
        has_pci |= strncmp(self->arguments[i], "--allow=", 8) == 0;
    list_processors(processors, sizeof processors);
    int error = add_argument(self, "--no-telemetry");
    if (error == 0)
        error = add_argument(self, "--log-level=*:error");
    if (error == 0)
        error = add_argument(self, "--lcores=0@(%s)", processors);
    if (error == 0 && !has_pci)
        error = add_argument(self, "--no-pci");
    if (error == 0)
        error = add_argument(self, has_huge_pages() ? "--in-memory" : "--no-huge");
    if (error == 0 && !has_huge_pages())
        error = add_argument(self, "--no-shconf");
    return error == 0 && !has_huge_pages() ? add_argument(self, "-m%u", memory_mib) : error;
}

static int start_eal(struct dpdk_source *self, const struct option_list *ports, const struct option_list *eal_arguments)
{
    int error = add_argument(self, "qpscope-nic");

    for (size_t i = 0; i < ports->count && error == 0; i++)
        error = add_port(self, ports->values[i]);
    if (error == 0)
        error = add_own_arguments(self);
    for (size_t i = 0; i < eal_arguments->count && error == 0; i++)
        error = add_argument(self, "%s", eal_arguments->values[i]);
    if (error != 0)
        return error;
    if (rte_eal_init(self->arguments_count, self->argument_list) < 0)
        return log_error_return(-ENODEV,
                                "DPDK did not start (%s); it needs the right to open the ports (root or CAP_NET_RAW), "
                                "and each --port must be a device that it knows",
                                rte_strerror(rte_errno));
    self->is_started = true;
    self->pool = rte_pktmbuf_pool_create("frames", (unsigned)(self->ports_count + 1) * MBUFS_A_PORT, 256, 0,
                                         (uint16_t)data_room_bytes(self), SOCKET_ID_ANY);
    if (self->pool == NULL)
        return log_error_return(-ENOMEM, "DPDK has no memory for frames (%s); give it more with --eal -m1024",
                                rte_strerror(rte_errno));
    return 0;
}

static int start_port(struct dpdk_source *self, struct port *port)
{
    struct rte_eth_conf configuration = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};
    struct rte_eth_dev_info information;
    uint16_t descriptors = DESCRIPTORS;

    int error = rte_eth_dev_get_port_by_name(port->device, &port->id);
    if (error != 0)
        return log_error_return(
            -ENODEV,
            "--port %s: could not be opened: no such device or interface, or no right to it (root or "
            "CAP_NET_RAW); 'dpdk-devbind.py -s' lists what DPDK can use",
            port->device);
    error = rte_eth_dev_info_get(port->id, &information);
    if (error == 0) {
        configuration.rxmode.offloads =
            information.rx_offload_capa & (RTE_ETH_RX_OFFLOAD_TIMESTAMP | RTE_ETH_RX_OFFLOAD_SCATTER);
        error = rte_eth_dev_configure(port->id, 1, 0, &configuration);
    }
    if (error == 0)
        error = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &descriptors, NULL);
    if (error == 0)
        error = rte_eth_rx_queue_setup(port->id, 0, descriptors, (unsigned)rte_eth_dev_socket_id(port->id), NULL,
                                       self->pool);
    if (error == 0)
        error = rte_eth_dev_start(port->id);
    if (error != 0)
        return log_error_return(error, "--port %s: cannot be started: %s", port->device, rte_strerror(-error));
    return 0;
}

/* What the interface has counted in both directions; 0 when it is not to be had. */
static uint64_t read_count(const struct port *port)
{
    FILE *file = fopen("/proc/thread-self/net/dev", "re");
    unsigned long long received, sent;
    char line[512], name[64];
    uint64_t count = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, " %63[^:]: %*u %llu %*u %*u %*u %*u %*u %*u %*u %llu", name, &received, &sent) == 3 &&
            strcmp(name, port->interface) == 0)
            count = received + sent;
    }
    if (file != NULL)
        fclose(file);
    return count;
}

static void begin_time(struct dpdk_source *self)
{
    struct record_clock_pair pair;

    clock_read_pair(&self->pair, 0);
    for (int i = 0; i < PAIR_TRIES; i++) {
        clock_read_pair(&pair, 0);
        if (pair.bound_ns < self->pair.bound_ns)
            self->pair = pair;
    }
    self->stamp_offset = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
    int flag = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);
    if (flag < 0)
        self->stamp_offset = -1;
    else
        self->stamp_flag = (uint64_t)1 << flag;
}

/* ---- time ---- */

static int64_t pair_offset_ns(const struct record_clock_pair *pair)
{
    return (int64_t)(pair->realtime_ns - pair->monotonic_ns);
}

/* Takes a new relation of the clocks when the one that we have is contradicted: somebody has set the clock. */
static void check_pair(struct dpdk_source *self, uint64_t now_ns)
{
    struct record_clock_pair pair;

    if (now_ns < self->pair_due_ns)
        return;
    self->pair_due_ns = now_ns + INTERVAL_NS;
    clock_read_pair(&pair, 0);
    int64_t change_ns = pair_offset_ns(&pair) - pair_offset_ns(&self->pair);
    if ((uint64_t)llabs(change_ns) > pair.bound_ns + self->pair.bound_ns)
        self->pair = pair;
}

static bool is_near(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) < STAMP_TRUST_NS;
}

static void decide_unit(const struct dpdk_source *self, struct port *port, uint64_t stamp, uint64_t now_ns)
{
    uint64_t realtime_ns = now_ns + (uint64_t)pair_offset_ns(&self->pair);

    if (is_near(stamp, realtime_ns))
        port->unit = STAMP_NANOSECONDS;
    else if (is_near(stamp * 1000, realtime_ns))
        port->unit = STAMP_MICROSECONDS;
    else
        port->unit = STAMP_NONE;
    if (port->unit == STAMP_NONE)
        log_warning(
            "port %s: its driver's time stamps are of no clock that is known here; frames get the time at which "
            "they are read",
            port->record.name);
}

static uint64_t frame_time(const struct dpdk_source *self, struct port *port, struct rte_mbuf *mbuf, uint64_t now_ns)
{
    if (self->stamp_offset < 0 || (mbuf->ol_flags & self->stamp_flag) == 0) {
        port->unit = STAMP_NONE;
        return now_ns;
    }
    uint64_t stamp = *RTE_MBUF_DYNFIELD(mbuf, self->stamp_offset, uint64_t *);
    if (port->unit == STAMP_UNDECIDED)
        decide_unit(self, port, stamp, now_ns);
    switch (port->unit) {
    case STAMP_NANOSECONDS:
        return stamp - (uint64_t)pair_offset_ns(&self->pair);
    case STAMP_MICROSECONDS:
        return stamp * 1000 - (uint64_t)pair_offset_ns(&self->pair);
    default:
        return now_ns;
    }
}

/* ---- receiving ---- */

/* The port is drained: what the interface had counted before, and we have not seen, is lost. */
static void compare_counts(struct port *port)
{
    uint64_t counted = port->counted - port->counted_base;

    port->is_asked = false;
    if (counted > port->seen && counted - port->seen > port->lost)
        port->lost = counted - port->seen;
}

static uint32_t original_bytes(const struct port *port, const struct rte_mbuf *mbuf)
{
    uint32_t there_bytes = rte_pktmbuf_pkt_len(mbuf);

    return port->is_snapped && there_bytes == KERNEL_RING_SNAP_BYTES ? FRAME_BYTES_UNKNOWN : there_bytes;
}

/* The clock was read as `now_ns` before: what is stamped until then has been handed out when the burst is not full. */
static int receive_port(struct dpdk_source *self, struct port *port, uint64_t now_ns,
                        struct source_frame frames[SOURCE_BURST_FRAMES])
{
    uint16_t count = rte_eth_rx_burst(port->id, 0, self->held, SOURCE_BURST_FRAMES);

    self->held_count = count;
    port->seen += count;
    if (count < SOURCE_BURST_FRAMES)
        port->drained_ns = now_ns;
    if (count == 0 && port->is_asked)
        compare_counts(port);
    for (uint16_t i = 0; i < count; i++) {
        struct rte_mbuf *mbuf = self->held[i];
        frames[i] = (struct source_frame){.bytes = rte_pktmbuf_mtod(mbuf, const uint8_t *),
                                          .captured_bytes = rte_pktmbuf_data_len(mbuf),
                                          .original_bytes = original_bytes(port, mbuf),
                                          .at_ns = frame_time(self, port, mbuf, now_ns),
                                          .port = port->record.port,
                                          .layer = FRAME_LAYER_ETHERNET};
    }
    return count;
}

static int receive_dpdk(struct source *source, struct source_frame frames[SOURCE_BURST_FRAMES])
{
    struct dpdk_source *self = (struct dpdk_source *)source;
    uint64_t now_ns = clock_now_ns();

    rte_pktmbuf_free_bulk(self->held, self->held_count);
    self->held_count = 0;
    check_pair(self, now_ns);
    for (size_t i = 0; i < self->ports_count; i++) {
        struct port *port = &self->ports[self->next_port];
        self->next_port = (self->next_port + 1) % self->ports_count;
        self->polled++;
        int count = receive_port(self, port, now_ns, frames);
        if (count != 0)
            return count;
    }
    return 0;
}

static bool are_all_stamped(const struct dpdk_source *self)
{
    for (size_t i = 0; i < self->ports_count; i++) {
        if (self->ports[i].unit == STAMP_NONE || self->stamp_offset < 0)
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
    if (self->polled < self->ports_count || (!stamped && ++self->empty_polls < POLLS_BEFORE_REST))
        return;
    self->polled = 0;
    const struct timespec rest = {.tv_nsec = (long)self->rest_ns};
    nanosleep(&rest, NULL);
    self->rest_ns = self->rest_ns * 2 < most_ns ? self->rest_ns * 2 : most_ns;
}

/* ---- loss ---- */

static void check_port(struct port *port)
{
    struct rte_eth_stats stats;

    if (port->is_ring) {
        port->counted = read_count(port);
        port->is_asked = true;
    } else if (rte_eth_stats_get(port->id, &stats) == 0 && stats.imissed + stats.rx_nombuf > port->lost) {
        port->lost = stats.imissed + stats.rx_nombuf;
    }
}

static bool take_dpdk_loss(struct source *source, struct source_loss *loss)
{
    struct dpdk_source *self = (struct dpdk_source *)source;
    uint64_t now_ns = clock_now_ns();

    for (size_t i = 0; i < self->ports_count; i++) {
        struct port *port = &self->ports[i];
        if (now_ns - port->checked_ns < INTERVAL_NS / 2)
            continue;
        uint64_t before_ns = port->checked_ns;
        port->checked_ns = now_ns;
        check_port(port);
        if (port->lost == port->lost_told)
            continue;
        *loss = (struct source_loss){
            .port = port->record.port, .from_ns = before_ns, .to_ns = now_ns, .frames = port->lost - port->lost_told};
        port->lost_told = port->lost;
        return true;
    }
    return false;
}

/* ---- the seam ---- */

static size_t list_dpdk(const struct source *source, struct record_port *ports, size_t capacity)
{
    const struct dpdk_source *self = (const struct dpdk_source *)source;
    size_t count = self->ports_count < capacity ? self->ports_count : capacity;

    for (size_t i = 0; i < count; i++)
        ports[i] = self->ports[i].record;
    return count;
}

static uint64_t cover_dpdk(const struct source *source)
{
    const struct dpdk_source *self = (const struct dpdk_source *)source;
    uint64_t drained_ns = UINT64_MAX;

    for (size_t i = 0; i < self->ports_count; i++)
        drained_ns = self->ports[i].drained_ns < drained_ns ? self->ports[i].drained_ns : drained_ns;
    return drained_ns > HAND_OVER_NS ? drained_ns - HAND_OVER_NS : 0;
}

static void close_dpdk(struct source *source)
{
    struct dpdk_source *self = (struct dpdk_source *)source;

    rte_pktmbuf_free_bulk(self->held, self->held_count);
    for (size_t i = 0; i < self->ports_count && self->is_started; i++) {
        uint16_t id;
        if (rte_eth_dev_get_port_by_name(self->ports[i].device, &id) != 0)
            continue;
        (void)rte_eth_dev_stop(id);
        (void)rte_eth_dev_close(id);
    }
    rte_mempool_free(self->pool);
    if (self->is_started)
        rte_eal_cleanup();
    free(self);
}

static const struct source_operations operations = {
    .kind = TRAFFIC_SOURCE_DPDK,
    .close = close_dpdk,
    .receive = receive_dpdk,
    .ports = list_dpdk,
    .covered_ns = cover_dpdk,
    .take_loss = take_dpdk_loss,
    .rest = rest_dpdk,
};

int source_open_dpdk(struct source **source, const struct option_list *ports, const struct option_list *eal_arguments)
{
    struct dpdk_source *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->source.operations = &operations;
    made->rest_ns = REST_MIN_NS;
    int error = start_eal(made, ports, eal_arguments);
    for (size_t i = 0; i < made->ports_count && error == 0; i++) {
        struct port *port = &made->ports[i];
        error = start_port(made, port);
        port->checked_ns = clock_now_ns();
        port->counted_base = port->is_ring ? read_count(port) : 0;
    }
    if (error != 0) {
        close_dpdk(&made->source);
        return error;
    }
    begin_time(made);
    *source = &made->source;
    return 0;
}
