/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts. Invariant: each span is in one burst; bursts do not overlap, but where they were cut by volume, and the spans
 * of each lie together.
 */
#include "correlator/traffic/burst.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/job/period.h"

#define PAUSE_LEAST_NS   20000 /* shorter ones are within a burst */
#define PAUSES_LEAST     8     /* so many pauses are between bursts */
#define USUAL_SHARE      3   /* a volume is usual when a third as many bursts have it as have the most frequent one, */
#define USUAL_LEAST      3   /* and so many at least */
#define MERGED_MAX       8   /* bursts that are one */
#define REPEAT_MAX       128 /* bursts */
#define REPEATS_FEW      8   /* of so many repeats twice the difference is needed */
#define REPEATS_LEAST    5
#define LIKE_BEST_TIMES  2
#define DIFFERENCE_LEAST 4   /* times the scatter of intervals by which those of one repeat differ */
#define MOST_PERMILLE    600 /* of intervals that many are not disturbed */
#define CLEAR_TIMES      2   /* a pause so many times the next one tells by itself where a repeat begins */
#define MODEL_PARTS      4   /* a repeat is the job's if a quarter of the bursts have it in a row */
#define EQUAL_PLACES     8   /* beyond two repeats, after which bursts must have carried as much as their like */

struct finder {
    burst_list bursts;
    span_list spans;
    size_t places;
};

/* The pauses between messages in which none of the job's is under way, in order of length, but for very short ones. */
static size_t list_pauses(const struct finder *finder, int64_t *pauses)
{
    uint64_t until_ns = UINT64_MAX - PAUSE_LEAST_NS;
    size_t count = 0;

    for (size_t i = 0; i < finder->spans.count; i++) {
        const struct span *span = &finder->spans.items[i];
        if (span->first_ns > until_ns + PAUSE_LEAST_NS)
            pauses[count++] = (int64_t)(span->first_ns - until_ns);
        until_ns = i == 0 || span->last_ns > until_ns ? span->last_ns : until_ns;
    }
    array_sort_values(pauses, count);
    return count;
}

/*
 * What a pause between bursts is longer than: pauses within bursts, where one waits for another, are much shorter than
 * those in which all compute.
 */
static uint64_t pause_limit(const struct finder *finder)
{
    int64_t *pauses = array_zeroed((finder->spans.count + 1) * sizeof *pauses);
    size_t count = list_pauses(finder, pauses);
    double widest = 1;
    int64_t limit = PAUSE_LEAST_NS;

    for (size_t i = 0; i + PAUSES_LEAST < count; i++) {
        int64_t shorter = i == 0 ? PAUSE_LEAST_NS : pauses[i - 1];
        double ratio = (double)pauses[i] / (double)shorter;
        if (ratio > widest) {
            widest = ratio;
            limit = shorter + (pauses[i] - shorter) / 2;
        }
    }
    free(pauses);
    return (uint64_t)limit;
}

static void find_bursts(struct finder *finder)
{
    uint64_t limit_ns = pause_limit(finder);
    struct burst *burst = NULL;

    finder->bursts.count = 0;
    for (size_t i = 0; i < finder->spans.count; i++) {
        const struct span *span = &finder->spans.items[i];
        if (burst == NULL || span->first_ns > burst->last_ns + limit_ns) {
            burst = array_add(&finder->bursts);
            *burst = (struct burst){.begin = i, .first_ns = span->first_ns};
        }
        burst->end = i + 1;
        burst->bytes += span->bytes;
        burst->last_ns = span->last_ns > burst->last_ns ? span->last_ns : burst->last_ns;
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

typedef ARRAY(uint64_t) volume_list;

static uint64_t pause_before(const struct burst *bursts, size_t index)
{
    return bursts[index].first_ns > bursts[index - 1].last_ns ? bursts[index].first_ns - bursts[index - 1].last_ns : 0;
}

static void add_burst(struct burst *sum, const struct burst *burst)
{
    sum->end = burst->end;
    sum->bytes += burst->bytes;
    sum->first_ns = burst->first_ns < sum->first_ns ? burst->first_ns : sum->first_ns;
    sum->last_ns = burst->last_ns > sum->last_ns ? burst->last_ns : sum->last_ns;
}

/* Volumes that many bursts have, in order. */
static void find_usual(const struct finder *finder, volume_list *usual)
{
    volume_list all = {0};
    size_t most = 0;

    for (size_t i = 0; i < finder->bursts.count; i++)
        *(uint64_t *)array_add(&all) = finder->bursts.items[i].bytes;
    array_sort(&all, by_value);
    for (size_t from = 0, to; from < all.count; from = to) {
        for (to = from; to < all.count && all.items[to] == all.items[from];)
            to++;
        most = to - from > most ? to - from : most;
    }
    for (size_t from = 0, to; from < all.count; from = to) {
        for (to = from; to < all.count && all.items[to] == all.items[from];)
            to++;
        if (to - from >= USUAL_LEAST && (to - from) * USUAL_SHARE >= most)
            *(uint64_t *)array_add(usual) = all.items[from];
    }
    array_fini(&all);
}

static bool is_usual(const volume_list *usual, uint64_t bytes)
{
    return usual->count > 0 && bsearch(&bytes, usual->items, usual->count, sizeof bytes, by_value) != NULL;
}

/* How many bursts from `first` on add up to a usual volume, or several equal ones (`several`); 0: none do. */
static size_t count_parts(const struct finder *finder, const volume_list *usual, size_t first, bool several)
{
    uint64_t bytes = 0;

    for (size_t i = first; i < finder->bursts.count && i - first < MERGED_MAX; i++) {
        bytes += finder->bursts.items[i].bytes;
        for (uint64_t times = several ? 2 : 1; times <= (several ? i - first : 1); times++)
            if (bytes % times == 0 && is_usual(usual, bytes / times))
                return i - first + 1;
    }
    return 0;
}

/* Parts of one burst become one; what ran into each other, and has the volume of several, stays as it is. */
static void merge_bursts(struct finder *finder)
{
    volume_list usual = {0};
    size_t kept = 0;

    find_usual(finder, &usual);
    for (size_t i = 0, parts; i < finder->bursts.count; i += parts) {
        size_t one = count_parts(finder, &usual, i, false);
        size_t several = one > 0 ? 0 : count_parts(finder, &usual, i, true);
        parts = one > 0 ? one : several > 0 ? several : 1;
        finder->bursts.items[kept++] = finder->bursts.items[i];
        for (size_t j = i + 1; j < i + parts; j++)
            if (one > 0)
                add_burst(&finder->bursts.items[kept - 1], &finder->bursts.items[j]);
            else
                finder->bursts.items[kept++] = finder->bursts.items[j];
    }
    finder->bursts.count = kept;
    array_fini(&usual);
}

struct model {      /* the repeat of volumes */
    size_t from;    /* its first burst */
    size_t period;  /* bursts */
    uint64_t bytes; /* of one repeat */
};

static uint64_t model_bytes(const struct finder *finder, const struct model *model, size_t place)
{
    return finder->bursts.items[model->from + place % model->period].bytes;
}

/* The place in the repeat of the burst, if as many from it on are as the repeat has them; else the period. */
static size_t synchronise(const struct finder *finder, const struct model *model, size_t burst)
{
    for (size_t place = 0; place < model->period; place++) {
        size_t i = 0;
        while (i < model->period && burst + i < finder->bursts.count &&
               finder->bursts.items[burst + i].bytes == model_bytes(finder, model, place + i))
            i++;
        if (i == model->period)
            return place;
    }
    return model->period;
}

static void mark_senders(const struct finder *finder, size_t burst, size_t bursts, bool *sends)
{
    for (size_t i = burst; i < burst + bursts; i++)
        for (size_t j = finder->bursts.items[i].begin; j < finder->bursts.items[i].end; j++)
            sends[finder->spans.items[j].from] = true;
}

/* Whether the addresses that send in so many bursts may be those of `places` of the repeat: none has come or gone. */
static bool is_of_same(const struct finder *finder, const struct model *model, size_t burst, size_t bursts,
                       size_t places)
{
    bool *now = array_zeroed(finder->places * sizeof *now), *usually = array_zeroed(finder->places * sizeof *usually);
    bool is_same = true;

    mark_senders(finder, burst, bursts, now);
    mark_senders(finder, model->from, model->period, usually);
    for (size_t i = 0; i < finder->places; i++)
        is_same &= now[i] == usually[i] || (usually[i] && places < model->period);
    free(now);
    free(usually);
    return is_same;
}

/* How many bursts from `burst` on carry what so many (`*places`) of the repeat do from `place` on; 0: none. */
static size_t find_equal(const struct finder *finder, const struct model *model, size_t burst, size_t place,
                         size_t *places)
{
    uint64_t found = 0, wanted = 0;
    size_t bursts = 0;

    *places = 0;
    while (*places < 2 * model->period + EQUAL_PLACES && bursts < 2 * (2 * model->period + EQUAL_PLACES)) {
        if (found <= wanted) {
            if (burst + bursts == finder->bursts.count)
                return 0;
            found += finder->bursts.items[burst + bursts++].bytes;
        } else {
            wanted += model_bytes(finder, model, place + (*places)++);
        }
        if (found == wanted && is_of_same(finder, model, burst, bursts, *places))
            return bursts;
    }
    return 0;
}

/* What each address sends in a burst. */
static void sent_bytes(const struct finder *finder, const struct burst *burst, uint64_t *bytes)
{
    memset(bytes, 0, finder->places * sizeof *bytes);
    for (size_t i = burst->begin; i < burst->end; i++)
        bytes[finder->spans.items[i].from] += finder->spans.items[i].bytes;
}

/* Takes from the spans [begin, end) those that come first of each address, up to what it sends in the burst `like`. */
static size_t take_like(struct finder *finder, const struct burst *like, size_t begin, size_t end, struct burst *taken)
{
    uint64_t *left = array_zeroed(finder->places * sizeof *left);
    struct span *others = array_zeroed((end - begin + 1) * sizeof *others);
    size_t at = begin, others_count = 0;

    sent_bytes(finder, like, left);
    *taken = (struct burst){.begin = begin, .first_ns = UINT64_MAX};
    for (size_t i = begin; i < end; i++) {
        struct span span = finder->spans.items[i];
        if (left[span.from] < span.bytes || left[span.from] == 0) {
            others[others_count++] = span;
            continue;
        }
        left[span.from] -= span.bytes;
        taken->bytes += span.bytes;
        taken->first_ns = span.first_ns < taken->first_ns ? span.first_ns : taken->first_ns;
        taken->last_ns = span.last_ns > taken->last_ns ? span.last_ns : taken->last_ns;
        finder->spans.items[at++] = span;
    }
    taken->end = at;
    if (others_count > 0)
        memcpy(&finder->spans.items[at], others, others_count * sizeof *others);
    free(others);
    free(left);
    return at;
}

/* What the bursts before each carry beyond whole repeats. To be freed. */
static uint64_t *list_beyond(const struct finder *finder, const struct model *model)
{
    uint64_t *beyond = array_zeroed((finder->bursts.count + 1) * sizeof *beyond);

    for (size_t i = 0; i < finder->bursts.count; i++)
        beyond[i + 1] = (beyond[i] + finder->bursts.items[i].bytes) % model->bytes;
    return beyond;
}

static size_t count_equal(const uint64_t *values, size_t count, uint64_t value)
{
    size_t equal = 0;

    for (size_t i = 0; i < count; i++)
        equal += values[i] == value;
    return equal;
}

/* Lets the repeat begin where most repeats are cut from the one before, however the bursts of each are cut. */
static void turn_model(const struct finder *finder, struct model *model, const uint64_t *beyond)
{
    size_t best = model->from, most = 0;

    for (size_t from = model->from; from < model->from + model->period; from++) {
        size_t equal = count_equal(beyond, finder->bursts.count, beyond[from]);
        if (equal > most || (equal == most && beyond[from] == 0)) /* at best with the first burst that was seen */
            best = from;
        most = equal > most ? equal : most;
    }
    model->from = best;
}

/* Whether bursts from this one on carry as much as a repeat, and it lies where repeats begin. */
static bool is_repeat(const struct finder *finder, const struct model *model, const uint64_t *beyond, size_t burst)
{
    uint64_t bytes = 0;

    for (size_t i = burst; i < finder->bursts.count && bytes < model->bytes; i++)
        bytes += finder->bursts.items[i].bytes;
    return beyond[burst] == beyond[model->from] && bytes == model->bytes;
}

/* Where a rank is late its operations run into each other: there they are cut by what each address sends in them. */
static void cut_by_volume(struct finder *finder, struct model *model)
{
    burst_list cut = {0};
    uint64_t *beyond = list_beyond(finder, model);
    size_t place = model->period, bursts, places;

    turn_model(finder, model, beyond);
    for (size_t i = 0; i < finder->bursts.count; i += bursts) {
        place = place == model->period ? synchronise(finder, model, i) : place;
        place = place == model->period && is_repeat(finder, model, beyond, i) ? 0 : place;
        bursts = 1;
        places = 0;
        if (place < model->period && finder->bursts.items[i].bytes != model_bytes(finder, model, place))
            bursts = find_equal(finder, model, i, place, &places);
        if (bursts == 0)
            place = model->period;
        bursts = bursts == 0 ? 1 : bursts;
        size_t begin = finder->bursts.items[i].begin, end = finder->bursts.items[i + bursts - 1].end;
        for (size_t j = 0; place < model->period && j < places; j++) {
            const struct burst *like = &finder->bursts.items[model->from + (place + j) % model->period];
            struct burst *burst = array_add(&cut);
            begin = take_like(finder, like, begin, end, burst);
            burst->begins = (place + j) % model->period == 0;
        }
        if (place == model->period || places == 0) {
            struct burst *burst = array_add(&cut);
            *burst = finder->bursts.items[i];
            burst->is_astray = place == model->period && model->period > 1;
            burst->begins = place == 0;
        }
        place = place == model->period ? place : (place + (places == 0 ? 1 : places)) % model->period;
    }
    free(beyond);
    array_fini(&finder->bursts);
    memcpy(&finder->bursts, &cut, sizeof cut);
}

/*
 * The longest stretch of bursts whose volumes repeat; its period is 0 where none do, or too few: some bursts are alike
 * by chance.
 */
static struct model find_model(const struct finder *finder)
{
    uint64_t *bytes = array_zeroed((finder->bursts.count + 1) * sizeof *bytes);
    struct model model = {0};
    size_t to = 0;

    for (size_t i = 0; i < finder->bursts.count; i++)
        bytes[i] = finder->bursts.items[i].bytes;
    model.period = period_find(bytes, finder->bursts.count, &model.from, &to);
    if ((to - model.from) * MODEL_PARTS < finder->bursts.count)
        model.period = 0;
    for (size_t i = 0; i < model.period; i++)
        model.bytes += bytes[model.from + i];
    free(bytes);
    return model;
}

static bool is_in_order(const struct finder *finder)
{
    for (size_t i = 1; i < finder->bursts.count; i++)
        if (finder->bursts.items[i].first_ns < finder->bursts.items[i - 1].first_ns)
            return false;
    return true;
}

/* Where bursts overtake each other, as a pipeline's do, all of a repeat are one: their order tells nothing. */
static bool join_repeats(struct finder *finder, const struct model *model)
{
    struct burst *bursts = finder->bursts.items;
    size_t kept = 0;

    if (is_in_order(finder) || finder->bursts.count / model->period < REPEATS_LEAST)
        return false;
    for (size_t i = 0; i < finder->bursts.count; i++) {
        bool goes_on = kept > 0 && !bursts[i].begins && !bursts[i].is_astray && !bursts[kept - 1].is_astray;
        if (goes_on)
            add_burst(&bursts[kept - 1], &bursts[i]);
        else
            bursts[kept++] = bursts[i];
    }
    finder->bursts.count = kept;
    return true;
}

static int64_t interval_before(const struct finder *finder, size_t index)
{
    return (int64_t)(finder->bursts.items[index].first_ns - finder->bursts.items[index - 1].first_ns);
}

struct apart { /* how far the intervals of equal bursts lie apart, and how far they scatter where they should not */
    int64_t least_ns;
    int64_t most_ns;
    int64_t scatter_ns;
};

/* Takes in the intervals before the bursts `place`, place + period, and so on. */
static void take_place(const struct finder *finder, size_t place, size_t period, struct apart *apart)
{
    int64_t *values = array_zeroed((finder->bursts.count / period + 1) * sizeof *values);
    size_t count = 0;

    for (size_t i = place == 0 ? period : place; i < finder->bursts.count; i += period)
        values[count++] = interval_before(finder, i);
    int64_t median = array_median(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] > median ? values[i] - median : median - values[i];
    int64_t scatter = array_quantile(values, count, MOST_PERMILLE);
    apart->least_ns = median < apart->least_ns ? median : apart->least_ns;
    apart->most_ns = median > apart->most_ns ? median : apart->most_ns;
    apart->scatter_ns = scatter > apart->scatter_ns ? scatter : apart->scatter_ns;
    free(values);
}

/*
 * By how many times their scatter the intervals before bursts of one volume differ over `period` bursts; of few repeats
 * less, since medians of few differ by chance.
 */
static double difference(const struct finder *finder, size_t volumes, size_t period)
{
    double most = 0, repeats = (double)finder->bursts.count / (double)period;

    for (size_t place = 0; place < volumes; place++) {
        struct apart apart = {.least_ns = INT64_MAX, .scatter_ns = 1};
        for (size_t i = place; i < period; i += volumes)
            take_place(finder, i, period, &apart);
        double times = (double)(apart.most_ns - apart.least_ns) / (double)apart.scatter_ns;
        most = times > most ? times : most;
    }
    return most / (1 + REPEATS_FEW / repeats);
}

/*
 * Bursts of equal volumes may be one step each, or several one: then the intervals between them repeat over several.
 * The fewest with which they do, a multiple of those with which the volumes do.
 */
static size_t find_repeat(const struct finder *finder, size_t volumes)
{
    size_t longest = finder->bursts.count / REPEATS_LEAST;
    double least = DIFFERENCE_LEAST;

    longest = longest < REPEAT_MAX ? longest : REPEAT_MAX;
    for (size_t period = 2 * volumes; period <= longest; period += volumes) {
        double times = difference(finder, volumes, period) / LIKE_BEST_TIMES;
        least = times > least ? times : least;
    }
    for (size_t period = 2 * volumes; period <= longest; period += volumes)
        if (difference(finder, volumes, period) >= least)
            return period;
    return volumes;
}

static int64_t median_pause(const struct finder *finder, size_t place, size_t period)
{
    int64_t *pauses = array_zeroed((finder->bursts.count / period + 1) * sizeof *pauses);
    size_t count = 0;

    for (size_t i = place == 0 ? period : place; i < finder->bursts.count; i += period)
        pauses[count++] = (int64_t)pause_before(finder->bursts.items, i);
    int64_t median = array_median(pauses, count);
    free(pauses);
    return median;
}

/* The place before which the median pause is longest, and the next one's median. */
static size_t longest_pause(const struct finder *finder, size_t period, int64_t *longest, int64_t *second)
{
    size_t found = 0;

    *longest = *second = 0;
    for (size_t place = 0; place < period; place++) {
        int64_t pause = median_pause(finder, place, period);
        *second = pause > *longest ? *longest : pause > *second ? pause : *second;
        found = pause > *longest ? place : found;
        *longest = pause > *longest ? pause : *longest;
    }
    return found;
}

/*
 * Marks the bursts before which the longest pauses are, one in each repeat; by counting where none stands out. Returns
 * whether there are such repeats.
 */
static bool mark_heads(struct finder *finder, size_t volumes)
{
    size_t period = find_repeat(finder, volumes), since = 0;
    int64_t longest, second;

    if (period == volumes)
        return false;
    size_t place = longest_pause(finder, period, &longest, &second);
    bool is_clear = longest > CLEAR_TIMES * second;
    for (size_t i = 1; i < finder->bursts.count; i++) {
        since++;
        bool is_long = (int64_t)pause_before(finder->bursts.items, i) > second + (longest - second) / 2;
        if (is_clear ? !is_long || 2 * since < period : i % period != place)
            continue;
        finder->bursts.items[i].is_head = true;
        since = 0;
    }
    return true;
}

static void let_astray(struct finder *finder)
{
    for (size_t i = 0; i < finder->bursts.count; i++)
        finder->bursts.items[i].is_astray = true;
}

void burst_find(burst_list *bursts, span_list *spans, size_t places)
{
    struct finder finder = {.bursts = *bursts, .spans = *spans, .places = places};

    find_bursts(&finder);
    merge_bursts(&finder);
    struct model model = find_model(&finder);
    if (model.bytes > 0)
        cut_by_volume(&finder, &model);
    if (model.bytes > 0 && join_repeats(&finder, &model))
        model.period = 1;
    if (!mark_heads(&finder, model.period > 0 ? model.period : 1) && model.period == 0)
        let_astray(&finder);
    *bursts = finder.bursts;
    *spans = finder.spans;
}
