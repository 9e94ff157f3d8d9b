/* SPDX-License-Identifier: BSD-2-Clause */
/* A function a shape writes the deeds of a step. Communicators: each rank has up to three, by stream. */
#include "tests/simulation/program.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulation/chance.h"

#define LAYERS        8u
#define TENSOR_LAYERS 4u
#define BUCKETS       4u
#define MICRO_BATCHES 8u
#define EXPERT_LAYERS 2u
#define PASSES        4u /* of gradient accumulation */
#define PASS_LAYERS   2u
#define LEAVES_STEP   20u
#define CHAIN         6u
#define OVERLAPS      4u
#define PARTS         2u /* of a node of an interleaved pipeline */
#define INTERLEAVED   8u /* its micro-batches */

struct program {
    struct world *world;
    const struct setting *setting;
    uint32_t ranks;
    struct group **groups; /* all of them */
    uint32_t groups_count;
    struct group **streams; /* by rank and stream */
    struct deed deeds[PROGRAM_DEEDS_MAX];
    uint32_t count;
    struct group_exchange *exchanges;
    uint32_t exchanges_count, exchanges_room;
    uint64_t step;
    bool evaluates;
};

static const uint64_t bucket_shares[BUCKETS] = {6, 5, 4, 1}; /* of 16: as layers come, none like another */

typedef void shape_write(struct program *program, uint32_t rank);
typedef uint32_t shape_color(const struct program *program,
                             uint32_t rank); /* ranks of one colour have a communicator */

static struct deed *add(struct program *program, enum deed_kind kind)
{
    struct deed *deed = &program->deeds[program->count++];

    if (program->count > PROGRAM_DEEDS_MAX)
        abort();
    memset(deed, 0, sizeof *deed);
    deed->kind = kind;
    return deed;
}

static void compute(struct program *program, uint64_t share, uint64_t of)
{
    add(program, DEED_COMPUTE)->ns = program->setting->compute_ns * share / of;
}

static void call(struct program *program, uint32_t rank, uint32_t stream, enum operation_kind operation, uint64_t bytes)
{
    struct deed *deed = add(program, DEED_CALL);

    deed->stream = stream;
    deed->group = program_group(program, rank, stream);
    deed->call.operation = operation;
    deed->call.bytes = bytes / 4 * 4;
    deed->call.tree = program->setting->tree;
}

/* Of what moves data only, any number of bytes. */
static void move(struct program *program, uint32_t rank, enum operation_kind operation, uint64_t bytes)
{
    call(program, rank, 0, operation, bytes);
    program->deeds[program->count - 1].call.bytes = bytes;
}

static void wait_for(struct program *program, uint32_t stream)
{
    add(program, DEED_WAIT)->stream = stream;
}

static void exchange(struct program *program, uint32_t peer, bool receives, uint64_t bytes)
{
    if (program->exchanges_count == program->exchanges_room)
        abort();
    program->exchanges[program->exchanges_count++] = (struct group_exchange){peer, receives, bytes / 4 * 4};
}

/* The exchanges that were put down since `first`, as one group of calls. */
static void call_exchanges(struct program *program, uint32_t rank, uint32_t stream, uint32_t first)
{
    struct deed *deed = add(program, DEED_CALL);

    deed->stream = stream;
    deed->group = program_group(program, rank, stream);
    deed->call.operation = OPERATION_SEND;
    deed->call.exchanges = &program->exchanges[first];
    deed->call.exchanges_count = program->exchanges_count - first;
}

static void plain(struct program *program, uint32_t rank)
{
    compute(program, 1, 3);
    if (!program->evaluates)
        compute(program, 2, 3);
    call(program, rank, 0, OPERATION_ALL_REDUCE, program->evaluates ? 65536 : program->setting->bytes);
}

static void data(struct program *program, uint32_t rank)
{
    compute(program, 1, 3);
    for (uint32_t bucket = 0; bucket < BUCKETS && !program->evaluates; bucket++) {
        compute(program, 2, 3 * BUCKETS);
        call(program, rank, 0, OPERATION_ALL_REDUCE, program->setting->bytes * bucket_shares[bucket] / 16);
    }
    if (program->evaluates)
        call(program, rank, 0, OPERATION_ALL_REDUCE, 65536);
}

static void buckets(struct program *program, uint32_t rank)
{
    compute(program, 1, 3);
    for (uint32_t bucket = 0; bucket < BUCKETS && !program->evaluates; bucket++) {
        compute(program, 2, 3 * BUCKETS);
        call(program, rank, 0, OPERATION_ALL_REDUCE, program->setting->bytes / BUCKETS);
    }
    if (program->evaluates)
        call(program, rank, 0, OPERATION_ALL_REDUCE, 65536);
}

static void accumulate(struct program *program, uint32_t rank)
{
    uint64_t part = program->setting->bytes / PASS_LAYERS / group_count(program_group(program, rank, 0));

    for (uint32_t pass = 0; pass < PASSES; pass++) {
        for (uint32_t layer = 0; layer < PASS_LAYERS; layer++) {
            call(program, rank, 0, OPERATION_ALL_GATHER, part);
            wait_for(program, 0);
            compute(program, 1, 3 * PASSES * PASS_LAYERS);
        }
        for (uint32_t layer = 0; layer < PASS_LAYERS && !program->evaluates; layer++) {
            compute(program, 2, 3 * PASSES * PASS_LAYERS);
            call(program, rank, 0, OPERATION_REDUCE_SCATTER, part);
        }
    }
}

/* Sequences between half and one and a half times as long as usual. */
static void variable(struct program *program, uint32_t rank)
{
    double length = 0.5 + chance_even(program->setting->seed, CHANCE_LENGTH, (1ULL << 61) + program->step);
    uint64_t share = (uint64_t)(length * 1024);

    for (uint32_t layer = 0; layer < TENSOR_LAYERS * (program->evaluates ? 1 : 2); layer++) {
        compute(program, share * (layer < TENSOR_LAYERS ? 1 : 2), 1024ULL * 3 * TENSOR_LAYERS);
        call(program, rank, 0, OPERATION_ALL_REDUCE, (4u << 20) / 1024 * share);
        wait_for(program, 0);
    }
    call(program, rank, 0, OPERATION_ALL_REDUCE, program->evaluates ? 65536 : program->setting->bytes);
}

static void elastic(struct program *program, uint32_t rank)
{
    uint32_t stream = program->step < LEAVES_STEP ? 0 : 1;

    compute(program, 1, 1);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++)
        call(program, rank, stream, OPERATION_ALL_REDUCE, program->setting->bytes * bucket_shares[bucket] / 16);
}

static void chained(struct program *program, uint32_t rank)
{
    compute(program, 1, 1);
    for (uint32_t i = 0; i < CHAIN; i++)
        call(program, rank, 0, OPERATION_ALL_REDUCE, program->setting->bytes / CHAIN);
    call(program, rank, 0, OPERATION_ALL_GATHER, program->setting->bytes / 16);
    call(program, rank, 0, OPERATION_REDUCE_SCATTER, program->setting->bytes / 8);
}

static void overlap(struct program *program, uint32_t rank)
{
    for (uint32_t part = 0; part < OVERLAPS; part++) {
        compute(program, 1, OVERLAPS);
        call(program, rank, 0, OPERATION_ALL_REDUCE, program->setting->bytes / (part + 1));
        call(program, rank, 1, OPERATION_ALL_GATHER, program->setting->bytes / 8);
    }
}

static void tiny(struct program *program, uint32_t rank)
{
    for (uint64_t bytes = 4; bytes <= 65536; bytes *= 16) {
        compute(program, 1, 8);
        call(program, rank, 0, OPERATION_ALL_REDUCE, bytes);
    }
    for (uint64_t bytes = 16; bytes <= 4096; bytes *= 16)
        call(program, rank, 0, OPERATION_ALL_GATHER, bytes);
    compute(program, 1, 8);
    call(program, rank, 0, OPERATION_BROADCAST, 1024);
}

static void odd(struct program *program, uint32_t rank)
{
    static const uint64_t reduced[] = {4, 36, 12004, 400004, 1048596, 6291476};
    static const uint64_t moved[] = {1, 17, 4097, 40001, 1048583, 2500009};

    for (size_t i = 0; i < sizeof reduced / sizeof *reduced; i++) {
        compute(program, 1, 8);
        call(program, rank, 0, OPERATION_ALL_REDUCE, reduced[i]);
        call(program, rank, 0, OPERATION_REDUCE_SCATTER, reduced[i] / 2 + 4);
        move(program, rank, OPERATION_ALL_GATHER, moved[i]);
        move(program, rank, OPERATION_BROADCAST, moved[i]);
    }
}

static void joining(struct program *program, uint32_t rank)
{
    compute(program, 1, 1);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++)
        call(program, rank, program->step < LEAVES_STEP ? 1 : 0, OPERATION_ALL_REDUCE,
             program->setting->bytes * bucket_shares[bucket] / 16);
}

static void sharded(struct program *program, uint32_t rank)
{
    uint64_t part = program->setting->bytes / LAYERS / group_count(program_group(program, rank, 0));

    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        call(program, rank, 0, OPERATION_ALL_GATHER, part);
        wait_for(program, 0);
        compute(program, 1, 3 * LAYERS);
    }
    for (uint32_t layer = 0; layer < LAYERS && !program->evaluates; layer++) {
        compute(program, 2, 3 * LAYERS);
        call(program, rank, 0, OPERATION_REDUCE_SCATTER, part);
    }
}

static void tensor(struct program *program, uint32_t rank)
{
    for (uint32_t layer = 0; layer < TENSOR_LAYERS; layer++) {
        compute(program, 1, 3 * TENSOR_LAYERS);
        call(program, rank, 1, OPERATION_ALL_REDUCE, 4u << 20);
        wait_for(program, 1);
    }
    for (uint32_t layer = 0; layer < TENSOR_LAYERS && !program->evaluates; layer++) {
        compute(program, 2, 3 * TENSOR_LAYERS);
        call(program, rank, 1, OPERATION_ALL_REDUCE, 4u << 20);
        wait_for(program, 1);
    }
    call(program, rank, 0, OPERATION_ALL_REDUCE, program->evaluates ? 65536 : program->setting->bytes);
}

static void hand_on(struct program *program, uint32_t rank, uint32_t peer, bool receives)
{
    uint32_t first = program->exchanges_count;

    exchange(program, peer, receives, program->setting->exchange_bytes);
    call_exchanges(program, rank, 1, first);
    if (receives)
        wait_for(program, 1);
}

static void forward(struct program *program, uint32_t rank, uint32_t stage, uint32_t stages)
{
    if (stage > 0)
        hand_on(program, rank, stage - 1, true);
    compute(program, 1, 3 * MICRO_BATCHES);
    if (stage + 1 < stages)
        hand_on(program, rank, stage + 1, false);
}

static void backward(struct program *program, uint32_t rank, uint32_t stage, uint32_t stages)
{
    if (stage + 1 < stages)
        hand_on(program, rank, stage + 1, true);
    compute(program, 2, 3 * MICRO_BATCHES);
    if (stage > 0)
        hand_on(program, rank, stage - 1, false);
}

/* 1F1B: a stage lets as many micro-batches in as there are stages behind it, then one goes on and one comes back. */
static void pipeline(struct program *program, uint32_t rank)
{
    struct group *line = program_group(program, rank, 1);
    uint32_t stage = (uint32_t)group_rank(line, rank), stages = group_count(line);
    uint32_t ahead = stages - 1 - stage < MICRO_BATCHES ? stages - 1 - stage : MICRO_BATCHES;

    for (uint32_t i = 0; i < MICRO_BATCHES && program->evaluates; i++)
        forward(program, rank, stage, stages);
    if (program->evaluates) {
        call(program, rank, 0, OPERATION_ALL_REDUCE, 65536);
        return;
    }
    for (uint32_t i = 0; i < ahead; i++)
        forward(program, rank, stage, stages);
    for (uint32_t i = ahead; i < MICRO_BATCHES; i++) {
        forward(program, rank, stage, stages);
        backward(program, rank, stage, stages);
    }
    for (uint32_t i = 0; i < ahead; i++)
        backward(program, rank, stage, stages);
    call(program, rank, 0, OPERATION_ALL_REDUCE, program->setting->bytes);
}

/* Like pipeline, with the stages' own shares of the layers. */
static void uneven(struct program *program, uint32_t rank)
{
    pipeline(program, rank);
    struct group *line = program_group(program, rank, 1);
    uint32_t stage = (uint32_t)group_rank(line, rank), last = group_count(line) - 1;

    for (uint32_t i = 0; i < program->count; i++)
        if (program->deeds[i].kind == DEED_COMPUTE)
            program->deeds[i].ns = stage == 0      ? program->deeds[i].ns / 2
                                   : stage == last ? program->deeds[i].ns * 3 / 2
                                                   : program->deeds[i].ns;
}

/* One of the node's two stages on one micro-batch: to the node behind, and from the last one to the first again. */
static void part_forward(struct program *program, uint32_t rank, uint32_t part)
{
    struct group *line = program_group(program, rank, 1);
    uint32_t node = (uint32_t)group_rank(line, rank), nodes = group_count(line);

    if (node > 0 || part > 0)
        hand_on(program, rank, (node + nodes - 1) % nodes, true);
    compute(program, 1, 3 * INTERLEAVED * PARTS);
    if (node + 1 < nodes || part + 1 < PARTS)
        hand_on(program, rank, (node + 1) % nodes, false);
}

static void part_backward(struct program *program, uint32_t rank, uint32_t part)
{
    struct group *line = program_group(program, rank, 1);
    uint32_t node = (uint32_t)group_rank(line, rank), nodes = group_count(line);

    if (node + 1 < nodes || part + 1 < PARTS)
        hand_on(program, rank, (node + 1) % nodes, true);
    compute(program, 2, 3 * INTERLEAVED * PARTS);
    if (node > 0 || part > 0)
        hand_on(program, rank, (node + nodes - 1) % nodes, false);
}

/* As many micro-batches as nodes go through the first stage of each, then the same ones through the second, and so on.
 */
static uint32_t part_of(uint32_t turn, uint32_t nodes, bool backward)
{
    uint32_t part = turn / nodes % PARTS;

    return backward ? PARTS - 1 - part : part;
}

static void interleaved(struct program *program, uint32_t rank)
{
    struct group *line = program_group(program, rank, 1);
    uint32_t node = (uint32_t)group_rank(line, rank), nodes = group_count(line), turns = INTERLEAVED * PARTS;
    uint32_t ahead = 2 * (nodes - node - 1) + (PARTS - 1) * nodes;

    ahead = ahead < turns ? ahead : turns;
    for (uint32_t turn = 0; turn < ahead; turn++)
        part_forward(program, rank, part_of(turn, nodes, false));
    for (uint32_t turn = ahead; turn < turns; turn++) {
        part_forward(program, rank, part_of(turn, nodes, false));
        part_backward(program, rank, part_of(turn - ahead, nodes, true));
    }
    for (uint32_t turn = turns - ahead; turn < turns; turn++)
        part_backward(program, rank, part_of(turn, nodes, true));
    call(program, rank, 0, OPERATION_ALL_REDUCE, program->setting->bytes);
}

static void all_to_all(struct program *program, uint32_t rank)
{
    struct group *group = program_group(program, rank, 0);
    uint32_t me = (uint32_t)group_rank(group, rank), count = group_count(group), first = program->exchanges_count;

    for (uint32_t turn = 1; turn < count; turn++) {
        exchange(program, (me + turn) % count, false, program->setting->exchange_bytes / count);
        exchange(program, (me + count - turn) % count, true, program->setting->exchange_bytes / count);
    }
    call_exchanges(program, rank, 0, first);
    wait_for(program, 0);
}

static void expert(struct program *program, uint32_t rank)
{
    uint32_t passes = program->evaluates ? 1 : 2;

    for (uint32_t layer = 0; layer < EXPERT_LAYERS * passes; layer++) {
        compute(program, 1, EXPERT_LAYERS * 2 * 2);
        all_to_all(program, rank);
        compute(program, 1, EXPERT_LAYERS * 2 * 2);
        all_to_all(program, rank);
    }
    call(program, rank, 0, OPERATION_ALL_REDUCE, program->evaluates ? 65536 : program->setting->bytes);
}

static uint32_t one_color(const struct program *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return 0;
}

static uint32_t by_node(const struct program *program, uint32_t rank)
{
    return rank / (uint32_t)program->setting->gpus;
}

static uint32_t by_gpu(const struct program *program, uint32_t rank)
{
    return rank % (uint32_t)program->setting->gpus;
}

static uint32_t stages(const struct program *program)
{
    uint32_t nodes = (uint32_t)program->setting->nodes;

    return nodes >= 4 ? nodes / 2 : nodes;
}

static uint32_t by_stage(const struct program *program, uint32_t rank)
{
    return by_node(program, rank) % stages(program);
}

static uint32_t by_line(const struct program *program, uint32_t rank)
{
    return by_node(program, rank) / stages(program) * (uint32_t)program->setting->gpus + by_gpu(program, rank);
}

static uint32_t but_the_last(const struct program *program, uint32_t rank)
{
    return rank + 1 == program->ranks ? UINT32_MAX : 0;
}

static const struct {
    shape_write *write;
    shape_color *colors[PROGRAM_STREAMS_MAX];
} shapes[] = {
    [SHAPE_DATA] = {data, {one_color}},
    [SHAPE_PLAIN] = {plain, {one_color}},
    [SHAPE_SHARDED] = {sharded, {one_color}},
    [SHAPE_TENSOR] = {tensor, {by_gpu, by_node}},
    [SHAPE_PIPELINE] = {pipeline, {by_stage, by_line}},
    [SHAPE_EXPERT] = {expert, {one_color}},
    [SHAPE_BUCKETS] = {buckets, {one_color}},
    [SHAPE_ACCUMULATE] = {accumulate, {one_color}},
    [SHAPE_VARIABLE] = {variable, {one_color}},
    [SHAPE_ELASTIC] = {elastic, {one_color, but_the_last}},
    [SHAPE_JOINING] = {joining, {one_color, but_the_last}},
    [SHAPE_INTERLEAVED] = {interleaved, {by_stage, by_line}},
    [SHAPE_UNEVEN] = {uneven, {by_stage, by_line}},
    [SHAPE_CHAINED] = {chained, {one_color}},
    [SHAPE_OVERLAP] = {overlap, {one_color, one_color}},
    [SHAPE_TINY] = {tiny, {one_color}},
    [SHAPE_ODD] = {odd, {one_color}},
};

static void make_groups(struct program *program, uint32_t stream)
{
    shape_color *color = shapes[program->setting->shape].colors[stream];
    uint32_t *ranks = calloc(program->ranks, sizeof *ranks);

    if (ranks == NULL)
        abort();
    for (uint32_t wanted = 0; color != NULL && wanted < program->ranks; wanted++) {
        uint32_t count = 0;
        for (uint32_t rank = 0; rank < program->ranks; rank++)
            if (color(program, rank) == wanted)
                ranks[count++] = rank;
        if (count == 0)
            break;
        struct group *group = group_create(program->world, ranks, count, program->groups_count + 1);
        program->groups[program->groups_count++] = group;
        for (uint32_t i = 0; i < count; i++)
            program->streams[ranks[i] * PROGRAM_STREAMS_MAX + stream] = group;
    }
    free(ranks);
}

struct program *program_create(struct world *world)
{
    struct program *program = calloc(1, sizeof *program);

    if (program == NULL)
        abort();
    program->world = world;
    program->setting = world_setting(world);
    program->ranks = world_ranks(world);
    program->exchanges_room = 16 * program->ranks + 16 * MICRO_BATCHES;
    program->exchanges = calloc(program->exchanges_room, sizeof *program->exchanges);
    program->groups = calloc((size_t)program->ranks * PROGRAM_STREAMS_MAX, sizeof(struct group *));
    program->streams = calloc((size_t)program->ranks * PROGRAM_STREAMS_MAX, sizeof(struct group *));
    if (program->exchanges == NULL || program->groups == NULL || program->streams == NULL)
        abort();
    for (uint32_t stream = 0; stream < PROGRAM_STREAMS_MAX; stream++)
        make_groups(program, stream);
    return program;
}

void program_destroy(struct program *program)
{
    for (uint32_t i = 0; i < program->groups_count; i++)
        group_destroy(program->groups[i]);
    free(program->groups);
    free(program->streams);
    free(program->exchanges);
    free(program);
}

bool program_leaves(const struct program *program, uint32_t rank, uint64_t step)
{
    return program->setting->shape == SHAPE_ELASTIC && rank + 1 == program->ranks && step >= LEAVES_STEP;
}

uint64_t program_first_step(const struct program *program, uint32_t rank)
{
    return program->setting->shape == SHAPE_JOINING && rank + 1 == program->ranks ? LEAVES_STEP : 0;
}

uint32_t program_step(struct program *program, uint32_t rank, uint64_t step, bool evaluates, const struct deed **deeds)
{
    program->step = step;
    program->count = 0;
    program->exchanges_count = 0;
    program->evaluates = evaluates;
    shapes[program->setting->shape].write(program, rank);
    add(program, DEED_SYNC);
    *deeds = program->deeds;
    return program->count;
}

struct group *program_group(const struct program *program, uint32_t rank, uint32_t stream)
{
    return program->streams[rank * PROGRAM_STREAMS_MAX + stream];
}
