/* SPDX-License-Identifier: BSD-2-Clause */
/* Files put together by hand: time resolutions and byte orders that frames/ has none of, and cuts at every byte. */
#include "nic/packet_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bytes {
    uint8_t at[4096];
    size_t length;
    bool is_big;
};

static void put(struct bytes *bytes, uint64_t number, unsigned length)
{
    for (unsigned i = 0; i < length; i++)
        bytes->at[bytes->length++] = (uint8_t)(number >> (bytes->is_big ? 8 * (length - 1 - i) : 8 * i));
}

static void put_section(struct bytes *bytes)
{
    put(bytes, 0x0a0d0d0a, 4);
    put(bytes, 28, 4);
    put(bytes, 0x1a2b3c4d, 4);
    put(bytes, 1, 2);
    put(bytes, 0, 2);
    put(bytes, UINT64_MAX, 8);
    put(bytes, 28, 4);
}

/* An interface of a link type, with if_tsresol and if_tsoffset. */
static void put_interface(struct bytes *bytes, uint16_t link_type, uint8_t resolution, uint64_t offset_s)
{
    put(bytes, 1, 4);
    put(bytes, 40, 4);
    put(bytes, link_type, 2);
    put(bytes, 0, 2);
    put(bytes, 0, 4);
    put(bytes, 9, 2);
    put(bytes, 1, 2);
    bytes->at[bytes->length++] = resolution;
    put(bytes, 0, 3);
    put(bytes, 14, 2);
    put(bytes, 8, 2);
    put(bytes, offset_s, 8);
    put(bytes, 40, 4);
}

static void put_packet(struct bytes *bytes, uint32_t interface, uint64_t units)
{
    put(bytes, 6, 4);
    put(bytes, 36, 4);
    put(bytes, interface, 4);
    put(bytes, units >> 32, 4);
    put(bytes, units & 0xffffffff, 4);
    put(bytes, 4, 4);
    put(bytes, 90, 4);
    put(bytes, 0x01020304, 4);
    put(bytes, 36, 4);
}

static void expect_packet(struct packet_file *file, uint64_t at_ns, enum frame_layer layer)
{
    struct packet packet;

    assert_int_equal(packet_file_next(file, &packet), 1);
    assert_true(packet.at_ns == at_ns);
    assert_int_equal(packet.layer, layer);
    assert_int_equal(packet.captured_bytes, 4);
    assert_int_equal(packet.original_bytes, 90);
}

static void check_resolutions(bool is_big)
{
    struct bytes bytes = {.is_big = is_big};
    struct packet_file *file;
    struct packet packet;

    put_section(&bytes);
    put_interface(&bytes, 1, 3, 0);
    put_interface(&bytes, 101, 12, 0);
    put_interface(&bytes, 276, 0x80 | 10, 5);
    put_packet(&bytes, 0, 1700000000123u);
    put_packet(&bytes, 1, 1700000000123456u);
    put_packet(&bytes, 2, 3 * 1024 + 512);
    put_section(&bytes);
    put_interface(&bytes, 1, 9, 100);
    put_packet(&bytes, 0, 7);
    assert_int_equal(packet_file_open_memory(&file, "made", bytes.at, bytes.length), 0);
    expect_packet(file, 1700000000123000000u, FRAME_LAYER_ETHERNET);
    expect_packet(file, 1700000000123u, FRAME_LAYER_RAW_IP);
    expect_packet(file, 8500000000u, FRAME_LAYER_SLL2);
    expect_packet(file, 100000000007u, FRAME_LAYER_ETHERNET);
    assert_int_equal(packet_file_next(file, &packet), 0);
    packet_file_close(&file);
}

static void test_resolutions(void **state)
{
    (void)state;
    check_resolutions(false);
    check_resolutions(true);
}

static void test_cut_at_every_byte(void **state)
{
    struct bytes bytes = {.is_big = false};

    (void)state;
    put_section(&bytes);
    put_interface(&bytes, 1, 9, 0);
    put_packet(&bytes, 0, 7);
    put_packet(&bytes, 0, 8);
    for (size_t length = 0; length <= bytes.length; length++) {
        struct packet_file *file;
        struct packet packet;
        int result, packets = 0;
        if (packet_file_open_memory(&file, "made", bytes.at, length) != 0) {
            assert_true(length < 12);
            continue;
        }
        while ((result = packet_file_next(file, &packet)) == 1)
            packets++;
        bool is_whole = length == 28 || length == 68 || length == 104 || length == 140;
        assert_int_equal(result, is_whole ? 0 : -EBADMSG);
        assert_int_equal(packets, length < 104 ? 0 : length < 140 ? 1 : 2);
        packet_file_close(&file);
    }
}

static void test_refuses(void **state)
{
    struct bytes bytes = {.is_big = false};
    struct packet_file *file = NULL;
    struct packet packet;

    (void)state;
    assert_int_equal(packet_file_open_memory(&file, "made", "GIF89a", 6), -EPROTONOSUPPORT);
    assert_null(file);
    put_section(&bytes);
    put_interface(&bytes, 147, 9, 0);
    put_packet(&bytes, 0, 1);
    assert_int_equal(packet_file_open_memory(&file, "made", bytes.at, bytes.length), 0);
    assert_int_equal(packet_file_next(file, &packet), -EPROTONOSUPPORT);
    packet_file_close(&file);
    bytes.length = 0;
    put_section(&bytes);
    put_packet(&bytes, 0, 1); /* of an interface that was never described */
    assert_int_equal(packet_file_open_memory(&file, "made", bytes.at, bytes.length), 0);
    assert_int_equal(packet_file_next(file, &packet), -EBADMSG);
    packet_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resolutions),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests_name("nic_packet_file", tests, NULL, NULL);
}
