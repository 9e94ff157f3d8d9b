/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_live: a job stage that hears a made-up job (made.h) step by step, as node stages tell it, and analyses after
 * each step: how long that takes, with all steps held so far, which is what a verdict comes after its step; beside it
 * how long one analysis of all takes, by windows and in one window over all steps, which is what a turn took before
 * there were windows. All three say the same. Time is the CPU's, of this thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/analysis.h"
#include "correlator/store/store.h"
#include "tests/bench/correlator/made.h"
#include "wire/log.h"
#include "wire/operation_run.h"
#include "wire/option.h"

#define NODE_RANKS 8

struct settings {
    struct made_shape shape;
    uint64_t records;
    const char *store;
    bool json;
};

#define AT(member) offsetof(struct settings, member)
static const struct option_spec options[] = {
    {"ranks", 'r', OPTION_UNSIGNED, AT(shape.ranks), "N", "ranks, a multiple of 64 (4096)", 64, 1 << 20, NULL},
    {"steps", 's', OPTION_UNSIGNED, AT(shape.steps), "N", "steps (100)", 1, 1 << 20, NULL},
    {"operations", 'o', OPTION_UNSIGNED, AT(shape.operations), "N", "operations of a rank and step (4)", 1, 1024, NULL},
    {"records", 'w', OPTION_UNSIGNED, AT(records), "N", "records of a window (all)", 1, 1 << 30, NULL},
    {"store", 'S', OPTION_TEXT, AT(store), "FILE", "write a store into this new file after each turn, too", 0, 0, NULL},
    {"json", 'j', OPTION_FLAG, AT(json), NULL, "one JSON object", 0, 0, NULL},
};

static const struct option_program program = {
    .name = "bench_live",
    .summary = "measure how long a verdict takes while a job runs",
    .usage = "[OPTIONS]",
    .options = options,
    .options_count = sizeof options / sizeof *options,
    .epilogue = "Exit codes: 0 live and at once the same, the late rank in each step, nobody else; 1 not; 2 usage.\n",
};

struct sender { /* one emitter's next batch */
    uint8_t bytes[BATCH_BYTES_MAX];
    struct batch_header header;
    size_t used;
};

static void begin(struct sender *sender, uint16_t kind, uint64_t emitter, uint64_t sequence, uint64_t at_ns)
{
    sender->used = sizeof sender->header;
    sender->header = (struct batch_header){.magic = BATCH_MAGIC,
                                           .version = BATCH_VERSION,
                                           .emitter_kind = kind,
                                           .emitter_id = emitter,
                                           .boot_id = 1,
                                           .sequence = sequence,
                                           .sent_ns = at_ns};
}

static void put(struct sender *sender, uint16_t kind, void *record)
{
    struct record_header *header = record;

    header->kind = kind;
    header->length_bytes = (uint16_t)record_kind_bytes(kind);
    memcpy(sender->bytes + sender->used, record, header->length_bytes);
    sender->used += header->length_bytes;
    sender->header.records_count++;
}

static void end(struct sender *sender, struct analysis *analysis)
{
    sender->header.records_bytes = (uint32_t)(sender->used - sizeof sender->header);
    memcpy(sender->bytes, &sender->header, sizeof sender->header);
    analysis_add_batch(analysis, sender->bytes, sender->used);
}

static void put_member(struct sender *sender, const struct made_shape *shape, uint64_t rank, bool of_all)
{
    uint64_t first = of_all ? 0 : rank / MADE_GROUP * MADE_GROUP;
    struct record_communicator record = {
        .communicator = 2 * (uint32_t)(rank % NODE_RANKS) + of_all + 1,
        .process = (uint32_t)(rank % NODE_RANKS) + 1,
        .pointer = 16 * rank + of_all + 1,
        .ranks_count = (int32_t)(of_all ? shape->ranks : MADE_GROUP),
        .rank = (int32_t)(rank - first),
        .created_ns = 1000 + of_all,
        .ready_ns = 2000,
        .cuda_device = -1,
    };

    made_identity(record.identity, of_all, rank);
    put(sender, RECORD_COMMUNICATOR, &record);
}

#define SEND_QPN    100
#define RECEIVE_QPN 101

static void write_address(uint8_t *address, uint64_t rank)
{
    memset(address, 0, ADDRESS_BYTES);
    address[0] = 0xfd;
    memcpy(address + 1, &rank, sizeof rank);
}

/* One to the next rank and one from the rank before, in the ring of all. */
static void put_queue_pairs(struct sender *sender, const struct made_shape *shape, uint64_t rank)
{
    for (unsigned receives = 0; receives < 2; receives++) {
        struct record_queue_pair pair = {
            .queue_pair = 2 * (uint32_t)(rank % NODE_RANKS) + receives + 1,
            .process = (uint32_t)(rank % NODE_RANKS) + 1,
            .communicator = 2 * (uint32_t)(rank % NODE_RANKS) + 2,
            .qpn = receives ? RECEIVE_QPN : SEND_QPN,
            .remote_qpn = receives ? SEND_QPN : RECEIVE_QPN,
            .port = 1,
            .state = QUEUE_PAIR_RTS,
            .connection = 0x1000 + receives,
            .origin_rank = (int32_t)rank,
            .channel = -1,
            .created_ns = 1500,
        };
        write_address(pair.address, rank);
        write_address(pair.remote_address, (rank + (receives ? shape->ranks - 1 : 1)) % shape->ranks);
        snprintf(pair.device, sizeof pair.device, "mlx5_%u", (unsigned)(rank % NODE_RANKS));
        put(sender, RECORD_QUEUE_PAIR, &pair);
    }
}

/* A NIC side that sees what each rank sends, so that what it does can be judged. */
static void tell_nic(struct analysis *analysis, struct sender *sender, const struct made_shape *shape, uint64_t node)
{
    struct record_hello hello = {.started_ns = 1, .window_ns = 8192};

    begin(sender, EMITTER_NIC, node + 1, 0, 5000);
    put(sender, RECORD_HELLO, &hello);
    for (uint64_t i = 0; i < NODE_RANKS; i++) {
        uint64_t rank = node * NODE_RANKS + i;
        struct record_port port = {.port = (uint32_t)i + 1};
        struct record_flow flow = {.flow = (uint32_t)i + 1,
                                   .vantage = VANTAGE_TX,
                                   .port = (uint32_t)i + 1,
                                   .destination_qpn = RECEIVE_QPN,
                                   .first_ns = 3000};
        write_address(port.address, rank);
        write_address(flow.source, rank);
        write_address(flow.destination, (rank + 1) % shape->ranks);
        put(sender, RECORD_PORT, &port);
        put(sender, RECORD_FLOW, &flow);
    }
    end(sender, analysis);
}

/* Who is who. */
static void tell_hosts(struct analysis *analysis, const struct made_shape *shape)
{
    struct sender *sender = array_zeroed(sizeof *sender);

    for (uint64_t node = 0; node < shape->ranks / NODE_RANKS; node++) {
        struct record_hello hello = {.started_ns = 1};
        begin(sender, EMITTER_HOST, node + 1, 0, 5000);
        put(sender, RECORD_HELLO, &hello);
        for (uint64_t i = 0; i < NODE_RANKS; i++) {
            struct record_process process = {.process = (uint32_t)i + 1, .pid = (uint32_t)i + 1, .started_ns = 500};
            put(sender, RECORD_PROCESS, &process);
        }
        for (uint64_t i = 0; i < NODE_RANKS; i++) {
            put_member(sender, shape, node * NODE_RANKS + i, false);
            put_member(sender, shape, node * NODE_RANKS + i, true);
            put_queue_pairs(sender, shape, node * NODE_RANKS + i);
        }
        end(sender, analysis);
        tell_nic(analysis, sender, shape, node);
    }
    free(sender);
}

static void tell_node(struct analysis *analysis, struct sender *sender, const struct made_shape *shape, uint64_t node,
                      uint64_t step)
{
    struct operation_coder coder;
    struct record_rank_operation record;
    uint32_t count = 0;

    made_record(&record, shape, step, 0, node * NODE_RANKS);
    begin(sender, EMITTER_NODE, node + 1, step, record.enqueued_ns);
    size_t run = sender->used;
    uint8_t *at = sender->bytes + run + sizeof(struct record_rank_operation_run);
    operation_coder_init(&coder);
    for (uint64_t n = 0; n < shape->operations; n++)
        for (uint64_t i = 0; i < NODE_RANKS; i++, count++) {
            made_record(&record, shape, step, n, node * NODE_RANKS + i);
            at = operation_coder_put(&coder, at, &record);
        }
    sender->used += operation_run_end(sender->bytes + run, (size_t)(at - sender->bytes) - run, count);
    sender->header.records_count++;
    end(sender, analysis);
}

static void tell_step(struct analysis *analysis, const struct made_shape *shape, uint64_t step)
{
    struct sender *sender = array_zeroed(sizeof *sender);

    for (uint64_t node = 0; node < shape->ranks / NODE_RANKS; node++)
        tell_node(analysis, sender, shape, node, step);
    free(sender);
}

static struct analysis *create(const struct made_shape *shape, uint64_t records)
{
    struct analysis *analysis = analysis_create(SIZE_MAX / 2);

    analysis->stage = ANALYSIS_JOB;
    analysis_judge_in_windows(analysis, records);
    tell_hosts(analysis, shape);
    return analysis;
}

struct turns { /* in seconds */
    double *seconds;
    double *stored;
    size_t count;
};

static struct analysis *play_live(const struct settings *settings, struct turns *turns)
{
    struct analysis *analysis = create(&settings->shape, settings->records);
    struct store *store = NULL;

    if (settings->store != NULL && store_open(&store, settings->store) != 0)
        exit(1);
    for (uint64_t step = 0; step < settings->shape.steps; step++) {
        tell_step(analysis, &settings->shape, step);
        double begun = made_cpu_seconds();
        analysis_run(analysis);
        double analysed = made_cpu_seconds();
        if (store != NULL)
            store_write(store, analysis);
        turns->stored[turns->count] = made_cpu_seconds() - analysed;
        turns->seconds[turns->count++] = analysed - begun;
    }
    store_close(&store);
    return analysis;
}

static struct analysis *play_once(const struct settings *settings, uint64_t records, double *seconds)
{
    struct analysis *analysis = create(&settings->shape, records);

    for (uint64_t step = 0; step < settings->shape.steps; step++)
        tell_step(analysis, &settings->shape, step);
    double begun = made_cpu_seconds();
    analysis_run(analysis);
    *seconds = made_cpu_seconds() - begun;
    return analysis;
}

static bool same_verdicts(const struct job *a, const struct job *b)
{
    bool same = a->verdicts.count == b->verdicts.count;

    for (size_t i = 0; same && i < a->verdicts.count; i++)
        same = a->verdicts.items[i].step == b->verdicts.items[i].step &&
               a->verdicts.items[i].rank == b->verdicts.items[i].rank &&
               a->verdicts.items[i].size_ns == b->verdicts.items[i].size_ns &&
               strcmp(a->verdicts.items[i].evidence, b->verdicts.items[i].evidence) == 0;
    return same;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* The turns of the second half; sorts them. */
static double quantile(double *seconds, size_t count, size_t percent)
{
    double *half = seconds + count / 2;

    qsort(half, count - count / 2, sizeof *half, by_size);
    return half[(count - count / 2 - 1) * percent / 100];
}

int main(int argc, char **argv)
{
    struct settings settings = {.shape = {.ranks = 4096, .steps = 100, .operations = 4}};
    char **positionals;
    size_t positionals_count, found = 0, wrong = 0, found_whole = 0, wrong_whole = 0;
    double once_seconds, whole_seconds;
    int parsed = option_parse(&program, argc, argv, &settings, &positionals, &positionals_count);

    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    log_init("bench_live", LOG_WARNING);
    struct turns turns = {array_zeroed(settings.shape.steps * sizeof(double)),
                          array_zeroed(settings.shape.steps * sizeof(double)), 0};
    struct analysis *live = play_live(&settings, &turns);
    double peak_mib = made_peak_mib();
    struct analysis *once = play_once(&settings, settings.records, &once_seconds);
    made_count(&live->job, &settings.shape, &found, &wrong);
    bool same = same_verdicts(&live->job, &once->job) && live->job.steps.count == settings.shape.steps;
    analysis_destroy(&live);
    analysis_destroy(&once);
    struct analysis *whole = play_once(&settings, SIZE_MAX / 2, &whole_seconds);
    made_count(&whole->job, &settings.shape, &found_whole, &wrong_whole);
    analysis_destroy(&whole);
    printf(settings.json
               ? "{\"ranks\": %" PRIu64 ", \"steps\": %" PRIu64 ", \"turn_median\": %.3f, \"turn_most\": %.3f, "
                 "\"store_median\": %.3f, \"store_most\": %.3f, \"at_once\": %.3f, \"one_window\": %.3f, "
                 "\"peak_mib\": %.0f, \"found\": %zu, \"wrong\": %zu, \"found_in_one_window\": %zu, \"same\": %d}\n"
               : "ranks %" PRIu64 "  steps %" PRIu64 "  a turn %.3f s, at most %.3f s (store %.3f s, at most %.3f s)  "
                 "all at once %.3f s  in one window, as each turn before %.3f s  live %.0f MiB  verdicts right %zu, "
                 "wrong %zu (in one window %zu right)  same %d\n",
           settings.shape.ranks, settings.shape.steps, quantile(turns.seconds, turns.count, 50),
           quantile(turns.seconds, turns.count, 100), quantile(turns.stored, turns.count, 50),
           quantile(turns.stored, turns.count, 100), once_seconds, whole_seconds, peak_mib, found, wrong, found_whole,
           same);
    free(turns.seconds);
    free(turns.stored);
    return same && wrong == 0 && found == settings.shape.steps - settings.shape.steps / 2 ? 0 : 1;
}
