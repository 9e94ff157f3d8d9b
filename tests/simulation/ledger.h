/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each operation of each rank really moved over NICs, and when: the truth about operations, as truth.h is about
 * steps. One thread. Times: true ones here, the reference clock's in the file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ledger;

struct ledger_row {    /* one operation of one rank; of a group of sends and receives all of them */
    uint64_t identity; /* of its communicator */
    uint32_t rank;
    uint8_t kind;         /* enum operation_kind; SEND: a group of sends and receives */
    uint64_t enqueued_ns; /* given to the library, or launched in a graph */
    uint64_t sent_bytes, first_ns, last_ns;
    uint64_t received_bytes, received_ns;
};

struct ledger *ledger_create(void);
void ledger_destroy(struct ledger *ledger);

/* A row to be filled, which lives as long as the ledger; NULL of no ledger. */
struct ledger_row *ledger_add(struct ledger *ledger);

/* NULL: nobody wants to know. */
void ledger_sent(struct ledger_row *row, uint64_t bytes, uint64_t first_ns, uint64_t last_ns);
void ledger_received(struct ledger_row *row, uint64_t bytes, uint64_t last_ns);

/* Tab-separated, in order of enqueue; -errno after logging. */
int ledger_write(const struct ledger *ledger, const char *path);
