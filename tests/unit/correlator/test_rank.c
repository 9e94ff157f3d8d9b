/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranks of jobs that have no communicator of all their ranks: two data-parallel ones of two, side by side. */
#include "correlator/naming/naming.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/correlator/world.h"

#define SECOND    WORLD_SECOND
#define PROCESSES 4u

static void add_process(struct world *world, uint32_t process, const char *launched)
{
    struct record_process record = {.process = process, .pid = 1000 + process};
    struct record_process_fact fact = {.process = process, .fact = PROCESS_FACT_RANK};

    feed_add(world->host, RECORD_PROCESS, &record);
    if (launched == NULL)
        return;
    fact.text_bytes = (uint32_t)snprintf(fact.text, sizeof fact.text, "%s", launched);
    feed_add(world->host, RECORD_PROCESS_FACT, &fact);
}

/* Its process calls in the given second and the next one. */
static void add_member(struct world *world, uint32_t process, const char *identity, int32_t rank, uint64_t from_ns)
{
    static uint32_t number;
    struct record_communicator record = {
        .communicator = ++number,
        .process = process,
        .ranks_count = 2,
        .rank = rank,
        .created_ns = 2 * SECOND,
        .ready_ns = 3 * SECOND,
    };
    struct record_call call = {.header.source = number, .count = 8, .datatype = 7, .operation = OPERATION_ALL_REDUCE};

    memcpy(record.identity, identity, strlen(identity));
    feed_add(world->host, RECORD_COMMUNICATOR, &record);
    for (int i = 0; i < 2; i++) {
        call.sequence = (uint64_t)i;
        call.entered_ns = call.enqueued_ns = feed_time(world->host, from_ns + (uint64_t)i * SECOND);
        feed_add(world->host, RECORD_CALL, &call);
    }
}

/* Ranks of processes 1 to 4; the communicator of the last two is used from `second_ns` on, that of the first two from
 * second 5. */
static void name(int32_t ranks[PROCESSES], const char *const launched[PROCESSES], uint64_t second_ns)
{
    struct world *world = world_create_pair(0, 0);

    for (uint32_t i = 0; i < PROCESSES; i++) {
        add_process(world, i + 1, launched[i]);
        add_member(world, i + 1, i < 2 ? "data-one" : "data-two", (int32_t)(i % 2), i < 2 ? 5 * SECOND : second_ns);
    }
    world_name(world);
    assert_int_equal(world->naming.members.count, PROCESSES);
    for (size_t i = 0; i < PROCESSES; i++) {
        const struct member *member = &world->naming.members.items[i];
        ranks[world->naming.processes.items[member->process].record.process - 1] = member->rank;
    }
    world_destroy(world);
}

static void expect(const int32_t *ranks, int32_t a, int32_t b, int32_t c, int32_t d)
{
    assert_int_equal(ranks[0], a);
    assert_int_equal(ranks[1], b);
    assert_int_equal(ranks[2], c);
    assert_int_equal(ranks[3], d);
}

static void test_launchers_ranks(void **state)
{
    int32_t ranks[PROCESSES];

    (void)state;
    name(ranks, (const char *const[]){"0", "2", "1", "3"}, 5 * SECOND);
    expect(ranks, 0, 2, 1, 3);
}

static void test_numbered_on(void **state)
{
    int32_t ranks[PROCESSES];

    (void)state;
    name(ranks, (const char *const[]){NULL, NULL, NULL, NULL}, 5 * SECOND);
    expect(ranks, 0, 1, 2, 3);
    name(ranks, (const char *const[]){"0", "1", "2", "x"}, 5 * SECOND);
    expect(ranks, 0, 1, 2, 3);
    name(ranks, (const char *const[]){"0", "0", "2", "3"}, 5 * SECOND);
    expect(ranks, 0, 1, 2, 3);
}

/* A job that was started again is the same ranks once more. */
static void test_one_after_the_other(void **state)
{
    int32_t ranks[PROCESSES];

    (void)state;
    name(ranks, (const char *const[]){NULL, NULL, NULL, NULL}, 7 * SECOND);
    expect(ranks, 0, 1, 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launchers_ranks),
        cmocka_unit_test(test_numbered_on),
        cmocka_unit_test(test_one_after_the_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
