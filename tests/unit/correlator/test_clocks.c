/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks with a known truth: many emitters, each with an offset, a drift and delays of its own, whose every time is
 * known. Counted: how often the true time lies within the bound that is printed with the mapped one.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/intake/cluster.h"
#include "correlator/intake/timeline.h"
#include "tests/unit/correlator/feed.h"
#include "wire/log.h"

#define SECOND  1000000000ULL
#define BASE    (100000 * SECOND)
#define LENGTH  (120 * SECOND)
#define ASKED   200 /* times that are mapped, of each emitter */
#define EMITTER 400

static uint64_t state;

static double even(void)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(state >> 11) / 9007199254740992.0;
}

static double among(double low, double high)
{
    return low + (high - low) * even();
}

struct truth {
    double offset_ns;
    double drift;
    double wander;  /* of the rate, over ten minutes */
    double jump_ns; /* forwards: it is set; backwards: it stands still for as long, from then on */
    uint64_t jump_at_ns;
    double there_ns, back_ns; /* the shortest ways */
    double tail;              /* share of trips that meet a queue */
    double lost;              /* share of exchanges without an answer */
};

/* The emitter's clock at a true time. */
static uint64_t emitter_ns(const struct truth *truth, uint64_t at_ns)
{
    double passed = (double)(at_ns - BASE);
    double turn = 2 * M_PI / 600e9;
    double own = truth->offset_ns + truth->drift * passed + truth->wander / turn * (1 - cos(turn * passed));

    if (at_ns >= truth->jump_at_ns)
        own += fmax(truth->jump_ns, -(double)(at_ns - truth->jump_at_ns));
    return at_ns + (uint64_t)(int64_t)own;
}

static bool sleeps(const struct truth *truth, uint64_t at_ns)
{
    return truth->jump_ns < 0 && at_ns >= truth->jump_at_ns && (double)(at_ns - truth->jump_at_ns) < -truth->jump_ns;
}

/* A tail without a mean: one trip in some hundred takes milliseconds. */
static uint64_t trip_ns(const struct truth *truth, double shortest_ns)
{
    double queue = -log(1 - even()) * shortest_ns / 4;

    if (even() < truth->tail)
        queue += 30000 / pow(1 - even(), 1.2);
    return (uint64_t)(shortest_ns + (queue < 40e6 ? queue : 40e6));
}

static void exchange(struct feed *feed, const struct truth *truth, uint64_t at_ns)
{
    uint64_t received = at_ns + trip_ns(truth, truth->there_ns);
    uint64_t replied = received + 700;
    struct record_clock_sample sample = {
        .reference_boot = 7,
        .sent_ns = emitter_ns(truth, at_ns),
        .received_ns = received,
        .replied_ns = replied,
        .returned_ns = emitter_ns(truth, replied + trip_ns(truth, truth->back_ns)),
    };

    feed_add(feed, RECORD_CLOCK_SAMPLE, &sample);
}

/* As wire/clock.c asks: often at first, then once a second. */
static void exchanges(struct feed *feed, const struct truth *truth)
{
    uint64_t done = 0;

    for (uint64_t at = BASE; at < BASE + LENGTH; done++) {
        if (even() >= truth->lost && !sleeps(truth, at))
            exchange(feed, truth, at);
        at += at < BASE + SECOND ? SECOND / 100 : done < 200 ? SECOND / 10 : SECOND;
        if (done % 100 == 99)
            feed_send(feed, at);
    }
    feed_send(feed, BASE + LENGTH);
}

static struct truth make_truth(void)
{
    return (struct truth){
        .offset_ns = among(-10e9, 10e9),
        .drift = among(-100e-6, 100e-6),
        .wander = among(-0.2e-6, 0.2e-6),
        .jump_at_ns = UINT64_MAX,
        .there_ns = pow(10, among(3.7, 5)),
        .back_ns = pow(10, among(3.7, 5)),
        .tail = among(0, 0.5),
        .lost = among(0, 0.4),
    };
}

struct outcome {
    uint64_t asked, outside, cuts;
    double ratio; /* of the bound to half the shortest way there and back: the sum over what was asked */
    uint64_t widest_ns;
    uint64_t contradictions;
};

static void take(struct outcome *outcome, const struct timeline *timeline, const struct truth *truth)
{
    double half = (truth->there_ns + truth->back_ns) / 2;

    for (unsigned i = 0; i < ASKED; i++) {
        uint64_t at = BASE + (uint64_t)(even() * (double)LENGTH);
        if (sleeps(truth, at))
            continue;
        struct timeline_time time = timeline_map(timeline, 0, emitter_ns(truth, at));
        uint64_t off = time.ns > at ? time.ns - at : at - time.ns;
        outcome->asked++;
        outcome->outside += off > time.bound_ns;
        outcome->ratio += (double)time.bound_ns / half;
        outcome->widest_ns = time.bound_ns > outcome->widest_ns ? time.bound_ns : outcome->widest_ns;
    }
}

static void run(struct outcome *outcome, const struct truth *truth)
{
    struct feed *feed = malloc(sizeof *feed);
    struct intake intake;
    struct timeline timeline;

    feed_init(feed, EMITTER_NIC, 1, 1, 0);
    exchanges(feed, truth);
    intake_init(&intake, 1u << 30);
    for (size_t i = 0; i < feed->count; i++)
        intake_add(&intake, feed->batches[i].bytes, feed->batches[i].length_bytes);
    timeline_build(&timeline, &intake);
    take(outcome, &timeline, truth);
    outcome->cuts += timeline_cuts(&timeline, 0);
    timeline_fini(&timeline);
    intake_fini(&intake);
    feed_fini(feed);
    free(feed);
}

static void say(const char *what, const struct outcome *outcome)
{
    print_message(
        "# %s: %llu of %llu times outside of their bound, which is %.2f times half the shortest round trip on "
        "average, %.3f ms at most; %llu cuts\n",
        what, (unsigned long long)outcome->outside, (unsigned long long)outcome->asked,
        outcome->ratio / (double)outcome->asked, (double)outcome->widest_ns / 1e6, (unsigned long long)outcome->cuts);
}

/* At most one in a thousand. */
static void assert_within(const struct outcome *outcome)
{
    assert_true(outcome->outside * 1000 <= outcome->asked);
}

static void offsets_drifts_and_delays(void **unused)
{
    struct outcome outcome = {0};

    (void)unused;
    for (unsigned i = 0; i < EMITTER; i++) {
        state = 1000 + i;
        struct truth truth = make_truth();
        run(&outcome, &truth);
    }
    say("steady clocks", &outcome);
    assert_within(&outcome);
    assert_int_equal(outcome.cuts, 0);
    assert_true(outcome.ratio < 2.0 * (double)outcome.asked);
}

/* Set forwards by 1 ms to 10 s, at any time. (CLOCK_MONOTONIC does not go back, but the reference may have slept.) */
static void clocks_that_are_set(void **unused)
{
    struct outcome outcome = {0};

    (void)unused;
    for (unsigned i = 0; i < EMITTER; i++) {
        state = 2000 + i;
        struct truth truth = make_truth();
        truth.jump_ns = pow(10, among(6, 10));
        truth.jump_at_ns = BASE + (uint64_t)among(0.1 * (double)LENGTH, 0.9 * (double)LENGTH);
        run(&outcome, &truth);
    }
    say("clocks that are set", &outcome);
    assert_within(&outcome);
    assert_in_range(outcome.cuts, EMITTER, EMITTER + EMITTER / 4);
}

/* The machine sleeps for 3 s to 60 s: CLOCK_MONOTONIC stands still meanwhile. */
static void machines_that_sleep(void **unused)
{
    struct outcome outcome = {0};

    (void)unused;
    for (unsigned i = 0; i < EMITTER; i++) {
        state = 3000 + i;
        struct truth truth = make_truth();
        truth.jump_ns = -among(3e9, 60e9);
        truth.jump_at_ns = BASE + (uint64_t)among(0.1 * (double)LENGTH, 0.4 * (double)LENGTH);
        run(&outcome, &truth);
    }
    say("machines that sleep", &outcome);
    assert_within(&outcome);
    assert_in_range(outcome.cuts, EMITTER, EMITTER + EMITTER / 4);
}

/* One flow as one of its ends sees it. */
static void add_flow(struct feed *feed, uint32_t flow, uint8_t from, uint8_t to, uint8_t vantage)
{
    struct record_flow record = {.flow = flow, .destination_qpn = 0x100u + to, .vantage = vantage, .port = 1};

    record.source[15] = from;
    record.destination[15] = to;
    feed_add(feed, RECORD_FLOW, &record);
}

static void add_message(struct feed *feed, uint32_t flow, const struct truth *truth, uint64_t at_ns, uint32_t place)
{
    struct record_message record = {.header.source = flow,
                                    .first_ns = emitter_ns(truth, at_ns),
                                    .duration_ns = 9000,
                                    .payload_bytes = 524288,
                                    .frames = 128,
                                    .place = place,
                                    .role = ROLE_DATA,
                                    .flags = MESSAGE_PLACED};

    feed_add(feed, RECORD_MESSAGE, &record);
}

/* 2 to 4 us on the way; a message in four meets a queue of up to a millisecond. */
static uint64_t way_ns(void)
{
    return (uint64_t)(among(2000, 4000) + (even() < 0.25 ? among(0, 1e6) : 0));
}

static uint64_t read_late_ns; /* every time of emitter 1's frames is so much late: it has those of reading */
static uint64_t unruly_ns;    /* or anything up to so much */
static struct record_traffic_source told; /* what both say of their times; kind 0: nothing */

static uint64_t stray_ns; /* by so much too late one burst is seen where it leaves */
#define STRAY_BURST 20

/* Every 100 ms a burst of 16 messages each way, 11 us apart; the first of each may be lost to either end. */
static void traffic(struct feed feeds[2], const struct truth truths[2])
{
    unsigned burst = 0;

    for (uint64_t at = BASE + 7; at < BASE + LENGTH; at += SECOND / 10) {
        for (unsigned from = 0; from < 2; from++) {
            uint64_t left = at + (uint64_t)among(0, 50e6);
            for (unsigned i = 0; i < 16; i++, left += 11000) {
                uint64_t stray = from == 0 && burst == STRAY_BURST ? stray_ns : 0;
                uint64_t late[2] = {unruly_ns == 0 ? read_late_ns : (uint64_t)among(0, (double)unruly_ns), 0};
                add_message(&feeds[from], 1 + from, &truths[from], left + stray + late[from], i % 8);
                add_message(&feeds[!from], 1 + from, &truths[!from], left + way_ns() + late[!from], i % 8);
            }
        }
        burst++;
        feed_send(&feeds[0], at);
        feed_send(&feeds[1], at);
    }
}

/* Emitters 1 and 2, each with both flows between them. */
static void make_two(struct feed feeds[2], struct intake *intake, const struct truth truths[2], bool exchange)
{
    for (unsigned i = 0; i < 2; i++) {
        feed_init(&feeds[i], EMITTER_NIC, i + 1, 1, 0);
        if (told.kind != 0)
            feed_add(&feeds[i], RECORD_TRAFFIC_SOURCE, &told);
        add_flow(&feeds[i], 1, 1, 2, i == 0 ? VANTAGE_TX : VANTAGE_RX);
        add_flow(&feeds[i], 2, 2, 1, i == 1 ? VANTAGE_TX : VANTAGE_RX);
        if (exchange)
            exchanges(&feeds[i], &truths[i]);
    }
    traffic(feeds, truths);
    intake_init(intake, 1u << 30);
    for (unsigned i = 0; i < 2; i++)
        for (size_t j = 0; j < feeds[i].count; j++)
            intake_add(intake, feeds[i].batches[j].bytes, feeds[i].batches[j].length_bytes);
}

/* Differences of times of two emitters: their error, their bound. */
static void take_differences(struct outcome *outcome, const struct timeline *timeline, const struct truth truths[2])
{
    for (unsigned i = 0; i < ASKED; i++) {
        uint64_t at = BASE + (uint64_t)(even() * (double)LENGTH);
        struct timeline_time one = timeline_map(timeline, 0, emitter_ns(&truths[0], at));
        struct timeline_time other = timeline_map(timeline, 1, emitter_ns(&truths[1], at));
        uint64_t off = one.ns > other.ns ? one.ns - other.ns : other.ns - one.ns;
        uint64_t bound = one.among_ns + other.among_ns;
        outcome->asked++;
        outcome->outside += off > bound || (one.ns > at ? one.ns - at : at - one.ns) > one.bound_ns;
        outcome->widest_ns = bound > outcome->widest_ns ? bound : outcome->widest_ns;
    }
}

/* Traffic seen at both ends: the bound of a difference is below 10 us, however slow the exchanges are. */
static void frames_seen_at_both_ends(void **unused)
{
    struct feed *feeds = malloc(2 * sizeof *feeds);
    struct outcome outcome = {0};

    (void)unused;
    for (unsigned i = 0; i < EMITTER / 10; i++) {
        state = 4000 + i;
        const struct truth truths[2] = {make_truth(), make_truth()};
        struct intake intake;
        struct timeline timeline;
        make_two(feeds, &intake, truths, true);
        timeline_build(&timeline, &intake);
        assert_int_equal(timeline.cluster.contradictions, 0);
        assert_in_range(timeline_between(&timeline, 0, 1), 1000, 10000);
        take_differences(&outcome, &timeline, truths);
        timeline_fini(&timeline);
        intake_fini(&intake);
        feed_fini(&feeds[0]);
        feed_fini(&feeds[1]);
    }
    say("frames seen at both ends (ratio not measured)", &outcome);
    assert_within(&outcome);
    assert_in_range(outcome.widest_ns, 1000, 10000);
    free(feeds);
}

/* Messages that seem to come in before they left: they are left out, and take nothing from the others. */
static void messages_that_come_before_they_left(void **unused)
{
    struct feed *feeds = malloc(2 * sizeof *feeds);
    struct outcome outcome = {0};
    struct intake intake;
    struct timeline timeline;
    const struct truth steady = {.jump_at_ns = UINT64_MAX, .there_ns = 20000, .back_ns = 20000};
    const struct truth truths[2] = {steady, steady};

    (void)unused;
    state = 6000;
    stray_ns = 40000;
    make_two(feeds, &intake, truths, true);
    stray_ns = 0;
    timeline_build(&timeline, &intake);
    assert_in_range(timeline_between(&timeline, 0, 1), 1000, 10000);
    take_differences(&outcome, &timeline, truths);
    assert_within(&outcome);
    assert_in_range(outcome.widest_ns, 1000, 10000);
    timeline_fini(&timeline);
    intake_fini(&intake);
    feed_fini(&feeds[0]);
    feed_fini(&feeds[1]);
    free(feeds);
}

/* Two clocks with little between them and exchanges of 40 us; the largest bound of a difference. */
static uint64_t bound_of_two(struct outcome *outcome)
{
    struct feed *feeds = malloc(2 * sizeof *feeds);
    struct intake intake;
    struct timeline timeline;
    const struct truth steady = {.jump_at_ns = UINT64_MAX, .there_ns = 20000, .back_ns = 20000};
    const struct truth truths[2] = {steady, steady};

    state = 7000;
    make_two(feeds, &intake, truths, true);
    timeline_build(&timeline, &intake);
    uint64_t bound_ns = timeline_between(&timeline, 0, 1);
    take_differences(outcome, &timeline, truths);
    outcome->contradictions += timeline.cluster.contradictions;
    timeline_fini(&timeline);
    intake_fini(&intake);
    feed_fini(&feeds[0]);
    feed_fini(&feeds[1]);
    free(feeds);
    return bound_ns;
}

/* A port whose frames have the time at which they were read: taken for when they left, it would put the clocks wrong.
 */
static void times_of_reading_limit_nothing(void **unused)
{
    struct outcome believed = {0}, outcome = {0};

    (void)unused;
    read_late_ns = 30000;
    bound_of_two(&believed);
    assert_true(believed.outside > believed.asked / 2);
    told = (struct record_traffic_source){.kind = TRAFFIC_SOURCE_DPDK, .fields = 0x3e7};
    assert_in_range(bound_of_two(&outcome), 30000, 100000);
    assert_within(&outcome);
    read_late_ns = 0;
    told.kind = 0;
}

/* Times that fit no two clocks: frames tie nothing then, which is said, and exchanges hold. */
static void times_that_fit_no_clock(void **unused)
{
    struct outcome outcome = {0};

    (void)unused;
    unruly_ns = 30000;
    assert_in_range(bound_of_two(&outcome), 30000, 100000);
    unruly_ns = 0;
    assert_within(&outcome);
    assert_int_equal(outcome.contradictions, 1);
}

/* What the ports say of their stamps is in the bound of times, and of differences twice. */
static void stamps_have_a_bound(void **unused)
{
    struct outcome outcome = {0};

    (void)unused;
    uint64_t exact_ns = bound_of_two(&outcome);
    told = (struct record_traffic_source){.kind = TRAFFIC_SOURCE_DPDK, .fields = 0xbe7, .stamp_bound_ns = 3000};
    assert_in_range(bound_of_two(&outcome), exact_ns + 6000, exact_ns + 13000);
    told.kind = 0;
}

static void add_limit(band_limit_list *limits, uint64_t at_ns, int64_t low_ns, int64_t high_ns)
{
    *(struct band_limit *)array_add(limits) = (struct band_limit){at_ns, low_ns, high_ns};
}

/* A clock that is known exactly stays so among those that frames tie to it, and they gain by it. */
static void a_known_clock_is_the_root(void **unused)
{
    const int64_t widths[3] = {10000, 1, 10000};
    struct cluster cluster = {0};

    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        band_limit_list own = {0}, between = {0};
        struct cluster_machine *machine = array_add(&cluster.machines);
        struct cluster_edge *edge = array_add(&cluster.edges);
        for (uint64_t j = 0; j < 100; j++) {
            add_limit(&own, j * SECOND / 10, -widths[i], widths[i]);
            add_limit(&between, j * SECOND / 10, -2000, 2000);
        }
        machine->known = true;
        band_build(&machine->band, &own, 0);
        machine->worst_ns = band_worst_ns(&machine->band);
        edge->from = i == 2 ? 0 : i;
        edge->to = i == 2 ? 2 : i + 1;
        band_build(&edge->band, &between, 0);
        array_fini(&own);
        array_fini(&between);
    }
    cluster_lay(&cluster);
    assert_in_range(cluster_map(&cluster, 1, SECOND).bound_ns, 1, 10);
    assert_in_range(cluster_map(&cluster, 0, SECOND).bound_ns, 1000, 2100);
    assert_in_range(cluster_map(&cluster, 2, SECOND).bound_ns, 1000, 2100);
    cluster_fini(&cluster);
}

/* Where frames tell nothing for a moment, exchanges still hold: 10 us here, at each of two machines. */
static void a_way_with_a_hole(void **unused)
{
    struct cluster cluster = {0};
    band_limit_list own = {0}, between = {0};

    (void)unused;
    for (uint64_t i = 0; i < 100; i++) {
        add_limit(&own, i * SECOND / 10, -10000, 10000);
        bool alone = i == 50;
        add_limit(&between, i * SECOND / 10, alone ? BAND_NO_LOW : -2000, alone ? -900000 : 2000);
    }
    for (size_t i = 0; i < 2; i++) {
        struct cluster_machine *machine = array_add(&cluster.machines);
        machine->known = true;
        band_build(&machine->band, &own, 0);
        machine->worst_ns = band_worst_ns(&machine->band);
    }
    struct cluster_edge *edge = array_add(&cluster.edges);
    edge->to = 1;
    band_build(&edge->band, &between, 0);
    cluster_lay(&cluster);
    for (uint64_t at = 0; at < 99 * SECOND / 10; at += SECOND / 50) {
        struct cluster_time time = cluster_map(&cluster, 1, at);
        assert_in_range(time.ns + 10100, at, at + 20200);
        assert_in_range(time.bound_ns, 1, 10100);
        assert_in_range(time.among_ns, 1, 20200);
    }
    cluster_fini(&cluster);
    array_fini(&own);
    array_fini(&between);
}

/* Exchanges whose answers lie by 1 ms: frames contradict them, which is told, and the bound is as wide as both. */
static void frames_that_contradict_exchanges(void **unused)
{
    struct feed *feeds = malloc(2 * sizeof *feeds);
    struct intake intake;
    struct timeline timeline;
    state = 5000;
    const struct truth truths[2] = {
        {.jump_at_ns = UINT64_MAX, .there_ns = 20000, .back_ns = 20000},
        {.offset_ns = 5e9, .jump_at_ns = UINT64_MAX, .there_ns = 20000, .back_ns = 20000},
    };
    struct truth lying = truths[1];

    (void)unused;
    lying.offset_ns += 1e6;
    make_two(feeds, &intake, truths, false);
    exchanges(&feeds[0], &truths[0]);
    exchanges(&feeds[1], &lying);
    for (unsigned i = 0; i < 2; i++)
        for (size_t j = 0; j < feeds[i].count; j++)
            intake_add(&intake, feeds[i].batches[j].bytes, feeds[i].batches[j].length_bytes);
    timeline_build(&timeline, &intake);
    assert_int_equal(timeline.cluster.contradictions, 1);
    assert_true(timeline_between(&timeline, 0, 1) > 500000);
    timeline_fini(&timeline);
    intake_fini(&intake);
    feed_fini(&feeds[0]);
    feed_fini(&feeds[1]);
    free(feeds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_drifts_and_delays),
        cmocka_unit_test(clocks_that_are_set),
        cmocka_unit_test(machines_that_sleep),
        cmocka_unit_test(frames_seen_at_both_ends),
        cmocka_unit_test(times_of_reading_limit_nothing),
        cmocka_unit_test(times_that_fit_no_clock),
        cmocka_unit_test(stamps_have_a_bound),
        cmocka_unit_test(a_known_clock_is_the_root),
        cmocka_unit_test(a_way_with_a_hole),
        cmocka_unit_test(messages_that_come_before_they_left),
        cmocka_unit_test(frames_that_contradict_exchanges),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("clocks", tests, NULL, NULL);
}
