/* SPDX-License-Identifier: BSD-2-Clause */
/* How the ranks of the job meet before they have communicators: files in a directory that they share. */
#pragma once

#include "job.h"

#include <stddef.h>

/* Puts a file there, whole. Ends the process with a message on failure, as all of these do. */
void meet_publish(const struct job *job, const char *name, const void *bytes, size_t length_bytes);

/* Waits for a file and reads it; it must have exactly this length. */
void meet_read(const struct job *job, const char *name, void *bytes, size_t length_bytes);

/* Leaves this rank's mark, an empty file `name`.`world_rank`. */
void meet_mark(const struct job *job, const char *name, int world_rank);

/* Leaves this rank's mark and waits for those of all ranks. */
void meet_all(const struct job *job, const char *name, int world_rank);

/* The same among the ranks below `ranks` only. */
void meet_some(const struct job *job, const char *name, int world_rank, int ranks);

/* Waits until the file is there. */
void meet_await(const struct job *job, const char *name);
