/* SPDX-License-Identifier: BSD-2-Clause */
/* From made events to records: what a kernel test cannot bring about at will. */
#include "host/tracker/tracker.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/counter.h"

enum { PID = 100, TID = 101, SERVICE = 102 };

static struct {
    struct record_process process;
    struct record_communicator communicator;
    struct record_queue_pair queue_pair;
    struct record_call call;
    struct record_loss loss;
    struct record_process_fact fact;
    struct record_failure failure;
    unsigned counts[64];
} last;

static uint64_t counters[HOST_COUNTERS];
static uint32_t lost;

static void publish(void *context, enum record_kind kind, void *record)
{
    (void)context;
    last.counts[kind]++;
    switch (kind) {
    case RECORD_PROCESS:
        memcpy(&last.process, record, sizeof last.process);
        break;
    case RECORD_COMMUNICATOR:
        memcpy(&last.communicator, record, sizeof last.communicator);
        break;
    case RECORD_QUEUE_PAIR:
        memcpy(&last.queue_pair, record, sizeof last.queue_pair);
        break;
    case RECORD_CALL:
        memcpy(&last.call, record, sizeof last.call);
        break;
    case RECORD_LOSS:
        memcpy(&last.loss, record, sizeof last.loss);
        break;
    case RECORD_FAILURE:
        memcpy(&last.failure, record, sizeof last.failure);
        break;
    case RECORD_PROCESS_FACT:
        memcpy(&last.fact, record, sizeof last.fact);
        break;
    default:
        fail();
    }
}

static bool library_splits(void *context, uint64_t library)
{
    (void)context;
    return library == 7;
}

static uint32_t library_version(void *context, uint64_t library)
{
    (void)context;
    return library == 3 ? 22809 : 0;
}

static void library_path(void *context, uint32_t pid, uint64_t library, char *path, size_t path_bytes)
{
    (void)context;
    snprintf(path, path_bytes, "/library/%u/%u", pid, (unsigned)library);
}

static int read_gid(void *context, uint32_t pid, const char *device, unsigned port, unsigned index, uint8_t gid[16])
{
    (void)context, (void)pid, (void)device, (void)port, (void)index, (void)gid;
    return -ENOENT;
}

static uint32_t followed;

static void follow(void *context, uint32_t pid)
{
    (void)context;
    followed = pid;
}

static bool running;

static bool is_running(void *context, uint32_t pid)
{
    (void)context;
    assert_int_equal(pid, PID);
    return running;
}

/* A text that its field cannot hold, and one that it can. */
static void identify(void *context, uint32_t pid, identity_visit *visit, void *visitor)
{
    static char line[200];
    (void)context;
    memset(line, 'x', sizeof line);
    visit(visitor, PROCESS_FACT_COMMAND_LINE, 0, (struct text){line, sizeof line});
    visit(visitor, PROCESS_FACT_NCCL_VARIABLE, 1, (struct text){pid == 100 ? "NCCL_A=1" : "NCCL_B=2", 8});
}

static int setup(void **state)
{
    const struct tracker_options options = {.system = {library_splits, library_version, library_path, read_gid,
                                                       identify, is_running, follow, publish, NULL},
                                            .counters = counters,
                                            .started_ns = 10,
                                            .unique = 1};
    memset(&last, 0, sizeof last);
    memset(counters, 0, sizeof counters);
    lost = 0;
    return tracker_create((struct tracker **)state, &options);
}

static int teardown(void **state)
{
    tracker_destroy((struct tracker **)state);
    return 0;
}

static struct event_header header(enum event_kind kind, uint32_t tid, uint64_t at_ns)
{
    return (struct event_header){.kind = kind, .lost = lost, .at_ns = at_ns, .tgid = PID, .tid = tid};
}

static void process(struct tracker *tracker, uint32_t flags, uint64_t at_ns)
{
    const struct event_process event = {
        .header = header(EVENT_PROCESS, TID, at_ns), .started_ns = 5, .library = 3, .flags = flags, .command = "train"};
    tracker_event(tracker, &event, sizeof event);
}

static void init(struct tracker *tracker, uint64_t at_ns, uint64_t pointer, int32_t result)
{
    const struct event_init event = {.header = header(EVENT_INIT, TID, at_ns),
                                     .ranks_count = 4,
                                     .rank = 2,
                                     .creator = CREATOR_INIT_RANK,
                                     .has_id = 1,
                                     .id = "an id"};
    const struct event_fork fork = {.header = header(EVENT_THREAD_FORK, TID, at_ns + 1), .child = SERVICE};
    const struct event_pointer made = {
        .header = header(EVENT_POINTER, TID, at_ns + 2), .entered_ns = at_ns, .pointer = pointer};
    const struct event_init_return end = {
        .header = header(EVENT_INIT_RETURN, TID, at_ns + 3), .entered_ns = at_ns, .result = result};
    tracker_event(tracker, &event, sizeof event);
    tracker_event(tracker, &fork, sizeof fork);
    tracker_event(tracker, &made, sizeof made);
    tracker_event(tracker, &end, sizeof end);
}

static void create(struct tracker *tracker, uint32_t tid, uint64_t pointer, uint64_t at_ns)
{
    const struct event_queue_pair_create event = {
        .header = header(EVENT_QUEUE_PAIR_CREATE, tid, at_ns), .pointer = pointer, .qpn = 17, .device = "rxe0"};
    tracker_event(tracker, &event, sizeof event);
}

static void call(struct tracker *tracker, uint64_t communicator, uint64_t at_ns)
{
    const struct event_call event = {.header = header(EVENT_CALL, TID, at_ns),
                                     .communicator = communicator,
                                     .count = 8,
                                     .peer = -1,
                                     .operation = OPERATION_ALL_REDUCE};
    tracker_event(tracker, &event, sizeof event);
}

static void end_process(struct tracker *tracker, uint64_t at_ns)
{
    const struct event_exit event = {.header = header(EVENT_PROCESS_EXIT, TID, at_ns)};
    tracker_event(tracker, &event, sizeof event);
}

static void whole_life(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 20);
    assert_string_equal(last.process.library, "/library/100/3");
    assert_string_equal(last.process.command, "train");
    assert_int_equal(last.counts[RECORD_PROCESS_FACT], 2);
    assert_int_equal(last.fact.process, last.process.process);
    assert_int_equal(last.fact.fact, 13);
    assert_int_equal(last.fact.index, 1);
    assert_int_equal(last.fact.text_bytes, 8);
    assert_memory_equal(last.fact.text, "NCCL_A=1", 9);
    init(*state, 30, 0x7f00, 0);
    assert_int_equal(last.communicator.created_ns, 30);
    assert_int_equal(last.communicator.ready_ns, 33);
    assert_int_equal(last.communicator.rank, 2);
    create(*state, SERVICE, 0x1000, 40);
    assert_int_equal(last.queue_pair.communicator, last.communicator.communicator);
    assert_int_equal(last.queue_pair.flags, 0);
    call(*state, 0x7f00, 50);
    assert_int_equal(last.call.header.source, last.communicator.communicator);
    assert_int_equal(last.call.flags, 0);
    end_process(*state, 60);
    assert_int_equal(last.queue_pair.destroyed_ns, 60);
    assert_int_equal(last.communicator.destroyed_ns, 60);
    assert_int_equal(last.process.ended_ns, 60);
    assert_int_equal(tracker_size(*state), 0);
}

static void failed_init(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 20);
    init(*state, 30, 0x7f00, 1);
    assert_int_equal(last.communicator.ready_ns, 0);
    assert_int_equal(last.communicator.destroyed_ns, 33);
    init(*state, 40, 0x7f00, 7); /* ncclInProgress */
    assert_int_equal(last.communicator.ready_ns, 43);
    assert_int_equal(last.communicator.destroyed_ns, 0);
}

/* A queue pair looked foreign until a communicator showed up whose making had not been seen. */
static void late_communicator(void **state)
{
    process(*state, PROCESS_VERBS, 20);
    create(*state, SERVICE, 0x1000, 30);
    assert_int_equal(last.queue_pair.flags, QUEUE_PAIR_FOREIGN);
    call(*state, 0x7f00, 40);
    assert_int_equal(last.communicator.flags, COMMUNICATOR_LATE);
    assert_int_equal(last.communicator.rank, -1);
    assert_int_equal(last.queue_pair.flags, 0);
    assert_int_equal(last.queue_pair.communicator, 0);
    assert_int_equal(last.call.flags, CALL_AFTER_LOSS);
    create(*state, SERVICE, 0x2000, 50);
    assert_int_equal(last.queue_pair.flags, 0);
    assert_int_equal(counters[COUNT_COMMUNICATORS_LATE], 1);
}

/* Events lost between 50 and 60: told with the interval; nobody new is called foreign after it. */
static void loss(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 20);
    init(*state, 30, 0x7f00, 0);
    call(*state, 0x7f00, 50);
    assert_int_equal(last.counts[RECORD_LOSS], 0);
    lost = 5;
    call(*state, 0x7f00, 60);
    assert_int_equal(last.counts[RECORD_LOSS], 1);
    assert_int_equal(last.loss.lost, 5);
    assert_int_equal(last.loss.from_ns, 50);
    assert_int_equal(last.loss.to_ns, 60);
    assert_int_equal(last.loss.cause, LOSS_RING_FULL);
    assert_int_equal(last.call.flags, CALL_AFTER_LOSS);
    create(*state, 999, 0x1000, 70);
    assert_int_equal(last.queue_pair.flags, 0);
    lost = 4; /* made earlier, on another CPU */
    call(*state, 0x7f00, 80);
    assert_int_equal(last.counts[RECORD_LOSS], 1);
    tracker_lost(*state, 6, 95); /* no event after it */
    assert_int_equal(last.loss.lost, 1);
    assert_int_equal(last.loss.from_ns, 80);
    assert_int_equal(last.loss.to_ns, 95);
    assert_int_equal(counters[COUNT_EVENTS_LOST], 6);
}

/* The end of the process was lost, and its id and addresses are used again: nothing crashes, owners stay apart. */
static void lost_start(void **state)
{
    call(*state, 0x7f00, 20);
    assert_int_equal(last.process.pid, PID);
    assert_int_equal(last.communicator.flags, COMMUNICATOR_LATE);
    init(*state, 30, 0x7f00, 0);
    assert_int_equal(last.communicator.flags, 0);
    assert_int_equal(last.counts[RECORD_COMMUNICATOR], 4); /* late; made; the late one's end; ready */
    call(*state, 0x7f00, 40);
    assert_int_equal(last.call.header.source, last.communicator.communicator);
    assert_int_equal(last.call.sequence, 0);
}

/* The end of a process was lost: found when the events have been taken, or when its number is used again. */
static void lost_end(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 20);
    init(*state, 30, 0x7f00, 0);
    running = false;
    tracker_settle(*state);
    assert_int_equal(last.process.ended_ns, 0); /* nothing was lost so far */
    tracker_lost(*state, 1, 50);
    running = true;
    tracker_settle(*state);
    assert_int_equal(last.process.ended_ns, 0);
    tracker_lost(*state, 2, 60);
    running = false;
    tracker_settle(*state);
    assert_int_equal(last.process.ended_ns, 33);
    assert_int_equal(tracker_size(*state), 0);
}

static void pid_used_again(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 20);
    init(*state, 30, 0x7f00, 0);
    const struct event_process again = {
        .header = header(EVENT_PROCESS, TID, 100), .started_ns = 90, .flags = PROCESS_COLLECTIVE, .command = "other"};
    tracker_event(*state, &again, sizeof again);
    assert_string_equal(last.process.command, "other");
    assert_int_equal(last.process.process, 2);
    assert_int_equal(last.communicator.destroyed_ns, 90);
    assert_int_equal(tracker_size(*state), 1);
}

/* A receiver that has just come is told of everything that later records refer to. */
static void described_again(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 20);
    init(*state, 30, 0x7f00, 0);
    create(*state, SERVICE, 0x1000, 40);
    const struct record_queue_pair queue_pair = last.queue_pair;
    const struct record_communicator communicator = last.communicator;
    assert_int_equal(communicator.library_version, 22809);
    memset(&last, 0, sizeof last);
    tracker_describe(*state);
    assert_int_equal(last.counts[RECORD_PROCESS], 1);
    assert_int_equal(last.counts[RECORD_COMMUNICATOR], 1);
    assert_int_equal(last.counts[RECORD_QUEUE_PAIR], 1);
    assert_int_equal(last.counts[RECORD_PROCESS_FACT], 2);
    assert_int_equal(last.process.pid, PID);
    assert_memory_equal(&last.communicator, &communicator, sizeof communicator);
    assert_memory_equal(&last.queue_pair, &queue_pair, sizeof queue_pair);
}

/* The memory of a queue pair was free, and another one's, before its ibv_destroy_qp had returned. */
static void memory_used_again_before_the_return(void **state)
{
    process(*state, PROCESS_VERBS, 10);
    create(*state, TID, 0x9000, 20);
    const uint32_t first = last.queue_pair.queue_pair;
    create(*state, TID + 1, 0x9000, 32);
    const uint32_t second = last.queue_pair.queue_pair;
    struct event_queue_pair_destroy destroy = {
        .header = header(EVENT_QUEUE_PAIR_DESTROY, TID, 35), .pointer = 0x9000, .entered_ns = 30};
    const size_t published = last.counts[RECORD_QUEUE_PAIR];
    tracker_event(*state, &destroy, sizeof destroy);
    assert_int_equal(last.counts[RECORD_QUEUE_PAIR], published);
    destroy.entered_ns = 40;
    tracker_event(*state, &destroy, sizeof destroy);
    assert_int_not_equal(second, first);
    assert_int_equal(last.queue_pair.queue_pair, second);
    assert_int_equal(last.queue_pair.destroyed_ns, 35);
}

static void change(struct tracker *tracker, uint64_t pointer, uint8_t state, uint64_t at_ns)
{
    const struct event_queue_pair_modify event = {
        .header = header(EVENT_QUEUE_PAIR_MODIFY, SERVICE, at_ns), .pointer = pointer, .mask = 1, .state = state};
    tracker_event(tracker, &event, sizeof event);
}

/* The first queue pair of a communicator that goes to ERR is told, no second one; then that the process ended. */
static void first_failures(void **state)
{
    process(*state, PROCESS_COLLECTIVE | PROCESS_VERBS, 10);
    init(*state, 20, 0xc0, 0);
    for (uint64_t i = 0; i < 3; i++) {
        create(*state, SERVICE, 0x9000 + i, 30 + i);
        change(*state, 0x9000 + i, QUEUE_PAIR_RTS, 40 + i);
    }
    const uint32_t third = last.queue_pair.queue_pair;
    assert_int_equal(last.counts[RECORD_FAILURE], 0);
    change(*state, 0x9000, QUEUE_PAIR_ERR, 50);
    change(*state, 0x9001, QUEUE_PAIR_ERR, 51);
    assert_int_equal(last.counts[RECORD_FAILURE], 1);
    assert_int_equal(last.failure.cause, FAILURE_QUEUE_PAIR_ERROR);
    assert_int_equal(last.failure.queue_pair, third - 2);
    assert_int_equal(last.failure.communicator, last.communicator.communicator);
    assert_int_equal(last.failure.at_ns, 50);
    assert_int_equal(last.failure.header.source, last.process.process);
    end_process(*state, 60);
    assert_int_equal(last.counts[RECORD_FAILURE], 2);
    assert_int_equal(last.failure.cause, FAILURE_PROCESS_ENDED);
    assert_int_equal(last.failure.queue_pair, third);
}

/* An orderly end is no failure. */
static void no_failure(void **state)
{
    process(*state, PROCESS_COLLECTIVE | PROCESS_VERBS, 10);
    init(*state, 20, 0xc0, 0);
    create(*state, SERVICE, 0x9000, 30);
    change(*state, 0x9000, QUEUE_PAIR_RTS, 40);
    const struct event_queue_pair_destroy destroy = {
        .header = header(EVENT_QUEUE_PAIR_DESTROY, SERVICE, 50), .pointer = 0x9000, .entered_ns = 49};
    tracker_event(*state, &destroy, sizeof destroy);
    end_process(*state, 60);
    assert_int_equal(last.counts[RECORD_FAILURE], 0);
}

static void warn(struct tracker *tracker, uint32_t tid, uint64_t at_ns)
{
    const struct event_failure event = {
        .header = header(EVENT_FAILURE, tid, at_ns), .cause = EVENT_FAILURE_WARNING, .text = "status=%d"};
    tracker_event(tracker, &event, sizeof event);
}

static void warnings_are_few(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 10);
    init(*state, 20, 0xc0, 0);
    warn(*state, SERVICE, 30);
    assert_int_equal(last.failure.communicator, last.communicator.communicator);
    assert_string_equal(last.failure.text, "status=%d");
    for (uint64_t i = 0; i < 20; i++)
        warn(*state, TID + 9, 31 + i);
    assert_int_equal(last.failure.communicator, 0);
    assert_int_equal(last.counts[RECORD_FAILURE], 8);
}

/* NCCL 2.13's request: rank, local rank, remote rank, shared, device, GPU-direct, channel, connection. */
static void ask(struct tracker *tracker, int origin, int socket, uint64_t at_ns)
{
    const int request[] = {origin, 0, 3, 1, 0, 0, 5, 1};
    struct event_proxy_message asked = {.header = header(EVENT_PROXY_MESSAGE, SERVICE, at_ns),
                                        .connection = 0xa0,
                                        .type = PROXY_SETUP,
                                        .request_bytes = sizeof request};
    const struct event_proxy_socket listens = {
        .header = header(EVENT_PROXY_SOCKET, SERVICE, at_ns + 1), .what = PROXY_SOCKET_LISTEN, .socket = socket};
    memcpy(asked.request, request, sizeof request);
    tracker_event(tracker, &asked, sizeof asked);
    tracker_event(tracker, &listens, sizeof listens);
    const struct event_proxy_socket accepts = {.header = header(EVENT_PROXY_SOCKET, SERVICE, at_ns + 2),
                                               .what = PROXY_SOCKET_ACCEPT,
                                               .listener = socket,
                                               .socket = socket + 10};
    tracker_event(tracker, &accepts, sizeof accepts);
}

static void create_over(struct tracker *tracker, uint64_t pointer, int socket, uint64_t at_ns)
{
    const struct event_queue_pair_create event = {
        .header = header(EVENT_QUEUE_PAIR_CREATE, SERVICE, at_ns), .pointer = pointer, .qpn = 18, .socket = socket};
    tracker_event(tracker, &event, sizeof event);
}

/* This rank is 2: what another one asked its proxy for is PXN. */
static void connections(void **state)
{
    process(*state, PROCESS_COLLECTIVE | PROCESS_VERBS, 10);
    init(*state, 20, 0xc0, 0);
    ask(*state, 2, 11, 30);
    ask(*state, 1, 12, 40);
    create_over(*state, 0x9000, 21, 50);
    assert_int_equal(last.queue_pair.flags, QUEUE_PAIR_SHARED);
    assert_int_equal(last.queue_pair.channel, 5);
    assert_int_equal(last.queue_pair.origin_rank, 2);
    assert_int_equal(last.queue_pair.far_rank, 3);
    assert_int_equal(last.queue_pair.side, QUEUE_PAIR_SIDE_RECEIVER);
    create_over(*state, 0x9001, 22, 51);
    assert_int_equal(last.queue_pair.flags, QUEUE_PAIR_SHARED | QUEUE_PAIR_PXN);
    assert_int_equal(last.queue_pair.origin_rank, 1);
    create_over(*state, 0x9002, 13, 52);
    assert_int_equal(last.queue_pair.flags, 0);
    assert_int_equal(last.queue_pair.channel, -1);
    lost = 1; /* a descriptor may be another socket by now */
    create_over(*state, 0x9003, 21, 53);
    assert_int_equal(last.queue_pair.channel, -1);
}

static void strange_events(void **state)
{
    struct event_call event = {.header = header(EVENT_CALL, TID, 20), .communicator = 1};
    tracker_event(*state, &event, sizeof event - 1);
    tracker_event(*state, &event, 3);
    event.header.kind = 0;
    tracker_event(*state, &event, sizeof event);
    event.header.kind = 12345;
    tracker_event(*state, &event, sizeof event);
    assert_int_equal(counters[COUNT_EVENTS], 0);
    call(*state, 0, 30);
    assert_int_equal(counters[COUNT_CALLS_INVALID], 1);
    const struct event_queue_pair_destroy destroy = {.header = header(EVENT_QUEUE_PAIR_DESTROY, TID, 40), .pointer = 9};
    tracker_event(*state, &destroy, sizeof destroy);
    assert_int_equal(counters[COUNT_QUEUE_PAIRS_UNKNOWN], 1);
    assert_int_equal(last.counts[RECORD_CALL] + last.counts[RECORD_QUEUE_PAIR], 0);
}

static struct tracker_resident resident(uint32_t qpn, uint32_t remote_qpn, uint8_t state)
{
    return (struct tracker_resident){.pid = PID,
                                     .tid = SERVICE,
                                     .qpn = qpn,
                                     .remote_qpn = remote_qpn,
                                     .port = 1,
                                     .state = state,
                                     .type = 2,
                                     .device = "rxe0"};
}

/* The kernel's list: what no probe saw is late, what one saw is not told twice, what is gone has ended. */
static void there_before_the_probes(void **state)
{
    struct tracker_resident list[2] = {resident(17, 0, QUEUE_PAIR_INIT), resident(18, 17, QUEUE_PAIR_RTS)};
    followed = 0;
    tracker_residents(*state, list, 2, 100);
    assert_int_equal(followed, PID);
    assert_int_equal(last.counts[RECORD_QUEUE_PAIR], 2);
    assert_int_equal(last.process.pid, PID);
    assert_int_equal(last.queue_pair.flags, QUEUE_PAIR_LATE);
    assert_int_equal(last.queue_pair.process, last.process.process);
    assert_int_equal(last.queue_pair.communicator, 0);
    assert_int_equal(last.queue_pair.qpn, 18);
    assert_int_equal(last.queue_pair.remote_qpn, 17);
    assert_int_equal(last.queue_pair.creator_tid, SERVICE);
    assert_int_equal(last.queue_pair.created_ns, 0);
    assert_string_equal(last.queue_pair.device, "rxe0");
    tracker_residents(*state, list, 2, 200);
    assert_int_equal(last.counts[RECORD_QUEUE_PAIR], 2); /* nothing new */
    list[0].state = QUEUE_PAIR_ERR;
    tracker_residents(*state, list, 1, 300);
    assert_int_equal(last.counts[RECORD_QUEUE_PAIR], 4);
    assert_int_equal(last.queue_pair.qpn, 18);
    assert_int_equal(last.queue_pair.destroyed_ns, 300);
    process(*state, PROCESS_VERBS, 310);
    create(*state, TID, 0x70, 320); /* QPN 17 again, seen by a probe: the older one is gone */
    tracker_residents(*state, list, 1, 400);
    assert_int_equal(last.queue_pair.qpn, 17);
    assert_int_equal(last.queue_pair.flags, QUEUE_PAIR_LATE);
    assert_int_equal(last.queue_pair.state, QUEUE_PAIR_ERR);
    assert_int_equal(last.queue_pair.destroyed_ns, 400);
    end_process(*state, 500);
    assert_int_equal(tracker_size(*state), 0);
}

static void note(struct tracker *tracker, uint64_t pointer, uint64_t hash, int32_t rank, uint64_t at_ns)
{
    const struct event_communicator event = {.header = header(EVENT_COMMUNICATOR, TID, at_ns),
                                             .pointer = pointer,
                                             .hash = hash,
                                             .rank = rank,
                                             .ranks_count = 4,
                                             .cuda_device = 1};
    tracker_event(tracker, &event, sizeof event);
}

/* The library's own notes: they name what was not seen being made, and never overrule what a call has passed. */
static void notes_of_the_library(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 20);
    init(*state, 30, 0x7000, 0);
    assert_int_equal(last.communicator.identity_kind, IDENTITY_OF_ID);
    note(*state, 0x7000, 99, 2, 40);
    assert_int_equal(last.communicator.hash, 99);
    assert_int_equal(last.communicator.cuda_device, 1);
    assert_int_equal(last.communicator.identity_kind, IDENTITY_OF_ID);
    note(*state, 0x8000, 98, 3, 50);
    assert_int_equal(last.communicator.flags, COMMUNICATOR_LATE);
    assert_int_equal(last.communicator.rank, 3);
    assert_int_equal(last.communicator.identity_kind, IDENTITY_OF_HASH);
    const struct record_communicator late = last.communicator;
    note(*state, 0x8000, 97, 3, 60); /* another one by now */
    assert_int_not_equal(last.communicator.communicator, late.communicator);
    assert_int_equal(last.communicator.hash, 97);
    assert_memory_not_equal(last.communicator.identity, late.identity, IDENTITY_BYTES);
    end_process(*state, 100);
}

static void a_note_that_contradicts(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 20);
    init(*state, 30, 0x7000, 0);
    note(*state, 0x7000, 99, 1, 40); /* rank 2 was passed */
    assert_int_equal(last.communicator.hash, 0);
    assert_int_equal(last.communicator.rank, 2);
    assert_int_equal(counters[COUNT_NOTES_CONTRADICTED], 1);
    end_process(*state, 100);
}

static void farewell(struct tracker *tracker, uint32_t how, uint64_t at_ns)
{
    const struct event_destroy event = {
        .header = header(EVENT_DESTROY, TID, at_ns), .communicator = 0x7000, .farewell = how};
    tracker_event(tracker, &event, sizeof event);
}

/* Revoked and finalized it still is there, until it is destroyed or aborted. */
static void ways_to_end(void **state)
{
    process(*state, PROCESS_COLLECTIVE, 20);
    init(*state, 30, 0x7000, 0);
    farewell(*state, FAREWELL_REVOKE, 40);
    farewell(*state, FAREWELL_FINALIZE, 41);
    assert_int_equal(last.communicator.flags, COMMUNICATOR_REVOKED | COMMUNICATOR_FINALIZED);
    assert_int_equal(last.communicator.destroyed_ns, 0);
    farewell(*state, FAREWELL_ABORT, 42);
    assert_int_equal(last.communicator.destroyed_ns, 42);
    assert_int_equal(last.communicator.ending, COMMUNICATOR_ABORTED);
    init(*state, 50, 0x7000, 0);
    farewell(*state, FAREWELL_DESTROY, 60);
    assert_int_equal(last.communicator.ending, COMMUNICATOR_DESTROYED);
    init(*state, 70, 0x7000, 0);
    end_process(*state, 80);
    assert_int_equal(last.communicator.ending, COMMUNICATOR_PROCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_life, setup, teardown),
        cmocka_unit_test_setup_teardown(failed_init, setup, teardown),
        cmocka_unit_test_setup_teardown(late_communicator, setup, teardown),
        cmocka_unit_test_setup_teardown(loss, setup, teardown),
        cmocka_unit_test_setup_teardown(lost_start, setup, teardown),
        cmocka_unit_test_setup_teardown(lost_end, setup, teardown),
        cmocka_unit_test_setup_teardown(pid_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(described_again, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_used_again_before_the_return, setup, teardown),
        cmocka_unit_test_setup_teardown(first_failures, setup, teardown),
        cmocka_unit_test_setup_teardown(no_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(warnings_are_few, setup, teardown),
        cmocka_unit_test_setup_teardown(connections, setup, teardown),
        cmocka_unit_test_setup_teardown(strange_events, setup, teardown),
        cmocka_unit_test_setup_teardown(there_before_the_probes, setup, teardown),
        cmocka_unit_test_setup_teardown(notes_of_the_library, setup, teardown),
        cmocka_unit_test_setup_teardown(a_note_that_contradicts, setup, teardown),
        cmocka_unit_test_setup_teardown(ways_to_end, setup, teardown),
    };
    return cmocka_run_group_tests_name("tracker", tests, NULL, NULL);
}
