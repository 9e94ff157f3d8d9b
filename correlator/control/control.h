/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control links to NIC sides, on which they are asked and told. A link that takes nothing (its NIC side is not
 * there yet, or away) is tried again by whoever has something to send. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/option.h"

struct controls;

/* 0 or -errno, logged. */
int controls_open(struct controls **controls, const struct option_list *urls, const char *key_file, uint64_t boot_id);

size_t controls_count(const struct controls *controls);

/* One batch of whole records, in all at most CONTROL_RECORDS_BYTES; false when the link takes nothing at present. */
#define CONTROL_RECORDS_BYTES (128u * 1024u)
bool controls_send(struct controls *controls, size_t control, const void *records, size_t records_bytes,
                   uint32_t records_count);

/* Rises with each connection: who hears now may not have heard what was sent before. */
uint64_t controls_connections(const struct controls *controls, size_t control);

/* A no-op on NULL. */
void controls_close(struct controls **controls);
