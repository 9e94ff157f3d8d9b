/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of slots, by the library's arithmetic (shape.h). Invariant: no two tracks of a block are the same. */
#include "correlator/adoption/track.h"

#include <string.h>

#include "wire/record.h"

#define SLOTS_MAX     4096
#define POSITIONS_MAX 64 /* in a ring that are tried */

static bool add_size(void *context, uint64_t slot_bytes)
{
    struct track_set *set = context;

    *(uint64_t *)array_add(&set->sizes) = slot_bytes;
    return set->sizes.count - set->tracks.items[set->tracks.count - 1].first <= SLOTS_MAX;
}

static bool is_there(const struct track_set *set, const struct track *track)
{
    for (size_t i = 0; i + 1 < set->tracks.count; i++) {
        const struct track *other = &set->tracks.items[i];
        if (other->block == track->block && other->count == track->count &&
            memcmp(&set->sizes.items[other->first], &set->sizes.items[track->first],
                   track->count * sizeof set->sizes.items[0]) == 0)
            return true;
    }
    return false;
}

static void add_track(struct track_set *set, const struct shape *shape, int32_t index, unsigned block)
{
    struct track *track = array_add(&set->tracks);

    *track = (struct track){.block = block, .first = set->sizes.count};
    bool whole = shape_walk(shape, &set->collective, index, block, add_size, set);
    track->count = set->sizes.count - track->first;
    if (whole && track->count > 0 && !is_there(set, track))
        return;
    set->sizes.count = track->first;
    set->tracks.count--;
}

static void add_tracks(struct track_set *set, const struct shape_range *range)
{
    const struct collective *collective = &set->collective;
    int32_t positions = collective->kind == OPERATION_ALL_REDUCE ? collective->ranks : 1;
    struct shape shape;

    for (unsigned number = 0; shape_candidate(&shape, number, range); number++)
        for (int32_t index = 0; index < positions && index < POSITIONS_MAX; index++)
            for (unsigned block = 0; block < shape_blocks(&shape, collective); block++)
                add_track(set, &shape, index, block);
}

void track_set_init(struct track_set *set, const struct collective *collective, const struct shape_range *range)
{
    memset(set, 0, sizeof *set);
    set->collective = *collective;
    set->division = range->division;
    set->channels = range->channels;
    add_tracks(set, &(struct shape_range){range->channels, SHAPE_LOOPS});
    if (range->division != SHAPE_LOOPS)
        add_tracks(set, range);
}

void track_set_fini(struct track_set *set)
{
    array_fini(&set->tracks);
    array_fini(&set->sizes);
}
