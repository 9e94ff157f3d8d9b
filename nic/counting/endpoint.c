/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash of (port, QPN) over fixed places. Invariants: at most one endpoint of a (port, QPN) is not gone; a gone one
 * keeps its place until its last record was taken; numbers are never used twice.
 */
#include "nic/counting/endpoint.h"

#include <stdlib.h>
#include <string.h>

#define NONE           UINT32_MAX
#define GENERATION_LOG 16 /* QPNs whose generation is remembered after they are gone, as a power of two */

struct endpoint_table {
    unsigned capacity;
    unsigned used; /* places below it may be taken */
    uint32_t numbers;
    uint32_t mask;
    uint64_t refused;
    unsigned turn; /* where the next changed one is looked for */
    uint32_t *buckets;
    struct endpoint *places; /* record.endpoint 0: free */
    uint16_t *generations;   /* by (port, QPN), hashed: the generation last given */
};

static uint32_t hash(uint32_t port, uint32_t qpn)
{
    uint32_t mixed = (qpn ^ port << 24) * 2654435761u;
    return mixed ^ mixed >> 16;
}

struct endpoint_table *endpoint_table_create(unsigned capacity)
{
    struct endpoint_table *table = calloc(1, sizeof *table);
    uint32_t buckets = 1;

    if (table == NULL)
        return NULL;
    while (buckets < 2 * capacity)
        buckets *= 2;
    table->capacity = capacity;
    table->mask = buckets - 1;
    table->buckets = malloc(buckets * sizeof *table->buckets);
    table->places = calloc(capacity, sizeof *table->places);
    table->generations = calloc(1u << GENERATION_LOG, sizeof *table->generations);
    if (table->buckets == NULL || table->places == NULL || table->generations == NULL)
        endpoint_table_destroy(&table);
    else
        memset(table->buckets, 0xff, buckets * sizeof *table->buckets);
    return table;
}

void endpoint_table_destroy(struct endpoint_table **table)
{
    if (*table == NULL)
        return;
    free((*table)->buckets);
    free((*table)->places);
    free((*table)->generations);
    free(*table);
    *table = NULL;
}

void endpoint_begin_round(struct endpoint_table *table)
{
    for (unsigned i = 0; i < table->used; i++) {
        table->places[i].is_listed = false;
        table->places[i].is_new = false;
    }
}

static void unlink_endpoint(struct endpoint_table *table, const struct endpoint *endpoint)
{
    uint32_t *at = &table->buckets[hash(endpoint->record.port, endpoint->record.qpn) & table->mask];

    while (*at != NONE && *at != endpoint->place)
        at = &table->places[*at].next;
    if (*at != NONE)
        *at = endpoint->next;
}

static void mark_gone(struct endpoint_table *table, struct endpoint *endpoint, uint64_t at_ns)
{
    unlink_endpoint(table, endpoint);
    endpoint->record.gone_ns = at_ns;
    endpoint->is_changed = true;
}

void endpoint_end_round(struct endpoint_table *table, uint64_t at_ns, void (*gone)(void *context, struct endpoint *),
                        void *context)
{
    for (unsigned i = 0; i < table->used; i++) {
        struct endpoint *endpoint = &table->places[i];
        if (endpoint->record.endpoint == 0 || endpoint->record.gone_ns != 0 || endpoint->is_listed)
            continue;
        if (gone != NULL)
            gone(context, endpoint);
        mark_gone(table, endpoint, at_ns);
    }
}

struct endpoint *endpoint_find(struct endpoint_table *table, uint32_t port, uint32_t qpn)
{
    for (uint32_t at = table->buckets[hash(port, qpn) & table->mask]; at != NONE; at = table->places[at].next)
        if (table->places[at].record.port == port && table->places[at].record.qpn == qpn)
            return &table->places[at];
    return NULL;
}

static struct endpoint *find_place(struct endpoint_table *table)
{
    if (table->used < table->capacity)
        return &table->places[table->used++];
    for (unsigned i = 0; i < table->capacity; i++)
        if (table->places[i].record.endpoint == 0)
            return &table->places[i];
    table->refused++;
    return NULL;
}

static struct endpoint *add(struct endpoint_table *table, const struct record_endpoint *seen, uint64_t at_ns)
{
    struct endpoint *endpoint = find_place(table);
    uint32_t mixed = hash(seen->port, seen->qpn);
    uint32_t *bucket = &table->buckets[mixed & table->mask];

    if (endpoint == NULL)
        return NULL;
    *endpoint = (struct endpoint){.record = *seen, .is_new = true, .is_changed = true, .next = *bucket};
    endpoint->place = (unsigned)(endpoint - table->places);
    endpoint->record.endpoint = ++table->numbers;
    endpoint->record.generation = table->generations[mixed & ((1u << GENERATION_LOG) - 1)]++;
    endpoint->record.first_ns = at_ns;
    endpoint->record.gone_ns = 0;
    *bucket = endpoint->place;
    return endpoint;
}

/* Connected to somebody else, or owned by somebody else: the QPN was given away in between. */
static bool is_another(const struct record_endpoint *known, const struct record_endpoint *seen)
{
    return (known->remote_qpn != 0 && seen->remote_qpn != known->remote_qpn) ||
           (known->pid != 0 && seen->pid != 0 && seen->pid != known->pid) ||
           (known->type != 255 && seen->type != 255 && seen->type != known->type);
}

#define REFRESH(field, unknown)                                                                                        \
    if (seen->field != (unknown) && seen->field != known->field) {                                                     \
        known->field = seen->field;                                                                                    \
        endpoint->is_changed = true;                                                                                   \
    }

static void refresh(struct endpoint *endpoint, const struct record_endpoint *seen)
{
    static const uint8_t none[ADDRESS_BYTES];
    struct record_endpoint *known = &endpoint->record;

    REFRESH(remote_qpn, 0)
    REFRESH(path_mtu_bytes, 0)
    REFRESH(state, 255)
    REFRESH(type, 255)
    REFRESH(pid, 0)
    if (memcmp(seen->remote_address, none, sizeof none) != 0 &&
        memcmp(seen->remote_address, known->remote_address, sizeof none) != 0) {
        memcpy(known->remote_address, seen->remote_address, sizeof none);
        endpoint->is_changed = true;
    }
}

struct endpoint *endpoint_note(struct endpoint_table *table, const struct record_endpoint *seen, uint64_t at_ns)
{
    struct endpoint *endpoint = endpoint_find(table, seen->port, seen->qpn);

    if (endpoint != NULL && is_another(&endpoint->record, seen)) {
        mark_gone(table, endpoint, at_ns);
        endpoint = NULL;
    }
    if (endpoint == NULL)
        endpoint = add(table, seen, at_ns);
    else
        refresh(endpoint, seen);
    if (endpoint != NULL)
        endpoint->is_listed = true;
    return endpoint;
}

bool endpoint_take_changed(struct endpoint_table *table, struct record_endpoint *record)
{
    for (unsigned i = 0; i < table->used; i++) {
        struct endpoint *endpoint = &table->places[table->turn];
        table->turn = (table->turn + 1) % table->used;
        if (!endpoint->is_changed)
            continue;
        endpoint->is_changed = false;
        *record = endpoint->record;
        if (record->gone_ns != 0)
            endpoint->record.endpoint = 0;
        return true;
    }
    return false;
}

void endpoint_repeat(struct endpoint_table *table)
{
    for (struct endpoint *at = NULL; (at = endpoint_next(table, at)) != NULL;)
        at->is_changed = true;
}

struct endpoint *endpoint_next(struct endpoint_table *table, struct endpoint *endpoint)
{
    for (unsigned i = endpoint == NULL ? 0 : endpoint->place + 1; i < table->used; i++)
        if (table->places[i].record.endpoint != 0 && table->places[i].record.gone_ns == 0)
            return &table->places[i];
    return NULL;
}

uint64_t endpoint_refused(const struct endpoint_table *table)
{
    return table->refused;
}
