/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of the few streams under capture; nodes are one after the other, as on a stream. */
#include "capture.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { CAPTURES_MAX = 32 };

struct node {
    stream_work *work;
    void *argument;
};

struct graph {
    struct node *nodes;
    size_t count;
};

static struct {
    struct stream *stream;
    struct graph *graph;
} captures[CAPTURES_MAX];
static pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;

/* The place of a stream in the table (NULL: a free one), or -1. */
static int capture_find(const struct stream *stream)
{
    for (int i = 0; i < CAPTURES_MAX; i++)
        if (captures[i].stream == stream)
            return i;
    return -1;
}

bool capture_begin(struct stream *stream)
{
    pthread_mutex_lock(&captures_lock);
    int place = capture_find(stream) < 0 ? capture_find(NULL) : -1;
    if (place >= 0) {
        captures[place].stream = stream;
        captures[place].graph = calloc(1, sizeof *captures[place].graph);
    }
    pthread_mutex_unlock(&captures_lock);
    return place >= 0;
}

struct graph *capture_end(struct stream *stream)
{
    struct graph *graph = NULL;

    pthread_mutex_lock(&captures_lock);
    int place = capture_find(stream);
    if (place >= 0) {
        graph = captures[place].graph;
        captures[place].stream = NULL;
    }
    pthread_mutex_unlock(&captures_lock);
    return graph;
}

bool capture_is_on(struct stream *stream)
{
    pthread_mutex_lock(&captures_lock);
    bool is_on = capture_find(stream) >= 0;
    pthread_mutex_unlock(&captures_lock);
    return is_on;
}

static void node_add(struct graph *graph, stream_work *work, void *argument)
{
    graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof *graph->nodes);
    graph->nodes[graph->count++] = (struct node){work, argument};
}

void capture_push(struct stream *stream, stream_work *work, void *argument)
{
    pthread_mutex_lock(&captures_lock);
    int place = capture_find(stream);
    if (place >= 0)
        node_add(captures[place].graph, work, argument);
    pthread_mutex_unlock(&captures_lock);
    if (place < 0)
        stream_push(stream, work, argument);
}

struct graph *graph_copy(const struct graph *graph)
{
    struct graph *copy = calloc(1, sizeof *copy);

    for (size_t i = 0; i < graph->count; i++)
        node_add(copy, graph->nodes[i].work, graph->nodes[i].argument);
    return copy;
}

void graph_launch(const struct graph *graph, struct stream *stream)
{
    for (size_t i = 0; i < graph->count; i++)
        stream_push(stream, graph->nodes[i].work, graph->nodes[i].argument);
}

void graph_free(struct graph *graph)
{
    free(graph->nodes);
    free(graph);
}
