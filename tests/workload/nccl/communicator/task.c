/* SPDX-License-Identifier: BSD-2-Clause */
/* All tasks of a group run on the stream of its last call; NCCL joins several streams by events instead. */
#include "communicator/task.h"

#include <stdlib.h>

void tasks_add(struct tasks *tasks, const struct task *task, cudaStream_t stream)
{
    tasks->items = realloc(tasks->items, (size_t)(tasks->count + 1) * sizeof *task);
    tasks->items[tasks->count++] = *task;
    tasks->stream = stream;
}

void tasks_clear(struct tasks *tasks)
{
    free(tasks->items);
    *tasks = (struct tasks){NULL, 0, NULL};
}
