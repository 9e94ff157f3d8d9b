/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contexts of all queue pairs of some devices as a traffic source: asks the kernel for them every few milliseconds.
 * Needs neither the queue pairs' owner nor the data path. Invariant: an endpoint's record is handed out before its
 * readings, and what moved is counted in exactly one reading.
 */
#include "nic/source/source_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nic/counting/endpoint.h"
#include "nic/mlx5/mlx5_layout.h"
#include "nic/port/rdma_port.h"
#include "nic/psn/psn.h"
#include "wire/rdma/rdma_netlink.h"
#include "wire/clock.h"
#include "wire/log.h"

#define ENDPOINTS_MAX      16384u
#define INTERVAL_NS        10000000u
#define REST_MAX_NS        10000000u
#define CONTEXT_DUMP_BYTES 4096

struct watched {
    struct rdma_port port;
    uint32_t device; /* the kernel's index */
    bool has_contexts;
};

struct psn_source {
    struct source source;
    struct rdma_netlink *netlink;
    struct watched ports[SOURCE_PORTS_MAX];
    size_t ports_count;
    struct endpoint_table *endpoints;
    struct psn_track *tracks; /* by the endpoint's place, as the next two */
    struct psn_sample *samples;
    bool *is_sampled;
    struct record_reading *readings;
    size_t readings_count;
    size_t readings_taken;
    uint64_t interval_ns;
    uint64_t due_ns;
    uint64_t covered_ns;
    uint64_t grain_ns;
    uint64_t round_ns; /* when the last round began */
    bool has_failed;
    uint8_t dump[CONTEXT_DUMP_BYTES];
};

static void close_psn(struct source *source)
{
    struct psn_source *self = (struct psn_source *)source;

    rdma_netlink_close(&self->netlink);
    endpoint_table_destroy(&self->endpoints);
    free(self->tracks);
    free(self->samples);
    free(self->is_sampled);
    free(self->readings);
    free(self);
}

/* Where a queue pair belongs: its port, or the device's first one as long as it is bound to none. */
static size_t find_port(const struct psn_source *self, const struct rdma_queue_pair *pair)
{
    for (size_t i = 0; i < self->ports_count; i++)
        if (self->ports[i].device == pair->device && (pair->port == 0 || self->ports[i].port.number == pair->port))
            return i;
    return self->ports_count;
}

static void look_at(void *context, const struct rdma_queue_pair *pair, uint64_t from_ns, uint64_t to_ns)
{
    struct psn_source *self = context;
    size_t index = find_port(self, pair);

    if (index == self->ports_count)
        return;
    const struct rdma_port *port = &self->ports[index].port;
    struct record_endpoint seen = {.port = (uint32_t)index + 1,
                                   .qpn = pair->qpn,
                                   .remote_qpn = pair->remote_qpn,
                                   .state = pair->state,
                                   .type = pair->type,
                                   .pid = pair->pid};
    memcpy(seen.address, port->address, ADDRESS_BYTES);
    struct endpoint *endpoint = endpoint_note(self->endpoints, &seen, to_ns);
    if (endpoint == NULL)
        return;
    if (endpoint->is_new)
        self->tracks[endpoint->place].is_known = false;
    self->is_sampled[endpoint->place] = pair->has_send_psn;
    self->samples[endpoint->place] = (struct psn_sample){.from_ns = from_ns,
                                                         .to_ns = to_ns,
                                                         .next_send = pair->send_psn,
                                                         .next_receive = pair->receive_psn,
                                                         .has_receive = pair->has_receive_psn,
                                                         .mtu_most_bytes = port->mtu_bytes,
                                                         .bits_a_second = port->bits_a_second};
}

/* The device's own context says more, and later; a driver that has none is not asked again. */
static void look_closer(struct psn_source *self, struct endpoint *endpoint)
{
    struct watched *watched = &self->ports[endpoint->record.port - 1];
    struct psn_sample *sample = &self->samples[endpoint->place];
    struct mlx5_context context;
    size_t bytes = 0;
    uint64_t from_ns = clock_now_ns();

    if (!watched->has_contexts || endpoint->record.remote_qpn == 0)
        return;
    int error = rdma_netlink_context(self->netlink, watched->device, endpoint->record.qpn, self->dump,
                                     sizeof self->dump, &bytes);
    if (error == -EOPNOTSUPP || error == -EPERM || error == -EINVAL) {
        watched->has_contexts = false;
        log_info("%s: %s: no raw contexts of queue pairs: what was acknowledged is not seen", watched->port.device,
                 error == -EPERM ? "CAP_NET_ADMIN is missing" : "the driver gives none");
    }
    if (error != 0 ||
        mlx5_find_context(self->dump, bytes, endpoint->record.qpn, endpoint->record.remote_qpn, &context) != 0)
        return;
    sample->from_ns = from_ns;
    sample->to_ns = clock_now_ns();
    sample->next_send = context.next_send_psn;
    sample->next_receive = context.next_receive_psn;
    sample->has_context = true;
    sample->last_acked = context.last_acked_psn;
    sample->sent_messages = context.sent_messages;
    sample->received_messages = context.received_messages;
    sample->path_mtu_bytes = context.mtu_bytes;
    struct record_endpoint seen = endpoint->record;
    seen.path_mtu_bytes = context.mtu_bytes;
    memcpy(seen.remote_address, context.remote_address, ADDRESS_BYTES);
    endpoint_note(self->endpoints, &seen, sample->to_ns);
}

static void count_all(struct psn_source *self)
{
    self->readings_count = 0;
    self->readings_taken = 0;
    for (struct endpoint *at = NULL; (at = endpoint_next(self->endpoints, at)) != NULL;) {
        struct record_reading *reading = &self->readings[self->readings_count];
        if (!self->is_sampled[at->place])
            continue;
        look_closer(self, at);
        if (!psn_advance(&self->tracks[at->place], &self->samples[at->place], reading))
            continue;
        reading->header.source = at->record.endpoint;
        self->readings_count++;
    }
}

static int ask_devices(struct psn_source *self)
{
    int error = 0;

    for (size_t i = 0; i < self->ports_count && error == 0; i++) {
        bool is_asked = false;
        for (size_t before = 0; before < i; before++)
            is_asked |= self->ports[before].device == self->ports[i].device;
        if (!is_asked)
            error = rdma_netlink_queue_pairs(self->netlink, self->ports[i].device, look_at, self);
    }
    return error;
}

static void run_round(struct psn_source *self)
{
    uint64_t began_ns = clock_now_ns();

    endpoint_begin_round(self->endpoints);
    int error = ask_devices(self);
    if (error != 0 && !self->has_failed)
        log_warning("the kernel does not list queue pairs (%s): going on as soon as it does", strerror(-error));
    self->has_failed = error != 0;
    if (error != 0)
        return;
    count_all(self);
    endpoint_end_round(self->endpoints, clock_now_ns(), NULL, NULL);
    if (self->round_ns != 0) {
        uint64_t interval_ns = began_ns - self->round_ns;
        self->grain_ns = self->grain_ns == 0 ? interval_ns : (7 * self->grain_ns + interval_ns) / 8;
    }
    self->round_ns = began_ns;
    self->covered_ns = began_ns;
}

static size_t hand_out(struct psn_source *self, struct source_count *counts, size_t capacity)
{
    size_t count = 0;

    while (count < capacity && endpoint_take_changed(self->endpoints, &counts[count].endpoint))
        counts[count++].kind = RECORD_ENDPOINT;
    while (count < capacity && self->readings_taken < self->readings_count) {
        counts[count].kind = RECORD_READING;
        counts[count++].reading = self->readings[self->readings_taken++];
    }
    return count;
}

static size_t count_psn(struct source *source, struct source_count *counts, size_t capacity)
{
    struct psn_source *self = (struct psn_source *)source;
    size_t count = hand_out(self, counts, capacity);

    if (count != 0 || clock_now_ns() < self->due_ns)
        return count;
    self->due_ns = clock_now_ns() + self->interval_ns;
    run_round(self);
    return hand_out(self, counts, capacity);
}

static size_t list_psn(const struct source *source, struct record_port *ports, size_t capacity)
{
    const struct psn_source *self = (const struct psn_source *)source;

    for (size_t i = 0; i < self->ports_count && i < capacity; i++) {
        ports[i] = (struct record_port){.port = (uint32_t)i + 1};
        rdma_port_name(&self->ports[i].port, ports[i].name, sizeof ports[i].name);
        memcpy(ports[i].address, self->ports[i].port.address, ADDRESS_BYTES);
    }
    return self->ports_count;
}

static uint64_t cover_psn(const struct source *source)
{
    return ((const struct psn_source *)source)->covered_ns;
}

static void describe_psn(const struct source *source, struct record_traffic_source *description)
{
    description->grain_ns = ((const struct psn_source *)source)->grain_ns;
}

static void repeat_psn(struct source *source)
{
    endpoint_repeat(((struct psn_source *)source)->endpoints);
}

static uint64_t refused_psn(const struct source *source)
{
    return endpoint_refused(((const struct psn_source *)source)->endpoints);
}

static void rest_psn(struct source *source, size_t received)
{
    const struct psn_source *self = (const struct psn_source *)source;
    uint64_t now_ns = clock_now_ns();
    uint64_t rest_ns = self->due_ns > now_ns ? self->due_ns - now_ns : 0;

    (void)received;
    if (rest_ns > REST_MAX_NS)
        rest_ns = REST_MAX_NS;
    const struct timespec rest = {.tv_nsec = (long)rest_ns};
    if (rest_ns != 0)
        nanosleep(&rest, NULL);
}

static const struct source_operations operations = {
    .kind = TRAFFIC_SOURCE_PSN,
    .close = close_psn,
    .ports = list_psn,
    .covered_ns = cover_psn,
    .rest = rest_psn,
    .describe = describe_psn,
    .counts = count_psn,
    .repeat = repeat_psn,
    .refused = refused_psn,
};

static int find_devices(struct psn_source *self, const struct option_list *devices)
{
    struct rdma_port ports[SOURCE_PORTS_MAX];
    int count = rdma_port_list("/sys", devices, ports, SOURCE_PORTS_MAX);

    if (count <= 0)
        return count < 0
                   ? count
                   : log_error_return(-ENODEV, "this machine has no RDMA device (/sys/class/infiniband is empty)");
    for (int i = 0; i < count; i++) {
        int device = rdma_netlink_device(self->netlink, ports[i].device);
        if (device < 0)
            return log_error_return(device, "%s: the kernel does not tell of it over netlink: %s", ports[i].device,
                                    strerror(-device));
        self->ports[self->ports_count++] =
            (struct watched){.port = ports[i], .device = (uint32_t)device, .has_contexts = true};
    }
    return 0;
}

static int open_parts(struct psn_source *self, const struct source_device_options *options)
{
    self->interval_ns = options->interval_ns == 0 ? INTERVAL_NS : options->interval_ns;
    self->endpoints = endpoint_table_create(ENDPOINTS_MAX);
    self->tracks = calloc(ENDPOINTS_MAX, sizeof *self->tracks);
    self->samples = calloc(ENDPOINTS_MAX, sizeof *self->samples);
    self->is_sampled = calloc(ENDPOINTS_MAX, sizeof *self->is_sampled);
    self->readings = calloc(ENDPOINTS_MAX, sizeof *self->readings);
    if (self->endpoints == NULL || self->tracks == NULL || self->samples == NULL || self->is_sampled == NULL ||
        self->readings == NULL)
        return log_error_return(-ENOMEM, "no memory for %u queue pairs", ENDPOINTS_MAX);
    int error = rdma_netlink_open(&self->netlink);
    return error != 0 ? error : find_devices(self, options->devices);
}

int source_open_psn(struct source **source, const struct source_device_options *options)
{
    struct psn_source *made = calloc(1, sizeof *made);

    if (made == NULL)
        return log_error_return(-ENOMEM, "no memory for the source of sequence numbers");
    made->source.operations = &operations;
    int error = open_parts(made, options);
    if (error != 0) {
        close_psn(&made->source);
        return error;
    }
    *source = &made->source;
    return 0;
}
