/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the network as NCCL does: RDMA when a device is there and nothing forbids it, else sockets. */
#include "net/net_private.h"

#include "setting.h"

#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

static const struct net_kind *kind;
static int devices;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void kind_choose(void)
{
    const char *wanted = getenv("NCCL_NET");

    if (!setting_read("NCCL_IB_DISABLE", 0) && (!wanted || strcasecmp(wanted, net_socket.name)))
        devices = net_ib.open();
    kind = devices > 0 ? &net_ib : &net_socket;
    if (devices <= 0)
        devices = net_socket.open();
    setting_say(1, "network %s, %d devices", kind->name, devices);
}

int net_open(void)
{
    pthread_once(&once, kind_choose);
    return devices < 0 ? devices : 0;
}

int net_devices(void)
{
    return devices;
}

const char *net_name(void)
{
    return kind->name;
}

int net_listen(int device, struct net_listener **listener, void *handle)
{
    return kind->listen(device, listener, handle);
}

void net_listener_close(struct net_listener *listener)
{
    kind->listener_close(listener);
}

int net_connect(int device, const void *handle, const struct net_label *label, struct net_end **end)
{
    return kind->connect(device, handle, label, end);
}

int net_accept(struct net_listener *listener, int needs_flush, const struct net_label *label, struct net_end **end)
{
    return kind->accept(listener, needs_flush, label, end);
}

int net_ready(struct net_end *end)
{
    return kind->ready(end);
}

void net_join(const struct net_end *end, const struct net_label *label)
{
    kind->join(end, label);
}

int net_register(struct net_end *end, void *memory, size_t size_bytes)
{
    return kind->register_memory(end, memory, size_bytes);
}

int net_receives(void)
{
    return kind->receives;
}

int net_send(struct net_end *end, const struct net_piece *piece, int *request)
{
    return kind->send(end, piece, request);
}

int net_receive(struct net_end *end, const struct net_piece *pieces, int count, int *request)
{
    return kind->receive(end, pieces, count, request);
}

int net_flush(struct net_end *end, void *memory, int *request)
{
    return kind->flush(end, memory, request);
}

int net_test(struct net_end *end, int request, size_t *size_bytes)
{
    return kind->test(end, request, size_bytes);
}

void net_close(struct net_end *end)
{
    kind->close(end);
}
