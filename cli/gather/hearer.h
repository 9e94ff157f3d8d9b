/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hears the agents that run on this machine already, at their outlets (wire/outlet.h): nothing is started or started
 * again, and each tells anew who it is and what later records refer to. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hearer;

/* -errno after logging. */
int hearer_create(struct hearer **hearer);

/* Connects to all outlets named "NAME-...", and returns how many; 0 also where they may not be asked (logged). */
size_t hearer_find(struct hearer *hearer, const char *name);

/* Polls readable when there is something to take. */
int hearer_descriptor(const struct hearer *hearer);

/* Hands over the batches that have come. Never waits. */
void hearer_take(struct hearer *hearer, void (*take)(void *context, const void *bytes, size_t length_bytes),
                 void *context);

/* How many are asked, how many of these have ended since, and how many batches of theirs did not come. */
size_t hearer_count(const struct hearer *hearer);
size_t hearer_ended(const struct hearer *hearer);
uint64_t hearer_missing(const struct hearer *hearer);

/* A no-op on NULL. */
void hearer_destroy(struct hearer **hearer);
