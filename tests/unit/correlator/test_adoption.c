/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owners by what was carried. Expected owners are those of the same made-up job whose queue pairs were seen being made;
 * slots of single readings are written down by hand.
 */
#include "correlator/adoption/decoding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/correlator/world.h"
#include "wire/log.h"

#define MS     1000000ULL
#define CALLS  20
#define PERIOD (100 * MS)

static const struct made_options two_communicators = {
    .ranks = 4, .channels = 2, .queue_pairs = 1, .steps = 12, .seed = 7, .groups = true, .overlaps = true};

/* Indices of members by queue pair, of the job as it is when the queue pairs were seen being made. */
static void owners_of(const struct made_options *options, int32_t *owners, size_t *count)
{
    struct made_job *job = made_create(options);
    struct analysis *analysis = world_analysis(job);

    *count = analysis->naming.queue_pairs.count;
    assert_true(*count <= 200);
    for (size_t i = 0; i < *count; i++)
        owners[i] = analysis->naming.queue_pairs.items[i].member;
    analysis_destroy(&analysis);
    made_destroy(job);
}

static void test_owners_are_found(void **state)
{
    struct made_options options = two_communicators;
    int32_t told[200], found[200];
    size_t count, again;
    (void)state;
    owners_of(&options, told, &count);
    options.ownerless = true;
    owners_of(&options, found, &again);
    assert_int_equal(count, again);
    for (size_t i = 0; i < count; i++) {
        assert_true(told[i] >= 0);
        assert_int_equal(found[i], told[i]);
    }
}

/* What was adopted is cut as if it had been told. */
static void test_operations_come_out(void **state)
{
    struct made_options options = two_communicators;
    uint64_t bytes = 0;
    (void)state;
    options.ownerless = true;
    struct made_job *job = made_create(&options);
    struct analysis *analysis = world_analysis(job);
    for (size_t i = 0; i < analysis->records.count; i++) {
        assert_int_equal(analysis->records.items[i].flags, 0);
        bytes += analysis->records.items[i].observed_bytes;
    }
    assert_int_equal(bytes, job->sent_bytes);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* Another communicator of the same processes does the very same: only what the other one carried is known. */
static void test_twins_are_not_told_apart(void **state)
{
    struct made_options options = two_communicators;
    int32_t told[200], found[200];
    size_t count, again, unknown = 0;
    (void)state;
    options.twin = true;
    owners_of(&options, told, &count);
    options.ownerless = true;
    owners_of(&options, found, &again);
    assert_int_equal(count, again);
    for (size_t i = 0; i < count; i++) {
        bool is_first = told[i] < options.ranks; /* members are in the order in which communicators were told */
        assert_int_equal(found[i], is_first ? -1 : told[i]);
        unknown += is_first;
    }
    assert_true(unknown > 0 && unknown < count);
}

/* What a communicator carried whose calls nobody saw could all be another's: that one has too much then, and gets none.
 */
static void test_nothing_is_left_over(void **state)
{
    struct made_options options = two_communicators;
    int32_t told[200], found[200];
    size_t count, again, unknown = 0;
    (void)state;
    options.echo = true;
    owners_of(&options, told, &count);
    options.ownerless = true;
    owners_of(&options, found, &again);
    assert_int_equal(count, again);
    for (size_t i = 0; i < count; i++) {
        bool is_first = told[i] < options.ranks;
        assert_int_equal(found[i], is_first ? told[i] : -1);
        unknown += !is_first;
    }
    assert_true(unknown > 0 && unknown < count);
}

/* Too little was seen to claim anything. */
static void test_nothing_of_a_few_steps(void **state)
{
    struct made_options options = two_communicators;
    int32_t found[200];
    size_t count;
    (void)state;
    options.ownerless = true;
    options.steps = 1;
    owners_of(&options, found, &count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(found[i], -1);
}

/* ---- single readings: all-gathers of two ranks, one channel, one slot of 4096 bytes and an empty one each ---- */

struct sheet {
    struct book book;
    struct track_set set;
    slot_list slots;
    uint64_t bytes;
};

static void add_slot(struct sheet *sheet, uint64_t first_ns, uint64_t bytes)
{
    *(struct slot *)array_add(&sheet->slots) =
        (struct slot){.first_ns = first_ns, .last_ns = first_ns + MS, .bytes = bytes, .whole = true};
}

/* Each call is on the wire 5 ms after it was enqueued. */
static struct sheet write_gathers(void)
{
    struct sheet sheet = {.bytes = 4096};
    struct work work = {.kind = OPERATION_ALL_GATHER, .bytes = sheet.bytes};

    work.ring = shape_collective(&work.collective, work.kind, sheet.bytes, 0, 2);
    assert_true(work.ring);
    track_set_init(&sheet.set, &work.collective, &(struct shape_range){.channels = 1});
    for (size_t i = 0; i < CALLS; i++) {
        work.enqueued_ns = 1000 * MS + i * PERIOD;
        *(struct work *)array_add(&sheet.book.works) = work;
        *(int32_t *)array_add(&sheet.book.sets) = 0;
        add_slot(&sheet, work.enqueued_ns + 5 * MS, sheet.bytes);
        add_slot(&sheet, work.enqueued_ns + 6 * MS, 0);
    }
    return sheet;
}

/* Each call a send of twice as many bytes to rank 1, in the same two slots and a third one. */
static struct sheet write_sends(void)
{
    struct sheet sheet = {.bytes = 8192};

    for (size_t i = 0; i < CALLS; i++) {
        const struct work work = {
            .kind = OPERATION_SEND, .peer = 1, .bytes = sheet.bytes, .enqueued_ns = 1000 * MS + i * PERIOD};
        *(struct work *)array_add(&sheet.book.works) = work;
        *(int32_t *)array_add(&sheet.book.sets) = -1;
        add_slot(&sheet, work.enqueued_ns + 5 * MS, 4096);
        add_slot(&sheet, work.enqueued_ns + 6 * MS, 4096);
    }
    return sheet;
}

static unsigned read_sheet(struct sheet *sheet)
{
    const struct decoding decoding = {.book = &sheet->book,
                                      .sets = &sheet->set,
                                      .sets_count = 1,
                                      .slots = &sheet->slots,
                                      .direction = LANE_SEND,
                                      .own = 0,
                                      .peer = 1,
                                      .channels = 1,
                                      .bound_ns = MS / 100};
    unsigned kinds = decoding_try(&decoding);

    array_fini(&sheet->book.works);
    array_fini(&sheet->book.sets);
    array_fini(&sheet->slots);
    track_set_fini(&sheet->set);
    return kinds;
}

static void remove_slots(struct sheet *sheet, size_t at, size_t count)
{
    memmove(&sheet->slots.items[at], &sheet->slots.items[at + count],
            (sheet->slots.count - at - count) * sizeof sheet->slots.items[0]);
    sheet->slots.count -= count;
}

static void test_read(void **state)
{
    struct sheet sheet = write_gathers();
    (void)state;
    assert_int_equal(read_sheet(&sheet), DECODING_RING);
    sheet = write_sends();
    assert_int_equal(read_sheet(&sheet), DECODING_PAIRS);
    sheet = write_gathers();
    sheet.slots.count -= 1; /* the last call is under way */
    assert_int_equal(read_sheet(&sheet), DECODING_RING);
    sheet = write_gathers();
    add_slot(&sheet, 0, 0);
    memmove(&sheet.slots.items[1], &sheet.slots.items[0], (sheet.slots.count - 1) * sizeof sheet.slots.items[0]);
    sheet.slots.items[0] = (struct slot){.first_ns = MS, .last_ns = 2 * MS, .bytes = 77, .whole = true};
    assert_int_equal(read_sheet(&sheet), DECODING_RING); /* asked for before anybody looked */
}

static void test_not_read(void **state)
{
    struct sheet sheet;
    (void)state;
    sheet = write_gathers();
    sheet.slots.items[21].bytes = 1; /* not this call's */
    assert_int_equal(read_sheet(&sheet), DECODING_NONE);
    sheet = write_gathers();
    sheet.slots.items[20].whole = false;
    assert_int_equal(read_sheet(&sheet), DECODING_NONE);
    sheet = write_gathers();
    sheet.slots.items[20].first_ns -= 205 * MS; /* before the call before it was enqueued */
    assert_int_equal(read_sheet(&sheet), DECODING_NONE);
    sheet = write_gathers();
    add_slot(&sheet, 9000 * MS, 77); /* nobody asked for it */
    assert_int_equal(read_sheet(&sheet), DECODING_NONE);
    sheet = write_gathers();
    remove_slots(&sheet, 20, 4); /* two calls without data, and so each later one's two periods late */
    assert_int_equal(read_sheet(&sheet), DECODING_NONE);
    sheet = write_sends();
    sheet.slots.items[21].bytes = 4097;
    assert_int_equal(read_sheet(&sheet), DECODING_NONE);
}

/* The same with fewer calls than are believed. */
static void test_few_calls(void **state)
{
    struct sheet sheet = write_gathers();
    (void)state;
    sheet.book.works.count = sheet.book.sets.count = 5;
    sheet.slots.count = 10;
    assert_int_equal(read_sheet(&sheet), DECODING_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owners_are_found),
        cmocka_unit_test(test_operations_come_out),
        cmocka_unit_test(test_twins_are_not_told_apart),
        cmocka_unit_test(test_nothing_of_a_few_steps),
        cmocka_unit_test(test_nothing_is_left_over),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_not_read),
        cmocka_unit_test(test_few_calls),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("adoption", tests, NULL, NULL);
}
