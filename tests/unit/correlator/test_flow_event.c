/* SPDX-License-Identifier: BSD-2-Clause */
/* When something rare happened to a flow, from two of its totals. */
#include "correlator/naming/flow_event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ULL

/* The totals are of 1000 and 5000 ms; a pause of `pause_us` ended in between. */
static struct flow_event pause_of(uint32_t pause_us, uint64_t silent_ns)
{
    struct record_flow_total before = {.data_frames = 10}, after = {.data_frames = 11, .timeout_us = pause_us};
    struct flow_event where = {.from_ns = 1000 * MS, .to_ns = 5000 * MS};
    flow_event_list events = {0};

    flow_event_add(&events, &where, &before, &after, silent_ns);
    assert_int_equal(events.count, 1);
    struct flow_event event = events.items[0];
    array_fini(&events);
    return event;
}

static void a_pause_begins_no_sooner_than_its_flow_was_silent(void **state)
{
    (void)state;
    struct flow_event event = pause_of(3990000, 990 * MS);

    assert_int_equal(event.metric, FLOW_METRIC_TIMEOUT_TIME);
    assert_int_equal(event.amount, 3990 * MS);
    assert_int_equal(event.from_ns, 990 * MS);
    assert_int_equal(event.to_ns, 5000 * MS);
}

/* 300 ms that may have ended at once began 300 ms before, if the flow was silent then. */
static void a_short_pause_begins_by_its_length_before(void **state)
{
    (void)state;
    assert_int_equal(pause_of(300000, 100 * MS).from_ns, 700 * MS);
}

/* It ended within the 20 ms between the totals, and an answer came in the middle of it. */
static void a_pause_may_have_answers_in_it(void **state)
{
    struct record_flow_total before = {.data_frames = 10}, after = {.data_frames = 11, .timeout_us = 4000000};
    struct flow_event where = {.from_ns = 9000 * MS, .to_ns = 9020 * MS};
    flow_event_list events = {0};

    (void)state;
    flow_event_add(&events, &where, &before, &after, 8990 * MS);
    assert_int_equal(events.items[0].from_ns, 5020 * MS);
    array_fini(&events);
}

static void what_did_not_rise_is_no_event(void **state)
{
    struct record_flow_total total = {.timeouts = 3, .got_rnr_naks = 2};
    struct flow_event where = {.from_ns = 1000 * MS, .to_ns = 5000 * MS};
    flow_event_list events = {0};

    (void)state;
    flow_event_add(&events, &where, &total, &total, 0);
    assert_int_equal(events.count, 0);
    array_fini(&events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_begins_no_sooner_than_its_flow_was_silent),
        cmocka_unit_test(a_short_pause_begins_by_its_length_before),
        cmocka_unit_test(a_pause_may_have_answers_in_it),
        cmocka_unit_test(what_did_not_rise_is_no_event),
    };
    return cmocka_run_group_tests_name("flow event", tests, NULL, NULL);
}
