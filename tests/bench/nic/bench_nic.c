/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many frames a second a core takes from memory through the whole path (receive burst, parse, flow, window,
 * message, ring), beside two floors, in one run and taking turns: DPDK's receive burst alone, and a loop that only
 * reads each header. Each turn begins with all buffers filled anew; filling is not counted. Ends with 1 when the sums
 * are not exact. A figure's best turn is what the machine can when nobody disturbs it; the mean is what it did.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/nic/port.h"
#include "tests/bench/nic/traffic.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/option.h"

#define THREADS_MAX 8
#define START_NS    1000000000u
#define WARM_TURNS  4

struct settings {
    uint64_t duration_ns;
    uint64_t buffers;
    uint64_t memory_bytes;
    uint64_t turns;
    const char *only;
    bool json;
};

struct bench_case {
    const char *name;
    uint32_t flows;
    uint32_t window_ns;
    uint32_t payload_bytes;
    uint32_t frame_ns; /* by which time stamps rise: 400 Gb/s both ways, shared by the cores */
    uint32_t threads;
    uint32_t strangers;
};

static const struct bench_case cases[] = {
    {"2000 flows", 2000, 8000, 4096, 41, 1, 0},
    {"64 flows", 64, 8000, 4096, 41, 1, 0},
    {"16000 flows", 16000, 8000, 4096, 41, 1, 0},
    {"2000 flows, 1 us windows", 2000, 1000, 4096, 41, 1, 0},
    {"2000 flows, MTU 1024, 2 queues and cores", 2000, 8000, 1024, 20, 2, 0},
    {"2000 flows, a million others", 2000, 8000, 4096, 41, 1, 1000000},
};

enum figure { FIGURE_RECEIVE, FIGURE_READ, FIGURE_PATH, FIGURES_COUNT };
static const char *const figure_names[FIGURES_COUNT] = {"receive", "read", "path"};

struct result {
    uint64_t frames;
    uint64_t taken_ns;
    uint64_t instructions;
    double best_ns; /* a frame */
};

struct lane { /* one core's */
    const struct settings *settings;
    const struct bench_case *what;
    unsigned number;
    struct traffic traffic;
    struct port *port;
    struct tallies tallies;
    struct meter meter;
    uint64_t at_ns;
    uint64_t sum;
    int counter; /* perf's, -1: there is none */
    struct result results[FIGURES_COUNT];
    bool is_exact;
    int error;
};

#define AT(field) offsetof(struct settings, field)
static const struct option_spec specs[] = {
    {"seconds", 's', OPTION_DURATION, AT(duration_ns), "TIME", "how long, for each figure", 1000000, 0, NULL},
    {"turns", 't', OPTION_UNSIGNED, AT(turns), "N", "so many turns of each figure instead", 1, 1u << 20, NULL},
    {"only", 'o', OPTION_TEXT, AT(only), "NAME", "only the case of this name", 0, 0, NULL},
    {"buffers", 'b', OPTION_UNSIGNED, AT(buffers), "N", "buffers of 4 KiB that hold the frames", 64, 1u << 20, NULL},
    {"memory", 'm', OPTION_BYTES, AT(memory_bytes), "SIZE", "memory of a meter", 4u << 20, 0, NULL},
    {"json", 'j', OPTION_FLAG, AT(json), NULL, "print one JSON object a case", 0, 0, NULL},
};
static const struct option_program program = {
    .name = "bench_nic",
    .summary = "Frames a second on one core, from memory through the whole path, beside two floors.",
    .usage = "[OPTIONS]",
    .options = specs,
    .options_count = sizeof specs / sizeof specs[0],
};

static int open_counter(void)
{
    struct perf_event_attr wanted = {
        .type = PERF_TYPE_HARDWARE, .size = sizeof wanted, .config = PERF_COUNT_HW_INSTRUCTIONS, .exclude_kernel = 1};

    return (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
}

static uint64_t read_counter(const struct lane *lane)
{
    uint64_t count = 0;

    return lane->counter >= 0 && read(lane->counter, &count, sizeof count) == sizeof count ? count : 0;
}

/* ---- the turns; not inlined, so that callgrind can be told to count one alone ---- */

__attribute__((noinline)) static void turn_of_receive(struct lane *lane)
{
    struct source_frame frames[SOURCE_BURST_FRAMES];
    unsigned count;

    while ((count = port_receive(lane->port, frames)) != 0) {
        lane->sum += frames[count - 1].captured_bytes;
        port_release(lane->port);
    }
}

__attribute__((noinline)) static void turn_of_read(struct lane *lane)
{
    for (size_t i = 0; i < lane->traffic.buffers_count; i++) {
        uint64_t words[7];
        memcpy(words, traffic_frame(&lane->traffic, i), sizeof words);
        lane->sum += words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4] ^ words[5] ^ words[6];
    }
}

__attribute__((noinline)) static void turn_of_path(struct lane *lane)
{
    struct source_frame frames[SOURCE_BURST_FRAMES];
    struct record_message message;
    unsigned count;

    while ((count = port_receive(lane->port, frames)) != 0) {
        for (unsigned i = 0; i < count; i++, lane->at_ns += lane->what->frame_ns)
            frames[i].at_ns = lane->at_ns;
        meter_frames(&lane->meter, frames, count);
        while (message_take(lane->meter.messages, &message))
            lane->sum += message.payload_bytes;
        port_release(lane->port);
    }
}

static void take_turn(struct lane *lane, enum figure figure)
{
    static void (*const turns[])(struct lane *) = {turn_of_receive, turn_of_read, turn_of_path};
    struct result *result = &lane->results[figure];

    if (figure != FIGURE_READ)
        port_fill(lane->port);
    if (figure == FIGURE_PATH) {
        traffic_fill(&lane->traffic);
        tiers_measure(&lane->meter.tiers, lane->at_ns);
    }
    uint64_t instructions = read_counter(lane), start_ns = clock_now_ns();
    turns[figure](lane);
    uint64_t taken_ns = clock_now_ns() - start_ns;
    double frame_ns = (double)taken_ns / (double)lane->traffic.buffers_count;
    result->instructions += read_counter(lane) - instructions;
    result->taken_ns += taken_ns;
    result->frames += lane->traffic.buffers_count;
    result->best_ns = result->best_ns == 0 || frame_ns < result->best_ns ? frame_ns : result->best_ns;
}

static int open_lane(struct lane *lane)
{
    uint32_t flows = lane->what->flows / lane->what->threads;
    const struct meter_options options = {.window_ns = lane->what->window_ns,
                                          .flows_max = flows < 8192 ? 8192 : flows,
                                          .messages_max = 65536,
                                          .memory_bytes = lane->settings->memory_bytes};
    int error = traffic_create(&lane->traffic, flows, lane->what->payload_bytes, lane->what->strangers,
                               lane->settings->buffers);

    lane->at_ns = START_NS;
    lane->counter = open_counter();
    if (error == 0)
        error = port_create(&lane->port, &lane->traffic, lane->number);
    if (error == 0)
        error = meter_init(&lane->meter, &options, &lane->tallies);
    if (error == 0)
        meter_prepare(&lane->meter);
    return error;
}

static void *run_lane(void *context)
{
    struct lane *lane = context;
    uint64_t turns = 0;

    for (unsigned i = 0; i < WARM_TURNS; i++) /* flows begin */
        take_turn(lane, FIGURE_PATH);
    memset(lane->results, 0, sizeof lane->results);
    while (lane->settings->turns != 0 ? turns < lane->settings->turns
                                      : lane->results[FIGURE_PATH].taken_ns < lane->settings->duration_ns) {
        for (enum figure figure = 0; figure < FIGURES_COUNT; figure++)
            take_turn(lane, figure);
        turns++;
    }
    meter_settle(&lane->meter, UINT64_MAX, 0);
    lane->is_exact = traffic_is_counted(&lane->traffic, &lane->meter);
    return NULL;
}

static void close_lane(struct lane *lane)
{
    port_destroy(&lane->port);
    traffic_destroy(&lane->traffic);
    meter_fini(&lane->meter);
    if (lane->counter >= 0)
        close(lane->counter);
}

/* ---- what is printed ---- */

static double mean_ns(const struct result *result)
{
    return (double)result->taken_ns / (double)result->frames;
}

static double coverage_s(const struct lane *lane)
{
    const struct window_ring *ring = lane->meter.windows;
    double measured_s = (double)(lane->at_ns - START_NS) / 1e9;

    return (double)window_ring_bytes_capacity(ring) / ((double)window_ring_bytes_stored(ring) / measured_s);
}

static double window_bytes(const struct lane *lane)
{
    return (double)window_ring_bytes_stored(lane->meter.windows) /
           (double)counter_read(lane->tallies.values, TALLY_WINDOWS);
}

static long resident_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static void print_text(const struct lane *lanes, const struct bench_case *what)
{
    const struct lane *lane = &lanes[0];

    for (enum figure figure = 0; figure < FIGURES_COUNT; figure++) {
        const struct result *result = &lane->results[figure];
        printf("%-42s %-8s %8.2f %8.2f %10.2f", figure == 0 ? what->name : "", figure_names[figure], mean_ns(result),
               result->best_ns, what->threads * 1e3 / mean_ns(result));
        if (result->instructions != 0)
            printf(" %12.0f", (double)result->instructions / (double)result->frames);
        else
            printf(" %12s", "-");
        if (figure == FIGURE_PATH)
            printf("   %.2f bytes a window, %.2f s held", window_bytes(lane), coverage_s(lane));
        printf("\n");
    }
    uint64_t refused = counter_read(lane->tallies.values, TALLY_FRAMES_FLOW_TABLE_FULL);
    if (refused != 0)
        printf("%-42s %llu frames of other flows found the table full and are counted so; %ld MiB resident at most\n",
               "", (unsigned long long)refused, resident_mib());
}

static void print_json(const struct lane *lanes, const struct bench_case *what, bool is_exact)
{
    const struct lane *lane = &lanes[0];

    printf(
        "{\"case\":\"%s\",\"flows\":%u,\"window_ns\":%u,\"payload_bytes\":%u,\"cores\":%u,\"strangers\":%u,\"dpdk\":%s,"
        "\"buffers\":%zu,\"exact\":%s",
        what->name, what->flows, what->window_ns, what->payload_bytes, what->threads, what->strangers,
        port_has_dpdk() ? "true" : "false", lane->traffic.buffers_count, is_exact ? "true" : "false");
    for (enum figure figure = 0; figure < FIGURES_COUNT; figure++) {
        const struct result *result = &lane->results[figure];
        printf(",\"%s\":{\"ns_per_frame\":%.2f,\"best_ns_per_frame\":%.2f,\"frames_per_second\":%.0f,"
               "\"instructions_per_frame\":%.1f}",
               figure_names[figure], mean_ns(result), result->best_ns, what->threads * 1e9 / mean_ns(result),
               (double)result->instructions / (double)result->frames);
    }
    printf(",\"bytes_per_window\":%.2f,\"windows_held_seconds\":%.3f,\"frames_of_refused_flows\":%llu,"
           "\"resident_mib\":%ld}\n",
           window_bytes(lane), coverage_s(lane),
           (unsigned long long)counter_read(lane->tallies.values, TALLY_FRAMES_FLOW_TABLE_FULL), resident_mib());
}

/* All lanes of a case side by side; returns whether every one counted right. */
static bool run_case(const struct settings *settings, const struct bench_case *what)
{
    static unsigned ports;
    struct lane *lanes = calloc(THREADS_MAX, sizeof *lanes);
    pthread_t threads[THREADS_MAX];
    bool is_exact = lanes != NULL;

    for (unsigned i = 0; i < what->threads && is_exact; i++) {
        lanes[i].settings = settings;
        lanes[i].what = what;
        lanes[i].number = ports++;
        is_exact = open_lane(&lanes[i]) == 0;
    }
    for (unsigned i = 1; i < what->threads && is_exact; i++)
        pthread_create(&threads[i], NULL, run_lane, &lanes[i]);
    if (is_exact)
        run_lane(&lanes[0]);
    for (unsigned i = 1; i < what->threads && is_exact; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < what->threads && is_exact; i++)
        is_exact = lanes[i].is_exact;
    if (lanes != NULL && lanes[0].results[FIGURE_PATH].frames != 0) {
        if (settings->json)
            print_json(lanes, what, is_exact);
        else
            print_text(lanes, what);
        fflush(stdout);
    }
    for (unsigned i = 0; i < what->threads && lanes != NULL; i++)
        close_lane(&lanes[i]);
    free(lanes);
    return is_exact;
}

int main(int argc, char **argv)
{
    struct settings settings = {.duration_ns = 60000000000u, .buffers = 16000, .memory_bytes = 128u << 20};
    char **positionals;
    size_t count;
    bool is_exact = true;

    log_init("bench_nic", LOG_WARNING);
    int parsed = option_parse(&program, argc, argv, &settings, &positionals, &count);
    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    if (port_start() != 0)
        return 1;
    if (!settings.json)
        printf("%-42s %-8s %8s %8s %10s %12s\n", "", "", "ns", "best ns", "M frames/s", "instructions");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (settings.only == NULL || strcmp(settings.only, cases[i].name) == 0)
            is_exact &= run_case(&settings, &cases[i]);
    return is_exact ? 0 : 1;
}
