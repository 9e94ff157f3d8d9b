/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three tables, each by thread: connections by the proxy's pointer, and what is known of addresses and of sockets.
 * Source: NCCL 2.13 to 2.30, proxy.cc, transport/net.cc, net_ib.cc. Invariant: an entry holds what the latest message
 * or socket call said; a descriptor that was given away again, unseen, cannot stand in the table, since the service
 * thread opens all its sockets itself.
 */
#include "host/tracker/proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum key_kind {
    KEY_CONNECTION,
    KEY_ADDRESS,
    KEY_LISTENER,
    KEY_SOCKET,
    KEY_LATEST, /* the set-up that the thread works on: what it listens on next is for it */
};

struct proxy_key {
    uint32_t tid;
    uint32_t kind;
    uint64_t value; /* the connection's pointer, or the socket */
    struct proxy_address address;
};

struct proxy_entry {
    struct proxy_key key;
    struct proxy_connection connection;
    UT_hash_handle hh;
};

struct proxy_table {
    struct proxy_entry *entries;
    size_t entries_max;
};

int proxy_table_create(struct proxy_table **table, size_t entries_max)
{
    struct proxy_table *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return -ENOMEM;
    fresh->entries_max = entries_max;
    *table = fresh;
    return 0;
}

static void entry_remove(struct proxy_table *table, struct proxy_entry *entry)
{
    HASH_DEL(table->entries, entry);
    free(entry);
}

static struct proxy_key key_of(uint32_t tid, enum key_kind kind, uint64_t value)
{
    struct proxy_key key;
    memset(&key, 0, sizeof key);
    key.tid = tid;
    key.kind = kind;
    key.value = value;
    return key;
}

static struct proxy_key key_of_address(uint32_t tid, const struct proxy_address *address)
{
    struct proxy_key key = key_of(tid, KEY_ADDRESS, 0);
    key.address = *address;
    return key;
}

static struct proxy_entry *entry_find(const struct proxy_table *table, const struct proxy_key *key)
{
    struct proxy_entry *entry;
    HASH_FIND(hh, table->entries, key, sizeof *key, entry);
    return entry;
}

static int entry_set(struct proxy_table *table, const struct proxy_key *key, const struct proxy_connection *connection)
{
    struct proxy_entry *entry = entry_find(table, key);
    if (entry == NULL) {
        entry = proxy_count(table) < table->entries_max ? calloc(1, sizeof *entry) : NULL;
        if (entry == NULL)
            return -ENOSPC;
        entry->key = *key;
        HASH_ADD(hh, table->entries, key, sizeof entry->key, entry);
    }
    entry->connection = *connection;
    return 0;
}

static void entry_forget(struct proxy_table *table, const struct proxy_key *key)
{
    struct proxy_entry *entry = entry_find(table, key);
    if (entry != NULL)
        entry_remove(table, entry);
}

/* What stands under one key is from now on known under another one too, on this side; or nothing is. */
static int entry_follow(struct proxy_table *table, const struct proxy_key *from, const struct proxy_key *to,
                        enum queue_pair_side side)
{
    const struct proxy_entry *entry = entry_find(table, from);
    if (entry == NULL) {
        entry_forget(table, to);
        return 0;
    }
    struct proxy_connection connection = entry->connection;
    connection.side = side;
    return entry_set(table, to, &connection);
}

static int take_set_up(struct proxy_table *table, const struct event_proxy_message *event, bool split)
{
    const struct proxy_key key = key_of(event->header.tid, KEY_CONNECTION, event->connection);
    const struct proxy_key latest = key_of(event->header.tid, KEY_LATEST, 0);
    struct proxy_connection connection = {
        .side = QUEUE_PAIR_SIDE_UNKNOWN, .pid = event->header.tgid, .receives = event->receives};
    const int error =
        proxy_request_decode(event->request, sizeof event->request, event->request_bytes, split, &connection.request);
    if (error != 0) {
        entry_forget(table, &key);
        entry_forget(table, &latest);
        return error == -EPROTONOSUPPORT ? 0 : error;
    }
    const int kept = entry_set(table, &key, &connection);
    return kept != 0 ? kept : entry_set(table, &latest, &connection);
}

static int take_connect(struct proxy_table *table, const struct event_proxy_message *event)
{
    const struct proxy_key latest = key_of(event->header.tid, KEY_LATEST, 0);
    const struct proxy_key connection = key_of(event->header.tid, KEY_CONNECTION, event->connection);
    struct proxy_address address;
    entry_forget(table, &latest);
    if (event->request_bytes < sizeof event->request ||
        proxy_address_decode(event->request, sizeof event->request, &address) != 0)
        return 0;
    const struct proxy_key key = key_of_address(event->header.tid, &address);
    return entry_follow(table, &connection, &key, QUEUE_PAIR_SIDE_SENDER);
}

int proxy_message(struct proxy_table *table, const struct event_proxy_message *event, bool split)
{
    return event->type == PROXY_SETUP     ? take_set_up(table, event, split)
           : event->type == PROXY_CONNECT ? take_connect(table, event)
                                          : 0;
}

/*
 * Each message is for one socket, and each listener for one connection: what was used once is used up, so that a
 * message or a socket that was missed leaves the next one without a connection, and not with another's. A listener is
 * its set-up's only when the thread has received nothing since but, from NCCL 2.17 on, the operation's number.
 */
static int take_listener(struct proxy_table *table, const struct event_proxy_socket *event)
{
    const struct proxy_key latest = key_of(event->header.tid, KEY_LATEST, 0);
    const struct proxy_key listener = key_of(event->header.tid, KEY_LISTENER, (uint32_t)event->socket);
    const struct proxy_entry *entry = entry_find(table, &latest);
    if (entry != NULL && event->receives - entry->connection.receives > 1)
        entry_forget(table, &latest);
    const int error = entry_follow(table, &latest, &listener, QUEUE_PAIR_SIDE_RECEIVER);
    entry_forget(table, &latest);
    return error;
}

int proxy_socket(struct proxy_table *table, const struct event_proxy_socket *event)
{
    const uint32_t tid = event->header.tid;
    const struct proxy_key socket = key_of(tid, KEY_SOCKET, (uint32_t)event->socket);
    const struct proxy_key same = key_of(tid, KEY_LISTENER, (uint32_t)event->socket);
    const bool accepted = event->what == PROXY_SOCKET_ACCEPT;
    struct proxy_address address = {0};
    entry_forget(table, &socket);
    entry_forget(table, &same);
    if (event->what == PROXY_SOCKET_LISTEN)
        return take_listener(table, event);
    if (!accepted && proxy_address_decode(event->address, sizeof event->address, &address) != 0)
        return 0;
    const struct proxy_key from =
        accepted ? key_of(tid, KEY_LISTENER, (uint32_t)event->listener) : key_of_address(tid, &address);
    const int error = entry_follow(table, &from, &socket, accepted ? QUEUE_PAIR_SIDE_RECEIVER : QUEUE_PAIR_SIDE_SENDER);
    entry_forget(table, &from);
    return error;
}

int proxy_find(const struct proxy_table *table, uint32_t tid, int32_t socket, struct proxy_connection *connection)
{
    const struct proxy_key key = key_of(tid, KEY_SOCKET, (uint32_t)socket);
    const struct proxy_entry *entry = entry_find(table, &key);
    if (entry == NULL)
        return -ENOENT;
    *connection = entry->connection;
    return 0;
}

void proxy_forget_thread(struct proxy_table *table, uint32_t tid)
{
    struct proxy_entry *entry;
    struct proxy_entry *next;
    HASH_ITER(hh, table->entries, entry, next)
    {
        if (entry->key.tid == tid)
            entry_remove(table, entry);
    }
}

void proxy_forget_process(struct proxy_table *table, uint32_t pid)
{
    struct proxy_entry *entry;
    struct proxy_entry *next;
    HASH_ITER(hh, table->entries, entry, next)
    {
        if (entry->connection.pid == pid)
            entry_remove(table, entry);
    }
}

void proxy_forget(struct proxy_table *table)
{
    struct proxy_entry *entry;
    struct proxy_entry *next;
    HASH_ITER(hh, table->entries, entry, next)
    {
        entry_remove(table, entry);
    }
}

void proxy_table_destroy(struct proxy_table **table)
{
    if (*table == NULL)
        return;
    proxy_forget(*table);
    free(*table);
    *table = NULL;
}

size_t proxy_count(const struct proxy_table *table)
{
    return HASH_COUNT(table->entries);
}
