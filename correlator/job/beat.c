/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Beats. Invariant: `waited` is set only where all operations before, as far as they have an end on the wire, were over
 * when the next one was enqueued; the one before has such an end, or the host tells its waits and one lay between.
 */
#include "correlator/job/beat.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/verdict/evidence.h"

#define ERROR_MAX_NS 50000 /* of an end against an enqueue; larger bounds would make overlaps look like waits */

typedef ARRAY(const uint8_t *) identity_list;

static const struct rank_operation *at(const struct job *job, const struct turn *turn)
{
    return &job->rank_operations.items[turn->index];
}

static const struct operation *operation_at(const struct job *job, const struct turn *turn)
{
    return &job->operations.items[at(job, turn)->operation];
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

void beat_waits(wait_list *waits, const struct job *job, int32_t rank)
{
    const struct host_evidence *host = job->evidence == NULL ? NULL : &job->evidence->host;

    for (size_t i = 0; host != NULL && i < host->tracks.count; i++) {
        const struct host_track *track = &host->tracks.items[i];
        for (size_t j = track->first; j < track->first + track->count; j++)
            if (track->rank == rank && track->source == HOST_OF_MARKER &&
                host->stays.items[j].amounts[HOST_GPU_WAIT] > 0)
                *(uint64_t *)array_add(waits) = host->stays.items[j].to_ns;
    }
    array_sort(waits, by_value);
}

static size_t number_of(identity_list *known, const uint8_t *communicator)
{
    size_t number = 0;

    while (number < known->count && memcmp(known->items[number], communicator, IDENTITY_BYTES) != 0)
        number++;
    if (number == known->count)
        *(const uint8_t **)array_add(known) = communicator;
    return number;
}

/* A burst of traffic that fits into no repeat, which is like no other. */
static bool is_astray(const struct record_rank_operation *record)
{
    return record->operation == OPERATION_TRAFFIC && record->datatype == TRAFFIC_ASTRAY;
}

static void fill_one(struct beat *beat, const struct operation *operation, const struct rank_operation *of,
                     size_t communicator)
{
    uint64_t loose = hash_number(HASH_START, communicator);

    loose = hash_number(loose, operation->kind);
    beat->loose = hash_number(loose, of->record.datatype);
    beat->exact = hash_number(beat->loose, of->record.buffer_bytes);
    if (is_astray(&of->record))
        beat->loose = beat->exact = hash_number(beat->exact, of->record.sequence);
    beat->bytes = of->record.buffer_bytes;
    beat->enqueued_ns = of->record.enqueued_ns;
    beat->first_ns = of->record.first_data_ns;
    beat->end_ns = of->record.end_ns;
}

struct drain {       /* what is known of the operations before */
    uint64_t end_ns; /* the latest end; 0 = none has one */
    bool open;       /* the end of the last one is not known */
};

static void take(struct drain *drain, const struct rank_operation *of)
{
    drain->open = of->record.end_ns == 0;
    drain->end_ns = of->record.end_ns > drain->end_ns ? of->record.end_ns : drain->end_ns;
}

static bool is_drained(const struct drain *drain, const struct rank_operation *of)
{
    uint64_t error = of->record.bound_ns < ERROR_MAX_NS ? of->record.bound_ns : ERROR_MAX_NS;

    return of->record.enqueued_ns + error >= drain->end_ns;
}

static void find_waited(struct beat *beats, const struct job *job, const struct turn *turns, size_t count)
{
    wait_list waits = {0};
    struct drain drain = {0};
    size_t next = 0;

    beat_waits(&waits, job, turns[0].rank);
    for (size_t i = 0; i < count; i++) {
        const struct rank_operation *of = at(job, &turns[i]);
        size_t before = next;
        while (next < waits.count && waits.items[next] <= of->record.enqueued_ns)
            next++;
        bool told = next > before;
        bool known = waits.count > 0 ? told : !drain.open && drain.end_ns != 0;
        beats[i].waited = known && of->record.operation != OPERATION_TRAFFIC && is_drained(&drain, of);
        take(&drain, of);
    }
    array_fini(&waits);
}

static bool is_marked(const struct step_mark *mark, const struct record_rank_operation *record)
{
    return mark->kind != 0 && record->operation == mark->kind &&
           (mark->bytes == 0 || record->buffer_bytes == mark->bytes);
}

void beat_fill(struct beat *beats, const struct job *job, const struct turn *turns, size_t count)
{
    identity_list known = {0};

    for (size_t i = 0; i < count; i++) {
        const struct operation *operation = operation_at(job, &turns[i]);
        fill_one(&beats[i], operation, at(job, &turns[i]), number_of(&known, operation->communicator));
        beats[i].ends = is_marked(&job->ranks.mark, &at(job, &turns[i])->record);
    }
    array_fini(&known);
    find_waited(beats, job, turns, count);
}

size_t beat_epoch(const struct job *job, const struct turn *turns, size_t count)
{
    identity_list known = {0};
    ARRAY(size_t) last = {0}; /* use of each */
    size_t end = 0;

    for (size_t i = 0; i < count; i++) {
        size_t number = number_of(&known, operation_at(job, &turns[i])->communicator);
        if (number == last.count)
            array_add(&last);
        last.items[number] = i;
    }
    known.count = 0;
    for (size_t i = 0; i < count && (i == 0 || i <= end); i++) {
        size_t use = last.items[number_of(&known, operation_at(job, &turns[i])->communicator)];
        end = use > end ? use : end;
    }
    array_fini(&known);
    array_fini(&last);
    return end + 1;
}
