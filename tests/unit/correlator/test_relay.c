/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node stage and job stage apart: what a node stage sends, heard by a job stage, gives the same operations, steps and
 * verdicts as both in one, whether it is sent once or little by little, in order or not, by one start or by two.
 */
#include "correlator/relay/relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/analysis.h"
#include "tests/unit/correlator/world.h"
#include "wire/log.h"

#define STEPS 24
#define RANKS 4

static const struct made_options jobs[] = {
    {.fault = MADE_HOST},
    {.fault = MADE_GPU, .groups = true},
    {.fault = MADE_LINK},
    {.fault = MADE_NONE, .overlaps = true},
    {.fault = MADE_GPU, .exchanges = true},
    {.fault = MADE_HOST, .groups = true, .overlaps = true, .queue_pairs = 2},
};

struct sent { /* by a node stage, in order */
    ARRAY(struct feed_batch) batches;
    size_t operations_bytes; /* of its own stream */
};

static void keep(void *context, const void *batch, size_t length_bytes)
{
    struct sent *sent = context;
    struct feed_batch *kept = array_add(&sent->batches);
    struct batch_header header;

    kept->bytes = malloc(length_bytes);
    kept->length_bytes = length_bytes;
    memcpy(kept->bytes, batch, length_bytes);
    memcpy(&header, batch, sizeof header);
    sent->operations_bytes += header.emitter_kind == EMITTER_NODE ? length_bytes : 0;
}

static void forget(struct sent *sent)
{
    for (size_t i = 0; i < sent->batches.count; i++)
        free(sent->batches.items[i].bytes);
    array_fini(&sent->batches);
}

static struct relay *relay_to(struct sent *sent, uint64_t boot_id)
{
    return relay_create(&(struct relay_options){.emitter_id = 7, .boot_id = boot_id, .send = keep, .context = sent});
}

static struct made_job *make(size_t i)
{
    struct made_options options = jobs[i];

    options.ranks = RANKS;
    options.channels = 2;
    options.steps = STEPS;
    options.seed = 20 + i;
    options.fault_rank = 2;
    options.fault_first_step = 6;
    options.fault_ns = 40 * MADE_MS;
    options.host_offset_ns = 5000000;
    options.nic_offset_ns = -3000000;
    return made_create(&options);
}

static void tell(struct analysis *analysis, struct relay *relay, const struct feed *feed, size_t part, size_t parts)
{
    for (size_t i = feed->count * part / parts; i < feed->count * (part + 1) / parts; i++) {
        analysis_add_batch(analysis, feed->batches[i].bytes, feed->batches[i].length_bytes);
        relay_batch(relay, feed->batches[i].bytes, feed->batches[i].length_bytes);
    }
}

/* A node stage that hears the job in so many parts, and tells after each. */
static void play_node(struct sent *sent, const struct made_job *job, size_t parts, uint64_t boot_id)
{
    struct analysis *node = analysis_create(ANALYSIS_MEMORY_BYTES);
    struct relay *relay = relay_to(sent, boot_id);

    node->stage = ANALYSIS_NODE;
    for (size_t part = 0; part < parts; part++) {
        tell(node, relay, &job->nic, part, parts);
        tell(node, relay, &job->host, part, parts);
        analysis_run(node);
        assert_int_equal(node->job.steps.count, 0);
        relay_operations(relay, node, part + 1 == parts);
    }
    relay_destroy(&relay);
    analysis_destroy(&node);
}

static struct analysis *play_job(const struct sent *sent, bool backwards)
{
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);

    analysis->stage = ANALYSIS_JOB;
    for (size_t i = 0; i < sent->batches.count; i++) {
        const struct feed_batch *batch = &sent->batches.items[backwards ? sent->batches.count - 1 - i : i];
        assert_int_equal(analysis_add_batch(analysis, batch->bytes, batch->length_bytes), 1);
    }
    analysis_run(analysis);
    return analysis;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* A time that moved by less than a part of its bound was not told again: so far may durations differ. */
static void check_near(const struct job *apart, const struct job *together, uint64_t within_ns)
{
    assert_int_equal(apart->operations.count, together->operations.count);
    assert_int_equal(apart->rank_operations.count, together->rank_operations.count);
    assert_int_equal(apart->steps.count, together->steps.count);
    assert_int_equal(apart->steps.count, STEPS);
    for (size_t i = 0; i < apart->steps.count; i++) {
        assert_true(distance(apart->steps.items[i].duration_ns, together->steps.items[i].duration_ns) <= within_ns);
        assert_int_equal(apart->steps.items[i].kind, together->steps.items[i].kind);
    }
    assert_int_equal(apart->verdicts.count, together->verdicts.count);
    for (size_t i = 0; i < apart->verdicts.count; i++) {
        const struct verdict *one = &apart->verdicts.items[i], *other = &together->verdicts.items[i];
        assert_int_equal(one->class, other->class);
        assert_int_equal(one->step, other->step);
        assert_int_equal(one->rank, other->rank);
        assert_int_equal(one->peer_rank, other->peer_rank);
        assert_true(distance(one->size_ns, other->size_ns) <= within_ns);
    }
}

static void check_same(const struct job *apart, const struct job *together)
{
    check_near(apart, together, 0);
}

static void two_stages_judge_as_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct made_job *job = make(i);
        struct analysis *together = world_analysis(job);
        struct sent sent = {0};
        play_node(&sent, job, 1, 3);
        for (int backwards = 0; backwards < 2; backwards++) {
            struct analysis *apart = play_job(&sent, backwards != 0);
            check_same(&apart->job, &together->job);
            assert_int_equal(apart->naming.messages.count + apart->naming.calls.count, 0);
            assert_int_equal(apart->another_clock_count, 0);
            assert_true((jobs[i].fault == MADE_NONE) == (apart->job.verdicts.count == 0));
            analysis_destroy(&apart);
        }
        print_message("# %zu bytes a rank and operation\n",
                      sent.operations_bytes / together->job.rank_operations.count);
        assert_true(sent.operations_bytes * 30 / together->job.rank_operations.count < 2700);
        forget(&sent);
        analysis_destroy(&together);
        made_destroy(job);
    }
}

/* What it says of an operation that goes on is replaced by what it says when that is over, and said once. */
static void little_by_little_is_the_same(void **state)
{
    struct made_job *job = make(1);
    struct analysis *together = world_analysis(job);
    struct sent once = {0}, often = {0};

    (void)state;
    play_node(&once, job, 1, 3);
    play_node(&often, job, 9, 3);
    struct analysis *apart = play_job(&often, false);
    check_near(&apart->job, &together->job, together->naming.bound_ns);
    assert_true(often.operations_bytes < once.operations_bytes * 3 / 2);
    analysis_destroy(&apart);
    forget(&once);
    forget(&often);
    analysis_destroy(&together);
    made_destroy(job);
}

/* It reads its journal and tells everything again, under another boot id: agents' batches are known, operations too. */
static void a_node_stage_that_starts_again_doubles_nothing(void **state)
{
    struct made_job *job = make(0);
    struct analysis *together = world_analysis(job);
    struct sent sent = {0}, again = {0};

    (void)state;
    play_node(&sent, job, 2, 3);
    play_node(&again, job, 1, 4);
    for (size_t i = 0; i < again.batches.count; i++) {
        struct batch_header header;
        memcpy(&header, again.batches.items[i].bytes, sizeof header);
        if (header.emitter_kind == EMITTER_NODE)
            keep(&sent, again.batches.items[i].bytes, again.batches.items[i].length_bytes);
    }
    struct analysis *apart = play_job(&sent, true);
    check_same(&apart->job, &together->job);
    analysis_destroy(&apart);
    forget(&sent);
    forget(&again);
    analysis_destroy(&together);
    made_destroy(job);
}

/* Times of another clock are never laid beside these. */
static void another_clock_is_counted(void **state)
{
    struct made_job *job = make(0);
    struct sent sent = {0};

    (void)state;
    play_node(&sent, job, 1, 3);
    for (size_t i = 0; i < sent.batches.count; i++) {
        struct batch batch;
        union record record;
        uint64_t unknown = 0;
        assert_int_equal(batch_read(&batch, sent.batches.items[i].bytes, sent.batches.items[i].length_bytes), 0);
        while (batch.header.emitter_kind == EMITTER_NODE && batch_next(&batch, &record, &unknown) > 0 &&
               record.header.kind != RECORD_REFERENCE)
            ;
        if (batch.header.emitter_kind == EMITTER_NODE)
            ((struct record_reference *)(uintptr_t)(batch.records.at - sizeof record.reference))->boot_id++;
    }
    struct analysis *apart = play_job(&sent, false);
    assert_int_equal(apart->job.operations.count, 0);
    assert_in_range(apart->another_clock_count, RANKS * STEPS, RANKS * STEPS * 100);
    analysis_destroy(&apart);
    forget(&sent);
    made_destroy(job);
}

static uint64_t chance(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed >> 11;
}

/* One field of some operations says something else: near, far, or anything. */
static void lie(struct record_rank_operation *record, uint64_t *seed)
{
    static const uint64_t wild[] = {0, 1, UINT64_MAX, INT64_MAX, 1ULL << 55, 1ULL << 62, 1000000, 0x8000000000000000};
    uint64_t *words = (uint64_t *)record + 1;
    size_t at = chance(seed) % (sizeof *record / sizeof *words - 1);

    words[at] = chance(seed) % 4 == 0 ? words[at] + chance(seed) % 1000000 : wild[chance(seed) % 8];
}

static void send_lies(struct analysis *analysis, const struct batch *batch, const rank_operation_records *records)
{
    static uint8_t bytes[BATCH_BYTES_MAX];
    struct batch_header header = batch->header;
    struct record_reference reference = {{RECORD_REFERENCE, sizeof reference, 0}, 0};
    size_t used = sizeof header;

    reference.boot_id = analysis->timeline.reference_boot;
    memcpy(bytes + used, &reference, sizeof reference);
    used += sizeof reference;
    header.records_count = 1;
    for (size_t i = 0; i < records->count && used + sizeof(struct record_rank_operation) < sizeof bytes; i++) {
        memcpy(bytes + used, &records->items[i], sizeof records->items[i]);
        used += sizeof records->items[i];
        header.records_count++;
    }
    header.records_bytes = (uint32_t)(used - sizeof header);
    header.boot_id = 99;
    memcpy(bytes, &header, sizeof header);
    assert_int_equal(analysis_add_batch(analysis, bytes, used), 1);
}

/* Node stages that lie: nothing breaks, and what no node stage would say is counted. */
static void lies_break_nothing(void **state)
{
    struct made_job *job = make(5);
    struct sent sent = {0};
    uint64_t seed = 5, counted = 0;

    (void)state;
    play_node(&sent, job, 1, 3);
    for (unsigned round = 0; round < 60; round++) {
        struct analysis *analysis = play_job(&sent, false);
        rank_operation_records records = {0};
        struct batch batch;
        union record record;
        uint64_t unknown = 0;
        for (size_t i = 0; i < sent.batches.count; i++) {
            assert_int_equal(batch_read(&batch, sent.batches.items[i].bytes, sent.batches.items[i].length_bytes), 0);
            if (batch.header.emitter_kind != EMITTER_NODE)
                continue;
            while (batch_next(&batch, &record, &unknown) > 0) {
                if (record.header.kind != RECORD_RANK_OPERATION)
                    continue;
                if (chance(&seed) % 4 == 0)
                    lie(&record.rank_operation, &seed);
                *(struct record_rank_operation *)array_add(&records) = record.rank_operation;
            }
            batch.header.sequence = 1;
            batch.header.sent_ns += 1000;
            send_lies(analysis, &batch, &records);
            break;
        }
        analysis_run(analysis);
        counted += analysis->implausible_count;
        array_fini(&records);
        analysis_destroy(&analysis);
    }
    assert_true(counted > 60);
    forget(&sent);
    made_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_stages_judge_as_one),
        cmocka_unit_test(little_by_little_is_the_same),
        cmocka_unit_test(a_node_stage_that_starts_again_doubles_nothing),
        cmocka_unit_test(another_clock_is_counted),
        cmocka_unit_test(lies_break_nothing),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
