/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/form/chart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Ten columns of 10 ns. */
static const struct chart_scale scale = {.from_ns = 1000, .to_ns = 1100, .columns = 10};

static void bars_stand_where_their_time_is(void **state)
{
    (void)state;
    struct chart_lane lane;
    chart_lane_init(&lane, &scale);
    assert_string_equal(lane.text, "          ");
    chart_bar(&lane, &scale, 1020, 1050, 'a');
    assert_string_equal(lane.text, "  aaa     ");
    chart_bar(&lane, &scale, 1049, 1050, 'b');
    assert_string_equal(lane.text, "  aab     ");
    chart_bar(&lane, &scale, 1000, 1100, 'c');
    assert_string_equal(lane.text, "cccccccccc");
}

static void short_bars_are_seen(void **state)
{
    (void)state;
    struct chart_lane lane;
    chart_lane_init(&lane, &scale);
    chart_bar(&lane, &scale, 1033, 1033, 'a');
    chart_bar(&lane, &scale, 1099, 1100, 'b');
    assert_string_equal(lane.text, "   a     b");
}

static void what_is_outside_is_clipped(void **state)
{
    (void)state;
    struct chart_lane lane;
    chart_lane_init(&lane, &scale);
    chart_bar(&lane, &scale, 0, 900, 'x');
    chart_bar(&lane, &scale, 1200, 1300, 'x');
    assert_string_equal(lane.text, "          ");
    chart_bar(&lane, &scale, 0, 1020, 'a');
    chart_bar(&lane, &scale, 1090, INT64_MAX, 'b');
    assert_string_equal(lane.text, "aa       b");
}

static void filling_covers_nothing(void **state)
{
    (void)state;
    struct chart_lane lane;
    chart_lane_init(&lane, &scale);
    chart_bar(&lane, &scale, 1020, 1040, 'a');
    chart_fill(&lane, &scale, 1000, 1060, '.');
    assert_string_equal(lane.text, "..aa..    ");
}

static void a_scale_without_length_is_drawn(void **state)
{
    (void)state;
    const struct chart_scale point = {.from_ns = 5, .to_ns = 5, .columns = 3};
    struct chart_lane lane;
    chart_lane_init(&lane, &point);
    chart_bar(&lane, &point, 5, 5, 'a');
    assert_string_equal(lane.text, "a  ");
}

static void symbols_end_with_a_star(void **state)
{
    (void)state;
    assert_int_equal(chart_symbol(0), '0');
    assert_int_equal(chart_symbol(10), 'a');
    assert_int_equal(chart_symbol(61), 'Z');
    assert_int_equal(chart_symbol(62), '*');
    assert_int_equal(chart_symbol(-1), '*');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_stand_where_their_time_is),  cmocka_unit_test(short_bars_are_seen),
        cmocka_unit_test(what_is_outside_is_clipped),      cmocka_unit_test(filling_covers_nothing),
        cmocka_unit_test(a_scale_without_length_is_drawn), cmocka_unit_test(symbols_end_with_a_star),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
