/* SPDX-License-Identifier: BSD-2-Clause */
/* --port taken apart. The arguments asserted are those that DPDK's guides to the drivers name. */
#include "nic/dpdk/specification.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_interface(void **state)
{
    const uint8_t address[ADDRESS_BYTES] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
    struct specification read;

    (void)state;
    assert_int_equal(specification_read(&read, "net_pcap0,iface=eth0@10.0.0.1", 1), 0);
    assert_string_equal(read.device, "net_pcap0");
    assert_string_equal(read.interface, "eth0");
    assert_string_equal(read.argument, "--vdev=net_pcap0,iface=eth0");
    assert_memory_equal(read.address, address, ADDRESS_BYTES);
    assert_true(read.is_snapped);
    assert_false(read.is_ring);
    assert_int_equal(specification_read(&read, "net_pcap0,rx_iface_in=eth1", 1), 0);
    assert_string_equal(read.interface, "eth1");
    assert_true(read.is_snapped);
    assert_int_equal(specification_read(&read, "net_pcap0,rx_pcap=file.pcap", 1), 0);
    assert_false(read.is_snapped);
}

/* An interface that is not there has the usual MTU: 1500 + 14 + 128 bytes, up to a whole number of 512 = 4 * 512. */
static void test_ring(void **state)
{
    struct specification read;

    (void)state;
    assert_int_equal(specification_read(&read, "net_af_packet0,iface=nosuch", 1), 0);
    assert_true(read.is_ring);
    assert_int_equal(read.frame_bytes, 2048);
    assert_string_equal(read.argument, "--vdev=net_af_packet0,iface=nosuch,framesz=2048,blocksz=16384,framecnt=2048");
    assert_int_equal(specification_read(&read, "net_af_packet0,iface=nosuch", 4), 0);
    assert_string_equal(read.argument,
                        "--vdev=net_af_packet0,iface=nosuch,framesz=2048,blocksz=16384,framecnt=2048,qpairs=4");
    assert_int_equal(specification_read(&read, "net_af_packet0,iface=nosuch,framesz=4096,qpairs=2", 4), 0);
    assert_string_equal(read.argument, "--vdev=net_af_packet0,iface=nosuch,framesz=4096,qpairs=2");
}

static void test_bus_and_names(void **state)
{
    struct specification read;

    (void)state;
    assert_int_equal(specification_read(&read, "0000:03:00.0,representor=pf0@fe80::1", 1), 0);
    assert_string_equal(read.device, "0000:03:00.0");
    assert_string_equal(read.argument, "--allow=0000:03:00.0,representor=pf0");
    assert_int_equal(read.address[0], 0xfe);
    assert_int_equal(specification_read(&read, "0000:03:00.0_representor_pf0", 1), 0);
    assert_string_equal(read.device, "0000:03:00.0_representor_pf0");
    assert_string_equal(read.argument, "");
}

static void test_refusals(void **state)
{
    char text[400];
    struct specification read;

    (void)state;
    assert_int_equal(specification_read(&read, "net_pcap0,iface=eth0@1.2.3", 1), -EINVAL);
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(specification_read(&read, text, 1), -ENAMETOOLONG);
    memcpy(text, "net_", 4);
    text[253] = '\0'; /* fits, but not with "--vdev=" before it */
    assert_int_equal(specification_read(&read, text, 1), -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interface),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_bus_and_names),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests_name("specification", tests, NULL, NULL);
}
