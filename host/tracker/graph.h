/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which data calls a graph holds: those that its process made while it was captured. A capture has a stream; a call
 * belongs to the capture of its own stream, else (its stream was joined to another one's capture) to the one that was
 * begun last. A graph that is instantiated keeps its calls under its new handle; a handle that is used again means the
 * newer one. Pure logic; one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

struct graph_table;

/* At most so many graphs and captures. */
int graph_table_create(struct graph_table **table, size_t graphs_max);
void graph_table_destroy(struct graph_table **table);

/* -ENOSPC, -ENOMEM. */
int graph_capture_begin(struct graph_table *table, uint32_t process, uint64_t stream);

/* Keeps a copy. -ENOENT: nothing is being captured; -ENOSPC, -ENOMEM. */
int graph_capture_call(struct graph_table *table, uint32_t process, const struct record_call *call);

/* The number of calls that the graph holds; -ENOENT: the capture's begin was not seen. */
int64_t graph_capture_end(struct graph_table *table, uint32_t process, uint64_t stream, uint64_t graph);

/* The number of calls; -ENOENT: the graph is not known; -ENOSPC, -ENOMEM. */
int64_t graph_instantiate(struct graph_table *table, uint32_t process, uint64_t graph, uint64_t executable);

/* The calls of an executable graph in their order, valid until the next change, and their number; -ENOENT. */
int64_t graph_calls(const struct graph_table *table, uint32_t process, uint64_t executable,
                    const struct record_call **calls);

void graph_forget_process(struct graph_table *table, uint32_t process);
size_t graph_count(const struct graph_table *table);
