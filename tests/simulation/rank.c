/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host gives out deeds one after the other and runs ahead of the GPU; what it has given out reaches the GPU a
 * launch later. The compute stream takes its deeds in order; an operation begins when all computing before it is done
 * and the operation before it on its communicator too. A step ends with the host's wait for all of it.
 */
#include "tests/simulation/rank.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulation/chance.h"

#define FLOAT_TYPE   7
#define BYTE_TYPE    0
#define HOST_NS      9000u   /* the host's time for a deed */
#define LAUNCH_NS    4000u   /* from the host to the GPU */
#define WAKE_NS      12000u  /* from the GPU's end to the host */
#define BETWEEN_NS   150000u /* the host's work between steps: data, optimiser, log */
#define RETURN_NS    6000u
#define CYCLE        10u /* steps from checkpoint to checkpoint, evaluation to evaluation */
#define WARM_STEPS   5u
#define GRAPH_STEP   3u
#define SPREAD       0.004 /* of a kernel's time, one standard deviation */
#define SPEED_SPREAD 0.002 /* of GPUs */

struct given { /* a deed that the host has given out */
    enum deed_kind kind;
    uint32_t stream;
    uint64_t ns;
    struct kernel *kernel;
    uint32_t computed; /* deeds of the compute stream that come before it */
    uint32_t ended;    /* of a wait: operations of the stream that must have ended */
};

struct stream {
    uint32_t next, given, ended; /* places among `given` of the stream; begun = next */
    bool busy;
};

struct rank {
    struct world *world;
    const struct setting *setting;
    struct program *program;
    struct truth *truth;
    uint32_t number;
    uint64_t step, steps;
    struct deed deeds[PROGRAM_DEEDS_MAX];
    uint32_t deeds_count, at;         /* at: the host's next deed */
    struct group_exchange *exchanges; /* of the deeds */
    struct given compute[PROGRAM_DEEDS_MAX], calls[PROGRAM_STREAMS_MAX][PROGRAM_DEEDS_MAX];
    struct stream streams[PROGRAM_STREAMS_MAX], computing;
    uint32_t calls_groups; /* groups of calls, ever */
    uint32_t captured;     /* calls, ever */
    bool waits, done, computed_one;
    uint64_t waited_ns; /* since when its host waits for the GPU */
};

static void host_next(void *subject, uint64_t argument);
static void advance(void *subject, uint64_t argument);

struct rank *rank_create(struct world *world, struct program *program, struct truth *truth, uint32_t number)
{
    struct rank *rank = calloc(1, sizeof *rank);

    if (rank == NULL)
        abort();
    rank->world = world;
    rank->setting = world_setting(world);
    rank->program = program;
    rank->truth = truth;
    rank->number = number;
    rank->step = program_first_step(program, number);
    rank->steps = rank->setting->steps;
    return rank;
}

void rank_destroy(struct rank *rank)
{
    free(rank->exchanges);
    free(rank);
}

bool rank_is_done(const struct rank *rank)
{
    return rank->done;
}

uint64_t rank_steps(const struct rank *rank)
{
    return rank->step;
}

static struct agenda *agenda(const struct rank *rank)
{
    return world_agenda(rank->world);
}

static bool is_struck(const struct rank *rank)
{
    return rank->number == rank->setting->fault_rank && setting_faulty(rank->setting, rank->step);
}

static uint64_t name_of(const struct rank *rank, uint64_t place)
{
    return ((uint64_t)rank->number << 40) + rank->step * PROGRAM_DEEDS_MAX + place;
}

static bool evaluates(const struct rank *rank)
{
    return rank->setting->fault == FAULT_EVALUATION && rank->step % CYCLE == CYCLE - 1;
}

static uint64_t host_spread_ns(const struct rank *rank, uint64_t usual_ns, uint64_t place)
{
    double spread = chance_decaying(rank->setting->seed, CHANCE_HOST, name_of(rank, place));

    return usual_ns + (uint64_t)(spread * (double)usual_ns * 0.3 * (double)rank->setting->noise_percent / 100);
}

/* What the fault takes from the training thread before the step's first deed. */
static uint64_t host_late_ns(struct rank *rank)
{
    uint64_t delay_ns = rank->setting->fault_delay_ns;
    static const enum host_delay_cause causes[FAULTS_COUNT] = {
        [FAULT_HOST_CPU] = DELAY_CPU, [FAULT_HOST_IO] = DELAY_IO, [FAULT_HOST_MEMORY] = DELAY_MEMORY};
    int fault = rank->setting->fault;

    if (!is_struck(rank) || (fault != FAULT_HOST_CPU && fault != FAULT_HOST_IO && fault != FAULT_HOST_MEMORY))
        return 0;
    if (world_host(rank->world, rank->number) != NULL)
        host_delay(world_host(rank->world, rank->number), rank->number, false, causes[fault], delay_ns);
    return delay_ns;
}

static uint64_t checkpoint_ns(const struct rank *rank)
{
    double share = chance_even(rank->setting->seed, CHANCE_LENGTH, name_of(rank, 0)) * 0.05 + 0.95;

    if (rank->setting->fault != FAULT_CHECKPOINT || rank->step % CYCLE != CYCLE - 1)
        return 0;
    return (uint64_t)((double)rank->setting->fault_delay_ns * (rank->number == 0 ? 1 : share * 0.6));
}

/* The program's deeds are its own until it is asked again. */
static void take_deeds(struct rank *rank)
{
    const struct deed *deeds;
    size_t exchanges = 0;

    rank->deeds_count = program_step(rank->program, rank->number, rank->step, evaluates(rank), &deeds);
    memcpy(rank->deeds, deeds, rank->deeds_count * sizeof *deeds);
    for (uint32_t i = 0; i < rank->deeds_count; i++)
        exchanges += deeds[i].call.exchanges_count;
    rank->exchanges = realloc(rank->exchanges, (exchanges + 1) * sizeof *rank->exchanges);
    if (rank->exchanges == NULL)
        abort();
    for (uint32_t i = 0, at = 0; i < rank->deeds_count; at += deeds[i++].call.exchanges_count) {
        size_t bytes = deeds[i].call.exchanges_count * sizeof *rank->exchanges;
        rank->deeds[i].call.exchanges = &rank->exchanges[at];
        if (bytes > 0)
            memcpy(&rank->exchanges[at], deeds[i].call.exchanges, bytes);
    }
}

static void begin_step(void *subject, uint64_t argument)
{
    struct rank *rank = subject;
    struct truth_row *row = truth_at(rank->truth, rank->number, rank->step);

    (void)argument;
    take_deeds(rank);
    rank->at = 0;
    rank->waits = false;
    rank->computed_one = false;
    memset(rank->streams, 0, sizeof rank->streams);
    memset(&rank->computing, 0, sizeof rank->computing);
    row->begin_ns = world_now_ns(rank->world);
    row->evaluates = evaluates(rank);
    row->host_late_ns = host_late_ns(rank);
    agenda_add(agenda(rank), row->begin_ns + row->host_late_ns + host_spread_ns(rank, HOST_NS, 0), host_next, rank, 0);
}

void rank_begin(struct rank *rank, uint64_t at_ns)
{
    agenda_add(agenda(rank), at_ns, begin_step, rank, 0);
}

static void tell_wait(const struct rank *rank, uint64_t now_ns)
{
    struct host *host = world_host(rank->world, rank->number);

    if (rank->setting->waits && host != NULL)
        host_add_wait(host, rank->number, rank->waited_ns, now_ns);
}

static void end_step(void *subject, uint64_t argument)
{
    struct rank *rank = subject;
    uint64_t now_ns = world_now_ns(rank->world);

    (void)argument;
    truth_at(rank->truth, rank->number, rank->step)->end_ns = now_ns;
    uint64_t next_ns = now_ns + checkpoint_ns(rank) + host_spread_ns(rank, BETWEEN_NS, PROGRAM_DEEDS_MAX - 1);
    tell_wait(rank, now_ns);
    if (++rank->step == rank->steps || program_leaves(rank->program, rank->number, rank->step))
        rank->done = true;
    else
        agenda_add(agenda(rank), next_ns, begin_step, rank, 0);
}

static void tell_call(struct rank *rank, const struct deed *deed, const struct group_exchange *exchange, uint8_t flags)
{
    struct host *host = world_host(rank->world, rank->number);
    uint32_t own = (uint32_t)group_rank(deed->group, rank->number);
    struct record_call call = {
        .header.source = group_number(deed->group, own),
        .returned_after_ns = RETURN_NS,
        .entered_ns = world_now_ns(rank->world),
        .enqueued_ns = world_now_ns(rank->world) + (exchange == NULL ? 0 : RETURN_NS / 2),
        .stream = 0x600000 + deed->stream * 0x1000,
        .peer = exchange == NULL ? -1 : (int32_t)exchange->peer,
        .tid = rank->number,
        .operation = (uint8_t)deed->call.operation,
        .reduction = CALL_NO_REDUCTION,
        .flags = flags,
    };

    if (deed->call.operation == OPERATION_BROADCAST)
        call.peer = (int32_t)GROUP_ROOT;
    if ((flags & CALL_CAPTURED) != 0)
        call.sequence = rank->captured++;
    else if (exchange == NULL)
        call.sequence = group_count_collective(deed->group, own);
    else
        call.sequence = group_count_exchange(deed->group, own, exchange);
    uint64_t bytes = exchange == NULL ? deed->call.bytes : exchange->bytes;
    call.datatype = bytes % 4 == 0 ? FLOAT_TYPE : BYTE_TYPE;
    call.count = bytes % 4 == 0 ? bytes / 4 : bytes;
    if (exchange != NULL) {
        call.operation = exchange->receives ? OPERATION_RECV : OPERATION_SEND;
        call.group = rank->calls_groups;
        call.flags |= CALL_GROUPED;
    } else if (deed->call.operation != OPERATION_ALL_GATHER && deed->call.operation != OPERATION_BROADCAST) {
        call.reduction = 0;
    }
    if (host != NULL)
        host_add_call(host, &call, world_now_ns(rank->world));
}

static void tell_calls(struct rank *rank, const struct deed *deed, uint8_t flags)
{
    if (deed->call.operation != OPERATION_SEND) {
        tell_call(rank, deed, NULL, flags);
        return;
    }
    rank->calls_groups++;
    for (uint32_t i = 0; i < deed->call.exchanges_count; i++)
        tell_call(rank, deed, &deed->call.exchanges[i], flags);
}

static bool is_graph(const struct rank *rank)
{
    return rank->setting->graph != GRAPH_NONE && rank->step >= GRAPH_STEP;
}

/* Before its first launch. */
static void capture(struct rank *rank)
{
    for (uint32_t i = 0; i < rank->deeds_count; i++)
        if (rank->deeds[i].kind == DEED_CALL)
            tell_calls(rank, &rank->deeds[i], CALL_CAPTURED);
}

static void call_ended(void *subject, uint64_t stream)
{
    struct rank *rank = subject;

    rank->streams[stream].ended++;
    rank->streams[stream].busy = false;
    advance(rank, 0);
}

/* Of the step's first operation on the first communicator. */
static uint64_t proxy_late_ns(struct rank *rank, const struct deed *deed)
{
    struct host *host = world_host(rank->world, rank->number);

    if (!is_struck(rank) || rank->setting->fault != FAULT_HOST_PROXY || deed->stream != 0 || rank->streams[0].given > 0)
        return 0;
    if (host != NULL)
        host_delay(host, rank->number, true, DELAY_CPU, rank->setting->fault_delay_ns);
    truth_at(rank->truth, rank->number, rank->step)->host_late_ns += rank->setting->fault_delay_ns;
    return rank->setting->fault_delay_ns;
}

static struct ledger_row *note_call(struct rank *rank, const struct deed *deed)
{
    struct ledger_row *row = ledger_add(world_ledger(rank->world));

    if (row == NULL)
        return NULL;
    row->identity = group_identity(deed->group);
    row->rank = rank->number;
    row->kind = (uint8_t)deed->call.operation;
    row->enqueued_ns = world_now_ns(rank->world);
    return row;
}

static void give_call(struct rank *rank, const struct deed *deed)
{
    struct given given = {.kind = DEED_CALL, .stream = deed->stream, .computed = rank->computing.given};
    struct stream *stream = &rank->streams[deed->stream];

    if (!is_graph(rank))
        tell_calls(rank, deed, 0);
    else if (rank->setting->graph == GRAPH_SHOWN)
        tell_calls(rank, deed, CALL_REPLAYED);
    given.kernel = kernel_create(agenda(rank), call_ended, rank, deed->stream);
    group_add_lanes(deed->group, (uint32_t)group_rank(deed->group, rank->number), &deed->call, given.kernel);
    kernel_queue(given.kernel, rank->step, proxy_late_ns(rank, deed), note_call(rank, deed));
    rank->calls[deed->stream][stream->given++] = given;
}

/* What the fault adds to a kernel of the step. */
static uint64_t gpu_late_ns(struct rank *rank, uint64_t ns)
{
    const struct setting *setting = rank->setting;
    bool first = !rank->computed_one;

    rank->computed_one = true;
    if (setting->fault == FAULT_WARM_UP && rank->step < WARM_STEPS)
        return (uint64_t)((double)ns * 2 * chance_even(setting->seed, CHANCE_LENGTH, name_of(rank, 0)));
    if (setting->fault == FAULT_EQUAL && setting_faulty(setting, rank->step))
        return (uint64_t)((unsigned __int128)ns * setting->fault_delay_ns / setting->compute_ns);
    if (!is_struck(rank))
        return 0;
    if (setting->fault == FAULT_GPU_SPREAD)
        return (uint64_t)((unsigned __int128)ns * setting->fault_delay_ns / setting->compute_ns);
    return first && (setting->fault == FAULT_GPU || setting->fault == FAULT_GPU_ONCE) ? setting->fault_delay_ns : 0;
}

static uint64_t kernel_ns(struct rank *rank, uint64_t ns, uint64_t place)
{
    const struct setting *setting = rank->setting;
    double noise = (double)setting->noise_percent / 100;
    double speed = 1 + noise * SPEED_SPREAD * chance_normal(setting->seed, CHANCE_RANK_SPEED, rank->number);
    double spread = 1 + noise * SPREAD * chance_normal(setting->seed, CHANCE_COMPUTE, name_of(rank, place));
    uint64_t late_ns = gpu_late_ns(rank, ns);
    struct truth_row *row = truth_at(rank->truth, rank->number, rank->step);

    row->gpu_late_ns += late_ns;
    ns = (uint64_t)((double)ns * speed * spread) + late_ns;
    row->compute_ns += ns;
    return ns;
}

static void computed(void *subject, uint64_t argument)
{
    struct rank *rank = subject;

    (void)argument;
    rank->computing.ended++;
    rank->computing.busy = false;
    advance(rank, 0);
}

static bool advance_compute(struct rank *rank)
{
    struct stream *computing = &rank->computing;
    const struct given *given = &rank->compute[computing->next];

    if (computing->busy || computing->next == computing->given)
        return false;
    if (given->kind == DEED_WAIT && rank->streams[given->stream].ended < given->ended)
        return false;
    computing->next++;
    if (given->kind == DEED_WAIT) {
        computing->ended++;
        return true;
    }
    computing->busy = true;
    agenda_add(agenda(rank), world_now_ns(rank->world) + kernel_ns(rank, given->ns, computing->next), computed, rank,
               0);
    return true;
}

static bool hangs(const struct rank *rank)
{
    return rank->setting->fault == FAULT_HANG && is_struck(rank);
}

static bool advance_stream(struct rank *rank, uint32_t number)
{
    struct stream *stream = &rank->streams[number];
    const struct given *given = &rank->calls[number][stream->next];

    if (stream->busy || stream->next == stream->given || rank->computing.ended < given->computed || hangs(rank))
        return false;
    stream->busy = true;
    stream->next++;
    kernel_begin(given->kernel);
    return true;
}

static bool is_idle(const struct rank *rank)
{
    bool idle = rank->computing.ended == rank->computing.given;

    for (uint32_t i = 0; i < PROGRAM_STREAMS_MAX; i++)
        idle = idle && rank->streams[i].ended == rank->streams[i].given;
    return idle;
}

static void advance(void *subject, uint64_t argument)
{
    struct rank *rank = subject;

    (void)argument;
    for (bool moved = true; moved;) {
        moved = advance_compute(rank);
        for (uint32_t i = 0; i < PROGRAM_STREAMS_MAX; i++)
            moved = advance_stream(rank, i) || moved;
    }
    if (!rank->waits || !is_idle(rank))
        return;
    rank->waits = false;
    agenda_add(agenda(rank), world_now_ns(rank->world) + WAKE_NS, end_step, rank, 0);
}

static void give_compute(struct rank *rank, const struct deed *deed)
{
    struct given *given = &rank->compute[rank->computing.given++];

    *given = (struct given){.kind = deed->kind, .stream = deed->stream, .ns = deed->ns};
    given->ended = rank->streams[deed->stream].given;
}

static void give(struct rank *rank, const struct deed *deed)
{
    if (deed->kind == DEED_CALL)
        give_call(rank, deed);
    else
        give_compute(rank, deed);
}

static void host_next(void *subject, uint64_t argument)
{
    struct rank *rank = subject;
    const struct deed *deed = &rank->deeds[rank->at++];
    uint64_t now_ns = world_now_ns(rank->world);

    (void)argument;
    if (deed->kind == DEED_SYNC) {
        rank->waits = true;
        rank->waited_ns = now_ns;
        advance(rank, 0);
        return;
    }
    if (rank->at == 1 && rank->step == GRAPH_STEP && is_graph(rank))
        capture(rank);
    give(rank, deed);
    while (is_graph(rank) && rank->deeds[rank->at].kind != DEED_SYNC)
        give(rank, &rank->deeds[rank->at++]);
    agenda_add(agenda(rank), now_ns + LAUNCH_NS, advance, rank, 0);
    agenda_add(agenda(rank), now_ns + host_spread_ns(rank, HOST_NS, rank->at), host_next, rank, 0);
}
