/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of processes. Invariant: at most one living process a pid. */
#include "host/tracker/job.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

struct job_entry {
    struct job_process process; /* first: a process is its entry */
    uint32_t pid;
    uint32_t number;
    UT_hash_handle by_pid;
    UT_hash_handle by_number;
};

struct job_table {
    struct job_entry *pids;
    struct job_entry *numbers;
    uint32_t last_number;
};

int job_table_create(struct job_table **table)
{
    *table = calloc(1, sizeof **table);
    return *table == NULL ? -ENOMEM : 0;
}

static void remove_visited(void *context, struct job_process *process)
{
    job_remove(context, process);
}

void job_table_destroy(struct job_table **table)
{
    if (*table == NULL)
        return;
    job_each(*table, remove_visited, *table);
    free(*table);
    *table = NULL;
}

static struct job_process *found(struct job_entry *entry)
{
    return entry == NULL ? NULL : &entry->process;
}

struct job_process *job_find(const struct job_table *table, uint32_t pid)
{
    struct job_entry *entry;
    HASH_FIND(by_pid, table->pids, &pid, sizeof pid, entry);
    return found(entry);
}

struct job_process *job_by_number(const struct job_table *table, uint32_t number)
{
    struct job_entry *entry;
    HASH_FIND(by_number, table->numbers, &number, sizeof number, entry);
    return found(entry);
}

struct job_process *job_process(struct job_table *table, uint32_t pid)
{
    struct job_process *present = job_find(table, pid);
    if (present != NULL)
        return present;
    struct job_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    entry->pid = pid;
    entry->number = ++table->last_number;
    entry->process.record.process = entry->number;
    entry->process.record.pid = pid;
    entry->process.lineage_complete = true;
    HASH_ADD(by_pid, table->pids, pid, sizeof entry->pid, entry);
    HASH_ADD(by_number, table->numbers, number, sizeof entry->number, entry);
    return &entry->process;
}

void job_remove(struct job_table *table, struct job_process *process)
{
    struct job_entry *entry = (struct job_entry *)process;
    HASH_DELETE(by_pid, table->pids, entry);
    HASH_DELETE(by_number, table->numbers, entry);
    free(entry);
}

void job_each(struct job_table *table, job_visit *visit, void *context)
{
    struct job_entry *entry;
    struct job_entry *next;
    HASH_ITER(by_pid, table->pids, entry, next)
    {
        visit(context, &entry->process);
    }
}

size_t job_count(const struct job_table *table)
{
    return HASH_CNT(by_pid, table->pids);
}
