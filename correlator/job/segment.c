/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows over a long job. Invariant: a window's records, and what of its steps goes into the job, follow from the
 * records alone; a closed window is judged again only when a record or the evidence in its time has changed.
 */
#include "correlator/job/segment.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/job/streak.h"
#include "correlator/job/transport.h"
#include "correlator/verdict/evidence_slice.h"

#define PARTS                                                                                                          \
    4 /* of a window: such a part, and what a streak takes, lies before and behind the steps taken from it             \
       */

struct carried { /* a record that the next window has too */
    size_t position;
    int32_t step;  /* of the job, where its operation is in one */
    bool is_known; /* its operation is in the job already */
};
typedef ARRAY(struct carried) carried_list;

struct local_row {    /* of a number beside a verdict, in the window's slice of the evidence */
    uint32_t verdict; /* of the job */
    uint32_t number;
    int32_t first;
    int32_t last;
};

struct segment {          /* a closed window */
    carried_list carried; /* into it */
    size_t begin;         /* its own records lie behind those */
    size_t end;
    uint64_t records_digest; /* with whose they are */
    uint64_t evidence_digest;
    uint64_t from_ns;
    uint64_t to_ns;
    ARRAY(struct local_row) rows;
    struct extent after; /* of the job */
};

struct trial { /* a window that had too few steps */
    size_t count;
    uint64_t records_digest;
    uint64_t evidence_digest;
    uint64_t from_ns;
    uint64_t to_ns;
};

struct segments {
    size_t records;
    ARRAY(struct segment) closed;
    carried_list carried; /* into the window behind these */
    size_t begin;
    struct trial tried;
    ARRAY(int32_t) rank_operations; /* by position, -1 = in none */
    size_t judged;
    struct extent same;
    uint64_t ranks_digest;
};

struct run {
    struct segments *segments;
    struct job *job;
    struct job_ranks ranks;
    const struct evidence *evidence;
    const struct segment_records *records;
};

struct window {
    size_t count;
    uint64_t from_ns;
    uint64_t to_ns;
    struct job job;
    struct evidence_slice slice; /* empty where there is no evidence */
    size_t first_step;           /* of the window: those before are in the job */
    size_t last_step;            /* behind it: those come with the next window */
    size_t carried_step;         /* from this one on they are in the next window too */
};

struct segments *segments_create(size_t records)
{
    struct segments *segments = array_zeroed(sizeof *segments);

    segments->records = records != 0 ? records : SIZE_MAX / 2;
    return segments;
}

static void segment_fini(struct segment *segment)
{
    array_fini(&segment->carried);
    array_fini(&segment->rows);
}

void segments_forget(struct segments *segments)
{
    for (size_t i = 0; i < segments->closed.count; i++)
        segment_fini(&segments->closed.items[i]);
    segments->closed.count = 0;
    segments->carried.count = 0;
    segments->begin = 0;
    segments->tried = (struct trial){0};
    segments->rank_operations.count = 0;
}

void segments_destroy(struct segments **segments)
{
    if (*segments == NULL)
        return;
    segments_forget(*segments);
    array_fini(&(*segments)->closed);
    array_fini(&(*segments)->carried);
    array_fini(&(*segments)->rank_operations);
    free(*segments);
    *segments = NULL;
}

/* ---- which records ---- */

static size_t position_of(const carried_list *carried, size_t begin, size_t index)
{
    return index < carried->count ? carried->items[index].position : begin + index - carried->count;
}

static size_t index_at(const struct segment_records *records, size_t position)
{
    return records->order == NULL ? position : records->order[position - records->base];
}

static const struct record_rank_operation *record_at(const struct segment_records *records, size_t position)
{
    return &records->items[index_at(records, position)];
}

static size_t first_position(const carried_list *carried, size_t begin)
{
    return carried->count > 0 ? carried->items[0].position : begin;
}

static uint64_t digest_record(uint64_t hash, const struct record_rank_operation *record)
{
    const char *bytes = (const char *)record;

    for (size_t at = 0; at < sizeof *record; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        hash = hash_number(hash, word);
    }
    return hash;
}

static uint64_t digest_records(const struct run *run, const carried_list *carried, size_t begin, size_t count)
{
    uint64_t hash = hash_number(HASH_START, run->ranks.digest);

    for (size_t i = 0; i < count; i++)
        hash = digest_record(hash, record_at(run->records, position_of(carried, begin, i)));
    return hash;
}

/* ---- a window ---- */

static uint64_t last_ns(const struct record_rank_operation *record)
{
    return record->end_ns > record->enqueued_ns ? record->end_ns : record->enqueued_ns;
}

/* `is_open`: nothing is behind it. */
static void judge_window(struct run *run, struct window *window, size_t count, bool is_open)
{
    const struct segments *segments = run->segments;
    struct record_rank_operation *records = array_zeroed(count * sizeof *records);
    const struct evidence *evidence = NULL;

    memset(window, 0, sizeof *window);
    window->count = count;
    window->from_ns = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        records[i] = *record_at(run->records, position_of(&segments->carried, segments->begin, i));
        window->from_ns = records[i].enqueued_ns < window->from_ns ? records[i].enqueued_ns : window->from_ns;
        window->to_ns = last_ns(&records[i]) > window->to_ns ? last_ns(&records[i]) : window->to_ns;
    }
    if (is_open)
        window->to_ns = UINT64_MAX;
    if (run->evidence != NULL) {
        evidence_slice_init(&window->slice, run->evidence, window->from_ns, window->to_ns);
        evidence = &window->slice.evidence;
    }
    job_take(&window->job, run->ranks, evidence, &records, count);
    run->segments->judged++;
}

static void window_fini(struct window *window)
{
    job_fini(&window->job);
    evidence_slice_fini(&window->slice);
}

static const struct operation *operation_of(const struct job *job, size_t record)
{
    return &job->operations.items[job->rank_operations.items[job->rank_operation_of.items[record]].operation];
}

/* The first step of the window that the job does not have: operations that both have tell. */
static size_t find_first_step(const struct run *run, const struct window *window)
{
    const carried_list *carried = &run->segments->carried;
    const struct job *job = run->job;
    int64_t *offsets = array_zeroed((carried->count + 1) * sizeof *offsets);
    size_t count = 0, first = 0;

    for (size_t i = 0; i < carried->count; i++) {
        int32_t step = operation_of(&window->job, i)->step;
        if (carried->items[i].is_known && carried->items[i].step >= 0 && step >= 0)
            offsets[count++] = carried->items[i].step - step;
    }
    int64_t own = (int64_t)job->steps.count - array_median(offsets, count);
    if (count > 0)
        first = own < 0 ? 0 : (size_t)own;
    while (count == 0 && job->steps.count > 0 && first < window->job.steps.count &&
           window->job.steps.items[first].start_ns <= job->steps.items[job->steps.count - 1].start_ns)
        first++;
    free(offsets);
    return first < window->job.steps.count ? first : window->job.steps.count;
}

/* Of a full window: which steps are the job's, and from which one on the next window has them too. */
static bool find_cut(const struct run *run, struct window *window)
{
    size_t steps = window->job.steps.count, part = steps / PARTS < STREAK_STEPS ? STREAK_STEPS : steps / PARTS;

    window->first_step = find_first_step(run, window);
    if (steps < SEGMENT_STEPS)
        return false;
    window->last_step = steps - part;
    window->carried_step = window->last_step - part;
    return window->last_step > window->first_step;
}

static uint64_t step_begin(const struct job *job, size_t step)
{
    for (size_t i = 0; i < job->operations.count; i++)
        if (job->operations.items[i].step == (int32_t)step)
            return job->operations.items[i].start_ns;
    return UINT64_MAX;
}

static bool is_carried(const struct window *window, const struct operation *operation, uint64_t begin_ns)
{
    return operation->step >= 0 ? (size_t)operation->step >= window->carried_step : operation->start_ns >= begin_ns;
}

static bool is_taken(const struct window *window, const struct operation *operation)
{
    return operation->step >= 0 && (size_t)operation->step >= window->first_step &&
           (size_t)operation->step < window->last_step;
}

/* By the window's operations: 1 = it is in the job already. To be freed. */
static uint8_t *find_known(const struct run *run, const struct window *window)
{
    const carried_list *carried = &run->segments->carried;
    uint8_t *known = array_zeroed(window->job.operations.count + 1);

    for (size_t i = 0; i < carried->count; i++)
        if (carried->items[i].is_known)
            known[operation_of(&window->job, i) - window->job.operations.items] = 1;
    return known;
}

static int by_position(const void *a, const void *b)
{
    size_t left = ((const struct carried *)a)->position, right = ((const struct carried *)b)->position;

    return (left > right) - (left < right);
}

/* What the next window has too. */
static void carry(const struct run *run, const struct window *window, const uint8_t *known, carried_list *next)
{
    const struct segments *segments = run->segments;
    uint64_t begin_ns = step_begin(&window->job, window->carried_step);
    int32_t offset = (int32_t)run->job->steps.count - (int32_t)window->first_step;

    for (size_t i = 0; i < window->count; i++) {
        const struct operation *operation = operation_of(&window->job, i);
        bool is_known = known[operation - window->job.operations.items] != 0 || is_taken(window, operation);
        if (is_carried(window, operation, begin_ns))
            *(struct carried *)array_add(next) =
                (struct carried){position_of(&segments->carried, segments->begin, i),
                                 operation->step < 0 ? -1 : operation->step + offset, is_known};
    }
    array_sort(next, by_position);
}

/* Notes where each record went. */
static void note_records(struct run *run, const struct window *window, const int32_t *rank_operations)
{
    struct segments *segments = run->segments;
    size_t end = segments->begin + window->count - segments->carried.count;

    if (!run->records->tells)
        return;
    while (segments->rank_operations.count < end)
        *(int32_t *)array_add(&segments->rank_operations) = -1;
    for (size_t i = 0; i < window->count; i++) {
        int32_t to = rank_operations[window->job.rank_operation_of.items[i]];
        if (to >= 0)
            segments->rank_operations.items[position_of(&segments->carried, segments->begin, i)] = to;
    }
}

/* Puts the window's part into the job. `leaves` as stitch.h says. */
static void add_window(struct run *run, struct window *window, const uint8_t *leaves, bool is_open)
{
    int32_t *moved = array_zeroed((window->job.rank_operations.count + 1) * sizeof *moved);
    struct stitch stitch = {.job = run->job,
                            .window = &window->job,
                            .first_step = window->first_step,
                            .last_step = window->last_step,
                            .leaves = leaves,
                            .rank_operation = moved,
                            .is_open = is_open};

    stitch_window(&stitch);
    note_records(run, window, moved);
    free(moved);
}

/* ---- rows of the evidence ---- */

static void keep_rows(const struct job *job, struct segment *segment, size_t first_verdict)
{
    for (size_t i = first_verdict; i < job->verdicts.count; i++)
        for (size_t j = 0; j < job->verdicts.items[i].numbers.count; j++) {
            const struct verdict_evidence *number = &job->verdicts.items[i].numbers.items[j];
            *(struct local_row *)array_add(&segment->rows) =
                (struct local_row){(uint32_t)i, (uint32_t)j, number->first_row, number->last_row};
        }
}

static void set_rows(struct job *job, const struct segment *segment, const struct evidence_slice *slice)
{
    for (size_t i = 0; i < segment->rows.count; i++) {
        const struct local_row *row = &segment->rows.items[i];
        struct verdict_evidence *number = &job->verdicts.items[row->verdict].numbers.items[row->number];
        number->first_row = evidence_slice_row(slice, number->source, row->first);
        number->last_row = evidence_slice_row(slice, number->source, row->last);
    }
}

static int32_t transport_row(const struct job *job, int32_t rank, int32_t step)
{
    size_t low = 0, high = job->transports.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct transport *transport = &job->transports.items[middle];
        if (transport->rank < rank || (transport->rank == rank && transport->step < step))
            low = middle + 1;
        else
            high = middle;
    }
    return low < job->transports.count ? (int32_t)low : -1;
}

static void set_transports(struct job *job)
{
    job->transports.count = 0;
    transport_find(job);
    for (size_t i = 0; i < job->verdicts.count; i++)
        for (size_t j = 0; j < job->verdicts.items[i].numbers.count; j++) {
            struct verdict_evidence *number = &job->verdicts.items[i].numbers.items[j];
            if (number->source == VERDICT_OF_TRANSPORT)
                number->first_row = number->last_row = transport_row(job, number->rank, job->verdicts.items[i].step);
        }
}

/* ---- what is known from the run before ---- */

static uint64_t digest_evidence(const struct run *run, struct evidence_slice *slice, uint64_t from_ns, uint64_t to_ns)
{
    if (run->evidence == NULL)
        return 0;
    evidence_slice_init(slice, run->evidence, from_ns, to_ns);
    return evidence_slice_digest(slice);
}

static bool has_changed(const struct run *run, const struct segment *segment)
{
    size_t count = segment->carried.count + segment->end - segment->begin;

    if (run->segments->ranks_digest != run->ranks.digest)
        return true;
    return segment->end > run->records->same &&
           digest_records(run, &segment->carried, segment->begin, count) != segment->records_digest;
}

enum check { CHECK_SAME, CHECK_CHANGED, CHECK_NOT_AT_HAND };

static enum check check_segment(const struct run *run, const struct segment *segment)
{
    const struct segment_records *records = run->records;
    bool at_hand = first_position(&segment->carried, segment->begin) >= records->base;
    struct evidence_slice slice = {0};

    if (segment->end > records->base + records->count)
        return at_hand ? CHECK_CHANGED : CHECK_NOT_AT_HAND;
    if (segment->end > records->same && !at_hand)
        return CHECK_NOT_AT_HAND;
    bool same = digest_evidence(run, &slice, segment->from_ns, segment->to_ns) == segment->evidence_digest &&
                !has_changed(run, segment);
    if (same)
        set_rows(run->job, segment, &slice);
    evidence_slice_fini(&slice);
    return same ? CHECK_SAME : at_hand ? CHECK_CHANGED : CHECK_NOT_AT_HAND;
}

/* Leaves of the job what the first windows said, `good` of them. */
static void go_back(struct run *run, size_t good)
{
    struct segments *segments = run->segments;

    if (good < segments->closed.count) {
        struct segment *bad = &segments->closed.items[good];
        carried_list carried = bad->carried;
        bad->carried = segments->carried;
        segments->carried = carried;
        segments->begin = bad->begin;
    }
    for (size_t i = good; i < segments->closed.count; i++)
        segment_fini(&segments->closed.items[i]);
    segments->closed.count = good;
    segments->same = good == 0 ? (struct extent){0} : segments->closed.items[good - 1].after;
    if (segments->rank_operations.count > segments->begin)
        segments->rank_operations.count = segments->begin;
    for (size_t i = 0; i < segments->carried.count && run->records->tells; i++)
        if (!segments->carried.items[i].is_known)
            segments->rank_operations.items[segments->carried.items[i].position] = -1;
    if (good == 0)
        job_fini(run->job);
    extent_cut(run->job, &segments->same);
}

/* False: see segments_run. */
static bool check_past(struct run *run)
{
    struct segments *segments = run->segments;
    size_t good = 0;
    enum check check = CHECK_SAME;

    while (good < segments->closed.count && (check = check_segment(run, &segments->closed.items[good])) == CHECK_SAME)
        good++;
    if (check == CHECK_NOT_AT_HAND || first_position(&segments->carried, segments->begin) < run->records->base)
        return false;
    go_back(run, good);
    segments->ranks_digest = run->ranks.digest;
    return true;
}

/* ---- the windows of a run ---- */

static void close_window(struct run *run, struct window *window)
{
    struct segments *segments = run->segments;
    struct evidence_slice slice = {0};
    uint8_t *known = find_known(run, window);
    carried_list next = {0};
    size_t verdicts = run->job->verdicts.count;
    uint64_t begin_ns = step_begin(&window->job, window->carried_step);

    carry(run, window, known, &next);
    for (size_t i = 0; i < window->job.operations.count; i++) {
        const struct operation *operation = &window->job.operations.items[i];
        known[i] |= is_carried(window, operation, begin_ns) && !is_taken(window, operation);
    }
    uint64_t digest = digest_records(run, &segments->carried, segments->begin, window->count);
    add_window(run, window, known, false);
    struct segment *segment = array_add(&segments->closed);
    *segment = (struct segment){.carried = segments->carried,
                                .begin = segments->begin,
                                .end = segments->begin + window->count - segments->carried.count,
                                .records_digest = digest,
                                .from_ns = window->from_ns,
                                .to_ns = window->to_ns,
                                .after = extent_of(run->job)};
    segment->evidence_digest = digest_evidence(run, &slice, segment->from_ns, segment->to_ns);
    keep_rows(run->job, segment, verdicts);
    set_rows(run->job, segment, &slice);
    evidence_slice_fini(&slice);
    segments->carried = next;
    segments->begin = segment->end;
    segments->tried = (struct trial){0};
    free(known);
}

/* Windows of so many records had too few steps: the same records have as few again. */
static bool was_tried(const struct run *run)
{
    const struct segments *segments = run->segments;
    const struct trial *tried = &segments->tried;
    size_t end = segments->begin + tried->count - segments->carried.count;
    struct evidence_slice slice = {0};

    if (tried->count == 0 || end > run->records->base + run->records->count)
        return false;
    bool same = digest_evidence(run, &slice, tried->from_ns, tried->to_ns) == tried->evidence_digest &&
                digest_records(run, &segments->carried, segments->begin, tried->count) == tried->records_digest;
    evidence_slice_fini(&slice);
    return same;
}

static void note_trial(struct run *run, const struct window *window)
{
    struct segments *segments = run->segments;
    struct evidence_slice slice = {0};

    segments->tried = (struct trial){
        .count = window->count,
        .from_ns = window->from_ns,
        .to_ns = window->to_ns,
        .records_digest = digest_records(run, &segments->carried, segments->begin, window->count),
        .evidence_digest = digest_evidence(run, &slice, window->from_ns, window->to_ns),
    };
    evidence_slice_fini(&slice);
}

/* Closes the next window, if there is more than fits into it. */
static bool close_next(struct run *run)
{
    struct segments *segments = run->segments;
    size_t there = segments->carried.count + run->records->base + run->records->count - segments->begin;
    size_t size = segments->records > 2 * segments->carried.count ? segments->records : 2 * segments->carried.count;
    bool is_closed = false;

    if (size < there && was_tried(run))
        size = segments->tried.count + segments->tried.count / PARTS + 1;
    for (; size < there && !is_closed; size += size / PARTS + 1) {
        struct window window;
        judge_window(run, &window, size, false);
        is_closed = find_cut(run, &window);
        if (is_closed)
            close_window(run, &window);
        else
            note_trial(run, &window);
        window_fini(&window);
    }
    return is_closed;
}

static void judge_open(struct run *run)
{
    struct segments *segments = run->segments;
    size_t count = segments->carried.count + run->records->base + run->records->count - segments->begin;
    struct segment rows = {0};
    struct window window;
    size_t verdicts = run->job->verdicts.count;

    judge_window(run, &window, count, true);
    window.first_step = find_first_step(run, &window);
    window.last_step = window.job.steps.count;
    uint8_t *known = find_known(run, &window);
    add_window(run, &window, known, true);
    keep_rows(run->job, &rows, verdicts);
    set_rows(run->job, &rows, &window.slice);
    segment_fini(&rows);
    free(known);
    window_fini(&window);
}

/* All in one window: nothing is cut. */
static void judge_whole(struct run *run)
{
    const struct segment_records *records = run->records;
    struct record_rank_operation *copies = array_zeroed((records->count + 1) * sizeof *copies);
    int32_t *moved = array_zeroed((records->count + 1) * sizeof *moved);

    for (size_t i = 0; i < records->count; i++)
        copies[i] = *record_at(records, i);
    job_take(run->job, run->ranks, run->evidence, &copies, records->count);
    for (size_t i = 0; i < records->count; i++)
        moved[index_at(records, i)] = run->job->rank_operation_of.items[i];
    if (records->count > 0)
        memcpy(run->job->rank_operation_of.items, moved, records->count * sizeof *moved);
    free(moved);
    run->segments->judged++;
}

static void tell_rank_operations(struct run *run)
{
    struct job *job = run->job;
    const struct segment_records *records = run->records;

    if (!records->tells)
        return;
    array_reserve(&job->rank_operation_of, records->count);
    job->rank_operation_of.count = records->count;
    for (size_t i = 0; i < records->count; i++)
        job->rank_operation_of.items[index_at(records, i)] = run->segments->rank_operations.items[i];
}

bool segments_run(struct segments *segments, struct job *job, struct job_ranks ranks, const struct evidence *evidence,
                  const struct segment_records *records)
{
    struct run run = {segments, job, ranks, evidence, records};

    if (!check_past(&run))
        return false;
    job->ranks = ranks;
    job->evidence = evidence;
    segments->judged = 0;
    while (close_next(&run))
        ;
    if (segments->closed.count == 0) {
        judge_whole(&run);
        return true;
    }
    judge_open(&run);
    set_transports(job);
    tell_rank_operations(&run);
    return true;
}

size_t segments_needed_from(const struct segments *segments)
{
    const struct segment *last =
        segments->closed.count == 0 ? NULL : &segments->closed.items[segments->closed.count - 1];

    return last == NULL ? 0 : first_position(&last->carried, last->begin);
}

size_t segments_size(const struct segments *segments)
{
    return segments->records;
}

size_t segments_judged(const struct segments *segments)
{
    return segments->judged;
}

struct extent segments_same(const struct segments *segments)
{
    return segments->same;
}
