/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A band of offsets. Any two limits confine the rate; the rate and all limits of a window confine the offset at each of
 * its limits. Invariant: a clock that keeps to band.h's terms lies within the bound at each time. Limits that no rate
 * fits to the run before them begin a new run; across such a cut the offset is that of either side, or in between.
 */
#include "correlator/intake/band.h"

#include <math.h>
#include <stdlib.h>

#define WINDOW 16 /* limits on each side that speak for one */
#define STRIDE 8  /* the rate is taken from so many times as many, too */

#define WHILES     64   /* a short time has so many */
#define WHILES_MAX 4096 /* a long time has no more */

struct range { /* of the rate */
    double least;
    double most;
};

struct interval { /* of the offset */
    double low;
    double high;
};

static double span(const struct band_limit *from, const struct band_limit *to)
{
    return (double)(int64_t)(to->at_ns - from->at_ns);
}

/* The rates that some line through all limits of items[from..to] has, of which it looks at each `stride`th. */
static struct range rate_range(const band_limit_list *limits, size_t from, size_t to, size_t stride)
{
    struct range range = {-BAND_RATE, BAND_RATE};

    for (size_t i = from; i < to; i += stride)
        for (size_t j = i + stride; j <= to; j += stride) {
            const struct band_limit *a = &limits->items[i];
            const struct band_limit *b = &limits->items[j];
            range.least = fmax(range.least, (double)(b->low_ns - a->high_ns) / span(a, b));
            range.most = fmin(range.most, (double)(b->high_ns - a->low_ns) / span(a, b));
        }
    range.least = fmax(range.least - BAND_WANDER, -BAND_RATE);
    range.most = fmin(range.most + BAND_WANDER, BAND_RATE);
    return range;
}

static int64_t base_ns(const struct band_limit *limit)
{
    return limit->low_ns == BAND_NO_LOW ? limit->high_ns : limit->low_ns;
}

/* What the limits of items[from..to] allow at `at`, when the rate is in `range`: more than its base. */
static struct interval allowed_at(const band_limit_list *limits, size_t from, size_t to, struct range range,
                                  const struct band_limit *at)
{
    struct interval allowed = {-INFINITY, INFINITY};

    for (size_t i = from; i <= to; i++) {
        const struct band_limit *limit = &limits->items[i];
        double away = span(limit, at);
        double low = away < 0 ? range.most : range.least;
        double high = away < 0 ? range.least : range.most;
        allowed.low = fmax(allowed.low, (double)(limit->low_ns - base_ns(at)) + low * away);
        allowed.high = fmin(allowed.high, (double)(limit->high_ns - base_ns(at)) + high * away);
    }
    return allowed;
}

struct window { /* of limits, both included */
    size_t from;
    size_t to;
};

/* `width` limits of the run on each side; near an end of it as many more on the other. */
static struct window window_at(size_t index, size_t run, size_t end, size_t width)
{
    size_t before = index - run < width ? index - run : width;
    size_t after = end - index < width ? end - index : width;
    size_t longer_after = 2 * width - before < end - index ? 2 * width - before : end - index;
    size_t longer_before = 2 * width - after < index - run ? 2 * width - after : index - run;

    return (struct window){index - longer_before, index + longer_after};
}

/* True when no steady clock leads from the run that began at `run` to the limit after `last`. */
static bool is_cut(const band_limit_list *limits, size_t run, size_t last)
{
    size_t from = last - run > WINDOW ? last - WINDOW : run;
    const struct band_limit *next = &limits->items[last + 1];
    struct range range = rate_range(limits, from, last, 1);
    struct interval allowed = allowed_at(limits, from, last, range, next);

    return allowed.low > (double)(next->high_ns - base_ns(next)) ||
           allowed.high < (double)(next->low_ns - base_ns(next));
}

static void find_cuts(struct band *band, const band_limit_list *limits)
{
    size_t run = 0;

    for (size_t i = 0; i < limits->count; i++) {
        struct band_knot *knot = array_add(&band->knots);
        knot->at_ns = limits->items[i].at_ns;
        knot->cut = i > 0 && is_cut(limits, run, i - 1);
        if (!knot->cut)
            continue;
        run = i;
        band->cuts_count++;
    }
}

/* The rate at a limit of the run items[run..end]: what its window tells, and a wider one where they agree. */
static struct range rate_near(const band_limit_list *limits, size_t run, size_t end, size_t index)
{
    struct window window = window_at(index, run, end, WINDOW);
    struct window wide = window_at(index, run, end, WINDOW * STRIDE);
    struct range near = rate_range(limits, window.from, window.to, 1);
    struct range far = rate_range(limits, wide.from, wide.to, STRIDE);
    struct range both = {fmax(near.least, far.least), fmin(near.most, far.most)};

    return both.least < both.most ? both : near;
}

/* The knot of limit `index` of the run items[run..end]. */
static void lay_knot(struct band *band, const band_limit_list *limits, size_t run, size_t end, size_t index,
                     uint64_t floor_ns)
{
    struct window window = window_at(index, run, end, WINDOW);
    const struct band_limit *own = &limits->items[index];
    struct band_knot *knot = &band->knots.items[index];
    struct range range = rate_near(limits, run, end, index);
    struct interval allowed = allowed_at(limits, window.from, window.to, range, own);

    if (range.least > range.most || allowed.low > allowed.high) { /* it wandered more than it should */
        band->unruly_count++;
        range = (struct range){-BAND_RATE, BAND_RATE};
        allowed = (struct interval){(double)(own->low_ns - base_ns(own)), (double)(own->high_ns - base_ns(own))};
    }
    knot->offset_ns = base_ns(own) + (int64_t)((allowed.low + allowed.high) / 2);
    knot->half_ns = (uint64_t)((allowed.high - allowed.low) / 2) + 1;
    if (knot->half_ns < floor_ns)
        knot->half_ns = floor_ns;
    knot->rate = (range.least + range.most) / 2;
    knot->rate_half = (range.most - range.least) / 2;
}

uint64_t band_while_ns(uint64_t span_ns, uint64_t usual_ns)
{
    if (span_ns / WHILES_MAX > usual_ns)
        return span_ns / WHILES_MAX;
    return span_ns / WHILES < usual_ns ? span_ns / WHILES + 1 : usual_ns;
}

void band_build(struct band *band, const band_limit_list *limits, uint64_t floor_ns)
{
    *band = (struct band){.cuts_count = 0};
    find_cuts(band, limits);
    for (size_t run = 0, end; run < limits->count; run = end + 1) {
        for (end = run; end + 1 < limits->count && !band->knots.items[end + 1].cut; end++)
            ;
        for (size_t i = run; i <= end; i++)
            lay_knot(band, limits, run, end, i, floor_ns);
    }
}

void band_fini(struct band *band)
{
    array_fini(&band->knots);
}

/* From one knot on, in either direction. */
static struct band_offset beyond(const struct band_knot *knot, uint64_t at_ns)
{
    double away = (double)(int64_t)(at_ns - knot->at_ns);

    return (struct band_offset){knot->offset_ns + (int64_t)(knot->rate * away),
                                knot->half_ns + (uint64_t)(knot->rate_half * fabs(away))};
}

/* Between two knots of one run; or, across a cut, on either side's line or between them. */
static struct band_offset between(const struct band_knot *low, const struct band_knot *high, uint64_t at_ns)
{
    double whole = (double)(high->at_ns - low->at_ns);
    double done = (double)(at_ns - low->at_ns);
    uint64_t wider = low->half_ns > high->half_ns ? low->half_ns : high->half_ns;

    if (!high->cut) {
        double rise = (double)(high->offset_ns - low->offset_ns) * done / whole;
        double wander = BAND_WANDER * done * (whole - done) / whole;
        return (struct band_offset){low->offset_ns + (int64_t)rise, wider + (uint64_t)wander};
    }
    struct band_offset before = beyond(low, at_ns);
    struct band_offset after = beyond(high, at_ns);
    uint64_t apart = (uint64_t)llabs(after.offset_ns - before.offset_ns) / 2;
    wider = before.half_ns > after.half_ns ? before.half_ns : after.half_ns;
    return (struct band_offset){before.offset_ns / 2 + after.offset_ns / 2, apart + wider + 1};
}

#define WALKED 4 /* knots from where it should be */

/* The last knot no later than `at_ns`, which lies between the first and the last: where it is when they lie evenly. */
static size_t find_knot(const struct band *band, uint64_t at_ns)
{
    const struct band_knot *knots = band->knots.items;
    size_t low = 0;
    size_t high = band->knots.count - 1;
    double share = (double)(at_ns - knots[0].at_ns) / (double)(knots[high].at_ns - knots[0].at_ns);
    size_t guess = (size_t)(share * (double)high);

    if (guess >= WALKED && knots[guess - WALKED].at_ns <= at_ns)
        low = guess - WALKED;
    if (guess + WALKED < high && knots[guess + WALKED].at_ns > at_ns)
        high = guess + WALKED;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (knots[middle].at_ns <= at_ns)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct band_offset band_at(const struct band *band, uint64_t at_ns)
{
    const struct band_knot *knots = band->knots.items;
    size_t last = band->knots.count - 1;

    if (at_ns <= knots[0].at_ns)
        return beyond(&knots[0], at_ns);
    if (at_ns >= knots[last].at_ns)
        return beyond(&knots[last], at_ns);
    size_t low = find_knot(band, at_ns);
    return between(&knots[low], &knots[low + 1], at_ns);
}

double band_rate(const struct band *band)
{
    double risen = 0, passed = 0;

    for (size_t i = 1; i < band->knots.count; i++) {
        const struct band_knot *knot = &band->knots.items[i];
        if (knot->cut)
            continue;
        risen += (double)(knot->offset_ns - knot[-1].offset_ns);
        passed += (double)(knot->at_ns - knot[-1].at_ns);
    }
    return passed > 0 ? risen / passed : 0;
}

uint64_t band_worst_ns(const struct band *band)
{
    uint64_t worst = 0;

    for (size_t i = 0; i < band->knots.count; i++)
        worst = band->knots.items[i].half_ns > worst ? band->knots.items[i].half_ns : worst;
    return worst;
}
