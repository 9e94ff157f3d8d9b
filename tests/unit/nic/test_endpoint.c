/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that come, change, go, and come again under the same number. */
#include "nic/counting/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct endpoint *see(struct endpoint_table *table, uint32_t qpn, uint32_t remote, uint8_t state, uint64_t at_ns)
{
    const struct record_endpoint seen = {
        .port = 1, .qpn = qpn, .remote_qpn = remote, .state = state, .type = 2, .pid = 77};
    return endpoint_note(table, &seen, at_ns);
}

static void they_come_change_and_go(void **state)
{
    struct endpoint_table *table = endpoint_table_create(8);
    struct record_endpoint record;

    (void)state;
    endpoint_begin_round(table);
    see(table, 17, 0, 1, 100);
    endpoint_end_round(table, 110, NULL, NULL);
    assert_true(endpoint_take_changed(table, &record));
    assert_int_equal(record.endpoint, 1);
    assert_int_equal(record.generation, 0);
    assert_int_equal(record.first_ns, 100);
    assert_int_equal(record.state, 1);
    assert_false(endpoint_take_changed(table, &record));

    endpoint_begin_round(table);
    see(table, 17, 0, 1, 200);
    endpoint_end_round(table, 210, NULL, NULL);
    assert_false(endpoint_take_changed(table, &record));

    endpoint_begin_round(table);
    see(table, 17, 99, 3, 300);
    endpoint_end_round(table, 310, NULL, NULL);
    assert_true(endpoint_take_changed(table, &record));
    assert_int_equal(record.endpoint, 1);
    assert_int_equal(record.remote_qpn, 99);
    assert_int_equal(record.state, 3);

    endpoint_begin_round(table);
    endpoint_end_round(table, 410, NULL, NULL);
    assert_true(endpoint_take_changed(table, &record));
    assert_int_equal(record.endpoint, 1);
    assert_int_equal(record.gone_ns, 410);
    assert_null(endpoint_find(table, 1, 17));
    endpoint_table_destroy(&table);
}

/* A QPN is used again at once, for a connection to another queue pair: the old one is gone, the new one is another. */
static void a_number_used_again_is_a_new_generation(void **state)
{
    struct endpoint_table *table = endpoint_table_create(8);
    struct record_endpoint records[3];

    (void)state;
    endpoint_begin_round(table);
    see(table, 17, 99, 3, 100);
    endpoint_end_round(table, 110, NULL, NULL);
    assert_true(endpoint_take_changed(table, &records[0]));
    endpoint_begin_round(table);
    struct endpoint *again = see(table, 17, 55, 3, 200);
    assert_true(again->is_new);
    endpoint_end_round(table, 210, NULL, NULL);
    assert_true(endpoint_take_changed(table, &records[1]));
    assert_true(endpoint_take_changed(table, &records[2]));
    const struct record_endpoint *old = records[1].gone_ns != 0 ? &records[1] : &records[2];
    const struct record_endpoint *new = records[1].gone_ns != 0 ? &records[2] : &records[1];
    assert_int_equal(old->endpoint, 1);
    assert_int_equal(old->gone_ns, 200);
    assert_int_equal(new->endpoint, 2);
    assert_int_equal(new->generation, 1);
    assert_int_equal(new->gone_ns, 0);
    endpoint_table_destroy(&table);
}

/* Full: refused and counted; what goes makes room once it has been told of. */
static void a_full_table_refuses(void **state)
{
    struct endpoint_table *table = endpoint_table_create(2);
    struct record_endpoint record;

    (void)state;
    endpoint_begin_round(table);
    assert_non_null(see(table, 1, 0, 0, 1));
    assert_non_null(see(table, 2, 0, 0, 1));
    assert_null(see(table, 3, 0, 0, 1));
    assert_int_equal(endpoint_refused(table), 1);
    endpoint_end_round(table, 2, NULL, NULL);
    endpoint_begin_round(table);
    see(table, 1, 0, 0, 3);
    endpoint_end_round(table, 4, NULL, NULL);
    while (endpoint_take_changed(table, &record))
        ;
    endpoint_begin_round(table);
    see(table, 1, 0, 0, 5);
    assert_non_null(see(table, 3, 0, 0, 5));
    endpoint_table_destroy(&table);
}

static void repeating_tells_of_those_that_are_there(void **state)
{
    struct endpoint_table *table = endpoint_table_create(4);
    struct record_endpoint record;
    unsigned told = 0;

    (void)state;
    endpoint_begin_round(table);
    see(table, 1, 0, 0, 1);
    see(table, 2, 0, 0, 1);
    endpoint_end_round(table, 2, NULL, NULL);
    while (endpoint_take_changed(table, &record))
        ;
    endpoint_repeat(table);
    while (endpoint_take_changed(table, &record))
        told++;
    assert_int_equal(told, 2);
    endpoint_table_destroy(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_come_change_and_go),
        cmocka_unit_test(a_number_used_again_is_a_new_generation),
        cmocka_unit_test(a_full_table_refuses),
        cmocka_unit_test(repeating_tells_of_those_that_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
