/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading /sys/class/infiniband. Invariant: a port's address is one that it surely has; where several could be meant it
 * has none, since a wrong one would join a queue pair with another's flow.
 */
#include "nic/port/rdma_port.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nic/port/address.h"
#include "wire/log.h"

#define PATH_BYTES 1024
#define GIDS_MAX   256
#define HEADERS_BYTES                                                                                                  \
    96 /* what the kernel takes off an interface's MTU for RoCE: GRH, UDP, BTH, longest extensions, ICRC */
#define PORTS_A_DEVICE 16

static bool read_line(const char *path, char *line, size_t bytes)
{
    FILE *file = fopen(path, "re");
    bool is_read = file != NULL && fgets(line, (int)bytes, file) != NULL;

    if (file != NULL)
        fclose(file);
    if (is_read)
        line[strcspn(line, "\n")] = '\0';
    return is_read;
}

static bool read_port_line(const char *sysfs, const struct rdma_port *port, const char *name, char *line, size_t bytes)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/class/infiniband/%s/ports/%u/%.63s", sysfs, port->device, port->number, name);
    return read_line(path, line, bytes);
}

static bool is_link_local(const uint8_t *address)
{
    return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

static void read_address(const char *sysfs, struct rdma_port *port)
{
    static const uint8_t none[ADDRESS_BYTES];
    uint8_t found[2][ADDRESS_BYTES] = {{0}}; /* the one GID that is not link-local, the one that is */
    unsigned different[2] = {0, 0};
    char name[32], line[64];

    for (unsigned i = 0; i < GIDS_MAX; i++) {
        uint8_t gid[ADDRESS_BYTES];
        snprintf(name, sizeof name, "gids/%u", i);
        if (!read_port_line(sysfs, port, name, line, sizeof line))
            break;
        if (inet_pton(AF_INET6, line, gid) != 1 || memcmp(gid, none, sizeof gid) == 0)
            continue;
        unsigned sort = is_link_local(gid);
        if (memcmp(gid, found[sort], sizeof gid) != 0)
            different[sort]++;
        memcpy(found[sort], gid, sizeof gid);
    }
    if (different[0] == 1 || (different[0] == 0 && different[1] == 1))
        memcpy(port->address, found[different[0] == 0], ADDRESS_BYTES);
}

static void read_interface(const char *sysfs, struct rdma_port *port)
{
    char path[PATH_BYTES], line[64];

    for (unsigned i = 0; i < GIDS_MAX && port->interface[0] == '\0'; i++) {
        snprintf(path, sizeof path, "gid_attrs/ndevs/%u", i);
        if (read_port_line(sysfs, port, path, line, sizeof line))
            snprintf(port->interface, sizeof port->interface, "%.15s", line);
        else if (i > 8)
            break;
    }
    snprintf(path, sizeof path, "%s/class/net/%s/mtu", sysfs, port->interface);
    if (port->interface[0] == '\0' || !read_line(path, line, sizeof line))
        return;
    unsigned long room = strtoul(line, NULL, 10);
    for (uint32_t mtu = 4096; mtu >= 256 && port->mtu_bytes == 0; mtu /= 2)
        if (room >= mtu + HEADERS_BYTES)
            port->mtu_bytes = mtu;
}

static void read_driver(const char *sysfs, struct rdma_port *port)
{
    char path[PATH_BYTES], target[256];

    snprintf(path, sizeof path, "%s/class/infiniband/%s/device/driver", sysfs, port->device);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return;
    target[length] = '\0';
    const char *base = strrchr(target, '/');
    snprintf(port->driver, sizeof port->driver, "%.31s", base == NULL ? target : base + 1);
}

/* "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)" */
static void read_rate(const char *sysfs, struct rdma_port *port)
{
    char line[64];

    if (read_port_line(sysfs, port, "rate", line, sizeof line))
        port->bits_a_second = (uint64_t)(strtod(line, NULL) * 1e9);
}

static void describe(const char *sysfs, struct rdma_port *port, const char *device, unsigned number)
{
    *port = (struct rdma_port){.number = number};
    snprintf(port->device, sizeof port->device, "%.63s", device);
    read_address(sysfs, port);
    read_interface(sysfs, port);
    read_driver(sysfs, port);
    read_rate(sysfs, port);
}

static bool is_named(const char *wanted, const char *device, unsigned number)
{
    size_t length = strcspn(wanted, "/@");
    char *end;

    if (strlen(device) != length || strncmp(wanted, device, length) != 0)
        return false;
    if (wanted[length] != '/')
        return true;
    unsigned long asked = strtoul(wanted + length + 1, &end, 10);
    return (*end == '\0' || *end == '@') && asked == number;
}

static bool is_wanted(const struct option_list *wanted, const char *device, unsigned number,
                      bool found[OPTION_LIST_MAX])
{
    bool result = wanted == NULL || wanted->count == 0;

    for (size_t i = 0; wanted != NULL && i < wanted->count; i++) {
        if (!is_named(wanted->values[i], device, number))
            continue;
        found[i] = true;
        result = true;
    }
    return result;
}

static size_t list_device(const char *sysfs, const char *device, const struct option_list *wanted,
                          bool found[OPTION_LIST_MAX], struct rdma_port *ports, size_t capacity)
{
    char path[PATH_BYTES];
    size_t count = 0;

    for (unsigned number = 1; number <= PORTS_A_DEVICE && count < capacity; number++) {
        snprintf(path, sizeof path, "%s/class/infiniband/%s/ports/%u", sysfs, device, number);
        if (access(path, F_OK) != 0)
            break;
        if (is_wanted(wanted, device, number, found))
            describe(sysfs, &ports[count++], device, number);
    }
    return count;
}

static int missing(const struct option_list *wanted, const bool *found, struct dirent **names, int names_count)
{
    char list[256] = "";

    for (int i = 0; i < names_count; i++) {
        size_t length = strlen(list);
        if (snprintf(list + length, sizeof list - length, " %s", names[i]->d_name) >= (int)(sizeof list - length))
            break;
    }
    for (size_t i = 0; wanted != NULL && i < wanted->count; i++)
        if (!found[i])
            return log_error_return(-ENODEV, "--device %s: there is no such RDMA device or port; there are:%s",
                                    wanted->values[i], list[0] == '\0' ? " none" : list);
    return 0;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* "NAME/PORT@ADDRESS": whose queue pairs these are, where sysfs does not know, or knows several. */
static int set_addresses(const struct option_list *wanted, struct rdma_port *ports, size_t count)
{
    int error = 0;

    for (size_t i = 0; wanted != NULL && i < wanted->count && error == 0; i++) {
        const char *at = strchr(wanted->values[i], '@');
        for (size_t p = 0; at != NULL && p < count && error == 0; p++)
            if (is_named(wanted->values[i], ports[p].device, ports[p].number))
                error = address_read("device", at + 1, ports[p].address);
    }
    return error;
}

int rdma_port_list(const char *sysfs, const struct option_list *wanted, struct rdma_port *ports, size_t capacity)
{
    char path[PATH_BYTES];
    struct dirent **names = NULL;
    bool found[OPTION_LIST_MAX] = {false};
    size_t count = 0;

    snprintf(path, sizeof path, "%s/class/infiniband", sysfs);
    int names_count = scandir(path, &names, is_visible, versionsort);
    if (names_count < 0)
        names_count = 0;
    for (int i = 0; i < names_count; i++)
        count += list_device(sysfs, names[i]->d_name, wanted, found, ports + count, capacity - count);
    int error = missing(wanted, found, names, names_count);
    if (error == 0)
        error = set_addresses(wanted, ports, count);
    for (int i = 0; i < names_count; i++)
        free(names[i]);
    free(names);
    return error != 0 ? error : (int)count;
}

void rdma_port_name(const struct rdma_port *port, char *name, size_t bytes)
{
    snprintf(name, bytes, "%.20s/%u", port->device, port->number);
}
