/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading. Which of its tracks a collective has is found at its first occurrence, and the same from then on: what does
 * not go on with one of them is tried with the next. Invariant: a reading leaves no slot out between its start and the
 * lane's end; only its last call may be cut short there.
 */
#include "correlator/adoption/decoding.h"

#include <stdlib.h>
#include <string.h>

#define CALLS_LEAST 6       /* of a reading that is believed */
#define START_PART  16      /* it begins within this part of the slots: what lies before was asked for before */
#define START_CALLS 4       /* with one of the first of these */
#define DRIFT       32      /* calls of the last so-manieth part of the time may be left when the slots end */
#define STEPS_MAX   1000000 /* comparisons of one lane: a liar may make them as many as it likes */

enum { TRACK_OPEN }; /* else the number of the track, from 1 */

struct decoder {
    const struct decoding *decoding;
    unsigned block;
    size_t *chosen;    /* by set */
    size_t *times;     /* by set: how many calls have it here */
    uint64_t begun_ns; /* when its first call was enqueued */
    unsigned read;     /* calls */
    unsigned steps;
};

static const struct slot *slot_at(const struct decoder *decoder, size_t slot)
{
    return &decoder->decoding->slots->items[slot];
}

static bool ended(const struct decoder *decoder, size_t slot)
{
    return slot == decoder->decoding->slots->count;
}

static bool begins_too_early(const struct decoder *decoder, size_t slot, const struct work *work)
{
    return slot_at(decoder, slot)->first_ns + decoder->decoding->bound_ns < work->enqueued_ns;
}

/*
 * The slots are at their end and the calls from `call` on are left. Whoever takes too many slots for each call has more
 * and more of them left, who takes too few has slots before their calls.
 */
static bool may_end(const struct decoder *decoder, size_t call)
{
    const struct book *book = decoder->decoding->book;
    uint64_t last_ns = book->works.items[book->works.count - 1].enqueued_ns;

    return book->works.items[call].enqueued_ns >= last_ns - (last_ns - decoder->begun_ns) / DRIFT;
}

static bool is_here(const struct decoding *decoding, size_t call)
{
    const struct work *work = &decoding->book->works.items[call];
    bool sends = decoding->direction == LANE_SEND;

    return decoding->book->sets.items[call] >= 0 &&
           work_passes(work, sends ? decoding->own : decoding->peer, sends ? decoding->peer : decoding->own);
}

/* The slots from *slot on are those of the track, as far as there are any; *slot is then behind them. */
static bool follow(struct decoder *decoder, const struct track_set *set, const struct track *track, size_t *slot)
{
    size_t at = *slot;

    for (size_t i = 0; i < track->count && !ended(decoder, at); i++, at++) {
        decoder->steps++;
        if (!slot_at(decoder, at)->whole || slot_at(decoder, at)->bytes != set->sizes.items[track->first + i])
            return false;
    }
    *slot = at;
    return true;
}

/* True when there are too few slots for as many of these as were asked for. */
static bool is_too_long(const struct decoder *decoder, const struct track *track, size_t times)
{
    size_t least = times - times / DRIFT;

    return least > START_CALLS + 1 && (least - START_CALLS - 1) * track->count > decoder->decoding->slots->count;
}

static bool read_on(struct decoder *decoder, size_t slot, size_t call);

/* The call is the first with its collective: each of its tracks in turn. */
static bool choose(struct decoder *decoder, size_t slot, size_t call)
{
    int32_t index = decoder->decoding->book->sets.items[call];
    const struct track_set *set = &decoder->decoding->sets[index];
    const unsigned read = decoder->read;

    for (size_t i = 0; i < set->tracks.count && decoder->steps < STEPS_MAX; i++) {
        size_t end = slot;
        if (set->tracks.items[i].block != decoder->block ||
            is_too_long(decoder, &set->tracks.items[i], decoder->times[index]) ||
            !follow(decoder, set, &set->tracks.items[i], &end))
            continue;
        decoder->chosen[index] = i + 1;
        decoder->read = read + 1;
        if (read_on(decoder, end, call + 1))
            return true;
    }
    decoder->read = read;
    decoder->chosen[index] = TRACK_OPEN;
    return false;
}

static bool read_on(struct decoder *decoder, size_t slot, size_t call)
{
    const struct decoding *decoding = decoder->decoding;

    for (; call < decoding->book->works.count && decoder->steps < STEPS_MAX; call++) {
        if (!is_here(decoding, call))
            continue;
        if (ended(decoder, slot))
            return may_end(decoder, call);
        int32_t index = decoding->book->sets.items[call];
        size_t chosen = decoder->chosen[index];
        if (begins_too_early(decoder, slot, &decoding->book->works.items[call]))
            return false;
        if (chosen == TRACK_OPEN)
            return choose(decoder, slot, call);
        if (!follow(decoder, &decoding->sets[index], &decoding->sets[index].tracks.items[chosen - 1], &slot))
            return false;
        decoder->read++;
    }
    return ended(decoder, slot);
}

/* The slots that a send or receive has, up to its bytes or the lane's end; one without data is one empty slot. */
static bool take_bytes(struct decoder *decoder, uint64_t bytes, size_t *slot)
{
    uint64_t sum = 0;

    do {
        if (!slot_at(decoder, *slot)->whole)
            return false;
        sum += slot_at(decoder, *slot)->bytes;
        decoder->steps++;
        ++*slot;
    } while (sum < bytes && !ended(decoder, *slot));
    return sum == bytes || (sum < bytes && ended(decoder, *slot));
}

static bool read_pairs(struct decoder *decoder, size_t slot, size_t call)
{
    const struct decoding *decoding = decoder->decoding;

    for (; call < decoding->book->works.count; call++) {
        struct work towards;
        if (!work_towards(&towards, &decoding->book->works.items[call], decoding->own, decoding->direction,
                          decoding->peer))
            continue;
        if (ended(decoder, slot))
            return may_end(decoder, call);
        if (begins_too_early(decoder, slot, &towards) || !take_bytes(decoder, towards.bytes, &slot))
            return false;
        decoder->read++;
    }
    return ended(decoder, slot);
}

typedef bool read_fn(struct decoder *decoder, size_t slot, size_t call);

static size_t first_slot(const struct decoder *decoder)
{
    size_t slot = 0;

    while (!ended(decoder, slot) && begins_too_early(decoder, slot, &decoder->decoding->book->works.items[0]))
        slot++;
    return slot;
}

static bool read_any(struct decoder *decoder, read_fn *read)
{
    const struct book *book = decoder->decoding->book;
    size_t first = first_slot(decoder);
    size_t last = first + (decoder->decoding->slots->count - first) / START_PART;

    for (size_t slot = first; !ended(decoder, slot) && slot <= last; slot++)
        for (size_t call = 0; call < book->works.count && call < START_CALLS && decoder->steps < STEPS_MAX; call++) {
            if (begins_too_early(decoder, slot, &book->works.items[call]))
                break;
            decoder->read = 0;
            decoder->begun_ns = book->works.items[call].enqueued_ns;
            memset(decoder->chosen, 0, (decoder->decoding->sets_count + 1) * sizeof *decoder->chosen);
            if (read(decoder, slot, call) && decoder->read >= CALLS_LEAST)
                return true;
        }
    return false;
}

unsigned decoding_try(const struct decoding *decoding)
{
    struct decoder decoder = {.decoding = decoding};
    bool as_ring = false;

    if (decoding->book->works.count == 0 || decoding->slots->count == 0)
        return DECODING_NONE;
    decoder.chosen = array_zeroed((decoding->sets_count + 1) * sizeof *decoder.chosen);
    decoder.times = array_zeroed((decoding->sets_count + 1) * sizeof *decoder.times);
    for (size_t i = 0; i < decoding->book->works.count; i++)
        if (is_here(decoding, i))
            decoder.times[decoding->book->sets.items[i]]++;
    bool as_pairs = read_any(&decoder, read_pairs);
    for (; decoder.block < decoding->channels && !as_ring; decoder.block++)
        as_ring = read_any(&decoder, read_on);
    free(decoder.chosen);
    free(decoder.times);
    return (as_ring ? DECODING_RING : 0) | (as_pairs ? DECODING_PAIRS : 0);
}
