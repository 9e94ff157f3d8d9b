/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pairs of this machine's processes, from their making to their end, found by their ibv_qp. A QPN that is
 * used again is a new queue pair. Pure logic; one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "wire/record.h"

struct queue_pair_table;

int queue_pair_table_create(struct queue_pair_table **table, size_t queue_pairs_max);
void queue_pair_table_destroy(struct queue_pair_table **table);

/*
 * A new one with the next number, owned by the table; the caller fills in its owner. One that is still there under the
 * same ibv_qp, whose end was not seen, is removed and copied to `older` (queue_pair 0 = there was none).
 * -ENOSPC when the table is full.
 */
int queue_pair_add(struct queue_pair_table *table, uint32_t process, const struct event_queue_pair_create *event,
                   struct record_queue_pair **queue_pair, struct record_queue_pair *older);

/* The number of one that is kept elsewhere. */
uint32_t queue_pair_number(struct queue_pair_table *table);

struct record_queue_pair *queue_pair_find(const struct queue_pair_table *table, uint32_t process, uint64_t pointer);

/* By its QPN; NULL also when two devices of the process have given the same one out. */
struct record_queue_pair *queue_pair_find_number(const struct queue_pair_table *table, uint32_t process, uint32_t qpn);

/* Its ibv_qp. */
uint64_t queue_pair_pointer(const struct record_queue_pair *queue_pair);

void queue_pair_remove(struct queue_pair_table *table, struct record_queue_pair *queue_pair);

/* The visitor may remove the queue pair that it is given. */
typedef void queue_pair_visit(void *context, struct record_queue_pair *queue_pair);
void queue_pair_each(struct queue_pair_table *table, queue_pair_visit *visit, void *context);
size_t queue_pair_count(const struct queue_pair_table *table);

/* Reads a device's own GID: 0 or -errno. */
typedef int queue_pair_gid(void *context, const char *device, unsigned port, unsigned index,
                           uint8_t gid[ADDRESS_BYTES]);

/* Applies what a successful ibv_modify_qp has set. Returns 0, or -errno of reading its own GID (the rest is applied).
 */
int queue_pair_modify(struct record_queue_pair *queue_pair, const struct event_queue_pair_modify *event,
                      queue_pair_gid *read_gid, void *context);
