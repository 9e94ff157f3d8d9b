/* SPDX-License-Identifier: BSD-2-Clause */
/* Slices. Invariant: a slice is sorted as what it was cut from. */
#include "correlator/verdict/evidence_slice.h"

#include <string.h>

#include "correlator/hash.h"

static void cut_series(struct evidence_slice *slice, const struct evidence *of, uint64_t from_ns, uint64_t to_ns)
{
    for (size_t i = 0; i < of->series.count; i++) {
        const struct evidence_series *series = &of->series.items[i];
        size_t first = slice->evidence.changes.count;
        for (size_t j = series->first; j < series->first + series->count; j++) {
            const struct evidence_change *change = &of->changes.items[j];
            if (change->to_ns < from_ns || change->from_ns > to_ns)
                continue;
            struct evidence_change *kept = array_add(&slice->evidence.changes);
            *kept = *change;
            kept->row = (int32_t)slice->changes.count;
            *(int32_t *)array_add(&slice->changes) = change->row;
        }
        if (slice->evidence.changes.count == first)
            continue;
        struct evidence_series *kept = array_add(&slice->evidence.series);
        *kept = *series;
        kept->first = first;
        kept->count = slice->evidence.changes.count - first;
    }
}

/* A track's first stay that ends after a time: they follow each other. */
static size_t first_stay(const struct host_evidence *of, const struct host_track *track, uint64_t after_ns)
{
    size_t low = track->first, high = track->first + track->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (of->stays.items[middle].to_ns < after_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void cut_tracks(struct evidence_slice *slice, const struct host_evidence *of, uint64_t from_ns, uint64_t to_ns)
{
    struct host_evidence *host = &slice->evidence.host;

    for (size_t i = 0; i < of->tracks.count; i++) {
        const struct host_track *track = &of->tracks.items[i];
        size_t first = host->stays.count;
        for (size_t j = first_stay(of, track, from_ns);
             j < track->first + track->count && of->stays.items[j].from_ns <= to_ns; j++) {
            *(struct host_stay *)array_add(&host->stays) = of->stays.items[j];
            *(int32_t *)array_add(&slice->stays) = track->first_row + (int32_t)(j - track->first);
        }
        if (host->stays.count == first)
            continue;
        struct host_track *kept = array_add(&host->tracks);
        *kept = *track;
        kept->first = first;
        kept->first_row = (int32_t)first;
        kept->count = host->stays.count - first;
    }
}

static void cut_posts(struct evidence_slice *slice, const struct host_evidence *of, uint64_t from_ns, uint64_t to_ns)
{
    struct host_evidence *host = &slice->evidence.host;

    for (size_t i = 0; i < of->posts.count; i++) {
        const struct host_post *post = &of->posts.items[i];
        if (post->wire_ns < from_ns || post->wire_ns > to_ns)
            continue;
        struct host_post *kept = array_add(&host->posts);
        *kept = *post;
        kept->row = (int32_t)slice->posts.count;
        *(int32_t *)array_add(&slice->posts) = post->row;
    }
    for (size_t i = 0; i < of->followed.count; i++)
        if (of->followed.items[i].to_ns >= from_ns && of->followed.items[i].from_ns <= to_ns)
            *(struct host_followed *)array_add(&host->followed) = of->followed.items[i];
}

void evidence_slice_init(struct evidence_slice *slice, const struct evidence *of, uint64_t from_ns, uint64_t to_ns)
{
    struct evidence *kept = &slice->evidence;

    memset(slice, 0, sizeof *slice);
    *kept = *of; /* what is not cut is borrowed */
    memset(&kept->changes, 0, sizeof kept->changes);
    memset(&kept->series, 0, sizeof kept->series);
    memset(&kept->host.stays, 0, sizeof kept->host.stays);
    memset(&kept->host.tracks, 0, sizeof kept->host.tracks);
    memset(&kept->host.posts, 0, sizeof kept->host.posts);
    memset(&kept->host.followed, 0, sizeof kept->host.followed);
    cut_series(slice, of, from_ns, to_ns);
    cut_tracks(slice, &of->host, from_ns, to_ns);
    cut_posts(slice, &of->host, from_ns, to_ns);
}

void evidence_slice_fini(struct evidence_slice *slice)
{
    array_fini(&slice->evidence.changes);
    array_fini(&slice->evidence.series);
    array_fini(&slice->evidence.host.stays);
    array_fini(&slice->evidence.host.tracks);
    array_fini(&slice->evidence.host.posts);
    array_fini(&slice->evidence.host.followed);
    array_fini(&slice->changes);
    array_fini(&slice->stays);
    array_fini(&slice->posts);
}

static uint64_t digest_links(uint64_t hash, const struct evidence *evidence)
{
    for (size_t i = 0; i < evidence->series.count; i++) {
        const struct evidence_series *series = &evidence->series.items[i];
        hash = hash_number(hash, (uint64_t)series->owner << 24 | (uint64_t)series->kind << 16 |
                                     (uint64_t)series->priority << 8 | series->of_port);
        hash = hash_number(hash, series->count);
    }
    for (size_t i = 0; i < evidence->changes.count; i++) {
        hash = hash_number(hash, evidence->changes.items[i].from_ns);
        hash = hash_number(hash, evidence->changes.items[i].to_ns);
        hash = hash_number(hash, evidence->changes.items[i].amount);
    }
    for (size_t i = 0; i < evidence->places.count; i++) {
        const struct evidence_place *place = &evidence->places.items[i];
        hash = hash_number(hash, (uint64_t)(uint32_t)place->from << 32 | (uint32_t)place->to);
        hash = hash_number(hash, (uint64_t)(uint32_t)place->owner << 32 | place->fields);
        hash = hash_number(hash, (uint64_t)place->vantage << 16 | (uint64_t)place->side << 8 | place->of_port);
    }
    for (size_t i = 0; i < evidence->sights.count; i++)
        hash = hash_number(hash, evidence->sights.items[i]);
    hash = hash_number(hash, evidence->limits.least_permille);
    return hash_number(hash, evidence->limits.spreads);
}

static uint64_t digest_tracks(uint64_t hash, const struct host_evidence *host)
{
    for (size_t i = 0; i < host->tracks.count; i++) {
        const struct host_track *track = &host->tracks.items[i];
        hash = hash_number(hash, (uint64_t)(uint32_t)track->rank << 32 | track->tid);
        hash = hash_number(hash, (uint64_t)track->count << 32 | (uint64_t)track->role << 16 | track->source);
    }
    for (size_t i = 0; i < host->stays.count; i++) {
        const struct host_stay *stay = &host->stays.items[i];
        hash = hash_number(hash_number(hash, stay->from_ns), stay->to_ns);
        for (size_t amount = 0; amount < HOST_AMOUNTS; amount++)
            hash = hash_number(hash, stay->amounts[amount]);
    }
    return hash;
}

static uint64_t digest_rails(uint64_t hash, const struct rails *rails)
{
    hash = hash_number(hash_number(hash, rails->machines.count), rails->ports.count);
    for (size_t i = 0; i < rails->changes.count; i++) {
        const struct rail_change *change = &rails->changes.items[i];
        hash = hash_number(hash_number(hash, change->at_ns), (uint64_t)change->state << 32 | (uint32_t)change->row);
    }
    return hash;
}

uint64_t evidence_slice_digest(const struct evidence_slice *slice)
{
    const struct host_evidence *host = &slice->evidence.host;
    uint64_t hash = digest_tracks(digest_links(HASH_START, &slice->evidence), host);

    for (size_t i = 0; i < host->posts.count; i++) {
        hash = hash_number(hash_number(hash, (uint64_t)host->posts.items[i].rank), host->posts.items[i].posted_ns);
        hash = hash_number(hash_number(hash, host->posts.items[i].wire_ns), host->posts.items[i].bound_ns);
    }
    for (size_t i = 0; i < host->followed.count; i++) {
        hash = hash_number(hash, (uint64_t)host->followed.items[i].rank);
        hash = hash_number(hash_number(hash, host->followed.items[i].from_ns), host->followed.items[i].to_ns);
    }
    for (size_t i = 0; i < host->back_offs.count; i++)
        hash = hash_number(hash, host->back_offs.items[i]);
    return digest_rails(hash, &slice->evidence.rails);
}

int32_t evidence_slice_row(const struct evidence_slice *slice, uint8_t source, int32_t row)
{
    if (row < 0 || source == VERDICT_OF_TRANSPORT || source == VERDICT_OF_FAILURE || source == VERDICT_OF_RAIL)
        return row; /* these are not cut */
    if (source == VERDICT_OF_POST)
        return slice->posts.items[row];
    return source == VERDICT_OF_DELAY || source == VERDICT_OF_MARKER ? slice->stays.items[row]
                                                                     : slice->changes.items[row];
}
