/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: series and places are sorted as evidence.h says, so that what concerns a link is found by halving. */
#include "correlator/verdict/evidence.h"

#include "correlator/naming/flow_event.h"

#define PART 4 /* a change and an interval belong together when they share this part of the shorter one */

const struct evidence_kind evidence_kinds[] = {
#define PORT_EVIDENCE(name, class, sides, weight, least, stalls)                                                       \
    {true, PORT_METRIC_##name, VERDICT_##class, (sides), (weight), (least), (stalls)},
#define FLOW_EVIDENCE(name, class, sides, weight, least, stalls)                                                       \
    {false, FLOW_METRIC_##name, VERDICT_##class, (sides), (weight), (least), (stalls)},
#include "correlator/verdict/evidence_kind.def"
#undef PORT_EVIDENCE
#undef FLOW_EVIDENCE
};
const size_t evidence_kinds_count = sizeof evidence_kinds / sizeof evidence_kinds[0];

size_t evidence_timeout_kind(void)
{
    size_t kind = 0;

    while (evidence_kinds[kind].of_port || evidence_kinds[kind].number != FLOW_METRIC_TIMEOUT_TIME)
        kind++;
    return kind;
}

const char *evidence_metric_name(const struct evidence_kind *kind)
{
    return kind->of_port ? port_metric_name(kind->number) : flow_metric_name((enum flow_metric)kind->number);
}

bool evidence_is_duration(const struct evidence_kind *kind)
{
    return kind->of_port ? port_metric_kind(kind->number) == PORT_METRIC_DURATION
                         : kind->number == FLOW_METRIC_TIMEOUT_TIME;
}

uint32_t evidence_needs(const struct evidence_kind *kind)
{
    return kind->of_port ? 0 : flow_metric_needs((enum flow_metric)kind->number);
}

void evidence_fini(struct evidence *evidence)
{
    array_fini(&evidence->changes);
    array_fini(&evidence->series);
    array_fini(&evidence->places);
    array_fini(&evidence->ports);
    array_fini(&evidence->sights);
    host_evidence_fini(&evidence->host);
    rails_fini(&evidence->rails);
}

uint32_t evidence_sight(const struct evidence *evidence, int32_t rank)
{
    return rank >= 0 && (size_t)rank < evidence->sights.count ? evidence->sights.items[rank] : 0;
}

static size_t first_place(const struct evidence *evidence, int32_t from, int32_t to)
{
    size_t low = 0, high = evidence->places.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct evidence_place *place = &evidence->places.items[middle];
        if (place->from < from || (place->from == from && place->to < to))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int series_order(const struct evidence_series *series, bool of_port, int32_t owner, uint8_t kind)
{
    if (series->of_port != of_port)
        return series->of_port < of_port ? -1 : 1;
    if (series->owner != owner)
        return series->owner < owner ? -1 : 1;
    return (series->kind > kind) - (series->kind < kind);
}

static size_t first_series(const struct evidence *evidence, bool of_port, int32_t owner, uint8_t kind)
{
    size_t low = 0, high = evidence->series.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (series_order(&evidence->series.items[middle], of_port, owner, kind) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct evidence_series *evidence_series_of(const struct evidence *evidence, bool of_port, int32_t owner,
                                                 uint8_t kind)
{
    size_t at = first_series(evidence, of_port, owner, kind);

    return at < evidence->series.count && series_order(&evidence->series.items[at], of_port, owner, kind) == 0
               ? &evidence->series.items[at]
               : NULL;
}

/* The time that both have in common. */
static uint64_t common_ns(const struct evidence_change *change, const struct evidence_span *span)
{
    uint64_t from = change->from_ns > span->from_ns ? change->from_ns : span->from_ns;
    uint64_t to = change->to_ns < span->to_ns ? change->to_ns : span->to_ns;

    return to > from ? to - from : 0;
}

static bool belongs(const struct evidence_change *change, const struct evidence_span *span)
{
    uint64_t change_ns = change->to_ns > change->from_ns ? change->to_ns - change->from_ns : 0;
    uint64_t span_ns = span->to_ns - span->from_ns;
    uint64_t shorter_ns = change_ns < span_ns ? change_ns : span_ns;

    return common_ns(change, span) > shorter_ns / PART;
}

/* A series' first change that ends after a time; its changes follow each other, so they end in order. */
static size_t first_change(const struct evidence *evidence, const struct evidence_series *series, uint64_t after_ns)
{
    size_t low = series->first, high = series->first + series->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (evidence->changes.items[middle].to_ns <= after_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * What of a change belongs to the span. Of a duration that part which the change's time has in common with it: nothing
 * says how it lay inside. What is counted in pieces belongs to it whole, or not at all.
 */
static uint64_t amount_within(const struct evidence_change *change, const struct evidence_span *span, bool is_duration)
{
    if (!is_duration)
        return belongs(change, span) ? change->amount : 0;
    double part = (double)common_ns(change, span) / (double)(change->to_ns - change->from_ns + 1);
    return (uint64_t)((double)change->amount * part);
}

/* What one series counted in the span. */
static struct verdict_evidence count_series(const struct evidence *evidence, const struct evidence_series *series,
                                            const struct evidence_span *span)
{
    const struct evidence_kind *kind = &evidence_kinds[series->kind];
    struct verdict_evidence sum = {
        .metric = evidence_metric_name(kind),
        .kind = series->kind,
        .source = series->of_port ? VERDICT_OF_PORT : VERDICT_OF_FLOW,
        .of_port = series->of_port,
        .is_duration = evidence_is_duration(kind),
        .rank = -1,
        .priority = series->priority,
        .owner = series->owner,
        .from_ns = span->from_ns,
        .to_ns = span->to_ns,
    };

    for (size_t i = first_change(evidence, series, span->from_ns); i < series->first + series->count; i++) {
        const struct evidence_change *change = &evidence->changes.items[i];
        if (change->from_ns >= span->to_ns)
            break;
        uint64_t amount = amount_within(change, span, sum.is_duration);
        if (amount == 0)
            continue;
        sum.first_row = sum.amount == 0 ? change->row : sum.first_row;
        sum.last_row = change->row;
        sum.amount += amount;
    }
    return sum;
}

struct counting {
    const struct evidence *evidence;
    size_t kind;
    const struct evidence_span *span;
    evidence_amounts best; /* of one vantage, or of one port and priority */
    uint64_t best_amount;
    evidence_amounts vantage;
    uint64_t vantage_amount;
};

/* Keeps the vantage that was summed up when it is the larger one. */
static void close_vantage(struct counting *counting)
{
    if (counting->vantage_amount > counting->best_amount) {
        evidence_amounts smaller = counting->best;
        counting->best = counting->vantage;
        counting->best_amount = counting->vantage_amount;
        counting->vantage = smaller;
    }
    counting->vantage.count = 0;
    counting->vantage_amount = 0;
}

static void count_place(struct counting *counting, const struct evidence_place *place)
{
    const struct evidence *evidence = counting->evidence;
    uint8_t kind = (uint8_t)counting->kind;

    for (size_t i = first_series(evidence, place->of_port, place->owner, kind);
         i < evidence->series.count &&
         series_order(&evidence->series.items[i], place->of_port, place->owner, kind) == 0;
         i++) {
        struct verdict_evidence sum = count_series(evidence, &evidence->series.items[i], counting->span);
        if (sum.amount == 0)
            continue;
        sum.side = place->side;
        *(struct verdict_evidence *)array_add(&counting->vantage) = sum;
        counting->vantage_amount += sum.amount;
        if (place->of_port)
            close_vantage(counting);
    }
}

uint64_t evidence_count(const struct evidence *evidence, size_t kind, const struct evidence_span *span,
                        evidence_amounts *amounts)
{
    const struct evidence_kind *of = &evidence_kinds[kind];
    struct counting counting = {.evidence = evidence, .kind = kind, .span = span};
    uint8_t vantage = 0;

    for (size_t i = first_place(evidence, span->from, span->to); i < evidence->places.count; i++) {
        const struct evidence_place *place = &evidence->places.items[i];
        if (place->from != span->from || place->to != span->to)
            break;
        if (place->of_port != of->of_port || (place->side & of->sides) == 0 ||
            (evidence_needs(of) & ~place->fields) != 0)
            continue;
        if (place->vantage != vantage)
            close_vantage(&counting);
        vantage = place->vantage;
        count_place(&counting, place);
    }
    close_vantage(&counting);
    for (size_t i = 0; amounts != NULL && i < counting.best.count; i++)
        *(struct verdict_evidence *)array_add(amounts) = counting.best.items[i];
    array_fini(&counting.best);
    array_fini(&counting.vantage);
    return counting.best_amount;
}
