/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows are kept in the order in which they were made, which is that of time. */
#include "tests/simulation/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/agent.h"
#include "wire/log.h"

struct entry {
    struct ledger_row row;
    struct entry *next;
};

struct ledger {
    struct entry *first, **end;
};

struct ledger *ledger_create(void)
{
    struct ledger *ledger = calloc(1, sizeof *ledger);

    if (ledger == NULL)
        abort();
    ledger->end = &ledger->first;
    return ledger;
}

void ledger_destroy(struct ledger *ledger)
{
    for (struct entry *entry = ledger == NULL ? NULL : ledger->first, *next; entry != NULL; entry = next) {
        next = entry->next;
        free(entry);
    }
    free(ledger);
}

struct ledger_row *ledger_add(struct ledger *ledger)
{
    if (ledger == NULL)
        return NULL;
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        abort();
    *ledger->end = entry;
    ledger->end = &entry->next;
    return &entry->row;
}

void ledger_sent(struct ledger_row *row, uint64_t bytes, uint64_t first_ns, uint64_t last_ns)
{
    if (row == NULL)
        return;
    row->sent_bytes += bytes;
    row->first_ns = row->first_ns == 0 || first_ns < row->first_ns ? first_ns : row->first_ns;
    row->last_ns = last_ns > row->last_ns ? last_ns : row->last_ns;
}

void ledger_received(struct ledger_row *row, uint64_t bytes, uint64_t last_ns)
{
    if (row == NULL)
        return;
    row->received_bytes += bytes;
    row->received_ns = last_ns > row->received_ns ? last_ns : row->received_ns;
}

static uint64_t reference(uint64_t true_ns)
{
    return true_ns == 0 ? 0 : true_ns + AGENT_REFERENCE_NS;
}

static void write_row(FILE *file, const struct ledger_row *row)
{
    fprintf(file, "%016" PRIx64 "\t%u\t%u\t%" PRIu64 "\t", __builtin_bswap64(row->identity), row->rank, row->kind,
            reference(row->enqueued_ns));
    fprintf(file, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t", row->sent_bytes, reference(row->first_ns),
            reference(row->last_ns));
    fprintf(file, "%" PRIu64 "\t%" PRIu64 "\n", row->received_bytes, reference(row->received_ns));
}

int ledger_write(const struct ledger *ledger, const char *path)
{
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        int error = errno;
        log_error("cannot write %s: %s", path, strerror(error));
        return -error;
    }
    fprintf(file,
            "communicator\trank\tkind\tenqueued_ns\tsent_bytes\tfirst_ns\tlast_ns\treceived_bytes\treceived_ns\n");
    for (const struct entry *entry = ledger->first; entry != NULL; entry = entry->next)
        write_row(file, &entry->row);
    if (fclose(file) == 0)
        return 0;
    log_error("cannot write %s: %s", path, strerror(errno));
    return -EIO;
}
