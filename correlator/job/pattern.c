/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Patterns. Invariant: bars are in order and do not overlap; the first one is a training step. A bar is
 * compared with a model, a repeat that was seen: with all its beats in their order, or, where the host's waits show
 * where bars begin, in any order (sums of hashes).
 */
#include "correlator/job/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/job/period.h"

#define UNITS_LEAST   4    /* that make waits worth looking at */
#define PERIOD_MAX    1024 /* units */
#define EXPLAIN_TENTH 7    /* of what the best period explains, a shorter one must */
#define LESS_PERCENT  75   /* of the model's bytes, an evaluation's are less */
#define ALIKE_PERCENT 80   /* of the model's bytes, a training step has */
#define MORE_PERCENT  150  /* of the model's bytes, and it has no more than these */
#define TIME_PERCENT  10   /* of a training step, an evaluation takes at least */
#define EVEN_PERCENT  30   /* by which pauses that are alike may differ */

static uint64_t sign(const struct pattern *pattern, size_t beat)
{
    return pattern->is_loose ? pattern->beats[beat].loose : pattern->beats[beat].exact;
}

static void sum_up(struct pattern *pattern)
{
    for (size_t i = 0; i < pattern->count; i++)
        pattern->sums[i + 1] = pattern->sums[i] + hash_number(HASH_START, sign(pattern, i));
}

/* `everywhere`: each beat is a unit. */
static void cut_units(struct pattern *pattern, bool everywhere)
{
    pattern->units_count = 0;
    for (size_t i = 0; i < pattern->count; i++)
        if (i == 0 || everywhere || pattern->beats[i].waited)
            pattern->units[pattern->units_count++] = i;
    pattern->units[pattern->units_count] = pattern->count;
}

static uint64_t unit_sum(const struct pattern *pattern, size_t unit)
{
    return pattern->sums[pattern->units[unit + 1]] - pattern->sums[pattern->units[unit]];
}

/* How many units lie in stretches of two periods or more; [*from, *to) becomes the longest one. */
static size_t covered(const struct pattern *pattern, size_t period, size_t *from, size_t *to)
{
    size_t count = pattern->units_count, sum = 0, begin = 0, until = 0, longest = 0;

    for (size_t i = 0; i + period <= count; i++) {
        if (i + period < count && unit_sum(pattern, i) == unit_sum(pattern, i + period))
            continue;
        size_t end = i + period, length = end - begin;
        if (length >= 2 * period) {
            sum += end - (begin > until ? begin : until);
            until = end;
        }
        if (length >= 2 * period && length > longest) {
            longest = length;
            *from = begin;
            *to = end;
        }
        begin = i + 1;
    }
    return sum;
}

static uint64_t pause_before(const struct pattern *pattern, size_t unit)
{
    size_t beat = pattern->units[unit];

    return beat == 0 ? 0 : pattern->beats[beat].enqueued_ns - pattern->beats[beat - 1].enqueued_ns;
}

/* The unit in [from, from + period) that the longest pauses are before, by their median over the stretch. */
static size_t find_phase(const struct pattern *pattern, size_t period, size_t from, size_t to)
{
    int64_t *pauses = array_zeroed((to - from) * sizeof *pauses);
    int64_t longest = -1;
    size_t phase = from;

    for (size_t place = from; place < from + period; place++) {
        size_t count = 0;
        for (size_t unit = place == 0 ? period : place; unit < to; unit += period)
            pauses[count++] = (int64_t)pause_before(pattern, unit);
        int64_t pause = array_select(pauses, count, 500);
        if (pause > longest) {
            longest = pause;
            phase = place;
        }
    }
    free(pauses);
    return phase;
}

struct model { /* beats [from, from + length) */
    size_t from;
    size_t length;
    uint64_t bytes;
};

static uint64_t bytes_of(const struct pattern *pattern, size_t from, size_t to)
{
    uint64_t bytes = 0;

    for (size_t i = from; i < to; i++)
        bytes += pattern->beats[i].bytes;
    return bytes;
}

static struct model model_of(const struct pattern *pattern, size_t turn)
{
    size_t unit = pattern->model + (pattern->phase + turn) % pattern->period;
    size_t from = pattern->units[unit], to = pattern->units[unit + pattern->period];

    return (struct model){from, to - from, bytes_of(pattern, from, to)};
}

/* True when beats [from, to) are units, or lie within one: `next` is the first that begins behind `from`. */
static bool keeps_units(const struct pattern *pattern, size_t next, size_t to)
{
    size_t unit = next;

    while (pattern->units[unit] < to)
        unit++;
    return unit == next || pattern->units[unit] == to;
}

static bool is_like(const struct pattern *pattern, const struct model *model, size_t from, size_t next)
{
    if (from + model->length > pattern->count || !keeps_units(pattern, next, from + model->length) ||
        sign(pattern, from) != sign(pattern, model->from) ||
        pattern->sums[from + model->length] - pattern->sums[from] !=
            pattern->sums[model->from + model->length] - pattern->sums[model->from])
        return false;
    for (size_t i = 1; pattern->is_ordered && i < model->length; i++)
        if (sign(pattern, from + i) != sign(pattern, model->from + i))
            return false;
    return true;
}

static void add_bar(bar_list *bars, size_t from, size_t to, enum step_kind kind)
{
    struct bar *bar = array_add(bars);

    *bar = (struct bar){from, to, (uint8_t)kind};
}

/* Bars like the model, and what lies between them as others: a unit each, or where each beat is one all of it. */
static void parse(const struct pattern *pattern, const struct model *model, bar_list *bars)
{
    size_t unit = 0;

    for (size_t at = 0; at < pattern->count;) {
        while (pattern->units[unit] <= at)
            unit++;
        if (is_like(pattern, model, at, unit)) {
            add_bar(bars, at, at + model->length, STEP_TRAINING);
            at += model->length;
            continue;
        }
        struct bar *last = bars->count == 0 ? NULL : &bars->items[bars->count - 1];
        if (pattern->is_ordered && last != NULL && last->kind == STEP_OTHER)
            last->to = pattern->units[unit];
        else
            add_bar(bars, at, pattern->units[unit], STEP_OTHER);
        at = pattern->units[unit];
    }
}

/* True when the last bar is like another one that is no training step. */
static bool is_known(const struct pattern *pattern, const bar_list *bars)
{
    const struct bar *last = &bars->items[bars->count - 1];
    uint64_t sum = pattern->sums[last->to] - pattern->sums[last->from];

    for (size_t i = 0; i + 1 < bars->count && !pattern->is_ordered; i++) {
        const struct bar *bar = &bars->items[i];
        if (bar->kind == last->kind && pattern->sums[bar->to] - pattern->sums[bar->from] == sum)
            return true;
    }
    return false;
}

/* Leaves out what lies before the first training step, and behind the last one what is like nothing between. */
static void trim(const struct pattern *pattern, bar_list *bars)
{
    size_t first = 0;

    while (first < bars->count && bars->items[first].kind != STEP_TRAINING)
        first++;
    bars->count -= first;
    if (first > 0 && bars->count > 0)
        memmove(bars->items, &bars->items[first], bars->count * sizeof bars->items[0]);
    while (bars->count > 0 && bars->items[bars->count - 1].kind != STEP_TRAINING && !is_known(pattern, bars))
        bars->count--;
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* The bytes of the bar's beats that the model has too. */
static uint64_t common_bytes(const struct pattern *pattern, const struct model *model, const struct bar *bar)
{
    uint64_t *signs = array_zeroed(model->length * sizeof *signs);
    uint64_t bytes = 0;

    for (size_t i = 0; i < model->length; i++)
        signs[i] = sign(pattern, model->from + i);
    qsort(signs, model->length, sizeof *signs, by_value);
    for (size_t i = bar->from; i < bar->to; i++) {
        uint64_t own = sign(pattern, i);
        if (bsearch(&own, signs, model->length, sizeof *signs, by_value) != NULL)
            bytes += pattern->beats[i].bytes;
    }
    free(signs);
    return bytes;
}

/* From the first enqueue to the next bar's, of the last one to its end. */
static uint64_t time_of(const struct pattern *pattern, size_t from, size_t to)
{
    const struct beat *last = &pattern->beats[to - 1];
    uint64_t end_ns = last->end_ns > last->enqueued_ns ? last->end_ns : last->enqueued_ns;

    return (to < pattern->count ? pattern->beats[to].enqueued_ns : end_ns) - pattern->beats[from].enqueued_ns;
}

enum stance { STANCE_ALIKE, STANCE_LESS, STANCE_TINY, STANCE_MORE };

static enum stance compare(const struct pattern *pattern, const struct model *model, const struct bar *bar)
{
    uint64_t bytes = bytes_of(pattern, bar->from, bar->to);
    uint64_t usual_ns = time_of(pattern, model->from, model->from + model->length);

    if (bytes * 100 > model->bytes * MORE_PERCENT)
        return STANCE_MORE;
    if (common_bytes(pattern, model, bar) * 100 >= model->bytes * ALIKE_PERCENT)
        return STANCE_ALIKE;
    if (bytes * 100 > model->bytes * LESS_PERCENT)
        return STANCE_MORE;
    return time_of(pattern, bar->from, bar->to) * 100 < usual_ns * TIME_PERCENT ? STANCE_TINY : STANCE_LESS;
}

/* Says what the bars between training steps are; what takes no time belongs to the one before. How many send more. */
static size_t name_others(const struct pattern *pattern, const struct model *model, bar_list *bars)
{
    size_t kept = 0, more = 0;

    for (size_t i = 0; i < bars->count; i++) {
        struct bar bar = bars->items[i];
        enum stance stance = bar.kind == STEP_TRAINING ? STANCE_ALIKE : compare(pattern, model, &bar);
        if (stance == STANCE_TINY && kept > 0) {
            bars->items[kept - 1].to = bar.to;
            continue;
        }
        bar.kind = stance == STANCE_ALIKE                          ? STEP_TRAINING
                   : stance == STANCE_LESS && !pattern->is_ordered ? STEP_EVALUATION
                                                                   : STEP_OTHER;
        more += stance == STANCE_MORE;
        bars->items[kept++] = bar;
    }
    bars->count = kept;
    return more;
}

/* Of the beats from the first training step on, how many lie in such steps, in thousandths. */
static size_t weight(const bar_list *bars, size_t count)
{
    size_t beats = 0;

    for (size_t i = 0; i < bars->count; i++)
        beats += bars->items[i].kind == STEP_TRAINING ? bars->items[i].to - bars->items[i].from : 0;
    return bars->count == 0 ? 0 : beats * 1000 / (count - bars->items[0].from);
}

/* The median pause of the GPU before the n-th of `parts` parts of the bars, from the end of what comes before. */
static int64_t rest_before(const struct pattern *pattern, const bar_list *bars, size_t length, size_t parts,
                           size_t part)
{
    int64_t *rests = array_zeroed(bars->count * sizeof *rests);
    size_t count = 0;

    for (size_t i = 0; i < bars->count; i++) {
        size_t beat = bars->items[i].from + part * (length / parts);
        if (beat == 0 || bars->items[i].to - bars->items[i].from != length || bars->items[i].kind != STEP_TRAINING)
            continue;
        const struct beat *own = &pattern->beats[beat], *before = &pattern->beats[beat - 1];
        if (own->first_ns != 0 && before->end_ns != 0)
            rests[count++] = (int64_t)(own->first_ns - before->end_ns);
    }
    int64_t rest = array_median(rests, count);
    free(rests);
    return rest;
}

/* The fewest beats that the model repeats over and over. */
static size_t smallest_repeat(const struct pattern *pattern, const struct model *model)
{
    for (size_t length = 1; length < model->length; length++) {
        size_t i = length;
        while (model->length % length == 0 && i < model->length &&
               sign(pattern, model->from + i) == sign(pattern, model->from + i - length))
            i++;
        if (i == model->length)
            return length;
    }
    return model->length;
}

/*
 * A host that waits for its GPU every n-th step only makes bars of n equal parts, before each of which the GPU computes
 * equally long; equal buckets of one step do not.
 */
static size_t find_parts(const struct pattern *pattern, const struct model *model, const bar_list *bars)
{
    size_t parts = model->length / smallest_repeat(pattern, model);
    int64_t least = INT64_MAX, most = 0;

    for (size_t part = 0; part < parts && parts > 1; part++) {
        int64_t rest = rest_before(pattern, bars, model->length, parts, part);
        least = rest < least ? rest : least;
        most = rest > most ? rest : most;
    }
    return parts > 1 && least > 0 && most * 100 <= least * (100 + EVEN_PERCENT) ? parts : 1;
}

/* True when units [from, from + period) are a shorter repeat several times over. */
static bool is_multiple(const struct pattern *pattern, size_t from, size_t period)
{
    for (size_t part = 1; part <= period / 2; part++) {
        size_t i = part;
        while (period % part == 0 && i < period && unit_sum(pattern, from + i) == unit_sum(pattern, from + i - part))
            i++;
        if (i == period)
            return true;
    }
    return false;
}

/* Tries one period of units; false where what lies between its bars is no less than they are, again and again. */
static bool try_period(struct pattern *pattern, size_t period)
{
    size_t from = 0, to = 0;
    bar_list bars = {0};

    covered(pattern, period, &from, &to);
    if (is_multiple(pattern, from, period)) /* it was tried before */
        return false;
    pattern->model = from;
    pattern->phase = find_phase(pattern, period, from, to) - from;
    pattern->period = period;
    pattern->parts = 1;
    struct model model = model_of(pattern, 0);
    parse(pattern, &model, &bars);
    trim(pattern, &bars);
    bool good = name_others(pattern, &model, &bars) < 2;
    if (good)
        pattern->parts = find_parts(pattern, &model, &bars);
    array_fini(&bars);
    if (!good)
        pattern->period = 0;
    return good;
}

/* By the host's waits: the shortest period that explains nearly as much as any. */
static void find_by_waits(struct pattern *pattern)
{
    size_t most = 0, from, to;

    cut_units(pattern, false);
    size_t longest = pattern->units_count / 2 < PERIOD_MAX ? pattern->units_count / 2 : PERIOD_MAX;
    for (size_t period = 1; period <= longest; period++) {
        size_t sum = covered(pattern, period, &from, &to);
        most = sum > most ? sum : most;
    }
    if (pattern->units_count < UNITS_LEAST || most * 2 < pattern->units_count)
        return;
    for (size_t period = 1; period <= longest && pattern->period == 0; period++)
        if (covered(pattern, period, &from, &to) * 10 >= most * EXPLAIN_TENTH && try_period(pattern, period))
            return;
}

/* By the sequence alone. */
static void find_by_order(struct pattern *pattern)
{
    uint64_t *signs = array_zeroed((pattern->count + 1) * sizeof *signs);
    size_t from, to;

    cut_units(pattern, true);
    for (size_t i = 0; i < pattern->count; i++)
        signs[i] = sign(pattern, i);
    pattern->period = period_find(signs, pattern->count, &from, &to);
    pattern->parts = 1;
    if (pattern->period != 0) {
        pattern->model = from;
        pattern->phase = find_phase(pattern, pattern->period, from, to) - from;
    }
    free(signs);
}

/* How much the pattern explains when it is looked for in one way: sizes count or not, by waits or by order. */
static size_t look(struct pattern *pattern, bool loose, bool ordered)
{
    bar_list bars = {0};

    pattern->is_loose = loose;
    pattern->is_ordered = ordered;
    pattern->period = 0;
    sum_up(pattern);
    if (ordered)
        find_by_order(pattern);
    else
        find_by_waits(pattern);
    if (pattern->period != 0)
        pattern_bars(pattern, 0, &bars);
    size_t found = weight(&bars, pattern->count);
    array_fini(&bars);
    return found;
}

static bool end_by_hand(struct pattern *pattern)
{
    for (size_t i = 0; i < pattern->count; i++)
        if (pattern->beats[i].ends) {
            pattern->period = pattern->parts = 1;
            return true;
        }
    return false;
}

void pattern_init(struct pattern *pattern, const struct beat *beats, size_t count)
{
    static const struct {
        bool loose, ordered;
    } ways[] = {{false, false}, {false, true}, {true, false}, {true, true}};
    size_t best = 0, most = 0;

    *pattern = (struct pattern){.beats = beats, .count = count};
    pattern->units = array_zeroed((count + 1) * sizeof *pattern->units);
    pattern->sums = array_zeroed((count + 1) * sizeof *pattern->sums);
    if (count == 0 || end_by_hand(pattern))
        return;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        size_t found = look(pattern, ways[i].loose, ways[i].ordered);
        if (found * 10 >= 1000 * EXPLAIN_TENTH)
            return;
        best = found > most ? i : best;
        most = found > most ? found : most;
    }
    look(pattern, ways[best].loose, ways[best].ordered);
}

static void bars_by_hand(const struct pattern *pattern, bar_list *bars)
{
    size_t from = 0;

    for (size_t i = 0; i < pattern->count; i++)
        if (pattern->beats[i].ends) {
            add_bar(bars, from, i + 1, STEP_TRAINING);
            from = i + 1;
        }
}

static void split(bar_list *bars, size_t length, size_t parts)
{
    bar_list all = *bars;

    *bars = (bar_list){0};
    for (size_t i = 0; i < all.count; i++) {
        const struct bar *bar = &all.items[i];
        bool whole = bar->kind == STEP_TRAINING && bar->to - bar->from == length;
        for (size_t part = 0; part < parts && whole; part++)
            add_bar(bars, bar->from + part * (length / parts), bar->from + (part + 1) * (length / parts),
                    STEP_TRAINING);
        if (!whole)
            add_bar(bars, bar->from, bar->to, bar->kind);
    }
    array_fini(&all);
}

void pattern_bars(const struct pattern *pattern, size_t turn, bar_list *bars)
{
    if (pattern->units_count == 0) {
        bars_by_hand(pattern, bars);
        return;
    }
    struct model model = model_of(pattern, turn);
    parse(pattern, &model, bars);
    trim(pattern, bars);
    name_others(pattern, &model, bars);
    if (pattern->parts > 1)
        split(bars, model.length, pattern->parts);
}

void pattern_fini(struct pattern *pattern)
{
    free(pattern->units);
    free(pattern->sums);
}
