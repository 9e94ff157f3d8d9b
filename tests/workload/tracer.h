/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tracer: a library for LD_PRELOAD that notes in the truth file which queue pairs the job's collective library
 * makes, for which communicator, and what it posts on them. It shares no code and no method with qpscope. What follows
 * is all that the job tells it.
 */
#pragma once

#include <stddef.h>

/* The job looks these up by their names, since the tracer may not be there. */
typedef void tracer_expect_fn(const void *id, size_t length_bytes);
typedef void tracer_rank_fn(int rank);

/* The unique id of a communicator that the calling thread's rank will be in, before the communicator is made. */
tracer_expect_fn tracer_expect;

/* The calling thread, and those that it makes, work for this rank. */
tracer_rank_fn tracer_rank;
