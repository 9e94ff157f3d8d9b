/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts. Invariant: each span is in one burst; bursts do not overlap, but where they were cut by volume, and the spans
 * of each lie together.
 */
#include "correlator/traffic/burst.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/job/period.h"

#define PAUSE_LEAST_NS  20000 /* shorter ones are within a burst */
#define PAUSES_LEAST    8     /* so many pauses are between bursts */
#define USUAL_SHARE     3     /* a volume is usual when a third as many bursts have it as have the most frequent one, */
#define USUAL_LEAST     3     /* and so many at least */
#define REPEAT_MAX      128   /* bursts */
#define REPEATS_LEAST   3
#define LIKE_BEST_TIMES 2
#define LIKE_BEST       0.02
#define MERGED_MAX      8 /* bursts that are one */

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

/* How many bursts from `first` on add up to a usual volume; 1 where none do, or it is one itself. */
static size_t count_parts(const struct finder *finder, const volume_list *usual, size_t first)
{
    uint64_t bytes = 0;

    for (size_t i = first; i < finder->bursts.count && i - first < MERGED_MAX; i++) {
        bytes += finder->bursts.items[i].bytes;
        if (is_usual(usual, bytes))
            return i - first + 1;
    }
    return 1;
}

static void merge_bursts(struct finder *finder)
{
    volume_list usual = {0};
    size_t kept = 0;

    find_usual(finder, &usual);
    for (size_t i = 0, parts; i < finder->bursts.count; i += parts) {
        struct burst burst = finder->bursts.items[i];
        parts = count_parts(finder, &usual, i);
        for (size_t j = i + 1; j < i + parts; j++) {
            burst.end = finder->bursts.items[j].end;
            burst.bytes += finder->bursts.items[j].bytes;
            burst.last_ns = finder->bursts.items[j].last_ns;
        }
        finder->bursts.items[kept++] = burst;
    }
    finder->bursts.count = kept;
    array_fini(&usual);
}

struct model {     /* the repeat of volumes */
    size_t from;   /* its first burst */
    size_t period; /* bursts */
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

/* How many bursts from `burst` on carry what so many (`*places`) of the repeat do from `place` on; 0: none. */
static size_t find_equal(const struct finder *finder, const struct model *model, size_t burst, size_t place,
                         size_t *places)
{
    uint64_t found = 0, wanted = 0;
    size_t bursts = 0;

    *places = 0;
    while (*places < 2 * model->period && bursts < 4 * model->period) {
        if (found <= wanted) {
            if (burst + bursts == finder->bursts.count)
                return 0;
            found += finder->bursts.items[burst + bursts++].bytes;
        } else {
            wanted += model_bytes(finder, model, place + (*places)++);
        }
        if (found == wanted)
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

/* Where a rank is late its operations run into each other: there they are cut by what each address sends in them. */
static void cut_by_volume(struct finder *finder, const struct model *model)
{
    burst_list cut = {0};
    size_t place = model->period, bursts, places;

    for (size_t i = 0; i < finder->bursts.count; i += bursts) {
        place = place == model->period ? synchronise(finder, model, i) : place;
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
            begin = take_like(finder, like, begin, end, array_add(&cut));
        }
        if (place == model->period || places == 0)
            *(struct burst *)array_add(&cut) = finder->bursts.items[i];
        place = place == model->period ? place : (place + (places == 0 ? 1 : places)) % model->period;
    }
    array_fini(&finder->bursts);
    memcpy(&finder->bursts, &cut, sizeof cut);
}

/* The longest stretch of bursts whose volumes repeat; its period is 0 where none do. */
static struct model find_model(const struct finder *finder)
{
    uint64_t *bytes = array_zeroed((finder->bursts.count + 1) * sizeof *bytes);
    struct model model = {0};
    size_t to;

    for (size_t i = 0; i < finder->bursts.count; i++)
        bytes[i] = finder->bursts.items[i].bytes;
    model.period = period_find(bytes, finder->bursts.count, &model.from, &to);
    free(bytes);
    return model;
}

/* Of the pauses, by how much one differs from that `period` bursts on: 0 to 1, the mean. */
static double unevenness(const struct finder *finder, size_t period)
{
    const struct burst *bursts = finder->bursts.items;
    double sum = 0;
    size_t count = 0;

    for (size_t i = 1; i + period < finder->bursts.count; i++, count++) {
        double now = (double)pause_before(bursts, i), then = (double)pause_before(bursts, i + period);
        double more = now > then ? now : then;
        sum += more > 0 ? (now > then ? now - then : then - now) / more : 0;
    }
    return count == 0 ? 1 : sum / (double)count;
}

/*
 * Bursts of equal volumes may be one step each, or several one: then pauses repeat over several of them. The fewest
 * with which they do so nearly best, a multiple of those with which the volumes do.
 */
static size_t find_repeat(const struct finder *finder, size_t volumes)
{
    double least = 1;
    size_t longest =
        finder->bursts.count / REPEATS_LEAST < REPEAT_MAX ? finder->bursts.count / REPEATS_LEAST : REPEAT_MAX;
    for (size_t period = volumes; period <= longest; period += volumes)
        least = unevenness(finder, period) < least ? unevenness(finder, period) : least;
    for (size_t period = volumes; period <= longest; period += volumes)
        if (unevenness(finder, period) <= LIKE_BEST_TIMES * least + LIKE_BEST)
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

/* Marks the bursts before which the longest pauses are, one in each repeat of the pauses. */
static void mark_heads(struct finder *finder, size_t volumes)
{
    size_t period = find_repeat(finder, volumes), since = 0;
    int64_t longest = 0, second = 0;

    if (period == volumes)
        return;
    for (size_t place = 0; place < period; place++) {
        int64_t pause = median_pause(finder, place, period);
        second = pause > longest ? longest : pause > second ? pause : second;
        longest = pause > longest ? pause : longest;
    }
    for (size_t i = 1; i < finder->bursts.count; i++) {
        since++;
        if ((int64_t)pause_before(finder->bursts.items, i) <= second + (longest - second) / 2 || 2 * since < period)
            continue;
        finder->bursts.items[i].is_head = true;
        since = 0;
    }
}

void burst_find(burst_list *bursts, span_list *spans, size_t places)
{
    struct finder finder = {.bursts = *bursts, .spans = *spans, .places = places};

    find_bursts(&finder);
    merge_bursts(&finder);
    struct model model = find_model(&finder);
    if (model.period > 0) {
        cut_by_volume(&finder, &model);
        mark_heads(&finder, model.period);
    }
    *bursts = finder.bursts;
    *spans = finder.spans;
}
