/* SPDX-License-Identifier: BSD-2-Clause */
/* Communicators: identities that every rank finds alike, pointers used again, numbers of calls. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/tracker/communicator.h"

static int setup(void **state)
{
    return communicator_table_create((struct communicator_table **)state, 8);
}

static int teardown(void **state)
{
    communicator_table_destroy((struct communicator_table **)state);
    return 0;
}

static struct communicator *add(struct communicator_table *table, uint32_t process, uint64_t entered_ns)
{
    const struct communicator_call call = {.tid = 10, .entered_ns = entered_ns};
    struct communicator *communicator = NULL;
    assert_int_equal(communicator_add(table, process, &call, &communicator), 0);
    return communicator;
}

static void assert_identity(const struct communicator *communicator, const char *hexadecimal)
{
    char text[2 * IDENTITY_BYTES + 1];
    for (size_t i = 0; i < IDENTITY_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", communicator->record.identity[i]);
    assert_string_equal(text, hexadecimal);
}

/* Expected: BLAKE2b-128 by Python's hashlib, of bytes 0 to 127, and of (parent, child number, colour) in little endian.
 */
static void identities(void **state)
{
    uint8_t id[128];
    for (size_t i = 0; i < sizeof id; i++)
        id[i] = (uint8_t)i;
    struct communicator *parent = add(*state, 1, 1);
    struct communicator *first = add(*state, 1, 2);
    struct communicator *second = add(*state, 1, 3);
    communicator_identify(parent, IDENTITY_OF_ID, id, sizeof id);
    const int32_t color = 7;
    first->record.child = 0;
    second->record.child = 1;
    communicator_identify_child(first, parent, &color, sizeof color);
    communicator_identify_child(second, parent, &color, sizeof color);
    assert_identity(parent, "a74787004ef589e31149183900d0294a");
    assert_identity(first, "329faaddb4e459b6be7f5706b271cf12");
    assert_identity(second, "9c1554d29e79db663c6417c4973826cc");
}

static void found_by_call_until_bound(void **state)
{
    const struct communicator_call call = {.tid = 10, .entered_ns = 5};
    const struct communicator_call other_index = {.tid = 10, .entered_ns = 5, .index = 1};
    struct communicator *communicator = add(*state, 1, 5);
    assert_ptr_equal(communicator_by_call(*state, &call), communicator);
    assert_null(communicator_by_call(*state, &other_index));
    assert_null(communicator_bind(*state, communicator, 0x7f00));
    assert_null(communicator_by_call(*state, &call));
    assert_ptr_equal(communicator_by_pointer(*state, 1, 0x7f00), communicator);
    assert_null(communicator_by_pointer(*state, 2, 0x7f00));
    assert_ptr_equal(communicator_by_number(*state, communicator->record.communicator), communicator);
    communicator_remove(*state, communicator);
    assert_null(communicator_by_pointer(*state, 1, 0x7f00));
    assert_int_equal(communicator_count(*state), 0);
}

/* The end of the first was not seen; the second lies at the same place. */
static void pointer_used_again(void **state)
{
    struct communicator *first = add(*state, 1, 5);
    struct communicator *second = add(*state, 1, 6);
    struct communicator *elsewhere = add(*state, 2, 7);
    communicator_bind(*state, first, 0x7f00);
    assert_null(communicator_bind(*state, elsewhere, 0x7f00));
    assert_ptr_equal(communicator_bind(*state, second, 0x7f00), first);
    assert_ptr_equal(communicator_by_pointer(*state, 1, 0x7f00), second);
    assert_null(communicator_bind(*state, second, 0x7f00));
    assert_ptr_equal(communicator_by_pointer(*state, 1, 0x7f00), second);
}

static uint64_t number(struct communicator *communicator, uint8_t operation, int32_t peer)
{
    struct record_call call = {.operation = operation, .peer = peer, .count = 3};
    assert_int_equal(communicator_number_call(communicator, &call, 0), 0);
    assert_int_equal(call.header.source, communicator->record.communicator);
    return call.sequence;
}

static void numbers_of_calls(void **state)
{
    struct communicator *communicator = add(*state, 1, 5);
    struct record_call nobody = {.operation = OPERATION_SEND, .peer = -1, .sequence = 4711};
    struct record_call nowhere = {.operation = OPERATION_RECV, .peer = 1 << 30, .sequence = 4711};
    struct record_call captured = {.operation = OPERATION_ALL_REDUCE, .peer = -1};
    assert_int_equal(number(communicator, OPERATION_ALL_REDUCE, -1), 0);
    assert_int_equal(number(communicator, OPERATION_SEND, 3), 0);
    assert_int_equal(number(communicator, OPERATION_RECV, 3), 0);
    assert_int_equal(number(communicator, OPERATION_SEND, 900), 0);
    assert_int_equal(number(communicator, OPERATION_SEND, 3), 1);
    assert_int_equal(number(communicator, OPERATION_BROADCAST, 2), 1);
    assert_int_equal(number(communicator, OPERATION_SEND, 900), 1);
    assert_int_equal(number(communicator, OPERATION_RECV, 3), 1);
    assert_int_equal(number(communicator, OPERATION_ALL_REDUCE, -1), 2);
    assert_int_equal(communicator_number_call(communicator, &nobody, 0), -ERANGE);
    assert_int_equal(communicator_number_call(communicator, &nowhere, 0), -ERANGE);
    assert_int_equal(nobody.sequence, 4711);
    assert_int_equal(nowhere.sequence, 4711);
    assert_int_equal(communicator_number_call(communicator, &captured, CALL_CAPTURED), 0);
    assert_int_equal(captured.sequence, 0);
    assert_int_equal(captured.flags, CALL_CAPTURED);
    assert_int_equal(number(communicator, OPERATION_ALL_REDUCE, -1), 3);
}

/* Puts signal too; a wait takes as many numbers as it waits for signals (here 3). */
static void numbers_of_signals(void **state)
{
    struct communicator *communicator = add(*state, 1, 5);
    assert_int_equal(number(communicator, OPERATION_PUT_SIGNAL, 2), 0);
    assert_int_equal(number(communicator, OPERATION_SIGNAL, 2), 1);
    assert_int_equal(number(communicator, OPERATION_PUT_SIGNAL, 1), 0);
    assert_int_equal(number(communicator, OPERATION_PUT_SIGNAL, 2), 2);
    assert_int_equal(number(communicator, OPERATION_WAIT_SIGNAL, 2), 0);
    assert_int_equal(number(communicator, OPERATION_WAIT_SIGNAL, 2), 3);
    assert_int_equal(number(communicator, OPERATION_SEND, 2), 0);
    assert_int_equal(number(communicator, OPERATION_ALL_REDUCE, -1), 0);
}

static void full_table(void **state)
{
    struct communicator *communicator = NULL;
    for (uint64_t i = 0; i < 8; i++)
        add(*state, 1, i);
    assert_int_equal(communicator_add(*state, 1, NULL, &communicator), -ENOSPC);
    assert_null(communicator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(identities, setup, teardown),
        cmocka_unit_test_setup_teardown(found_by_call_until_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(pointer_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_of_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_of_signals, setup, teardown),
        cmocka_unit_test_setup_teardown(full_table, setup, teardown),
    };
    return cmocka_run_group_tests_name("communicator", tests, NULL, NULL);
}
