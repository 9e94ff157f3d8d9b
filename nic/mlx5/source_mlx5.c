/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of each queue pair in mlx5 devices as a traffic source. Which queue pairs there are is asked of the
 * kernel now and then (each question costs the firmware a command a queue pair), and told by the host side where the
 * kernel cannot know. Invariant: an endpoint's record is handed out before its readings, and its rules are gone before
 * its end is told.
 */
#include "nic/source/device_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/mlx5/mlx5_counters.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/rdma/rdma_netlink.h"

#define ENDPOINTS_MAX    4096u
#define LIST_INTERVAL_NS 1000000000u
#define TYPE_RC          2
#define DRY_QPN          0x123

struct watched { /* beside each port */
    struct mlx5_device *device;
    struct mlx5_counters *counters;
};

struct mlx5_source {
    struct device_source base;
    struct watched watched[SOURCE_PORTS_MAX];
    bool is_told[ENDPOINTS_MAX];    /* by place: the host side told of it, the kernel need not list it */
    bool is_refused[ENDPOINTS_MAX]; /* tried, and not counted; tried again after others went */
    uint64_t list_due_ns;
    bool has_failed;
};

static void close_mlx5(struct source *source)
{
    struct mlx5_source *self = (struct mlx5_source *)source;

    for (size_t i = 0; i < SOURCE_PORTS_MAX; i++) {
        mlx5_counters_close(&self->watched[i].counters);
        mlx5_device_close(&self->watched[i].device);
    }
    device_source_fini(&self->base);
    free(self);
}

/* ---- which queue pairs there are ---- */

static void stop_counting(void *context, struct endpoint *endpoint)
{
    struct mlx5_source *self = context;

    mlx5_counters_remove(self->watched[endpoint->record.port - 1].counters, endpoint->place);
    self->is_told[endpoint->place] = false;
    memset(self->is_refused, 0, sizeof self->is_refused);
}

static struct endpoint *note(struct mlx5_source *self, const struct record_endpoint *seen, uint64_t at_ns)
{
    struct endpoint *before = endpoint_find(self->base.endpoints, seen->port, seen->qpn);
    struct endpoint *endpoint = endpoint_note(self->base.endpoints, seen, at_ns);

    if (before != NULL && before != endpoint)
        stop_counting(self, before);
    return endpoint;
}

static void see(void *context, const struct rdma_queue_pair *pair, uint64_t from_ns, uint64_t to_ns)
{
    struct mlx5_source *self = context;

    (void)from_ns;
    for (size_t i = 0; i < self->base.ports_count; i++) {
        const struct rdma_port *port = &self->base.ports[i].port;
        if (self->base.ports[i].device != pair->device || (pair->port != 0 && port->number != pair->port))
            continue;
        struct record_endpoint seen = {.port = (uint32_t)i + 1,
                                       .qpn = pair->qpn,
                                       .remote_qpn = pair->remote_qpn,
                                       .state = pair->state,
                                       .type = pair->type,
                                       .pid = pair->pid};
        memcpy(seen.address, port->address, ADDRESS_BYTES);
        note(self, &seen, to_ns);
        return;
    }
}

static int ask_devices(struct mlx5_source *self)
{
    int error = 0;

    for (size_t i = 0; i < self->base.ports_count && error == 0; i++)
        if (self->base.ports[i].port.number == 1 || i == 0 ||
            self->base.ports[i].device != self->base.ports[i - 1].device)
            error = rdma_netlink_queue_pairs(self->base.netlink, self->base.ports[i].device, see, self);
    return error;
}

static void list_queue_pairs(struct mlx5_source *self)
{
    endpoint_begin_round(self->base.endpoints);
    int error = ask_devices(self);
    if (error != 0 && !self->has_failed)
        log_warning("the kernel does not list queue pairs (%s): those that are known go on being counted",
                    strerror(-error));
    self->has_failed = error != 0;
    for (struct endpoint *at = NULL; (at = endpoint_next(self->base.endpoints, at)) != NULL;)
        at->is_listed |= self->is_told[at->place] || error != 0;
    endpoint_end_round(self->base.endpoints, clock_now_ns(), stop_counting, self);
}

/* On this machine by the device's name; of another machine, whose devices may have the same names, by the address. */
static bool is_at(const struct record_queue_pair *pair, const struct rdma_port *port, bool is_here)
{
    static const uint8_t none[ADDRESS_BYTES];

    if (is_here)
        return strncmp(pair->device, port->device, sizeof pair->device) == 0 && pair->port == port->number;
    return memcmp(port->address, none, sizeof none) != 0 && memcmp(port->address, pair->address, sizeof none) == 0;
}

static void tell_mlx5(struct source *source, const struct record_queue_pair *pair, bool is_here)
{
    struct mlx5_source *self = (struct mlx5_source *)source;

    for (size_t i = 0; i < self->base.ports_count; i++) {
        if (!is_at(pair, &self->base.ports[i].port, is_here))
            continue;
        self->list_due_ns = pair->destroyed_ns != 0 ? 0 : self->list_due_ns;
        if (pair->destroyed_ns != 0 && endpoint_find(self->base.endpoints, (uint32_t)i + 1, pair->qpn) == NULL)
            continue;
        struct record_endpoint seen = {.port = (uint32_t)i + 1,
                                       .qpn = pair->qpn,
                                       .remote_qpn = pair->remote_qpn,
                                       .state = pair->state,
                                       .type = pair->type};
        memcpy(seen.address, pair->address, ADDRESS_BYTES);
        memcpy(seen.remote_address, pair->remote_address, ADDRESS_BYTES);
        struct endpoint *endpoint = note(self, &seen, clock_now_ns());
        if (endpoint != NULL)
            self->is_told[endpoint->place] = pair->destroyed_ns == 0;
    }
}

/* ---- counting ---- */

static void begin_counting(struct mlx5_source *self)
{
    for (struct endpoint *at = NULL; (at = endpoint_next(self->base.endpoints, at)) != NULL;) {
        struct mlx5_counters *counters = self->watched[at->record.port - 1].counters;
        if (at->record.type != TYPE_RC || self->is_refused[at->place] || mlx5_counters_has(counters, at->place))
            continue;
        int error = mlx5_counters_add(counters, at->place, at->record.qpn);
        self->is_refused[at->place] = error != 0 && error != -EAGAIN;
    }
}

static void read_counters(struct mlx5_source *self)
{
    uint64_t began_ns = clock_now_ns();

    self->base.readings_count = 0;
    self->base.readings_taken = 0;
    for (size_t i = 0; i < self->base.ports_count; i++) {
        int error = mlx5_counters_read(self->watched[i].counters);
        if (error != 0 && !self->has_failed)
            log_warning("%s: counters cannot be read (%s): going on", self->base.ports[i].port.device,
                        strerror(-error));
        self->has_failed |= error != 0;
    }
    for (struct endpoint *at = NULL; (at = endpoint_next(self->base.endpoints, at)) != NULL;) {
        struct record_reading *reading = &self->base.readings[self->base.readings_count];
        if (!mlx5_counters_take(self->watched[at->record.port - 1].counters, at->place, reading))
            continue;
        reading->header.source = at->record.endpoint;
        self->base.readings_count++;
    }
    device_source_end_round(&self->base, began_ns);
}

static size_t count_mlx5(struct source *source, struct source_count *counts, size_t capacity)
{
    struct mlx5_source *self = (struct mlx5_source *)source;
    size_t count = device_source_hand_out(&self->base, counts, capacity);
    uint64_t now_ns = clock_now_ns();

    if (count != 0 || now_ns < self->base.due_ns)
        return count;
    self->base.due_ns = now_ns + self->base.interval_ns;
    if (now_ns >= self->list_due_ns) {
        self->list_due_ns = now_ns + LIST_INTERVAL_NS;
        list_queue_pairs(self);
    }
    begin_counting(self);
    read_counters(self);
    return device_source_hand_out(&self->base, counts, capacity);
}

static uint64_t refused_mlx5(const struct source *source)
{
    const struct mlx5_source *self = (const struct mlx5_source *)source;
    uint64_t refused = endpoint_refused(self->base.endpoints);

    for (size_t i = 0; i < self->base.ports_count; i++)
        refused += mlx5_counters_refused(self->watched[i].counters);
    return refused;
}

static const struct source_operations operations = {
    .kind = TRAFFIC_SOURCE_MLX5,
    .close = close_mlx5,
    .ports = device_source_ports,
    .covered_ns = device_source_covered_ns,
    .rest = device_source_rest,
    .describe = device_source_describe,
    .counts = count_mlx5,
    .repeat = device_source_repeat,
    .refused = refused_mlx5,
    .tell = tell_mlx5,
};

/* ---- opening ---- */

static int add_port(struct device_source *base, const struct device_source_port *port)
{
    struct mlx5_source *self = (struct mlx5_source *)base;
    struct watched *watched = &self->watched[base->ports_count];
    int error = mlx5_device_open(&watched->device, port->port.device, port->port.number);

    if (error == 0)
        error = mlx5_counters_open(&watched->counters, watched->device, ENDPOINTS_MAX);
    if (error == 0)
        base->ports[base->ports_count++] = *port;
    if (error != -EOPNOTSUPP || port->port.number == 1)
        return error;
    mlx5_device_close(&watched->device); /* another function's port that cannot be counted: the others can be */
    return 0;
}

static int open_parts(struct mlx5_source *self, const struct source_device_options *options)
{
    int error = device_source_init(&self->base, ENDPOINTS_MAX, options->interval_ns);

    if (error == 0)
        error = device_source_open_ports(&self->base, options->devices, add_port);
    return error == 0 && self->base.ports_count == 0
               ? log_error_return(-EOPNOTSUPP, "mlx5: none of the ports can be counted")
               : error;
}

/* What one queue pair would be given: from the first command to the last. */
static int print_device(const char *name)
{
    struct mlx5_device *device = NULL;
    struct mlx5_counters *counters = NULL;
    const char *slash = strchr(name, '/');
    int error = mlx5_device_open_print(&device, name, slash == NULL ? 1 : (unsigned)atoi(slash + 1), stdout);

    printf("%s: what a device is given for one queue pair, with the number 0x%x as an example; nothing is made\n", name,
           DRY_QPN);
    if (error == 0)
        error = mlx5_counters_open(&counters, device, 1);
    if (error == 0)
        error = mlx5_counters_add(counters, 0, DRY_QPN);
    if (error == 0)
        error = mlx5_counters_read(counters);
    mlx5_counters_close(&counters);
    mlx5_device_close(&device);
    return error;
}

static int print_all(const struct option_list *devices)
{
    int error = devices->count == 0 ? print_device("mlx5") : 0;

    for (size_t i = 0; i < devices->count && error == 0; i++)
        error = print_device(devices->values[i]);
    return error;
}

int source_open_mlx5(struct source **source, const struct source_device_options *options)
{
    if (options->is_dry)
        return print_all(options->devices);
    struct mlx5_source *made = calloc(1, sizeof *made);
    if (made == NULL)
        return log_error_return(-ENOMEM, "no memory for the source of mlx5's counters");
    made->base.source.operations = &operations;
    int error = open_parts(made, options);
    if (error != 0)
        close_mlx5(&made->base.source);
    else
        *source = &made->base.source;
    return error;
}
