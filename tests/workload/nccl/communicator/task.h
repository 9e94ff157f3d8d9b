/* SPDX-License-Identifier: BSD-2-Clause */
/* What a rank has asked a communicator for within a group, in the order of the calls. */
#pragma once

#include "nccl.h"

#include "rccl_layout.h"

enum { TASK_SEND = NCOLLS, TASK_RECEIVE }; /* besides enum coll */

struct task {
    int kind;
    const void *from;
    void *to;
    size_t count; /* as passed */
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer; /* or the root */
};

struct tasks {
    struct task *items;
    int count;
    cudaStream_t stream;
};

void tasks_add(struct tasks *tasks, const struct task *task, cudaStream_t stream);
void tasks_clear(struct tasks *tasks);
