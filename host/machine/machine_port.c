/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: Documentation/ABI/stable/sysfs-class-infiniband. Invariant: `known` holds each (device, port) once, in the
 * order in which it was first seen; a number is never given to another one. At each look only states are read: the rest
 * with a new one.
 */
#include "host/machine/machine_port.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORTS_A_DEVICE 16
#define INFINIBAND     "sys/class/infiniband"

static bool read_line(char *line, size_t bytes, const char *root, const char *folder, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/" INFINIBAND "/%s/%s", root, folder, name);
    FILE *file = fopen(path, "re");
    bool is_read = file != NULL && fgets(line, (int)bytes, file) != NULL;
    if (file != NULL)
        fclose(file);
    if (is_read)
        line[strcspn(line, "\n")] = '\0';
    return is_read;
}

static void copy(char *into, size_t bytes, const char *text)
{
    memset(into, 0, bytes);
    memcpy(into, text, strnlen(text, bytes));
}

/* "0000:3b:00.0": of a path's parts the first and the last one that are PCI addresses. */
static bool is_pci_address(const char *part)
{
    unsigned domain, bus, slot, function;
    int length = 0;

    return sscanf(part, "%4x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &length) == 4 && part[length] == '\0';
}

static void read_bus(const char *root, const char *device, struct record_rdma_port *port)
{
    char path[PATH_MAX], target[PATH_MAX], *rest = NULL;

    snprintf(path, sizeof path, "%s/" INFINIBAND "/%s/device", root, device);
    if (realpath(path, target) == NULL)
        return;
    for (char *part = strtok_r(target, "/", &rest); part != NULL; part = strtok_r(NULL, "/", &rest)) {
        if (!is_pci_address(part))
            continue;
        if (port->root_port[0] == '\0')
            copy(port->root_port, sizeof port->root_port, part);
        copy(port->bus, sizeof port->bus, part);
    }
}

/* "Ethernet", "InfiniBand" */
static uint8_t link_layer_of(const char *line)
{
    return strcmp(line, "Ethernet") == 0     ? RDMA_LINK_ETHERNET
           : strcmp(line, "InfiniBand") == 0 ? RDMA_LINK_INFINIBAND
                                             : RDMA_LINK_UNKNOWN;
}

static void describe(const char *root, const char *folder, const char *device, struct record_rdma_port *port)
{
    char line[64];

    memset(port->bus, 0, sizeof port->bus);
    memset(port->root_port, 0, sizeof port->root_port);
    read_bus(root, device, port);
    port->numa_node = read_line(line, sizeof line, root, device, "device/numa_node") ? atoi(line) : -1;
    /* "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)" */
    port->bits_a_second = read_line(line, sizeof line, root, folder, "rate") ? (uint64_t)(strtod(line, NULL) * 1e9) : 0;
    port->link_layer = read_line(line, sizeof line, root, folder, "link_layer") ? link_layer_of(line) : 0;
    copy(port->interface, sizeof port->interface,
         read_line(line, sizeof line, root, folder, "gid_attrs/ndevs/0") ? line : "");
}

static struct record_rdma_port *find(struct machine_ports *ports, const char *device, unsigned number)
{
    char name[DEVICE_NAME_BYTES];

    copy(name, sizeof name, device);
    for (size_t i = 0; i < ports->count; i++)
        if (memcmp(ports->known[i].device, name, sizeof name) == 0 && ports->known[i].number == number)
            return &ports->known[i];
    if (ports->count == MACHINE_PORTS_MAX)
        return NULL;
    struct record_rdma_port *port = &ports->known[ports->count++];
    *port = (struct record_rdma_port){.number = (uint8_t)number};
    port->header.source = (uint32_t)ports->count;
    memcpy(port->device, name, sizeof name);
    return port;
}

struct look {
    struct machine_ports *ports;
    uint64_t now_ns;
    uint32_t count;
    bool is_there[MACHINE_PORTS_MAX];
    bool is_new[MACHINE_PORTS_MAX];
};

static void set_state(struct look *look, struct record_rdma_port *port, uint8_t state)
{
    size_t index = (size_t)(port - look->ports->known);

    if (port->at_ns != 0 && port->state == state)
        return;
    port->before_ns = port->at_ns == 0 ? 0 : look->ports->looked_ns;
    port->at_ns = look->now_ns;
    port->state = state;
    look->is_new[index] = true;
}

static bool look_at_port(struct look *look, const char *device, unsigned number)
{
    char folder[NAME_MAX + 32], line[64];

    snprintf(folder, sizeof folder, "%.255s/ports/%u", device, number);
    if (!read_line(line, sizeof line, look->ports->root, folder, "state")) /* "4: ACTIVE" */
        return false;
    struct record_rdma_port *port = find(look->ports, device, number);
    look->count++;
    if (port == NULL)
        return true;
    size_t index = (size_t)(port - look->ports->known);
    look->is_there[index] = true;
    set_state(look, port, (uint8_t)strtoul(line, NULL, 10));
    if (look->is_new[index])
        describe(look->ports->root, folder, device, port);
    return true;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void look_at_devices(struct look *look)
{
    char path[PATH_MAX];
    struct dirent **names = NULL;

    snprintf(path, sizeof path, "%s/" INFINIBAND, look->ports->root);
    int count = scandir(path, &names, is_visible, versionsort);
    for (int i = 0; i < count; i++) {
        for (unsigned number = 1; number <= PORTS_A_DEVICE; number++)
            if (!look_at_port(look, names[i]->d_name, number))
                break;
        free(names[i]);
    }
    free(names);
}

void machine_ports_look(struct machine_ports *ports, uint64_t now_ns, bool all, machine_port_tell *tell, void *context)
{
    struct look look = {.ports = ports, .now_ns = now_ns};

    look_at_devices(&look);
    for (size_t i = 0; i < ports->count; i++)
        if (!look.is_there[i])
            set_state(&look, &ports->known[i], RDMA_PORT_GONE);
    for (size_t i = 0; i < ports->count; i++) {
        bool is_another_count = ports->known[i].ports_count != look.count;
        ports->known[i].ports_count = look.count;
        if (all || look.is_new[i] || is_another_count)
            tell(context, &ports->known[i]);
    }
    ports->looked_ns = now_ns;
}
