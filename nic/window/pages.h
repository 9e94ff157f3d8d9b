/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a fixed size for what every frame touches: zeroed, on huge pages where the kernel gives them (each frame
 * would else cost a miss of the address translation for each place it touches). Pages that were never touched cost
 * nothing. Any thread.
 */
#pragma once

#include <stddef.h>

/* Aligned to 2 MiB; NULL when there is none. */
void *pages_create(size_t bytes);

/* Has all of them taken now, so that no frame waits for one later. */
void pages_prepare(void *memory, size_t bytes);

/* The same size as was created; a no-op on NULL. */
void pages_destroy(void *memory, size_t bytes);
