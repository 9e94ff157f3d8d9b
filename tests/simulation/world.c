/* SPDX-License-Identifier: BSD-2-Clause */
/* Each node has two agents, a NIC's and a host's, each with a clock of its own and a capture file of its own. */
#include "tests/simulation/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/simulation/chance.h"

#define TICK_NS    50000000ULL
#define FIRST_QPN  17u
#define NAME_BYTES 4096

struct node {
    struct agent *nic_agent, *host_agent;
    struct capture_writer *nic_writer, *host_writer;
    struct view *view;
    struct host *host;
};

struct world {
    const struct setting *setting;
    struct agenda *agenda;
    struct fabric *fabric;
    struct node *nodes;
    struct capture_writer *shared;
    struct ledger *ledger;
    uint32_t *qpns; /* by NIC: how many */
    uint32_t names;
    uint64_t ticks;
    bool ends;
};

static struct agent *new_agent(const struct setting *setting, uint32_t node, enum emitter_kind kind,
                               struct capture_writer *writer)
{
    uint64_t name = (uint64_t)node * 8 + kind;
    struct agent_options options = {.kind = kind, .node = node, .seed = setting->seed, .writer = writer};

    options.offset_ns = (int64_t)(chance_even(setting->seed, CHANCE_CLOCK, name) * (double)setting->clock_offset_ns);
    options.drift_ppb = (int64_t)((chance_even(setting->seed + 1, CHANCE_CLOCK, name) * 2 - 1) * 1000 *
                                  (double)setting->clock_drift_ppm);
    options.instance = kind == EMITTER_NIC ? "nic" : "host";
    return agent_create(&options);
}

static int open_file(struct capture_writer **writer, const struct setting *setting, const char *kind, uint32_t node)
{
    char path[NAME_BYTES];

    if (setting->folder == NULL)
        return 0;
    int length = node == UINT32_MAX ? snprintf(path, sizeof path, "%s/%s.capture", setting->folder, kind)
                                    : snprintf(path, sizeof path, "%s/%s-%u.capture", setting->folder, kind, node);
    return length >= (int)sizeof path ? -ENAMETOOLONG : capture_writer_open(writer, path, 0);
}

static int init_node(struct world *world, uint32_t number)
{
    const struct setting *setting = world->setting;
    struct node *node = &world->nodes[number];
    uint32_t first = number * (uint32_t)setting->gpus;
    struct capture_writer *nic = world->shared, *host = world->shared;

    if (!setting->one_file) {
        if (open_file(&node->nic_writer, setting, "nic", number) != 0)
            return -EIO;
        if (!setting->no_host && open_file(&node->host_writer, setting, "host", number) != 0)
            return -EIO;
        nic = node->nic_writer;
        host = node->host_writer;
    }
    node->nic_agent = new_agent(setting, number, EMITTER_NIC, nic);
    node->view = view_create(setting, node->nic_agent, world->fabric, first);
    if (setting->no_host)
        return 0;
    node->host_agent = new_agent(setting, number, EMITTER_HOST, host);
    node->host = host_create(setting, node->host_agent, first);
    return 0;
}

struct world *world_create(const struct setting *setting)
{
    struct world *world = calloc(1, sizeof *world);

    if (world == NULL)
        abort();
    world->setting = setting;
    world->agenda = agenda_create();
    world->fabric = fabric_create(setting);
    world->ledger = setting->operations ? ledger_create() : NULL;
    world->nodes = calloc(setting->nodes, sizeof *world->nodes);
    world->qpns = calloc(world_ranks(world), sizeof *world->qpns);
    int error = setting->one_file ? open_file(&world->shared, setting, "all", UINT32_MAX) : 0;
    for (uint32_t node = 0; error == 0 && node < setting->nodes; node++)
        error = init_node(world, node);
    if (error == 0)
        return world;
    world_destroy(world);
    return NULL;
}

static int fini_node(struct node *node)
{
    if (node->view != NULL)
        view_destroy(node->view);
    if (node->host != NULL)
        host_destroy(node->host);
    agent_destroy(node->nic_agent);
    agent_destroy(node->host_agent);
    int nic = capture_writer_close(&node->nic_writer), host = capture_writer_close(&node->host_writer);
    return nic != 0 ? nic : host;
}

int world_destroy(struct world *world)
{
    int error = 0;

    for (uint32_t node = 0; node < world->setting->nodes; node++) {
        int failed = fini_node(&world->nodes[node]);
        error = error != 0 ? error : failed;
    }
    int failed = capture_writer_close(&world->shared);
    error = error != 0 ? error : failed;
    agenda_destroy(world->agenda);
    fabric_destroy(world->fabric);
    ledger_destroy(world->ledger);
    free(world->nodes);
    free(world->qpns);
    free(world);
    return error;
}

const struct setting *world_setting(const struct world *world)
{
    return world->setting;
}

struct agenda *world_agenda(const struct world *world)
{
    return world->agenda;
}

struct fabric *world_fabric(const struct world *world)
{
    return world->fabric;
}

struct ledger *world_ledger(const struct world *world)
{
    return world->ledger;
}

uint64_t world_now_ns(const struct world *world)
{
    return agenda_now_ns(world->agenda);
}

uint32_t world_ranks(const struct world *world)
{
    return (uint32_t)(world->setting->nodes * world->setting->gpus);
}

uint64_t world_records(const struct world *world)
{
    uint64_t records = 0;

    for (uint32_t node = 0; node < world->setting->nodes; node++) {
        records += agent_records(world->nodes[node].nic_agent);
        records += world->nodes[node].host_agent == NULL ? 0 : agent_records(world->nodes[node].host_agent);
    }
    return records;
}

static const struct node *node_of(const struct world *world, uint32_t rank)
{
    return &world->nodes[rank / world->setting->gpus];
}

struct view *world_view(const struct world *world, uint32_t rank)
{
    return node_of(world, rank)->view;
}

struct host *world_host(const struct world *world, uint32_t rank)
{
    return node_of(world, rank)->host;
}

uint32_t world_nic(const struct world *world, uint32_t rank)
{
    const struct setting *setting = world->setting;
    uint32_t gpus = (uint32_t)setting->gpus;

    return setting->fault == FAULT_RAIL && rank == setting->fault_rank ? rank / gpus * gpus + (rank + 1) % gpus : rank;
}

uint32_t world_qpn(struct world *world, uint32_t nic)
{
    return FIRST_QPN + world->qpns[nic]++;
}

uint32_t world_name(struct world *world)
{
    return ++world->names;
}

static void tick(void *subject, uint64_t argument)
{
    struct world *world = subject;
    uint64_t now_ns = world_now_ns(world);

    (void)argument;
    if (world->ends)
        return;
    world->ticks++;
    for (uint32_t i = 0; i < world->setting->nodes; i++) {
        struct node *node = &world->nodes[i];
        if (world->ticks % 2 == 0)
            view_tick(node->view, now_ns);
        if (world->ticks % 2 == 0 && node->host != NULL)
            host_tick(node->host, now_ns);
        agent_tick(node->nic_agent, now_ns);
        if (node->host != NULL)
            agent_tick(node->host_agent, now_ns);
    }
    agenda_add(world->agenda, now_ns + TICK_NS, tick, world, 0);
}

static void begin(void *subject, uint64_t argument)
{
    struct world *world = subject;
    uint64_t now_ns = world_now_ns(world);

    for (uint32_t i = 0; i < world->setting->nodes; i++) {
        struct node *node = &world->nodes[i];
        agent_begin(node->nic_agent, now_ns);
        view_begin(node->view, now_ns);
        if (node->host == NULL)
            continue;
        agent_begin(node->host_agent, now_ns);
        host_begin(node->host, now_ns);
    }
    tick(subject, argument);
}

void world_begin(struct world *world)
{
    agenda_add(world->agenda, 1000000000ULL, begin, world, 0);
    while (world->ticks == 0)
        agenda_step(world->agenda);
}

void world_end(struct world *world)
{
    uint64_t now_ns = world_now_ns(world);

    world->ends = true;
    for (uint32_t i = 0; i < world->setting->nodes; i++) {
        view_tick(world->nodes[i].view, now_ns);
        agent_end(world->nodes[i].nic_agent, now_ns);
        if (world->nodes[i].host != NULL)
            agent_end(world->nodes[i].host_agent, now_ns);
    }
}
