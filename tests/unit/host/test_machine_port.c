/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine's RDMA devices, on a tree made by hand. */
#include "host/machine/machine_port.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];
static struct record_rdma_port told[16];
static size_t told_count;

static void run(const char *format, const char *a, const char *b)
{
    char command[512];

    snprintf(command, sizeof command, format, root, a, b);
    assert_int_equal(system(command), 0);
}

static void put(const char *name, const char *text)
{
    run("f=%s/sys/class/infiniband/%s; mkdir -p $(dirname $f); printf '%s\\n' > $f", name, text);
}

static void note(void *context, const struct record_rdma_port *port)
{
    (void)context;
    assert_true(told_count < sizeof told / sizeof told[0]);
    told[told_count++] = *port;
}

static void look(struct machine_ports *ports, uint64_t now_ns, bool all)
{
    told_count = 0;
    machine_ports_look(ports, now_ns, all, note, NULL);
}

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/qpscope-ports-XXXXXX");
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    run("rm -rf %s", "", "");
    return 0;
}

/* Two functions of one card, as the kernel's tree has them, and a software device. */
static void make_machine(void)
{
    static const char *const cards[] = {"mlx5_0", "mlx5_1"};

    for (size_t i = 0; i < 2; i++) {
        char name[64], path[64];
        snprintf(path, sizeof path, "pci0000:3a/0000:3a:00.0/0000:3b:00.%zu", i);
        run("mkdir -p %s/sys/devices/%s %s", path, "");
        run("printf '1\\n' > %s/sys/devices/%s/numa_node %s", path, "");
        snprintf(name, sizeof name, "%s/ports/1/state", cards[i]);
        put(name, i == 0 ? "4: ACTIVE" : "1: DOWN");
        snprintf(name, sizeof name, "%s/ports/1/rate", cards[i]);
        put(name, "400 Gb/sec (4X NDR)");
        snprintf(name, sizeof name, "%s/ports/1/link_layer", cards[i]);
        put(name, "Ethernet");
        snprintf(name, sizeof name, "%s/ports/1/gid_attrs/ndevs/0", cards[i]);
        put(name, i == 0 ? "eth2" : "eth3");
        run("cd %s/sys/class/infiniband/ && ln -sfn ../../../devices/%s %s/device", path, cards[i]);
    }
    put("rxe0/ports/1/state", "4: ACTIVE");
    put("rxe0/ports/1/rate", "2.5 Gb/sec (1X SDR)");
}

static void all_are_told_once(void **state)
{
    struct machine_ports ports = {.root = root};

    (void)state;
    make_machine();
    look(&ports, 1000, false);
    assert_int_equal(told_count, 3);
    assert_string_equal(told[0].device, "mlx5_0");
    assert_int_equal(told[0].state, RDMA_PORT_ACTIVE);
    assert_int_equal(told[0].bits_a_second, 400000000000);
    assert_string_equal(told[0].interface, "eth2");
    assert_string_equal(told[0].bus, "0000:3b:00.0");
    assert_string_equal(told[0].root_port, "0000:3a:00.0");
    assert_int_equal(told[0].numa_node, 1);
    assert_int_equal(told[0].link_layer, RDMA_LINK_ETHERNET);
    assert_int_equal(told[0].number, 1);
    assert_int_equal(told[0].ports_count, 3);
    assert_int_equal(told[0].at_ns, 1000);
    assert_int_equal(told[0].before_ns, 0);
    assert_int_equal(told[0].header.source, 1);
    assert_int_equal(told[1].state, RDMA_PORT_DOWN);
    assert_string_equal(told[1].bus, "0000:3b:00.1");
    assert_string_equal(told[1].root_port, "0000:3a:00.0");
    assert_string_equal(told[2].device, "rxe0");
    assert_int_equal(told[2].bits_a_second, 2500000000);
    assert_string_equal(told[2].bus, "");
    assert_int_equal(told[2].numa_node, -1);
    look(&ports, 2000, false);
    assert_int_equal(told_count, 0);
    look(&ports, 3000, true);
    assert_int_equal(told_count, 3);
    assert_int_equal(told[0].at_ns, 1000);
}

static void a_change_is_told(void **state)
{
    struct machine_ports ports = {.root = root};

    (void)state;
    make_machine();
    look(&ports, 1000, false);
    look(&ports, 2000, false);
    put("mlx5_0/ports/1/state", "1: DOWN");
    look(&ports, 3000, false);
    assert_int_equal(told_count, 1);
    assert_int_equal(told[0].header.source, 1);
    assert_int_equal(told[0].state, RDMA_PORT_DOWN);
    assert_int_equal(told[0].before_ns, 2000); /* it was active then, and down at 3000 */
    assert_int_equal(told[0].at_ns, 3000);
}

static void what_goes_is_told(void **state)
{
    struct machine_ports ports = {.root = root};

    (void)state;
    make_machine();
    look(&ports, 1000, false);
    run("rm -r %s/sys/class/infiniband/%s %s", "mlx5_0", "");
    look(&ports, 2000, false);
    assert_int_equal(told_count, 3); /* those that are left: there are fewer of them */
    assert_int_equal(told[0].state, RDMA_PORT_GONE);
    assert_string_equal(told[0].device, "mlx5_0");
    assert_int_equal(told[1].ports_count, 2);
    look(&ports, 3000, false);
    assert_int_equal(told_count, 0);
    make_machine();
    look(&ports, 4000, false);
    assert_int_equal(told[0].header.source, 1);
    assert_int_equal(told[0].state, RDMA_PORT_ACTIVE);
}

static void a_machine_without_devices(void **state)
{
    struct machine_ports ports = {.root = root};

    (void)state;
    look(&ports, 1000, true);
    assert_int_equal(told_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_are_told_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_goes_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_machine_without_devices, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
