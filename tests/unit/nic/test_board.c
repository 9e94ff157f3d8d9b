/* SPDX-License-Identifier: BSD-2-Clause */
/* Records on their way out, and what they come to by port. */
#include "nic/exposition/board.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FLOWS 8

static void take(struct board *board, enum record_kind kind, void *record)
{
    ((struct record_header *)record)->kind = (uint16_t)kind;
    board_take(board, record);
}

static void tell_port(struct board *board, uint32_t number, const char *name)
{
    struct record_port record = {.port = number};

    strncpy(record.name, name, sizeof record.name - 1);
    take(board, RECORD_PORT, &record);
}

static void tell_flow(struct board *board, uint32_t number, uint32_t port, uint8_t vantage, uint32_t generation)
{
    struct record_flow record = {.flow = number, .port = port, .vantage = vantage, .generation = generation};

    take(board, RECORD_FLOW, &record);
}

static void tell_total(struct board *board, uint32_t flow, uint64_t payload_bytes, uint32_t cnps)
{
    struct record_flow_total record = {.header.source = flow, .payload_bytes = payload_bytes, .cnps = cnps};

    take(board, RECORD_FLOW_TOTAL, &record);
}

static int setup(void **state)
{
    struct board *board = NULL;

    assert_int_equal(board_create(&board, FLOWS), 0);
    tell_port(board, 1, "mlx5_0/1");
    tell_port(board, 2, "mlx5_1/1");
    *state = board;
    return 0;
}

static int teardown(void **state)
{
    struct board *board = *state;

    board_destroy(&board);
    assert_null(board);
    return 0;
}

static struct board_port port_at(void **state, size_t index)
{
    struct board_port port;

    board_read(*state, index, &port);
    return port;
}

static void adds_up_flows_by_port_and_vantage(void **state)
{
    tell_flow(*state, 1, 1, VANTAGE_TX, 1);
    tell_flow(*state, 2, 1, VANTAGE_TX, 1);
    tell_flow(*state, 3, 1, VANTAGE_RX, 1);
    tell_flow(*state, 4, 2, VANTAGE_MIDDLE, 1);
    tell_total(*state, 1, 1000, 0);
    tell_total(*state, 2, 50, 0);
    tell_total(*state, 3, 7, 4);
    tell_total(*state, 4, 9, 1);
    tell_flow(*state, 1, 1, VANTAGE_TX, 1); /* told again, as to a new receiver */
    tell_port(*state, 1, "mlx5_0/1");
    tell_total(*state, 1, 3000, 2);
    assert_int_equal(board_ports(*state), 2);
    struct board_port port = port_at(state, 0);
    assert_string_equal(port.record.name, "mlx5_0/1");
    assert_int_equal(port.traffic[VANTAGE_TX][BOARD_PAYLOAD_BYTES], 3050);
    assert_int_equal(port.traffic[VANTAGE_TX][BOARD_CNPS], 2);
    assert_int_equal(port.traffic[VANTAGE_RX][BOARD_PAYLOAD_BYTES], 7);
    assert_int_equal(port.traffic[VANTAGE_RX][BOARD_CNPS], 4);
    assert_int_equal(port_at(state, 1).traffic[VANTAGE_MIDDLE][BOARD_PAYLOAD_BYTES], 9);
}

static void goes_on_when_a_flow_begins_anew_or_a_field_goes_round(void **state)
{
    tell_flow(*state, 1, 1, VANTAGE_TX, 1);
    tell_total(*state, 1, 1000, UINT32_MAX - 1);
    tell_total(*state, 1, 1000, 3); /* 5 more */
    assert_int_equal(port_at(state, 0).traffic[VANTAGE_TX][BOARD_CNPS], (uint64_t)UINT32_MAX - 1 + 5);
    tell_flow(*state, 1, 1, VANTAGE_TX, 2);
    tell_total(*state, 1, 10, 1);
    assert_int_equal(port_at(state, 0).traffic[VANTAGE_TX][BOARD_PAYLOAD_BYTES], 1010);
}

static void leaves_out_what_it_was_not_told_of(void **state)
{
    struct board_port none = {0}, port;

    tell_flow(*state, FLOWS + 1, 1, VANTAGE_TX, 1);
    tell_total(*state, FLOWS + 1, 1000, 0);
    tell_flow(*state, 1, 3, VANTAGE_TX, 1);
    tell_total(*state, 1, 1000, 0);
    tell_total(*state, 2, 1000, 0);
    port = port_at(state, 0);
    assert_memory_equal(port.traffic, none.traffic, sizeof none.traffic);
}

static void keeps_a_ports_own_counters_and_losses(void **state)
{
    struct record_port_counter paused = {
        .header.source = 2, .metric = PORT_METRIC_PAUSE_RECEIVED_TIME, .priority = 3, .value = 1500};
    struct record_port_counter all = {
        .header.source = 2, .metric = PORT_METRIC_LINK_DOWNS, .priority = PRIORITY_NONE, .value = 1};
    struct record_loss loss = {.header.source = 2, .cause = LOSS_PORT_DROP, .lost = 40};

    take(*state, RECORD_PORT_COUNTER, &paused);
    paused.value = 2500;
    take(*state, RECORD_PORT_COUNTER, &paused);
    take(*state, RECORD_PORT_COUNTER, &all);
    take(*state, RECORD_LOSS, &loss);
    take(*state, RECORD_LOSS, &loss);
    struct board_port port = port_at(state, 1);
    assert_int_equal(port.counters[PORT_METRIC_PAUSE_RECEIVED_TIME][3], 2500);
    assert_int_equal(port.known[PORT_METRIC_PAUSE_RECEIVED_TIME], 1 << 3);
    assert_int_equal(port.counters[PORT_METRIC_LINK_DOWNS][BOARD_SLOTS - 1], 1);
    assert_int_equal(port.known[PORT_METRIC_LINK_DOWNS], 1 << (BOARD_SLOTS - 1));
    assert_int_equal(port.lost_frames, 80);
    assert_int_equal(port_at(state, 0).known[PORT_METRIC_LINK_DOWNS], 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(adds_up_flows_by_port_and_vantage),
        TEST(goes_on_when_a_flow_begins_anew_or_a_field_goes_round),
        TEST(leaves_out_what_it_was_not_told_of),
        TEST(keeps_a_ports_own_counters_and_losses),
    };

    return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
