/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: <infiniband/verbs.h> of rdma-core 44 to 64: ibv_post_send is qp->context->ops.post_send(...), inline, and
 * ibv_poll_cq alike; bpf/layout.def has the offsets. Invariant: a place is an address that a queue pair named and that
 * lay in a file mapped to be executed.
 */
#include "host/follow/provider.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "bpf/layout.h"

static const uint64_t call_offsets[PROVIDER_CALLS] = {
    [PROVIDER_POST_SEND] = OFFSET_ibv_context_ops + OFFSET_ibv_context_ops_post_send,
    [PROVIDER_POLL_CQ] = OFFSET_ibv_context_ops + OFFSET_ibv_context_ops_poll_cq,
};

static int read_calls(pid_t pid, uint64_t queue_pair, uint64_t calls[PROVIDER_CALLS])
{
    uint64_t device_context;
    int error = process_read_memory(pid, queue_pair + OFFSET_ibv_qp_context, &device_context, sizeof device_context);
    for (size_t i = 0; i < PROVIDER_CALLS && error == 0; i++)
        error = process_read_memory(pid, device_context + call_offsets[i], &calls[i], sizeof calls[i]);
    return error;
}

static bool is_known(const struct provider_table *table, const struct provider_place *place)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct provider_place *known = &table->places[i];
        if (known->call == place->call && known->file_offset == place->file_offset &&
            memcmp(&known->file, &place->file, sizeof place->file) == 0)
            return true;
    }
    return false;
}

static int add(struct provider_table *table, const struct provider_place *place)
{
    if (is_known(table, place))
        return 0;
    if (table->count == PROVIDER_PLACES_MAX)
        return -ENOSPC;
    table->places[table->count++] = *place;
    return 0;
}

struct search {
    uint64_t address;
    struct provider_place *place;
};

static int find_address(void *context, pid_t pid, const struct mapping *mapping)
{
    const struct search *search = context;
    (void)pid;
    if (search->address < mapping->start || search->address >= mapping->end)
        return 0;
    search->place->file = mapping->file;
    search->place->file_offset = search->address - mapping->start + mapping->file_offset;
    return 1;
}

static int learn_call(struct provider_table *table, pid_t pid, enum provider_call call, uint64_t address)
{
    struct provider_place place = {.call = call};
    struct search search = {address, &place};
    const int found = process_each_mapping(pid, find_address, &search);
    if (found != 1)
        return found < 0 ? found : -ENOENT;
    return add(table, &place);
}

int provider_learn(struct provider_table *table, pid_t pid, uint64_t queue_pair)
{
    uint64_t calls[PROVIDER_CALLS];
    int error = read_calls(pid, queue_pair, calls);
    if (error == 0 && pid == table->last_pid && memcmp(calls, table->last_calls, sizeof calls) == 0)
        return 0;
    for (size_t i = 0; i < PROVIDER_CALLS && error == 0; i++)
        error = learn_call(table, pid, (enum provider_call)i, calls[i]);
    if (error != 0)
        return error;
    table->last_pid = pid;
    memcpy(table->last_calls, calls, sizeof calls);
    return 0;
}

struct tour {
    const struct provider_table *table;
    provider_visit *visit;
    void *context;
};

/* A file's code may lie in several mappings: a place belongs to the one that holds it. */
static bool holds(const struct mapping *mapping, const struct provider_place *place)
{
    return memcmp(&mapping->file, &place->file, sizeof place->file) == 0 &&
           place->file_offset >= mapping->file_offset &&
           place->file_offset - mapping->file_offset < mapping->end - mapping->start;
}

static int visit_mapping(void *context, pid_t pid, const struct mapping *mapping)
{
    const struct tour *tour = context;
    int descriptor = -1;
    for (size_t i = 0; i < tour->table->count; i++) {
        if (!holds(mapping, &tour->table->places[i]))
            continue;
        if (descriptor < 0)
            descriptor = process_open(pid, mapping);
        if (descriptor >= 0)
            tour->visit(tour->context, pid, descriptor, &tour->table->places[i]);
    }
    if (descriptor >= 0)
        close(descriptor);
    return 0;
}

void provider_each(const struct provider_table *table, pid_t pid, provider_visit *visit, void *context)
{
    struct tour tour = {table, visit, context};
    process_each_mapping(pid, visit_mapping, &tour);
}
