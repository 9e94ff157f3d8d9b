/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An older kernel's answers, for a qpscope-host that this is loaded into before all else: it knows no link with several
 * places (BPF_TRACE_UPROBE_MULTI came with Linux 6.6), so that probes are set one by one on this kernel as well; and
 * with OLDER_SET_MS it takes so long for each, as a busy or emulated machine does.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#define SEVERAL_PLACES 48

typedef long system_call(long number, ...);

/* The event of a uprobe: its type is the kernel's choice, above those that are fixed. */
static void take_time(const struct perf_event_attr *attributes)
{
    const char *wanted = getenv("OLDER_SET_MS");
    if (wanted == NULL || attributes->type < PERF_TYPE_MAX)
        return;
    const long wanted_ms = atol(wanted);
    const struct timespec pause = {.tv_sec = wanted_ms / 1000, .tv_nsec = wanted_ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static int is_refused(long number, const long *arguments)
{
    const union bpf_attr *attributes = (const void *)(uintptr_t)arguments[1];
    return number == SYS_bpf && arguments[0] == BPF_LINK_CREATE &&
           attributes->link_create.attach_type == SEVERAL_PLACES;
}

long syscall(long number, ...)
{
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (is_refused(number, arguments)) {
        errno = EINVAL;
        return -1;
    }
    if (number == SYS_perf_event_open)
        take_time((const void *)(uintptr_t)arguments[0]);
    system_call *next = (system_call *)dlsym(RTLD_NEXT, "syscall");
    return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
