/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between emitters and correlator something that repeats, reorders, drops, cuts and lies, and emitters that start again
 * in the middle: nothing crashes, no queue pair gets another owner than it has, what is odd is counted by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/correlator/world.h"
#include "wire/log.h"

#define SEEDS 60

static const struct made_options plain = {
    .ranks = 4,
    .channels = 2,
    .steps = 8,
    .seed = 9,
    .groups = true,
    .fault = MADE_GPU,
    .fault_rank = 2,
    .fault_first_step = 4,
    .fault_ns = 60 * MADE_MS,
};

static uint64_t state;

static uint64_t chance(uint64_t below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33) % below;
}

struct parcel {
    uint8_t *bytes;
    size_t length_bytes;
};

struct way { /* what lies between the emitters and the correlator, in per mille of the batches */
    unsigned repeats;
    unsigned drops;
    unsigned swaps;
    unsigned cuts; /* of their ends */
    unsigned lies; /* a byte of their records is another one */
    bool restarts; /* from the middle on all batches are of another boot, numbered from 0 */
};

struct done { /* what was done */
    size_t repeated, dropped, cut, lied;
};

static size_t load(struct parcel *parcels, const struct made_job *job)
{
    size_t count = 0;

    for (size_t i = 0; i < job->nic.count + job->host.count; i++) {
        const struct feed *feed = i < job->nic.count ? &job->nic : &job->host;
        const struct feed_batch *batch = &feed->batches[i < job->nic.count ? i : i - job->nic.count];
        parcels[count].bytes = malloc(batch->length_bytes);
        parcels[count].length_bytes = batch->length_bytes;
        memcpy(parcels[count++].bytes, batch->bytes, batch->length_bytes);
    }
    return count;
}

static void restart(struct parcel *parcel, const struct made_job *job)
{
    struct batch_header *header = (struct batch_header *)parcel->bytes;
    uint64_t middle = (header->emitter_kind == EMITTER_NIC ? job->nic.count : job->host.count) / 2;

    if (header->sequence < middle)
        return;
    header->boot_id++;
    header->sequence -= middle;
}

static void give(struct analysis *analysis, struct parcel *parcel, const struct way *way, struct done *done)
{
    if (chance(1000) < way->drops) {
        done->dropped++;
        return;
    }
    if (chance(1000) < way->lies && parcel->length_bytes > sizeof(struct batch_header)) {
        parcel->bytes[sizeof(struct batch_header) + chance(parcel->length_bytes - sizeof(struct batch_header))] ^=
            (uint8_t)(1 + chance(255));
        done->lied++;
    }
    if (chance(1000) < way->cuts) {
        parcel->length_bytes -= 1 + chance(parcel->length_bytes - 1);
        done->cut++;
    }
    analysis_add_batch(analysis, parcel->bytes, parcel->length_bytes);
    if (chance(1000) >= way->repeats)
        return;
    analysis_add_batch(analysis, parcel->bytes, parcel->length_bytes);
    done->repeated++;
}

/* Runs in between, as a live correlator does. */
static struct analysis *disturb(const struct made_job *job, const struct way *way, struct done *done)
{
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);
    struct parcel *parcels = calloc(job->nic.count + job->host.count, sizeof *parcels);
    size_t count = load(parcels, job);

    memset(done, 0, sizeof *done);
    for (size_t i = 0; i < count; i++) {
        size_t other = chance(1000) < way->swaps ? chance(count) : i;
        struct parcel swap = parcels[i];
        parcels[i] = parcels[other];
        parcels[other] = swap;
    }
    for (size_t i = 0; i < count; i++) {
        if (way->restarts)
            restart(&parcels[i], job);
        give(analysis, &parcels[i], way, done);
        if (i == count / 2)
            analysis_run(analysis);
        free(parcels[i].bytes);
    }
    free(parcels);
    analysis_run(analysis);
    return analysis;
}

static int32_t owner_rank(const struct analysis *analysis, const struct record_queue_pair *record)
{
    for (size_t i = 0; i < analysis->naming.queue_pairs.count; i++) {
        const struct queue_pair *pair = &analysis->naming.queue_pairs.items[i];
        if (pair->record.qpn == record->qpn && memcmp(pair->record.address, record->address, ADDRESS_BYTES) == 0)
            return pair->member < 0 ? -1 : analysis->naming.members.items[pair->member].record.rank;
    }
    return -1;
}

/* Who has an owner has the right one. */
static size_t check_owners(const struct analysis *analysis, const struct analysis *whole)
{
    size_t owned = 0;

    for (size_t i = 0; i < analysis->naming.queue_pairs.count; i++) {
        const struct queue_pair *pair = &analysis->naming.queue_pairs.items[i];
        if (pair->member < 0)
            continue;
        owned++;
        assert_int_equal(analysis->naming.members.items[pair->member].record.rank, owner_rank(whole, &pair->record));
    }
    return owned;
}

static size_t count_gaps(const struct analysis *analysis, const char *cause)
{
    size_t count = 0;

    for (size_t i = 0; i < analysis->gaps.count; i++)
        count += strcmp(gap_cause_name(analysis->gaps.items[i].cause), cause) == 0;
    return count;
}

/* Verdicts are of the late rank only: others are not blamed for what was not seen. */
static void check_verdicts(const struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->job.verdicts.count; i++)
        if (analysis->job.verdicts.items[i].class == VERDICT_GPU_LATE)
            assert_int_equal(analysis->job.verdicts.items[i].rank, plain.fault_rank);
}

static void repeated_and_reordered(void **unused)
{
    const struct way way = {.repeats = 200, .swaps = 300};
    struct made_job *job = made_create(&plain);
    struct analysis *whole = world_analysis(job);

    (void)unused;
    for (unsigned seed = 0; seed < SEEDS / 4; seed++) {
        struct done done;
        state = seed;
        struct analysis *analysis = disturb(job, &way, &done);
        assert_int_equal(analysis->intake.duplicates_count, done.repeated);
        assert_int_equal(analysis->gaps.count, whole->gaps.count);
        assert_int_equal(analysis->job.steps.count, whole->job.steps.count);
        assert_int_equal(analysis->job.verdicts.count, whole->job.verdicts.count);
        assert_int_equal(check_owners(analysis, whole), check_owners(whole, whole));
        analysis_destroy(&analysis);
    }
    analysis_destroy(&whole);
    made_destroy(job);
}

static void dropped_and_started_again(void **unused)
{
    struct made_job *job = made_create(&plain);
    struct analysis *whole = world_analysis(job);
    size_t dropped = 0, told = 0;

    (void)unused;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        const struct way way = {.repeats = 20, .swaps = 50, .drops = 5 + seed, .restarts = seed % 2 == 1};
        struct done done;
        state = seed;
        struct analysis *analysis = disturb(job, &way, &done);
        check_owners(analysis, whole);
        check_verdicts(analysis);
        dropped += done.dropped != 0;
        told += count_gaps(analysis, "batches lost") != 0 || count_gaps(analysis, "silent") != 0;
        if (way.restarts) /* the new boot never said whom its numbers are of */
            assert_true(analysis->naming.orphans_count > 0);
        analysis_destroy(&analysis);
    }
    assert_in_range(dropped, SEEDS / 2, SEEDS);
    assert_true(told >= dropped * 9 / 10); /* the last batches' loss shows only as silence */
    analysis_destroy(&whole);
    made_destroy(job);
}

static void cut_and_lied(void **unused)
{
    struct made_job *job = made_create(&plain);
    size_t cut = 0, odd = 0;

    (void)unused;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        const struct way way = {.lies = 10 + 10 * seed, .cuts = seed, .repeats = 20, .swaps = 50};
        struct done done;
        state = seed;
        struct analysis *analysis = disturb(job, &way, &done);
        cut += done.cut;
        odd += analysis->intake.rejected_count;
        analysis_destroy(&analysis);
    }
    assert_true(cut > 0 && odd >= cut);
    made_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_and_reordered),
        cmocka_unit_test(dropped_and_started_again),
        cmocka_unit_test(cut_and_lied),
    };
    log_init("test", LOG_NONE);
    return cmocka_run_group_tests_name("disturbed", tests, NULL, NULL);
}
