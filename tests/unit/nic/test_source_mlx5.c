/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source of mlx5's counters between stand-ins: a device, the kernel's list of queue pairs, and sysfs. What is
 * checked is which queue pairs are counted when, and that nobody gets another's packets.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/mlx5/mlx5_counters.h"
#include "nic/port/rdma_port.h"
#include "nic/source/source.h"
#include "tests/unit/nic/mlx5_standin.h"
#include "wire/clock.h"
#include "wire/rdma/rdma_netlink.h"

#define INTERVAL_NS 1000000u

/* ---- the kernel's list ---- */

static struct rdma_queue_pair listed[64];
static size_t listed_count;
static unsigned asked;

int rdma_netlink_open(struct rdma_netlink **netlink)
{
    *netlink = (struct rdma_netlink *)&listed_count;
    return 0;
}
void rdma_netlink_close(struct rdma_netlink **netlink)
{
    *netlink = NULL;
}
int rdma_netlink_device(struct rdma_netlink *netlink, const char *name)
{
    (void)netlink;
    assert_string_equal(name, "mlx5_0");
    return 4;
}
int rdma_netlink_queue_pairs(struct rdma_netlink *netlink, uint32_t device, rdma_netlink_visit visit, void *context)
{
    (void)netlink;
    assert_int_equal(device, 4);
    asked++;
    for (size_t i = 0; i < listed_count; i++)
        visit(context, &listed[i], clock_now_ns(), clock_now_ns());
    return 0;
}

static void list(uint32_t qpn, uint32_t remote_qpn)
{
    listed[listed_count++] = (struct rdma_queue_pair){
        .device = 4, .port = 1, .qpn = qpn, .remote_qpn = remote_qpn, .pid = 9, .type = 2, .state = 3};
}

/* ---- sysfs and the device ---- */

static uint8_t port_address[ADDRESS_BYTES];

int rdma_port_list(const char *sysfs, const struct option_list *wanted, struct rdma_port *ports, size_t capacity)
{
    (void)sysfs;
    (void)wanted;
    assert_true(capacity > 0);
    ports[0] = (struct rdma_port){.device = "mlx5_0", .number = 1};
    memcpy(ports[0].address, port_address, ADDRESS_BYTES);
    return 1;
}
void rdma_port_name(const struct rdma_port *port, char *name, size_t bytes)
{
    snprintf(name, bytes, "%s", port->device);
}

static struct standin_limits limits;
static struct mlx5_device *device;

int mlx5_device_open(struct mlx5_device **opened, const char *name, unsigned port)
{
    assert_string_equal(name, "mlx5_0");
    assert_int_equal(port, 1);
    *opened = device = standin_open(&limits);
    return 0;
}

/* ---- what is handed out ---- */

struct seen {
    struct record_endpoint endpoints[128]; /* by number */
    unsigned endpoints_count;
    uint64_t sent[128];
    uint64_t received[128];
    bool is_orphan; /* a reading came before its endpoint */
};

static void take(struct source *source, struct seen *seen)
{
    struct source_count counts[16];
    size_t count;
    uint64_t until_ns = clock_now_ns() + 3 * INTERVAL_NS;

    while ((count = source_counts(source, counts, 16)) != 0 || clock_now_ns() < until_ns) {
        for (size_t i = 0; i < count; i++) {
            if (counts[i].kind == RECORD_ENDPOINT) {
                assert_in_range(counts[i].endpoint.endpoint, 1, 127);
                seen->endpoints[counts[i].endpoint.endpoint] = counts[i].endpoint;
                if (counts[i].endpoint.endpoint > seen->endpoints_count)
                    seen->endpoints_count = counts[i].endpoint.endpoint;
                continue;
            }
            uint32_t number = counts[i].reading.header.source;
            seen->is_orphan |= seen->endpoints[number].endpoint == 0;
            seen->sent[number] += counts[i].reading.sent_packets;
            seen->received[number] += counts[i].reading.received_packets;
        }
        source_rest(source, count);
    }
}

static struct source *open_source(void)
{
    static const struct option_list none;
    const struct source_device_options options = {.devices = &none, .interval_ns = INTERVAL_NS};
    struct source *source = NULL;

    assert_int_equal(source_open_mlx5(&source, &options), 0);
    return source;
}

static int setup(void **state)
{
    (void)state;
    listed_count = 0;
    asked = 0;
    memset(port_address, 0, sizeof port_address);
    limits = (struct standin_limits){.counters = 4096,
                                     .bulk_log_most = 9,
                                     .rules = 2048,
                                     .has_memory = true,
                                     .has_offsets = true,
                                     .has_received = true,
                                     .has_table = true};
    return 0;
}

static void relist(struct source *source)
{
    const struct record_queue_pair ended = {
        .qpn = 0xfffff, .device = "mlx5_0", .port = 1, .state = 3, .type = 2, .destroyed_ns = 1};
    source_tell(source, &ended, true); /* an end that is told makes it ask the kernel at once */
}

static void those_that_are_listed_are_counted(void **state)
{
    struct seen seen = {0};
    struct source *source;

    (void)state;
    list(0x10, 0x20);
    list(0x11, 0x21);
    listed[1].type = 4; /* a UD queue pair has no sender of its own to count */
    source = open_source();
    take(source, &seen);
    standin_pass(device, MLX5_SENT, 0x10, 30, 3000);
    standin_pass(device, MLX5_RECEIVED, 0x10, 4, 400);
    standin_pass(device, MLX5_SENT, 0x11, 7, 700);
    take(source, &seen);
    assert_int_equal(seen.endpoints_count, 2);
    assert_int_equal(seen.endpoints[1].qpn, 0x10);
    assert_int_equal(seen.endpoints[1].remote_qpn, 0x20);
    assert_int_equal(seen.sent[1], 30);
    assert_int_equal(seen.received[1], 4);
    assert_int_equal(seen.sent[2], 0);
    assert_false(seen.is_orphan);
    assert_true(asked >= 1 && asked <= 3); /* once a second, whatever the readings' interval */
    source_close(&source);
}

/* It goes, and its number comes back for another connection: another endpoint, another count. */
static void a_number_that_comes_back_is_another(void **state)
{
    struct seen seen = {0};
    struct standin_tally tally;
    struct source *source;

    (void)state;
    list(0x10, 0x20);
    source = open_source();
    take(source, &seen);
    standin_pass(device, MLX5_SENT, 0x10, 5, 500);
    take(source, &seen);
    listed_count = 0;
    list(0x10, 0x99);
    relist(source);
    take(source, &seen);
    standin_pass(device, MLX5_SENT, 0x10, 9, 900);
    take(source, &seen);
    unsigned first = 1, second = seen.endpoints_count;
    assert_true(second > first);
    assert_true(seen.endpoints[first].gone_ns != 0);
    assert_int_equal(seen.sent[first], 5);
    assert_int_equal(seen.endpoints[second].remote_qpn, 0x99);
    assert_int_equal(seen.endpoints[second].generation, 1);
    assert_int_equal(seen.sent[second], 9);
    listed_count = 0;
    relist(source);
    take(source, &seen);
    standin_tally(device, &tally);
    assert_int_equal(tally.rules, 0);
    assert_null(tally.wrong);
    source_close(&source);
}

/* On a DPU the kernel does not know the host's queue pairs: the host side tells of them, and of their ends. */
static void those_that_are_told_are_counted(void **state)
{
    struct record_queue_pair told = {
        .queue_pair = 1, .qpn = 0x55, .remote_qpn = 0x66, .device = "mlx5_0", .port = 1, .state = 3, .type = 2};
    struct seen seen = {0};
    struct source *source = open_source();

    (void)state;
    memset(told.address, 1, ADDRESS_BYTES);
    memset(told.remote_address, 2, ADDRESS_BYTES);
    source_tell(source, &told, true);
    take(source, &seen);
    relist(source); /* the kernel does not list it: it stays */
    take(source, &seen);
    standin_pass(device, MLX5_RECEIVED, 0x55, 8, 800);
    take(source, &seen);
    unsigned number = seen.endpoints[1].qpn == 0x55 ? 1 : 2;
    assert_int_equal(seen.endpoints[number].qpn, 0x55);
    assert_memory_equal(seen.endpoints[number].remote_address, told.remote_address, ADDRESS_BYTES);
    assert_int_equal(seen.endpoints[number].gone_ns, 0);
    assert_int_equal(seen.received[number], 8);
    told.destroyed_ns = 5;
    source_tell(source, &told, true);
    take(source, &seen);
    assert_true(seen.endpoints[number].gone_ns != 0);
    source_close(&source);
}

/* Another machine's device of the same name is none of ours; one with the port's address is, whatever its name. */
static void another_machines_are_told_by_address(void **state)
{
    struct record_queue_pair told = {
        .queue_pair = 1, .qpn = 0x55, .remote_qpn = 0x66, .device = "mlx5_0", .port = 1, .state = 3, .type = 2};
    struct seen seen = {0};
    struct source *source;

    (void)state;
    memset(told.address, 1, ADDRESS_BYTES);
    source = open_source();
    source_tell(source, &told, false); /* the port has no address */
    take(source, &seen);
    assert_int_equal(seen.endpoints_count, 0);
    source_close(&source);
    memset(port_address, 7, ADDRESS_BYTES);
    source = open_source();
    source_tell(source, &told, false);
    take(source, &seen);
    assert_int_equal(seen.endpoints_count, 0);
    memset(told.address, 7, ADDRESS_BYTES);
    strcpy(told.device, "mlx5_9");
    source_tell(source, &told, false);
    take(source, &seen);
    assert_int_equal(seen.endpoints_count, 1);
    assert_int_equal(seen.endpoints[1].qpn, 0x55);
    standin_pass(device, MLX5_SENT, 0x55, 3, 300);
    take(source, &seen);
    assert_int_equal(seen.sent[1], 3);
    source_close(&source);
}

/* Room for two: the third is an endpoint without counts, said so, until one of the others goes. */
static void what_finds_no_counter_waits_for_one(void **state)
{
    struct seen seen = {0};
    struct source *source;

    (void)state;
    limits.counters = 4;
    for (uint32_t i = 0; i < 3; i++)
        list(0x10 + i, 0x20 + i);
    source = open_source();
    take(source, &seen);
    assert_int_equal(seen.endpoints_count, 3);
    assert_int_equal(source_refused(source), 1);
    standin_pass(device, MLX5_SENT, 0x12, 3, 300);
    take(source, &seen);
    assert_int_equal(seen.sent[3], 0);
    listed[0] = listed[2];
    listed_count = 2;
    relist(source);
    take(source, &seen);
    take(source, &seen);
    standin_pass(device, MLX5_SENT, 0x12, 3, 300);
    take(source, &seen);
    assert_int_equal(seen.sent[3], 3);
    source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(those_that_are_listed_are_counted, setup),
        cmocka_unit_test_setup(a_number_that_comes_back_is_another, setup),
        cmocka_unit_test_setup(those_that_are_told_are_counted, setup),
        cmocka_unit_test_setup(another_machines_are_told_by_address, setup),
        cmocka_unit_test_setup(what_finds_no_counter_waits_for_one, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
