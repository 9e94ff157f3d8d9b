/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stand-in device's events: a count of records on streams, and of those that their streams have reached. Any
 * thread.
 */
#pragma once

#include "stream.h"

#include <stdbool.h>

struct event;

struct event *event_create(void);

/* The event goes when the work queued for it is done. */
void event_release(struct event *event);

void event_record(struct event *event, struct stream *stream);

/* What is pushed on the stream from now on waits for the records made so far. */
void event_stream_wait(struct event *event, struct stream *stream);

bool event_is_done(struct event *event);
