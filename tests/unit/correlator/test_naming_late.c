/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of what was not seen from its beginning: agents that were started again, communicators known by their hash
 * only, ranks of a split's children. Expected ranks follow from NCCL's rule: by key, then by the parent's rank.
 */
#include "correlator/naming/naming.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/correlator/world.h"
#include "wire/log.h"

#define SECOND     WORLD_SECOND
#define MS         1000000ULL
#define NO_COLOR   (-1)
#define RANKS      4
#define AFTER_LOSS CALL_AFTER_LOSS

/* A boot of a host's agent. */
static struct feed *add_boot(struct world *world, uint64_t emitter, uint64_t boot, uint64_t started_ns)
{
    return world_add(world, EMITTER_HOST, emitter, boot, 0, started_ns);
}

static void add_process(struct feed *feed, uint32_t process, uint32_t pid, uint64_t ended_ns)
{
    struct record_process record = {.process = process, .pid = pid, .started_ns = SECOND + pid, .ended_ns = ended_ns};
    feed_add(feed, RECORD_PROCESS, &record);
}

static void add_communicator(struct feed *feed, struct record_communicator record, const char *identity)
{
    memcpy(record.identity, identity, strlen(identity));
    feed_add(feed, RECORD_COMMUNICATOR, &record);
}

/* A rank of a communicator of two, in process 1: its making was seen. */
static struct record_communicator seen_made(uint32_t number, uint64_t pointer, int32_t rank, uint64_t hash,
                                            uint8_t identity_kind)
{
    return (struct record_communicator){.communicator = number,
                                        .process = 1,
                                        .pointer = pointer,
                                        .ranks_count = 2,
                                        .rank = rank,
                                        .hash = hash,
                                        .created_ns = 2 * SECOND,
                                        .identity_kind = identity_kind};
}

/* The same, of which only the library's hash is known. */
static struct record_communicator come_late(uint32_t number, uint64_t pointer, int32_t rank, uint64_t hash)
{
    struct record_communicator late = seen_made(number, pointer, rank, hash, IDENTITY_OF_HASH);

    late.created_ns = 0;
    late.flags = COMMUNICATOR_LATE;
    return late;
}

static void add_call(struct feed *feed, uint32_t communicator, uint32_t sequence, uint64_t count, uint64_t at_ns,
                     uint8_t flags)
{
    struct record_call call = {.header.source = communicator,
                               .sequence = sequence,
                               .count = count,
                               .entered_ns = at_ns,
                               .enqueued_ns = at_ns,
                               .peer = -1,
                               .operation = OPERATION_ALL_REDUCE,
                               .datatype = 7,
                               .flags = flags};
    feed_add(feed, RECORD_CALL, &call);
}

/* A repeating pattern of sizes, two calls close together and then a pause, as of training steps. */
static uint64_t call_count(unsigned number)
{
    return number % 2 == 0 ? 1000 : 2000;
}

static uint64_t call_time(unsigned number, unsigned rank)
{
    return 10 * SECOND + number / 2 * 200 * MS + number % 2 * 5 * MS + rank * MS;
}

static void add_calls(struct feed *feed, uint32_t communicator, unsigned rank, unsigned from, unsigned to, bool late)
{
    for (unsigned i = from; i < to; i++)
        add_call(feed, communicator, late ? i - from : i, call_count(i), call_time(i, rank), late ? AFTER_LOSS : 0);
}

/* Every call of every member, known by its time, has this number. */
static void assert_numbers(const struct naming *naming, int64_t shift_after_gap, unsigned gap_from)
{
    for (size_t i = 0; i < naming->calls.count; i++) {
        const struct call *call = &naming->calls.items[i];
        const int32_t rank = naming->members.items[call->member].record.rank;
        const uint64_t since_ns = call->record.entered_ns - 10 * SECOND - (uint64_t)rank * MS;
        const unsigned number = (unsigned)(since_ns / (200 * MS) * 2 + since_ns % (200 * MS) / (5 * MS));
        assert_int_equal(call->record.sequence, number + (number >= gap_from ? shift_after_gap : 0));
    }
}

/* Two hosts; the agent of one is started again, without having seen how its communicator was made. */
static void started_again(struct world *world, uint64_t hash, unsigned second_rank_from)
{
    struct feed *whole = add_boot(world, 1, 9, SECOND);
    struct feed *before = add_boot(world, 2, 8, SECOND);
    struct feed *after = add_boot(world, 2, 5, 20 * SECOND);
    add_process(whole, 1, 100, 0);
    add_communicator(whole, seen_made(1, 0x10, 0, hash, IDENTITY_OF_ID), "world");
    add_process(before, 1, 200, 0);
    add_communicator(before, seen_made(1, 0x20, 1, hash, IDENTITY_OF_ID), "world");
    add_process(after, 7, 200, 50 * SECOND);
    add_communicator(after,
                     (struct record_communicator){.communicator = 3,
                                                  .process = 7,
                                                  .pointer = 0x20,
                                                  .ranks_count = 2,
                                                  .rank = 1,
                                                  .hash = hash,
                                                  .flags = COMMUNICATOR_LATE,
                                                  .destroyed_ns = 50 * SECOND,
                                                  .identity_kind = hash == 0 ? IDENTITY_UNKNOWN : IDENTITY_OF_HASH},
                     hash == 0 ? "" : "by hash");
    add_calls(whole, 1, 0, 0, 300, false);
    add_calls(before, 1, 1, 0, 100, false);
    add_calls(after, 3, 1, second_rank_from, 300, true);
    world_name(world);
}

static void test_started_again(void **state)
{
    (void)state;
    for (uint64_t hash = 0; hash < 2; hash++) {
        struct world *world = world_create();
        started_again(world, hash, 111);
        assert_int_equal(world->naming.members.count, 2);
        assert_int_equal(world->naming.processes.count, 2);
        assert_int_equal(world->naming.communicators.count, 1);
        assert_int_equal(world->naming.communicators.items[0].ranks_seen, 2);
        for (size_t i = 0; i < 2; i++) {
            const struct member *member = &world->naming.members.items[i];
            assert_string_equal((const char *)member->record.identity, "world");
            assert_int_equal(member->record.flags, 0);
            assert_int_equal(member->destroyed_ns, member->record.rank == 1 ? 50 * SECOND : 0);
            assert_int_equal(member->calls.count, member->record.rank == 1 ? 289 : 300);
        }
        assert_numbers(&world->naming, 0, 0);
        world_destroy(world);
    }
}

/* All ranks of a communicator on one host: what was called between is not known, but which call is whose counterpart.
 */
static void test_all_ranks_started_again(void **state)
{
    struct world *world = world_create();
    (void)state;
    struct feed *before = add_boot(world, 2, 8, SECOND);
    struct feed *after = add_boot(world, 2, 5, 20 * SECOND);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const struct record_communicator early = {.communicator = rank + 1,
                                                  .process = rank + 1,
                                                  .pointer = 0x20,
                                                  .created_ns = 2 * SECOND,
                                                  .ranks_count = RANKS,
                                                  .rank = (int32_t)rank,
                                                  .identity_kind = IDENTITY_OF_ID};
        const struct record_communicator late = {.communicator = 9 - rank,
                                                 .process = 9 - rank,
                                                 .pointer = 0x20,
                                                 .ranks_count = RANKS,
                                                 .rank = (int32_t)rank,
                                                 .flags = COMMUNICATOR_LATE};
        add_process(before, rank + 1, 100 + rank, 0);
        add_communicator(before, early, "world");
        add_process(after, 9 - rank, 100 + rank, 0);
        add_communicator(after, late, "");
        add_calls(before, rank + 1, rank, 0, 100, false);
        add_calls(after, 9 - rank, rank, 150 - rank % 2, 300, true); /* odd ranks one call earlier */
    }
    world_name(world);
    assert_int_equal(world->naming.members.count, RANKS);
    int64_t shift = INT64_MIN;
    for (size_t i = 0; i < world->naming.calls.count && shift == INT64_MIN; i++)
        if (world->naming.calls.items[i].record.entered_ns == call_time(150, 0))
            shift = (int64_t)world->naming.calls.items[i].record.sequence - 150;
    assert_true(150 + shift > 100);
    assert_numbers(&world->naming, shift, 149);
    world_destroy(world);
}

/* A process that is another one, an ncclComm_t that is another communicator's by now, and one that had ended. */
static void test_another_is_not_the_same(void **state)
{
    static const struct {
        uint32_t pid;
        uint64_t pointer, hash, destroyed_ns;
        size_t members;
    } cases[] = {{200, 0x20, 5, 0, 1},
                 {201, 0x20, 5, 0, 2},
                 {200, 0x21, 5, 0, 2},
                 {200, 0x20, 6, 0, 2},
                 {200, 0x20, 5, 9 * SECOND, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *world = world_create();
        struct feed *before = add_boot(world, 2, 8, SECOND);
        struct feed *after = add_boot(world, 2, 5, 20 * SECOND);
        add_process(before, 1, 200, 0);
        add_communicator(before,
                         (struct record_communicator){.communicator = 1,
                                                      .process = 1,
                                                      .pointer = 0x20,
                                                      .hash = 5,
                                                      .ranks_count = 2,
                                                      .rank = 1,
                                                      .destroyed_ns = cases[i].destroyed_ns,
                                                      .identity_kind = IDENTITY_OF_ID},
                         "world");
        add_process(after, 1, cases[i].pid, 0);
        add_communicator(after,
                         (struct record_communicator){.communicator = 1,
                                                      .process = 1,
                                                      .pointer = cases[i].pointer,
                                                      .hash = cases[i].hash,
                                                      .ranks_count = 2,
                                                      .rank = 1,
                                                      .flags = COMMUNICATOR_LATE},
                         "");
        world_name(world);
        assert_int_equal(world->naming.members.count, cases[i].members);
        world_destroy(world);
    }
}

/* Rank 0 was seen from the beginning, rank 1 was not; a second communicator may have the same hash. */
static void name_by_hash(struct world *world, bool twice)
{
    struct feed *early = add_boot(world, 1, 9, SECOND);
    struct feed *late = add_boot(world, 2, 8, 20 * SECOND);
    add_process(early, 1, 100, 0);
    add_process(late, 1, 200, 0);
    add_communicator(early, seen_made(1, 0x10, 0, 77, IDENTITY_OF_PARENT), "first");
    if (twice)
        add_communicator(early, seen_made(2, 0x11, 0, 77, IDENTITY_OF_PARENT), "second");
    add_communicator(late, come_late(1, 0x20, 1, 77), "by hash");
    world_name(world);
}

static void test_joined_by_hash(void **state)
{
    struct world *world = world_create();
    (void)state;
    name_by_hash(world, false);
    assert_int_equal(world->naming.communicators.count, 1);
    assert_int_equal(world->naming.communicators.items[0].ranks_seen, 2);
    assert_string_equal((const char *)world->naming.communicators.items[0].identity, "first");
    world_destroy(world);
    world = world_create();
    name_by_hash(world, true);
    assert_int_equal(world->naming.communicators.count, 3);
    world_destroy(world);
}

/* Equal hash, but the same rank at the same time: two communicators. */
static void test_no_rank_twice(void **state)
{
    struct world *world = world_create();
    (void)state;
    struct feed *early = add_boot(world, 1, 9, SECOND);
    struct feed *late = add_boot(world, 2, 8, 20 * SECOND);
    add_process(early, 1, 100, 0);
    add_process(late, 1, 200, 0);
    add_communicator(early, seen_made(1, 0x10, 1, 77, IDENTITY_OF_ID), "first");
    add_communicator(late, come_late(1, 0x20, 1, 77), "by hash");
    world_name(world);
    assert_int_equal(world->naming.communicators.count, 2);
    world_destroy(world);
}

struct split { /* what one rank of the world asked for, and what it must be */
    int32_t color, key;
    int32_t rank, ranks;
};

/* Each rank on a host of its own; number = communicator 10 * generation + 1 in each. */
static void add_child(struct feed *feed, uint32_t number, uint32_t parent, uint32_t child, const char *identity,
                      const struct split *split)
{
    const struct record_communicator record = {.communicator = number,
                                               .process = 1,
                                               .pointer = split->color == NO_COLOR ? 0 : 0x1000 + number,
                                               .parent = parent,
                                               .child = child,
                                               .color = split->color,
                                               .key = split->key,
                                               .rank = -1,
                                               .created_ns = 3 * SECOND + number,
                                               .creator = COMMUNICATOR_BY_SPLIT,
                                               .identity_kind = IDENTITY_OF_PARENT,
                                               .ending =
                                                   split->color == NO_COLOR ? COMMUNICATOR_NO_PART : COMMUNICATOR_NONE,
                                               .destroyed_ns = split->color == NO_COLOR ? 3 * SECOND + number : 0};
    char name[IDENTITY_BYTES] = "";
    strncpy(name, identity, sizeof name - 2);
    name[strlen(name)] = (char)('a' + split->color);
    add_communicator(feed, record, name);
}

static void begin_world(struct world *world)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct feed *feed = add_boot(world, rank + 1, 90 + rank, SECOND);
        add_process(feed, 1, 100 + rank, 0);
        add_communicator(feed,
                         (struct record_communicator){.communicator = 1,
                                                      .process = 1,
                                                      .pointer = 0x10,
                                                      .ranks_count = RANKS,
                                                      .rank = (int32_t)rank,
                                                      .created_ns = 2 * SECOND,
                                                      .identity_kind = IDENTITY_OF_ID},
                         "world");
    }
}

static const struct member *member_of(const struct world *world, uint64_t emitter, uint32_t number)
{
    for (size_t i = 0; i < world->naming.members.count; i++) {
        const struct member *member = &world->naming.members.items[i];
        if (world->intake.streams.items[member->stream].emitter_id == emitter && member->record.communicator == number)
            return member;
    }
    return NULL;
}

static void assert_split(const struct world *world, uint32_t number, const struct split splits[RANKS])
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const struct member *member = member_of(world, rank + 1, number);
        if (splits[rank].color == NO_COLOR) {
            assert_null(member);
            continue;
        }
        assert_non_null(member);
        assert_int_equal(member->record.rank, splits[rank].rank);
        assert_int_equal(member->record.ranks_count, splits[rank].ranks);
    }
}

/* Keys in disorder, negative, and equal: then the parent's rank decides; one rank takes no part. */
static void test_ranks_of_children(void **state)
{
    static const struct split splits[][RANKS] = {
        {{0, 0, 0, 2}, {1, 0, 0, 2}, {0, 0, 1, 2}, {1, 0, 1, 2}},
        {{0, 3, 3, 4}, {0, 2, 2, 4}, {0, 1, 1, 4}, {0, -5, 0, 4}},
        {{2, 7, 1, 3}, {2, 7, 2, 3}, {NO_COLOR, 0, -1, 0}, {2, 6, 0, 3}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        struct world *world = world_create();
        begin_world(world);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            add_child(world->emitters[rank], 2, 1, 0, "child", &splits[i][rank]);
        world_name(world);
        assert_split(world, 2, splits[i]);
        world_destroy(world);
    }
}

/* While one rank of the parent has not been heard of, nobody's rank is known. */
static void test_members_missing(void **state)
{
    static const struct split splits[RANKS] = {{0, 0, -1, 0}, {0, 0, -1, 0}, {0, 0, -1, 0}, {0, 0, -1, 0}};
    struct world *world = world_create();
    (void)state;
    begin_world(world);
    for (uint32_t rank = 0; rank < RANKS - 1; rank++)
        add_child(world->emitters[rank], 2, 1, 0, "child", &splits[rank]);
    add_child(world->emitters[RANKS - 1], 2, 1, 1, "other child", &splits[RANKS - 1]); /* of another call */
    world_name(world);
    assert_split(world, 2, splits);
    world_destroy(world);
}

/* Ranks of grandchildren follow from those of children: 4 ranks in reverse, their halves in reverse, one of each. */
static void test_three_deep(void **state)
{
    static const struct split first[RANKS] = {{0, 3, 3, 4}, {0, 2, 2, 4}, {0, 1, 1, 4}, {0, 0, 0, 4}};
    static const struct split second[RANKS] = {{1, 0, 1, 2}, {1, 0, 0, 2}, {2, 0, 1, 2}, {2, 0, 0, 2}};
    static const struct split third[RANKS] = {{5, -1, 0, 2}, {5, 0, 1, 2}, {5, 1, 1, 2}, {5, 0, 0, 2}};
    struct world *world = world_create();
    (void)state;
    begin_world(world);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        add_child(world->emitters[rank], 4, 3, 0, rank < 2 ? "one" : "two", &third[rank]); /* told before its parent */
        add_child(world->emitters[rank], 3, 2, 0, "halves", &second[rank]);
        add_child(world->emitters[rank], 2, 1, 0, "reverse", &first[rank]);
    }
    world_name(world);
    assert_split(world, 2, first);
    assert_split(world, 3, second);
    assert_split(world, 4, third);
    world_destroy(world);
}

static void add_late_pair(struct feed *feed, uint32_t number, uint8_t own, uint32_t qpn, uint32_t remote_qpn)
{
    struct record_queue_pair record = {.queue_pair = number,
                                       .process = 1,
                                       .qpn = qpn,
                                       .remote_qpn = remote_qpn,
                                       .state = QUEUE_PAIR_RTS,
                                       .flags = QUEUE_PAIR_LATE};
    world_address(record.address, own);
    feed_add(feed, RECORD_QUEUE_PAIR, &record);
}

static void add_flow(struct feed *feed, uint32_t number, uint8_t from, uint8_t to, uint32_t qpn)
{
    struct record_flow flow = {.flow = number, .destination_qpn = qpn, .first_ns = 30 * SECOND, .port = 1};
    world_address(flow.source, from);
    world_address(flow.destination, to);
    feed_add(feed, RECORD_FLOW, &flow);
}

/*
 * Three ranks whose devices all count QPNs from 17, and whose queue pairs were there before their agents: both numbers
 * of 0 -> 1 are those of 1 -> 2 too, and of 0 -> 2 turned round. Only what the wire shows tells them apart.
 */
static void add_late_ranks(struct world *world, bool two_communicators)
{
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct feed *feed = add_boot(world, rank + 1, 90 + rank, 20 * SECOND);
        add_process(feed, 1, 100 + rank, 0);
        for (uint32_t i = 1; i <= (two_communicators ? 2 : 1); i++)
            add_communicator(feed,
                             (struct record_communicator){.communicator = i,
                                                          .process = 1,
                                                          .pointer = 0x10 * i,
                                                          .ranks_count = 3,
                                                          .rank = (int32_t)rank,
                                                          .hash = 70 + i,
                                                          .flags = COMMUNICATOR_LATE,
                                                          .identity_kind = IDENTITY_OF_HASH},
                             i == 1 ? "one" : "two");
        add_late_pair(feed, 1, (uint8_t)(rank + 1), 17, 18);
        add_late_pair(feed, 2, (uint8_t)(rank + 1), 18, 17);
    }
    struct feed *nic = world_add(world, EMITTER_NIC, 9, 9, 0, SECOND);
    for (uint32_t rank = 0; rank < 3; rank++)
        add_flow(nic, rank + 1, (uint8_t)(rank + 1), (uint8_t)((rank + 1) % 3 + 1), 18);
    add_flow(nic, 4, 9, 1, 18); /* a stranger's, to a number that is in use */
    world_name(world);
}

static void test_late_queue_pairs(void **state)
{
    struct world *world = world_create();
    (void)state;
    add_late_ranks(world, false);
    for (size_t i = 0; i < 3; i++) {
        const struct flow *flow = &world->naming.flows.items[i];
        assert_true(flow->sender >= 0 && flow->receiver >= 0);
        const struct queue_pair *sender = &world->naming.queue_pairs.items[flow->sender];
        const struct queue_pair *receiver = &world->naming.queue_pairs.items[flow->receiver];
        assert_int_equal(sender->record.qpn, 17);
        assert_int_equal(sender->peer, flow->receiver);
        assert_int_equal(receiver->peer, flow->sender);
        assert_int_equal(world->naming.members.items[sender->member].record.rank, i);
        assert_int_equal(world->naming.members.items[receiver->member].record.rank, (i + 1) % 3);
    }
    assert_int_equal(world->naming.flows.items[3].sender, -1);
    world_destroy(world);
}

/* The processes at both ends have two communicators in common: whose the queue pair is is not known. */
static void test_late_queue_pairs_of_two(void **state)
{
    struct world *world = world_create();
    (void)state;
    add_late_ranks(world, true);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(world->naming.queue_pairs.items[world->naming.flows.items[i].sender].member, -1);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_started_again),           cmocka_unit_test(test_all_ranks_started_again),
        cmocka_unit_test(test_another_is_not_the_same), cmocka_unit_test(test_joined_by_hash),
        cmocka_unit_test(test_no_rank_twice),           cmocka_unit_test(test_ranks_of_children),
        cmocka_unit_test(test_members_missing),         cmocka_unit_test(test_three_deep),
        cmocka_unit_test(test_late_queue_pairs),        cmocka_unit_test(test_late_queue_pairs_of_two),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("naming_late", tests, NULL, NULL);
}
