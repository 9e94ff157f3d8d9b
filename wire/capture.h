/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capture file: the batches of one or several emitters, as they go on a link. A file header, then frames; each
 * frame is a length and one zstd frame with a content checksum, holding whole batches. A file that was cut is read up
 * to the cut. Written by one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CAPTURE_VERSION 1u

struct capture_writer;
struct capture_reader;

/*
 * Creates (truncates) the file. -errno after logging. `append`: go on behind the last whole frame of a present file.
 * -EBUSY when another program writes to it. SIGXFSZ is set to be ignored, so that a size limit is an error.
 */
int capture_writer_open(struct capture_writer **writer, const char *path, int append);

/*
 * Adds one batch (header and records). It is buffered; a full disk shows here or in flush as -ENOSPC (-EFBIG at a size
 * limit), logged once. The file stays readable, and goes on as soon as there is room.
 */
int capture_write(struct capture_writer *writer, const void *batch, size_t length_bytes);

/* Puts all that was buffered into the file. */
int capture_flush(struct capture_writer *writer);

/* Batches that did not get into the file, since it was opened. */
uint64_t capture_lost_batches(const struct capture_writer *writer);

/* Flushes, closes, frees, sets *writer to NULL; a no-op on NULL. Returns the first error that the file ever had. */
int capture_writer_close(struct capture_writer **writer);

int capture_reader_open(struct capture_reader **reader, const char *path);

/*
 * The next batch; it stays valid until the next call. Returns 1 with a batch, 0 at the end, -EBADMSG at a cut or
 * damaged frame (logged with the offset: a warning where batches came before it, which stand, else an error), another
 * -errno when the file cannot be read.
 */
int capture_read(struct capture_reader *reader, const void **batch, size_t *length_bytes);

void capture_reader_close(struct capture_reader **reader);
