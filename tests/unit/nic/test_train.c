/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame counts the same whether it was taken as one of a train or went the long way, which frames with a service
 * VLAN tag (0x88a8) do: two meters are given the same traffic but for that tag, and must agree in everything.
 */
#include "nic/meter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/nic/draft.h"

#define FLOWS          6
#define FRAMES         60000
#define BURST          48
#define AT_TAG         12
#define TAG_BYTES      4
#define AT_SOURCE_PORT (14 + TAG_BYTES + 20)
#define AT_BTH         (AT_SOURCE_PORT + 8)
#define WRITE_FIRST    0x06
#define WRITE_MIDDLE   0x07
#define WRITE_LAST     0x08

enum side { TRAINS, NO_TRAINS, SIDES };

struct sender {
    uint32_t psn;
    uint32_t left; /* frames of the message that are to come */
    uint32_t length;
    uint16_t source_port;
    uint8_t traffic_class;
};

struct fixture {
    struct tallies tallies[SIDES];
    struct meter meters[SIDES];
    struct sender senders[FLOWS];
    struct draft drafts[SIDES][BURST];
    struct source_frame seen[SIDES][BURST];
    size_t count;
    uint64_t at_ns;
    uint64_t random;
    unsigned trains[SIDES]; /* met, of several frames */
};

static int setup(void **state)
{
    static const struct meter_options options = {
        .window_ns = 8000, .flows_max = 64, .messages_max = 65536, .memory_bytes = 64u << 20};
    struct fixture *fixture = calloc(1, sizeof *fixture);

    *state = fixture;
    if (fixture == NULL)
        return -1;
    fixture->at_ns = 1000000000;
    for (uint32_t i = 0; i < FLOWS; i++)
        fixture->senders[i] = (struct sender){.psn = 0xfff000 + 700 * i, .source_port = 0xc000, .traffic_class = 0x6a};
    for (enum side side = 0; side < SIDES; side++)
        if (meter_init(&fixture->meters[side], &options, &fixture->tallies[side]) != 0)
            return -1;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    for (enum side side = 0; side < SIDES; side++)
        meter_fini(&fixture->meters[side]);
    free(fixture);
    return 0;
}

static uint32_t draw(struct fixture *fixture, uint32_t below)
{
    fixture->random = fixture->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(fixture->random >> 33) % below;
}

static bool is_rare(struct fixture *fixture)
{
    return draw(fixture, 40) == 0;
}

static void count_trains(struct fixture *fixture, enum side side)
{
    for (uint32_t number = 1; number <= flow_count(fixture->meters[side].flows); number++) {
        const struct flow *flow = flow_at(fixture->meters[side].flows, number);
        fixture->trains[side] +=
            flow->train.frames_before != 0 && flow->windows.sums.frames - flow->train.frames_before > 3;
    }
}

static void pass_burst(struct fixture *fixture)
{
    for (enum side side = 0; side < SIDES; side++) {
        meter_frames(&fixture->meters[side], fixture->seen[side], fixture->count);
        count_trains(fixture, side);
    }
    fixture->count = 0;
}

static void tag(struct draft *draft, enum side side)
{
    static const uint8_t tags[SIDES][TAG_BYTES] = {{0x81, 0, 0x60, 5}, {0x88, 0xa8, 0x60, 5}};

    memmove(draft->bytes + AT_TAG + TAG_BYTES, draft->bytes + AT_TAG, draft->length - AT_TAG);
    memcpy(draft->bytes + AT_TAG, tags[side], TAG_BYTES);
    draft->length += TAG_BYTES;
}

/* The frame to both sides, cut behind so many bytes. */
static void pass(struct fixture *fixture, const struct draft *draft, size_t kept_bytes)
{
    for (enum side side = 0; side < SIDES; side++) {
        struct draft *own = &fixture->drafts[side][fixture->count];
        *own = *draft;
        tag(own, side);
        fixture->seen[side][fixture->count] =
            (struct source_frame){.bytes = own->bytes,
                                  .captured_bytes = (uint32_t)(kept_bytes < own->length ? kept_bytes : own->length),
                                  .original_bytes = (uint32_t)own->length,
                                  .at_ns = fixture->at_ns,
                                  .port = 1};
    }
    if (++fixture->count == BURST)
        pass_burst(fixture);
}

/* Something that a frame of a train does not have. */
static void spoil(struct fixture *fixture, struct sender *sender, struct draft *draft)
{
    uint8_t *bth = draft->bytes + AT_BTH - TAG_BYTES;

    switch (draw(fixture, 10)) {
    case 0:
        bth[1] ^= 0x10; /* pad */
        break;
    case 1:
        bth[1] ^= 0x03; /* version */
        break;
    case 2:
        bth[0] ^= 1u << draw(fixture, 8);
        break;
    case 3:
        sender->traffic_class ^= 1; /* marked, or no longer */
        break;
    case 4:
        sender->source_port ^= 1;
        break;
    case 5:
        sender->psn += draw(fixture, 3); /* lost */
        break;
    case 6:
        sender->psn -= draw(fixture, 6); /* sent again */
        break;
    case 7:
        bth[-4] ^= 1u << draw(fixture, 8); /* UDP's length */
        break;
    case 8:
        bth[-3] -= 1 + draw(fixture, 4);
        break;
    default:
        sender->left = draw(fixture, 3);
    }
}

/* Time goes on, with a pause now and then, or backwards. */
static void pass_time(struct fixture *fixture)
{
    uint32_t what = draw(fixture, 2000);

    fixture->at_ns += draw(fixture, 900);
    if (what == 0)
        fixture->at_ns += 2000000;
    if (what == 1)
        fixture->at_ns -= 5000;
}

static void send_frame(struct fixture *fixture, uint8_t number)
{
    static const uint32_t lengths[] = {1, 2, 3, 9, 70, 5000};
    struct sender *sender = &fixture->senders[number];
    uint8_t reth[16];
    struct draft draft;

    if (sender->left == 0)
        sender->length = sender->left = lengths[draw(fixture, 6)];
    bool is_first = sender->left == sender->length;
    struct draft_frame frame = {.source = (uint8_t)(number + 1),
                                .destination = 200,
                                .opcode = is_first            ? WRITE_FIRST
                                          : sender->left == 1 ? WRITE_LAST
                                                              : WRITE_MIDDLE,
                                .qpn = number,
                                .psn = sender->psn & 0xffffff,
                                .payload_bytes = 256,
                                .traffic_class = sender->traffic_class};
    if (is_first) {
        draft_reth(reth, 0x1000u * number, 256 * sender->length);
        frame.extensions = reth;
        frame.extensions_bytes = sizeof reth;
    }
    draft_roce(&draft, &frame);
    draft.bytes[AT_SOURCE_PORT - TAG_BYTES] = (uint8_t)(sender->source_port >> 8);
    draft.bytes[AT_SOURCE_PORT - TAG_BYTES + 1] = (uint8_t)sender->source_port;
    sender->psn++;
    sender->left--;
    if (is_rare(fixture))
        spoil(fixture, sender, &draft);
    pass(fixture, &draft, is_rare(fixture) ? draw(fixture, 90) : SIZE_MAX);
}

/* An acknowledgement, or a NAK, after which some is sent again; the last flows have no others, and so no pair. */
static void send_answer(struct fixture *fixture, uint8_t number)
{
    bool is_nak = draw(fixture, 4) == 0 || number >= FLOWS - 2;
    const uint8_t aeth[4] = {is_nak ? 0x60 : 0};
    const struct draft_frame frame = {.source = 200,
                                      .destination = (uint8_t)(number + 1),
                                      .opcode = 0x11,
                                      .qpn = 100u + number,
                                      .psn = (fixture->senders[number].psn - 1) & 0xffffff,
                                      .extensions = aeth,
                                      .extensions_bytes = sizeof aeth};
    struct draft draft;

    draft_roce(&draft, &frame);
    pass(fixture, &draft, SIZE_MAX);
    if (is_nak && draw(fixture, 2) == 0)
        fixture->senders[number].psn -= 1 + draw(fixture, 2);
}

static void compare_totals(struct fixture *fixture)
{
    uint32_t flows = flow_count(fixture->meters[TRAINS].flows);

    assert_int_equal(flow_count(fixture->meters[NO_TRAINS].flows), flows);
    for (uint32_t number = 1; number <= flows; number++) {
        struct record_flow_total totals[SIDES];
        for (enum side side = 0; side < SIDES; side++)
            flow_total_record(fixture->meters[side].flows, flow_at(fixture->meters[side].flows, number), &totals[side]);
        assert_memory_equal(&totals[TRAINS], &totals[NO_TRAINS], sizeof totals[0]);
    }
    assert_memory_equal(&fixture->tallies[TRAINS], &fixture->tallies[NO_TRAINS], sizeof fixture->tallies[0]);
}

static void compare_messages(struct fixture *fixture)
{
    struct record_message messages[SIDES];

    while (message_take(fixture->meters[TRAINS].messages, &messages[TRAINS])) {
        assert_true(message_take(fixture->meters[NO_TRAINS].messages, &messages[NO_TRAINS]));
        assert_memory_equal(&messages[TRAINS], &messages[NO_TRAINS], sizeof messages[0]);
    }
    assert_false(message_take(fixture->meters[NO_TRAINS].messages, &messages[NO_TRAINS]));
}

static void compare_windows(struct fixture *fixture, unsigned tier)
{
    struct window_walk walks[SIDES];
    struct record_window windows[SIDES];
    bool done[SIDES] = {false};

    for (enum side side = 0; side < SIDES; side++)
        window_walk_begin(fixture->meters[side].tiers.rings[tier], &walks[side], 0, UINT64_MAX, 0);
    while (!done[TRAINS]) {
        size_t counts[SIDES];
        for (enum side side = 0; side < SIDES; side++)
            counts[side] = window_walk_next(fixture->meters[side].tiers.rings[tier], &walks[side], &windows[side], 1,
                                            SIZE_MAX, &done[side]);
        assert_int_equal(counts[TRAINS], counts[NO_TRAINS]);
        if (counts[TRAINS] != 0)
            assert_memory_equal(&windows[TRAINS], &windows[NO_TRAINS], sizeof windows[0]);
    }
}

static void test_the_same_both_ways(void **state)
{
    struct fixture *fixture = *state;

    for (unsigned i = 0; i < FRAMES; i++) {
        uint8_t number = (uint8_t)draw(fixture, FLOWS);
        pass_time(fixture);
        if (is_rare(fixture))
            send_answer(fixture, number);
        else
            send_frame(fixture, number);
        if (draw(fixture, 1000) == 0)
            pass_burst(fixture);
        if (draw(fixture, 5000) == 0)
            compare_totals(fixture);
        if (draw(fixture, 5000) == 0)
            for (enum side side = 0; side < SIDES; side++)
                meter_settle(&fixture->meters[side], fixture->at_ns, fixture->at_ns - 1000000);
    }
    pass_burst(fixture);
    for (enum side side = 0; side < SIDES; side++)
        meter_settle(&fixture->meters[side], UINT64_MAX, UINT64_MAX);
    assert_true(fixture->trains[TRAINS] > 1000);
    assert_int_equal(fixture->trains[NO_TRAINS], 0);
    compare_totals(fixture);
    compare_messages(fixture);
    for (unsigned tier = 0; tier < TIER_RINGS_COUNT; tier++)
        compare_windows(fixture, tier);
}

/* Half of all PSNs pass in one message; then what was just seen comes again. */
static void test_a_train_over_half_of_all_numbers(void **state)
{
    enum { PSNS = (1 << 23) + 5000 };
    struct fixture *fixture = *state;
    struct draft draft;
    struct record_flow_total total;
    struct draft_frame frame = {.source = 1, .destination = 2, .qpn = 7, .payload_bytes = 4};
    struct source_frame *seen = fixture->seen[TRAINS];

    draft_roce(&draft, &frame);
    for (uint32_t i = 0; i <= PSNS; i++) {
        uint32_t psn = i < PSNS ? i : PSNS - 2;
        uint8_t *bth = draft.bytes + AT_BTH - TAG_BYTES;
        bth[0] = i != 0;
        for (unsigned byte = 0; byte < 3; byte++)
            bth[9 + byte] = (uint8_t)(psn >> (16 - 8 * byte));
        fixture->at_ns += 100;
        *seen = (struct source_frame){.bytes = draft.bytes,
                                      .captured_bytes = (uint32_t)draft.length,
                                      .original_bytes = (uint32_t)draft.length,
                                      .at_ns = fixture->at_ns,
                                      .port = 1};
        meter_frames(&fixture->meters[TRAINS], seen, 1);
    }
    struct flow_table *flows = fixture->meters[TRAINS].flows;
    flow_total_record(flows, flow_at(flows, 1), &total);
    assert_int_equal(total.data_frames, PSNS + 1);
    assert_int_equal(total.repeated_frames, 1);
    assert_int_equal(total.covered_psns, PSNS);
    assert_int_equal(total.late_frames, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_same_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_train_over_half_of_all_numbers, setup, teardown),
    };
    return cmocka_run_group_tests_name("nic_train", tests, NULL, NULL);
}
