/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merging captures. Invariant: `seen` is a hash table with a power of two places, at most half full, of the batches
 * that were written: what they are called (boot and sequence) and a digest of what they hold.
 */
#include "cli/gather/merger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "correlator/hash.h"
#include "wire/capture.h"
#include "wire/log.h"
#include "wire/record.h"

#define PLACES_AT_FIRST 4096

struct seen {
    uint64_t boot_id;
    uint64_t sequence;
    uint64_t digest; /* 0: the place is free */
};

struct merger {
    struct capture_writer *writer;
    char *output;
    struct gather_tally tally;
    struct seen *seen;
    size_t places;
    size_t seen_count;
    struct merger_counts counts;
    uint8_t batch[BATCH_BYTES_MAX];
};

int merger_create(struct merger **merger, const char *output)
{
    struct merger *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->output = strdup(output)) == NULL ||
        (made->seen = calloc(PLACES_AT_FIRST, sizeof(*made->seen))) == NULL) {
        merger_close(&made, false);
        return log_error_return(-ENOMEM, "out of memory to merge captures");
    }
    made->places = PLACES_AT_FIRST;
    int result = capture_writer_open(&made->writer, output, 0);
    if (result != 0) {
        merger_close(&made, false);
        return result;
    }
    *merger = made;
    return 0;
}

/* Where the batch is, or the free place for it. */
static struct seen *place_of(struct seen *seen, size_t places, uint64_t boot_id, uint64_t sequence)
{
    size_t place = hash_number(hash_number(HASH_START, boot_id), sequence) & (places - 1);
    while (seen[place].digest != 0 && (seen[place].boot_id != boot_id || seen[place].sequence != sequence)) {
        place = (place + 1) & (places - 1);
    }
    return &seen[place];
}

static int grow(struct merger *merger)
{
    size_t places = merger->places * 2;
    struct seen *seen = calloc(places, sizeof(*seen));
    if (seen == NULL) {
        return log_error_return(-ENOMEM, "out of memory for %zu batches", places);
    }
    for (size_t i = 0; i < merger->places; i++) {
        if (merger->seen[i].digest != 0) {
            *place_of(seen, places, merger->seen[i].boot_id, merger->seen[i].sequence) = merger->seen[i];
        }
    }
    free(merger->seen);
    merger->seen = seen;
    merger->places = places;
    return 0;
}

/* 1: it is new; 0: it was there, or is left out; -errno. */
static int remember(struct merger *merger, const struct batch_header *header, const void *batch, size_t length_bytes)
{
    uint64_t digest = hash_mix(HASH_START, batch, length_bytes) | 1;
    if (merger->seen_count * 2 >= merger->places) {
        int result = grow(merger);
        if (result != 0) {
            return result;
        }
    }
    struct seen *place = place_of(merger->seen, merger->places, header->boot_id, header->sequence);
    if (place->digest != 0) {
        merger->counts.duplicates += place->digest == digest;
        merger->counts.contradicting += place->digest != digest;
        return 0;
    }
    *place = (struct seen){header->boot_id, header->sequence, digest};
    merger->seen_count++;
    return 1;
}

/* Whether another machine has the same emitter id, and comes before it in the tally. */
static bool is_taken(const struct gather_tally *tally, const struct gather_emitter *emitter)
{
    for (const struct gather_emitter *other = tally->emitters; other < emitter; other++) {
        if (emitter->said_hello && other->said_hello && other->emitter_id == emitter->emitter_id &&
            memcmp(other->kernel_boot, emitter->kernel_boot, sizeof(other->kernel_boot)) != 0) {
            return true;
        }
    }
    return false;
}

static uint64_t id_of(const struct gather_emitter *emitter)
{
    return hash_mix(hash_number(HASH_START, emitter->emitter_id), emitter->kernel_boot, sizeof(emitter->kernel_boot)) |
           1;
}

static int write_batch(struct merger *merger, const void *batch, size_t length_bytes)
{
    struct batch_header header;
    memcpy(&header, batch, sizeof(header));
    const struct gather_emitter *emitter = gather_tally_find(&merger->tally, header.boot_id);
    int result = remember(merger, &header, batch, length_bytes);
    if (result != 1) {
        return result;
    }
    if (emitter != NULL && is_taken(&merger->tally, emitter)) {
        header.emitter_id = id_of(emitter);
        memcpy(merger->batch, batch, length_bytes);
        memcpy(merger->batch, &header, sizeof(header));
        batch = merger->batch;
    }
    merger->counts.written++;
    return capture_write(merger->writer, batch, length_bytes);
}

typedef int take_batch(struct merger *merger, const void *batch, size_t length_bytes);

/* So many at most; *count is how many there were. -EBADMSG at a cut, when what came before it was taken. */
static int each_batch(struct merger *merger, const char *capture, take_batch *take, uint64_t most, uint64_t *count)
{
    struct capture_reader *reader = NULL;
    const void *batch;
    size_t length_bytes;
    int result = capture_reader_open(&reader, capture);
    *count = 0;
    if (result != 0) {
        return result;
    }
    for (; *count < most && (result = capture_read(reader, &batch, &length_bytes)) == 1; (*count)++) {
        if (length_bytes < sizeof(struct batch_header) || length_bytes > BATCH_BYTES_MAX) {
            continue;
        }
        int taken = take(merger, batch, length_bytes);
        if (taken != 0 && taken != -EBADMSG) {
            result = taken;
            break;
        }
    }
    capture_reader_close(&reader);
    return result == 1 ? 0 : result;
}

static int survey(struct merger *merger, const void *batch, size_t length_bytes)
{
    return gather_tally_add(&merger->tally, batch, length_bytes);
}

int merger_survey(struct merger *merger, const char *capture, uint64_t *batches)
{
    int result = each_batch(merger, capture, survey, UINT64_MAX, batches);
    return result == -EBADMSG && *batches > 0 ? 0 : result;
}

int merger_add(struct merger *merger, const char *capture, uint64_t batches)
{
    uint64_t count;
    return each_batch(merger, capture, write_batch, batches, &count);
}

const struct gather_tally *merger_tally(const struct merger *merger)
{
    return &merger->tally;
}

struct merger_counts merger_counts(const struct merger *merger)
{
    struct merger_counts counts = merger->counts;
    for (size_t i = 0; i < merger->tally.emitters_count; i++) {
        counts.renamed += is_taken(&merger->tally, &merger->tally.emitters[i]);
    }
    return counts;
}

int merger_close(struct merger **merger, bool whole)
{
    int result = 0;
    if (*merger == NULL) {
        return 0;
    }
    if ((*merger)->writer != NULL) {
        result = capture_writer_close(&(*merger)->writer);
        if (!whole || result != 0) {
            output_remove((*merger)->output);
        }
    }
    gather_tally_fini(&(*merger)->tally);
    free((*merger)->seen);
    free((*merger)->output);
    free(*merger);
    *merger = NULL;
    return result;
}
