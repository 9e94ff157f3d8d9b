/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of each queue pair in mlx5 devices as a traffic source. Which queue pairs there are is asked of the
 * kernel now and then (each question costs the firmware a command a queue pair), and told by the host side where the
 * kernel cannot know. Invariant: an endpoint's record is handed out before its readings, and its rules are gone before
 * its end is told.
 */
#include "nic/source/source_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nic/counting/endpoint.h"
#include "nic/mlx5/mlx5_counters.h"
#include "nic/port/rdma_port.h"
#include "wire/rdma/rdma_netlink.h"
#include "wire/clock.h"
#include "wire/log.h"

#define ENDPOINTS_MAX    4096u
#define LIST_INTERVAL_NS 1000000000u
#define REST_MAX_NS      10000000u
#define TYPE_RC          2
#define DRY_QPN          0x123

struct watched {
    struct rdma_port port;
    uint32_t index; /* the kernel's */
    struct mlx5_device *device;
    struct mlx5_counters *counters;
};

struct mlx5_source {
    struct source source;
    struct rdma_netlink *netlink;
    struct watched ports[SOURCE_PORTS_MAX];
    size_t ports_count;
    struct endpoint_table *endpoints;
    bool is_told[ENDPOINTS_MAX];    /* by place: the host side told of it, the kernel need not list it */
    bool is_refused[ENDPOINTS_MAX]; /* tried, and not counted; tried again after others went */
    struct record_reading readings[ENDPOINTS_MAX];
    size_t readings_count;
    size_t readings_taken;
    uint64_t interval_ns;
    uint64_t due_ns;
    uint64_t list_due_ns;
    uint64_t covered_ns;
    uint64_t grain_ns;
    bool has_failed;
};

static void close_mlx5(struct source *source)
{
    struct mlx5_source *self = (struct mlx5_source *)source;

    for (size_t i = 0; i < self->ports_count; i++) {
        mlx5_counters_close(&self->ports[i].counters);
        mlx5_device_close(&self->ports[i].device);
    }
    rdma_netlink_close(&self->netlink);
    endpoint_table_destroy(&self->endpoints);
    free(self);
}

/* ---- which queue pairs there are ---- */

static void stop_counting(void *context, struct endpoint *endpoint)
{
    struct mlx5_source *self = context;

    mlx5_counters_remove(self->ports[endpoint->record.port - 1].counters, endpoint->place);
    self->is_told[endpoint->place] = false;
    memset(self->is_refused, 0, sizeof self->is_refused);
}

static struct endpoint *note(struct mlx5_source *self, const struct record_endpoint *seen, uint64_t at_ns)
{
    struct endpoint *before = endpoint_find(self->endpoints, seen->port, seen->qpn);
    struct endpoint *endpoint = endpoint_note(self->endpoints, seen, at_ns);

    if (before != NULL && before != endpoint)
        stop_counting(self, before);
    return endpoint;
}

static void see(void *context, const struct rdma_queue_pair *pair, uint64_t from_ns, uint64_t to_ns)
{
    struct mlx5_source *self = context;

    (void)from_ns;
    for (size_t i = 0; i < self->ports_count; i++) {
        const struct rdma_port *port = &self->ports[i].port;
        if (self->ports[i].index != pair->device || (pair->port != 0 && port->number != pair->port))
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

    for (size_t i = 0; i < self->ports_count && error == 0; i++)
        if (self->ports[i].port.number == 1 || i == 0 || self->ports[i].index != self->ports[i - 1].index)
            error = rdma_netlink_queue_pairs(self->netlink, self->ports[i].index, see, self);
    return error;
}

static void list_queue_pairs(struct mlx5_source *self)
{
    endpoint_begin_round(self->endpoints);
    int error = ask_devices(self);
    if (error != 0 && !self->has_failed)
        log_warning("the kernel does not list queue pairs (%s): those that are known go on being counted",
                    strerror(-error));
    self->has_failed = error != 0;
    for (struct endpoint *at = NULL; (at = endpoint_next(self->endpoints, at)) != NULL;)
        at->is_listed |= self->is_told[at->place] || error != 0;
    endpoint_end_round(self->endpoints, clock_now_ns(), stop_counting, self);
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

    for (size_t i = 0; i < self->ports_count; i++) {
        if (!is_at(pair, &self->ports[i].port, is_here))
            continue;
        self->list_due_ns = pair->destroyed_ns != 0 ? 0 : self->list_due_ns;
        if (pair->destroyed_ns != 0 && endpoint_find(self->endpoints, (uint32_t)i + 1, pair->qpn) == NULL)
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
    for (struct endpoint *at = NULL; (at = endpoint_next(self->endpoints, at)) != NULL;) {
        struct mlx5_counters *counters = self->ports[at->record.port - 1].counters;
        if (at->record.type != TYPE_RC || self->is_refused[at->place] || mlx5_counters_has(counters, at->place))
            continue;
        int error = mlx5_counters_add(counters, at->place, at->record.qpn);
        self->is_refused[at->place] = error != 0 && error != -EAGAIN;
    }
}

static void read_counters(struct mlx5_source *self)
{
    uint64_t began_ns = clock_now_ns();

    self->readings_count = 0;
    self->readings_taken = 0;
    for (size_t i = 0; i < self->ports_count; i++) {
        int error = mlx5_counters_read(self->ports[i].counters);
        if (error != 0 && !self->has_failed)
            log_warning("%s: counters cannot be read (%s): going on", self->ports[i].port.device, strerror(-error));
        self->has_failed |= error != 0;
    }
    for (struct endpoint *at = NULL; (at = endpoint_next(self->endpoints, at)) != NULL;) {
        struct record_reading *reading = &self->readings[self->readings_count];
        if (!mlx5_counters_take(self->ports[at->record.port - 1].counters, at->place, reading))
            continue;
        reading->header.source = at->record.endpoint;
        self->readings_count++;
    }
    if (self->covered_ns != 0) {
        uint64_t interval_ns = began_ns - self->covered_ns;
        self->grain_ns = self->grain_ns == 0 ? interval_ns : (7 * self->grain_ns + interval_ns) / 8;
    }
    self->covered_ns = began_ns;
}

static size_t hand_out(struct mlx5_source *self, struct source_count *counts, size_t capacity)
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

static size_t count_mlx5(struct source *source, struct source_count *counts, size_t capacity)
{
    struct mlx5_source *self = (struct mlx5_source *)source;
    size_t count = hand_out(self, counts, capacity);
    uint64_t now_ns = clock_now_ns();

    if (count != 0 || now_ns < self->due_ns)
        return count;
    self->due_ns = now_ns + self->interval_ns;
    if (now_ns >= self->list_due_ns) {
        self->list_due_ns = now_ns + LIST_INTERVAL_NS;
        list_queue_pairs(self);
    }
    begin_counting(self);
    read_counters(self);
    return hand_out(self, counts, capacity);
}

static size_t list_mlx5(const struct source *source, struct record_port *ports, size_t capacity)
{
    const struct mlx5_source *self = (const struct mlx5_source *)source;

    for (size_t i = 0; i < self->ports_count && i < capacity; i++) {
        ports[i] = (struct record_port){.port = (uint32_t)i + 1};
        rdma_port_name(&self->ports[i].port, ports[i].name, sizeof ports[i].name);
        memcpy(ports[i].address, self->ports[i].port.address, ADDRESS_BYTES);
    }
    return self->ports_count;
}

static uint64_t cover_mlx5(const struct source *source)
{
    return ((const struct mlx5_source *)source)->covered_ns;
}

static void describe_mlx5(const struct source *source, struct record_traffic_source *description)
{
    description->grain_ns = ((const struct mlx5_source *)source)->grain_ns;
}

static void repeat_mlx5(struct source *source)
{
    endpoint_repeat(((struct mlx5_source *)source)->endpoints);
}

static uint64_t refused_mlx5(const struct source *source)
{
    const struct mlx5_source *self = (const struct mlx5_source *)source;
    uint64_t refused = endpoint_refused(self->endpoints);

    for (size_t i = 0; i < self->ports_count; i++)
        refused += mlx5_counters_refused(self->ports[i].counters);
    return refused;
}

static void rest_mlx5(struct source *source, size_t received)
{
    const struct mlx5_source *self = (const struct mlx5_source *)source;
    uint64_t now_ns = clock_now_ns();
    uint64_t rest_ns = self->due_ns > now_ns ? self->due_ns - now_ns : 0;

    (void)received;
    const struct timespec rest = {.tv_nsec = (long)(rest_ns > REST_MAX_NS ? REST_MAX_NS : rest_ns)};
    if (rest_ns != 0)
        nanosleep(&rest, NULL);
}

static const struct source_operations operations = {
    .kind = TRAFFIC_SOURCE_MLX5,
    .close = close_mlx5,
    .ports = list_mlx5,
    .covered_ns = cover_mlx5,
    .rest = rest_mlx5,
    .describe = describe_mlx5,
    .counts = count_mlx5,
    .repeat = repeat_mlx5,
    .refused = refused_mlx5,
    .tell = tell_mlx5,
};

/* ---- opening ---- */

static int open_device(struct mlx5_source *self, const struct rdma_port *port)
{
    struct watched *watched = &self->ports[self->ports_count++];
    int index = rdma_netlink_device(self->netlink, port->device);

    watched->port = *port;
    if (index < 0)
        return log_error_return(index, "%s: the kernel does not tell of it over netlink: %s", port->device,
                                strerror(-index));
    watched->index = (uint32_t)index;
    int error = mlx5_device_open(&watched->device, port->device, port->number);
    if (error == 0)
        error = mlx5_counters_open(&watched->counters, watched->device, ENDPOINTS_MAX);
    if (error != -EOPNOTSUPP || port->number == 1)
        return error;
    mlx5_device_close(&watched->device); /* another function's port that cannot be counted: the others can be */
    self->ports_count--;
    return 0;
}

static int open_parts(struct mlx5_source *self, const struct source_device_options *options)
{
    struct rdma_port ports[SOURCE_PORTS_MAX];

    self->interval_ns = options->interval_ns;
    self->endpoints = endpoint_table_create(ENDPOINTS_MAX);
    if (self->endpoints == NULL)
        return log_error_return(-ENOMEM, "no memory for %u queue pairs", ENDPOINTS_MAX);
    int count = rdma_port_list("/sys", options->devices, ports, SOURCE_PORTS_MAX);
    if (count <= 0)
        return count < 0
                   ? count
                   : log_error_return(-ENODEV, "this machine has no RDMA device (/sys/class/infiniband is empty)");
    int error = rdma_netlink_open(&self->netlink);
    for (int i = 0; i < count && error == 0; i++)
        error = open_device(self, &ports[i]);
    if (error == 0 && self->ports_count == 0)
        error = log_error_return(-EOPNOTSUPP, "mlx5: none of the ports can be counted");
    return error;
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
    made->source.operations = &operations;
    int error = open_parts(made, options);
    if (error != 0)
        close_mlx5(&made->source);
    else
        *source = &made->source;
    return error;
}
