/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts into a peer's window and signals. They go over connections of their own, to every peer, made when the first
 * window is registered. On the wire a put is a message that names its place and then the data; NCCL writes straight
 * into the window.
 */
#pragma once

#include "communicator/communicator.h"

/* Adds memory as the communicator's next window; all ranks do so in the same order. Connects at the first. */
int one_sided_register(struct ncclComm *comm, void *memory, size_t size_bytes, struct ncclWindow **window);

/* Enqueues a put of these bytes (none: a signal alone). */
int one_sided_put(struct ncclComm *comm, int peer, const void *from, size_t size_bytes, const struct ncclWindow *window,
                  size_t offset, int signal, cudaStream_t stream);

/* Enqueues the wait for so many puts of a peer with this signal. */
int one_sided_wait(struct ncclComm *comm, const ncclWaitSignalDesc_t *wait, cudaStream_t stream);
