/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports' counters from a made tree of sysfs, a stand-in for the interface's driver (the functions of ethtool.h below)
 * and one for DPDK's driver (a source that has statistics).
 */
#include "nic/port/port_counter.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "nic/port/ethtool.h"
#include "nic/port/rdma_port.h"
#include "nic/source/source_private.h"
#include "wire/clock.h"

/* ---- the interface's driver ---- */

static struct {
    const char *driver;
    const char *names[8];
    uint64_t values[8];
    size_t count;
} standin;

int ethtool_open(struct ethtool **ethtool, const char *interface)
{
    if (strcmp(interface, "eth7") != 0)
        return -ENODEV;
    *ethtool = (struct ethtool *)&standin;
    return 0;
}
void ethtool_close(struct ethtool **ethtool)
{
    *ethtool = NULL;
}
size_t ethtool_count(const struct ethtool *ethtool)
{
    (void)ethtool;
    return standin.count;
}
const char *ethtool_name(const struct ethtool *ethtool, size_t index)
{
    (void)ethtool;
    return standin.names[index];
}
const char *ethtool_driver(const struct ethtool *ethtool)
{
    (void)ethtool;
    return standin.driver;
}
const uint64_t *ethtool_read(struct ethtool *ethtool)
{
    (void)ethtool;
    return standin.values;
}

/* ---- sysfs ---- */

static char root[64];

static void write_file(const char *name, const char *text)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, 0755);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define PORT "class/infiniband/mlx5_0/ports/1/"

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/qpscope-ports-XXXXXX");
    if (mkdtemp(root) == NULL)
        return -1;
    memset(&standin, 0, sizeof standin);
    standin.driver = "mlx5_core";
    write_file(PORT "state", "4: ACTIVE\n");
    write_file(PORT "counters/port_xmit_data", "1000\n");
    write_file(PORT "counters/symbol_error", "N/A (no PMA)\n");
    write_file(PORT "hw_counters/out_of_buffer", "4294967290\n");
    write_file(PORT "hw_counters/lifespan", "12\n");
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static struct port_counters *open_one(const char *interface, struct source *source)
{
    struct port_counter_target target = {.port = 3, .device = "mlx5_0", .device_port = 1, .source = source};
    const struct port_counter_options options = {
        .targets = &target, .targets_count = 1, .interval_ns = 1000000, .sysfs = root};
    struct port_counters *counters;

    snprintf(target.interface, sizeof target.interface, "%s", interface);
    assert_int_equal(port_counters_open(&counters, &options), 0);
    return counters;
}

/* The change of a metric, out of all that there are now. */
static bool take(struct port_counters *counters, enum port_metric metric, uint8_t priority,
                 struct record_port_counter *found)
{
    struct record_port_counter change;
    bool has_one = false;

    while (port_counters_take(counters, &change)) {
        assert_int_equal(change.header.source, 3);
        if (change.metric == metric && change.priority == priority) {
            *found = change;
            has_one = true;
        }
    }
    return has_one;
}

static void wait_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000l}, NULL);
}

/* ---- what is expected ---- */

static void a_state_is_told_at_once_and_when_it_changes(void **state)
{
    struct port_counters *counters = open_one("", NULL);
    struct record_port_counter change;

    (void)state;
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_LINK_STATE, PRIORITY_NONE, &change));
    assert_int_equal(change.value, 4);
    port_counters_round(counters);
    assert_false(take(counters, PORT_METRIC_LINK_STATE, PRIORITY_NONE, &change));
    write_file(PORT "state", "1: DOWN\n");
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_LINK_STATE, PRIORITY_NONE, &change));
    assert_int_equal(change.value, 1);
    port_counters_close(&counters);
}

/* 5 words of 4 bytes are 20 bytes; "N/A" is no counter; what is not there is none either. */
static void words_are_bytes_and_excuses_are_nothing(void **state)
{
    struct port_counters *counters = open_one("", NULL);
    struct record_port_counter change;

    (void)state;
    assert_int_equal(port_counters_watched(counters, 3), 3);
    port_counters_round(counters);
    assert_false(take(counters, PORT_METRIC_SENT_BYTES, PRIORITY_NONE, &change));
    write_file(PORT "counters/port_xmit_data", "1005\n");
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_SENT_BYTES, PRIORITY_NONE, &change));
    assert_int_equal(change.value, 20);
    port_counters_close(&counters);
}

/* 4294967290 + 10 goes round to 4. The kernel's copy may be 12 ms old, so it may have happened as long before the look.
 */
static void a_wrap_counts_on_and_age_widens_the_interval(void **state)
{
    struct port_counters *counters = open_one("", NULL);
    struct record_port_counter change;
    uint64_t before_ns = clock_now_ns();

    (void)state;
    port_counters_round(counters);
    uint64_t between_ns = clock_now_ns();
    write_file(PORT "hw_counters/out_of_buffer", "4\n");
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_OUT_OF_BUFFER, PRIORITY_NONE, &change));
    assert_int_equal(change.value, 10);
    assert_int_equal(change.flags, 0);
    assert_in_range(change.from_ns, before_ns - 12000000, between_ns - 12000000);
    assert_in_range(change.to_ns, between_ns, clock_now_ns());
    write_file(PORT "hw_counters/out_of_buffer", "3\n");
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_OUT_OF_BUFFER, PRIORITY_NONE, &change));
    assert_int_equal(change.value, 13);
    assert_int_equal(change.flags, PORT_COUNTER_RESET);
    port_counters_close(&counters);
}

/* Volumes rise all the time: one record in 100 ms says as much as ten. */
static void volumes_wait(void **state)
{
    struct port_counters *counters = open_one("", NULL);
    struct record_port_counter change;

    (void)state;
    port_counters_round(counters);
    write_file(PORT "counters/port_xmit_data", "1001\n");
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_SENT_BYTES, PRIORITY_NONE, &change));
    uint64_t before_ns = clock_now_ns();
    write_file(PORT "counters/port_xmit_data", "1002\n");
    port_counters_round(counters);
    assert_false(take(counters, PORT_METRIC_SENT_BYTES, PRIORITY_NONE, &change));
    wait_ms(110);
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_SENT_BYTES, PRIORITY_NONE, &change));
    assert_int_equal(change.value, 8);
    assert_true(change.from_ns <= before_ns);
    port_counters_close(&counters);
}

/* mlx5's names: a duration in microseconds, by priority. */
static void the_drivers_statistics_have_priorities(void **state)
{
    struct port_counters *counters;
    struct record_port_counter change;

    (void)state;
    standin.count = 4;
    standin.names[0] = "rx_packets";
    standin.names[1] = "rx_prio3_pause";
    standin.names[2] = "rx_prio3_pause_duration";
    standin.names[3] = "rx_prio9_pause";
    counters = open_one("eth7", NULL);
    assert_int_equal(port_counters_watched(counters, 3), 5);
    port_counters_round(counters);
    standin.values[1] = 2;
    standin.values[2] = 150;
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_PAUSE_RECEIVED_TIME, 3, &change));
    assert_int_equal(change.value, 150000);
    standin.values[1] = 3;
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_PAUSE_RECEIVED, 3, &change));
    assert_int_equal(change.value, 3);
    port_counters_close(&counters);
}

/* bnxt_en refreshes its statistics once a second: the change may be as old. */
static void a_driver_that_refreshes_slowly(void **state)
{
    struct port_counters *counters;
    struct record_port_counter change;
    uint64_t before_ns = clock_now_ns();

    (void)state;
    standin.driver = "bnxt_en";
    standin.count = 1;
    standin.names[0] = "rx_pfc_ena_frames_pri5";
    counters = open_one("eth7", NULL);
    port_counters_round(counters);
    standin.values[0] = 9;
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_PAUSE_RECEIVED, 5, &change));
    assert_int_equal(change.value, 9);
    assert_in_range(change.from_ns, before_ns - 1000000000u, clock_now_ns() - 1000000000u);
    port_counters_close(&counters);
}

static uint64_t missed;

static void tell_statistics(struct source *source, uint32_t port, source_statistic visit, void *context)
{
    (void)source;
    assert_int_equal(port, 3);
    visit(context, "rx_q0_packets", 1);
    visit(context, "rx_missed_errors", missed);
}

/* The source's own, and no metric twice: here both places have drops of received packets. */
static void the_sources_statistics_fill_what_is_missing(void **state)
{
    static const struct source_operations operations = {.statistics = tell_statistics};
    struct source source = {.operations = &operations};
    struct port_counters *counters = open_one("", &source);
    struct record_port_counter change;

    (void)state;
    missed = 100;
    port_counters_round(counters);
    missed = 107;
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_RECEIVED_DISCARDS, PRIORITY_NONE, &change));
    assert_int_equal(change.value, 7);
    port_counters_close(&counters);

    standin.count = 1;
    standin.names[0] = "rx_discards_phy";
    counters = open_one("eth7", &source);
    port_counters_round(counters);
    missed = 200;
    port_counters_round(counters);
    assert_false(take(counters, PORT_METRIC_RECEIVED_DISCARDS, PRIORITY_NONE, &change));
    port_counters_close(&counters);
}

/* A new listener hears again what was told, with the interval that it had. */
static void what_was_told_can_be_told_again(void **state)
{
    struct port_counters *counters = open_one("", NULL);
    struct record_port_counter first, again;

    (void)state;
    port_counters_round(counters);
    write_file(PORT "hw_counters/out_of_buffer", "4294967295\n");
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_OUT_OF_BUFFER, PRIORITY_NONE, &first));
    port_counters_repeat(counters);
    port_counters_round(counters);
    assert_true(take(counters, PORT_METRIC_OUT_OF_BUFFER, PRIORITY_NONE, &again));
    assert_memory_equal(&first, &again, sizeof first);
    port_counters_close(&counters);
}

static void the_thread_reads_by_itself(void **state)
{
    struct port_counters *counters = open_one("", NULL);
    struct record_port_counter change;
    bool found = false;

    (void)state;
    assert_int_equal(port_counters_start(counters), 0);
    for (unsigned i = 0; i < 500 && !found; i++) {
        wait_ms(10);
        found = take(counters, PORT_METRIC_LINK_STATE, PRIORITY_NONE, &change);
    }
    assert_true(found);
    port_counters_close(&counters);
}

/* ---- which ports there are ---- */

static void ports_are_listed_with_their_addresses(void **state)
{
    struct option_list wanted = {.values = {"mlx5_0/1"}, .count = 1};
    struct rdma_port ports[4];
    static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 0, [14] = 0, [15] = 7};
    static const uint8_t none[16];

    (void)state;
    write_file(PORT "gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
    write_file(PORT "gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0007\n");
    write_file(PORT "gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    write_file(PORT "gid_attrs/ndevs/0", "eth7\n");
    write_file(PORT "rate", "100 Gb/sec (4X EDR)\n");
    write_file("class/net/eth7/mtu", "4200\n");
    assert_int_equal(rdma_port_list(root, &wanted, ports, 4), 1);
    assert_string_equal(ports[0].device, "mlx5_0");
    assert_string_equal(ports[0].interface, "eth7");
    assert_memory_equal(ports[0].address, mapped, 16);
    assert_int_equal(ports[0].mtu_bytes, 4096);
    assert_int_equal(ports[0].bits_a_second, 100000000000u);
    write_file(PORT "gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0008\n");
    assert_int_equal(rdma_port_list(root, NULL, ports, 4), 1);
    assert_memory_equal(ports[0].address, none, 16);
    wanted.values[0] = "mlx5_0/1@10.0.0.7";
    assert_int_equal(rdma_port_list(root, &wanted, ports, 4), 1);
    assert_memory_equal(ports[0].address, mapped, 16);
    wanted.values[0] = "mlx5_0@::ffff:10.0.0.7";
    assert_int_equal(rdma_port_list(root, &wanted, ports, 4), 1);
    assert_memory_equal(ports[0].address, mapped, 16);
    wanted.values[0] = "mlx5_0@10.0.0";
    assert_int_equal(rdma_port_list(root, &wanted, ports, 4), -EINVAL);
    wanted.values[0] = "mlx5_0/2";
    assert_int_equal(rdma_port_list(root, &wanted, ports, 4), -ENODEV);
    wanted.values[0] = "mlx5";
    assert_int_equal(rdma_port_list(root, &wanted, ports, 4), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_state_is_told_at_once_and_when_it_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(words_are_bytes_and_excuses_are_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrap_counts_on_and_age_widens_the_interval, setup, teardown),
        cmocka_unit_test_setup_teardown(volumes_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(the_drivers_statistics_have_priorities, setup, teardown),
        cmocka_unit_test_setup_teardown(a_driver_that_refreshes_slowly, setup, teardown),
        cmocka_unit_test_setup_teardown(the_sources_statistics_fill_what_is_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_told_can_be_told_again, setup, teardown),
        cmocka_unit_test_setup_teardown(the_thread_reads_by_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(ports_are_listed_with_their_addresses, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
