/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By which message each socket of a service thread came to be, and so for which connection a queue pair is made: a
 * message asks for it (set-up); the receiver then listens, for this connection alone, and accepts; the sender is told
 * by another message where that is, and connects. Whatever a thread made over such a socket is this connection's.
 * Fixed room; pure logic; one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "host/tracker/proxy_request.h"
#include "wire/record.h"

struct proxy_table;

struct proxy_connection {
    struct proxy_request request;
    enum queue_pair_side side;
    uint32_t pid;      /* of the thread's process */
    uint32_t receives; /* of the thread, when it was set up */
};

/* -ENOMEM. At most so many messages, addresses and sockets together are kept. */
int proxy_table_create(struct proxy_table **table, size_t entries_max);
void proxy_table_destroy(struct proxy_table **table);

/* -ENOSPC: no room, so that this connection will not be known. -EBADMSG: a set-up that cannot be read. `split`: as
 * in proxy_request.h. */
int proxy_message(struct proxy_table *table, const struct event_proxy_message *event, bool split);
int proxy_socket(struct proxy_table *table, const struct event_proxy_socket *event);

/* The connection that the thread's socket serves; -ENOENT: none that is known. */
int proxy_find(const struct proxy_table *table, uint32_t tid, int32_t socket, struct proxy_connection *connection);

void proxy_forget_thread(struct proxy_table *table, uint32_t tid);
void proxy_forget_process(struct proxy_table *table, uint32_t pid);

/* Events were lost: a descriptor may be another socket by now, so nothing that was known counts. */
void proxy_forget(struct proxy_table *table);

size_t proxy_count(const struct proxy_table *table);
