/* SPDX-License-Identifier: BSD-2-Clause */
/* The teller between a made-up analysis and a real control link: who is told what, once, and again to whom. */
#include "correlator/control/teller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/batch.h"
#include "wire/link.h"
#include "wire/log.h"

#define PAUSE_US  300000 /* longer than the teller rests between two looks */
#define PAIRS_MAX 2000u

struct fixture {
    char url[128];
    struct analysis *analysis;
    struct controls *controls;
    struct teller *teller;
    struct link *nic;
    unsigned told[PAIRS_MAX + 1]; /* by QPN */
    unsigned records;
    unsigned batches;
    uint8_t kernel_boot; /* first byte of the last hello's */
    uint8_t boot_of[PAIRS_MAX + 1];
    uint64_t destroyed_ns;
    uint8_t message[LINK_MESSAGE_BYTES_MAX];
};

/* Host sides 1 and 2; the queue pairs from `second` on are of the second. */
static struct analysis *make_analysis(uint32_t pairs, uint32_t second)
{
    struct analysis *analysis = analysis_create(1u << 20);

    for (uint32_t i = 1; i <= 2; i++) {
        struct intake_stream *stream = array_add(&analysis->intake.streams);
        *stream = (struct intake_stream){.kind = EMITTER_HOST, .boot_id = i, .greeted = true};
        stream->hello.kernel_boot[0] = (uint8_t)(0xa0 + i);
    }
    for (uint32_t i = 1; i <= pairs; i++) {
        struct queue_pair *pair = array_add(&analysis->naming.queue_pairs);
        pair->stream = i >= second;
        pair->record = (struct record_queue_pair){.queue_pair = i, .qpn = i, .remote_qpn = 100000 + i};
    }
    return analysis;
}

/* Waits until the connection is counted: one that is counted after the first batch is told all once more. */
static void open_nic(struct fixture *fixture)
{
    const struct link_options options = {.role = LINK_RECEIVE, .url = fixture->url, .boot_id = 2};
    uint64_t before = controls_connections(fixture->controls, 0);

    assert_int_equal(link_open(&fixture->nic, &options), 0);
    for (unsigned waited_ms = 0; controls_connections(fixture->controls, 0) == before; waited_ms += 10) {
        assert_true(waited_ms < 20000);
        usleep(10000);
    }
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct option_list urls = {.values = {fixture->url}, .count = 1};

    *state = fixture;
    snprintf(fixture->url, sizeof fixture->url, "ipc:///tmp/qpscope-test-teller-%d", getpid());
    if (controls_open(&fixture->controls, &urls, NULL, 1) != 0)
        return -1;
    teller_create(&fixture->teller, fixture->controls);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    teller_destroy(&fixture->teller);
    controls_close(&fixture->controls);
    link_close(&fixture->nic, 0);
    array_fini(&fixture->analysis->naming.queue_pairs);
    analysis_destroy(&fixture->analysis);
    unlink(fixture->url + strlen("ipc://"));
    free(fixture);
    return 0;
}

static void take_record(struct fixture *fixture, const union record *record)
{
    if (record->header.kind == RECORD_HELLO) {
        fixture->kernel_boot = record->hello.kernel_boot[0];
        return;
    }
    assert_int_equal(record->header.kind, RECORD_QUEUE_PAIR);
    assert_in_range(record->queue_pair.qpn, 1, PAIRS_MAX);
    assert_int_equal(record->queue_pair.remote_qpn, 100000 + record->queue_pair.qpn);
    fixture->told[record->queue_pair.qpn]++;
    fixture->boot_of[record->queue_pair.qpn] = fixture->kernel_boot;
    fixture->destroyed_ns = record->queue_pair.destroyed_ns;
    fixture->records++;
}

/* Looks a few times, as the correlator does, and hears what comes. */
static void look(struct fixture *fixture, unsigned times)
{
    size_t length;

    fixture->records = 0;
    fixture->batches = 0;
    for (unsigned i = 0; i < times; i++) {
        teller_look(fixture->teller, fixture->analysis);
        usleep(PAUSE_US);
        while (link_receive(fixture->nic, fixture->message, sizeof fixture->message, &length) == 0) {
            struct batch batch;
            union record record;
            uint64_t unknown = 0;
            assert_int_equal(batch_read(&batch, fixture->message, length), 0);
            fixture->kernel_boot = 0;
            while (batch_next(&batch, &record, &unknown) == 1)
                take_record(fixture, &record);
            fixture->batches++;
        }
    }
}

static void test_each_is_told_once_and_when_it_changes(void **state)
{
    struct fixture *fixture = *state;

    fixture->analysis = make_analysis(10, 6);
    fixture->analysis->naming.queue_pairs.items[2].record.destroyed_ns = 7; /* gone before anybody was told of it */
    open_nic(fixture);
    look(fixture, 3);
    assert_int_equal(fixture->records, 9);
    assert_int_equal(fixture->batches, 1);
    for (uint32_t qpn = 1; qpn <= 10; qpn++) {
        assert_int_equal(fixture->told[qpn], qpn != 3);
        assert_int_equal(fixture->boot_of[qpn], qpn == 3 ? 0 : qpn < 6 ? 0xa1 : 0xa2);
    }
    fixture->analysis->naming.queue_pairs.items[7].record.destroyed_ns = 9;
    look(fixture, 2);
    assert_int_equal(fixture->records, 1);
    assert_int_equal(fixture->told[8], 2);
    assert_int_equal(fixture->destroyed_ns, 9);
}

/* Nobody is there at first; then somebody, and after them somebody else, who has not heard anything. */
static void test_who_comes_later_is_told(void **state)
{
    struct fixture *fixture = *state;

    fixture->analysis = make_analysis(5, 9);
    for (int i = 0; i < 3; i++) {
        teller_look(fixture->teller, fixture->analysis);
        usleep(PAUSE_US);
    }
    open_nic(fixture);
    look(fixture, 5);
    assert_int_equal(fixture->records, 5);
    link_close(&fixture->nic, 0);
    usleep(PAUSE_US);
    open_nic(fixture);
    look(fixture, 5);
    assert_int_equal(fixture->records, 5);
    assert_int_equal(fixture->told[5], 2);
}

/* 512 at one time. */
static void test_many_are_told_in_turns(void **state)
{
    struct fixture *fixture = *state;

    fixture->analysis = make_analysis(1300, 800);
    open_nic(fixture);
    look(fixture, 6);
    assert_int_equal(fixture->records, 1300);
    assert_int_equal(fixture->batches, 3);
    for (uint32_t qpn = 1; qpn <= 1300; qpn++) {
        assert_int_equal(fixture->told[qpn], 1);
        assert_int_equal(fixture->boot_of[qpn], qpn < 800 ? 0xa1 : 0xa2);
    }
}

static void test_too_many_are_counted(void **state)
{
    struct fixture *fixture = *state;

    log_init("test_teller", LOG_NONE);
    fixture->analysis = make_analysis(TELLER_PAIRS_MAX + 3, UINT32_MAX);
    teller_look(fixture->teller, fixture->analysis);
    assert_int_equal(teller_refused(fixture->teller), 3);
    open_nic(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_is_told_once_and_when_it_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_comes_later_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_are_told_in_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_many_are_counted, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
