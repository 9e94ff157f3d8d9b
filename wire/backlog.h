/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A first-in first-out queue of messages within a fixed number of bytes, allocated once. A message lies in one piece.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct backlog;

int backlog_create(struct backlog **backlog, size_t capacity_bytes);
void backlog_destroy(struct backlog **backlog);

/* Whether a message of this length would be taken now. */
bool backlog_has_room(const struct backlog *backlog, size_t length_bytes);

/* Copies the message behind the others. 0, or -ENOBUFS when there is no room. */
int backlog_put(struct backlog *backlog, const void *bytes, size_t length_bytes);

/* The oldest message, valid until backlog_pop; false when there is none. */
bool backlog_front(const struct backlog *backlog, const void **bytes, size_t *length_bytes);

/* Takes the oldest message away; there must be one. */
void backlog_pop(struct backlog *backlog);

size_t backlog_count(const struct backlog *backlog);
