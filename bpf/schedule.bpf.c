// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Why a thread of a job was late on the host: how long it slept, waited for a CPU and for a block device, its page
 * faults, and what it sent over TCP. Added up for a tenth of a second and told when the thread runs again, or, when
 * asked for, each stay off the CPU. Threads that nobody follows (delay.h) cost a look at their storage.
 */
#include "bpf/delay.h"
#include "bpf/ring.h"

#include <bpf/bpf_tracing.h>

#define DELAY_INTERVAL_NS 100000000
#define PROTOCOL_TCP      6
#define FAMILY_INET       2
#define FAMILY_INET6      10
#define DELAY_DETAIL_NS   10000 /* stays off the CPU that are told one by one */

__u32 delay_epoch =
    0; /* changes when these programs are attached again: what was noted before is too old to go on with */

/* Sockets that followed threads sent on -> retransmissions that none of them has been charged with. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, __u64);
    __type(value, __u32);
} delay_sockets SEC(".maps");

/* The state that ends now is added to its sum. */
static __always_inline void settle(struct delay *delay, __u64 now_ns)
{
    const __u64 spent_ns = now_ns > delay->since_ns ? now_ns - delay->since_ns : 0;
    if (delay->state == DELAY_SLEEPING)
        delay->sleep_ns += spent_ns;
    if (delay->state == DELAY_WAITING)
        delay->wait_ns += spent_ns;
    if (delay->state == DELAY_RUNNABLE) {
        delay->run_queue_ns += spent_ns;
        if (spent_ns > delay->run_queue_longest_ns)
            delay->run_queue_longest_ns = spent_ns;
    }
    delay->since_ns = now_ns;
}

static __always_inline __u32 saturated(__u64 value)
{
    return value > 0xffffffff ? 0xffffffff : (__u32)value;
}

/* One stay off the CPU; the sums hold it too. */
static __always_inline void emit_stay(const struct task_struct *task, const struct delay *delay)
{
    struct event_delay *event = ring_reserve(EVENT_DELAY, sizeof *event);
    if (event == NULL)
        return;
    __builtin_memset(&event->from_ns, 0, sizeof *event - sizeof event->header);
    event->header.at_ns = delay->since_ns;
    event->header.tgid = task->tgid;
    event->header.tid = task->pid;
    event->from_ns = delay->off_ns;
    event->sleep_ns = delay->sleep_ns - delay->sleep_before_ns;
    event->run_queue_ns = delay->run_queue_ns - delay->run_queue_before_ns;
    event->wait_ns = delay->wait_ns - delay->wait_before_ns;
    event->run_queue_longest_ns = saturated(event->run_queue_ns);
    event->switches = 1;
    event->role = (__u16)delay->role;
    event->flags = EVENT_DELAY_ALONE;
    ring_submit_lazily(event);
}

/* What was sent again on a socket is the thread's that sent on it last, or looks at it first. */
static __always_inline void charge(struct delay *delay, __u64 socket)
{
    __u32 *known = bpf_map_lookup_elem(&delay_sockets, &socket);
    if (known == NULL || *known == 0)
        return;
    const __u32 retransmissions = *known;
    delay->retransmissions += retransmissions;
    __sync_fetch_and_add(known, -retransmissions);
}

static __always_inline void emit_sums(const struct task_struct *task, const struct delay *delay)
{
    struct event_delay *event = ring_reserve(EVENT_DELAY, sizeof *event);
    if (event == NULL)
        return;
    event->header.at_ns = delay->since_ns;
    event->header.tgid = task->tgid;
    event->header.tid = task->pid;
    event->from_ns = delay->from_ns;
    event->sleep_ns = delay->sleep_ns;
    event->run_queue_ns = delay->run_queue_ns;
    event->wait_ns = delay->wait_ns;
    event->sent_bytes = delay->sent_bytes;
    event->run_queue_longest_ns = saturated(delay->run_queue_longest_ns);
    event->switches = delay->switches;
    event->minor_faults = saturated(task->min_flt - delay->minor_faults);
    event->major_faults = saturated(task->maj_flt - delay->major_faults);
    event->retransmissions = delay->retransmissions;
    event->role = (__u16)delay->role;
    event->flags = 0;
    ring_submit_lazily(event);
}

static __always_inline void restart(const struct task_struct *task, struct delay *delay, __u64 now_ns)
{
    delay->from_ns = now_ns;
    delay->sleep_ns = 0;
    delay->run_queue_ns = 0;
    delay->wait_ns = 0;
    delay->run_queue_longest_ns = 0;
    delay->sent_bytes = 0;
    delay->retransmissions = 0;
    delay->switches = 0;
    delay->minor_faults = task->min_flt;
    delay->major_faults = task->maj_flt;
}

/* The thread's notes, or NULL; those that were made before a time in which nobody looked begin anew. */
static __always_inline struct delay *delay_now(struct task_struct *task)
{
    struct delay *delay = delay_of(task);
    if (delay == NULL || delay->epoch == delay_epoch)
        return delay;
    delay->epoch = delay_epoch;
    delay->state = DELAY_RUNNING;
    delay->since_ns = bpf_ktime_get_ns();
    delay->off_ns = 0;
    restart(task, delay, delay->since_ns);
    return delay;
}

static __always_inline bool is_asked_for(const struct task_struct *task, const struct delay *delay, __u64 now_ns)
{
    return delay->off_ns != 0 && now_ns - delay->off_ns >= DELAY_DETAIL_NS && detail_take(DETAIL_DELAYS, task->tgid);
}

static __always_inline void leave(struct task_struct *task, bool preempted, __u32 state)
{
    struct delay *delay = delay_now(task);
    if (delay == NULL)
        return;
    const __u64 now_ns = bpf_ktime_get_ns();
    settle(delay, now_ns);
    delay->off_ns = now_ns;
    delay->switches++;
    if (preempted || state == 0)
        delay->state = DELAY_RUNNABLE;
    else
        delay->state = BPF_CORE_READ_BITFIELD(task, in_iowait) ? DELAY_WAITING : DELAY_SLEEPING;
    delay->sleep_before_ns = delay->sleep_ns;
    delay->run_queue_before_ns = delay->run_queue_ns;
    delay->wait_before_ns = delay->wait_ns;
}

static __always_inline void come(struct task_struct *task)
{
    struct delay *delay = delay_now(task);
    if (delay == NULL)
        return;
    const __u64 now_ns = bpf_ktime_get_ns();
    settle(delay, now_ns);
    delay->state = DELAY_RUNNING;
    if (is_asked_for(task, delay, now_ns))
        emit_stay(task, delay);
    delay->off_ns = 0;
    if (now_ns - delay->from_ns < DELAY_INTERVAL_NS)
        return;
    if (delay->socket != 0)
        charge(delay, delay->socket);
    emit_sums(task, delay);
    restart(task, delay, now_ns);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(delay_switch, bool preempted, struct task_struct *before, struct task_struct *after, unsigned int state)
{
    leave(before, preempted, state);
    come(after);
    return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(delay_wakeup, struct task_struct *task)
{
    struct delay *delay = delay_now(task);
    if (delay == NULL || delay->state == DELAY_RUNNING || delay->state == DELAY_RUNNABLE)
        return 0;
    settle(delay, bpf_ktime_get_ns());
    delay->state = DELAY_RUNNABLE;
    return 0;
}

/* What the running thread has sent, its socket being held. */
static __always_inline int note_sent(const struct sock *socket, int sent_bytes)
{
    struct delay *delay = delay_of(bpf_get_current_task_btf());
    if (delay == NULL || sent_bytes <= 0)
        return 0;
    delay->sent_bytes += (__u64)sent_bytes;
    const __u64 key = (__u64)socket;
    const __u32 none = 0;
    if (bpf_map_lookup_elem(&delay_sockets, &key) == NULL)
        bpf_map_update_elem(&delay_sockets, &key, &none, BPF_ANY);
    delay->socket = key;
    charge(delay, key);
    return 0;
}

/* Since Linux 6.3; for sockets of all kinds. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(delay_send, struct sock *socket, int sent_bytes)
{
    const __u16 family = socket->__sk_common.skc_family;
    if (socket->sk_protocol != PROTOCOL_TCP || (family != FAMILY_INET && family != FAMILY_INET6))
        return 0;
    return note_sent(socket, sent_bytes);
}

/* Where the kernel lacks that. */
SEC("fexit/tcp_sendmsg")
int BPF_PROG(delay_send_exit, struct sock *socket, struct msghdr *message, __u64 size_bytes, int sent_bytes)
{
    return note_sent(socket, sent_bytes);
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(delay_retransmit, const struct sock *socket)
{
    const __u64 key = (__u64)socket;
    __u32 *known = bpf_map_lookup_elem(&delay_sockets, &key);
    if (known != NULL)
        __sync_fetch_and_add(known, 1);
    return 0;
}
