/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who a process is: what /proc, its control group and the environment that it was started with tell of it
 * (wire/process_fact.def). What cannot be read is left out. The process may end at any moment. One thread.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "host/identity/text.h"
#include "wire/record.h"

#define IDENTITY_VARIABLES_MAX 64 /* NCCL_ variables of a process */

typedef void identity_visit(void *context, enum process_fact fact, unsigned index, struct text text);

/* `root`: "", or a tree with proc and sys of the same shape. */
void identity_read(const char *root, pid_t pid, identity_visit *visit, void *context);
