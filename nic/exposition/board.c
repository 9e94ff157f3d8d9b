/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums by port. Invariants: a port is filled before it is counted in `ports_count`, and its record never changes after;
 * every other number is written whole and only rises, but for a port's states.
 */
#include "nic/exposition/board.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/counter.h"
#include "wire/log.h"

struct board_flow {
    uint32_t port;
    uint32_t generation;
    uint8_t vantage;
    uint64_t told[BOARD_TRAFFIC];
};

struct board {
    struct board_port ports[SOURCE_PORTS_MAX];
    size_t ports_count;
    uint32_t flows_max;
    struct board_flow *flows;
};

int board_create(struct board **board, uint32_t flows_max)
{
    struct board *made = calloc(1, sizeof *made);

    if (made != NULL)
        made->flows = calloc((size_t)flows_max + 1, sizeof *made->flows);
    if (made == NULL || made->flows == NULL) {
        free(made);
        return log_error_return(-ENOMEM, "no memory for the metrics of %u flows", flows_max);
    }
    made->flows_max = flows_max;
    *board = made;
    return 0;
}

void board_destroy(struct board **board)
{
    if (*board == NULL)
        return;
    free((*board)->flows);
    free(*board);
    *board = NULL;
}

static struct board_port *find_port(struct board *board, uint32_t number)
{
    for (size_t i = 0; i < board->ports_count; i++)
        if (board->ports[i].record.port == number)
            return &board->ports[i];
    return NULL;
}

static void take_port(struct board *board, const struct record_port *record)
{
    if (find_port(board, record->port) != NULL || board->ports_count == SOURCE_PORTS_MAX)
        return;
    board->ports[board->ports_count].record = *record;
    __atomic_store_n(&board->ports_count, board->ports_count + 1, __ATOMIC_RELEASE);
}

static void take_flow(struct board *board, const struct record_flow *record)
{
    if (record->flow > board->flows_max)
        return;
    struct board_flow *flow = &board->flows[record->flow];
    if (flow->generation != record->generation)
        memset(flow->told, 0, sizeof flow->told);
    flow->port = record->port;
    flow->generation = record->generation;
    flow->vantage = record->vantage < BOARD_VANTAGES ? record->vantage : VANTAGE_MIDDLE;
}

/* A field of 32 bits goes round; what it rose by does not. */
static void take_total(struct board *board, const struct record_flow_total *total)
{
    if (total->header.source > board->flows_max)
        return;
    struct board_flow *flow = &board->flows[total->header.source];
    struct board_port *port = find_port(board, flow->port);
    if (port == NULL)
        return;
    uint64_t *traffic = port->traffic[flow->vantage];
#define TRAFFIC(name, text, field, unit, help)                                                                         \
    counter_add(traffic, BOARD_##name,                                                                                 \
                (__typeof__(total->field))(total->field - (__typeof__(total->field))flow->told[BOARD_##name]));        \
    flow->told[BOARD_##name] = total->field;
#include "wire/metric/traffic.def"
#undef TRAFFIC
}

static void take_counter(struct board *board, const struct record_port_counter *record)
{
    struct board_port *port = find_port(board, record->header.source);
    unsigned slot = record->priority < BOARD_SLOTS - 1 ? record->priority : BOARD_SLOTS - 1;

    if (port == NULL || record->metric >= BOARD_METRICS)
        return;
    counter_set(port->counters[record->metric], slot, record->value);
    counter_set(port->known, record->metric, port->known[record->metric] | 1u << slot);
}

static void take_loss(struct board *board, const struct record_loss *record)
{
    struct board_port *port = find_port(board, record->header.source);

    if (port != NULL && record->cause == LOSS_PORT_DROP)
        counter_add(&port->lost_frames, 0, record->lost);
}

void board_take(void *context, const struct record_header *record)
{
    struct board *board = context;

    switch (record->kind) {
    case RECORD_PORT:
        take_port(board, (const struct record_port *)record);
        break;
    case RECORD_FLOW:
        take_flow(board, (const struct record_flow *)record);
        break;
    case RECORD_FLOW_TOTAL:
        take_total(board, (const struct record_flow_total *)record);
        break;
    case RECORD_PORT_COUNTER:
        take_counter(board, (const struct record_port_counter *)record);
        break;
    case RECORD_LOSS:
        take_loss(board, (const struct record_loss *)record);
        break;
    default:
        break;
    }
}

size_t board_ports(const struct board *board)
{
    return __atomic_load_n(&board->ports_count, __ATOMIC_ACQUIRE);
}

static void read_all(uint64_t *to, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = counter_read(from, i);
}

void board_read(const struct board *board, size_t index, struct board_port *port)
{
    const struct board_port *from = &board->ports[index];

    port->record = from->record;
    read_all(port->traffic[0], from->traffic[0], BOARD_VANTAGES * BOARD_TRAFFIC);
    read_all(port->known, from->known, BOARD_METRICS); /* before the numbers that it says are there */
    read_all(port->counters[0], from->counters[0], BOARD_METRICS * BOARD_SLOTS);
    port->lost_frames = counter_read(&from->lost_frames, 0);
}
