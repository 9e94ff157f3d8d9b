/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/seal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"

#define CLEAR "all ranks are late"

static struct seal *make_seal(void **state, const char *name, char digit, uint64_t emitter_id)
{
    struct seal *seal;

    assert_int_equal(seal_create(&seal, scratch_key(state, name, digit), emitter_id, 1), 0);
    return seal;
}

static void opens_what_was_sealed(void **state)
{
    struct seal *sender = make_seal(state, "k", 'a', 1), *receiver = make_seal(state, "k", 'a', 2);
    uint8_t sealed[64], clear[64];
    size_t length = seal_close(sender, CLEAR, sizeof CLEAR, sealed), clear_length = 0;

    assert_int_equal(length, sizeof CLEAR + 40);
    for (size_t at = 0; at + 4 <= length; at++)
        assert_memory_not_equal(sealed + at, "late", 4);
    assert_int_equal(seal_open(receiver, sealed, length, clear, &clear_length), 0);
    assert_int_equal(clear_length, sizeof CLEAR);
    assert_memory_equal(clear, CLEAR, sizeof CLEAR);
    seal_destroy(&sender);
    seal_destroy(&receiver);
    assert_null(sender);
}

static void takes_an_empty_message(void **state)
{
    struct seal *sender = make_seal(state, "k", 'a', 1);
    uint8_t sealed[64], clear[1];
    size_t length = seal_close(sender, "", 0, sealed), clear_length = 9;

    assert_int_equal(length, 40);
    assert_int_equal(seal_open(sender, sealed, length, clear, &clear_length), 0);
    assert_int_equal(clear_length, 0);
    seal_destroy(&sender);
}

static void rejects_another_key(void **state)
{
    struct seal *sender = make_seal(state, "k1", 'a', 1), *receiver = make_seal(state, "k2", 'b', 2);
    uint8_t sealed[64], clear[64];
    size_t length = seal_close(sender, CLEAR, sizeof CLEAR, sealed), clear_length = 9;

    assert_int_equal(seal_open(receiver, sealed, length, clear, &clear_length), -EBADMSG);
    assert_int_equal(clear_length, 9);
    seal_destroy(&sender);
    seal_destroy(&receiver);
}

static void rejects_every_flipped_bit_and_every_cut(void **state)
{
    struct seal *sender = make_seal(state, "k", 'a', 1), *receiver = make_seal(state, "k", 'a', 2);
    uint8_t sealed[64], clear[64];
    size_t length = seal_close(sender, CLEAR, sizeof CLEAR, sealed), clear_length;

    for (size_t bit = 0; bit < 8 * length; bit++) {
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(seal_open(receiver, sealed, length, clear, &clear_length), -EBADMSG);
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < length; cut++)
        assert_int_equal(seal_open(receiver, sealed, cut, clear, &clear_length), -EBADMSG);
    /* None of those took the number of the true one. */
    assert_int_equal(seal_open(receiver, sealed, length, clear, &clear_length), 0);
    seal_destroy(&sender);
    seal_destroy(&receiver);
}

static void takes_each_message_once_in_any_near_order(void **state)
{
    enum { COUNT = 900 };
    struct seal *sender = make_seal(state, "k", 'a', 1), *receiver = make_seal(state, "k", 'a', 2);
    static uint8_t sealed[COUNT][64];
    uint8_t clear[64];
    size_t length = 0, clear_length;

    for (int i = 0; i < COUNT; i++)
        length = seal_close(sender, CLEAR, sizeof CLEAR, sealed[i]);
    for (int i = 0; i < COUNT; i++) /* 7 and 900 have no common divisor: each once */
        assert_int_equal(seal_open(receiver, sealed[i * 7 % COUNT], length, clear, &clear_length), 0);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(seal_open(receiver, sealed[i], length, clear, &clear_length), -EALREADY);
    seal_destroy(&sender);
    seal_destroy(&receiver);
}

static void rejects_what_is_older_than_its_window(void **state)
{
    struct seal *sender = make_seal(state, "k", 'a', 1), *receiver = make_seal(state, "k", 'a', 2);
    uint8_t old[64], sealed[64], clear[64];
    size_t length = seal_close(sender, CLEAR, sizeof CLEAR, old), clear_length;

    for (int i = 0; i < 1024; i++)
        seal_close(sender, CLEAR, sizeof CLEAR, sealed);
    assert_int_equal(seal_open(receiver, sealed, length, clear, &clear_length), 0);
    assert_int_equal(seal_open(receiver, old, length, clear, &clear_length), -EALREADY);
    for (int i = 0; i < 5000; i++)
        seal_close(sender, CLEAR, sizeof CLEAR, sealed);
    assert_int_equal(seal_open(receiver, sealed, length, clear, &clear_length), 0);
    assert_int_equal(seal_open(receiver, sealed, length, clear, &clear_length), -EALREADY);
    seal_destroy(&sender);
    seal_destroy(&receiver);
}

/* Two links of one process have the same emitter and boot: their nonces must differ all the same. */
static void uses_no_nonce_twice_in_a_process(void **state)
{
    struct seal *one = make_seal(state, "k", 'a', 1), *two = make_seal(state, "k", 'a', 1);
    uint8_t sealed_one[64], sealed_two[64];

    for (int i = 0; i < 100; i++) {
        seal_close(one, CLEAR, sizeof CLEAR, sealed_one);
        seal_close(two, CLEAR, sizeof CLEAR, sealed_two);
        assert_memory_not_equal(sealed_one, sealed_two, 24);
    }
    seal_destroy(&one);
    seal_destroy(&two);
}

static void remembers_a_bounded_number_of_senders(void **state)
{
    struct seal *receiver = make_seal(state, "k", 'a', 2);
    uint8_t sealed[64], clear[64];
    size_t length = 0, clear_length;

    for (uint64_t i = 0; i < 4096; i++) {
        struct seal *sender;
        assert_int_equal(seal_create(&sender, scratch_path(state, "", "k"), 100 + i, 1), 0);
        length = seal_close(sender, CLEAR, sizeof CLEAR, sealed);
        assert_int_equal(seal_open(receiver, sealed, length, clear, &clear_length), 0);
        seal_destroy(&sender);
    }
    struct seal *late = make_seal(state, "k", 'a', 99);
    length = seal_close(late, CLEAR, sizeof CLEAR, sealed);
    assert_int_equal(seal_open(receiver, sealed, length, clear, &clear_length), -ENOSPC);
    seal_destroy(&late);
    seal_destroy(&receiver);
}

static void assert_key_refused(void **state, const char *text, unsigned mode, int error)
{
    const char *path = scratch_path(state, "", "bad.key");
    struct seal *seal;

    scratch_write(path, text, strlen(text), mode);
    assert_int_equal(seal_create(&seal, path, 1, 1), error);
}

#define HEX_16 "0123456789abcDEF"

static void checks_the_key_file(void **state)
{
    const char *path = scratch_path(state, "", "good.key");
    struct seal *seal;

    assert_int_equal(seal_create(&seal, scratch_path(state, "", "none"), 1, 1), -ENOENT);
    assert_key_refused(state, HEX_16 HEX_16 HEX_16 HEX_16, 0604, -EPERM);
    assert_key_refused(state, HEX_16 HEX_16 HEX_16 HEX_16, 0660, -EPERM);
    assert_key_refused(state, HEX_16 HEX_16 HEX_16, 0600, -EINVAL);
    assert_key_refused(state, HEX_16 HEX_16 HEX_16 HEX_16 "0", 0600, -EINVAL);
    assert_key_refused(state, HEX_16 HEX_16 HEX_16 "0123456789abcdeg", 0600, -EINVAL);
    assert_key_refused(state, "", 0600, -EINVAL);
    const char *spaced = " 01 23\n456789abcDEF\t" HEX_16 HEX_16 HEX_16 "\n";
    scratch_write(path, spaced, strlen(spaced), 0640);
    assert_int_equal(seal_create(&seal, path, 1, 1), 0);
    seal_destroy(&seal);
    seal_destroy(&seal);
}

/* BLAKE2b with 16 bytes of output; the values are those of Python's hashlib.blake2b(..., digest_size=16). */
static void digests_as_blake2b(void **state)
{
    static const uint8_t empty[16] = {0xca, 0xe6, 0x69, 0x41, 0xd9, 0xef, 0xbd, 0x40,
                                      0x4e, 0x4d, 0x88, 0x75, 0x8e, 0xa6, 0x76, 0x70};
    static const uint8_t abc[16] = {0xcf, 0x4a, 0xb7, 0x91, 0xc6, 0x2b, 0x8d, 0x2b,
                                    0x21, 0x09, 0xc9, 0x02, 0x75, 0x28, 0x78, 0x16};
    uint8_t digest[16];

    (void)state;
    seal_digest("", 0, digest);
    assert_memory_equal(digest, empty, 16);
    seal_digest("abc", 3, digest);
    assert_memory_equal(digest, abc, 16);
}

static void random_numbers_differ(void **state)
{
    uint64_t before = seal_random();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t number = seal_random();
        assert_true(number != 0 && number != before);
        before = number;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_what_was_sealed),
        cmocka_unit_test(takes_an_empty_message),
        cmocka_unit_test(rejects_another_key),
        cmocka_unit_test(rejects_every_flipped_bit_and_every_cut),
        cmocka_unit_test(takes_each_message_once_in_any_near_order),
        cmocka_unit_test(rejects_what_is_older_than_its_window),
        cmocka_unit_test(uses_no_nonce_twice_in_a_process),
        cmocka_unit_test(remembers_a_bounded_number_of_senders),
        cmocka_unit_test(checks_the_key_file),
        cmocka_unit_test(digests_as_blake2b),
        cmocka_unit_test(random_numbers_differ),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
