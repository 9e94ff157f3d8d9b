/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts beside their completions and their messages on the wire. */
#include "correlator/detail/posted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/correlator/world.h"

#define SECOND WORLD_SECOND
#define OFFSET 5000000000LL /* of the host side's clock */
#define BOUND  200000ULL    /* more than half a round trip (30 us) and what 10 s without an exchange add */

/* Queue pair 1 sends from 10.0.0.1 to queue pair 18 at 10.0.0.2; its own port sees flow 1. */
static struct world *begin(void)
{
    struct world *world = world_create_pair(OFFSET, 0);
    struct record_process process = {.process = 1, .pid = 100};
    struct record_queue_pair pair = {.queue_pair = 1, .process = 1, .qpn = 17, .remote_qpn = 18, .state = 3};
    struct record_port port = {.port = 1, .name = "p0"};
    struct record_flow flow = {.flow = 1, .destination_qpn = 18, .vantage = VANTAGE_TX, .port = 1};

    world_address(pair.address, 1);
    world_address(pair.remote_address, 2);
    world_address(port.address, 1);
    world_address(flow.source, 1);
    world_address(flow.destination, 2);
    pair.created_ns = feed_time(world->host, 2 * SECOND);
    pair.ready_ns = feed_time(world->host, 3 * SECOND);
    flow.first_ns = 4 * SECOND;
    feed_add(world->host, RECORD_PROCESS, &process);
    feed_add(world->host, RECORD_QUEUE_PAIR, &pair);
    feed_add(world->nic, RECORD_PORT, &port);
    feed_add(world->nic, RECORD_FLOW, &flow);
    return world;
}

static struct posting build(struct world *world)
{
    struct posting posting = {0};

    world_name(world);
    posting_build(&posting, &world->naming, &world->intake, &world->timeline);
    return posting;
}

static void end(struct world *world, struct posting *posting)
{
    posting_fini(posting);
    world_destroy(world);
}

static void work(struct world *world, uint8_t what, uint64_t at_ns, uint64_t request, uint32_t bytes, uint16_t requests,
                 uint8_t flags)
{
    struct record_work record = {.header.source = 1,
                                 .at_ns = feed_time(world->host, at_ns),
                                 .request = request,
                                 .bytes = bytes,
                                 .requests = requests,
                                 .what = what,
                                 .flags = flags};
    feed_add(world->host, RECORD_WORK, &record);
}

static void message(struct world *world, uint64_t first_ns, uint32_t bytes)
{
    struct record_message record = {
        .header.source = 1, .first_ns = first_ns, .duration_ns = 1000, .payload_bytes = bytes, .frames = 1};
    feed_add(world->nic, RECORD_MESSAGE, &record);
}

static void is_near(uint64_t value, uint64_t expected)
{
    assert_in_range(value, expected - BOUND, expected + BOUND);
}

/* The second post's two requests are two messages; one that nobody saw being posted lies before. */
static void finds_messages(void **state)
{
    (void)state;
    struct world *world = begin();
    message(world, 9 * SECOND, 1000);
    message(world, 10 * SECOND + 500000, 1000);
    message(world, 11 * SECOND + 700000, 600);
    message(world, 11 * SECOND + 800000, 400);
    work(world, WORK_POSTED, 10 * SECOND, 1, 1000, 1, 0);
    work(world, WORK_POSTED, 11 * SECOND, 2, 1000, 2, 0);
    struct posting posting = build(world);
    assert_int_equal(posting.posts.count, 2);
    assert_int_equal(posting.posts.items[0].message, 1);
    assert_int_equal(posting.posts.items[1].message, 2);
    is_near(posting.posts.items[1].posted_ns, 11 * SECOND);
    assert_in_range(posting.posts.items[1].bound_ns, 1, BOUND);
    end(world, &posting);
}

/* Bytes that do not fit, a list that was cut, and a message that began before it was posted: none. */
static void finds_none_that_does_not_fit(void **state)
{
    (void)state;
    struct world *world = begin();
    message(world, 10 * SECOND + 500000, 999);
    message(world, 12 * SECOND + 500000, 1000);
    message(world, 14 * SECOND - 2 * BOUND, 1000);
    work(world, WORK_POSTED, 10 * SECOND, 1, 1000, 1, 0);
    work(world, WORK_POSTED, 12 * SECOND, 2, 1000, 1, WORK_CUT);
    work(world, WORK_POSTED, 14 * SECOND, 3, 1000, 1, 0);
    struct posting posting = build(world);
    assert_int_equal(posting.posts.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(posting.posts.items[i].message, -1);
    end(world, &posting);
}

/* Only the third post asks for a completion: it is one for the two before as well. The fourth fails. */
static void completes_in_order(void **state)
{
    (void)state;
    struct world *world = begin();
    for (uint64_t i = 0; i < 4; i++)
        work(world, WORK_POSTED, (10 + i) * SECOND, 100 + i, 8, 1, 0);
    work(world, WORK_COMPLETED, 14 * SECOND, 99, 0, 1, 0); /* posted before anybody followed */
    work(world, WORK_COMPLETED, 15 * SECOND, 102, 0, 1, 0);
    struct record_work failed = {.header.source = 1,
                                 .at_ns = feed_time(world->host, 16 * SECOND),
                                 .request = 103,
                                 .requests = 1,
                                 .what = WORK_COMPLETED,
                                 .status = 12}; /* IBV_WC_RETRY_EXC_ERR */
    feed_add(world->host, RECORD_WORK, &failed);
    struct posting posting = build(world);
    assert_int_equal(posting.posts.count, 4);
    for (size_t i = 0; i < 3; i++) {
        is_near(posting.posts.items[i].completed_ns, 15 * SECOND);
        assert_int_equal(posting.posts.items[i].status, 0);
    }
    is_near(posting.posts.items[3].completed_ns, 16 * SECOND);
    assert_int_equal(posting.posts.items[3].status, 12);
    end(world, &posting);
}

/* The number of a request is used again; a receive's completion is none of a send's. */
static void numbers_are_used_again(void **state)
{
    (void)state;
    struct world *world = begin();
    work(world, WORK_POSTED, 10 * SECOND, 7, 8, 1, 0);
    work(world, WORK_COMPLETED, 11 * SECOND, 7, 0, 1, 0);
    work(world, WORK_POSTED, 12 * SECOND, 7, 8, 1, 0);
    struct record_work received = {.header.source = 1,
                                   .at_ns = feed_time(world->host, 13 * SECOND),
                                   .request = 7,
                                   .requests = 1,
                                   .what = WORK_COMPLETED,
                                   .opcode = 129}; /* IBV_WC_RECV_RDMA_WITH_IMM */
    feed_add(world->host, RECORD_WORK, &received);
    struct posting posting = build(world);
    is_near(posting.posts.items[0].completed_ns, 11 * SECOND);
    assert_int_equal(posting.posts.items[1].completed_ns, 0);
    end(world, &posting);
}

static void strangers_and_requests(void **state)
{
    (void)state;
    struct world *world = begin();
    struct record_work stranger = {.header.source = 9, .at_ns = 1, .what = WORK_POSTED, .requests = 1};
    struct record_followed followed = {.header.source = 77,
                                       .from_ns = feed_time(world->host, 10 * SECOND),
                                       .to_ns = feed_time(world->host, 12 * SECOND),
                                       .hits = 5,
                                       .what = FOLLOW_WORK,
                                       .end = FOLLOWED_SPENT};
    feed_add(world->host, RECORD_WORK, &stranger);
    feed_add(world->host, RECORD_FOLLOWED, &followed);
    struct posting posting = build(world);
    assert_int_equal(posting.posts.count, 0);
    assert_int_equal(posting.orphans_count, 1);
    assert_int_equal(posting.followed.count, 1);
    is_near(posting.followed.items[0].from_ns, 10 * SECOND);
    is_near(posting.followed.items[0].to_ns, 12 * SECOND);
    assert_int_equal(posting.followed.items[0].record.header.source, 77);
    end(world, &posting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_messages),         cmocka_unit_test(finds_none_that_does_not_fit),
        cmocka_unit_test(completes_in_order),     cmocka_unit_test(numbers_are_used_again),
        cmocka_unit_test(strangers_and_requests),
    };
    return cmocka_run_group_tests_name("posted", tests, NULL, NULL);
}
