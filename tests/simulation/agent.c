/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A batch is filled until it is nearly full or a tick comes. Messages lie in it as runs; the coder begins anew with
 * each batch. The reference clock is the true one, moved by a constant so that nothing works by chance.
 */
#include "tests/simulation/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/chance.h"
#include "wire/message_run.h"

#define BATCH_BYTES     (48u * 1024u)
#define ROOM_BYTES      512u /* no record is longer */
#define REALTIME_NS     1790000000000000000ULL
#define HEARTBEAT_NS    100000000ULL
#define SECOND_NS       1000000000ULL
#define TRIP_NS         9000.0 /* one way, at least */
#define EXCHANGES_DENSE 100u

struct agent {
    struct agent_options options;
    uint64_t emitter_id, boot_id, sequence;
    uint64_t begun_ns, heartbeat_ns, pair_ns, exchange_ns, exchanges, records;
    struct message_coder coder;
    size_t used, run_at; /* run_at: where an open run begins, 0 = none */
    uint32_t count, run_count;
    uint8_t batch[BATCH_BYTES];
};

struct agent *agent_create(const struct agent_options *options)
{
    struct agent *agent = calloc(1, sizeof *agent);
    uint64_t name = (uint64_t)options->node * 8 + options->kind;

    if (agent == NULL)
        abort();
    agent->options = *options;
    agent->emitter_id = chance_bits(1, CHANCE_IDENTITY, name);
    agent->boot_id = chance_bits(options->seed + 2, CHANCE_IDENTITY, name);
    agent->used = sizeof(struct batch_header);
    return agent;
}

void agent_destroy(struct agent *agent)
{
    free(agent);
}

uint64_t agent_time_ns(const struct agent *agent, uint64_t true_ns)
{
    if (true_ns == 0)
        return 0;
    __int128 drift = (__int128)true_ns * agent->options.drift_ppb / 1000000000;
    return (uint64_t)((int64_t)true_ns + (int64_t)drift + agent->options.offset_ns);
}

static void end_run(struct agent *agent)
{
    if (agent->run_at == 0)
        return;
    size_t bytes = message_run_end(agent->batch + agent->run_at, agent->used - agent->run_at, agent->run_count);
    agent->used = agent->run_at + bytes;
    agent->run_at = 0;
    agent->count++;
}

static void send(struct agent *agent, uint64_t now_ns)
{
    struct batch_header header = {
        .magic = BATCH_MAGIC,
        .version = BATCH_VERSION,
        .emitter_kind = (uint16_t)agent->options.kind,
        .emitter_id = agent->emitter_id,
        .boot_id = agent->boot_id,
        .sent_ns = agent_time_ns(agent, now_ns),
    };

    end_run(agent);
    if (agent->count == 0)
        return;
    header.sequence = agent->sequence++;
    header.records_count = agent->count;
    header.records_bytes = (uint32_t)(agent->used - sizeof header);
    memcpy(agent->batch, &header, sizeof header);
    if (agent->options.writer != NULL && capture_write(agent->options.writer, agent->batch, agent->used) != 0)
        exit(1);
    agent->used = sizeof header;
    agent->count = 0;
    memset(&agent->coder, 0, sizeof agent->coder);
}

static void make_room(struct agent *agent, uint64_t now_ns)
{
    if (agent->used + ROOM_BYTES > sizeof agent->batch)
        send(agent, now_ns);
}

void agent_add(struct agent *agent, enum record_kind kind, void *record, uint64_t now_ns)
{
    struct record_header *header = record;
    size_t bytes = record_kind_bytes(kind);

    end_run(agent);
    make_room(agent, now_ns);
    header->kind = kind;
    header->length_bytes = (uint16_t)bytes;
    memcpy(agent->batch + agent->used, record, bytes);
    agent->used += bytes;
    agent->count++;
    agent->records++;
}

void agent_add_message(struct agent *agent, struct record_message *message, uint64_t now_ns)
{
    make_room(agent, now_ns);
    if (agent->run_at == 0) {
        agent->run_at = agent->used;
        agent->run_count = 0;
        agent->used += sizeof(struct record_message_run);
    }
    message->first_ns = agent_time_ns(agent, message->first_ns);
    uint8_t *end = message_coder_put(&agent->coder, agent->batch + agent->used, message);
    agent->used = (size_t)(end - agent->batch);
    agent->run_count++;
    agent->records++;
}

static void add_heartbeat(struct agent *agent, uint64_t now_ns, uint32_t flags)
{
    struct record_heartbeat heartbeat = {.at_ns = agent_time_ns(agent, now_ns), .flags = flags};

    agent_add(agent, RECORD_HEARTBEAT, &heartbeat, now_ns);
    agent->heartbeat_ns = now_ns;
}

/* The shortest trips are alike; one in five meets a queue, some a long one. */
static uint64_t trip_ns(const struct agent *agent, uint64_t name)
{
    uint64_t own = agent->emitter_id ^ name;
    double queue = chance_decaying(agent->options.seed, CHANCE_EXCHANGE, own);
    bool waits = chance_even(agent->options.seed + 1, CHANCE_EXCHANGE, own) < 0.2;

    return (uint64_t)(TRIP_NS + queue * (waits ? 60000 : 1500));
}

static void add_exchange(struct agent *agent, uint64_t now_ns)
{
    uint64_t replied = now_ns - trip_ns(agent, 2 * agent->exchanges + 1), received = replied - 2000;
    uint64_t sent = received - trip_ns(agent, 2 * agent->exchanges);
    struct record_clock_sample sample = {
        .reference_boot = 0x7ef,
        .sent_ns = agent_time_ns(agent, sent),
        .received_ns = received + AGENT_REFERENCE_NS,
        .replied_ns = replied + AGENT_REFERENCE_NS,
        .returned_ns = agent_time_ns(agent, now_ns),
    };

    agent_add(agent, RECORD_CLOCK_SAMPLE, &sample, now_ns);
    agent->exchanges++;
    agent->exchange_ns = now_ns;
}

static void add_pair(struct agent *agent, uint64_t now_ns)
{
    struct record_clock_pair pair = {.monotonic_ns = agent_time_ns(agent, now_ns), .bound_ns = 400};

    pair.realtime_ns = now_ns + REALTIME_NS;
    pair.tai_ns = pair.realtime_ns + 37 * SECOND_NS;
    agent_add(agent, RECORD_CLOCK_PAIR, &pair, now_ns);
    agent->pair_ns = now_ns;
}

void agent_begin(struct agent *agent, uint64_t true_ns)
{
    struct record_hello hello = {
        .started_ns = agent_time_ns(agent, true_ns),
        .pid = 4000 + (uint32_t)agent->options.kind,
        .window_ns = agent->options.kind == EMITTER_NIC ? 8000 : 0,
    };
    uint64_t machine = chance_bits(agent->options.seed + 3, CHANCE_IDENTITY, agent->options.node);

    memcpy(hello.kernel_boot, &machine, sizeof machine);
    hello.kernel_boot[15] = agent->options.kind; /* a SmartNIC's machine is another one than its host */
    snprintf(hello.host, sizeof hello.host, "node%u%s", agent->options.node,
             agent->options.kind == EMITTER_NIC ? "-nic" : "");
    snprintf(hello.version, sizeof hello.version, "%s", QPSCOPE_VERSION);
    snprintf(hello.instance, sizeof hello.instance, "%s", agent->options.instance);
    agent->begun_ns = true_ns;
    agent_add(agent, RECORD_HELLO, &hello, true_ns);
    add_pair(agent, true_ns);
    add_heartbeat(agent, true_ns, 0);
}

void agent_tick(struct agent *agent, uint64_t now_ns)
{
    uint64_t every = agent->exchanges < EXCHANGES_DENSE ? HEARTBEAT_NS / 2 : SECOND_NS;

    if (agent->begun_ns == now_ns)
        every = 0;
    if (now_ns - agent->exchange_ns >= every)
        add_exchange(agent, now_ns);
    if (now_ns - agent->pair_ns >= SECOND_NS)
        add_pair(agent, now_ns);
    if (now_ns - agent->heartbeat_ns >= HEARTBEAT_NS)
        add_heartbeat(agent, now_ns, 0);
    send(agent, now_ns);
}

void agent_end(struct agent *agent, uint64_t now_ns)
{
    add_exchange(agent, now_ns);
    add_heartbeat(agent, now_ns, HEARTBEAT_LAST);
    send(agent, now_ns);
}

uint64_t agent_records(const struct agent *agent)
{
    return agent->records;
}
