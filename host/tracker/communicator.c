/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of communicators. Invariant: at most one communicator holds an (process, ncclComm_t) pair, and one leaves
 * the by-call index as soon as it is bound.
 */
#include "host/tracker/communicator.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "wire/seal.h"

#define PEERS_MAX      (1 << 20)
#define PART_BYTES_MAX 160

struct pointer_key {
    uint64_t process;
    uint64_t pointer;
};

struct communicator_index {
    struct communicator communicator;
    uint32_t number;
    struct communicator_call call;
    struct pointer_key pointer;
    bool has_call;
    bool has_pointer;
    UT_hash_handle by_number;
    UT_hash_handle by_call;
    UT_hash_handle by_pointer;
};

struct communicator_table {
    struct communicator_index *numbers;
    struct communicator_index *calls;
    struct communicator_index *pointers;
    size_t communicators_max;
    uint32_t last_number;
};

int communicator_table_create(struct communicator_table **table, size_t communicators_max)
{
    struct communicator_table *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return -ENOMEM;
    fresh->communicators_max = communicators_max;
    *table = fresh;
    return 0;
}

static void remove_visited(void *context, struct communicator *communicator)
{
    communicator_remove(context, communicator);
}

void communicator_table_destroy(struct communicator_table **table)
{
    if (*table == NULL)
        return;
    communicator_each(*table, remove_visited, *table);
    free(*table);
    *table = NULL;
}

int communicator_add(struct communicator_table *table, uint32_t process, const struct communicator_call *call,
                     struct communicator **communicator)
{
    if (communicator_count(table) >= table->communicators_max)
        return -ENOSPC;
    struct communicator_index *index = calloc(1, sizeof *index);
    if (index == NULL)
        return -ENOSPC;
    index->number = ++table->last_number;
    index->communicator.index = index;
    index->communicator.record.communicator = index->number;
    index->communicator.record.process = process;
    index->communicator.record.rank = -1;
    index->communicator.record.cuda_device = -1;
    HASH_ADD(by_number, table->numbers, number, sizeof index->number, index);
    if (call != NULL) {
        index->call = *call;
        index->has_call = true;
        HASH_ADD(by_call, table->calls, call, sizeof index->call, index);
    }
    *communicator = &index->communicator;
    return 0;
}

static void unbind(struct communicator_table *table, struct communicator_index *index)
{
    if (index->has_pointer)
        HASH_DELETE(by_pointer, table->pointers, index);
    index->has_pointer = false;
}

static void forget_call(struct communicator_table *table, struct communicator_index *index)
{
    if (index->has_call)
        HASH_DELETE(by_call, table->calls, index);
    index->has_call = false;
}

struct communicator *communicator_bind(struct communicator_table *table, struct communicator *communicator,
                                       uint64_t pointer)
{
    struct communicator_index *index = communicator->index;
    struct communicator *older = communicator_by_pointer(table, communicator->record.process, pointer);
    if (older != NULL)
        unbind(table, older->index);
    forget_call(table, index);
    unbind(table, index);
    index->pointer = (struct pointer_key){communicator->record.process, pointer};
    index->has_pointer = true;
    HASH_ADD(by_pointer, table->pointers, pointer, sizeof index->pointer, index);
    communicator->record.pointer = pointer;
    return older == communicator ? NULL : older;
}

static struct communicator *found(struct communicator_index *index)
{
    return index == NULL ? NULL : &index->communicator;
}

struct communicator *communicator_by_number(const struct communicator_table *table, uint32_t number)
{
    struct communicator_index *index;
    HASH_FIND(by_number, table->numbers, &number, sizeof number, index);
    return found(index);
}

struct communicator *communicator_by_call(const struct communicator_table *table, const struct communicator_call *call)
{
    struct communicator_index *index;
    HASH_FIND(by_call, table->calls, call, sizeof *call, index);
    return found(index);
}

struct communicator *communicator_by_pointer(const struct communicator_table *table, uint32_t process, uint64_t pointer)
{
    const struct pointer_key key = {process, pointer};
    struct communicator_index *index;
    HASH_FIND(by_pointer, table->pointers, &key, sizeof key, index);
    return found(index);
}

void communicator_remove(struct communicator_table *table, struct communicator *communicator)
{
    struct communicator_index *index = communicator->index;
    unbind(table, index);
    forget_call(table, index);
    HASH_DELETE(by_number, table->numbers, index);
    free(communicator->pairs);
    free(index);
}

void communicator_each(struct communicator_table *table, communicator_visit *visit, void *context)
{
    struct communicator_index *index;
    struct communicator_index *next;
    HASH_ITER(by_number, table->numbers, index, next)
    {
        visit(context, &index->communicator);
    }
}

size_t communicator_count(const struct communicator_table *table)
{
    return HASH_CNT(by_number, table->numbers);
}

void communicator_identify(struct communicator *communicator, enum identity_kind kind, const void *id, size_t id_bytes)
{
    communicator->record.identity_kind = (uint8_t)kind;
    seal_digest(id, id_bytes, communicator->record.identity);
}

void communicator_identify_child(struct communicator *communicator, const struct communicator *parent, const void *part,
                                 size_t part_bytes)
{
    uint8_t text[IDENTITY_BYTES + 4 + PART_BYTES_MAX];
    const uint8_t kind = parent->record.identity_kind;
    if (parent->calls_missed || kind == IDENTITY_UNKNOWN || kind == IDENTITY_OF_HASH || part_bytes > PART_BYTES_MAX)
        return;
    memcpy(text, parent->record.identity, IDENTITY_BYTES);
    memcpy(text + IDENTITY_BYTES, &communicator->record.child, 4);
    memcpy(text + IDENTITY_BYTES + 4, part, part_bytes);
    communicator_identify(communicator, IDENTITY_OF_PARENT, text, IDENTITY_BYTES + 4 + part_bytes);
}

void communicator_identify_by_hash(struct communicator *communicator)
{
    const struct {
        char what[8];
        uint64_t hash;
        uint64_t ranks_count;
    } name = {"commHash", communicator->record.hash, (uint64_t)communicator->record.ranks_count};
    communicator_identify(communicator, IDENTITY_OF_HASH, &name, sizeof name);
}

static int reserve_peer(struct communicator *communicator, int32_t peer)
{
    if (peer < 0 || peer >= PEERS_MAX)
        return -ERANGE;
    const size_t needed = (size_t)peer + 1;
    if (needed <= communicator->pairs_count)
        return 0;
    struct communicator_pair *pairs = realloc(communicator->pairs, needed * sizeof *pairs);
    if (pairs == NULL)
        return -ENOMEM;
    memset(pairs + communicator->pairs_count, 0, (needed - communicator->pairs_count) * sizeof *pairs);
    communicator->pairs = pairs;
    communicator->pairs_count = needed;
    return 0;
}

static uint64_t take_numbers(uint64_t *next, uint64_t count)
{
    const uint64_t first = *next;
    *next += count;
    return first;
}

static uint64_t number_of_pair(struct communicator_pair *pair, const struct record_call *call)
{
    switch (call->operation) {
    case OPERATION_SEND:
        return take_numbers(&pair->sends, 1);
    case OPERATION_RECV:
        return take_numbers(&pair->receives, 1);
    case OPERATION_WAIT_SIGNAL:
        return take_numbers(&pair->signals_awaited, call->count);
    default:
        return take_numbers(&pair->signals_sent, 1);
    }
}

static bool is_point_to_point(uint8_t operation)
{
    switch (operation) {
#define OPERATION(name, number, text, point_to_point)                                                                  \
    case OPERATION_##name:                                                                                             \
        return point_to_point;
#include "wire/operation.def"
#undef OPERATION
    default:
        return false;
    }
}

int communicator_number_call(struct communicator *communicator, struct record_call *call, uint8_t flags)
{
    const bool captured = (flags & CALL_CAPTURED) != 0;
    const bool of_pair = is_point_to_point(call->operation);
    const int error = of_pair ? reserve_peer(communicator, call->peer) : 0;
    if (error != 0)
        return error;
    if (captured)
        call->sequence = (uint32_t)take_numbers(&communicator->captured, 1);
    else if (of_pair)
        call->sequence = (uint32_t)number_of_pair(&communicator->pairs[call->peer], call);
    else
        call->sequence = (uint32_t)take_numbers(&communicator->collectives, 1);
    call->header.source = communicator->record.communicator;
    call->flags = flags;
    return 0;
}
