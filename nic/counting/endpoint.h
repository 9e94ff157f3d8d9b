/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pairs that a counting source knows of, as they come, change and go. A QPN that is used again is a new
 * endpoint of the next generation. Fixed memory, set at creation. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

struct endpoint_table;

struct endpoint {
    struct record_endpoint record;
    unsigned place;  /* below the table's capacity, its own as long as it lives: for arrays beside the table */
    bool is_new;     /* since the round began; cleared by the next round */
    bool is_listed;  /* in this round */
    bool is_changed; /* waits to be taken */
    uint32_t next;   /* in its bucket */
};

/* NULL when there is no memory. */
struct endpoint_table *endpoint_table_create(unsigned capacity);
void endpoint_table_destroy(struct endpoint_table **table);

/* A look at all queue pairs begins; those that are not noted before it ends are gone. */
void endpoint_begin_round(struct endpoint_table *table);
/* Marks the gone ones; `gone` is called for each while it is still there (may be NULL). */
void endpoint_end_round(struct endpoint_table *table, uint64_t at_ns, void (*gone)(void *context, struct endpoint *),
                        void *context);

/*
 * What is known of one of them: port, qpn, and the rest of the record, which replaces what was there; zeros (255 in
 * state and type) leave it. NULL when the table is full.
 */
struct endpoint *endpoint_note(struct endpoint_table *table, const struct record_endpoint *seen, uint64_t at_ns);

/* Takes the next one that is new, changed or gone; false when there is none. A gone one's place is free after it. */
bool endpoint_take_changed(struct endpoint_table *table, struct record_endpoint *record);

/* Marks all that are there as changed. */
void endpoint_repeat(struct endpoint_table *table);

struct endpoint *endpoint_find(struct endpoint_table *table, uint32_t port, uint32_t qpn);

/* Walks those that are there: start with NULL. */
struct endpoint *endpoint_next(struct endpoint_table *table, struct endpoint *endpoint);

/* How many were refused because the table was full. */
uint64_t endpoint_refused(const struct endpoint_table *table);
