/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which collective is which, for members that were first seen in the middle. All ranks of a communicator call the same
 * collectives in the same order, so a stretch of calls whose numbers are not known is laid against those that have
 * numbers, such that kinds and sizes agree, where the times agree best. Invariant: a stretch is numbered only where the
 * best place is clearly better than the next; what is not gets numbers that nothing else has.
 */
#include "correlator/naming/naming_join.h"

#include <stdlib.h>
#include <string.h>

#define CALLS_COMPARED                                                                                                 \
    64                   /* at once: a stretch is laid down in pieces, since more calls may have been lost within it   \
                          */
#define CALLS_LEAST  4   /* that must agree, if the stretch has as many */
#define CLEARLY      2   /* the next best place must be so many times worse */
#define PLACES       256 /* that are tried, before and after the one that is nearest in time */
#define LEFT_OUT     64  /* numbers for calls that nobody saw, between what was known and what came late */
#define OWN_NUMBERS  0x80000000U
#define NOT_THERE    UINT64_MAX       /* what is there is something else */
#define NOT_COMPARED (UINT64_MAX - 1) /* too little is there */

struct numbered { /* a collective whose number is known */
    uint32_t sequence;
    const struct call *call;
};
typedef ARRAY(struct numbered) numbered_list;

struct stretch { /* calls of one member and boot of its agent, in order, whose numbers are not known */
    struct call **calls;
    size_t count;
};
typedef ARRAY(struct stretch) stretch_list;

struct board {                 /* of one communicator */
    ARRAY(struct call *) late; /* of all stretches, one after the other */
    stretch_list stretches;
    numbered_list numbered;
    uint32_t own; /* numbers given to what fits nowhere */
};

static bool is_collective(const struct call *call)
{
    return call->record.operation != OPERATION_SEND && call->record.operation != OPERATION_RECV;
}

static int by_time(const void *a, const void *b)
{
    const struct call *left = *(struct call *const *)a;
    const struct call *right = *(struct call *const *)b;

    if (left->member != right->member)
        return left->member < right->member ? -1 : 1;
    if (left->stream != right->stream)
        return left->stream < right->stream ? -1 : 1;
    return (left->record.sequence > right->record.sequence) - (left->record.sequence < right->record.sequence);
}

static int by_number(const void *a, const void *b)
{
    uint32_t left = ((const struct numbered *)a)->sequence;
    uint32_t right = ((const struct numbered *)b)->sequence;
    return (left > right) - (left < right);
}

static int by_begin(const void *a, const void *b)
{
    uint64_t left = ((const struct stretch *)a)->calls[0]->enqueued_ns;
    uint64_t right = ((const struct stretch *)b)->calls[0]->enqueued_ns;
    return (left > right) - (left < right);
}

/* The numbers, each once, in order. */
static void sort_numbered(struct board *board)
{
    size_t kept = 0;

    array_sort(&board->numbered, by_number);
    for (size_t i = 0; i < board->numbered.count; i++)
        if (kept == 0 || board->numbered.items[kept - 1].sequence != board->numbered.items[i].sequence)
            board->numbered.items[kept++] = board->numbered.items[i];
    board->numbered.count = kept;
}

static void add_numbered(struct board *board, const struct call *call)
{
    *(struct numbered *)array_add(&board->numbered) = (struct numbered){call->record.sequence, call};
}

static void gather(struct board *board, struct naming *naming, int32_t communicator)
{
    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        for (size_t j = 0; member->communicator == communicator && j < member->calls.count; j++) {
            struct call *call = &naming->calls.items[member->calls.items[j]];
            if ((call->record.flags & CALL_AFTER_LOSS) != 0)
                *(struct call **)array_add(&board->late) = call;
            else if (is_collective(call))
                add_numbered(board, call);
        }
    }
    array_sort(&board->late, by_time);
    sort_numbered(board);
}

static bool same_origin(const struct call *a, const struct call *b)
{
    return a->member == b->member && a->stream == b->stream;
}

static void split_stretches(struct board *board)
{
    for (size_t begin = 0, end; begin < board->late.count; begin = end) {
        struct call **calls = board->late.items + begin;
        for (end = begin;
             end < board->late.count && end - begin < CALLS_COMPARED && same_origin(board->late.items[end], calls[0]);)
            end++;
        *(struct stretch *)array_add(&board->stretches) = (struct stretch){calls, end - begin};
    }
    array_sort(&board->stretches, by_begin);
}

static bool same_collective(const struct call *a, const struct call *b)
{
    return a->record.operation == b->record.operation && a->record.count == b->record.count &&
           a->record.datatype == b->record.datatype && a->record.peer == b->record.peer;
}

static bool is_before_number(const struct numbered *numbered, uint64_t sequence)
{
    return numbered->sequence < sequence;
}

/* Numbers rise with time, but for the little that ranks differ. */
static bool is_before_time(const struct numbered *numbered, uint64_t ns)
{
    return numbered->call->enqueued_ns < ns;
}

static size_t first_not_before(const struct board *board, bool (*is_before)(const struct numbered *, uint64_t),
                               uint64_t value)
{
    size_t low = 0, high = board->numbered.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (is_before(&board->numbered.items[middle], value))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct call *numbered_call(const struct board *board, uint32_t sequence)
{
    size_t at = first_not_before(board, is_before_number, sequence);
    bool found = at < board->numbered.count && board->numbered.items[at].sequence == sequence;
    return found ? board->numbered.items[at].call : NULL;
}

/* The mean distance in time when the stretch's first call is number `first`, or NOT_THERE, NOT_COMPARED. */
static uint64_t distance(const struct board *board, const struct stretch *stretch, uint32_t first)
{
    size_t compared = 0;
    uint64_t sum = 0;

    for (size_t i = 0; i < stretch->count && compared < CALLS_COMPARED; i++) {
        const struct call *call = stretch->calls[i];
        const struct call *other = numbered_call(board, first + (uint32_t)i);
        if (other == NULL)
            continue;
        if (!same_collective(call, other))
            return NOT_THERE;
        sum += call->enqueued_ns > other->enqueued_ns ? call->enqueued_ns - other->enqueued_ns
                                                      : other->enqueued_ns - call->enqueued_ns;
        compared++;
    }
    size_t least = stretch->count < CALLS_LEAST ? stretch->count : CALLS_LEAST;
    return compared < least ? NOT_COMPARED : sum / compared;
}

static void give_numbers(struct board *board, const struct stretch *stretch, uint32_t first)
{
    for (size_t i = 0; i < stretch->count; i++) {
        stretch->calls[i]->record.sequence = first + (uint32_t)i;
        add_numbered(board, stretch->calls[i]);
    }
    sort_numbered(board);
}

struct fit {
    uint32_t first;
    uint64_t best; /* NOT_COMPARED: nothing to compare with */
    uint64_t next;
};

static struct fit find_place(const struct board *board, const struct stretch *stretch)
{
    struct fit fit = {.best = NOT_COMPARED, .next = NOT_COMPARED};
    size_t near = first_not_before(board, is_before_time, stretch->calls[0]->enqueued_ns);
    if (board->numbered.count == 0)
        return fit;
    near = near == board->numbered.count ? near - 1 : near;
    const uint32_t middle = board->numbered.items[near].sequence;
    for (uint32_t i = 0; i < 2 * PLACES; i++) {
        const uint32_t candidate = middle - PLACES + i;
        const uint64_t here = distance(board, stretch, candidate);
        if (here < fit.best) {
            fit.next = fit.best;
            fit.best = here;
            fit.first = candidate;
        } else if (here < fit.next) {
            fit.next = here;
        }
    }
    return fit;
}

/* The number that follows the member's own last call, if that has one. */
static bool goes_on(const struct board *board, const struct stretch *stretch, uint32_t *first)
{
    if (stretch->calls == board->late.items || !same_origin(stretch->calls[-1], stretch->calls[0]) ||
        stretch->calls[-1]->record.sequence >= OWN_NUMBERS)
        return false;
    *first = stretch->calls[-1]->record.sequence + 1;
    return true;
}

/* After all that is known: nobody else saw what this stretch saw. */
static bool is_beyond(const struct board *board, const struct stretch *stretch)
{
    for (size_t i = 0; i < board->numbered.count; i++)
        if (board->numbered.items[i].call->enqueued_ns >= stretch->calls[0]->enqueued_ns)
            return false;
    return true;
}

static uint32_t beyond(const struct board *board)
{
    const size_t count = board->numbered.count;
    return (count == 0 ? 0 : board->numbered.items[count - 1].sequence + 1) + LEFT_OUT;
}

static bool choose_number(const struct board *board, const struct stretch *stretch, uint32_t *first)
{
    const bool continued = goes_on(board, stretch, first);
    if (!continued && is_beyond(board, stretch)) {
        *first = beyond(board);
        return true;
    }
    const struct fit fit = find_place(board, stretch);
    const uint64_t here = continued ? distance(board, stretch, *first) : NOT_THERE;
    if (here == NOT_COMPARED || (here != NOT_THERE && here / CLEARLY <= fit.best))
        return true;
    *first = fit.first;
    return fit.best != NOT_COMPARED && fit.next > CLEARLY * fit.best;
}

static void number_stretch(struct board *board, const struct stretch *stretch)
{
    uint32_t first;

    if (choose_number(board, stretch, &first)) {
        give_numbers(board, stretch, first);
        return;
    }
    for (size_t i = 0; i < stretch->count; i++)
        stretch->calls[i]->record.sequence = OWN_NUMBERS + board->own++;
}

/* Of point-to-point calls neither end may know how many there were: they match none. */
static void set_apart(struct board *board)
{
    size_t kept = 0;

    for (size_t i = 0; i < board->late.count; i++) {
        struct call *call = board->late.items[i];
        if (is_collective(call))
            board->late.items[kept++] = call;
        else
            call->record.sequence = OWN_NUMBERS + board->own++;
    }
    board->late.count = kept;
}

static void number_communicator(struct naming *naming, int32_t communicator)
{
    struct board board = {0};

    gather(&board, naming, communicator);
    set_apart(&board);
    split_stretches(&board);
    for (size_t i = 0; i < board.stretches.count; i++)
        number_stretch(&board, &board.stretches.items[i]);
    array_fini(&board.late);
    array_fini(&board.stretches);
    array_fini(&board.numbered);
}

static bool has_late_calls(const struct naming *naming, int32_t communicator)
{
    for (size_t i = 0; i < naming->calls.count; i++)
        if ((naming->calls.items[i].record.flags & CALL_AFTER_LOSS) != 0 &&
            naming->members.items[naming->calls.items[i].member].communicator == communicator)
            return true;
    return false;
}

void naming_number(struct naming *naming)
{
    for (size_t i = 0; i < naming->communicators.count; i++)
        if (has_late_calls(naming, (int32_t)i))
            number_communicator(naming, (int32_t)i);
}
