/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of the kernel's RDMA netlink, put together byte by byte as RFC 3549 and rdma_netlink.h say. */
#include "wire/rdma/rdma_message.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bytes {
    uint8_t at[512];
    size_t length;
};

static void put(struct bytes *bytes, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        bytes->at[bytes->length++] = (uint8_t)(value >> 8 * i);
}

/* RDMA_NLDEV_ATTR_: DEV_INDEX 1, DEV_NAME 2, PORT_INDEX 3; the entry's numbers follow from the header's order. */
enum { DEV_INDEX = 1, DEV_NAME = 2, PORT_INDEX = 3 };

static size_t open_attribute(struct bytes *bytes, unsigned type)
{
    size_t at = bytes->length;
    put(bytes, 0, 2);
    put(bytes, type, 2);
    return at;
}

static void close_attribute(struct bytes *bytes, size_t at)
{
    size_t length = bytes->length - at;
    bytes->at[at] = (uint8_t)length;
    bytes->at[at + 1] = (uint8_t)(length >> 8);
    while (bytes->length % 4 != 0)
        put(bytes, 0, 1);
}

static void put_attribute(struct bytes *bytes, unsigned type, uint64_t value, unsigned count)
{
    size_t at = open_attribute(bytes, type);
    put(bytes, value, count);
    close_attribute(bytes, at);
}

static void open_message(struct bytes *bytes, unsigned type)
{
    bytes->length = 0;
    put(bytes, 0, 4);
    put(bytes, type, 2);
    put(bytes, 0, 2);
    put(bytes, 7, 4);
    put(bytes, 0, 4);
}

static void close_message(struct bytes *bytes)
{
    bytes->at[0] = (uint8_t)bytes->length;
    bytes->at[1] = (uint8_t)(bytes->length >> 8);
}

static void put_entry(struct bytes *bytes, uint32_t qpn, uint32_t remote, uint32_t send, uint32_t receive)
{
    size_t entry = open_attribute(bytes, RDMA_NLDEV_ATTR_RES_QP_ENTRY | 0x8000);
    put_attribute(bytes, PORT_INDEX, 1, 4);
    put_attribute(bytes, RDMA_NLDEV_ATTR_RES_LQPN, qpn, 4);
    put_attribute(bytes, RDMA_NLDEV_ATTR_RES_RQPN, remote, 4);
    put_attribute(bytes, RDMA_NLDEV_ATTR_RES_SQ_PSN, send, 4);
    put_attribute(bytes, RDMA_NLDEV_ATTR_RES_RQ_PSN, receive, 4);
    put_attribute(bytes, RDMA_NLDEV_ATTR_RES_TYPE, 2, 1);
    put_attribute(bytes, RDMA_NLDEV_ATTR_RES_STATE, 3, 1);
    put_attribute(bytes, RDMA_NLDEV_ATTR_RES_PID, 4711, 4);
    close_attribute(bytes, entry);
}

static struct rdma_queue_pair found[8];
static size_t found_count;

static void find(void *context, const struct rdma_queue_pair *pair)
{
    (void)context;
    found[found_count++] = *pair;
}

static void make_dump(struct bytes *bytes)
{
    open_message(bytes, 0x1400 + RDMA_NLDEV_CMD_RES_QP_GET);
    put_attribute(bytes, DEV_INDEX, 5, 4);
    put_attribute(bytes, DEV_NAME, 0x0030657872u, 5); /* "rxe0" */
    size_t table = open_attribute(bytes, RDMA_NLDEV_ATTR_RES_QP | 0x8000);
    put_entry(bytes, 17, 18, 0xabcdef, 0x123456);
    put_entry(bytes, 19, 20, 0, 1);
    close_attribute(bytes, table);
    close_message(bytes);
}

static void a_dump_gives_its_queue_pairs(void **state)
{
    struct bytes bytes;
    struct rdma_message message;

    (void)state;
    make_dump(&bytes);
    found_count = 0;
    assert_int_equal(rdma_message_read(bytes.at, bytes.length, &message, find, NULL), bytes.length);
    assert_int_equal(message.device, 5);
    assert_string_equal(message.device_name, "rxe0");
    assert_int_equal(found_count, 2);
    assert_int_equal(found[0].device, 5);
    assert_int_equal(found[0].port, 1);
    assert_int_equal(found[0].qpn, 17);
    assert_int_equal(found[0].remote_qpn, 18);
    assert_int_equal(found[0].send_psn, 0xabcdef);
    assert_int_equal(found[0].receive_psn, 0x123456);
    assert_int_equal(found[0].type, 2);
    assert_int_equal(found[0].state, 3);
    assert_int_equal(found[0].pid, 4711);
    assert_true(found[0].has_send_psn && found[0].has_receive_psn);
    assert_int_equal(found[1].qpn, 19);
}

/* NLMSG_DONE 3, NLMSG_ERROR 2 with -EOPNOTSUPP (-95). */
static void ends_and_errors_are_told_apart(void **state)
{
    struct bytes bytes;
    struct rdma_message message;

    (void)state;
    open_message(&bytes, 3);
    put(&bytes, 0, 4);
    close_message(&bytes);
    assert_int_equal(rdma_message_read(bytes.at, bytes.length, &message, NULL, NULL), 20);
    assert_true(message.is_last);
    open_message(&bytes, 2);
    put(&bytes, (uint32_t)-95, 4);
    close_message(&bytes);
    assert_int_equal(rdma_message_read(bytes.at, bytes.length, &message, NULL, NULL), 20);
    assert_true(message.is_error);
    assert_int_equal(message.error, 95);
    assert_int_equal(rdma_message_read(bytes.at, 0, &message, NULL, NULL), 0);
}

/* Cut anywhere: an error or fewer queue pairs, never one that was not there. */
static void a_cut_message_invents_nothing(void **state)
{
    struct bytes bytes;
    struct rdma_message message;

    (void)state;
    make_dump(&bytes);
    for (size_t cut = 0; cut < bytes.length; cut++) {
        struct bytes shorter = bytes;
        shorter.at[0] = (uint8_t)cut;
        shorter.at[1] = (uint8_t)(cut >> 8);
        found_count = 0;
        rdma_message_read(shorter.at, cut, &message, find, NULL);
        for (size_t i = 0; i < found_count; i++)
            assert_true(found[i].qpn == 17 || found[i].qpn == 19);
        assert_int_equal(rdma_message_read(bytes.at, cut, &message, NULL, NULL), cut == 0 ? 0 : -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dump_gives_its_queue_pairs),
        cmocka_unit_test(ends_and_errors_are_told_apart),
        cmocka_unit_test(a_cut_message_invents_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
