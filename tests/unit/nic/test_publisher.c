/* SPDX-License-Identifier: BSD-2-Clause */
/* The publisher between real links: what it sends of a meter, and how it answers a request for windows. */
#include "nic/publisher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "nic/source/source_private.h"
#include "nic/window/watch.h"
#include "tests/unit/nic/draft.h"
#include "wire/batch.h"
#include "wire/clock.h"
#include "wire/link.h"

#define WINDOW_NS  1000u
#define TRIES      20000
#define ASK_NUMBER 77

struct fixture {
    char folder[64];
    char intake_url[128];
    char control_url[128];
    struct tallies tallies;
    struct counter_table counters;
    struct meter meter;
    struct publisher *publisher;
    struct link *intake;
    struct emitter *asker;
    /* what came */
    uint64_t flows;
    uint64_t unknown_flows; /* records of a flow that had not been introduced */
    uint64_t ports;
    uint64_t messages;
    uint64_t windows;
    uint64_t frames; /* in windows */
    uint64_t windows_by_flow[8];
    uint64_t coarse_windows;
    uint64_t coarse_frames;
    uint32_t coarse_ns;
    uint64_t totals;
    struct record_flow_total total;
    struct record_trigger_end end;
    struct record_loss loss;
    struct record_pin pin;
    uint64_t pins;
    uint32_t psns[4];
    uint64_t boot_id;
    struct record_hello hello;
    uint8_t message[LINK_MESSAGE_BYTES_MAX];
};

static void open_parts(struct fixture *fixture, size_t memory_bytes)
{
    const struct meter_options meter = {
        .window_ns = WINDOW_NS, .flows_max = 16, .messages_max = 1024, .memory_bytes = memory_bytes};
    const struct publisher_options publisher = {.emitter = {.kind = EMITTER_NIC,
                                                            .instance = "test",
                                                            .link_url = fixture->intake_url,
                                                            .window_ns = WINDOW_NS,
                                                            .counters = &fixture->counters},
                                                .control_url = fixture->control_url};
    const struct link_options intake = {.role = LINK_RECEIVE, .url = fixture->intake_url};
    const struct emitter_options asker = {
        .kind = EMITTER_COMMAND, .instance = "test", .link_url = fixture->control_url};

    fixture->counters = tally_table(&fixture->tallies);
    assert_int_equal(link_open(&fixture->intake, &intake), 0);
    assert_int_equal(meter_init(&fixture->meter, &meter, &fixture->tallies), 0);
    fixture->meter.ports_count = 1;
    fixture->meter.ports[0].port = 1;
    assert_int_equal(publisher_open(&fixture->publisher, &publisher, &fixture->meter), 0);
    assert_int_equal(emitter_open(&fixture->asker, &asker), 0);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    if (fixture == NULL)
        return -1;
    strcpy(fixture->folder, "/tmp/qpscope-publisher-XXXXXX");
    if (mkdtemp(fixture->folder) == NULL)
        return -1;
    snprintf(fixture->intake_url, sizeof fixture->intake_url, "ipc://%s/intake", fixture->folder);
    snprintf(fixture->control_url, sizeof fixture->control_url, "ipc://%s/control", fixture->folder);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    emitter_close(&fixture->asker);
    publisher_close(&fixture->publisher);
    link_close(&fixture->intake, 0);
    meter_fini(&fixture->meter);
    unlink(fixture->intake_url + strlen("ipc://"));
    unlink(fixture->control_url + strlen("ipc://"));
    rmdir(fixture->folder);
    free(fixture);
    return 0;
}

static void take_record(struct fixture *fixture, const union record *record)
{
    uint16_t kind = record->header.kind;

    if ((kind == RECORD_MESSAGE || kind == RECORD_WINDOW || kind == RECORD_FLOW_TOTAL) &&
        record->header.source > fixture->flows)
        fixture->unknown_flows++;
    switch (kind) {
    case RECORD_PORT:
        fixture->ports++;
        break;
    case RECORD_FLOW:
        fixture->flows = record->flow.flow > fixture->flows ? record->flow.flow : fixture->flows;
        break;
    case RECORD_MESSAGE:
        fixture->messages++;
        break;
    case RECORD_WINDOW:
        fixture->windows++;
        fixture->frames += record->window.frames;
        fixture->windows_by_flow[record->header.source % 8]++;
        break;
    case RECORD_FLOW_TOTAL:
        fixture->totals++;
        fixture->total = record->flow_total;
        break;
    case RECORD_COARSE_WINDOW:
        fixture->coarse_windows++;
        fixture->coarse_frames += record->coarse_window.frames;
        fixture->coarse_ns = record->coarse_window.window_ns;
        break;
    case RECORD_TRIGGER_END:
        fixture->end = record->trigger_end;
        break;
    case RECORD_HELLO:
        fixture->hello = record->hello;
        break;
    case RECORD_PIN:
        fixture->pins++;
        fixture->pin = record->pin;
        break;
    case RECORD_LOSS:
        fixture->loss = record->loss;
        break;
    }
}

static void take_all(struct fixture *fixture)
{
    size_t length_bytes;

    while (link_receive(fixture->intake, fixture->message, sizeof fixture->message, &length_bytes) == 0) {
        struct batch batch;
        union record record;
        uint64_t unknown = 0;
        assert_int_equal(batch_read(&batch, fixture->message, length_bytes), 0);
        fixture->boot_id = batch.header.boot_id;
        while (batch_next(&batch, &record, &unknown) == 1)
            take_record(fixture, &record);
    }
}

/* Ticks as the program does, a millisecond apart, until `done` says so. */
static void run_until(struct fixture *fixture, bool (*done)(const struct fixture *))
{
    for (int i = 0; i < TRIES && !done(fixture); i++) {
        publisher_tick(fixture->publisher, clock_now_ns());
        emitter_tick(fixture->asker);
        take_all(fixture);
        usleep(1000);
    }
    assert_true(done(fixture));
}

static void pass_frame(struct fixture *fixture, uint8_t source, uint32_t psn, uint64_t at_ns)
{
    const struct draft_frame frame = {
        .source = source, .destination = 9, .opcode = 0x04, .qpn = 7, .psn = psn, .payload_bytes = 100};
    struct draft draft;

    draft_roce(&draft, &frame);
    const struct source_frame seen = {.bytes = draft.bytes,
                                      .captured_bytes = (uint32_t)draft.length,
                                      .original_bytes = (uint32_t)draft.length,
                                      .at_ns = at_ns,
                                      .port = 1};
    meter_frames(&fixture->meter, &seen, 1);
}

static void pass(struct fixture *fixture, uint8_t source, uint32_t psn, uint64_t at_ns)
{
    struct record_message message;

    pass_frame(fixture, source, psn, at_ns);
    while (message_take(fixture->meter.messages, &message))
        publisher_add_message(fixture->publisher, &message);
}

static void ask(struct fixture *fixture, uint64_t from_ns, uint64_t to_ns, uint32_t flow)
{
    struct record_trigger trigger = {.header.source = ASK_NUMBER, .from_ns = from_ns, .to_ns = to_ns, .flow = flow};

    emitter_add(fixture->asker, RECORD_TRIGGER, &trigger);
    emitter_flush(fixture->asker);
}

static bool has_totals(const struct fixture *fixture)
{
    return fixture->totals > 0 && fixture->messages == 20;
}

static bool has_end(const struct fixture *fixture)
{
    return fixture->end.header.source == ASK_NUMBER;
}

static void test_messages_and_totals(void **state)
{
    struct fixture *fixture = *state;
    uint64_t now_ns = clock_now_ns();

    open_parts(fixture, 4u << 20);
    for (uint32_t i = 0; i < 20; i++)
        pass(fixture, 1, i, now_ns + i * 500);
    run_until(fixture, has_totals);
    assert_int_equal(fixture->flows, 1);
    assert_int_equal(fixture->unknown_flows, 0);
    assert_int_equal(fixture->total.data_frames, 20);
    assert_int_equal(fixture->total.payload_bytes, 2000);
    assert_int_equal(fixture->total.messages, 20);
    assert_true(fixture->ports >= 1);
    assert_int_equal(fixture->windows, 0); /* nobody asked */
}

/* 3000 windows of each of two flows; asked for 1000 of one of them. */
static void test_windows_of_an_interval(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = clock_now_ns() / WINDOW_NS * WINDOW_NS - 1000000000;

    open_parts(fixture, 4u << 20);
    for (uint32_t i = 0; i < 3000; i++) {
        pass(fixture, 1, i, start_ns + i * WINDOW_NS);
        pass(fixture, 2, i, start_ns + i * WINDOW_NS + 10);
    }
    ask(fixture, start_ns + 1000 * WINDOW_NS, start_ns + 2000 * WINDOW_NS, 2);
    run_until(fixture, has_end);
    assert_int_equal(fixture->windows, 1000);
    assert_int_equal(fixture->frames, 1000);
    assert_int_equal(fixture->end.windows, 1000);
    assert_true(fixture->end.from_ns == start_ns + 1000 * WINDOW_NS);
    assert_true(fixture->end.to_ns == start_ns + 2000 * WINDOW_NS);
    assert_int_equal(fixture->loss.lost, 0);
    assert_int_equal(fixture->unknown_flows, 0);
}

/* The end of the interval lies ahead: the answer waits for its frames, the open windows among them. */
static void test_waits_for_the_interval(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = clock_now_ns();

    open_parts(fixture, 4u << 20);
    ask(fixture, start_ns, start_ns + 1000000000, 0);
    for (uint32_t i = 0; i < 50; i++) {
        pass(fixture, 1, i, start_ns + i * 4000000);
        publisher_tick(fixture->publisher, clock_now_ns());
    }
    run_until(fixture, has_end);
    assert_int_equal(fixture->frames, 50);
    assert_true(clock_now_ns() >= start_ns + 1000000000);
}

static void test_what_is_no_longer_held(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = clock_now_ns() / WINDOW_NS * WINDOW_NS - 2000000000;
    const uint32_t passed = 300000;

    open_parts(fixture, 1u << 20);
    for (uint32_t i = 0; i < passed; i++)
        pass(fixture, 1, i, start_ns + i * WINDOW_NS);
    ask(fixture, start_ns, start_ns + (uint64_t)passed * WINDOW_NS, 0);
    run_until(fixture, has_end);
    uint64_t overwritten = fixture->tallies.values[TALLY_WINDOWS_OVERWRITTEN];
    assert_true(overwritten > 0);
    assert_int_equal(fixture->windows, passed - overwritten);
    assert_int_equal(fixture->loss.cause, LOSS_OVERWRITTEN);
    assert_true(fixture->loss.from_ns == start_ns);
    assert_true(fixture->loss.to_ns == start_ns + overwritten * WINDOW_NS);
    assert_true(fixture->end.from_ns == fixture->loss.to_ns);
}

static void ask_more(struct fixture *fixture, const struct record_trigger *wanted)
{
    struct record_trigger trigger = *wanted;

    trigger.header.source = ASK_NUMBER;
    emitter_add(fixture->asker, RECORD_TRIGGER, &trigger);
    emitter_flush(fixture->asker);
}

/* Four flows with 100, 200, 300 and 400 windows of one frame of 100 bytes. */
static uint64_t pass_four_flows(struct fixture *fixture)
{
    uint64_t start_ns = clock_now_ns() / WINDOW_NS * WINDOW_NS - 1000000000;

    open_parts(fixture, 4u << 20);
    for (uint32_t i = 0; i < 400; i++) {
        for (uint8_t flow = 1; flow <= 4; flow++) {
            if (i < flow * 100u)
                pass(fixture, flow, i, start_ns + i * WINDOW_NS + flow);
        }
    }
    return start_ns;
}

/* The flows with the most bytes come whole, within the limit; the end says what did not. */
static void test_ranked_and_capped(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = pass_four_flows(fixture);

    ask_more(fixture, &(struct record_trigger){.from_ns = start_ns, .to_ns = start_ns + 400 * WINDOW_NS, .limit = 750});
    run_until(fixture, has_end);
    assert_int_equal(fixture->windows, 700);
    assert_int_equal(fixture->windows_by_flow[4], 400);
    assert_int_equal(fixture->windows_by_flow[3], 300);
    assert_int_equal(fixture->end.windows, 700);
    assert_int_equal(fixture->end.left_out, 300);
    assert_int_equal(fixture->end.flows, 2);
    assert_int_equal(fixture->end.flows_left_out, 2);
    assert_int_equal(fixture->end.flags, 0);
}

/* One flow alone has more than the limit: its first ones come. */
static void test_less_than_one_flow(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = pass_four_flows(fixture);

    ask_more(fixture, &(struct record_trigger){.from_ns = start_ns, .to_ns = start_ns + 400 * WINDOW_NS, .limit = 50});
    run_until(fixture, has_end);
    assert_int_equal(fixture->windows_by_flow[4], 50);
    assert_int_equal(fixture->end.windows, 50);
    assert_int_equal(fixture->end.left_out, 950);
    assert_int_equal(fixture->end.flows, 1);
}

static void test_the_flows_named(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = pass_four_flows(fixture);

    ask_more(fixture, &(struct record_trigger){
                          .from_ns = start_ns, .to_ns = start_ns + 400 * WINDOW_NS, .flow = 1, .more_flows = {3}});
    run_until(fixture, has_end);
    assert_int_equal(fixture->windows_by_flow[1], 100);
    assert_int_equal(fixture->windows_by_flow[3], 300);
    assert_int_equal(fixture->windows, 400);
    assert_int_equal(fixture->end.left_out, 0);
    assert_int_equal(fixture->end.flows, 2);
}

/* Sent again counts more than bytes when asked so. */
static void test_ranked_by_retransmission(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = pass_four_flows(fixture);

    pass(fixture, 1, 99, start_ns + 399 * WINDOW_NS);
    ask_more(fixture,
             &(struct record_trigger){
                 .from_ns = start_ns, .to_ns = start_ns + 400 * WINDOW_NS, .rank = RANK_RETRANSMITTED, .limit = 101});
    run_until(fixture, has_end);
    assert_int_equal(fixture->windows_by_flow[1], 101);
    assert_int_equal(fixture->end.flows, 1);
    assert_int_equal(fixture->end.left_out, 900);
}

/* Windows of 128 us, and messages, of the same interval. */
static void test_other_tiers(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = pass_four_flows(fixture);
    struct record_trigger trigger = {
        .from_ns = start_ns, .to_ns = start_ns + 400 * WINDOW_NS, .tier = TIER_WINDOWS_MIDDLE};

    ask_more(fixture, &trigger);
    run_until(fixture, has_end);
    assert_int_equal(fixture->coarse_ns, 128 * WINDOW_NS);
    assert_int_equal(fixture->coarse_frames, 1000);
    assert_true(fixture->coarse_windows >= 4 * 1 + 2 && fixture->coarse_windows <= 2 + 3 + 4 + 5);
    assert_int_equal(fixture->end.windows, fixture->coarse_windows);
    fixture->end = (struct record_trigger_end){0};
    uint64_t before = fixture->messages;
    trigger.tier = TIER_MESSAGES;
    trigger.flow = 2;
    ask_more(fixture, &trigger);
    run_until(fixture, has_end);
    assert_int_equal(fixture->end.tier, TIER_MESSAGES);
    assert_int_equal(fixture->end.windows, 200);
    assert_int_equal(fixture->messages - before, 200);
}

/* What a pin kept is sent when the ring has long gone round, and the end says that a pin kept it. */
static void test_from_a_pin(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = clock_now_ns() / WINDOW_NS * WINDOW_NS - 3000000000;
    const uint32_t before = 2000, after = 800000;

    open_parts(fixture, 4u << 20);
    for (uint32_t i = 0; i < before; i++)
        pass(fixture, 1, i, start_ns + i * WINDOW_NS);
    meter_settle(&fixture->meter, start_ns + before * WINDOW_NS, 0);
    assert_true(tiers_pin(&fixture->meter.tiers, start_ns + 500 * WINDOW_NS, start_ns + 699 * WINDOW_NS));
    for (uint32_t i = before; i < after; i++)
        pass(fixture, 1, i & 0xffffff, start_ns + i * WINDOW_NS);
    assert_true(window_ring_held_from(fixture->meter.windows) > start_ns / WINDOW_NS + before);
    ask(fixture, start_ns + 500 * WINDOW_NS, start_ns + 700 * WINDOW_NS, 1);
    run_until(fixture, has_end);
    assert_int_equal(fixture->windows, 200);
    assert_int_equal(fixture->end.flags, TRIGGER_END_PINNED);
    assert_true(fixture->end.from_ns == start_ns + 500 * WINDOW_NS && fixture->end.to_ns == start_ns + 700 * WINDOW_NS);
}

static bool has_rejected(const struct fixture *fixture)
{
    return fixture->tallies.values[TALLY_CONTROL_REJECTED] == 2;
}

/* Several hear one control link: only the one that is meant answers. */
static void test_who_is_asked_answers(void **state)
{
    struct fixture *fixture = *state;
    uint64_t start_ns = pass_four_flows(fixture);
    struct record_trigger trigger = {.from_ns = start_ns, .to_ns = start_ns + 400 * WINDOW_NS, .boot_id = 1};

    while (fixture->boot_id == 0) {
        publisher_tick(fixture->publisher, clock_now_ns());
        take_all(fixture);
    }
    ask_more(fixture, &trigger); /* whose boot is that? */
    trigger.boot_id = fixture->boot_id;
    trigger.flow = 3;
    ask_more(fixture, &trigger);
    run_until(fixture, has_end);
    assert_int_equal(fixture->windows, 300);
    assert_int_equal(fixture->tallies.values[TALLY_TRIGGERS], 1);
}

struct told_source {
    struct source source;
    unsigned here;
    unsigned elsewhere;
    uint32_t qpn;
};

static void note_told(struct source *source, const struct record_queue_pair *pair, bool is_here)
{
    struct told_source *told = (struct told_source *)source;

    told->here += is_here;
    told->elsewhere += !is_here;
    told->qpn = pair->qpn;
}

/* Queue pairs go to the source, with whether the host side whose hello stands before them is of this machine. */
static void test_queue_pairs_are_handed_on(void **state)
{
    static const struct source_operations operations = {.tell = note_told};
    struct told_source told = {.source.operations = &operations};
    struct fixture *fixture = *state;
    struct record_queue_pair pair = {.queue_pair = 1, .qpn = 77, .remote_qpn = 78};

    open_parts(fixture, 4u << 20);
    publisher_tell(fixture->publisher, &told.source);
    while (fixture->boot_id == 0) {
        publisher_tick(fixture->publisher, clock_now_ns());
        take_all(fixture);
    }
    struct record_hello elsewhere = fixture->hello;
    elsewhere.kernel_boot[3] ^= 1;
    emitter_flush(fixture->asker);
    emitter_add(fixture->asker, RECORD_HELLO, &fixture->hello);
    emitter_add(fixture->asker, RECORD_QUEUE_PAIR, &pair);
    emitter_add(fixture->asker, RECORD_HELLO, &elsewhere);
    emitter_add(fixture->asker, RECORD_QUEUE_PAIR, &pair);
    emitter_flush(fixture->asker);
    for (int i = 0; i < TRIES && told.here + told.elsewhere < 2; i++) {
        publisher_tick(fixture->publisher, clock_now_ns());
        emitter_tick(fixture->asker);
        usleep(1000);
    }
    assert_int_equal(told.here, 1);
    assert_int_equal(told.elsewhere, 1);
    assert_int_equal(told.qpn, 77);
}

static bool has_two_pins(const struct fixture *fixture)
{
    return fixture->pins == 2;
}

/* One frame, as a worker does it but for the messages, which stay here. */
static void pass_watched(struct fixture *fixture, struct watch *watch, uint8_t source, uint64_t at_ns)
{
    struct record_message message;
    struct record_pin pin;

    pass_frame(fixture, source, fixture->psns[source]++, at_ns);
    while (message_take(fixture->meter.messages, &message))
        watch_message(watch, &message);
    watch_go_on(watch, at_ns);
    while (watch_take(watch, &pin))
        publisher_add(fixture->publisher, RECORD_PIN, &pin);
}

/*
 * Flow 1 sends a frame every 100 us for 2 ms and is then silent for 5 ms, again and again; then for 40 ms, once, and
 * the ring goes round. The pin's record says what is kept, and asked for just that, each window comes.
 */
static void test_a_stall_is_told_and_comes_back_whole(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t gap_ns = 100000, active_ns = 2000000, round_ns = 7000000, stall_ns = 40000000;
    uint64_t start_ns = clock_now_ns() / WINDOW_NS * WINDOW_NS - 20000000000;
    uint64_t stalled_ns = start_ns + 1500 * round_ns + active_ns, resumed_ns = stalled_ns + stall_ns;
    struct watch *watch;

    open_parts(fixture, 3u << 20);
    assert_int_equal(watch_create(&watch, &fixture->meter), 0);
    for (uint64_t at_ns = start_ns; at_ns < resumed_ns; at_ns += gap_ns) {
        bool is_active = at_ns < stalled_ns && (at_ns - start_ns) % round_ns < active_ns;
        pass_watched(fixture, watch, is_active ? 1 : 2, at_ns);
    }
    pass_watched(fixture, watch, 1, resumed_ns);
    for (uint64_t later_ns = gap_ns / 10; later_ns < 600000 * gap_ns / 10; later_ns += gap_ns / 10)
        pass_watched(fixture, watch, later_ns % round_ns < active_ns ? 1 : 2, resumed_ns + later_ns);
    watch_destroy(&watch);
    run_until(fixture, has_two_pins);
    assert_int_equal(fixture->pin.header.source, 1);
    assert_int_equal(fixture->pin.cause, PIN_STALLED_BETWEEN);
    assert_int_equal(fixture->pin.usual_ns, round_ns - active_ns + gap_ns);
    assert_int_equal(fixture->pin.found_ns, stall_ns + gap_ns);
    assert_true(fixture->pin.from_ns == stalled_ns - gap_ns - 1000000);
    assert_true(fixture->pin.to_ns == resumed_ns);
    assert_true(window_ring_held_from(fixture->meter.windows) > resumed_ns / WINDOW_NS);
    ask(fixture, fixture->pin.from_ns, fixture->pin.to_ns, 0);
    run_until(fixture, has_end);
    assert_int_equal(fixture->frames, 1000000 / gap_ns + 1 + stall_ns / gap_ns);
    assert_int_equal(fixture->windows, fixture->frames);
    assert_int_equal(fixture->end.flags, TRIGGER_END_PINNED);
    assert_true(fixture->end.from_ns == fixture->pin.from_ns && fixture->end.to_ns == fixture->pin.to_ns);
    assert_int_equal(fixture->loss.cause, 0);
}

/* An interval that ends before it begins, and a message that is no batch. */
static void test_requests_that_make_no_sense(void **state)
{
    struct fixture *fixture = *state;
    struct link *link = NULL;

    open_parts(fixture, 4u << 20);
    const struct link_options options = {.role = LINK_SEND, .url = fixture->control_url};
    assert_int_equal(link_open(&link, &options), 0);
    for (int i = 0; i < TRIES && link_send(link, "nonsense", 8) != 0; i++)
        usleep(1000);
    ask(fixture, 2000, 1000, 0);
    run_until(fixture, has_rejected);
    assert_int_equal(fixture->windows, 0);
    link_close(&link, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_and_totals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_windows_of_an_interval, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waits_for_the_interval, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_longer_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranked_and_capped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_less_than_one_flow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_flows_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranked_by_retransmission, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_tiers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_from_a_pin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_queue_pairs_are_handed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_is_asked_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stall_is_told_and_comes_back_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_requests_that_make_no_sense, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_publisher", tests, NULL, NULL);
}
