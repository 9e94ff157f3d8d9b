/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stand-in device's streams: a thread with a queue each, made at the first use since RCCL makes streams that it
 * never uses. Any thread may push.
 */
#pragma once

struct stream;
typedef void stream_work(void *argument);

struct stream *stream_create(int device);

/* Runs what is still queued, then ends the thread and frees the stream. */
void stream_destroy(struct stream *stream);

/* The stream that HIP calls use when none is named. Never destroyed. */
struct stream *stream_default(int device);

/* work(argument) runs on the stream's thread, in order. */
void stream_push(struct stream *stream, stream_work *work, void *argument);

/* Returns when all that was pushed is done. */
void stream_drain(struct stream *stream);
