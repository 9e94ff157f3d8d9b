/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rotation. Time alone does not give the order: what waits behind its own queue pair's earlier slot begins after what
 * was sent later over an idle one. Turns do, but only as long as nothing was missed. So pieces are taken in runs,
 * between outages and within them. Invariant: each piece becomes part of exactly one slot.
 */
#include "correlator/node/rotation.h"

#include <stdlib.h>

#define LOOK_SLOTS 64 /* of a run, to find how slots are dealt and whose turn it is */

struct weaver {
    const struct rotation *rotation;
    slot_list *slots;
    size_t parts;
    size_t groups; /* of `parts` strands that take turns */
    size_t taken;  /* slots of this run */
    uint64_t run;
    size_t *at;    /* the next piece of each strand */
    size_t *to;    /* its end of the run */
    size_t *trial; /* of each group */
};

/* Runs are numbered: 0 before the first outage, 1 in it, 2 behind it, 3 in the second one, ... */
static uint64_t run_of(const outage_list *outages, uint64_t at_ns)
{
    size_t low = 0;
    size_t high = outages->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (outages->items[middle].from_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return 2 * low - (low > 0 && at_ns <= outages->items[low - 1].to_ns);
}

static const struct piece *piece_at(const struct weaver *weaver, size_t strand, size_t index)
{
    return index < weaver->to[strand] ? &weaver->rotation->strands[strand].pieces.items[index] : NULL;
}

static void weaver_init(struct weaver *weaver, const struct rotation *rotation, slot_list *slots)
{
    *weaver = (struct weaver){.rotation = rotation, .slots = slots};
    weaver->at = array_zeroed(rotation->count * sizeof *weaver->at);
    weaver->to = array_zeroed(rotation->count * sizeof *weaver->to);
    weaver->trial = array_zeroed(rotation->count * sizeof *weaver->trial);
}

static void weaver_fini(struct weaver *weaver)
{
    free(weaver->at);
    free(weaver->to);
    free(weaver->trial);
}

static void deal(struct weaver *weaver, size_t parts)
{
    weaver->parts = parts;
    weaver->groups = weaver->rotation->count / parts;
}

/* Goes on to the next run; false when there is none. */
static bool next_run(struct weaver *weaver)
{
    const struct rotation *rotation = weaver->rotation;
    uint64_t run = UINT64_MAX;

    for (size_t i = 0; i < rotation->count; i++) {
        const struct strand *strand = &rotation->strands[i];
        weaver->at[i] = weaver->to[i];
        if (weaver->at[i] == strand->pieces.count)
            continue;
        uint64_t here = run_of(rotation->outages, strand->pieces.items[weaver->at[i]].slot.first_ns);
        run = here < run ? here : run;
    }
    for (size_t i = 0; i < rotation->count; i++) {
        const struct strand *strand = &rotation->strands[i];
        while (weaver->to[i] < strand->pieces.count &&
               run_of(rotation->outages, strand->pieces.items[weaver->to[i]].slot.first_ns) <= run)
            weaver->to[i]++;
    }
    weaver->run = run;
    weaver->taken = 0;
    return run != UINT64_MAX;
}

/* The pieces of a group that are `ahead` behind the next ones are together what their immediate data says. */
static bool is_slot(const struct weaver *weaver, size_t group, size_t ahead)
{
    uint64_t bytes = 0;
    uint32_t immediate = 0;

    for (size_t i = group * weaver->parts; i < (group + 1) * weaver->parts; i++) {
        const struct piece *piece = piece_at(weaver, i, weaver->at[i] + ahead);
        if (piece == NULL || !piece->ended || (i % weaver->parts > 0 && piece->immediate != immediate))
            return false;
        immediate = piece->immediate;
        bytes += piece->slot.bytes;
    }
    return strand_says(immediate, bytes);
}

/* How many pieces of the run are parts of slots; empty slots are left out, since they fit anyhow. */
static size_t explained(const struct weaver *weaver)
{
    size_t pieces = 0;

    for (size_t group = 0; group < weaver->groups; group++)
        for (size_t ahead = 0; ahead < LOOK_SLOTS; ahead++) {
            size_t first = group * weaver->parts;
            const struct piece *piece = piece_at(weaver, first, weaver->at[first] + ahead);
            if (piece == NULL)
                break;
            if (piece->immediate != 0 && is_slot(weaver, group, ahead))
                pieces += weaver->parts;
        }
    return pieces;
}

unsigned rotation_parts(const struct rotation *rotation)
{
    struct weaver weaver;
    size_t *pieces = array_zeroed((rotation->count + 1) * sizeof *pieces);
    size_t best = 0;

    weaver_init(&weaver, rotation, NULL);
    while (next_run(&weaver))
        for (size_t parts = 1; parts <= rotation->count; parts++) {
            if (rotation->count % parts != 0)
                continue;
            deal(&weaver, parts);
            pieces[parts] += explained(&weaver);
        }
    for (size_t parts = 1; parts <= rotation->count; parts++)
        if (pieces[parts] > pieces[best])
            best = parts;
    weaver_fini(&weaver);
    free(pieces);
    return (unsigned)best;
}

/* When the first piece of a group that is `ahead` behind the next ones began; UINT64_MAX when there is none. */
static uint64_t begun_ns(const struct weaver *weaver, size_t group, size_t ahead)
{
    uint64_t earliest = UINT64_MAX;

    for (size_t i = group * weaver->parts; i < (group + 1) * weaver->parts; i++) {
        const struct piece *piece = piece_at(weaver, i, weaver->at[i] + ahead);
        if (piece != NULL && piece->slot.first_ns < earliest)
            earliest = piece->slot.first_ns;
    }
    return earliest;
}

static size_t earliest_group(const struct weaver *weaver)
{
    size_t best = 0;

    for (size_t group = 1; group < weaver->groups; group++)
        if (begun_ns(weaver, group, 0) < begun_ns(weaver, best, 0))
            best = group;
    return best;
}

/* Goes round from `group` on, until it is the turn of one that has nothing: by how much do times fall, all together? */
static uint64_t fallen_ns(struct weaver *weaver, size_t group, size_t *slots)
{
    uint64_t before = 0;
    uint64_t fallen = 0;

    for (size_t i = 0; i < weaver->groups; i++)
        weaver->trial[i] = 0;
    for (*slots = 0; *slots < LOOK_SLOTS; ++*slots) {
        uint64_t now = begun_ns(weaver, group, weaver->trial[group]++);
        if (now == UINT64_MAX)
            break;
        fallen += now < before ? before - now : 0;
        before = now;
        group = (group + 1) % weaver->groups;
    }
    return fallen;
}

/* Whose turn it is at the beginning of a run: with it the turns go on longest, and the times fall least. */
static size_t first_turn(struct weaver *weaver)
{
    size_t best = 0;
    size_t best_slots = 0;
    uint64_t best_fallen = UINT64_MAX;

    if (weaver->run == 0 && weaver->rotation->seen_from_start)
        return 0;
    for (size_t group = 0; group < weaver->groups; group++) {
        size_t slots;
        uint64_t fallen = fallen_ns(weaver, group, &slots);
        if (slots < best_slots || (slots == best_slots && fallen >= best_fallen))
            continue;
        best = group;
        best_slots = slots;
        best_fallen = fallen;
    }
    return best;
}

static size_t earliest_strand(const struct weaver *weaver, size_t group)
{
    size_t first = group * weaver->parts;
    uint64_t earliest_ns = begun_ns(weaver, group, 0);

    while (piece_at(weaver, first, weaver->at[first]) == NULL ||
           piece_at(weaver, first, weaver->at[first])->slot.first_ns != earliest_ns)
        first++;
    return first;
}

/*
 * Behind an outage a strand can begin with the part of a slot whose other parts were missed: then the parts lie closer
 * together without it, with the piece behind it.
 */
static bool begins_with_rest(const struct weaver *weaver, size_t group)
{
    size_t first = earliest_strand(weaver, group);
    const struct piece *rest = piece_at(weaver, first, weaver->at[first]);
    const struct piece *next = piece_at(weaver, first, weaver->at[first] + 1);
    uint64_t others_first = UINT64_MAX;
    uint64_t others_last = 0;

    if (weaver->parts == 1 || weaver->run == 0 || (weaver->run % 2 == 0 && weaver->taken > weaver->groups) ||
        next == NULL)
        return false;
    for (size_t i = group * weaver->parts; i < (group + 1) * weaver->parts; i++) {
        const struct piece *piece = piece_at(weaver, i, weaver->at[i]);
        if (i == first || piece == NULL)
            continue;
        others_first = piece->slot.first_ns < others_first ? piece->slot.first_ns : others_first;
        others_last = piece->slot.first_ns > others_last ? piece->slot.first_ns : others_last;
    }
    uint64_t from = next->slot.first_ns < others_first ? next->slot.first_ns : others_first;
    uint64_t to = next->slot.first_ns > others_last ? next->slot.first_ns : others_last;
    return to - from < others_last - rest->slot.first_ns;
}

/* Makes the next piece of a strand a part of the last slot. */
static void add_piece(struct weaver *weaver, size_t strand, bool whole)
{
    struct piece *piece = &weaver->rotation->strands[strand].pieces.items[weaver->at[strand]++];
    struct slot *slot = &weaver->slots->items[weaver->slots->count - 1];
    const struct slot *part = &piece->slot;

    slot->first_ns = part->first_ns < slot->first_ns ? part->first_ns : slot->first_ns;
    slot->last_ns = part->last_ns > slot->last_ns ? part->last_ns : slot->last_ns;
    slot->data_last_ns = part->data_last_ns > slot->data_last_ns ? part->data_last_ns : slot->data_last_ns;
    slot->bytes += part->bytes;
    slot->retransmitted += part->retransmitted;
    slot->whole &= whole && part->whole;
    piece->place = weaver->slots->count - 1;
}

static void add_slot(struct weaver *weaver)
{
    struct slot *slot = array_add(weaver->slots);

    slot->first_ns = UINT64_MAX;
    slot->whole = true;
    weaver->taken++;
}

/* The group's next slot; where its pieces do not belong together the earliest of them alone: then false. */
static bool take(struct weaver *weaver, size_t group)
{
    size_t first = group * weaver->parts;

    add_slot(weaver);
    if (!is_slot(weaver, group, 0) || begins_with_rest(weaver, group)) {
        add_piece(weaver, earliest_strand(weaver, group), false);
        return weaver->parts == 1;
    }
    for (size_t i = first; i < first + weaver->parts; i++)
        add_piece(weaver, i, true);
    return true;
}

static void weave_run(struct weaver *weaver)
{
    bool in_turn = weaver->run % 2 == 0;
    size_t group = in_turn ? first_turn(weaver) : earliest_group(weaver);
    size_t idle = 0;

    while (idle < weaver->groups) {
        bool any = begun_ns(weaver, group, 0) != UINT64_MAX;
        bool taken = !any || take(weaver, group);
        idle = any ? 0 : idle + 1;
        group = in_turn && taken ? (group + 1) % weaver->groups : earliest_group(weaver);
    }
}

void rotation_weave(slot_list *slots, const struct rotation *rotation, unsigned parts)
{
    struct weaver weaver;

    weaver_init(&weaver, rotation, slots);
    deal(&weaver, parts);
    while (next_run(&weaver))
        weave_run(&weaver);
    weaver_fini(&weaver);
}
