/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One time line. Four-time-stamp exchanges as in NTP (RFC 5905, section 8): offset ((received - sent) + (replied -
 * returned)) / 2, its error at most half of the round trip. Of each while only the shortest round trip is kept; a line
 * is laid through those. Invariant: at each kept sample the true offset differs from the line by no more than the
 * sample's distance from the line plus half its round trip, and so, for a steady clock, it does between two of them.
 */
#include "correlator/intake/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WHILE_NS      1000000000ULL /* one sample is kept of each */
#define DRIFT_UNKNOWN 2e-4          /* beyond any crystal; used where a single sample says nothing of the rate */
#define BOUND_POINTS  32            /* a clock's rate is taken as constant over so many kept samples */
#define LINE_TIMES    4 /* samples with more than so many times the smallest half round trip say nothing of the rate */
#define LINE_SAMPLES  4 /* below this the offset is taken as constant */

struct tally { /* exchanges a reference boot answered */
    uint64_t boot;
    uint64_t count;
};
typedef ARRAY(struct tally) tally_list;

struct sample {
    size_t stream;
    uint64_t boot;
    struct timeline_point point;
};
typedef ARRAY(struct sample) sample_list;

static bool sample_of(const struct record_clock_sample *record, struct sample *sample)
{
    if (record->returned_ns < record->sent_ns || record->replied_ns < record->received_ns)
        return false;
    uint64_t away = record->returned_ns - record->sent_ns;
    uint64_t held = record->replied_ns - record->received_ns;
    bool damaged = record->returned_ns > TIMELINE_TIME_MAX || record->replied_ns > TIMELINE_TIME_MAX;
    if (held > away || damaged)
        return false;
    int64_t there = (int64_t)(record->received_ns - record->sent_ns);
    int64_t back = (int64_t)(record->replied_ns - record->returned_ns);
    sample->boot = record->reference_boot;
    sample->point.at_ns = record->sent_ns + away / 2;
    sample->point.offset_ns = there / 2 + back / 2;
    sample->point.half_ns = (away - held) / 2 + 2; /* 2: what the divisions cut off */
    return true;
}

static void collect(struct timeline *timeline, const struct intake *intake, sample_list *samples)
{
    struct intake_walk walk = {.intake = intake};
    union record record;
    struct sample sample;

    for (size_t i = 0; i < intake->streams.count; i++)
        array_add(&timeline->clocks);
    while (intake_next(&walk, &record)) {
        struct timeline_clock *clock = &timeline->clocks.items[walk.stream];
        if (record.header.kind == RECORD_CLOCK_PAIR) {
            struct timeline_pair *pair = array_add(&clock->pairs);
            pair->monotonic_ns = record.clock_pair.monotonic_ns;
            pair->realtime_ns = record.clock_pair.realtime_ns;
            pair->bound_ns = record.clock_pair.bound_ns;
        } else if (record.header.kind == RECORD_CLOCK_SAMPLE && sample_of(&record.clock_sample, &sample)) {
            sample.stream = walk.stream;
            *(struct sample *)array_add(samples) = sample;
        }
    }
}

static uint64_t choose_reference(const sample_list *samples)
{
    tally_list tallies = {0};
    uint64_t best = 0;
    uint64_t most = 0;

    for (size_t i = 0; i < samples->count; i++) {
        size_t at = 0;
        while (at < tallies.count && tallies.items[at].boot != samples->items[i].boot)
            at++;
        if (at == tallies.count)
            ((struct tally *)array_add(&tallies))->boot = samples->items[i].boot;
        tallies.items[at].count++;
    }
    for (size_t i = 0; i < tallies.count; i++) {
        const struct tally *tally = &tallies.items[i];
        if (tally->count > most || (tally->count == most && tally->boot < best)) {
            most = tally->count;
            best = tally->boot;
        }
    }
    array_fini(&tallies);
    return best;
}

static int by_time(const void *a, const void *b)
{
    uint64_t left = ((const struct timeline_point *)a)->at_ns;
    uint64_t right = ((const struct timeline_point *)b)->at_ns;
    return (left > right) - (left < right);
}

/* The shortest round trips of one stream with one reference boot, one of each while. */
static void keep_best(struct timeline_clock *clock, const sample_list *samples, size_t stream, uint64_t boot)
{
    clock->points.count = 0;
    clock->samples_count = 0;
    for (size_t i = 0; i < samples->count; i++) {
        const struct sample *sample = &samples->items[i];
        if (sample->stream != stream || sample->boot != boot)
            continue;
        clock->samples_count++;
        struct timeline_point *last = clock->points.count == 0 ? NULL : &clock->points.items[clock->points.count - 1];
        if (last == NULL || last->at_ns / WHILE_NS != sample->point.at_ns / WHILE_NS)
            *(struct timeline_point *)array_add(&clock->points) = sample->point;
        else if (sample->point.half_ns < last->half_ns)
            *last = sample->point;
    }
    array_sort(&clock->points, by_time);
}

/* Weighted least squares, the weights falling with the square of the round trip. */
static void fit_line(struct timeline_clock *clock)
{
    const struct timeline_point *points = clock->points.items;
    size_t count = clock->points.count;
    double weights = 0, x = 0, y = 0, xx = 0, xy = 0;
    size_t good = 0;
    uint64_t smallest = UINT64_MAX;

    clock->middle_ns = points[0].at_ns + (points[count - 1].at_ns - points[0].at_ns) / 2;
    int64_t base = points[0].offset_ns;
    for (size_t i = 0; i < count; i++)
        smallest = points[i].half_ns < smallest ? points[i].half_ns : smallest;
    for (size_t i = 0; i < count; i++) {
        if (points[i].half_ns > LINE_TIMES * smallest)
            continue;
        good++;
        double weight = 1.0 / ((double)points[i].half_ns * (double)points[i].half_ns);
        double dx = (double)(int64_t)(points[i].at_ns - clock->middle_ns);
        double dy = (double)(points[i].offset_ns - base);
        weights += weight;
        x += weight * dx;
        y += weight * dy;
        xx += weight * dx * dx;
        xy += weight * dx * dy;
    }
    double spread = weights * xx - x * x;
    clock->slope = good >= LINE_SAMPLES && spread > 0 ? (weights * xy - x * y) / spread : 0;
    clock->offset_ns = base + (int64_t)((y - clock->slope * x) / weights);
}

static int64_t line_offset(const struct timeline_clock *clock, uint64_t at_ns)
{
    return clock->offset_ns + (int64_t)(clock->slope * (double)(int64_t)(at_ns - clock->middle_ns));
}

static uint64_t point_error(const struct timeline_clock *clock, const struct timeline_point *point)
{
    return (uint64_t)llabs(point->offset_ns - line_offset(clock, point->at_ns)) + point->half_ns;
}

/*
 * How far the line may be off at `at_ns`, after two points: two lines that pass both points within their errors part by
 * no more than this, between the points and beyond them.
 */
static uint64_t pair_bound(const struct timeline_clock *clock, size_t low, size_t high, uint64_t at_ns)
{
    const struct timeline_point *first = &clock->points.items[low];
    const struct timeline_point *last = &clock->points.items[high];
    double span = (double)(last->at_ns - first->at_ns);
    double low_error = (double)point_error(clock, first);
    double high_error = (double)point_error(clock, last);
    double place = (double)(int64_t)(at_ns - first->at_ns) / span;

    return (uint64_t)(fabs(1 - place) * low_error + fabs(place) * high_error) + 1;
}

/* The tightest bound that any two of the kept samples around a point give, its own included. */
static uint64_t bound_at(const struct timeline_clock *clock, size_t index)
{
    uint64_t at_ns = clock->points.items[index].at_ns;
    uint64_t best = point_error(clock, &clock->points.items[index]);
    size_t from = index < BOUND_POINTS ? 0 : index - BOUND_POINTS;
    size_t to = index + BOUND_POINTS < clock->points.count ? index + BOUND_POINTS : clock->points.count;

    for (size_t low = from; low < to; low++)
        for (size_t high = low + 1; high < to; high++) {
            uint64_t bound = pair_bound(clock, low, high, at_ns);
            best = bound < best ? bound : best;
        }
    return best;
}

static void find_bounds(struct timeline_clock *clock)
{
    for (size_t i = 0; i < clock->points.count; i++)
        clock->points.items[i].bound_ns = bound_at(clock, i);
}

/* Beyond the first or last point the rate is known no better than from the whole span. */
static uint64_t beyond(const struct timeline_clock *clock, size_t end, uint64_t away_ns)
{
    const struct timeline_point *first = &clock->points.items[0];
    const struct timeline_point *last = &clock->points.items[clock->points.count - 1];
    double rate = DRIFT_UNKNOWN;

    if (last->at_ns > first->at_ns) {
        double known = (double)(first->bound_ns + last->bound_ns) / (double)(last->at_ns - first->at_ns);
        rate = known < rate ? known : rate;
    }
    return clock->points.items[end].bound_ns + (uint64_t)(rate * (double)away_ns);
}

static uint64_t line_bound(const struct timeline_clock *clock, uint64_t at_ns)
{
    const struct timeline_point *points = clock->points.items;
    size_t low = 0;
    size_t high = clock->points.count - 1;

    if (at_ns <= points[0].at_ns)
        return beyond(clock, 0, points[0].at_ns - at_ns);
    if (at_ns >= points[high].at_ns)
        return beyond(clock, high, at_ns - points[high].at_ns);
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (points[middle].at_ns <= at_ns)
            low = middle;
        else
            high = middle;
    }
    return points[low].bound_ns > points[high].bound_ns ? points[low].bound_ns : points[high].bound_ns;
}

/* A stream that has exchanges with `boot` only: find a stream that has them with both, and shift by the difference. */
static bool bridge(struct timeline *timeline, const sample_list *samples, size_t stream, uint64_t boot)
{
    for (size_t i = 0; i < timeline->clocks.count; i++) {
        struct timeline_clock *known = &timeline->clocks.items[i];
        struct timeline_clock other = {0};
        if (known->source != TIMELINE_EXCHANGE || known->shift_bound_ns != 0)
            continue;
        keep_best(&other, samples, i, boot);
        if (other.points.count > 0) {
            fit_line(&other);
            find_bounds(&other);
            struct timeline_clock *clock = &timeline->clocks.items[stream];
            uint64_t at = other.middle_ns;
            clock->shift_ns = line_offset(known, at) - line_offset(&other, at);
            clock->shift_bound_ns = line_bound(known, at) + line_bound(&other, at);
        }
        bool found = other.points.count > 0;
        array_fini(&other.points);
        if (found)
            return true;
    }
    return false;
}

static void take_exchanges(struct timeline *timeline, const sample_list *samples)
{
    for (size_t i = 0; i < timeline->clocks.count; i++) {
        struct timeline_clock *clock = &timeline->clocks.items[i];
        keep_best(clock, samples, i, timeline->reference_boot);
        if (clock->points.count > 0) {
            fit_line(clock);
            find_bounds(clock);
            clock->source = TIMELINE_EXCHANGE;
        }
    }
    for (size_t i = 0; i < samples->count; i++) {
        size_t stream = samples->items[i].stream;
        uint64_t boot = samples->items[i].boot;
        struct timeline_clock *clock = &timeline->clocks.items[stream];
        if (clock->source != TIMELINE_NONE || !bridge(timeline, samples, stream, boot))
            continue;
        keep_best(clock, samples, stream, boot);
        fit_line(clock);
        find_bounds(clock);
        clock->source = TIMELINE_EXCHANGE;
    }
}

static bool same_machine(const struct intake_stream *a, const struct intake_stream *b)
{
    static const uint8_t none[16];
    return a->greeted && b->greeted && memcmp(a->hello.kernel_boot, none, sizeof none) != 0 &&
           memcmp(a->hello.kernel_boot, b->hello.kernel_boot, sizeof none) == 0;
}

static void borrow(struct timeline *timeline, const struct intake *intake)
{
    for (size_t i = 0; i < timeline->clocks.count; i++) {
        struct timeline_clock *clock = &timeline->clocks.items[i];
        for (size_t j = 0; clock->source == TIMELINE_NONE && j < timeline->clocks.count; j++) {
            const struct timeline_clock *lender = &timeline->clocks.items[j];
            bool firm = lender->source == TIMELINE_EXCHANGE || lender->source == TIMELINE_REFERENCE;
            if (!firm || clock->pairs.count == 0 || lender->pairs.count == 0 ||
                !same_machine(&intake->streams.items[i], &intake->streams.items[j]))
                continue;
            clock->source = TIMELINE_REALTIME;
            clock->lender = j;
        }
    }
}

static const struct timeline_pair *nearest_pair(const struct timeline_clock *clock, uint64_t ns, bool by_realtime)
{
    const struct timeline_pair *best = NULL;
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < clock->pairs.count; i++) {
        const struct timeline_pair *pair = &clock->pairs.items[i];
        uint64_t have = by_realtime ? pair->realtime_ns : pair->monotonic_ns;
        uint64_t away = have > ns ? have - ns : ns - have;
        if (away < least) {
            least = away;
            best = pair;
        }
    }
    return best;
}

static struct timeline_time map_own(const struct timeline_clock *clock, uint64_t emitter_ns)
{
    struct timeline_time time = {.ns = emitter_ns};

    if (clock->source != TIMELINE_EXCHANGE)
        return time;
    time.ns = emitter_ns + (uint64_t)(line_offset(clock, emitter_ns) + clock->shift_ns);
    time.bound_ns = line_bound(clock, emitter_ns) + clock->shift_bound_ns;
    return time;
}

static struct timeline_time map_borrowed(const struct timeline *timeline, const struct timeline_clock *clock,
                                         uint64_t emitter_ns)
{
    const struct timeline_clock *lender = &timeline->clocks.items[clock->lender];
    const struct timeline_pair *own = nearest_pair(clock, emitter_ns, false);
    uint64_t realtime = own->realtime_ns + (emitter_ns - own->monotonic_ns);
    const struct timeline_pair *theirs = nearest_pair(lender, realtime, true);
    struct timeline_time time = map_own(lender, theirs->monotonic_ns + (realtime - theirs->realtime_ns));
    time.bound_ns += own->bound_ns + theirs->bound_ns;
    return time;
}

struct timeline_time timeline_map(const struct timeline *timeline, size_t stream, uint64_t emitter_ns)
{
    const struct timeline_clock *clock = &timeline->clocks.items[stream];
    struct timeline_time time = {0};

    if (emitter_ns == 0 || emitter_ns > TIMELINE_TIME_MAX)
        return time;
    time = clock->source == TIMELINE_REALTIME ? map_borrowed(timeline, clock, emitter_ns) : map_own(clock, emitter_ns);
    return time.ns > TIMELINE_TIME_MAX || time.bound_ns > TIMELINE_TIME_MAX ? (struct timeline_time){0} : time;
}

uint64_t timeline_unmap(const struct timeline *timeline, size_t stream, uint64_t reference_ns)
{
    const struct timeline_clock *clock = &timeline->clocks.items[stream];
    /* It begins at a time of the emitter's that can be mapped: the reference's own number may lie before its start. */
    uint64_t guess = clock->pairs.count != 0 ? clock->pairs.items[0].monotonic_ns : reference_ns;

    if (clock->source == TIMELINE_EXCHANGE)
        guess = clock->middle_ns;
    for (int round = 0; round < 3; round++)
        guess -= timeline_map(timeline, stream, guess).ns - reference_ns;
    return guess;
}

static void pair_realtime(struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->clocks.count && !timeline->realtime_known; i++) {
        const struct timeline_clock *clock = &timeline->clocks.items[i];
        if (clock->source == TIMELINE_NONE || clock->pairs.count == 0)
            continue;
        const struct timeline_pair *pair = &clock->pairs.items[0];
        struct timeline_time time = timeline_map(timeline, i, pair->monotonic_ns);
        timeline->realtime_minus_reference_ns = (int64_t)(pair->realtime_ns - time.ns);
        timeline->realtime_known = true;
    }
}

static void find_worst(struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->clocks.count; i++) {
        struct timeline_clock *clock = &timeline->clocks.items[i];
        for (size_t j = 0; j < clock->points.count; j++) {
            uint64_t error = clock->points.items[j].bound_ns + clock->shift_bound_ns;
            if (error > clock->worst_bound_ns)
                clock->worst_bound_ns = error;
        }
        for (size_t j = 0; clock->source == TIMELINE_REALTIME && j < clock->pairs.count; j++) {
            uint64_t error = timeline_map(timeline, i, clock->pairs.items[j].monotonic_ns).bound_ns;
            if (error > clock->worst_bound_ns)
                clock->worst_bound_ns = error;
        }
    }
}

void timeline_build(struct timeline *timeline, const struct intake *intake)
{
    sample_list samples = {0};

    memset(timeline, 0, sizeof *timeline);
    collect(timeline, intake, &samples);
    timeline->reference_boot = choose_reference(&samples);
    if (samples.count > 0)
        take_exchanges(timeline, &samples);
    else if (timeline->clocks.count > 0)
        timeline->clocks.items[0].source = TIMELINE_REFERENCE;
    borrow(timeline, intake);
    pair_realtime(timeline);
    find_worst(timeline);
    array_fini(&samples);
}

void timeline_fini(struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->clocks.count; i++) {
        array_fini(&timeline->clocks.items[i].points);
        array_fini(&timeline->clocks.items[i].pairs);
    }
    array_fini(&timeline->clocks);
}

const char *timeline_source_name(enum timeline_source source)
{
    switch (source) {
    case TIMELINE_REFERENCE:
    case TIMELINE_EXCHANGE:
        return "exchange";
    case TIMELINE_REALTIME:
        return "realtime";
    case TIMELINE_NONE:
        break;
    }
    return "none";
}
