/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is noted of a thread that may be a proxy's service thread. Defined in proxy.bpf.c. */
#pragma once

#include "bpf/ring.h"

struct proxy_thread {
    __s32 socket;  /* the descriptor that it last received from, sent to, or connected; 0 = none */
    __u32 serves;  /* it has read a message of the proxy's protocol */
    __s32 reading; /* the descriptor of the message that it reads */
    __u32 part;    /* of that message: how many parts are read */
    __u32 type;
    __u32 request_bytes;
    __u32 receives; /* so far */
    __u32 reserved;
    __u64 connection;
};

struct proxy_thread_map {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct proxy_thread);
};

extern struct proxy_thread_map proxy_threads SEC(".maps");

static __always_inline struct proxy_thread *proxy_thread(__u64 flags)
{
    return bpf_task_storage_get(&proxy_threads, (void *)bpf_get_current_task_btf(), NULL, flags);
}
