/* SPDX-License-Identifier: BSD-2-Clause */
/* What a kind of network implements; the functions are net.h's. */
#pragma once

#include "net/net.h"

struct net_kind {
    const char *name;
    int receives;
    int (*open)(void); /* the number of devices, or -errno */
    int (*listen)(int device, struct net_listener **listener, void *handle);
    void (*listener_close)(struct net_listener *listener);
    int (*connect)(int device, const void *handle, const struct net_label *label, struct net_end **end);
    int (*accept)(struct net_listener *listener, int needs_flush, const struct net_label *label, struct net_end **end);
    int (*ready)(struct net_end *end);
    void (*join)(const struct net_end *end, const struct net_label *label); /* NULL where receives is 1 */
    int (*register_memory)(struct net_end *end, void *memory, size_t size_bytes);
    int (*send)(struct net_end *end, const struct net_piece *piece, int *request);
    int (*receive)(struct net_end *end, const struct net_piece *pieces, int count, int *request);
    int (*flush)(struct net_end *end, void *memory, int *request);
    int (*test)(struct net_end *end, int request, size_t *size_bytes);
    void (*close)(struct net_end *end);
};

extern const struct net_kind net_ib, net_socket;
