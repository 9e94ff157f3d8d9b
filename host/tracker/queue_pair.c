/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of queue pairs. Source: ibv_create_qp(3), ibv_modify_qp(3): which attribute counts with which bit.
 * Invariant: ready_ns is set once, at the first RTS.
 */
#include "host/tracker/queue_pair.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "host/tracker/generation.h"

/* enum ibv_qp_attr_mask */
#define MASK_STATE         0x1u
#define MASK_ACCESS        0x8u
#define MASK_PORT          0x20u
#define MASK_ADDRESS       0x80u
#define MASK_PATH_MTU      0x100u
#define MASK_TIMEOUT       0x200u
#define MASK_RETRY_COUNT   0x400u
#define MASK_RNR_RETRY     0x800u
#define MASK_MIN_RNR_TIMER 0x8000u
#define MASK_REMOTE_QPN    0x100000u

#define PATH_MTU_LARGEST 5 /* enum ibv_mtu: IBV_MTU_4096 */

#define GENERATIONS_MAX 131072

struct queue_pair_key {
    uint64_t process;
    uint64_t pointer;
};

struct queue_pair_number {
    uint32_t process;
    uint32_t qpn;
};

struct queue_pair {
    struct record_queue_pair record; /* first: a record is its queue pair */
    struct queue_pair_key key;
    struct queue_pair_number number;
    bool has_twin; /* another device of the process has, or had, the same QPN */
    UT_hash_handle hh;
    UT_hash_handle by_number;
};

struct queue_pair_table {
    struct queue_pair *queue_pairs;
    struct queue_pair *numbers;
    size_t queue_pairs_max;
    uint32_t last_number;
    struct generation_table *generations;
};

int queue_pair_table_create(struct queue_pair_table **table, size_t queue_pairs_max)
{
    struct queue_pair_table *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return -ENOMEM;
    fresh->queue_pairs_max = queue_pairs_max;
    if (generation_table_create(&fresh->generations, GENERATIONS_MAX) != 0) {
        free(fresh);
        return -ENOMEM;
    }
    *table = fresh;
    return 0;
}

static void remove_visited(void *context, struct record_queue_pair *queue_pair)
{
    queue_pair_remove(context, queue_pair);
}

void queue_pair_table_destroy(struct queue_pair_table **table)
{
    if (*table == NULL)
        return;
    queue_pair_each(*table, remove_visited, *table);
    generation_table_destroy(&(*table)->generations);
    free(*table);
    *table = NULL;
}

uint32_t queue_pair_number(struct queue_pair_table *table)
{
    return ++table->last_number;
}

static void describe(struct queue_pair_table *table, struct record_queue_pair *record,
                     const struct event_queue_pair_create *event)
{
    record->queue_pair = queue_pair_number(table);
    record->qpn = event->qpn;
    record->type = (uint8_t)event->type;
    record->creator_tid = event->header.tid;
    record->connection = event->send_queue;
    record->context = event->context;
    record->max_send_requests = event->max_send;
    record->max_receive_requests = event->max_receive;
    record->created_ns = event->header.at_ns;
    record->origin_rank = -1;
    record->far_rank = -1;
    record->channel = -1;
    _Static_assert(sizeof record->device == sizeof event->device, "device names");
    memcpy(record->device, event->device, sizeof event->device);
    record->generation = generation_next(table->generations, record->device, sizeof record->device, record->qpn);
}

static struct queue_pair *find_number(const struct queue_pair_table *table, uint32_t process, uint32_t qpn)
{
    const struct queue_pair_number number = {process, qpn};
    struct queue_pair *queue_pair;
    HASH_FIND(by_number, table->numbers, &number, sizeof number, queue_pair);
    return queue_pair;
}

static void add_number(struct queue_pair_table *table, struct queue_pair *fresh)
{
    struct queue_pair *twin = find_number(table, fresh->record.process, fresh->record.qpn);
    fresh->number = (struct queue_pair_number){fresh->record.process, fresh->record.qpn};
    fresh->has_twin = twin != NULL;
    if (twin != NULL)
        twin->has_twin = true;
    HASH_ADD(by_number, table->numbers, number, sizeof fresh->number, fresh);
}

int queue_pair_add(struct queue_pair_table *table, uint32_t process, const struct event_queue_pair_create *event,
                   struct record_queue_pair **queue_pair, struct record_queue_pair *older)
{
    struct record_queue_pair *present = queue_pair_find(table, process, event->pointer);
    older->queue_pair = 0;
    if (present != NULL) {
        *older = *present;
        queue_pair_remove(table, present);
    }
    if (queue_pair_count(table) >= table->queue_pairs_max)
        return -ENOSPC;
    struct queue_pair *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return -ENOSPC;
    fresh->key = (struct queue_pair_key){process, event->pointer};
    fresh->record.process = process;
    describe(table, &fresh->record, event);
    HASH_ADD(hh, table->queue_pairs, key, sizeof fresh->key, fresh);
    add_number(table, fresh);
    *queue_pair = &fresh->record;
    return 0;
}

struct record_queue_pair *queue_pair_find(const struct queue_pair_table *table, uint32_t process, uint64_t pointer)
{
    const struct queue_pair_key key = {process, pointer};
    struct queue_pair *queue_pair;
    HASH_FIND(hh, table->queue_pairs, &key, sizeof key, queue_pair);
    return queue_pair == NULL ? NULL : &queue_pair->record;
}

struct record_queue_pair *queue_pair_find_number(const struct queue_pair_table *table, uint32_t process, uint32_t qpn)
{
    struct queue_pair *queue_pair = find_number(table, process, qpn);
    return queue_pair == NULL || queue_pair->has_twin ? NULL : &queue_pair->record;
}

uint64_t queue_pair_pointer(const struct record_queue_pair *queue_pair)
{
    return ((const struct queue_pair *)queue_pair)->key.pointer;
}

void queue_pair_remove(struct queue_pair_table *table, struct record_queue_pair *queue_pair)
{
    struct queue_pair *entry = (struct queue_pair *)queue_pair;
    HASH_DELETE(hh, table->queue_pairs, entry);
    HASH_DELETE(by_number, table->numbers, entry);
    free(entry);
}

void queue_pair_each(struct queue_pair_table *table, queue_pair_visit *visit, void *context)
{
    struct queue_pair *queue_pair;
    struct queue_pair *next;
    HASH_ITER(hh, table->queue_pairs, queue_pair, next)
    {
        visit(context, &queue_pair->record);
    }
}

size_t queue_pair_count(const struct queue_pair_table *table)
{
    return HASH_COUNT(table->queue_pairs);
}

static int set_address(struct record_queue_pair *queue_pair, const struct event_queue_pair_modify *event,
                       queue_pair_gid *read_gid, void *context)
{
    char device[DEVICE_NAME_BYTES + 1] = {0};
    memcpy(device, queue_pair->device, DEVICE_NAME_BYTES);
    queue_pair->port = event->address_port;
    queue_pair->service_level = event->service_level;
    if (!event->global)
        return 0;
    queue_pair->traffic_class = event->traffic_class;
    memcpy(queue_pair->remote_address, event->remote_address, ADDRESS_BYTES);
    return read_gid(context, device, event->address_port, event->address_index, queue_pair->address);
}

static bool is_set(const uint8_t address[ADDRESS_BYTES])
{
    static const uint8_t zeros[ADDRESS_BYTES];
    return memcmp(address, zeros, ADDRESS_BYTES) != 0;
}

static bool is_connected_to_itself(const struct record_queue_pair *queue_pair)
{
    return queue_pair->remote_qpn == queue_pair->qpn && is_set(queue_pair->address) &&
           memcmp(queue_pair->address, queue_pair->remote_address, ADDRESS_BYTES) == 0;
}

static void set_path(struct record_queue_pair *queue_pair, const struct event_queue_pair_modify *event)
{
    if ((event->mask & MASK_ACCESS) != 0)
        queue_pair->access_flags = event->access_flags;
    if ((event->mask & MASK_PATH_MTU) != 0 && event->path_mtu != 0 && event->path_mtu <= PATH_MTU_LARGEST)
        queue_pair->path_mtu_bytes = (uint16_t)(128u << event->path_mtu);
    if ((event->mask & MASK_TIMEOUT) != 0)
        queue_pair->timeout = event->timeout;
    if ((event->mask & MASK_RETRY_COUNT) != 0)
        queue_pair->retry_count = event->retry_count;
    if ((event->mask & MASK_RNR_RETRY) != 0)
        queue_pair->rnr_retry = event->rnr_retry;
    if ((event->mask & MASK_MIN_RNR_TIMER) != 0)
        queue_pair->min_rnr_timer = event->min_rnr_timer;
}

static void set_state(struct record_queue_pair *queue_pair, const struct event_queue_pair_modify *event)
{
    if ((event->mask & MASK_STATE) == 0)
        return;
    queue_pair->state = event->state;
    if (event->state == QUEUE_PAIR_RTS && queue_pair->ready_ns == 0)
        queue_pair->ready_ns = event->header.at_ns;
    if (event->state == QUEUE_PAIR_ERR && queue_pair->error_ns == 0)
        queue_pair->error_ns = event->header.at_ns;
}

int queue_pair_modify(struct record_queue_pair *queue_pair, const struct event_queue_pair_modify *event,
                      queue_pair_gid *read_gid, void *context)
{
    int error = 0;
    queue_pair->attributes |= event->mask;
    if ((event->mask & MASK_PORT) != 0)
        queue_pair->port = event->port;
    if ((event->mask & MASK_REMOTE_QPN) != 0)
        queue_pair->remote_qpn = event->remote_qpn;
    if ((event->mask & MASK_ADDRESS) != 0)
        error = set_address(queue_pair, event, read_gid, context);
    set_path(queue_pair, event);
    set_state(queue_pair, event);
    if ((event->mask & MASK_REMOTE_QPN) != 0 && is_connected_to_itself(queue_pair))
        queue_pair->flags |= QUEUE_PAIR_FLUSH;
    return error;
}
