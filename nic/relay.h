/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hands each control message on to every worker: one link is listened at, and each worker listens at one of its own
 * within the process. One thread.
 */
#pragma once

#include <stddef.h>

struct relay;

/* Where worker number `index` listens. */
#define RELAY_URL_BYTES 64
void relay_url(char url[RELAY_URL_BYTES], unsigned index);

/* -errno after logging. */
int relay_open(struct relay **relay, const char *control_url, const char *key_file, unsigned workers_count);

/* Hands on what has come. Call often (every 10 ms or so). */
void relay_tick(struct relay *relay);

void relay_close(struct relay **relay);
