/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of wire/ share: a directory of their own, gone at the end, and paths, URLs and small batches in it.
 * A failure ends the test. Included once a test program, before cmocka.h's users.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

/* A cmocka setup and teardown: *state is the directory's path. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

/* "DIRECTORY/NAME" with a prefix ("" or "ipc://"); valid until the 16th call after. */
const char *scratch_path(void **state, const char *prefix, const char *name);

void scratch_write(const char *path, const void *bytes, size_t length_bytes, unsigned mode);

/* The whole file, to be freed. */
uint8_t *scratch_read(const char *path, size_t *length_bytes);

/* A batch of one heartbeat whose at_ns tells it from others; returns its length. */
#define SCRATCH_BATCH_BYTES (sizeof(struct batch_header) + sizeof(struct record_heartbeat))
size_t scratch_batch(uint64_t sequence, uint64_t at_ns, uint8_t *bytes);

/* A key file with 64 times this digit. */
const char *scratch_key(void **state, const char *name, char digit);

/* Sleeps. */
void scratch_pause_ms(unsigned ms);
