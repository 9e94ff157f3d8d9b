// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the collective library says of its own failures: the error that a communicator shows when it is asked, and the
 * lines that the library writes as warnings (their format; only where the function's symbol is there). By then NCCL has
 * taken the failed completion: these are the first signs outside of it, not the cause.
 */
#include "bpf/argument.h"
#include "bpf/ring.h"

#define RESULT_IN_PROGRESS 7 /* ncclInProgress */
#define LEVEL_WARNING      2 /* NCCL_LOG_WARN */

struct failure_question {
    __u64 communicator;
    __u64 answer; /* where the library puts it */
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct failure_question);
} failure_questions SEC(".maps");

static __always_inline struct event_failure *reserve_failure(__u32 cause)
{
    struct event_failure *event = ring_reserve(EVENT_FAILURE, sizeof *event);
    if (event == NULL)
        return NULL;
    event->cause = cause;
    event->communicator = 0;
    event->result = 0;
    __builtin_memset(event->text, 0, sizeof event->text);
    return event;
}

SEC("uprobe")
int nccl_async_error(registers_t *registers)
{
    struct failure_question *question = bpf_task_storage_get(&failure_questions, (void *)bpf_get_current_task_btf(),
                                                             NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (question == NULL)
        return 0;
    question->communicator = argument(registers, 0);
    question->answer = argument(registers, 1);
    return 0;
}

SEC("uretprobe")
int nccl_async_error_return(registers_t *registers)
{
    struct failure_question *question =
        bpf_task_storage_get(&failure_questions, (void *)bpf_get_current_task_btf(), NULL, 0);
    __s32 answer = 0;
    if (question == NULL || question->answer == 0 || (__s32)argument_result(registers) != 0)
        return 0;
    ring_read(&answer, sizeof answer, question->answer);
    question->answer = 0;
    if (answer == 0 || answer == RESULT_IN_PROGRESS)
        return 0;
    struct event_failure *event = reserve_failure(EVENT_FAILURE_ASYNC_ERROR);
    if (event == NULL)
        return 0;
    event->communicator = question->communicator;
    event->result = answer;
    ring_submit(event);
    return 0;
}

static __always_inline int tell_warning(registers_t *registers, __u64 format)
{
    if ((__u32)argument(registers, 0) != LEVEL_WARNING)
        return 0;
    struct event_failure *event = reserve_failure(EVENT_FAILURE_WARNING);
    if (event == NULL)
        return 0;
    if (bpf_probe_read_user_str(event->text, sizeof event->text, (const void *)format) < 0)
        __sync_fetch_and_add(&reads_failed, 1);
    ring_submit(event);
    return 0;
}

/* ncclDebugLog(level, flags, file or function, line, format, ...) */
SEC("uprobe")
int nccl_warning(registers_t *registers)
{
    return tell_warning(registers, argument(registers, 4));
}

/* ncclDebugLogInternal(level, flags, file, function, line, format, ...) */
SEC("uprobe")
int nccl_warning_internal(registers_t *registers)
{
    return tell_warning(registers, argument(registers, 5));
}
