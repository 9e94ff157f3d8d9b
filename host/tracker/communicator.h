/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The communicators of this machine's ranks: found by their number, by the call that makes them, and by their
 * ncclComm_t, which is used again after a communicator has been destroyed. Pure logic; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

struct communicator_table;
struct communicator_index;

/* Numbers of the next point-to-point calls with one peer. */
struct communicator_pair {
    uint64_t sends;
    uint64_t receives;
    uint64_t signals_sent;
    uint64_t signals_awaited;
};

struct communicator {
    struct record_communicator record; /* as it is published */
    uint64_t collectives;              /* calls so far */
    uint64_t captured;                 /* calls captured so far */
    uint32_t children;                 /* made of it so far */
    bool is_awaited;                   /* the library makes it after its call has returned */
    uint32_t failures;                 /* causes that were told, a bit each */
    bool calls_missed;                 /* calls before the first one that was seen, or between, may be missing */
    struct communicator_pair *pairs;   /* by peer; owned */
    size_t pairs_count;
    struct communicator_index *index; /* the table's own */
};

/* The call that makes a communicator: its thread and time, and which of several it makes. */
struct communicator_call {
    uint32_t tid;
    uint32_t index;
    uint64_t entered_ns;
};

int communicator_table_create(struct communicator_table **table, size_t communicators_max);
void communicator_table_destroy(struct communicator_table **table);

/* A new one with the next number, owned by the table; -ENOSPC when it is full. `call` may be NULL. */
int communicator_add(struct communicator_table *table, uint32_t process, const struct communicator_call *call,
                     struct communicator **communicator);

/* Gives it its ncclComm_t. The older one that still has it there, whose end was not seen, is taken off it and returned.
 */
struct communicator *communicator_bind(struct communicator_table *table, struct communicator *communicator,
                                       uint64_t pointer);

struct communicator *communicator_by_number(const struct communicator_table *table, uint32_t number);
struct communicator *communicator_by_call(const struct communicator_table *table, const struct communicator_call *call);
struct communicator *communicator_by_pointer(const struct communicator_table *table, uint32_t process,
                                             uint64_t pointer);

/* Frees it. */
void communicator_remove(struct communicator_table *table, struct communicator *communicator);

/* The visitor may remove the communicator that it is given. */
typedef void communicator_visit(void *context, struct communicator *communicator);
void communicator_each(struct communicator_table *table, communicator_visit *visit, void *context);
size_t communicator_count(const struct communicator_table *table);

/* An identity, the same on every rank: of an id's bytes, or of what names the call. */
void communicator_identify(struct communicator *communicator, enum identity_kind kind, const void *id, size_t id_bytes);

/*
 * A child's: of its parent's identity, which child it is (record.child), and its part: what tells it from the others
 * of the same call. None where the parent's children may not all have been seen, or not from the first.
 */
void communicator_identify_child(struct communicator *communicator, const struct communicator *parent, const void *part,
                                 size_t part_bytes);

/* One that no other way names: of the library's own hash and the number of ranks. */
void communicator_identify_by_hash(struct communicator *communicator);

/*
 * Numbers the call as record_call counts them, by its operation, peer, count and these flags, and names the
 * communicator in it. -ENOMEM, -ERANGE (impossible peer).
 */
int communicator_number_call(struct communicator *communicator, struct record_call *call, uint8_t flags);
