/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: a counter's port number is one that the worker's stream has introduced. */
#include "nic/port/port_watch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nic/port/port_counter.h"
#include "nic/port/rdma_port.h"

#define TARGETS_MAX (2 * SOURCE_PORTS_MAX)

/* A port that bears the name of an interface of the kernel's is that interface. */
static void name_interface(struct port_counter_target *target, const struct record_port *port)
{
    char path[64];
    int length = (int)strnlen(port->name, sizeof target->interface - 1);

    snprintf(path, sizeof path, "/sys/class/net/%.*s", length, port->name);
    if (length > 0 && strchr(path + sizeof "/sys/class/net", '/') == NULL && access(path, F_OK) == 0)
        memcpy(target->interface, port->name, (size_t)length);
}

static size_t add_own(const struct worker *worker, struct port_counter_target *targets)
{
    for (size_t i = 0; i < worker->meter.ports_count; i++) {
        targets[i] = (struct port_counter_target){.port = worker->meter.ports[i].port, .source = worker->source};
        name_interface(&targets[i], &worker->meter.ports[i]);
    }
    return worker->meter.ports_count;
}

static void name_target(struct port_counter_target *target, uint32_t number, const struct rdma_port *port)
{
    *target = (struct port_counter_target){.port = number, .device_port = port->number};
    memcpy(target->device, port->device, sizeof target->device);
    memcpy(target->interface, port->interface, sizeof target->interface);
}

int port_watch_start(struct worker *worker, const struct port_watch_options *options, bool is_counting)
{
    struct port_counter_target targets[TARGETS_MAX];
    struct rdma_port ports[SOURCE_PORTS_MAX];
    size_t count = is_counting ? 0 : add_own(worker, targets);
    int found = 0;

    if (options->interval_ns == 0)
        return 0;
    if (is_counting || options->devices->count != 0)
        found = rdma_port_list("/sys", options->devices, ports, SOURCE_PORTS_MAX);
    if (found < 0)
        return found;
    for (int i = 0; i < found; i++) {
        uint32_t number = is_counting ? (uint32_t)i + 1 : meter_add_port(&worker->meter, &ports[i]);
        if (number != 0)
            name_target(&targets[count++], number, &ports[i]);
    }
    const struct port_counter_options counters = {
        .targets = targets, .targets_count = count, .interval_ns = options->interval_ns, .sysfs = "/sys"};
    int error = port_counters_open(&worker->counting.port_counters, &counters);
    return error != 0 ? error : port_counters_start(worker->counting.port_counters);
}
