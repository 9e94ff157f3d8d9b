/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tracer: a library for LD_PRELOAD that notes in the truth file which queue pairs the job's collective library
 * makes, for which communicator, and what it posts on them. It shares no code and no method with qpscope. What follows
 * is all that the job tells it.
 */
#pragma once

#include <stddef.h>

/* A communicator's unique id, told before the communicator is made. The job looks the function up by its name. */
typedef void tracer_expect_fn(const void *id, size_t length_bytes);
tracer_expect_fn tracer_expect;
