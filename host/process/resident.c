/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices are those of /sys/class/infiniband. What the kernel calls a queue pair's pid is, up to Linux 6.1 at least,
 * the thread that made it.
 */
#include "host/process/resident.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/process/process.h"
#include "wire/log.h"
#include "wire/rdma/rdma_netlink.h"

#define DEVICES "/sys/class/infiniband"

struct reading {
    struct resident_list *list;
    const char *device;
};

static struct tracker_resident *list_add(struct resident_list *list)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 256 : 2 * list->capacity;
        struct tracker_resident *items = realloc(list->items, capacity * sizeof *items);
        if (items == NULL)
            return NULL;
        list->items = items;
        list->capacity = capacity;
    }
    struct tracker_resident *item = &list->items[list->count++];
    memset(item, 0, sizeof *item);
    return item;
}

/* The kernel's own have no pid; special ones (of the port itself) are none of a job's. */
static void take(void *context, const struct rdma_queue_pair *pair, uint64_t from_ns, uint64_t to_ns)
{
    (void)from_ns, (void)to_ns;
    const struct reading *reading = context;
    const pid_t pid = pair->pid == 0 ? 0 : process_of_thread((pid_t)pair->pid);
    struct tracker_resident *item = pid <= 0 || pair->qpn < 2 ? NULL : list_add(reading->list);
    if (item == NULL)
        return;
    item->pid = (uint32_t)pid;
    item->tid = pair->pid == (uint32_t)pid ? 0 : pair->pid;
    item->qpn = pair->qpn;
    item->remote_qpn = pair->remote_qpn;
    item->port = (uint8_t)pair->port;
    item->state = pair->state;
    item->type = pair->type;
    memcpy(item->device, reading->device, strnlen(reading->device, sizeof item->device));
}

static int read_device(struct rdma_netlink *netlink, const char *name, struct resident_list *list)
{
    struct reading reading = {list, name};
    const int index = rdma_netlink_device(netlink, name);
    return index < 0 ? index : rdma_netlink_queue_pairs(netlink, (uint32_t)index, take, &reading);
}

static void read_devices(struct rdma_netlink *netlink, DIR *directory, struct resident_list *list)
{
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        const int error = entry->d_name[0] == '.' ? 0 : read_device(netlink, entry->d_name, list);
        if (error != 0)
            log_warning("the kernel does not list the queue pairs of %s: %s; those that were there are not known",
                        entry->d_name, strerror(-error));
    }
}

int resident_read(struct resident_list *list)
{
    struct rdma_netlink *netlink;
    DIR *directory = opendir(DEVICES);
    if (directory == NULL)
        return 0;
    const int error = rdma_netlink_open(&netlink);
    if (error == 0) {
        read_devices(netlink, directory, list);
        rdma_netlink_close(&netlink);
    }
    closedir(directory);
    return error;
}

void resident_free(struct resident_list *list)
{
    free(list->items);
    memset(list, 0, sizeof *list);
}
