/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers count from 1 within one agent. A thread's tid is its rank's pid, its proxy's one more. */
#include "tests/simulation/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/chance.h"
#include "tests/simulation/view.h"

#define PID_FIRST      2000u
#define PID_STRIDE     10u
#define SWITCH_NS      4000u /* a thread waits for its CPU when it is woken */
#define CREATED_NS     1000u /* within the call that needs it */
#define READY_NS       4000u
#define ATTRIBUTES_ALL 0x1711b0u

enum marker_kind {
#define MARKER(name, number, text) MARKER_##name = (number),
#include "wire/marker.def"
#undef MARKER
};

struct delays { /* since the last sums */
    uint64_t run_queue_ns, io_wait_ns;
    uint32_t longest_ns, major_faults;
};

struct host {
    const struct setting *setting;
    struct agent *agent;
    uint32_t first_rank, communicators, queue_pairs;
    struct delays *delays; /* two a rank: its thread, its proxy */
    uint64_t ticked_ns;
};

struct host *host_create(const struct setting *setting, struct agent *agent, uint32_t first_rank)
{
    struct host *host = calloc(1, sizeof *host);

    if (host == NULL)
        abort();
    host->setting = setting;
    host->agent = agent;
    host->first_rank = first_rank;
    host->delays = calloc(2 * setting->gpus, sizeof *host->delays);
    return host;
}

void host_destroy(struct host *host)
{
    free(host->delays);
    free(host);
}

static uint32_t process_of(const struct host *host, uint32_t world_rank)
{
    return world_rank - host->first_rank + 1;
}

static uint32_t pid_of(const struct host *host, uint32_t world_rank)
{
    return PID_FIRST + PID_STRIDE * process_of(host, world_rank);
}

/* A NIC for each GPU, behind a root port of its own, and one more, which no rank has any use for: on the first machine
 * it is down. Where there is one GPU that is the second port of its card. */
static void tell_port(struct host *host, uint32_t number, uint64_t now_ns)
{
    const struct setting *setting = host->setting;
    uint32_t gpus = (uint32_t)setting->gpus;
    bool is_spare = number == gpus;
    bool is_down = is_spare ? host->first_rank == 0
                            : setting->fault == FAULT_RAIL && setting->fault_rank == host->first_rank + number;
    struct record_rdma_port port = {
        .header.source = number + 1,
        .at_ns = agent_time_ns(host->agent, now_ns),
        .bits_a_second = setting->link_gbps * 1000000000ULL,
        .numa_node = 0,
        .ports_count = gpus + 1,
        .number = 1,
        .state = is_down ? RDMA_PORT_DOWN : RDMA_PORT_ACTIVE,
        .link_layer = RDMA_LINK_ETHERNET,
    };
    uint32_t slot = gpus == 1 ? 0 : number;

    snprintf(port.device, sizeof port.device, "mlx5_%u", number);
    snprintf(port.bus, sizeof port.bus, "0000:%02x:00.%u", 0x11 + 2 * slot, gpus == 1 ? number : 0);
    snprintf(port.root_port, sizeof port.root_port, "0000:%02x:00.0", 0x10 + 2 * slot);
    agent_add(host->agent, RECORD_RDMA_PORT, &port, now_ns);
}

void host_begin(struct host *host, uint64_t now_ns)
{
    for (uint32_t number = 0; number <= host->setting->gpus; number++)
        tell_port(host, number, now_ns);
    for (uint32_t gpu = 0; gpu < host->setting->gpus; gpu++) {
        struct record_process process = {.process = gpu + 1, .pid = pid_of(host, host->first_rank + gpu)};
        struct record_process_fact fact = {.process = gpu + 1, .fact = PROCESS_FACT_RANK};
        process.started_ns = agent_time_ns(host->agent, now_ns);
        strcpy(process.command, "train");
        strcpy(process.library, "libnccl.so.2");
        agent_add(host->agent, RECORD_PROCESS, &process, now_ns);
        fact.text_bytes = (uint32_t)snprintf(fact.text, sizeof fact.text, "%u", host->first_rank + gpu);
        agent_add(host->agent, RECORD_PROCESS_FACT, &fact, now_ns);
    }
    host->ticked_ns = now_ns;
}

uint32_t host_add_communicator(struct host *host, const struct host_member *member, uint64_t now_ns)
{
    struct record_communicator record = {
        .communicator = ++host->communicators,
        .process = process_of(host, member->world_rank),
        .pointer = 0x7f0000000000 + 0x10000ULL * host->communicators,
        .ranks_count = (int32_t)member->ranks_count,
        .rank = (int32_t)member->rank,
        .created_ns = agent_time_ns(host->agent, member->created_ns),
        .ready_ns = agent_time_ns(host->agent, member->ready_ns),
        .hash = chance_bits(member->identity, CHANCE_IDENTITY, 0),
        .cuda_device = (int32_t)(member->world_rank - host->first_rank),
        .creator = COMMUNICATOR_BY_INIT_RANK,
        .identity_kind = IDENTITY_OF_ID,
        .library_version = host->setting->no_version ? 0 : setting_version(host->setting),
    };

    memcpy(record.identity, &member->identity, sizeof member->identity);
    memcpy(record.identity + 8, &record.hash, sizeof record.hash);
    agent_add(host->agent, RECORD_COMMUNICATOR, &record, now_ns);
    return record.communicator;
}

void host_add_queue_pair(struct host *host, const struct host_queue_pair *pair, uint64_t now_ns)
{
    struct record_queue_pair record = {
        .queue_pair = ++host->queue_pairs,
        .process = process_of(host, pair->world_rank),
        .communicator = pair->communicator,
        .qpn = pair->qpn,
        .remote_qpn = pair->remote_qpn,
        .port = 1,
        .state = QUEUE_PAIR_RTS,
        .type = 2,
        .creator_tid = pid_of(host, pair->world_rank) + 1,
        .connection = pair->connection,
        .created_ns = agent_time_ns(host->agent, now_ns + CREATED_NS),
        .ready_ns = agent_time_ns(host->agent, now_ns + READY_NS),
        .attributes = ATTRIBUTES_ALL,
        .generation = 1,
        .path_mtu_bytes = FRAME_BYTES,
        .timeout = 18,
        .retry_count = 7,
        .rnr_retry = 7,
        .side = (uint8_t)pair->side,
        .origin_rank = pair->origin_rank,
        .flags = pair->origin_rank < 0 ? 0 : QUEUE_PAIR_PXN,
        .far_rank = pair->far_rank,
        .channel = (int32_t)pair->channel,
    };

    view_address(record.address, pair->nic);
    view_address(record.remote_address, pair->remote_nic);
    snprintf(record.device, sizeof record.device, "mlx5_%u", pair->nic - host->first_rank);
    agent_add(host->agent, RECORD_QUEUE_PAIR, &record, now_ns);
}

void host_add_call(struct host *host, struct record_call *call, uint64_t now_ns)
{
    call->entered_ns = agent_time_ns(host->agent, call->entered_ns);
    call->enqueued_ns = agent_time_ns(host->agent, call->enqueued_ns);
    call->tid = pid_of(host, call->tid);
    call->flags |= 1 << CALL_RESULT_SHIFT;
    agent_add(host->agent, RECORD_CALL, call, now_ns);
}

void host_add_wait(struct host *host, uint32_t world_rank, uint64_t from_ns, uint64_t to_ns)
{
    struct record_marker record = {
        .header.source = process_of(host, world_rank),
        .entered_ns = agent_time_ns(host->agent, from_ns),
        .duration_ns = to_ns - from_ns,
        .tid = pid_of(host, world_rank),
        .marker = MARKER_DEVICE_SYNCHRONIZE,
    };

    agent_add(host->agent, RECORD_MARKER, &record, to_ns);
}

void host_delay(struct host *host, uint32_t world_rank, bool proxy, enum host_delay_cause cause, uint64_t delay_ns)
{
    struct delays *delays = &host->delays[2 * (world_rank - host->first_rank) + (proxy ? 1 : 0)];

    if (cause == DELAY_CPU) {
        delays->run_queue_ns += delay_ns;
        delays->longest_ns = delay_ns > delays->longest_ns ? (uint32_t)delay_ns : delays->longest_ns;
    } else {
        delays->io_wait_ns += delay_ns;
        delays->major_faults += cause == DELAY_MEMORY ? (uint32_t)(delay_ns / 100000 + 1) : 0;
    }
}

static void tell_delay(struct host *host, uint32_t thread, uint64_t now_ns)
{
    struct delays *delays = &host->delays[thread];
    uint32_t rank = host->first_rank + thread / 2, proxy = thread % 2;
    uint64_t spent_ns = now_ns - host->ticked_ns;
    double woken = chance_even(host->setting->seed, CHANCE_HOST, now_ns * 4096 + rank * 2 + proxy);
    struct record_host_delay record = {
        .header.source = process_of(host, rank),
        .run_queue_ns = delays->run_queue_ns + (uint64_t)(woken * 20 * SWITCH_NS),
        .io_wait_ns = delays->io_wait_ns,
        .run_queue_longest_ns = delays->longest_ns + SWITCH_NS,
        .switches = 20 + (uint32_t)(woken * 30),
        .minor_faults = (uint32_t)(woken * 40),
        .major_faults = delays->major_faults,
        .tid = pid_of(host, rank) + proxy,
        .role = proxy == 0 ? HOST_DELAY_CALLS : HOST_DELAY_SERVES,
    };

    record.sleep_ns = (spent_ns - record.run_queue_ns) / 3;
    record.from_ns = agent_time_ns(host->agent, host->ticked_ns);
    record.to_ns = agent_time_ns(host->agent, now_ns);
    agent_add(host->agent, RECORD_HOST_DELAY, &record, now_ns);
    *delays = (struct delays){0};
}

void host_tick(struct host *host, uint64_t now_ns)
{
    for (uint32_t thread = 0; thread < 2 * host->setting->gpus; thread++)
        tell_delay(host, thread, now_ns);
    host->ticked_ns = now_ns;
}
