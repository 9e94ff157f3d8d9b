/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts out of dumps that are put together here, by sums of field widths: an address path is 0x160 bits (0x80 before
 * its GID of 0x80, 0x60 after it), two of them follow the context's first 0xc0 bits.
 */
#include "nic/mlx5/mlx5_layout.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    PATHS_END = 0xc0 + 2 * 0x160,            /* 0x380 */
    NEXT_SEND = PATHS_END + 0x20 + 0x20 + 8, /* after two words of retry settings */
    LAST_ACKED = PATHS_END + 6 * 0x20 + 8,   /* then cqn_snd, deth_sqpn, a reserved word */
    SSN = PATHS_END + 7 * 0x20 + 8,
    NEXT_RECEIVE = PATHS_END + 9 * 0x20 + 8, /* after the word of access flags */
    RMSN = PATHS_END + 16 * 0x20 + 8,        /* xrcd, cqn_rcv, dbr_addr x2, q_key, srqn between */
};

static void put(uint8_t *bytes, unsigned bit, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        if ((value >> (width - 1 - i) & 1) != 0)
            bytes[(bit + i) / 8] |= (uint8_t)(0x80 >> (bit + i) % 8);
}

static void make_context(uint8_t context[256], uint32_t remote_qpn)
{
    memset(context, 0, 256);
    put(context, 0x40, 3, 5);
    put(context, 0xa8, 24, remote_qpn);
    for (unsigned i = 0; i < 16; i++)
        put(context, 0xc0 + 0x80 + 8 * i, 8, 0xa0 + i);
    put(context, NEXT_SEND, 24, 0x123456);
    put(context, LAST_ACKED, 24, 0x123400);
    put(context, SSN, 24, 0x77);
    put(context, NEXT_RECEIVE, 24, 0xfffffe);
    put(context, RMSN, 24, 0x99);
}

/* Segments: an information one, one for another queue pair, ours; `before` bytes of QUERY_QP's answer before the
 * context. */
static size_t make_dump(uint8_t *dump, uint32_t qpn, const uint8_t context[256], size_t before)
{
    size_t at = 16;

    memset(dump, 0, 1024);
    put(dump, 0, 16, 4);
    for (unsigned i = 0; i < 2; i++) {
        size_t bytes = 16 + (i == 0 ? 4 : before + 256);
        put(dump + at, 0, 16, bytes / 4);
        put(dump + at, 0x10, 16, 0x1005);
        put(dump + at, 0x40, 32, i == 0 ? 9999 : qpn);
        if (i == 1)
            memcpy(dump + at + 16 + before, context, 256);
        at += bytes;
    }
    return at;
}

static void a_context_is_found_in_both_places(void **state)
{
    static const size_t places[] = {24, 0};
    uint8_t bytes[256], dump[1024];
    struct mlx5_context context;

    (void)state;
    make_context(bytes, 0xabc);
    for (size_t i = 0; i < 2; i++) {
        size_t length = make_dump(dump, 0x42, bytes, places[i]);
        assert_int_equal(mlx5_find_context(dump, length, 0x42, 0xabc, &context), 0);
        assert_int_equal(context.remote_qpn, 0xabc);
        assert_int_equal(context.mtu_bytes, 4096);
        assert_int_equal(context.next_send_psn, 0x123456);
        assert_int_equal(context.last_acked_psn, 0x123400);
        assert_int_equal(context.next_receive_psn, 0xfffffe);
        assert_int_equal(context.sent_messages, 0x77);
        assert_int_equal(context.received_messages, 0x99);
        assert_int_equal(context.remote_address[0], 0xa0);
        assert_int_equal(context.remote_address[15], 0xaf);
    }
}

static void what_does_not_agree_is_not_taken(void **state)
{
    uint8_t bytes[256], dump[1024];
    struct mlx5_context context;

    (void)state;
    make_context(bytes, 0xabc);
    size_t length = make_dump(dump, 0x42, bytes, 24);
    assert_int_equal(mlx5_find_context(dump, length, 0x42, 0xabd, &context), -ENOENT);
    assert_int_equal(mlx5_find_context(dump, length, 0x43, 0xabc, &context), -ENOENT);
    assert_int_equal(mlx5_find_context(dump, length, 0x42, 0, &context), -ENOENT);
    for (size_t cut = 0; cut < length; cut++) {
        int result = mlx5_find_context(dump, cut, 0x42, 0xabc, &context);
        assert_true(result == -EBADMSG || result == -ENOENT);
    }
    memset(dump, 0, sizeof dump); /* a segment of no length */
    assert_int_equal(mlx5_find_context(dump, sizeof dump, 0x42, 0xabc, &context), -EBADMSG);
}

/* A field is written where it belongs and nowhere else, whatever was there. */
static void fields_do_not_spill(void **state)
{
    uint8_t bytes[MLX5_MATCH_BYTES];

    (void)state;
    memset(bytes, 0xff, sizeof bytes);
    mlx5_put(bytes, MLX5_MATCH_SOURCE_SQN, 0x010203);
    assert_int_equal(bytes[64], 0xff);
    assert_int_equal(bytes[65], 1);
    assert_int_equal(bytes[66], 2);
    assert_int_equal(bytes[67], 3);
    assert_int_equal(bytes[68], 0xff);
    assert_int_equal(mlx5_get(bytes, MLX5_MATCH_SOURCE_SQN), 0x010203);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_is_found_in_both_places),
        cmocka_unit_test(what_does_not_agree_is_not_taken),
        cmocka_unit_test(fields_do_not_spill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
