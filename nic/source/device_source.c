/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: a port's number is its place and one; an endpoint's record is handed out before its readings. */
#include "nic/source/device_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/clock.h"
#include "wire/log.h"
#include "wire/rdma/rdma_netlink.h"

#define REST_MAX_NS 10000000u

int device_source_init(struct device_source *source, unsigned endpoints_max, uint64_t interval_ns)
{
    source->interval_ns = interval_ns;
    source->endpoints = endpoint_table_create(endpoints_max);
    source->readings = calloc(endpoints_max, sizeof *source->readings);
    return source->endpoints != NULL && source->readings != NULL
               ? 0
               : log_error_return(-ENOMEM, "no memory for %u queue pairs", endpoints_max);
}

void device_source_fini(struct device_source *source)
{
    rdma_netlink_close(&source->netlink);
    endpoint_table_destroy(&source->endpoints);
    free(source->readings);
}

int device_source_open_ports(struct device_source *source, const struct option_list *devices,
                             int (*add)(struct device_source *source, const struct device_source_port *port))
{
    struct rdma_port ports[SOURCE_PORTS_MAX];
    int count = rdma_port_list("/sys", devices, ports, SOURCE_PORTS_MAX);

    if (count <= 0)
        return count < 0
                   ? count
                   : log_error_return(-ENODEV, "this machine has no RDMA device (/sys/class/infiniband is empty)");
    int error = rdma_netlink_open(&source->netlink);
    for (int i = 0; i < count && error == 0; i++) {
        int device = rdma_netlink_device(source->netlink, ports[i].device);
        if (device < 0)
            return log_error_return(device, "%s: the kernel does not tell of it over netlink: %s", ports[i].device,
                                    strerror(-device));
        error = add(source, &(struct device_source_port){.port = ports[i], .device = (uint32_t)device});
    }
    return error;
}

void device_source_end_round(struct device_source *source, uint64_t began_ns)
{
    if (source->covered_ns != 0) {
        uint64_t interval_ns = began_ns - source->covered_ns;
        source->grain_ns = source->grain_ns == 0 ? interval_ns : (7 * source->grain_ns + interval_ns) / 8;
    }
    source->covered_ns = began_ns;
}

size_t device_source_hand_out(struct device_source *source, struct source_count *counts, size_t capacity)
{
    size_t count = 0;

    while (count < capacity && endpoint_take_changed(source->endpoints, &counts[count].endpoint))
        counts[count++].kind = RECORD_ENDPOINT;
    while (count < capacity && source->readings_taken < source->readings_count) {
        counts[count].kind = RECORD_READING;
        counts[count++].reading = source->readings[source->readings_taken++];
    }
    return count;
}

size_t device_source_ports(const struct source *source, struct record_port *ports, size_t capacity)
{
    const struct device_source *self = (const struct device_source *)source;

    for (size_t i = 0; i < self->ports_count && i < capacity; i++) {
        ports[i] = (struct record_port){.port = (uint32_t)i + 1};
        rdma_port_name(&self->ports[i].port, ports[i].name, sizeof ports[i].name);
        memcpy(ports[i].address, self->ports[i].port.address, ADDRESS_BYTES);
    }
    return self->ports_count;
}

uint64_t device_source_covered_ns(const struct source *source)
{
    return ((const struct device_source *)source)->covered_ns;
}

void device_source_describe(const struct source *source, struct record_traffic_source *description)
{
    description->grain_ns = ((const struct device_source *)source)->grain_ns;
}

void device_source_repeat(struct source *source)
{
    endpoint_repeat(((struct device_source *)source)->endpoints);
}

void device_source_rest(struct source *source, size_t received)
{
    const struct device_source *self = (const struct device_source *)source;
    uint64_t now_ns = clock_now_ns();
    uint64_t rest_ns = self->due_ns > now_ns ? self->due_ns - now_ns : 0;

    (void)received;
    const struct timespec rest = {.tv_nsec = (long)(rest_ns > REST_MAX_NS ? REST_MAX_NS : rest_ns)};
    if (rest_ns != 0)
        nanosleep(&rest, NULL);
}
