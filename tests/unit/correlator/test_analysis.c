/* SPDX-License-Identifier: BSD-2-Clause */
#include "correlator/analysis.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "correlator/store/store.h"
#include "tests/unit/correlator/world.h"
#include "tests/unit/scratch.h"
#include "wire/log.h"

static const struct made_options plain = {.ranks = 4, .channels = 2, .steps = 12, .seed = 1, .groups = true};

static void add_feed(struct analysis *analysis, const struct feed *feed)
{
    for (size_t i = 0; i < feed->count; i++)
        assert_int_equal(analysis_add_batch(analysis, feed->batches[i].bytes, feed->batches[i].length_bytes), 1);
}

static uint64_t observed_bytes(const struct analysis *analysis, unsigned flags)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < analysis->job.rank_operations.count; i++) {
        const struct record_rank_operation *record = &analysis->job.rank_operations.items[i].record;
        if ((record->flags & (RANK_OPERATION_INCOMPLETE | RANK_OPERATION_UNKNOWN_ALGORITHM)) == flags)
            bytes += record->observed_bytes;
    }
    return bytes;
}

static void check_whole(const struct analysis *analysis, const struct made_job *job)
{
    size_t operations = (size_t)(job->options.steps * job->operations + job->options.warm_up);

    assert_int_equal(analysis->job.operations.count, operations);
    assert_int_equal(analysis->job.rank_operations.count, operations * (size_t)job->options.ranks);
    assert_int_equal(observed_bytes(analysis, 0), job->sent_bytes);
    assert_int_equal(analysis->job.steps.count, job->options.steps);
    for (size_t i = 0; i < analysis->job.steps.count; i++)
        assert_int_equal(analysis->job.steps.items[i].operations, job->operations);
}

/* Back to back all-reduces, several channels and a group each step: every byte in its operation, every step found. */
static void test_every_byte_in_its_operation(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 5; ranks++)
        for (int channels = 1; channels <= 3; channels++) {
            struct made_options options = plain;
            options.ranks = ranks;
            options.channels = channels;
            options.seed = (uint64_t)(ranks * 10 + channels);
            struct made_job *job = made_create(&options);
            struct analysis *analysis = world_analysis(job);
            check_whole(analysis, job);
            assert_int_equal(analysis->job.verdicts.count, 0);
            analysis_destroy(&analysis);
            made_destroy(job);
        }
}

/* Calls that move data between many pairs, over as many connections, in rings and groups besides. */
static void test_exchanges(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 5; ranks++) {
        struct made_options options = plain;
        options.ranks = ranks;
        options.exchanges = true;
        struct made_job *job = made_create(&options);
        struct analysis *analysis = world_analysis(job);
        size_t between_pairs = 0;
        check_whole(analysis, job);
        for (size_t i = 0; i < analysis->job.operations.count; i++)
            between_pairs += analysis->job.operations.items[i].algorithm == ALGORITHM_POINT_TO_POINT;
        assert_int_equal(between_pairs, 4 * (size_t)options.steps);
        analysis_destroy(&analysis);
        made_destroy(job);
    }
}

/* Two communicators on the same ranks and ports, whose operations run at the same time. */
static void test_communicators_that_overlap(void **state)
{
    (void)state;
    for (int queue_pairs = 1; queue_pairs <= 2; queue_pairs++) {
        struct made_options options = plain;
        options.overlaps = true;
        options.queue_pairs = queue_pairs;
        struct made_job *job = made_create(&options);
        struct analysis *analysis = world_analysis(job);
        const struct operation *first = &analysis->job.operations.items[0], *second = first + 1;
        check_whole(analysis, job);
        assert_int_not_equal(first->communicator, second->communicator);
        assert_true(second->last_arrival_ns < first->end_ns && first->last_arrival_ns < second->end_ns);
        analysis_destroy(&analysis);
        made_destroy(job);
    }
}

/* Which communicator's the queue pairs are is not known, since two of them do the same: that nothing went over the wire
 * is not known either. */
static void test_queue_pairs_without_owner(void **state)
{
    struct made_options options = plain;
    (void)state;
    options.twin = true;
    options.ownerless = true;
    struct made_job *job = made_create(&options);
    struct analysis *analysis = world_analysis(job);
    assert_int_equal(analysis->job.rank_operations.count, 2 * job->operations * options.steps * options.ranks);
    for (size_t i = 0; i < analysis->job.rank_operations.count; i++)
        assert_int_equal(analysis->job.rank_operations.items[i].record.flags &
                             (RANK_OPERATION_NO_WIRE | RANK_OPERATION_INCOMPLETE),
                         RANK_OPERATION_INCOMPLETE);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* A send between ranks of one machine without a queue pair: nothing is missing of it, nor of the others. */
static void test_sends_within_a_node(void **state)
{
    struct made_options options = plain;
    int inside = 0;
    (void)state;
    options.inside = true;
    struct made_job *job = made_create(&options);
    struct analysis *analysis = world_analysis(job);
    for (size_t i = 0; i < analysis->records.count; i++) {
        const struct record_rank_operation *record = &analysis->records.items[i];
        bool is_inside = (record->operation == OPERATION_SEND && record->rank == 0 && record->peer == 2) ||
                         (record->operation == OPERATION_RECV && record->rank == 2 && record->peer == 0);
        inside += is_inside;
        assert_int_equal(record->flags & (RANK_OPERATION_NO_WIRE | RANK_OPERATION_INCOMPLETE),
                         is_inside ? RANK_OPERATION_NO_WIRE : 0);
    }
    assert_int_equal(inside, 2 * options.steps);
    assert_int_equal(observed_bytes(analysis, 0), job->sent_bytes);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* PXN: what a rank sends over a neighbour's queue pair is its own all the same; only the device is the neighbour's. */
static void test_sent_by_a_neighbour(void **state)
{
    struct made_options options = plain;
    (void)state;
    struct made_job *job = made_create(&options);
    options.pxn = true;
    struct made_job *pxn_job = made_create(&options);
    struct analysis *wanted = world_analysis(job), *got = world_analysis(pxn_job);
    check_whole(got, pxn_job);
    assert_int_equal(got->records.count, wanted->records.count);
    for (size_t i = 0; i < wanted->records.count; i++) {
        struct record_rank_operation record = got->records.items[i];
        assert_string_equal(record.device, record.rank < 2 ? "rxe0/1" : "rxe2/1");
        memcpy(record.device, wanted->records.items[i].device, sizeof record.device);
        assert_memory_equal(&record, &wanted->records.items[i], sizeof record);
    }
    analysis_destroy(&wanted);
    analysis_destroy(&got);
    made_destroy(job);
    made_destroy(pxn_job);
}

/* How connections can be made, and slots dealt to their queue pairs. */
static const struct dealing {
    int queue_pairs;
    bool striped;
} dealings[] = {{1, false}, {2, false}, {4, false}, {2, true}, {4, true}};
#define DEALINGS (sizeof dealings / sizeof dealings[0])

static struct made_job *made_dealt(const struct dealing *dealing)
{
    struct made_options options = plain;

    options.queue_pairs = dealing->queue_pairs;
    options.striped = dealing->striped;
    return made_create(&options);
}

/* Connections of several queue pairs, in turn and striped: every record is as with one, to the nanosecond. */
static void test_queue_pairs_of_a_connection_are_one(void **state)
{
    struct made_job *one = made_dealt(&dealings[0]);
    struct analysis *wanted = world_analysis(one);
    (void)state;
    for (size_t i = 1; i < DEALINGS; i++) {
        struct made_job *job = made_dealt(&dealings[i]);
        struct analysis *analysis = world_analysis(job);
        check_whole(analysis, job);
        assert_int_equal(analysis->records.count, wanted->records.count);
        assert_memory_equal(analysis->records.items, wanted->records.items,
                            wanted->records.count * sizeof wanted->records.items[0]);
        analysis_destroy(&analysis);
        made_destroy(job);
    }
    analysis_destroy(&wanted);
    made_destroy(one);
}

static void test_warm_up_is_no_step(void **state)
{
    struct made_options options = plain;
    (void)state;
    options.warm_up = true;
    struct made_job *job = made_create(&options);
    struct analysis *analysis = world_analysis(job);

    check_whole(analysis, job);
    assert_int_equal(analysis->job.operations.items[0].step, -1);
    assert_int_equal(analysis->job.operations.items[1].step, 0);
    analysis_destroy(&analysis);
    made_destroy(job);
}

/* The emitters' clocks are seconds away from the reference and from each other. */
static void test_clocks_that_differ(void **state)
{
    struct made_options options = plain;
    (void)state;
    options.nic_offset_ns = 7000 * (int64_t)MADE_MS;
    options.host_offset_ns = -300 * (int64_t)MADE_MS;
    struct made_job *job = made_create(&options);
    struct analysis *analysis = world_analysis(job);

    check_whole(analysis, job);
    assert_in_range(analysis->job.steps.items[0].start_ns, job->first_step_ns, job->first_step_ns + 30 * MADE_MS);
    analysis_destroy(&analysis);
    made_destroy(job);
}

static void check_verdicts(const struct made_options *options, enum verdict_class class, uint64_t error_ns)
{
    struct made_job *job = made_create(options);
    struct analysis *analysis = world_analysis(job);

    check_whole(analysis, job);
    assert_int_equal(analysis->job.verdicts.count, options->steps - options->fault_first_step);
    for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
        const struct verdict *verdict = &analysis->job.verdicts.items[i];
        assert_int_equal(verdict->class, class);
        assert_int_equal(verdict->rank, options->fault_rank);
        assert_int_equal(verdict->step, options->fault_first_step + (int)i);
        assert_true(strlen(verdict->evidence) > 40);
        if (error_ns != 0)
            assert_in_range(verdict->size_ns, options->fault_ns - error_ns, options->fault_ns + error_ns);
    }
    analysis_destroy(&analysis);
    made_destroy(job);
}

static void test_each_fault_names_its_rank(void **state)
{
    static const struct {
        enum made_fault fault;
        enum verdict_class class;
        uint64_t error_ns;
    } faults[] = {{MADE_HOST, VERDICT_HOST_LATE, 2 * MADE_MS},
                  {MADE_GPU, VERDICT_GPU_LATE, 2 * MADE_MS},
                  {MADE_LINK, VERDICT_NETWORK_SLOW, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        for (int rank = 0; rank < 4; rank++) {
            struct made_options options = plain;
            options.fault = faults[i].fault;
            options.fault_rank = rank;
            options.fault_first_step = 3 + rank;
            options.fault_ns = (40 + 40 * (uint64_t)rank) * MADE_MS;
            options.seed = 7 * i + (uint64_t)rank;
            check_verdicts(&options, faults[i].class, faults[i].error_ns);
        }
}

static void test_slow_link_names_pair_and_device(void **state)
{
    struct made_options options = plain;
    (void)state;
    options.fault = MADE_LINK;
    options.fault_rank = 2;
    options.fault_first_step = 4;
    struct made_job *job = made_create(&options);
    struct analysis *analysis = world_analysis(job);
    const struct verdict *verdict = &analysis->job.verdicts.items[0];

    assert_int_equal(verdict->rank, 2);
    assert_int_equal(verdict->peer_rank, 3);
    assert_string_equal(verdict->device, "rxe2/1");
    analysis_destroy(&analysis);
    made_destroy(job);
}

/*
 * A link at half its rate, in steps 5 to the last: no constant pace tells, but its own steps before do. One that is as
 * fast as always is not slow.
 */
static void test_link_slower_than_usual(void **state)
{
    (void)state;
    for (unsigned times = 1; times <= 2; times++) {
        struct made_options options = plain;
        options.steps = 16;
        options.fault = MADE_LINK;
        options.fault_rank = 1;
        options.fault_first_step = 5;
        options.fault_times = times;
        struct made_job *job = made_create(&options);
        struct analysis *analysis = world_analysis(job);
        assert_int_equal(analysis->job.verdicts.count, times == 1 ? 0 : 16 - 5);
        for (size_t i = 0; i < analysis->job.verdicts.count; i++) {
            const struct verdict *verdict = &analysis->job.verdicts.items[i];
            assert_int_equal(verdict->class, VERDICT_NETWORK_SLOW);
            assert_int_equal(verdict->rank, 1);
            assert_int_equal(verdict->peer_rank, 2);
            assert_int_equal(verdict->step, 5 + (int)i);
        }
        analysis_destroy(&analysis);
        made_destroy(job);
    }
}

static void check_loss(const struct made_job *job, size_t lost)
{
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);
    size_t incomplete = 0;

    for (size_t i = 0; i < job->nic.count; i++)
        if (i != lost)
            analysis_add_batch(analysis, job->nic.batches[i].bytes, job->nic.batches[i].length_bytes);
    add_feed(analysis, &job->host);
    analysis_run(analysis);
    for (size_t i = 0; i < analysis->job.operations.count; i++)
        incomplete += (analysis->job.operations.items[i].flags & RANK_OPERATION_INCOMPLETE) != 0;
    assert_int_equal(incomplete, 1);
    assert_int_equal(analysis->job.steps.count, plain.steps);
    assert_int_equal(analysis->gaps.count, 1);
    assert_int_equal(analysis->gaps.items[0].lost, 1);
    assert_string_equal(gap_cause_name(analysis->gaps.items[0].cause), "batches lost");
    analysis_destroy(&analysis);
}

/* One lost batch of the NIC side: the operation that it carried is incomplete, all others are whole. */
static void test_loss_touches_only_what_it_hit(void **state)
{
    (void)state;
    for (size_t i = 0; i < DEALINGS; i++) {
        struct made_job *job = made_dealt(&dealings[i]);
        for (size_t lost = 3; lost + 6 < job->nic.count; lost += 5)
            check_loss(job, lost);
        made_destroy(job);
    }
}

/* The same job, its messages in records of their own and in runs: equal messages, one by one, and equal rows. */
static void test_runs_of_messages_are_the_messages(void **state)
{
    struct made_job *plain_job = made_create(&plain), *packed_job = made_create(&plain);
    size_t plain_bytes = 0, packed_bytes = 0;

    (void)state;
    feed_pack(&packed_job->nic);
    for (size_t i = 0; i < plain_job->nic.count; i++) {
        plain_bytes += plain_job->nic.batches[i].length_bytes;
        packed_bytes += packed_job->nic.batches[i].length_bytes;
    }
    assert_true(packed_bytes < plain_bytes);
    struct analysis *wanted = world_analysis(plain_job), *got = world_analysis(packed_job);
    check_whole(got, packed_job);
    assert_true(wanted->naming.messages.count > 1000);
    assert_int_equal(got->naming.messages.count, wanted->naming.messages.count);
    for (size_t i = 0; i < wanted->naming.messages.count; i++)
        assert_memory_equal(&got->naming.messages.items[i], &wanted->naming.messages.items[i], sizeof(struct message));
    analysis_destroy(&wanted);
    analysis_destroy(&got);
    made_destroy(plain_job);
    made_destroy(packed_job);
}

/* Merges the data messages of each flow in this batch to one burst; what they were becomes messages of no meaning. */
static void merge_batch(const struct feed_batch *batch)
{
    struct record_message *bursts[64] = {0};

    for (size_t at = sizeof(struct batch_header); at < batch->length_bytes;) {
        struct record_message *message = (struct record_message *)(batch->bytes + at);
        at += message->header.length_bytes;
        if (message->header.kind != RECORD_MESSAGE || message->role != ROLE_DATA)
            continue;
        struct record_message **burst = &bursts[message->header.source % 64];
        if (*burst == NULL) {
            *burst = message;
            continue;
        }
        (*burst)->immediate = ((*burst)->flags & MESSAGE_MERGED) != 0 ? (*burst)->immediate + 1 : 2;
        (*burst)->flags = MESSAGE_MERGED;
        (*burst)->duration_ns = (uint32_t)(message->first_ns + message->duration_ns - (*burst)->first_ns);
        (*burst)->payload_bytes += message->payload_bytes;
        (*burst)->frames += message->frames;
        message->payload_bytes = 0;
        message->role = ROLE_OTHER;
    }
}

static void check_bursts(struct made_job *job, size_t merged)
{
    size_t vague = 0;

    merge_batch(&job->nic.batches[merged]);
    merge_batch(&job->nic.batches[merged + 1]);
    struct analysis *analysis = world_analysis(job);
    for (size_t i = 0; i < analysis->job.rank_operations.count; i++) {
        const struct record_rank_operation *record = &analysis->job.rank_operations.items[i].record;
        bool is_vague = (record->flags & (RANK_OPERATION_INCOMPLETE | RANK_OPERATION_UNKNOWN_ALGORITHM)) != 0;
        vague += is_vague;
        if (!is_vague)
            assert_int_equal(record->observed_bytes, record->expected_bytes);
    }
    assert_in_range(vague, 1, 3 * (size_t)job->operations * (size_t)job->options.ranks);
    assert_true(observed_bytes(analysis, 0) + observed_bytes(analysis, RANK_OPERATION_INCOMPLETE) <= job->sent_bytes);
    analysis_destroy(&analysis);
}

/* Bursts: what they touch is called incomplete; what is called complete has the right bytes; no byte is counted twice.
 */
static void test_bursts_make_vague_and_never_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < DEALINGS; i++)
        for (size_t merged = 3; merged < 30; merged += 4) {
            struct made_job *job = made_dealt(&dealings[i]);
            check_bursts(job, merged);
            made_destroy(job);
        }
}

/* The rows of every table, one text. */
static char *dump(const char *path)
{
    sqlite3 *database;
    sqlite3_stmt *tables;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_prepare_v2(database, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name", -1, &tables,
                       NULL);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        char sql[128];
        sqlite3_stmt *rows;
        snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY rowid", sqlite3_column_text(tables, 0));
        assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &rows, NULL), SQLITE_OK);
        while (sqlite3_step(rows) == SQLITE_ROW)
            for (int i = 0; i < sqlite3_column_count(rows); i++)
                fprintf(out, "%s|", sqlite3_column_text(rows, i) ? (const char *)sqlite3_column_text(rows, i) : "NULL");
        sqlite3_finalize(rows);
    }
    sqlite3_finalize(tables);
    sqlite3_close(database);
    fclose(out);
    return text;
}

/* Shuffled, doubled and analysed in between: the same rows. */
static void test_order_and_repetition_leave_no_trace(void **state)
{
    struct made_options options = plain;
    options.fault = MADE_HOST;
    options.fault_rank = 1;
    options.fault_first_step = 5;
    options.fault_ns = 60 * MADE_MS;
    struct made_job *job = made_create(&options);
    struct analysis *first = world_analysis(job);
    struct analysis *second = analysis_create(ANALYSIS_MEMORY_BYTES);

    for (size_t i = job->host.count; i-- > 0;)
        analysis_add_batch(second, job->host.batches[i].bytes, job->host.batches[i].length_bytes);
    for (size_t i = 0; i < job->nic.count; i += 2)
        analysis_add_batch(second, job->nic.batches[i].bytes, job->nic.batches[i].length_bytes);
    analysis_run(second);
    for (size_t i = job->nic.count; i-- > 0;)
        analysis_add_batch(second, job->nic.batches[i].bytes, job->nic.batches[i].length_bytes);
    assert_true(second->intake.duplicates_count > 0);
    analysis_run(second);
    assert_int_equal(analysis_write(first, scratch_path(state, "", "first.db")), 0);
    assert_int_equal(analysis_write(second, scratch_path(state, "", "second.db")), 0);
    char *left = dump(scratch_path(state, "", "first.db"));
    char *right = dump(scratch_path(state, "", "second.db"));
    assert_true(strstr(left, "host late") != NULL);
    assert_string_equal(left, right);
    free(left);
    free(right);
    analysis_destroy(&first);
    analysis_destroy(&second);
    made_destroy(job);
}

static void test_store_is_replaced_as_a_whole(void **state)
{
    struct made_job *job = made_create(&plain);
    struct analysis *analysis = world_analysis(job);
    const char *path = scratch_path(state, "", "again.db");

    assert_int_equal(analysis_write(analysis, path), 0);
    char *once = dump(path);
    assert_int_equal(analysis_write(analysis, path), 0);
    char *twice = dump(path);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
    analysis_destroy(&analysis);
    made_destroy(job);
}

static void check_same(struct store *store, const char *path, const struct analysis *analysis, void **state)
{
    const char *fresh = scratch_path(state, "", "fresh.db");

    unlink(fresh);
    assert_int_equal(store_write(store, analysis), 0);
    assert_int_equal(analysis_write(analysis, fresh), 0);
    char *left = dump(path);
    char *right = dump(fresh);
    assert_string_equal(left, right);
    free(left);
    free(right);
}

/* A store that is kept open writes what changed: it then holds what one that is written at once holds. */
static void test_what_changed_is_written(void **state)
{
    struct made_job *job = made_create(&plain);
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);
    struct analysis *nothing = analysis_create(ANALYSIS_MEMORY_BYTES);
    const char *path = scratch_path(state, "", "kept.db");
    struct store *store;

    analysis_run(nothing);
    assert_int_equal(store_open(&store, path), 0);
    for (size_t part = 0; part < 3; part++) {
        for (size_t i = part; i < job->nic.count; i += 3)
            analysis_add_batch(analysis, job->nic.batches[i].bytes, job->nic.batches[i].length_bytes);
        for (size_t i = job->host.count * part / 3; i < job->host.count * (part + 1) / 3; i++)
            analysis_add_batch(analysis, job->host.batches[i].bytes, job->host.batches[i].length_bytes);
        analysis_run(analysis);
        check_same(store, path, analysis, state);
    }
    check_same(store, path, analysis, state); /* nothing changed */
    check_same(store, path, nothing, state);
    check_same(store, path, analysis, state);
    store_close(&store);
    analysis_destroy(&analysis);
    analysis_destroy(&nothing);
    made_destroy(job);
}

static void test_strangers_file_is_refused(void **state)
{
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);
    const char *path = scratch_path(state, "", "other.db");
    sqlite3 *database;

    analysis_run(analysis);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "CREATE TABLE theirs (x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    assert_int_equal(analysis_write(analysis, path), -EINVAL);
    scratch_write(scratch_path(state, "", "text.db"), "This is no database, however long it is.", 40, 0600);
    assert_int_equal(analysis_write(analysis, scratch_path(state, "", "text.db")), -EINVAL);
    analysis_destroy(&analysis);
}

/* A full disk (here a limit on the file's size): the store keeps what it held, and takes more as soon as it can. */
static void test_full_disk_is_survived(void **state)
{
    struct made_options small = plain;
    small.steps = 2;
    struct made_job *little = made_create(&small);
    struct made_job *large = made_create(&plain);
    struct analysis *before = world_analysis(little);
    struct analysis *after = world_analysis(large);
    const char *path = scratch_path(state, "", "full.db");
    struct rlimit usual, tight;

    assert_int_equal(analysis_write(before, path), 0);
    char *held = dump(path);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &usual);
    tight = (struct rlimit){.rlim_cur = 200 * 1024, .rlim_max = usual.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    int error = analysis_write(after, path);
    setrlimit(RLIMIT_FSIZE, &usual);
    assert_true(error == -ENOSPC || error == -EIO);
    char *still = dump(path);
    assert_string_equal(held, still);
    assert_int_equal(analysis_write(after, path), 0);
    free(held);
    free(still);
    analysis_destroy(&before);
    analysis_destroy(&after);
    made_destroy(little);
    made_destroy(large);
}

/* Rules 1 and 2: with too little memory the oldest detail goes, and is missed by name. */
static void test_memory_is_bounded(void **state)
{
    struct made_job *job = made_create(&plain);
    struct analysis *analysis = analysis_create(200 * 1024);
    (void)state;
    add_feed(analysis, &job->nic);
    add_feed(analysis, &job->host);
    analysis_run(analysis);
    assert_true(analysis->intake.held_bytes <= 220 * 1024);
    assert_in_range(analysis->gaps.count, 1, 2); /* of each side */
    for (size_t i = 0; i < analysis->gaps.count; i++) {
        assert_string_equal(gap_cause_name(analysis->gaps.items[i].cause), "memory");
        assert_true(analysis->gaps.items[i].lost > 0);
    }
    assert_int_equal(analysis->naming.queue_pairs.count, 4 * 6);
    analysis_destroy(&analysis);
    made_destroy(job);
}

static void test_nothing_is_an_answer(void **state)
{
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);

    assert_int_equal(analysis_add_batch(analysis, "stranger", 8), -EBADMSG);
    analysis_run(analysis);
    assert_int_equal(analysis->intake.rejected_count, 1);
    assert_int_equal(analysis_write(analysis, scratch_path(state, "", "nothing.db")), 0);
    analysis_destroy(&analysis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_in_its_operation),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_communicators_that_overlap),
        cmocka_unit_test(test_queue_pairs_without_owner),
        cmocka_unit_test(test_sends_within_a_node),
        cmocka_unit_test(test_sent_by_a_neighbour),
        cmocka_unit_test(test_queue_pairs_of_a_connection_are_one),
        cmocka_unit_test(test_warm_up_is_no_step),
        cmocka_unit_test(test_clocks_that_differ),
        cmocka_unit_test(test_each_fault_names_its_rank),
        cmocka_unit_test(test_slow_link_names_pair_and_device),
        cmocka_unit_test(test_link_slower_than_usual),
        cmocka_unit_test(test_loss_touches_only_what_it_hit),
        cmocka_unit_test(test_runs_of_messages_are_the_messages),
        cmocka_unit_test(test_bursts_make_vague_and_never_wrong),
        cmocka_unit_test(test_order_and_repetition_leave_no_trace),
        cmocka_unit_test(test_store_is_replaced_as_a_whole),
        cmocka_unit_test(test_what_changed_is_written),
        cmocka_unit_test(test_strangers_file_is_refused),
        cmocka_unit_test(test_full_disk_is_survived),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_nothing_is_an_answer),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("analysis", tests, scratch_setup, scratch_teardown);
}
