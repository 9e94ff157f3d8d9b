/* SPDX-License-Identifier: BSD-2-Clause */
/* Files put together by hand: time resolutions and byte orders that frames/ has none of, and cuts at every byte. */
#include "nic/source/packet_file.h"

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

static void expect_time(uint8_t resolution, uint64_t units, uint64_t offset_s, uint64_t at_ns)
{
    for (int is_big = 0; is_big < 2; is_big++) {
        struct bytes bytes = {.is_big = is_big != 0};
        struct packet_file *file;
        put_section(&bytes);
        put_interface(&bytes, 1, resolution, offset_s);
        put_packet(&bytes, 0, units);
        assert_int_equal(packet_file_open_memory(&file, "made", bytes.at, bytes.length), 0);
        expect_packet(file, at_ns, FRAME_LAYER_ETHERNET);
        packet_file_close(&file);
    }
}

/* Seven seconds and a half, and 1 s, in every unit that can say so; an hour later or earlier by if_tsoffset. */
static void test_every_resolution(void **state)
{
    uint64_t units = 1;

    (void)state;
    for (uint8_t exponent = 0; exponent <= 19; exponent++, units *= 10) {
        expect_time(exponent, units, 0, 1000000000u);
        if (exponent >= 1 && exponent <= 18)
            expect_time(exponent, units / 10 * 75, 3600, 3607500000000u);
    }
    for (uint8_t exponent = 0; exponent <= 63; exponent++) {
        expect_time(0x80 | exponent, (uint64_t)1 << exponent, 0, 1000000000u);
        if (exponent >= 1 && exponent <= 60)
            expect_time(0x80 | exponent, (uint64_t)15 << (exponent - 1), 3600, 3607500000000u);
    }
    expect_time(6, 3601000000u, (uint64_t)-3600, 1000000000u);
}

/* Obsolete packet block: a 16-bit interface and a count of drops before the time. */
static void test_obsolete_packet(void **state)
{
    (void)state;
    for (int is_big = 0; is_big < 2; is_big++) {
        struct bytes bytes = {.is_big = is_big != 0};
        struct packet_file *file;
        put_section(&bytes);
        put_interface(&bytes, 1, 9, 0);
        put_interface(&bytes, 113, 9, 0);
        put(&bytes, 2, 4);
        put(&bytes, 36, 4);
        put(&bytes, 1, 2);
        put(&bytes, 0xffff, 2);
        put(&bytes, 1, 4);
        put(&bytes, 5, 4);
        put(&bytes, 4, 4);
        put(&bytes, 90, 4);
        put(&bytes, 0x01020304, 4);
        put(&bytes, 36, 4);
        assert_int_equal(packet_file_open_memory(&file, "made", bytes.at, bytes.length), 0);
        expect_packet(file, ((uint64_t)1 << 32) + 5, FRAME_LAYER_SLL);
        packet_file_close(&file);
    }
}

/* One interface that is not read among others: its frames are handed out as such. */
static void test_an_unread_interface(void **state)
{
    struct bytes bytes = {.is_big = false};
    struct packet_file *file;
    struct packet packet;

    (void)state;
    put_section(&bytes);
    put_interface(&bytes, 147, 9, 0);
    put_interface(&bytes, 197, 9, 0);
    put_packet(&bytes, 0, 1);
    put_packet(&bytes, 1, 2);
    assert_int_equal(packet_file_open_memory(&file, "made", bytes.at, bytes.length), 0);
    expect_packet(file, 1, FRAME_LAYER_OTHER);
    expect_packet(file, 2, FRAME_LAYER_ERF);
    assert_int_equal(packet_file_next(file, &packet), 0);
    packet_file_close(&file);
}

/* A pcap file whose frames end in 4 bytes of FCS: one whole, one cut, one that is nothing but the FCS. */
static void test_frame_check_sequence(void **state)
{
    static const uint32_t lengths[3][4] = {{10, 10, 6, 6}, {8, 90, 8, 86}, {4, 4, 0, 0}};
    struct bytes bytes = {.is_big = true};
    struct packet_file *file;
    struct packet packet;

    (void)state;
    put(&bytes, 0xa1b2c3d4, 4);
    put(&bytes, 0x00020004, 4);
    put(&bytes, 0, 8);
    put(&bytes, 65535, 4);
    put(&bytes, 0x24000001, 4);
    for (unsigned i = 0; i < 3; i++) {
        put(&bytes, i, 4);
        put(&bytes, 0, 4);
        put(&bytes, lengths[i][0], 4);
        put(&bytes, lengths[i][1], 4);
        put(&bytes, 0, lengths[i][0]);
    }
    assert_int_equal(packet_file_open_memory(&file, "made", bytes.at, bytes.length), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(packet_file_next(file, &packet), 1);
        assert_true(packet.at_ns == i * 1000000000u);
        assert_int_equal(packet.captured_bytes, lengths[i][2]);
        assert_int_equal(packet.original_bytes, lengths[i][3]);
    }
    packet_file_close(&file);
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
        cmocka_unit_test(test_every_resolution),
        cmocka_unit_test(test_obsolete_packet),
        cmocka_unit_test(test_an_unread_interface),
        cmocka_unit_test(test_frame_check_sequence),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests_name("nic_packet_file", tests, NULL, NULL);
}
