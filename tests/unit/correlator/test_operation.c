/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cutting without a pause to go by: the lanes of one rank are filled with the slots of known calls, one behind the
 * other, as a group of calls that run in one kernel sends them; each call must get exactly its own.
 */
#include "correlator/node/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/node/division.h"

#define RANKS      4
#define LANES      2
#define CALLS_MAX  16
#define START_NS   1000000u
#define SLOT_NS    2000u /* several slots in a window of 8 us */
#define FLOAT32    7
#define INDEX      2 /* the rank's position in the ring */
#define STEP_BYTES (4u << 20)

struct wanted { /* slots [from, to) of a lane */
    size_t from;
    size_t to;
};

struct scene {
    lane_list lanes;
    operation_cut_list cuts;
    gap_list gaps;
    struct intake intake;
    struct wanted wanted[CALLS_MAX][LANES];
    uint64_t now_ns[LANES];
    unsigned channels; /* of the communicator, as far as it is known */
    uint32_t version;
    bool is_tree;
};

struct filler {
    struct scene *scene;
    size_t lane;
};

static bool add_slot(void *context, uint64_t bytes)
{
    struct filler *filler = context;
    struct lane *lane = &filler->scene->lanes.items[filler->lane];
    uint64_t *now_ns = &filler->scene->now_ns[filler->lane];
    struct slot *slot = array_add(&lane->slots);

    *slot = (struct slot){*now_ns, *now_ns + SLOT_NS - 1, *now_ns + SLOT_NS - 1, bytes, 0, true};
    *now_ns += SLOT_NS;
    return true;
}

static void begin(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    for (size_t i = 0; i < LANES; i++) {
        struct lane *lane = array_add(&scene->lanes);
        lane->direction = LANE_SEND;
        lane->channel = -1;
        lane->peer_rank = (INDEX + 1) % RANKS;
        scene->now_ns[i] = START_NS;
    }
}

static struct operation_cut *add_call(struct scene *scene, uint8_t kind)
{
    struct operation_cut *cut = array_add(&scene->cuts);

    cut->work.kind = kind;
    cut->work.peer = -1;
    cut->work.enqueued_ns = START_NS - 100 + scene->cuts.count;
    for (size_t i = 0; i < LANES; i++)
        scene->wanted[scene->cuts.count - 1][i] =
            (struct wanted){scene->lanes.items[i].slots.count, scene->lanes.items[i].slots.count};
    return cut;
}

static void end_call(struct scene *scene)
{
    for (size_t i = 0; i < LANES; i++)
        scene->wanted[scene->cuts.count - 1][i].to = scene->lanes.items[i].slots.count;
}

/* A ring collective, its blocks on the lanes from `lane` on. */
static void add_ring(struct scene *scene, uint8_t kind, uint64_t count, size_t lane, unsigned channels)
{
    const struct shape shape = {
        .protocol = SHAPE_SIMPLE, .channels = channels, .threads = 256, .buffer_bytes = STEP_BYTES};
    struct work *work = &add_call(scene, kind)->work;

    work->ring = shape_collective(&work->collective, kind, count, FLOAT32, RANKS);
    assert_true(work->ring);
    for (unsigned block = 0; block < channels; block++) {
        struct filler filler = {scene, lane + block};
        shape_walk(&shape, &work->collective, INDEX, block, add_slot, &filler);
    }
    end_call(scene);
}

/* The rank has two of four channels on the wire. */
static void begin_partly(struct scene *scene)
{
    begin(scene);
    scene->channels = 4;
    scene->lanes.items[0].channel = 1;
    scene->lanes.items[1].channel = 3;
}

/* A ring collective over the first channels, of which only those are seen that have a lane. */
static void add_partly(struct scene *scene, uint8_t kind, uint64_t count, unsigned channels)
{
    const struct shape shape = {
        .protocol = SHAPE_SIMPLE, .channels = channels, .threads = 256, .buffer_bytes = STEP_BYTES};
    struct work *work = &add_call(scene, kind)->work;

    work->bytes = count * 4;
    work->ring = shape_collective(&work->collective, kind, count, FLOAT32, RANKS);
    assert_true(work->ring);
    for (size_t lane = 0; lane < LANES; lane++) {
        struct filler filler = {scene, lane};
        unsigned channel = (unsigned)scene->lanes.items[lane].channel;
        if (channel < channels)
            shape_walk(&shape, &work->collective, INDEX, channel, add_slot, &filler);
    }
    end_call(scene);
}

static void check(struct scene *scene)
{
    const struct lane_losses losses = {&scene->gaps, &scene->intake, NULL, 1};

    operation_cut(&scene->cuts, &scene->lanes, LANE_SEND,
                  &(struct matched){.channels = scene->channels, .division = division_of_version(scene->version)}, 0,
                  &losses);
    for (size_t call = 0; call < scene->cuts.count; call++) {
        struct part *part = &scene->cuts.items[call].parts[LANE_SEND];
        size_t slots = 0;
        for (size_t i = 0; i < LANES; i++)
            slots += scene->wanted[call][i].to - scene->wanted[call][i].from;
        assert_int_equal(part->state, slots > 0 ? PART_WHOLE : PART_SILENT);
        assert_int_equal(part->is_tree, scene->is_tree);
        for (size_t i = 0; i < part->shares.count; i++) {
            const struct share *share = &part->shares.items[i];
            if (share->from == share->to)
                continue;
            assert_int_equal(share->from, scene->wanted[call][share->lane].from);
            assert_int_equal(share->to, scene->wanted[call][share->lane].to);
            slots -= share->to - share->from;
        }
        assert_int_equal(slots, 0);
        array_fini(&part->shares);
    }
    array_fini(&scene->cuts);
    lane_fini(&scene->lanes);
}

static void test_back_to_back(void **state)
{
    static const uint64_t counts[] = {65536, 65536, 1000003, 4099, 65536, 300000, 300000, 128};
    struct scene scene;
    (void)state;
    begin(&scene);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        add_ring(&scene,
                 i % 3 == 0   ? OPERATION_ALL_REDUCE
                 : i % 3 == 1 ? OPERATION_ALL_GATHER
                              : OPERATION_REDUCE_SCATTER,
                 counts[i], 0, LANES);
    check(&scene);
}

/* Calls of one kernel go on where they are: the second channel falls behind, by half an all-reduce in the end. */
static void test_channels_that_drift_apart(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene);
    for (size_t i = 0; i < 8; i++) {
        add_ring(&scene, OPERATION_ALL_REDUCE, 65536, 0, LANES);
        scene.now_ns[1] += SLOT_NS;
    }
    check(&scene);
}

/* Little calls take one channel, and the next one starts on the other before they are over. */
static void test_little_calls_on_one_channel(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene);
    add_ring(&scene, OPERATION_ALL_REDUCE, 65536, 0, LANES);
    add_ring(&scene, OPERATION_ALL_REDUCE, 256, 0, 1);
    add_ring(&scene, OPERATION_ALL_REDUCE, 512, 1, 1);
    add_ring(&scene, OPERATION_ALL_REDUCE, 65536, 0, LANES);
    add_ring(&scene, OPERATION_ALL_GATHER, 256, 0, 1);
    add_ring(&scene, OPERATION_ALL_REDUCE, 65536, 0, LANES);
    check(&scene);
}

/* All of it within one window of 8 us: windows are nothing that cuts go by. */
static void test_smaller_than_a_window(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene);
    for (size_t i = 0; i < 12; i++)
        add_ring(&scene, i % 2 == 0 ? OPERATION_BROADCAST : OPERATION_REDUCE, 64 + 16 * (i / 2), 0, 1);
    for (size_t i = 0; i < scene.lanes.items[0].slots.count; i++)
        scene.lanes.items[0].slots.items[i].first_ns = scene.lanes.items[0].slots.items[i].last_ns = START_NS + 100 * i;
    assert_true(100 * scene.lanes.items[0].slots.count < 8000);
    check(&scene);
}

static void test_some_channels_on_the_wire(void **state)
{
    static const uint64_t counts[] = {8u << 20, 8u << 20, 1000003, 8u << 20, 3000000, 3000000};
    struct scene scene;
    (void)state;
    begin_partly(&scene);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        add_partly(&scene, i < 3 ? OPERATION_ALL_REDUCE : OPERATION_REDUCE_SCATTER, counts[i], 4);
    check(&scene);
}

/* Every second call takes the first two channels: the rank has the second one, and its other lane is not used. */
static void test_fewer_channels_than_all(void **state)
{
    struct scene scene;
    (void)state;
    begin_partly(&scene);
    for (size_t i = 0; i < 6; i++)
        add_partly(&scene, OPERATION_ALL_REDUCE, i % 2 == 0 ? 65536 : 1u << 20, i % 2 == 0 ? 2 : 4);
    check(&scene);
}

/* Little calls take the first channel only: nothing of them is to be seen, and nothing is missing. */
static void test_silent_calls(void **state)
{
    struct scene scene;
    (void)state;
    begin_partly(&scene);
    for (size_t i = 0; i < 5; i++) {
        add_partly(&scene, OPERATION_ALL_REDUCE, 16, 1);
        add_partly(&scene, OPERATION_ALL_REDUCE, 1u << 20, 4);
        add_partly(&scene, OPERATION_ALL_GATHER, 64, 1);
    }
    check(&scene);
}

/* To the parent and to a child on one channel, 3 MiB of 6 over each: a ring of four ranks would send 4.5 in other
 * slots. */
static void test_tree(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene);
    scene.channels = 2;
    scene.is_tree = true;
    scene.lanes.items[0].channel = scene.lanes.items[1].channel = 1;
    for (size_t i = 0; i < 5; i++) {
        struct work *work = &add_call(&scene, OPERATION_ALL_REDUCE)->work;
        work->ring = shape_collective(&work->collective, OPERATION_ALL_REDUCE, 6u << 18, FLOAT32, RANKS);
        for (size_t lane = 0; lane < LANES; lane++)
            for (unsigned slot = 0; slot < 6; slot++)
                add_slot(&(struct filler){&scene, lane}, 512u << 10);
        end_call(&scene);
    }
    check(&scene);
}

static void add_slots(struct scene *scene, size_t lane, const uint64_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_slot(&(struct filler){scene, lane}, bytes[i]);
}

static void add_seen(struct scene *scene, uint8_t kind, uint64_t count, const uint64_t *first, size_t first_count,
                     const uint64_t *second, size_t second_count)
{
    struct work *work = &add_call(scene, kind)->work;

    work->ring = shape_collective(&work->collective, kind, count, FLOAT32, RANKS);
    add_slots(scene, 0, first, first_count);
    add_slots(scene, 1, second, second_count);
    end_call(scene);
}

/*
 * NCCL 2.29 on two channels, worked out by hand. 100 001 floats: 25 cells of 4096 elements, 13 and 12 (46 753
 * elements); quarters of 13 312, and of 11 692 but the last, 11 677; slices of 8192 elements at least. The third of the
 * ring sends quarters 1 0 3 2 1 0. A gather of 40 000 bytes: five cells of 8192 bytes, three and two. One element: one
 * cell on the first channel, a quarter of which is 16 bytes.
 */
static void test_channels_with_parts_of_their_own(void **state)
{
    static const uint64_t low[] = {32768, 20480, 32768, 20480, 32768, 20480, 32768, 20480, 32768, 20480, 32768, 20480};
    static const uint64_t high[] = {32768, 14000, 32768, 14000, 32768, 13940, 32768, 14000, 32768, 14000, 32768, 14000};
    static const uint64_t gather_low[] = {24576, 0, 24576, 0, 24576, 0}, gather_high[] = {15424, 0, 15424, 0, 15424, 0};
    static const uint64_t one[] = {0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 0};
    static const uint32_t versions[] = {23004, 0, 22203, 21304};
    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        for (unsigned channels = 0; channels <= 2; channels += 2) {
            struct scene scene;
            begin(&scene);
            scene.version = versions[i];
            scene.channels = channels;
            for (int32_t lane = 0; lane < LANES && channels > 0; lane++)
                scene.lanes.items[lane].channel = lane;
            for (unsigned call = 0; call < 3; call++) {
                add_seen(&scene, OPERATION_ALL_REDUCE, 100001, low, 12, high, 12);
                add_seen(&scene, OPERATION_ALL_GATHER, 10000, gather_low, 6, gather_high, 6);
                add_seen(&scene, OPERATION_ALL_REDUCE, 1, one, 12, NULL, 0);
            }
            check(&scene);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_back_to_back),
        cmocka_unit_test(test_channels_that_drift_apart),
        cmocka_unit_test(test_little_calls_on_one_channel),
        cmocka_unit_test(test_smaller_than_a_window),
        cmocka_unit_test(test_some_channels_on_the_wire),
        cmocka_unit_test(test_fewer_channels_than_all),
        cmocka_unit_test(test_silent_calls),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_channels_with_parts_of_their_own),
    };
    return cmocka_run_group_tests_name("operation", tests, NULL, NULL);
}
