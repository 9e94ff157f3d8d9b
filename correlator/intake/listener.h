/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The intake link, read on a thread of its own, so that no emitter finds it full while an analysis runs. Each batch
 * goes to the journal and into a queue, from which the owner takes it. The queue holds a bounded number of bytes; above
 * that the link is left to fill up, and the emitters count what they drop. All functions are for the owner's thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct listener;
struct capture_writer;

struct listener_options {
    const char *url;
    const char *key_file;           /* NULL = none */
    uint64_t boot_id;               /* of this process */
    struct capture_writer *journal; /* NULL = none; used by the listener's thread alone until it is closed */
    size_t queue_bytes;
};

/* 0 or -errno, logged. */
int listener_open(struct listener **listener, const struct listener_options *options);

/* Polls readable when there is something to take. */
int listener_descriptor(const struct listener *listener);

/* Hands over what has come, in order; returns how many batches. */
size_t listener_take(struct listener *listener, void (*take)(void *context, const void *bytes, size_t length_bytes),
                     void *context);

/* Stops the thread and closes the link. A no-op on NULL. */
void listener_close(struct listener **listener);
