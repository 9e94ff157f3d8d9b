/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows and messages asked for while 2000 flows go on as fast as one core takes them: every answer must be complete
 * (a window for each frame that was sent in the interval, to the byte), no window may be lost, and the messages must
 * keep to their rate. Frames are stamped with the clock, as live ones are. Ends with 1 when something is missing.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nic/publisher.h"
#include "tests/bench/nic/traffic.h"
#include "wire/batch.h"
#include "wire/clock.h"
#include "wire/link.h"
#include "wire/log.h"
#include "wire/option.h"

#define MS             1000000ull
#define WINDOW_NS      8000u
#define INTERVAL_NS    (5 * MS)
#define ASK_EACH_NS    (500 * MS)
#define REQUESTS_MAX   64
#define ANSWER_WAIT_NS (20000 * MS)

struct settings {
    uint64_t duration_ns;
    uint64_t flows;
    bool json;
};

/* One request: what was sent in its interval, and what came back. */
struct request {
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t frames;
    uint64_t bytes;
    uint64_t asked_ns;
    /* by the receiver */
    uint64_t got_frames;
    uint64_t got_bytes;
    uint64_t got_windows;
    struct record_trigger_end end;
    uint64_t ended_ns;
};

struct bench {
    struct settings settings;
    struct traffic traffic;
    struct tallies tallies;
    struct counter_table counters;
    struct meter meter;
    struct publisher *publisher;
    char folder[64];
    char intake_url[96];
    char control_url[96];
    struct request requests[REQUESTS_MAX];
    unsigned asked;
    atomic_uint ended;
    atomic_bool stop;
    uint64_t frames;
    uint64_t begun_ns;
    uint64_t taken_ns;
    /* by the receiver */
    uint64_t message_bytes;
    uint64_t messages_frames;
    uint64_t losses;
};

#define AT(field) offsetof(struct settings, field)
static const struct option_spec specs[] = {
    {"seconds", 's', OPTION_DURATION, AT(duration_ns), "TIME", "how long", 1000000, 0, NULL},
    {"flows", 'n', OPTION_UNSIGNED, AT(flows), "N", "flows that take turns", 1, 8000, NULL},
    {"json", 'j', OPTION_FLAG, AT(json), NULL, "print one JSON object", 0, 0, NULL},
};
static const struct option_program program = {
    .name = "bench_fetch",
    .summary = "Asks for intervals of traffic that goes on at full speed, and checks the answers.",
    .usage = "[OPTIONS]",
    .options = specs,
    .options_count = sizeof specs / sizeof specs[0],
};

/* ---- the node stage's end ---- */

/* A run of messages is taken off the batch as a whole, with its first message. */
static void take_record(struct bench *bench, const union record *record, size_t taken_bytes)
{
    unsigned current = atomic_load(&bench->ended);
    struct request *request = &bench->requests[current % REQUESTS_MAX];

    switch (record->header.kind) {
    case RECORD_MESSAGE:
        bench->message_bytes += taken_bytes;
        bench->messages_frames += record->message.frames;
        break;
    case RECORD_WINDOW:
        request->got_windows++;
        request->got_frames += record->window.frames;
        request->got_bytes += record->window.payload_bytes;
        break;
    case RECORD_LOSS:
        bench->losses++;
        break;
    case RECORD_TRIGGER_END:
        request->end = record->trigger_end;
        request->ended_ns = clock_now_ns();
        atomic_store(&bench->ended, current + 1);
        break;
    default:
        break;
    }
}

static void take_batch(struct bench *bench, struct batch *batch)
{
    union record record;
    uint64_t unknown = 0;
    const uint8_t *before = batch->records.at;

    for (; batch_next(batch, &record, &unknown) == 1; before = batch->records.at)
        take_record(bench, &record, (size_t)(batch->records.at - before));
}

static void *run_receiver(void *context)
{
    static uint8_t message[LINK_MESSAGE_BYTES_MAX];
    struct bench *bench = context;
    const struct link_options options = {.role = LINK_RECEIVE, .url = bench->intake_url};
    struct link *intake = NULL;
    size_t length;

    if (link_open(&intake, &options) != 0)
        return NULL;
    while (!atomic_load(&bench->stop)) {
        struct batch batch;
        if (link_receive(intake, message, sizeof message, &length) != 0)
            usleep(200);
        else if (batch_read(&batch, message, length) == 0)
            take_batch(bench, &batch);
    }
    link_close(&intake, 0);
    return NULL;
}

/* ---- the measuring thread ---- */

static void ask(struct bench *bench, struct emitter *asker, uint64_t now_ns)
{
    struct request *request = &bench->requests[bench->asked++];
    uint64_t from_ns = (now_ns + 20 * MS) / WINDOW_NS * WINDOW_NS;

    *request = (struct request){
        .from_ns = from_ns, .to_ns = from_ns + INTERVAL_NS / WINDOW_NS * WINDOW_NS, .asked_ns = now_ns};
    struct record_trigger trigger = {
        .header.source = bench->asked, .from_ns = request->from_ns, .to_ns = request->to_ns, .limit = 1u << 20};
    emitter_add(asker, RECORD_TRIGGER, &trigger);
    emitter_flush(asker);
}

static void measure_burst(struct bench *bench, struct source_frame *frames, unsigned count)
{
    struct request *request = bench->asked == 0 ? NULL : &bench->requests[bench->asked - 1];
    uint64_t now_ns = clock_now_ns();
    struct record_message message;

    for (unsigned i = 0; i < count; i++) {
        bool is_first = frames[i].bytes[42] == 0x06; /* its RETH takes 16 bytes of the payload's place */
        frames[i].at_ns = now_ns;
        if (request == NULL || now_ns < request->from_ns || now_ns >= request->to_ns)
            continue;
        request->frames++;
        request->bytes += bench->traffic.payload_bytes - (is_first ? 16 : 0);
    }
    meter_frames(&bench->meter, frames, count);
    while (message_take(bench->meter.messages, &message))
        publisher_add_message(bench->publisher, &message);
    publisher_tick(bench->publisher, now_ns);
    bench->frames += count;
}

static void pass_all(struct bench *bench)
{
    struct source_frame frames[SOURCE_BURST_FRAMES];
    uint64_t start_ns;

    traffic_fill(&bench->traffic);
    start_ns = clock_now_ns();
    for (size_t i = 0; i < bench->traffic.buffers_count;) {
        unsigned count = 0;
        for (; count < SOURCE_BURST_FRAMES && i < bench->traffic.buffers_count; count++, i++)
            frames[count] = (struct source_frame){.bytes = traffic_frame(&bench->traffic, i),
                                                  .captured_bytes = TRAFFIC_CAPTURED_BYTES,
                                                  .original_bytes = traffic_frame_bytes(&bench->traffic),
                                                  .port = 1};
        measure_burst(bench, frames, count);
    }
    bench->taken_ns += clock_now_ns() - start_ns;
}

static void run_load(struct bench *bench, struct emitter *asker)
{
    uint64_t begun_ns = clock_now_ns(), asked_ns = begun_ns, now_ns;

    bench->begun_ns = begun_ns;
    while ((now_ns = clock_now_ns()) - begun_ns < bench->settings.duration_ns) {
        pass_all(bench);
        emitter_tick(asker);
        if (now_ns - asked_ns < ASK_EACH_NS || bench->asked == REQUESTS_MAX || bench->asked != bench->ended)
            continue;
        asked_ns = now_ns;
        ask(bench, asker, now_ns);
    }
    while (bench->ended < bench->asked && clock_now_ns() < now_ns + ANSWER_WAIT_NS)
        pass_all(bench);
}

static bool check(const struct bench *bench)
{
    bool is_right = bench->ended == bench->asked && bench->asked != 0 && bench->losses == 0;

    for (unsigned i = 0; i < bench->asked; i++) {
        const struct request *r = &bench->requests[i];
        bool is_whole = r->got_frames == r->frames && r->got_bytes == r->bytes && r->end.windows == r->got_windows &&
                        r->end.left_out == 0 && r->end.from_ns == r->from_ns && r->end.to_ns == r->to_ns;
        if (!is_whole)
            log_error("request %u: %llu of %llu frames, %llu of %llu bytes, %llu windows, %llu left out", i + 1,
                      (unsigned long long)r->got_frames, (unsigned long long)r->frames,
                      (unsigned long long)r->got_bytes, (unsigned long long)r->bytes,
                      (unsigned long long)r->end.windows, (unsigned long long)r->end.left_out);
        is_right &= is_whole;
    }
    return is_right && traffic_is_counted(&bench->traffic, &((struct bench *)(uintptr_t)bench)->meter);
}

static void print(const struct bench *bench, bool is_right)
{
    uint64_t windows = 0, longest_ns = 0;

    for (unsigned i = 0; i < bench->asked; i++) {
        const struct request *request = &bench->requests[i];
        uint64_t taken_ns = request->ended_ns > request->to_ns ? request->ended_ns - request->to_ns : 0;
        windows += request->got_windows;
        longest_ns = taken_ns > longest_ns ? taken_ns : longest_ns;
    }
    double seconds = (double)(clock_now_ns() - bench->begun_ns) / 1e9;
    double rate = (double)bench->frames / ((double)bench->taken_ns / 1e9);
    double volume = (double)bench->message_bytes / seconds;
    if (bench->settings.json)
        printf(
            "{\"complete\":%s,\"requests\":%u,\"windows\":%llu,\"longest_answer_ms\":%.1f,\"frames_per_second\":%.0f,"
            "\"message_bytes_per_second\":%.0f}\n",
            is_right ? "true" : "false", bench->asked, (unsigned long long)windows, (double)longest_ns / 1e6, rate,
            volume);
    else
        printf("%u requests, %llu windows, %s; the longest came %.1f ms after its interval\n%.2f million frames/s "
               "meanwhile, messages at %.2f MB/s\n",
               bench->asked, (unsigned long long)windows, is_right ? "complete" : "NOT complete",
               (double)longest_ns / 1e6, rate / 1e6, volume / 1e6);
}

static int open_bench(struct bench *bench, struct emitter **asker)
{
    const struct meter_options meter = {
        .window_ns = WINDOW_NS, .flows_max = 8192, .messages_max = 65536, .memory_bytes = 128u << 20};
    strcpy(bench->folder, "/tmp/qpscope-fetch-XXXXXX");
    if (mkdtemp(bench->folder) == NULL)
        return -1;
    snprintf(bench->intake_url, sizeof bench->intake_url, "ipc://%s/intake", bench->folder);
    snprintf(bench->control_url, sizeof bench->control_url, "ipc://%s/control", bench->folder);
    bench->counters = tally_table(&bench->tallies);
    const struct publisher_options publisher = {.emitter = {.kind = EMITTER_NIC,
                                                            .instance = "bench",
                                                            .link_url = bench->intake_url,
                                                            .window_ns = WINDOW_NS,
                                                            .counters = &bench->counters},
                                                .control_url = bench->control_url,
                                                .message_bytes_a_second = 4000000};
    const struct emitter_options own = {.kind = EMITTER_COMMAND, .instance = "bench", .link_url = bench->control_url};
    int error = traffic_create(&bench->traffic, (uint32_t)bench->settings.flows, 4096, 0, 16000);

    if (error == 0)
        error = meter_init(&bench->meter, &meter, &bench->tallies);
    if (error == 0)
        error = publisher_open(&bench->publisher, &publisher, &bench->meter);
    if (error == 0)
        error = emitter_open(asker, &own);
    if (error == 0)
        meter_prepare(&bench->meter);
    return error;
}

int main(int argc, char **argv)
{
    static struct bench bench = {.settings = {.duration_ns = 10000 * MS, .flows = 2000}};
    struct emitter *asker = NULL;
    pthread_t receiver;
    char **positionals;
    size_t count;
    bool is_right = false;

    log_init("bench_fetch", LOG_WARNING);
    int parsed = option_parse(&program, argc, argv, &bench.settings, &positionals, &count);
    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    if (open_bench(&bench, &asker) == 0 && pthread_create(&receiver, NULL, run_receiver, &bench) == 0) {
        run_load(&bench, asker);
        is_right = check(&bench);
        print(&bench, is_right);
        emitter_close(&asker);
        publisher_close(&bench.publisher);
        atomic_store(&bench.stop, true);
        pthread_join(receiver, NULL);
    }
    meter_fini(&bench.meter);
    traffic_destroy(&bench.traffic);
    unlink(bench.intake_url + strlen("ipc://"));
    unlink(bench.control_url + strlen("ipc://"));
    rmdir(bench.folder);
    return is_right ? 0 : 1;
}
