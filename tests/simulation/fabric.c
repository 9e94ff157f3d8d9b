/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cut-through: each port on the way begins when the one before has begun and it is free itself, and ends no sooner than
 * what comes in. What a fault takes is put on the sender's port, so that whoever is behind it waits too.
 */
#include "tests/simulation/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulation/chance.h"

#define SMALL_BYTES 1024u  /* goes between others' frames */
#define NAK_TURN_NS 12000u /* from a lost frame to its being sent again */
#define NAK_FRAMES  16u    /* that were under way by then, and are sent again too */
#define HOPS_MAX    4

struct port {
    uint64_t free_ns;
};

struct fabric {
    const struct setting *setting;
    uint32_t nics;
    struct port *send, *receive, *up, *down; /* up: leaf to spine, on behalf of the NIC; down: spine to leaf */
    struct fabric_count *counts;
};

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);

    if (memory == NULL)
        abort();
    return memory;
}

struct fabric *fabric_create(const struct setting *setting)
{
    struct fabric *fabric = zeroed(1, sizeof *fabric);

    fabric->setting = setting;
    fabric->nics = (uint32_t)(setting->nodes * setting->gpus);
    fabric->send = zeroed(4 * fabric->nics, sizeof *fabric->send);
    fabric->receive = fabric->send + fabric->nics;
    fabric->up = fabric->receive + fabric->nics;
    fabric->down = fabric->up + fabric->nics;
    fabric->counts = zeroed(fabric->nics, sizeof *fabric->counts);
    return fabric;
}

void fabric_destroy(struct fabric *fabric)
{
    free(fabric->send);
    free(fabric->counts);
    free(fabric);
}

static uint32_t frames_of(uint32_t bytes)
{
    return bytes == 0 ? 1 : (bytes + FRAME_BYTES - 1) / FRAME_BYTES;
}

uint64_t fabric_bytes_ns(const struct fabric *fabric, uint64_t bytes)
{
    uint64_t frames = bytes == 0 ? 1 : (bytes + FRAME_BYTES - 1) / FRAME_BYTES;

    return (bytes + frames * FRAME_HEADER_BYTES) * 8 / fabric->setting->link_gbps;
}

static bool far(const struct fabric *fabric, uint32_t from, uint32_t to)
{
    uint64_t leaf_nics = fabric->setting->leaf_nodes * fabric->setting->gpus;

    return from / leaf_nics != to / leaf_nics;
}

uint64_t fabric_latency_ns(const struct fabric *fabric, uint32_t from, uint32_t to)
{
    return fabric->setting->latency_ns * (far(fabric, from, to) ? 2 : 1);
}

/* How many of the message's frames, or of 1, meet what meets `ppm` of a million. */
static uint32_t some(const struct fabric *fabric, const struct fabric_message *message, uint32_t frames, uint64_t ppm)
{
    double wanted = (double)frames * (double)ppm / 1e6;
    uint32_t whole = (uint32_t)wanted;
    double chance = chance_even(fabric->setting->seed, CHANCE_FRAMES, message->name);

    return whole + (chance < wanted - (double)whole ? 1 : 0);
}

/* What the fault makes of a message that would have the port for `took_ns`; returns how long it has it. */
static uint64_t suffer(struct fabric *fabric, const struct fabric_message *message, uint64_t took_ns,
                       struct passage *passage)
{
    const struct setting *setting = fabric->setting;
    uint64_t slowed_ns = took_ns * 100 / setting->fault_rate_percent;
    struct fabric_count *count = &fabric->counts[message->from];
    uint32_t frames = frames_of(message->bytes);

    switch (setting->fault) {
    case FAULT_RATE:
    case FAULT_NIC:
        return slowed_ns;
    case FAULT_CONGESTION:
        passage->marked_frames = frames / 4;
        passage->cnps = some(fabric, message, frames, 30000);
        count->cnps_handled += passage->cnps;
        return slowed_ns;
    case FAULT_PAUSE:
        passage->paused_ns = slowed_ns - took_ns;
        count->paused_ns += passage->paused_ns;
        count->pauses += some(fabric, message, frames, 100000);
        return slowed_ns;
    case FAULT_LOSS:
        passage->naks = some(fabric, message, frames, setting->fault_loss_ppm);
        passage->resent_frames = passage->naks * (frames < NAK_FRAMES ? frames : NAK_FRAMES);
        count->resent += passage->resent_frames;
        count->naks += passage->naks;
        return took_ns + passage->naks * NAK_TURN_NS +
               (passage->naks == 0 ? 0 : fabric_bytes_ns(fabric, (uint64_t)passage->resent_frames * FRAME_BYTES));
    default:
        return took_ns;
    }
}

/* What keeps a message on its way, or at the receiver. */
static uint64_t delay_ns(struct fabric *fabric, const struct fabric_message *message, bool faulty,
                         struct passage *passage)
{
    const struct setting *setting = fabric->setting;
    double chance = chance_even(setting->seed, CHANCE_LATENCY, message->name);
    uint64_t delay = (uint64_t)(chance * 4 * (double)setting->noise_percent);

    if (!faulty || message->bytes <= SMALL_BYTES)
        return delay;
    if (setting->fault == FAULT_JITTER && message->from == setting->fault_rank)
        delay += (uint64_t)(chance * (double)setting->fault_delay_ns);
    if (setting->fault == FAULT_RECEIVER && message->to == setting->fault_rank) {
        passage->rnr_naks = some(fabric, message, 1, setting->fault_loss_ppm);
        passage->rnr_wait_ns = passage->rnr_naks * setting->fault_delay_ns;
        fabric->counts[message->to].rnr_sent += passage->rnr_naks;
        fabric->counts[message->from].rnr_received += passage->rnr_naks;
        delay += passage->rnr_wait_ns;
    }
    return delay;
}

static void count_bytes(struct fabric *fabric, const struct fabric_message *message, const struct passage *passage)
{
    uint64_t wire =
        message->bytes + (uint64_t)(frames_of(message->bytes) + passage->resent_frames) * FRAME_HEADER_BYTES;

    fabric->counts[message->from].sent_bytes += wire;
    fabric->counts[message->to].received_bytes += wire;
    fabric->counts[message->to].marked += passage->marked_frames;
    fabric->counts[message->to].cnps_sent += passage->cnps;
}

/* The ports that a message passes; returns how many. */
static unsigned find_way(struct fabric *fabric, const struct fabric_message *message, struct port **way)
{
    way[0] = &fabric->send[message->from];
    way[1] = &fabric->receive[message->to];
    if (!far(fabric, message->from, message->to))
        return 2;
    way[1] = &fabric->up[message->from];
    way[2] = &fabric->down[message->to];
    way[3] = &fabric->receive[message->to];
    return 4;
}

/* How long the receiver's port has the message: its NIC may be slower than the wire. */
static uint64_t receiving_ns(const struct fabric *fabric, const struct fabric_message *message, uint64_t usual_ns)
{
    const struct setting *setting = fabric->setting;
    bool slow = setting->fault == FAULT_NIC && message->to == setting->fault_rank &&
                setting_faulty(setting, message->step) && message->bytes > SMALL_BYTES;

    return slow ? usual_ns * 100 / setting->fault_rate_percent : usual_ns;
}

void fabric_pass(struct fabric *fabric, const struct fabric_message *message, struct passage *passage)
{
    struct port *way[HOPS_MAX];
    bool faulty = setting_faulty(fabric->setting, message->step), small = message->bytes <= SMALL_BYTES;
    unsigned hops = find_way(fabric, message, way);
    uint64_t hop_ns = fabric_latency_ns(fabric, message->from, message->to) / (hops - 1);
    uint64_t usual_ns = fabric_bytes_ns(fabric, message->bytes), took_ns = usual_ns;
    uint64_t begin_ns = message->posted_ns, end_ns = 0;

    memset(passage, 0, sizeof *passage);
    if (faulty && message->from == fabric->setting->fault_rank && !small)
        took_ns = suffer(fabric, message, usual_ns, passage);
    uint64_t kept_ns = delay_ns(fabric, message, faulty, passage);
    for (unsigned hop = 0; hop < hops; hop++) {
        uint64_t flows_ns = hop == 0 ? 0 : end_ns + hop_ns;
        begin_ns += hop == 0 ? 0 : hop_ns;
        begin_ns = !small && way[hop]->free_ns > begin_ns ? way[hop]->free_ns : begin_ns;
        bool last = hop + 1 == hops;
        end_ns = begin_ns + (hop == 0 ? took_ns : last ? receiving_ns(fabric, message, usual_ns) : usual_ns);
        end_ns = end_ns < flows_ns ? flows_ns : end_ns;
        if (!small)
            way[hop]->free_ns = end_ns;
        if (hop == 0)
            passage->first_ns = begin_ns, passage->last_ns = end_ns;
    }
    passage->arrives_first_ns = begin_ns + kept_ns;
    passage->arrives_last_ns = end_ns + kept_ns;
    count_bytes(fabric, message, passage);
}

const struct fabric_count *fabric_counts(const struct fabric *fabric, uint32_t nic)
{
    return &fabric->counts[nic];
}
