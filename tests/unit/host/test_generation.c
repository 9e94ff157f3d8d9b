/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers used again: counted by device and QPN, and not counted where there is no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "host/tracker/generation.h"

static int setup(void **state)
{
    return generation_table_create((struct generation_table **)state, 64);
}

static int teardown(void **state)
{
    generation_table_destroy((struct generation_table **)state);
    return 0;
}

static uint32_t next(void **state, const char *device, uint32_t qpn)
{
    char name[16] = {0};
    snprintf(name, sizeof name, "%s", device);
    return generation_next(*state, name, sizeof name, qpn);
}

static void counts_by_device_and_number(void **state)
{
    assert_int_equal(next(state, "mlx5_0", 17), 1);
    assert_int_equal(next(state, "mlx5_0", 18), 1);
    assert_int_equal(next(state, "mlx5_1", 17), 1);
    assert_int_equal(next(state, "mlx5_0", 17), 2);
    assert_int_equal(next(state, "mlx5_0", 17), 3);
    assert_int_equal(next(state, "mlx5_1", 17), 2);
    assert_int_equal(next(state, "mlx5_0", 18), 2);
}

/* 48 of 64 places are used, then nothing new is counted; what is there goes on. */
static void a_full_table_says_so(void **state)
{
    for (uint32_t qpn = 0; qpn < 48; qpn++)
        assert_int_equal(next(state, "rxe0", qpn * 64), 1);
    assert_int_equal(next(state, "rxe0", 0xffffff), 0);
    assert_int_equal(next(state, "rxe1", 0), 0);
    for (uint32_t qpn = 0; qpn < 48; qpn++)
        assert_int_equal(next(state, "rxe0", qpn * 64), 2);
}

static void more_devices_than_room(void **state)
{
    char name[16];
    for (int i = 0; i < 256; i++) {
        snprintf(name, sizeof name, "mlx5_%d", i);
        assert_int_equal(next(state, name, 5), i < 48 ? 1 : 0);
    }
    assert_int_equal(next(state, "one_more", 5), 0);
    assert_int_equal(next(state, "mlx5_3", 5), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_by_device_and_number, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_table_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(more_devices_than_room, setup, teardown),
    };
    return cmocka_run_group_tests_name("generation", tests, NULL, NULL);
}
