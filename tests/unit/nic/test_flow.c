/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/flow/flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FLOWS 1000

static struct flow_key make_key(uint64_t source, uint64_t destination, uint32_t qpn)
{
    return (struct flow_key){.source = {0, source}, .destination = {0, destination}, .destination_qpn = qpn, .port = 1};
}

static struct flow *find(struct flow_table *table, const struct flow_key *key)
{
    return flow_find(table, key);
}

static int setup(void **state)
{
    return flow_table_create((struct flow_table **)state, FLOWS);
}

static int teardown(void **state)
{
    flow_table_destroy((struct flow_table **)state);
    return 0;
}

static void test_every_part_of_the_key_tells_apart(void **state)
{
    struct flow_key key = make_key(1, 2, 3);
    struct flow_key others[] = {key, key, key, key, key, key, key};

    others[1].source[1] = 9;
    others[2].source[0] = 9;
    others[3].destination[1] = 9;
    others[4].destination_qpn = 9;
    others[5].tunnel = 9;
    others[6].port = 9;
    for (unsigned i = 0; i < 7; i++) {
        assert_null(find(*state, &others[i]));
        assert_int_equal(flow_add(*state, &others[i])->number, i + 1);
    }
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(find(*state, &others[i])->number, i + 1);
}

static void test_a_full_table_refuses_and_keeps(void **state)
{
    for (uint32_t i = 0; i < FLOWS; i++) {
        struct flow_key key = make_key(i % 7, i % 5, i);
        assert_non_null(flow_add(*state, &key));
    }
    struct flow_key more = make_key(1, 1, 5000000);
    assert_null(flow_add(*state, &more));
    assert_null(find(*state, &more));
    assert_int_equal(flow_count(*state), FLOWS);
    for (uint32_t i = 0; i < FLOWS; i++) {
        struct flow_key key = make_key(i % 7, i % 5, i);
        assert_int_equal(find(*state, &key)->number, i + 1);
    }
}

static void test_a_successor(void **state)
{
    struct flow_key key = make_key(1, 2, 3);
    struct flow *first = flow_add(*state, &key);
    struct flow *second = flow_add(*state, &key);

    assert_int_equal(first->generation, 0);
    assert_int_equal(second->generation, 1);
    assert_ptr_equal(find(*state, &key), second);
    assert_ptr_equal(flow_at(*state, 1), first);
}

static void test_the_reverse_direction(void **state)
{
    struct flow_key answer = make_key(2, 1, 77);
    bool seen[5] = {false};
    struct flow *flow = NULL;

    for (uint32_t qpn = 0; qpn < 5; qpn++) {
        struct flow_key key = make_key(1, qpn == 4 ? 3 : 2, qpn);
        flow_add(*state, &key);
    }
    while ((flow = flow_next_reverse(*state, &answer, flow)) != NULL) {
        assert_false(seen[flow->key.destination_qpn]);
        seen[flow->key.destination_qpn] = true;
    }
    for (unsigned qpn = 0; qpn < 5; qpn++)
        assert_int_equal(seen[qpn], qpn != 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_part_of_the_key_tells_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_table_refuses_and_keeps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_successor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_reverse_direction, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_flow", tests, NULL, NULL);
}
