/* SPDX-License-Identifier: BSD-2-Clause */
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

#define SECOND WORLD_SECOND

static void add_process(struct world *world, uint32_t process)
{
    struct record_process record = {.process = process, .pid = 1000 + process};
    feed_add(world->host, RECORD_PROCESS, &record);
}

static void add_communicator(struct world *world, uint32_t number, uint32_t process, const char *identity,
                             int32_t ranks, int32_t rank, uint32_t tid)
{
    struct record_communicator record = {
        .header.source = tid,
        .communicator = number,
        .process = process,
        .ranks_count = ranks,
        .rank = rank,
        .created_ns = 2 * SECOND,
        .ready_ns = 3 * SECOND,
    };
    memcpy(record.identity, identity, strlen(identity));
    feed_add(world->host, RECORD_COMMUNICATOR, &record);
}

struct made_pair {
    uint32_t process, communicator, qpn, remote_qpn;
    uint8_t address, remote;
    uint64_t created_ns, destroyed_ns;
    uint32_t flags;
};

static void add_pair(struct world *world, struct made_pair pair)
{
    struct record_queue_pair record = {
        .queue_pair = ++world->queue_pairs,
        .process = pair.process,
        .communicator = pair.communicator,
        .qpn = pair.qpn,
        .remote_qpn = pair.remote_qpn,
        .state = QUEUE_PAIR_RTS,
        .flags = pair.flags,
        .created_ns = pair.created_ns,
        .destroyed_ns = pair.destroyed_ns,
    };
    world_address(record.address, pair.address);
    world_address(record.remote_address, pair.remote);
    feed_add(world->host, RECORD_QUEUE_PAIR, &record);
}

static void add_flow(struct world *world, uint8_t from, uint8_t to, uint32_t destination_qpn, uint64_t first_ns)
{
    struct record_flow flow = {.flow = ++world->flows,
                               .destination_qpn = destination_qpn,
                               .first_ns = first_ns,
                               .vantage = VANTAGE_TX,
                               .port = 1};
    world_address(flow.source, from);
    world_address(flow.destination, to);
    feed_add(world->nic, RECORD_FLOW, &flow);
}

/* The same at the same port, in a tunnel and by a mirror. */
static void add_view(struct world *world, uint8_t tunnel_kind, uint32_t tunnel, uint16_t mirror_session)
{
    struct record_flow flow = {.flow = ++world->flows,
                               .destination_qpn = 18,
                               .first_ns = 10 * SECOND,
                               .port = 1,
                               .tunnel_kind = tunnel_kind,
                               .tunnel = tunnel,
                               .mirror_kind = mirror_session == 0 ? MIRROR_NONE : MIRROR_ERSPAN2,
                               .mirror_session = mirror_session};
    world_address(flow.source, 1);
    world_address(flow.destination, 2);
    feed_add(world->nic, RECORD_FLOW, &flow);
}

static int32_t flow_ranks(const struct world *world, size_t flow)
{
    const struct flow *of = &world->naming.flows.items[flow];
    if (of->sender < 0 || of->receiver < 0)
        return -1;
    int32_t sender = world->naming.queue_pairs.items[of->sender].member;
    int32_t receiver = world->naming.queue_pairs.items[of->receiver].member;
    return sender < 0 || receiver < 0
               ? -1
               : 10 * world->naming.members.items[sender].rank + world->naming.members.items[receiver].rank;
}

/* Three ranks whose devices all count QPNs from 17: 0 -> 1 and 1 -> 2 have the same numbers at both ends. */
static void test_same_numbers_on_every_host(void **state)
{
    struct world *world = world_create_pair(0, 0);
    (void)state;
    for (uint32_t rank = 0; rank < 3; rank++) {
        add_process(world, rank + 1);
        add_communicator(world, rank + 1, rank + 1, "all", 3, (int32_t)rank, 0);
        uint8_t own = (uint8_t)(rank + 1), next = (uint8_t)((rank + 1) % 3 + 1), before = (uint8_t)((rank + 2) % 3 + 1);
        add_pair(world, (struct made_pair){rank + 1, rank + 1, 17, 18, own, next, 2 * SECOND, 0, 0});
        add_pair(world, (struct made_pair){rank + 1, rank + 1, 18, 17, own, before, 2 * SECOND, 0, 0});
    }
    add_flow(world, 1, 2, 18, 10 * SECOND);
    add_flow(world, 2, 3, 18, 10 * SECOND);
    add_flow(world, 1, 3, 17, 10 * SECOND); /* credits of rank 0 for rank 2 */
    add_flow(world, 9, 3, 17, 10 * SECOND); /* a stranger's */
    world_name(world);
    assert_int_equal(flow_ranks(world, 0), 1);
    assert_int_equal(flow_ranks(world, 1), 12);
    assert_int_equal(flow_ranks(world, 2), 2);
    assert_int_equal(flow_ranks(world, 3), -1);
    assert_int_equal(world->naming.ranks_count, 3);
    for (size_t i = 0; i < 6; i++)
        assert_true(world->naming.queue_pairs.items[i].peer >= 0);
    world_destroy(world);
}

static struct world *name_views(uint32_t second_vni, uint16_t second_session)
{
    struct world *world = world_create_pair(0, 0);

    for (uint32_t rank = 0; rank < 2; rank++) {
        add_process(world, rank + 1);
        add_communicator(world, rank + 1, rank + 1, "all", 2, (int32_t)rank, 0);
        add_pair(world, (struct made_pair){rank + 1, rank + 1, 17 + rank, 18 - rank, (uint8_t)(rank + 1),
                                           (uint8_t)(2 - rank), 2 * SECOND, 0, 0});
    }
    add_view(world, TUNNEL_VXLAN, 5001, 1);
    add_view(world, TUNNEL_VXLAN, second_vni, second_session);
    world_name(world);
    return world;
}

/* Two mirrors show one flow; two VXLANs with the same addresses and QPNs are two flows, and one of them is a
 * stranger's. */
static void test_the_same_in_two_networks(void **state)
{
    struct world *world = name_views(5001, 2);
    (void)state;
    assert_int_equal(flow_ranks(world, 0), 1);
    assert_int_equal(flow_ranks(world, 1), 1);
    world_destroy(world);
    world = name_views(5002, 1);
    assert_int_equal(flow_ranks(world, 0), -1);
    assert_int_equal(flow_ranks(world, 1), -1);
    world_destroy(world);
}

/* A QPN that is used again is another queue pair: the flow's time tells whose it is. */
static void test_numbers_used_again(void **state)
{
    struct world *world = world_create_pair(0, 0);
    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        add_process(world, rank + 1);
        add_communicator(world, 2 * rank + 1, rank + 1, "first", 2, (int32_t)rank, 0);
        add_communicator(world, 2 * rank + 2, rank + 1, "second", 2, (int32_t)rank, 0);
        uint8_t own = (uint8_t)(rank + 1), other = (uint8_t)(2 - rank);
        add_pair(world, (struct made_pair){rank + 1, 2 * rank + 1, 17, 17, own, other, 5 * SECOND, 15 * SECOND, 0});
        add_pair(world, (struct made_pair){rank + 1, 2 * rank + 2, 17, 17, own, other, 20 * SECOND, 0, 0});
    }
    add_flow(world, 1, 2, 17, 10 * SECOND);
    add_flow(world, 1, 2, 17, 30 * SECOND);
    world_name(world);
    const struct naming *naming = &world->naming;
    const char *wanted[] = {"first", "second"};
    for (size_t i = 0; i < 2; i++) {
        const struct queue_pair *sender = &naming->queue_pairs.items[naming->flows.items[i].sender];
        assert_string_equal((const char *)naming->members.items[sender->member].record.identity, wanted[i]);
        assert_int_equal(sender->peer, naming->flows.items[i].receiver);
    }
    world_destroy(world);
}

static void test_flush_and_foreign_are_not_claimed(void **state)
{
    struct world *world = world_create_pair(0, 0);
    (void)state;
    add_process(world, 1);
    add_communicator(world, 1, 1, "all", 2, 0, 0);
    add_pair(world, (struct made_pair){1, 1, 30, 30, 1, 1, 2 * SECOND, 0, QUEUE_PAIR_FLUSH});
    add_pair(world, (struct made_pair){1, 0, 31, 40, 1, 2, 2 * SECOND, 0, QUEUE_PAIR_FOREIGN});
    add_flow(world, 1, 2, 40, 10 * SECOND);
    world_name(world);
    assert_int_equal(world->naming.queue_pairs.items[0].role, QUEUE_PAIR_ROLE_FLUSH);
    assert_int_equal(world->naming.queue_pairs.items[1].role, QUEUE_PAIR_ROLE_FOREIGN);
    assert_int_equal(world->naming.queue_pairs.items[1].member, -1);
    assert_int_equal(flow_ranks(world, 0), -1);
    world_destroy(world);
}

/* Two ranks in one process, told apart by the threads that made their communicators. */
static void test_two_ranks_in_one_process(void **state)
{
    struct world *world = world_create_pair(0, 0);
    (void)state;
    add_process(world, 1);
    add_communicator(world, 1, 1, "all four", 4, 2, 501);
    add_communicator(world, 2, 1, "all four", 4, 3, 502);
    add_communicator(world, 3, 1, "a pair", 2, 0, 502);
    add_communicator(world, 4, 1, "another pair", 2, 1, 501);
    add_communicator(world, 5, 1, "nobody's", 2, 1, 777);
    world_name(world);
    static const int32_t wanted[] = {2, 3, 3, 2, -1};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(world->naming.members.items[i].rank, wanted[i]);
    assert_int_equal(naming_member(&world->naming, world->naming.members.items[2].record.identity, 0), 2);
    assert_int_equal(world->naming.communicators.count, 4);
    world_destroy(world);
}

static void add_fact(struct world *world, uint32_t process, uint16_t fact, const char *text)
{
    struct record_process_fact record = {.process = process, .fact = fact, .text_bytes = (uint32_t)strlen(text)};
    memcpy(record.text, text, strlen(text));
    feed_add(world->host, RECORD_PROCESS_FACT, &record);
}

/*
 * Two communicators of all three ranks, the first of which numbers them backwards: the launcher's numbers are the
 * job's, those of the launcher that is nearest; where it gave none, or none of the communicators has them, those of the
 * communicator that was made first.
 */
static void test_largest_communicators_disagree(void **state)
{
    static const struct {
        const char *near[3], *far[3];
        int32_t ranks[3];
    } cases[] = {
        {{"0", "1", "2"}, {"0", "0", "0"}, {0, 1, 2}}, {{"2", "1", "0"}, {"0", "1", "2"}, {2, 1, 0}},
        {{"", "x", "1x"}, {"0", "1", "2"}, {0, 1, 2}}, {{"", "", "2"}, {"", "", ""}, {0, 1, 2}},
        {{"", "", ""}, {"", "", ""}, {2, 1, 0}},       {{"0", "0", "0"}, {"", "", ""}, {2, 1, 0}},
        {{"1", "2", "3"}, {"", "", ""}, {2, 1, 0}},    {{"9999999999", "", ""}, {"", "", ""}, {2, 1, 0}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *world = world_create_pair(0, 0);
        for (uint32_t j = 0; j < 3; j++) {
            add_process(world, j + 1);
            add_communicator(world, 3 * j + 1, j + 1, "a backwards", 3, 2 - (int32_t)j, 0);
            add_communicator(world, 3 * j + 2, j + 1, "b forwards", 3, (int32_t)j, 0);
            add_communicator(world, 3 * j + 3, j + 1, "c of two", 2, (int32_t)j % 2, 0);
            add_fact(world, j + 1, PROCESS_FACT_RANK, cases[i].near[j]);
            add_fact(world, j + 1, PROCESS_FACT_SLURM_PROCID, cases[i].far[j]);
        }
        world_name(world);
        for (size_t j = 0; j < world->naming.members.count; j++)
            assert_int_equal(world->naming.members.items[j].rank,
                             cases[i].ranks[world->naming.members.items[j].process]);
        world_destroy(world);
    }
}

/* Messages of a flow that was never described are counted, not guessed. */
static void test_orphans_are_counted(void **state)
{
    struct world *world = world_create_pair(0, 0);
    struct record_message message = {.header.source = 5, .first_ns = 10 * SECOND};
    (void)state;
    feed_add(world->nic, RECORD_MESSAGE, &message);
    world_name(world);
    assert_int_equal(world->naming.orphans_count, 1);
    assert_int_equal(world->naming.messages.count, 0);
    world_destroy(world);
}

/* Two ends of one connection; the receiver's process is rank 1. */
static struct world *connect_told(uint8_t side, int32_t channel, int32_t far_rank, uint8_t peer_side,
                                  int32_t peer_channel)
{
    struct world *world = world_create_pair(0, 0);

    for (uint32_t i = 1; i <= 2; i++) {
        add_process(world, i);
        add_communicator(world, i, i, "one", 2, (int32_t)i - 1, 100 + i);
        struct record_queue_pair pair = {
            .queue_pair = i,
            .process = i,
            .communicator = i,
            .qpn = 16 + i,
            .remote_qpn = 19 - i,
            .state = QUEUE_PAIR_RTS,
            .created_ns = 4 * SECOND,
            .ready_ns = 4 * SECOND,
            .side = i == 1 ? side : peer_side,
            .channel = i == 1 ? channel : peer_channel,
            .origin_rank = (int32_t)i - 1,
            .far_rank = i == 1 ? far_rank : 0,
        };
        world_address(pair.address, (uint8_t)i);
        world_address(pair.remote_address, (uint8_t)(3 - i));
        feed_add(world->host, RECORD_QUEUE_PAIR, &pair);
    }
    world_name(world);
    return world;
}

static void told_of(struct world *world, int32_t channel, int32_t peer_channel, uint64_t contradicted)
{
    assert_int_equal(world->naming.queue_pairs.items[0].peer, 1);
    assert_int_equal(world->naming.queue_pairs.items[0].record.channel, channel);
    assert_int_equal(world->naming.queue_pairs.items[1].record.channel, peer_channel);
    assert_int_equal(world->naming.contradicted_count, contradicted);
    world_destroy(world);
}

/* What set-up messages gave two ends stands when it fits together, and else is nobody's. */
static void test_ends_that_disagree_say_nothing(void **state)
{
    struct world *world;
    (void)state;
    world = connect_told(QUEUE_PAIR_SIDE_SENDER, 3, 1, QUEUE_PAIR_SIDE_RECEIVER, 3);
    told_of(world, 3, 3, 0);
    world = connect_told(QUEUE_PAIR_SIDE_SENDER, 3, 1, QUEUE_PAIR_SIDE_UNKNOWN, -1);
    told_of(world, 3, -1, 0);
    world = connect_told(QUEUE_PAIR_SIDE_SENDER, 3, 1, QUEUE_PAIR_SIDE_RECEIVER, 2); /* another channel */
    told_of(world, -1, -1, 1);
    world = connect_told(QUEUE_PAIR_SIDE_SENDER, 3, 1, QUEUE_PAIR_SIDE_SENDER, 3); /* two senders */
    told_of(world, -1, -1, 1);
    world = connect_told(QUEUE_PAIR_SIDE_SENDER, 3, 0, QUEUE_PAIR_SIDE_UNKNOWN, -1); /* another rank's queue pair */
    told_of(world, -1, -1, 1);
}

/* A communicator of two, numbers 1 and 2, and its child without a thread of its own, 11 and 12; a call of half a
 * second. */
static struct world *world_of_family(void)
{
    struct world *world = world_create_pair(0, 0);

    for (uint32_t i = 1; i <= 2; i++) {
        struct record_communicator child = {.communicator = 10 + i,
                                            .process = i,
                                            .parent = i,
                                            .identity = "child",
                                            .ranks_count = 2,
                                            .rank = (int32_t)i - 1,
                                            .created_ns = 5 * SECOND,
                                            .ready_ns = 6 * SECOND};
        add_process(world, i);
        add_communicator(world, i, i, "parent", 2, (int32_t)i - 1, 0);
        feed_add(world->host, RECORD_COMMUNICATOR, &child);
    }
    return world;
}

static void add_call(struct world *world, uint32_t communicator, uint64_t at_ns)
{
    struct record_call call = {.header.source = communicator,
                               .sequence = (uint32_t)(at_ns / SECOND),
                               .returned_after_ns = SECOND / 2,
                               .count = 8,
                               .entered_ns = at_ns,
                               .enqueued_ns = at_ns,
                               .operation = OPERATION_ALL_REDUCE,
                               .datatype = 7};
    feed_add(world->host, RECORD_CALL, &call);
}

/* Both ends of a connection, made by the parent's threads at these times. */
static void add_ends(struct world *world, uint32_t qpn, uint64_t first_ns, uint64_t second_ns)
{
    add_pair(world, (struct made_pair){1, 1, qpn, qpn, 1, 2, first_ns, 0, 0});
    add_pair(world, (struct made_pair){2, 2, qpn, qpn, 2, 1, second_ns, 0, 0});
}

/* A queue pair is a child's when both ends were made in calls of the child's, and in none of its parent's. */
static void test_children_that_share_a_thread(void **state)
{
    static const bool of_child[] = {false, true, false, false, true};
    struct world *world = world_of_family();
    (void)state;
    for (uint32_t i = 1; i <= 2; i++) {
        add_call(world, i, 4 * SECOND);
        add_call(world, 10 + i, 7 * SECOND);
        add_call(world, 10 + i, 9 * SECOND);
        add_call(world, i, 11 * SECOND);
        add_call(world, 10 + i, 11 * SECOND + 1000);
    }
    add_ends(world, 17, 4 * SECOND + 1000, 4 * SECOND + 2000);
    add_ends(world, 18, 7 * SECOND + 1000, 7 * SECOND + 2000);
    add_ends(world, 19, 9 * SECOND + 1000, 10 * SECOND);         /* one end between calls */
    add_ends(world, 20, 11 * SECOND + 2000, 11 * SECOND + 3000); /* calls of both were under way */
    add_ends(world, 21, 5 * SECOND + 1000, 5 * SECOND + 2000);   /* while the child was made */
    world_name(world);
    for (size_t i = 0; i < world->naming.queue_pairs.count; i++) {
        const struct queue_pair *pair = &world->naming.queue_pairs.items[i];
        const struct member *member = &world->naming.members.items[pair->member];
        assert_string_equal((const char *)member->record.identity,
                            of_child[pair->record.qpn - 17] ? "child" : "parent");
        assert_int_equal(member->process, pair->process);
    }
    assert_int_equal(world->naming.queue_pairs.count, 10);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_numbers_on_every_host),   cmocka_unit_test(test_the_same_in_two_networks),
        cmocka_unit_test(test_numbers_used_again),           cmocka_unit_test(test_flush_and_foreign_are_not_claimed),
        cmocka_unit_test(test_two_ranks_in_one_process),     cmocka_unit_test(test_largest_communicators_disagree),
        cmocka_unit_test(test_orphans_are_counted),          cmocka_unit_test(test_ends_that_disagree_say_nothing),
        cmocka_unit_test(test_children_that_share_a_thread),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("naming", tests, NULL, NULL);
}
