// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a proxy's service thread is told: by which message a connection was asked for, and over which socket it was
 * arranged. Source: NCCL 2.13 to 2.30, proxy.cc: a message is read in parts, one recv() each: its type (4 bytes), the
 * connection (8), the sizes of request and response (4 and 4), the request, and from 2.17 on the number of the
 * operation (8). Only threads of processes that called the collective library are looked at; only whole messages of two
 * types are told, and only the sockets of threads that have read one: a few events a connection, none while data flows.
 */
#include "bpf/proxy.h"

#include <bpf/bpf_tracing.h>

#define TYPE_MAX              12
#define IN_PROGRESS           (-115) /* -EINPROGRESS: a connect that does not wait */
#define REQUEST_BYTES_LARGEST 4096

struct proxy_thread_map proxy_threads SEC(".maps");

static __always_inline bool may_serve(void)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    const __u32 *flags = bpf_map_lookup_elem(&processes, &tgid);
    return flags != NULL && (*flags & PROCESS_COLLECTIVE) != 0;
}

/* The beginning of `length_bytes` bytes, as much as fits; `size_bytes` is a power of two. */
static __always_inline void read_beginning(__u8 *into, __u32 size_bytes, __u64 address, __u32 length_bytes)
{
    if (length_bytes >= size_bytes) {
        ring_read(into, size_bytes, address);
        return;
    }
    __asm__ volatile("" : "+r"(length_bytes)); /* else the compiler drops the mask, which the verifier wants to see */
    ring_read(into, length_bytes & (size_bytes - 1), address);
}

/* The message is whole. */
static __always_inline void tell_message(struct proxy_thread *thread, __u64 request)
{
    thread->serves = 1;
    thread->part = 0;
    if (thread->type != PROXY_SETUP && thread->type != PROXY_CONNECT)
        return;
    struct event_proxy_message *event = ring_reserve(EVENT_PROXY_MESSAGE, sizeof *event);
    if (event == NULL)
        return;
    event->connection = thread->connection;
    event->socket = thread->reading;
    event->type = thread->type;
    event->request_bytes = thread->request_bytes;
    event->receives = thread->receives;
    __builtin_memset(event->request, 0, sizeof event->request);
    read_beginning(event->request, sizeof event->request, request, thread->request_bytes);
    ring_submit_lazily(event);
}

/* The first part, of this descriptor. */
static __always_inline void begin_message(struct proxy_thread *thread, int socket, __u64 bytes, __u64 size_bytes)
{
    thread->part = 0;
    thread->reading = socket;
    if (size_bytes != sizeof thread->type)
        return;
    bpf_probe_read_user(&thread->type, sizeof thread->type, (const void *)bytes);
    thread->part = thread->type != 0 && thread->type <= TYPE_MAX;
}

/* The next part; false when it is none. */
static __always_inline bool continue_message(struct proxy_thread *thread, __u64 bytes, __u64 size_bytes)
{
    if (thread->part == 1 && size_bytes == sizeof thread->connection) {
        bpf_probe_read_user(&thread->connection, sizeof thread->connection, (const void *)bytes);
        thread->part = 2;
        return true;
    }
    if (thread->part == 2 && size_bytes == sizeof thread->request_bytes) {
        bpf_probe_read_user(&thread->request_bytes, sizeof thread->request_bytes, (const void *)bytes);
        thread->part = 3;
        return thread->request_bytes <= REQUEST_BYTES_LARGEST;
    }
    if (thread->part == 3 && size_bytes == sizeof(__u32)) {
        thread->part = 4;
        return true;
    }
    if (thread->part != 4 || size_bytes != thread->request_bytes)
        return false;
    tell_message(thread, bytes);
    return true;
}

SEC("fexit/__sys_recvfrom")
int BPF_PROG(proxy_receive, int socket, void *bytes, __u64 size_bytes, unsigned int flags, void *address,
             int *address_bytes, int result)
{
    if (result <= 0 || !may_serve())
        return 0;
    struct proxy_thread *thread = proxy_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (thread == NULL)
        return 0;
    thread->socket = socket;
    thread->receives++;
    if ((__u64)result != size_bytes)
        thread->part = 0;
    else if (thread->part == 0 || thread->reading != socket ||
             !continue_message(thread, (__u64)(unsigned long)bytes, size_bytes))
        begin_message(thread, socket, (__u64)(unsigned long)bytes, size_bytes);
    return 0;
}

SEC("fexit/__sys_sendto")
int BPF_PROG(proxy_send, int socket, void *bytes, __u64 size_bytes, unsigned int flags, void *address,
             int address_bytes, int result)
{
    struct proxy_thread *thread = result > 0 && may_serve() ? proxy_thread(0) : NULL;
    if (thread != NULL)
        thread->socket = socket;
    return 0;
}

/* An event of a socket of a thread that serves, else NULL. */
static __always_inline struct event_proxy_socket *reserve_socket(__u32 what, __s32 socket)
{
    struct proxy_thread *thread = may_serve() ? proxy_thread(0) : NULL;
    if (thread == NULL || thread->serves == 0)
        return NULL;
    thread->socket = socket;
    struct event_proxy_socket *event = ring_reserve(EVENT_PROXY_SOCKET, sizeof *event);
    if (event == NULL)
        return NULL;
    event->what = what;
    event->socket = socket;
    event->listener = 0;
    event->receives = thread->receives;
    __builtin_memset(event->address, 0, sizeof event->address);
    return event;
}

SEC("fexit/__sys_connect")
int BPF_PROG(proxy_connect, int socket, void *address, int address_bytes, int result)
{
    struct event_proxy_socket *event =
        result == 0 || result == IN_PROGRESS ? reserve_socket(PROXY_SOCKET_CONNECT, socket) : NULL;
    if (event == NULL)
        return 0;
    read_beginning(event->address, sizeof event->address, (__u64)(unsigned long)address, (__u32)address_bytes);
    ring_submit_lazily(event);
    return 0;
}

SEC("fexit/__sys_listen")
int BPF_PROG(proxy_listen, int socket, int backlog, int result)
{
    struct event_proxy_socket *event = result == 0 ? reserve_socket(PROXY_SOCKET_LISTEN, socket) : NULL;
    if (event != NULL)
        ring_submit_lazily(event);
    return 0;
}

SEC("fexit/__sys_accept4")
int BPF_PROG(proxy_accept, int listener, void *address, int *address_bytes, int flags, int result)
{
    struct event_proxy_socket *event = result >= 0 ? reserve_socket(PROXY_SOCKET_ACCEPT, result) : NULL;
    if (event == NULL)
        return 0;
    event->listener = listener;
    ring_submit_lazily(event);
    return 0;
}
