/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Late ranks. What a rank added itself at one place of the step, before its host was ready or after, stands out when it
 * does so in a streak of steps, or once by far more than nearly all of the job's waits. Invariant: at most
 * one verdict a step and rank.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/job/streak.h"
#include "correlator/verdict/verdict_private.h"

#define FIRST_STEP    1 /* the one before still makes connections */
#define HABIT_STEPS   2 /* quiet steps that tell what a rank usually adds */
#define ANY_RANK      -1
#define EXCUSED_TIMES 2   /* what was waited for lost frames explains a lateness of so many times as much */
#define ONCE_TIMES    6   /* times what nine of ten ranks stay below that a single lateness must exceed */
#define HOST_TIMES    8   /* of hosts, whose waits fall off more slowly */
#define ONCE_SHARES   2   /* times what is worth a verdict in a streak */
#define TAIL_SAMPLES  200 /* so many tell what one of a hundred exceeds, and how fast that falls off: */
#define TAIL_DECADES  5   /* so often one of ten is taken from there on */
#define LATE_PARTS    4   /* a rank must be late in a step by such a part of what its streak has in common */
#define FEW_RANKS     16
#define NOBODY        INT32_MIN

struct suspect { /* one rank operation, to be sorted */
    uint64_t place;
    int32_t rank;
    int32_t step;
    int64_t own_ns;
    int64_t limit_ns; /* what it stood out from */
    uint32_t index;   /* of the rank operation */
    uint8_t part;     /* enum blame_part */
    bool stands_out;
    bool streak;
};
typedef ARRAY(struct suspect) suspect_list;

struct excuse { /* a link at which the rank is explains a lateness of so much in that step */
    int32_t step;
    int32_t rank;
    int64_t ns;
};
typedef ARRAY(struct excuse) excuse_list;

static int by_place(const void *a, const void *b)
{
    const struct suspect *left = a;
    const struct suspect *right = b;

    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->part != right->part)
        return left->part < right->part ? -1 : 1;
    return (left->step > right->step) - (left->step < right->step);
}

/* Streaks first, then what was added most. */
static int by_weight(const void *a, const void *b)
{
    const struct suspect *left = a;
    const struct suspect *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    if (left->streak != right->streak)
        return left->streak ? -1 : 1;
    if (left->own_ns != right->own_ns)
        return left->own_ns > right->own_ns ? -1 : 1;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    return (left->part > right->part) - (left->part < right->part);
}

static int by_step_and_rank(const void *a, const void *b)
{
    const struct excuse *left = a;
    const struct excuse *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_excuse(excuse_list *excuses, int32_t step, int32_t rank, int64_t ns)
{
    *(struct excuse *)array_add(excuses) = (struct excuse){.step = step, .rank = rank, .ns = ns};
}

/*
 * Credits and data wait in a slow link, however long; where frames were lost, for as long as they were waited for. All
 * others wait for what came late over a slow link, and begin the next step by as much later.
 */
static void list_excuses(const struct judge *judge, excuse_list *excuses)
{
    for (size_t i = 0; i < judge->pairs.count; i++) {
        const struct pair_time *pair = &judge->pairs.items[i];
        if (!pair->slow)
            continue;
        add_excuse(excuses, pair->step, pair->from, INT64_MAX);
        add_excuse(excuses, pair->step, pair->to, INT64_MAX);
        int64_t later_ns = larger(pair->excess_ns, pair->cost_ns);
        add_excuse(excuses, pair->step, ANY_RANK, later_ns);
        add_excuse(excuses, pair->step + 1, ANY_RANK, later_ns);
    }
    for (size_t i = 0; i < judge->job->verdicts.count; i++) {
        const struct verdict *verdict = &judge->job->verdicts.items[i];
        if (verdict->class != VERDICT_NETWORK_LOSSY)
            continue;
        add_excuse(excuses, verdict->step, verdict->rank, array_multiple((int64_t)verdict->size_ns, EXCUSED_TIMES));
        add_excuse(excuses, verdict->step, verdict->peer_rank,
                   array_multiple((int64_t)verdict->size_ns, EXCUSED_TIMES));
    }
    array_sort(excuses, by_step_and_rank);
}

static bool is_excused(const excuse_list *excuses, int32_t step, int32_t rank, int64_t ns)
{
    struct excuse key = {.step = step, .rank = rank};
    size_t low = 0, high = excuses->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (by_step_and_rank(&excuses->items[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < excuses->count && by_step_and_rank(&excuses->items[low], &key) == 0; low++)
        if (excuses->items[low].ns >= ns)
            return true;
    return false;
}

static bool link_explains(const excuse_list *excuses, int32_t step, int32_t rank, int64_t ns)
{
    return is_excused(excuses, step, rank, ns) || is_excused(excuses, step, ANY_RANK, ns);
}

/* Never by more than what it added itself, nor than it came after the others. */
static int64_t called_late_by(const struct blame *blame, enum blame_part part)
{
    return blame->own_ns[part] < blame->late_ns[part] ? blame->own_ns[part] : blame->late_ns[part];
}

static void list_suspects(const struct judge *judge, suspect_list *suspects)
{
    const struct job *job = judge->job;
    excuse_list excuses = {0};

    list_excuses(judge, &excuses);
    array_reserve(suspects, BLAME_PARTS * job->rank_operations.count);
    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        int32_t step = job->operations.items[of->operation].step;
        if (!judge->blames[i].known || of->rank < 0 || step < FIRST_STEP)
            continue;
        for (enum blame_part part = BLAME_HOST; part < BLAME_PARTS; part++) {
            if (link_explains(&excuses, step, of->rank, called_late_by(&judge->blames[i], part)))
                continue;
            *(struct suspect *)array_add(suspects) = (struct suspect){
                .place = judge->blames[i].place,
                .rank = of->rank,
                .step = step,
                .index = (uint32_t)i,
                .part = (uint8_t)part,
                .own_ns = judge->blames[i].own_ns[part],
            };
        }
    }
    array_fini(&excuses);
    array_sort(suspects, by_place);
}

struct noise { /* of waits, beyond their usual length: what so many of a thousand stay below */
    int64_t *values;
    size_t count;
};

/* Of one part, without those of one rank. To be freed. */
static struct noise noise_of(const struct suspect *suspects, size_t count, enum blame_part part, int32_t left_out)
{
    struct noise noise = {.values = array_zeroed((count + 1) * sizeof *noise.values)};

    for (size_t i = 0; i < count; i++)
        if (suspects[i].part == part && suspects[i].rank != left_out)
            noise.values[noise.count++] = suspects[i].own_ns;
    return noise;
}

static int64_t noise_quantile(const struct noise *noise, unsigned per_mille)
{
    int64_t quantile = array_select(noise->values, noise->count, per_mille);

    return quantile > 0 ? quantile : 0;
}

/* Of all the job's waits. */
static int64_t job_noise(const suspect_list *suspects, enum blame_part part, unsigned per_mille)
{
    struct noise noise = noise_of(suspects->items, suspects->count, part, NOBODY);
    int64_t quantile = noise_quantile(&noise, per_mille);

    free(noise.values);
    return quantile;
}

/* Four fifths of the values lie within an eighth of their median: no chance is so even. Sorted by array_median before.
 */
static bool is_tight(const int64_t *own, size_t count, int64_t median)
{
    size_t near = 0;

    for (size_t i = 0; i < count; i++)
        near += llabs(own[i] - median) <= median / 8;
    return near * 5 >= count * 4;
}

/*
 * A streak that makes nobody wait is no fault: mostly, the rank must have been late by two thirds of it (of a
 * host's by half, since its credit is not all that the others wait for), or by one
 * quarter where the streak is tight (a rank may usually be the first to come). Returns by how much it mostly was; 0: by
 * too little.
 */
static int64_t makes_late(const struct judge *judge, const struct suspect *series, size_t count, const int64_t *common)
{
    int64_t *late = array_zeroed(count * sizeof *late);
    int64_t *own = array_zeroed(count * sizeof *own);
    size_t used = 0;

    for (size_t i = 0; i < count; i++)
        if (common[i] != 0) {
            own[used] = series[i].own_ns;
            late[used++] = judge->blames[series[i].index].late_ns[series[i].part];
        }
    int64_t median = array_median(own, used);
    bool host = count > 0 && series[0].part == BLAME_HOST;
    int64_t least = is_tight(own, used, median) ? median / LATE_PARTS : host ? median / 2 : median / 3 * 2;
    int64_t late_ns = array_median(late, used);
    free(late);
    free(own);
    return late_ns > least ? late_ns : 0;
}

/* Where credit came so late that it hid what the GPU did, nothing is said: it neither makes nor breaks a streak. */
static bool is_vague(const struct judge *judge, const struct suspect *suspect, int64_t limit_ns)
{
    int64_t hidden = judge->blames[suspect->index].hidden_ns[suspect->part];

    return suspect->own_ns <= limit_ns && suspect->own_ns + hidden > limit_ns;
}

/* What the rank usually adds at this place when nothing is wrong: a host may be the first or the last by habit. */
static int64_t own_habit(const int64_t *values, size_t count, const int64_t *common, int64_t limit_ns)
{
    int64_t *quiet = array_zeroed(count * sizeof *quiet);
    size_t used = 0;

    for (size_t i = 0; i < count; i++)
        if (common[i] == 0 && values[i] <= limit_ns)
            quiet[used++] = values[i];
    int64_t habit = used < HABIT_STEPS ? 0 : array_median(quiet, used);
    free(quiet);
    return habit;
}

/* In a step in which nobody waited for it, a rank that is slow as ever is no fault either. */
static void mark_one(const struct judge *judge, struct suspect *suspect, int64_t common_ns, int64_t once_ns)
{
    int64_t late = judge->blames[suspect->index].late_ns[suspect->part];

    suspect->streak = common_ns != 0 && late > common_ns / LATE_PARTS;
    suspect->stands_out = suspect->streak || (suspect->own_ns > once_ns && late > once_ns);
    if (suspect->streak)
        suspect->own_ns = common_ns;
    else if (late < suspect->own_ns)
        suspect->own_ns = late;
}

/* One part of one rank at one place, over the steps. */
static void mark_series(const struct judge *judge, struct suspect *series, size_t count, int64_t noise_ns,
                        int64_t once_ns)
{
    int64_t *values = array_zeroed(count * sizeof *values);
    int64_t *common = array_zeroed(count * sizeof *common);
    const struct blame *blame = &judge->blames[series[0].index];
    int64_t streak_ns = larger(noise_ns, array_multiple(blame->spread_ns[series[0].part], judge->spreads));
    size_t kept = 0;

    once_ns = larger(once_ns, streak_ns);
    for (size_t i = 0; i < count; i++)
        if (!is_vague(judge, &series[i], streak_ns)) {
            series[kept] = series[i];
            bool gpu = series[kept].part == BLAME_GPU;
            if (gpu &&
                series[kept].own_ns > streak_ns) /* it waited with credit, so it had not been ready before either */
                series[kept].own_ns += judge->blames[series[i].index].hidden_ns[series[i].part];
            values[kept] = series[kept].own_ns;
            kept++;
        }
    streak_find(values, kept, (struct streak_limits){streak_ns, once_ns}, common);
    int64_t late_ns = makes_late(judge, series, kept, common);
    int64_t habit_ns = series[0].part == BLAME_HOST ? own_habit(values, kept, common, streak_ns) : 0;
    for (size_t i = 0; i < kept; i++) {
        mark_one(judge, &series[i], late_ns != 0 && common[i] != 0 ? common[i] - habit_ns : 0, once_ns);
        if (series[i].streak && series[i].part == BLAME_GPU && late_ns < series[i].own_ns)
            series[i].own_ns = late_ns; /* what it took longer in the shadow of others cost nothing */
        series[i].limit_ns = series[i].streak ? streak_ns : once_ns;
    }
    for (size_t i = kept; i < count; i++)
        series[i].stands_out = false;
    free(values);
    free(common);
}

static size_t series_end(const struct suspect *suspects, size_t count, size_t from)
{
    size_t to = from;

    while (to < count && suspects[to].place == suspects[from].place && suspects[to].rank == suspects[from].rank &&
           suspects[to].part == suspects[from].part)
        to++;
    return to;
}

/*
 * What a single lateness must exceed: chance hardly ever does. Where there are enough waits their tail is drawn out,
 * which falls off like an exponential one or faster; else it is a multiple of what nine of ten stay below.
 */
static int64_t once_limit(const struct suspect *suspects, size_t count, enum blame_part part, int32_t left_out)
{
    struct noise noise = noise_of(suspects, count, part, left_out);
    int64_t usual = noise_quantile(&noise, 900);
    int64_t rare = noise_quantile(&noise, 990);
    free(noise.values);
    int64_t few = array_multiple(usual, part == BLAME_HOST ? HOST_TIMES : ONCE_TIMES);
    int64_t drawn = rare + array_multiple(rare - usual, TAIL_DECADES);

    return count < TAIL_SAMPLES * BLAME_PARTS || few < drawn ? few : drawn;
}

/*
 * What a single lateness at one place of the step must exceed: its waits may vary more than others'. A rank is not
 * measured against itself; among many, it does not matter. Where a place has few waits, those of the whole job count
 * too.
 */
static void limit_place(struct suspect *place, size_t count, int64_t least_ns, int64_t job_ns)
{
    int64_t once_ns = count < TAIL_SAMPLES * BLAME_PARTS ? larger(job_ns, least_ns) : least_ns;
    int64_t all_ns[BLAME_PARTS];
    size_t ranks = 1;

    for (size_t i = 1; i < count; i++)
        ranks += place[i].rank != place[i - 1].rank;
    for (enum blame_part part = BLAME_HOST; part < BLAME_PARTS; part++)
        all_ns[part] = once_limit(place, count, part, NOBODY);
    for (size_t from = 0, to; from < count; from = to) {
        enum blame_part part = place[from].part;
        int64_t limit_ns = ranks > FEW_RANKS ? all_ns[part] : once_limit(place, count, part, place[from].rank);
        to = series_end(place, count, from);
        for (size_t i = from; i < to; i++)
            place[i].limit_ns = larger(once_ns, limit_ns);
    }
}

static void limit_once(const struct judge *judge, suspect_list *suspects)
{
    int64_t job_ns = larger(once_limit(suspects->items, suspects->count, BLAME_HOST, NOBODY),
                            once_limit(suspects->items, suspects->count, BLAME_GPU, NOBODY));

    for (size_t from = 0, to; from < suspects->count; from = to) {
        for (to = from; to < suspects->count && suspects->items[to].place == suspects->items[from].place;)
            to++;
        limit_place(&suspects->items[from], to - from, array_multiple(judge->share_ns, ONCE_SHARES), job_ns);
    }
}

static void mark_suspects(const struct judge *judge, suspect_list *suspects)
{
    int64_t noise_ns[BLAME_PARTS];

    for (enum blame_part part = BLAME_HOST; part < BLAME_PARTS; part++)
        noise_ns[part] = larger(judge->share_ns, job_noise(suspects, part, 800));
    limit_once(judge, suspects);
    for (size_t from = 0, to; from < suspects->count; from = to) {
        struct suspect *series = &suspects->items[from];
        to = series_end(suspects->items, suspects->count, from);
        mark_series(judge, series, to - from, noise_ns[series->part], series->limit_ns);
    }
}

/* The other ranks' median of one time of their records; 0: not known of any. */
static int64_t others_median(const struct job *job, const struct rank_operation *of, size_t member)
{
    const struct operation *operation = &job->operations.items[of->operation];
    int64_t *values = array_zeroed(operation->ranks * sizeof *values);
    size_t count = 0;

    for (size_t i = 0; i < operation->ranks; i++) {
        const struct rank_operation *other = &job->rank_operations.items[operation->first_rank + i];
        uint64_t value;
        memcpy(&value, (const char *)&other->record + member, sizeof value);
        if (other != of && value != 0)
            values[count++] = (int64_t)value;
    }
    int64_t median = array_median(values, count);
    free(values);
    return median;
}

#define OTHERS(job, of, member) others_median((job), (of), offsetof(struct record_rank_operation, member))

/* The longest that another rank's GPU took after it could begin. */
static int64_t others_gpu_wait(const struct judge *judge, const struct rank_operation *of)
{
    const struct operation *operation = &judge->job->operations.items[of->operation];
    int64_t longest = 0;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++)
        if (&judge->job->rank_operations.items[i] != of && judge->blames[i].known)
            longest = larger(longest, judge->blames[i].wait_ns[BLAME_GPU]);
    return longest;
}

static void say_host(const struct judge *judge, struct verdict *verdict, const struct rank_operation *of)
{
    const struct record_rank_operation *record = &of->record;
    int64_t enqueued = OTHERS(judge->job, of, enqueued_ns), ready = OTHERS(judge->job, of, host_ready_ns);
    int64_t late = (int64_t)record->enqueued_ns - enqueued;

    if (enqueued != 0)
        judge_say(verdict, "rank %d enqueued the operation %.1f ms %s the other ranks' median", of->rank,
                  judge_ms(llabs(late)), late < 0 ? "before" : "after");
    else
        judge_say(verdict, "rank %d enqueued the operation, alone of those that were seen,", of->rank);
    if (record->host_ready_ns != 0)
        judge_say(verdict, " and gave its first credit %.1f ms after that",
                  judge_ms((int64_t)(record->host_ready_ns - record->enqueued_ns)));
    if (record->host_ready_ns != 0 && ready != 0)
        judge_say(verdict, ", %.1f ms after theirs", judge_ms((int64_t)record->host_ready_ns - ready));
    if (record->first_data_ns > record->host_ready_ns && record->host_ready_ns != 0)
        judge_say(verdict, "; its first data followed within %.1f ms",
                  judge_ms((int64_t)(record->first_data_ns - record->host_ready_ns)));
}

static void say_gpu(const struct judge *judge, struct verdict *verdict, const struct rank_operation *of,
                    const struct blame *blame)
{
    const struct record_rank_operation *record = &of->record;
    bool after_before = of->before_ns > record->enqueued_ns;

    if (record->host_ready_ns != 0)
        judge_say(verdict, "rank %d gave its first credit %.1f ms after enqueue, but", of->rank,
                  judge_ms((int64_t)(record->host_ready_ns - record->enqueued_ns)));
    else
        judge_say(verdict, "rank %d enqueued in time, but", of->rank);
    judge_say(verdict,
              " its first data came %.1f ms after %s, of which it held credit for %.1f ms; the other ranks' data came "
              "within %.1f ms",
              judge_ms(larger(blame->took_ns[BLAME_GPU], blame->wait_ns[BLAME_GPU] + blame->hidden_ns[BLAME_GPU])),
              after_before ? "its operation before had ended" : "the enqueue", judge_ms(blame->wait_ns[BLAME_GPU]),
              judge_ms(others_gpu_wait(judge, of)));
}

static void judge_rank(struct judge *judge, const struct suspect *suspect)
{
    const struct rank_operation *of = &judge->job->rank_operations.items[suspect->index];
    struct verdict *verdict = array_add(&judge->job->verdicts);

    verdict->class = suspect->part == BLAME_GPU ? VERDICT_GPU_LATE : VERDICT_HOST_LATE;
    verdict->step = suspect->step;
    verdict->rank = suspect->rank;
    verdict->peer_rank = -1;
    verdict->operation = of->operation;
    verdict->size_ns = (uint64_t)suspect->own_ns;
    verdict->limit_ns = (uint64_t)suspect->limit_ns;
    verdict->bound_ns = of->late_bound_ns;
    verdict->confidence = judge_confidence(judge, suspect->own_ns, suspect->limit_ns, of->operation);
    if (suspect->part == BLAME_GPU)
        say_gpu(judge, verdict, of, &judge->blames[suspect->index]);
    else
        say_host(judge, verdict, of);
    judge_say(verdict, " (bound %.3f ms)", judge_ms((int64_t)verdict->bound_ns));
    if (suspect->streak)
        judge_say(verdict, "; so it is in step after step, by %.1f ms mostly", judge_ms(suspect->own_ns));
}

static bool has_verdict(const struct judge *judge, int32_t step, int32_t rank)
{
    for (size_t i = judge->job->verdicts.count; i-- > 0;) {
        const struct verdict *verdict = &judge->job->verdicts.items[i];
        if (verdict->peer_rank < 0 && verdict->step == step && (rank < 0 || verdict->rank == rank))
            return true;
    }
    return false;
}

/* A rank that is late in one way at several operations of a step, each time anew, has one verdict for all. */
static void add_to_verdict(struct judge *judge, const struct suspect *suspect)
{
    enum verdict_class class = suspect->part == BLAME_GPU ? VERDICT_GPU_LATE : VERDICT_HOST_LATE;

    for (size_t i = judge->job->verdicts.count; i-- > 0;) {
        struct verdict *verdict = &judge->job->verdicts.items[i];
        if (verdict->step != suspect->step)
            return;
        if (verdict->rank == suspect->rank && verdict->class == class && verdict->peer_rank < 0)
            verdict->more_ns += (uint64_t)suspect->own_ns;
    }
}

static void keep_standing_out(suspect_list *suspects)
{
    size_t kept = 0;

    for (size_t i = 0; i < suspects->count; i++)
        if (suspects->items[i].stands_out)
            suspects->items[kept++] = suspects->items[i];
    suspects->count = kept;
}

/* A streak is a verdict of its own; a single lateness is one only where nobody else was called late in the step. */
void judge_ranks(struct judge *judge)
{
    suspect_list suspects = {0};

    list_suspects(judge, &suspects);
    mark_suspects(judge, &suspects);
    keep_standing_out(&suspects);
    array_sort(&suspects, by_weight);
    for (size_t i = 0; i < suspects.count; i++) {
        const struct suspect *suspect = &suspects.items[i];
        bool is_new = !has_verdict(judge, suspect->step, suspect->streak ? suspect->rank : -1);
        if (is_new && suspect->own_ns >= judge->share_ns) /* else the others hardly waited for it */
            judge_rank(judge, suspect);
        else if (!is_new && suspect->streak)
            add_to_verdict(judge, suspect);
    }
    array_fini(&suspects);
}
