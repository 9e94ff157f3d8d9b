/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes whose communicators and queue pairs are followed. Pure logic; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

struct job_table;

struct job_process {
    struct record_process record;
    uint32_t flags;        /* enum event_process_flag */
    uint32_t failures;     /* causes that were told without a communicator, a bit each */
    uint32_t warnings;     /* of the collective library */
    uint32_t version;      /* its collective library's, as ncclGetVersion gives it; 0 = not known */
    bool splits;           /* that library knows ncclCommSplit */
    bool lineage_complete; /* every thread that serves a communicator has been seen to be born */
};

int job_table_create(struct job_table **table);
void job_table_destroy(struct job_table **table);

/* The process with this pid, made (with the next number, record.process) when it is new. NULL without memory. */
struct job_process *job_process(struct job_table *table, uint32_t pid);
struct job_process *job_find(const struct job_table *table, uint32_t pid);
struct job_process *job_by_number(const struct job_table *table, uint32_t number);
void job_remove(struct job_table *table, struct job_process *process);

typedef void job_visit(void *context, struct job_process *process);
void job_each(struct job_table *table, job_visit *visit, void *context);
size_t job_count(const struct job_table *table);
