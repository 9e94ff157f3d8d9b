/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams that are being captured into a graph: what would be pushed on such a stream becomes a node of the graph, and
 * a launch of the graph pushes all nodes again. Any thread.
 */
#pragma once

#include "stream.h"

#include <stdbool.h>

struct graph;

/* False when the stream is being captured already. */
bool capture_begin(struct stream *stream);

/* NULL when it was not. The caller owns the graph. */
struct graph *capture_end(struct stream *stream);
bool capture_is_on(struct stream *stream);

/* Pushes the work on the stream, or adds it to the graph that is being captured there. */
void capture_push(struct stream *stream, stream_work *work, void *argument);

struct graph *graph_copy(const struct graph *graph);
void graph_launch(const struct graph *graph, struct stream *stream);
void graph_free(struct graph *graph);
