/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contexts of all queue pairs of some devices as a traffic source: asks the kernel for them every few milliseconds.
 * Needs neither the queue pairs' owner nor the data path. Invariant: an endpoint's record is handed out before its
 * readings, and what moved is counted in exactly one reading.
 */
#include "nic/source/device_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/mlx5/mlx5_layout.h"
#include "nic/psn/psn.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/rdma/rdma_netlink.h"

#define ENDPOINTS_MAX      16384u
#define INTERVAL_NS        10000000u
#define CONTEXT_DUMP_BYTES 4096

struct psn_source {
    struct device_source base;
    bool has_no_contexts[SOURCE_PORTS_MAX]; /* of the port's device */
    struct psn_track *tracks;               /* by the endpoint's place, as the next two */
    struct psn_sample *samples;
    bool *is_sampled;
    bool has_failed;
    uint8_t dump[CONTEXT_DUMP_BYTES];
};

static void close_psn(struct source *source)
{
    struct psn_source *self = (struct psn_source *)source;

    device_source_fini(&self->base);
    free(self->tracks);
    free(self->samples);
    free(self->is_sampled);
    free(self);
}

/* Where a queue pair belongs: its port, or the device's first one as long as it is bound to none. */
static size_t find_port(const struct psn_source *self, const struct rdma_queue_pair *pair)
{
    for (size_t i = 0; i < self->base.ports_count; i++)
        if (self->base.ports[i].device == pair->device &&
            (pair->port == 0 || self->base.ports[i].port.number == pair->port))
            return i;
    return self->base.ports_count;
}

static void look_at(void *context, const struct rdma_queue_pair *pair, uint64_t from_ns, uint64_t to_ns)
{
    struct psn_source *self = context;
    size_t index = find_port(self, pair);

    if (index == self->base.ports_count)
        return;
    const struct rdma_port *port = &self->base.ports[index].port;
    struct record_endpoint seen = {.port = (uint32_t)index + 1,
                                   .qpn = pair->qpn,
                                   .remote_qpn = pair->remote_qpn,
                                   .state = pair->state,
                                   .type = pair->type,
                                   .pid = pair->pid};
    memcpy(seen.address, port->address, ADDRESS_BYTES);
    struct endpoint *endpoint = endpoint_note(self->base.endpoints, &seen, to_ns);
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
    size_t port = endpoint->record.port - 1;
    const struct device_source_port *at = &self->base.ports[port];
    struct psn_sample *sample = &self->samples[endpoint->place];
    struct mlx5_context context;
    size_t bytes = 0;
    uint64_t from_ns = clock_now_ns();

    if (self->has_no_contexts[port] || endpoint->record.remote_qpn == 0)
        return;
    int error = rdma_netlink_context(self->base.netlink, at->device, endpoint->record.qpn, self->dump,
                                     sizeof self->dump, &bytes);
    if (error == -EOPNOTSUPP || error == -EPERM || error == -EINVAL) {
        self->has_no_contexts[port] = true;
        log_info("%s: %s: no raw contexts of queue pairs: what was acknowledged is not seen", at->port.device,
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
    endpoint_note(self->base.endpoints, &seen, sample->to_ns);
}

static void count_all(struct psn_source *self)
{
    self->base.readings_count = 0;
    self->base.readings_taken = 0;
    for (struct endpoint *at = NULL; (at = endpoint_next(self->base.endpoints, at)) != NULL;) {
        struct record_reading *reading = &self->base.readings[self->base.readings_count];
        if (!self->is_sampled[at->place])
            continue;
        look_closer(self, at);
        if (!psn_advance(&self->tracks[at->place], &self->samples[at->place], reading))
            continue;
        reading->header.source = at->record.endpoint;
        self->base.readings_count++;
    }
}

static int ask_devices(struct psn_source *self)
{
    int error = 0;

    for (size_t i = 0; i < self->base.ports_count && error == 0; i++) {
        bool is_asked = false;
        for (size_t before = 0; before < i; before++)
            is_asked |= self->base.ports[before].device == self->base.ports[i].device;
        if (!is_asked)
            error = rdma_netlink_queue_pairs(self->base.netlink, self->base.ports[i].device, look_at, self);
    }
    return error;
}

static void run_round(struct psn_source *self)
{
    uint64_t began_ns = clock_now_ns();

    endpoint_begin_round(self->base.endpoints);
    int error = ask_devices(self);
    if (error != 0 && !self->has_failed)
        log_warning("the kernel does not list queue pairs (%s): going on as soon as it does", strerror(-error));
    self->has_failed = error != 0;
    if (error != 0)
        return;
    count_all(self);
    endpoint_end_round(self->base.endpoints, clock_now_ns(), NULL, NULL);
    device_source_end_round(&self->base, began_ns);
}

static size_t count_psn(struct source *source, struct source_count *counts, size_t capacity)
{
    struct psn_source *self = (struct psn_source *)source;
    size_t count = device_source_hand_out(&self->base, counts, capacity);

    if (count != 0 || clock_now_ns() < self->base.due_ns)
        return count;
    self->base.due_ns = clock_now_ns() + self->base.interval_ns;
    run_round(self);
    return device_source_hand_out(&self->base, counts, capacity);
}

static uint64_t refused_psn(const struct source *source)
{
    return endpoint_refused(((const struct device_source *)source)->endpoints);
}

static const struct source_operations operations = {
    .kind = TRAFFIC_SOURCE_PSN,
    .close = close_psn,
    .ports = device_source_ports,
    .covered_ns = device_source_covered_ns,
    .rest = device_source_rest,
    .describe = device_source_describe,
    .counts = count_psn,
    .repeat = device_source_repeat,
    .refused = refused_psn,
};

static int add_port(struct device_source *base, const struct device_source_port *port)
{
    base->ports[base->ports_count++] = *port;
    return 0;
}

static int open_parts(struct psn_source *self, const struct source_device_options *options)
{
    int error =
        device_source_init(&self->base, ENDPOINTS_MAX, options->interval_ns == 0 ? INTERVAL_NS : options->interval_ns);

    self->tracks = calloc(ENDPOINTS_MAX, sizeof *self->tracks);
    self->samples = calloc(ENDPOINTS_MAX, sizeof *self->samples);
    self->is_sampled = calloc(ENDPOINTS_MAX, sizeof *self->is_sampled);
    if (error == 0 && (self->tracks == NULL || self->samples == NULL || self->is_sampled == NULL))
        error = log_error_return(-ENOMEM, "no memory for %u queue pairs", ENDPOINTS_MAX);
    return error != 0 ? error : device_source_open_ports(&self->base, options->devices, add_port);
}

int source_open_psn(struct source **source, const struct source_device_options *options)
{
    struct psn_source *made = calloc(1, sizeof *made);

    if (made == NULL)
        return log_error_return(-ENOMEM, "no memory for the source of sequence numbers");
    made->base.source.operations = &operations;
    int error = open_parts(made, options);
    if (error != 0) {
        close_psn(&made->base.source);
        return error;
    }
    *source = &made->base.source;
    return 0;
}
