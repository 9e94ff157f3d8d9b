/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One time line, out of exchanges (sample.h), common machines (machine.h) and frames (causality.h). Invariant: a time
 * is mapped from an emitter's clock to its machine's, and from there over bands alone, each of which holds the truth.
 */
#include "correlator/intake/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/intake/causality.h"

static void take_pair(struct timeline_clock *clock, const struct record_clock_pair *record)
{
    if (record->monotonic_ns > TIMELINE_TIME_MAX || record->bound_ns > TIMELINE_TIME_MAX)
        return;
    *(struct clock_pair *)array_add(&clock->pairs) =
        (struct clock_pair){record->monotonic_ns, record->realtime_ns, record->tai_ns, record->bound_ns};
}

/* What a NIC side says of its time stamps last. */
static void take_source(struct timeline_clock *clock, const struct record_traffic_source *record)
{
    clock->kin.reads_late = (record->fields & SOURCE_PASSING_TIMES) == 0;
    clock->kin.bound_ns = record->stamp_bound_ns > TIMELINE_TIME_MAX ? 0 : record->stamp_bound_ns;
}

static void collect(struct timeline *timeline, const struct intake *intake, sample_list *samples)
{
    struct intake_walk walk = {.intake = intake, .skips_runs = true};
    union record record;
    struct sample sample;

    for (size_t i = 0; i < intake->streams.count; i++)
        array_add(&timeline->clocks);
    while (intake_next(&walk, &record)) {
        sample.clock = walk.stream;
        if (record.header.kind == RECORD_CLOCK_PAIR)
            take_pair(&timeline->clocks.items[walk.stream], &record.clock_pair);
        else if (record.header.kind == RECORD_TRAFFIC_SOURCE)
            take_source(&timeline->clocks.items[walk.stream], &record.traffic_source);
        else if (record.header.kind == RECORD_CLOCK_SAMPLE && sample_of(&record.clock_sample, &sample))
            *(struct sample *)array_add(samples) = sample;
    }
}

static void find_machines(struct timeline *timeline, const struct intake *intake)
{
    size_t count = timeline->clocks.count;
    struct clock_kin *kin = array_zeroed(count * sizeof *kin);
    clock_pair_list *pairs = array_zeroed(count * sizeof *pairs);

    for (size_t i = 0; i < count; i++)
        pairs[i] = timeline->clocks.items[i].pairs;
    size_t machines = machine_group(kin, intake, pairs);
    for (size_t i = 0; i < count; i++) {
        struct clock_kin *own = &timeline->clocks.items[i].kin;
        *own = (struct clock_kin){kin[i].machine, kin[i].delta_ns, kin[i].bound_ns + own->bound_ns, own->reads_late};
    }
    while (timeline->cluster.machines.count < machines)
        array_add(&timeline->cluster.machines);
    free(kin);
    free(pairs);
}

/* From emitters' clocks to their machines'. */
static void move_samples(struct timeline *timeline, sample_list *samples)
{
    for (size_t i = 0; i < samples->count; i++) {
        struct sample *sample = &samples->items[i];
        const struct clock_kin *kin = &timeline->clocks.items[sample->clock].kin;
        sample->clock = kin->machine;
        sample->limit.at_ns += (uint64_t)kin->delta_ns;
        sample->limit.low_ns -= kin->delta_ns + (int64_t)kin->bound_ns;
        sample->limit.high_ns -= kin->delta_ns - (int64_t)kin->bound_ns;
    }
}

static void count_samples(struct timeline *timeline, const sample_list *samples)
{
    for (size_t i = 0; i < samples->count; i++) {
        struct timeline_clock *clock = &timeline->clocks.items[samples->items[i].clock];
        clock->source = TIMELINE_EXCHANGE;
        clock->samples_count++;
    }
}

static void lay_bands(struct timeline *timeline, const sample_list *samples)
{
    for (size_t i = 0; i < timeline->cluster.machines.count; i++) {
        struct cluster_machine *machine = &timeline->cluster.machines.items[i];
        band_limit_list limits = {0};
        uint64_t floor_ns = sample_limits(&limits, samples, timeline->reference_boot, i);
        if (limits.count > 0) {
            band_build(&machine->band, &limits, floor_ns);
            machine->worst_ns = band_worst_ns(&machine->band);
            machine->known = true;
        }
        array_fini(&limits);
    }
}

/* A stream without exchanges of its own borrows its machine's; one with none that reach the reference has no clock. */
static void find_sources(struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->clocks.count; i++) {
        struct timeline_clock *clock = &timeline->clocks.items[i];
        if (!timeline->cluster.machines.items[clock->kin.machine].known)
            clock->source = TIMELINE_NONE;
        else if (clock->source == TIMELINE_NONE)
            clock->source = i == 0 && timeline->reference_boot == 0 ? TIMELINE_REFERENCE : TIMELINE_REALTIME;
    }
}

static void find_causality(struct timeline *timeline, const struct intake *intake)
{
    size_t count = timeline->clocks.count;
    struct clock_kin *kin = array_zeroed(count * sizeof *kin);

    for (size_t i = 0; i < count; i++)
        kin[i] = timeline->clocks.items[i].kin;
    causality_find(&timeline->cluster, intake, kin);
    cluster_lay(&timeline->cluster);
    free(kin);
}

struct timeline_time timeline_map(const struct timeline *timeline, size_t stream, uint64_t emitter_ns)
{
    const struct timeline_clock *clock = &timeline->clocks.items[stream];
    struct timeline_time time = {.ns = emitter_ns};

    if (emitter_ns == 0 || emitter_ns > TIMELINE_TIME_MAX)
        return (struct timeline_time){0};
    if (clock->source == TIMELINE_NONE)
        return time;
    struct cluster_time mapped =
        cluster_map(&timeline->cluster, clock->kin.machine, emitter_ns + (uint64_t)clock->kin.delta_ns);
    time.ns = mapped.ns;
    time.bound_ns = mapped.bound_ns + clock->kin.bound_ns;
    time.among_ns = mapped.among_ns + clock->kin.bound_ns;
    return time.ns > TIMELINE_TIME_MAX || time.bound_ns > TIMELINE_TIME_MAX ? (struct timeline_time){0} : time;
}

uint64_t timeline_unmap(const struct timeline *timeline, size_t stream, uint64_t reference_ns)
{
    const struct timeline_clock *clock = &timeline->clocks.items[stream];
    const struct band *band = &timeline->cluster.machines.items[clock->kin.machine].band;
    /* It begins at a time of the emitter's that can be mapped: the reference's own number may lie before its start. */
    uint64_t guess = clock->pairs.count != 0 ? clock->pairs.items[0].monotonic_ns : reference_ns;

    if (clock->source != TIMELINE_NONE && band->knots.count > 0)
        guess = band->knots.items[band->knots.count / 2].at_ns - (uint64_t)clock->kin.delta_ns;
    for (int round = 0; round < 4; round++)
        guess -= timeline_map(timeline, stream, guess).ns - reference_ns;
    return guess;
}

static void pair_realtime(struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->clocks.count && !timeline->realtime_known; i++) {
        const struct timeline_clock *clock = &timeline->clocks.items[i];
        if (clock->source == TIMELINE_NONE || clock->pairs.count == 0)
            continue;
        const struct clock_pair *pair = &clock->pairs.items[0];
        struct timeline_time time = timeline_map(timeline, i, pair->monotonic_ns);
        timeline->realtime_minus_reference_ns = (int64_t)(pair->realtime_ns - time.ns);
        timeline->realtime_known = true;
        timeline->tai_minus_reference_ns = (int64_t)(pair->tai_ns - time.ns);
        timeline->tai_known = pair->tai_ns > pair->realtime_ns + pair->bound_ns; /* unset, the kernel's are equal */
    }
}

static void take_worst(struct timeline *timeline, size_t stream, uint64_t machine_ns, bool framed)
{
    struct timeline_clock *clock = &timeline->clocks.items[stream];
    struct timeline_time time = timeline_map(timeline, stream, machine_ns - (uint64_t)clock->kin.delta_ns);

    if (time.bound_ns > clock->worst_bound_ns)
        clock->worst_bound_ns = time.bound_ns;
    if (framed && time.among_ns > clock->worst_among_ns)
        clock->worst_among_ns = time.among_ns;
}

/* The bounds at the exchanges; among the clocks of a cluster those of the time in which it saw frames. */
static void find_worst(struct timeline *timeline, size_t stream)
{
    size_t number = timeline->clocks.items[stream].kin.machine;
    const struct cluster_machine *machine = &timeline->cluster.machines.items[number];
    const struct cluster_edge *edge =
        machine->parent == CLUSTER_NONE ? NULL : &timeline->cluster.edges.items[machine->edge];

    for (size_t i = 0; i < machine->band.knots.count; i++)
        take_worst(timeline, stream, machine->band.knots.items[i].at_ns, edge == NULL);
    for (size_t i = 0; edge != NULL && i < edge->band.knots.count; i++) {
        const struct band_knot *knot = &edge->band.knots.items[i];
        take_worst(timeline, stream, edge->from == number ? knot->at_ns : knot->at_ns + (uint64_t)knot->offset_ns,
                   true);
    }
}

void timeline_build(struct timeline *timeline, const struct intake *intake)
{
    sample_list samples = {0};

    memset(timeline, 0, sizeof *timeline);
    collect(timeline, intake, &samples);
    find_machines(timeline, intake);
    count_samples(timeline, &samples);
    move_samples(timeline, &samples);
    timeline->reference_boot = sample_reference(&samples);
    sample_bridge(&samples, timeline->reference_boot);
    lay_bands(timeline, &samples);
    if (samples.count == 0 && timeline->clocks.count > 0)
        timeline->cluster.machines.items[0].known = true;
    array_fini(&samples);
    find_sources(timeline);
    find_causality(timeline, intake);
    for (size_t i = 0; i < timeline->clocks.count; i++)
        if (timeline->clocks.items[i].source != TIMELINE_NONE)
            find_worst(timeline, i);
    pair_realtime(timeline);
}

void timeline_fini(struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->clocks.count; i++)
        array_fini(&timeline->clocks.items[i].pairs);
    array_fini(&timeline->clocks);
    cluster_fini(&timeline->cluster);
}

uint64_t timeline_between(const struct timeline *timeline, size_t stream, size_t other)
{
    const struct timeline_clock *a = &timeline->clocks.items[stream];
    const struct timeline_clock *b = &timeline->clocks.items[other];
    const struct cluster_machine *machines = timeline->cluster.machines.items;
    uint64_t by_reference = a->worst_bound_ns + b->worst_bound_ns;
    uint64_t among = a->worst_among_ns + b->worst_among_ns;

    if (a->kin.machine == b->kin.machine)
        return a->kin.bound_ns + b->kin.bound_ns;
    bool together = machines[a->kin.machine].root == machines[b->kin.machine].root;
    return together && among < by_reference ? among : by_reference;
}

bool timeline_is_framed(const struct timeline *timeline, size_t stream)
{
    const struct cluster_machine *machine =
        &timeline->cluster.machines.items[timeline->clocks.items[stream].kin.machine];

    return timeline->clocks.items[stream].source != TIMELINE_NONE &&
           (machine->is_root || machine->parent != CLUSTER_NONE);
}

double timeline_rate(const struct timeline *timeline, size_t stream)
{
    return band_rate(&timeline->cluster.machines.items[timeline->clocks.items[stream].kin.machine].band);
}

size_t timeline_cuts(const struct timeline *timeline, size_t stream)
{
    return timeline->cluster.machines.items[timeline->clocks.items[stream].kin.machine].band.cuts_count;
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
