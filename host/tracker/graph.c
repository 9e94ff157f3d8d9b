/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Graphs and captures under one kind of key. Invariant: the calls of a graph do not change once its capture has ended,
 * so a graph and its instances share them.
 */
#include "host/tracker/graph.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <uthash.h>

#define CALLS_MAX 65536 /* of one graph */

struct captured {
    struct record_call *calls;
    size_t count;
    size_t capacity;
    size_t users;
};

enum graph_kind { GRAPH_CAPTURE, GRAPH_GRAPH, GRAPH_EXECUTABLE };

struct graph_key {
    uint64_t handle; /* of the stream that is captured, the graph, or the executable graph */
    uint32_t process;
    uint32_t kind;
};

struct graph {
    struct graph_key key;
    struct captured *captured;
    uint64_t begun; /* counts captures */
    UT_hash_handle hh;
};

struct graph_table {
    struct graph *graphs;
    size_t graphs_max;
    uint64_t captures;
};

int graph_table_create(struct graph_table **table, size_t graphs_max)
{
    *table = calloc(1, sizeof **table);
    if (*table == NULL)
        return -ENOMEM;
    (*table)->graphs_max = graphs_max;
    return 0;
}

static void captured_leave(struct captured *captured)
{
    if (captured == NULL || --captured->users != 0)
        return;
    free(captured->calls);
    free(captured);
}

static void graph_remove(struct graph_table *table, struct graph *graph)
{
    HASH_DEL(table->graphs, graph);
    captured_leave(graph->captured);
    free(graph);
}

void graph_table_destroy(struct graph_table **table)
{
    struct graph *graph;
    struct graph *next;
    if (*table == NULL)
        return;
    HASH_ITER(hh, (*table)->graphs, graph, next)
    {
        graph_remove(*table, graph);
    }
    free(*table);
    *table = NULL;
}

static struct graph *graph_find(const struct graph_table *table, uint32_t process, enum graph_kind kind,
                                uint64_t handle)
{
    const struct graph_key key = {handle, process, kind};
    struct graph *graph;
    HASH_FIND(hh, table->graphs, &key, sizeof key, graph);
    return graph;
}

/* In place of an older one of the same handle. Takes a share of what was captured. */
static int graph_add(struct graph_table *table, const struct graph_key *key, struct captured *captured)
{
    struct graph *older = graph_find(table, key->process, key->kind, key->handle);
    captured->users++;
    if (older != NULL)
        graph_remove(table, older);
    struct graph *graph =
        HASH_COUNT(table->graphs) >= table->graphs_max ? NULL : (struct graph *)calloc(1, sizeof *graph);
    if (graph == NULL) {
        captured_leave(captured);
        return HASH_COUNT(table->graphs) >= table->graphs_max ? -ENOSPC : -ENOMEM;
    }
    graph->key = *key;
    graph->captured = captured;
    graph->begun = ++table->captures;
    HASH_ADD(hh, table->graphs, key, sizeof graph->key, graph);
    return 0;
}

int graph_capture_begin(struct graph_table *table, uint32_t process, uint64_t stream)
{
    const struct graph_key key = {stream, process, GRAPH_CAPTURE};
    struct captured *captured = calloc(1, sizeof *captured);
    if (captured == NULL)
        return -ENOMEM;
    captured->users = 1;
    const int error = graph_add(table, &key, captured);
    captured_leave(captured);
    return error;
}

static struct graph *capture_of(const struct graph_table *table, uint32_t process, uint64_t stream)
{
    struct graph *latest = graph_find(table, process, GRAPH_CAPTURE, stream);
    struct graph *graph;
    struct graph *next;
    if (latest != NULL)
        return latest;
    HASH_ITER(hh, table->graphs, graph, next)
    {
        if (graph->key.process == process && graph->key.kind == GRAPH_CAPTURE &&
            (latest == NULL || graph->begun > latest->begun))
            latest = graph;
    }
    return latest;
}

/* A call that is published again. */
static bool is_last(const struct captured *captured, const struct record_call *call)
{
    if (captured->count == 0)
        return false;
    const struct record_call *last = &captured->calls[captured->count - 1];
    return last->tid == call->tid && last->entered_ns == call->entered_ns && last->peer == call->peer;
}

int graph_capture_call(struct graph_table *table, uint32_t process, const struct record_call *call)
{
    struct graph *graph = capture_of(table, process, call->stream);
    if (graph == NULL)
        return -ENOENT;
    struct captured *captured = graph->captured;
    if (is_last(captured, call))
        return 0;
    if (captured->count >= CALLS_MAX)
        return -ENOSPC;
    if (captured->count == captured->capacity) {
        const size_t capacity = captured->capacity == 0 ? 16 : 2 * captured->capacity;
        struct record_call *calls = realloc(captured->calls, capacity * sizeof *calls);
        if (calls == NULL)
            return -ENOMEM;
        captured->calls = calls;
        captured->capacity = capacity;
    }
    captured->calls[captured->count++] = *call;
    return 0;
}

int64_t graph_capture_end(struct graph_table *table, uint32_t process, uint64_t stream, uint64_t graph)
{
    const struct graph_key key = {graph, process, GRAPH_GRAPH};
    struct graph *capture = graph_find(table, process, GRAPH_CAPTURE, stream);
    if (capture == NULL)
        return -ENOENT;
    const int64_t count = (int64_t)capture->captured->count;
    const int error = graph == 0 ? 0 : graph_add(table, &key, capture->captured);
    graph_remove(table, capture);
    return error != 0 ? error : count;
}

int64_t graph_instantiate(struct graph_table *table, uint32_t process, uint64_t graph, uint64_t executable)
{
    const struct graph_key key = {executable, process, GRAPH_EXECUTABLE};
    const struct graph *known = graph_find(table, process, GRAPH_GRAPH, graph);
    if (known == NULL) {
        struct graph *older = graph_find(table, process, GRAPH_EXECUTABLE, executable);
        if (older != NULL)
            graph_remove(table, older);
        return -ENOENT;
    }
    const int64_t count = (int64_t)known->captured->count;
    const int error = graph_add(table, &key, known->captured);
    return error != 0 ? error : count;
}

int64_t graph_calls(const struct graph_table *table, uint32_t process, uint64_t executable,
                    const struct record_call **calls)
{
    const struct graph *graph = graph_find(table, process, GRAPH_EXECUTABLE, executable);
    if (graph == NULL)
        return -ENOENT;
    *calls = graph->captured->calls;
    return (int64_t)graph->captured->count;
}

void graph_forget_process(struct graph_table *table, uint32_t process)
{
    struct graph *graph;
    struct graph *next;
    HASH_ITER(hh, table->graphs, graph, next)
    {
        if (graph->key.process == process)
            graph_remove(table, graph);
    }
}

size_t graph_count(const struct graph_table *table)
{
    return HASH_COUNT(table->graphs);
}
