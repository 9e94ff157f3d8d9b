// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of the GPU's runtime and driver (CUDA 11 to 13, HIP) by processes that call the collective library. One program
 * for all symbols: the attach cookie tells which it runs at. Invariant of a thread's note: `depth` counts the calls
 * that are open, one inside the other; the outermost is the one that counts. A return that was missed shows in the
 * stack pointer of the next entry, which then lies no deeper.
 */
#include "bpf/argument.h"
#include "bpf/marker.h"
#include "bpf/ring.h"

struct cuda_thread {
    __u32 depth;
    __u32 symbol;
    __u64 stack;
    __u64 entered_ns;
    __u64 stream;
    __u64 handle;
    __u64 made_at; /* address, 0 = makes nothing */
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct cuda_thread);
} cuda_threads SEC(".maps");

struct symbol {
    __u16 marker;
    __s8 stream_at;
    __s8 handle_at;
    __s8 made_at;
    __u8 budgeted;
    __u8 driver;
};

#define LEVEL_CUDA_RUNTIME 0
#define LEVEL_CUDA_DRIVER  1
#define LEVEL_HIP          0

static const struct symbol symbols[MARKER_SYMBOLS] = {
#define MARKED(kind, name, marker, stream, handle, made)                                                               \
    [SYMBOL_##name] = {MARKER_##marker, stream, handle, made, 0, LEVEL_##kind},
#define TIMED(kind, name, marker, stream, handle, made)                                                                \
    [SYMBOL_##name] = {MARKER_##marker, stream, handle, made, 1, LEVEL_##kind},
#define SUBMITTED(kind, name, marker, stream, handle, made)                                                            \
    [SYMBOL_##name] = {MARKER_##marker, stream, handle, made, 1, LEVEL_##kind},
#include "bpf/marker_symbol.def"
#undef MARKED
#undef TIMED
#undef SUBMITTED
};

/* Which of the symbols this is; NULL when the process is none that matters. */
static __always_inline const struct symbol *symbol_of(registers_t *registers, __u32 *number, __u32 **process)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    *process = bpf_map_lookup_elem(&processes, &tgid);
    if (*process == NULL || (**process & PROCESS_COLLECTIVE) == 0)
        return NULL;
    *number = (__u32)(bpf_get_attach_cookie(registers) >> EVENT_VARIANT_SHIFT);
    return *number < MARKER_SYMBOLS ? &symbols[*number] : NULL;
}

/* A place that is not known when the program is compiled. */
static __always_inline __u64 argument_at(const registers_t *registers, __s8 place)
{
    switch (place) {
    case 0:
        return argument_any(registers, 0);
    case 1:
        return argument_any(registers, 1);
    case 2:
        return argument_any(registers, 2);
    case 3:
        return argument_any(registers, 3);
    case 4:
        return argument_any(registers, 4);
    case 7:
        return argument_any(registers, 7);
    case 8:
        return argument_any(registers, 8);
    default:
        return 0;
    }
}

__u32 markers_off = 0; /* their probes are being taken away */

static __always_inline bool is_wanted(const struct symbol *symbol)
{
    return symbol->budgeted == 0 ? markers_off == 0 : detail_take(DETAIL_SUBMISSIONS, bpf_get_current_pid_tgid() >> 32);
}

SEC("uprobe")
int marker_enter(registers_t *registers)
{
    __u32 number;
    __u32 *process;
    const struct symbol *symbol = symbol_of(registers, &number, &process);
    if (symbol == NULL)
        return 0;
    struct cuda_thread *thread =
        bpf_task_storage_get(&cuda_threads, (void *)bpf_get_current_task_btf(), NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (thread == NULL)
        return 0;
    const __u64 stack = argument_stack(registers);
    if (thread->depth != 0 && stack < thread->stack) {
        thread->depth++;
        return 0;
    }
    thread->depth = is_wanted(symbol) ? 1 : 0;
    if (thread->depth == 0)
        return 0;
    thread->symbol = number;
    thread->stack = stack;
    thread->stream = argument_at(registers, symbol->stream_at);
    thread->handle = argument_at(registers, symbol->handle_at);
    thread->made_at = argument_at(registers, symbol->made_at);
    thread->entered_ns = bpf_ktime_get_ns();
    return 0;
}

/* Calls of the collective library are marked while their process captures a graph. */
static __always_inline void note_capture(__u32 *process, __u16 marker, __s32 result)
{
    if (marker == MARKER_CAPTURE_BEGIN && result == 0) {
        __sync_fetch_and_add(process, PROCESS_CAPTURES);
        __sync_fetch_and_add(&captures, 1);
    } else if (marker == MARKER_CAPTURE_END && *process >= PROCESS_CAPTURES) {
        __sync_fetch_and_add(process, -PROCESS_CAPTURES);
        __sync_fetch_and_add(&captures, -1);
    }
}

static __always_inline void emit_marker(const struct cuda_thread *thread, const struct symbol *symbol, __s32 result,
                                        __u16 flags)
{
    struct event_marker *event = ring_reserve(EVENT_MARKER, sizeof *event);
    if (event == NULL)
        return;
    event->entered_ns = thread->entered_ns == 0 ? event->header.at_ns : thread->entered_ns;
    event->stream = thread->stream;
    event->handle = thread->handle;
    event->made = 0;
    event->result = result;
    event->marker = symbol->marker;
    event->flags = flags | (symbol->driver ? EVENT_MARKER_DRIVER : 0);
    if (thread->made_at != 0)
        bpf_probe_read_user(&event->made, sizeof event->made, (const void *)thread->made_at);
    ring_submit_lazily(event);
}

SEC("uretprobe")
int marker_return(registers_t *registers)
{
    __u32 *process;
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    struct cuda_thread *thread = bpf_task_storage_get(&cuda_threads, (void *)bpf_get_current_task_btf(), NULL, 0);
    if (thread == NULL || thread->depth == 0 || --thread->depth != 0)
        return 0;
    process = bpf_map_lookup_elem(&processes, &tgid);
    const __u32 number = thread->symbol;
    if (process == NULL || number >= MARKER_SYMBOLS)
        return 0;
    const __s32 result = (__s32)argument_result(registers);
    note_capture(process, symbols[number].marker, result);
    emit_marker(thread, &symbols[number], result, 0);
    return 0;
}

/* Its entry only, so one inside another cannot be told: those of the driver are flagged. */
SEC("uprobe")
int marker_submit(registers_t *registers)
{
    __u32 number;
    __u32 *process;
    const struct symbol *symbol = symbol_of(registers, &number, &process);
    if (symbol == NULL || !is_wanted(symbol))
        return 0;
    const struct cuda_thread call = {
        .stream = argument_at(registers, symbol->stream_at),
        .handle = argument_at(registers, symbol->handle_at),
    };
    emit_marker(&call, symbol, 0, EVENT_MARKER_SUBMITTED);
    return 0;
}
