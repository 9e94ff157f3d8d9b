/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many frames a second one core takes from memory through parse, flow, window and message, beside a floor that only
 * reads each frame's headers; both in one run, taking turns. The frames are RDMA writes of 128 frames of 4096 bytes,
 * one flow after the other, in buffers 4 KiB apart; before each is read, its PSN and opcode are written, in both. Time
 * stamps rise by 41 ns a frame: 400 Gb/s both ways. Ends with 1 when the sums are not exact.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/meter.h"
#include "nic/pages.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/option.h"

#define BUFFER_BYTES   4096u
#define HEADER_BYTES   58u
#define PAYLOAD_BYTES  4096u
#define MESSAGE_FRAMES 128u
#define FRAME_NS       41u
#define AT_OPCODE      42
#define AT_PSN         51

struct settings {
    uint64_t flows;
    uint64_t buffers;
    uint64_t window_ns;
    uint64_t duration_ns;
    uint64_t memory_bytes;
    bool json;
};

struct cursor_of_frames {
    uint64_t buffer;
    uint32_t flow;
    uint32_t psn;
};

struct bench {
    struct cursor_of_frames next;
    struct settings settings;
    struct tallies tallies;
    struct meter meter;
    uint8_t *buffers;
    uint64_t passed; /* frames through the meter */
    uint64_t messages;
    uint64_t floor_sum;
};

struct result {
    uint64_t frames;
    uint64_t taken_ns;
    uint64_t best_ns;
};

#define AT(field) offsetof(struct settings, field)
static const struct option_spec specs[] = {
    {"flows", 'n', OPTION_UNSIGNED, AT(flows), "N", "flows that take turns", 1, 100000, NULL},
    {"buffers", 'b', OPTION_UNSIGNED, AT(buffers), "N", "buffers of 4 KiB that hold the frames", 64, 1u << 20, NULL},
    {"window", 'w', OPTION_DURATION, AT(window_ns), "TIME", "window length", WINDOW_NS_MIN, WINDOW_NS_MAX, NULL},
    {"duration", 'd', OPTION_DURATION, AT(duration_ns), "TIME", "how long, for each of the two", 1000000, 0, NULL},
    {"memory", 'm', OPTION_BYTES, AT(memory_bytes), "SIZE", "memory of the meter", 4u << 20, 0, NULL},
    {"json", 'j', OPTION_FLAG, AT(json), NULL, "print one JSON object", 0, 0, NULL},
};
static const struct option_program program = {
    .name = "bench_nic",
    .summary = "Frames a second on one core, from memory through the whole path, beside a floor.",
    .usage = "[OPTIONS]",
    .options = specs,
    .options_count = sizeof specs / sizeof specs[0],
};

static void make_frame(uint8_t *bytes, uint32_t flow)
{
    static const uint8_t header[HEADER_BYTES] = {
        2,    0,    0,    0,    0,    1,    2,    0, 0,  0,  0, 2, 0x08, 0x00, /* Ethernet */
        0x45, 0x68, 0x10, 0x2c, 0,    0,    0x40, 0, 64, 17, 0, 0,             /* IPv4: 20 + 8 + 12 + 4096 + 4 */
        10,   0,    0,    0,    10,   1,    0,    0,                           /* its addresses */
        0xc0, 0x00, 0x12, 0xb7, 0x10, 0x18, 0,    0,                           /* UDP: 8 + 12 + 4096 + 4 */
        0x07, 0,    0xff, 0xff, 0,    0,    0,    0, 0,  0,  0, 0,             /* BTH */
    };

    memcpy(bytes, header, sizeof header);
    bytes[29] = (uint8_t)(flow % 8);
    bytes[33] = (uint8_t)(flow % 64);
    bytes[48] = (uint8_t)(flow >> 8);
    bytes[49] = (uint8_t)flow;
}

/* Puts the next frame into its buffer: flows take turns, each counts its own PSNs. */
static uint8_t *prepare(const struct bench *bench, struct cursor_of_frames *next)
{
    uint8_t *bytes = bench->buffers + next->buffer * BUFFER_BYTES;
    uint32_t within = next->psn % MESSAGE_FRAMES;
    uint32_t psn = __builtin_bswap32(next->psn << 8);

    bytes[AT_OPCODE] = within == 0 ? 0x06 : within == MESSAGE_FRAMES - 1 ? 0x08 : 0x07;
    memcpy(bytes + AT_PSN, &psn, sizeof psn);
    if (++next->buffer == bench->settings.buffers)
        next->buffer = 0;
    if (++next->flow == bench->settings.flows) {
        next->flow = 0;
        next->psn++;
    }
    return bytes;
}

/* A FIRST frame has a RETH; so that all frames are of one length, its 16 bytes are missing from the payload. */
static uint64_t expected_payload(const struct bench *bench)
{
    uint64_t firsts = 0;

    for (uint64_t flow = 0; flow < bench->settings.flows; flow++) {
        uint64_t frames = (bench->passed + bench->settings.flows - 1 - flow) / bench->settings.flows;
        firsts += (frames + MESSAGE_FRAMES - 1) / MESSAGE_FRAMES;
    }
    return bench->passed * PAYLOAD_BYTES - firsts * 16;
}

static void add_turn(const struct bench *bench, struct result *result, uint64_t start_ns)
{
    uint64_t taken_ns = clock_now_ns() - start_ns;

    result->taken_ns += taken_ns;
    result->frames += bench->settings.buffers;
    if (result->best_ns == 0 || taken_ns < result->best_ns)
        result->best_ns = taken_ns;
}

static void prepare_all(struct bench *bench)
{
    for (uint64_t i = 0; i < bench->settings.buffers; i++)
        prepare(bench, &bench->next);
}

static void turn_of_floor(struct bench *bench, struct result *result)
{
    struct cursor_of_frames next = bench->next;

    prepare_all(bench);
    bench->next = next;
    uint64_t start_ns = clock_now_ns();
    for (uint64_t i = 0; i < bench->settings.buffers; i++) {
        const uint8_t *bytes = bench->buffers + i * BUFFER_BYTES;
        uint64_t words[7];
        memcpy(words, bytes, sizeof words);
        bench->floor_sum += words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4] ^ words[5] ^ words[6];
    }
    add_turn(bench, result, start_ns);
}

static void turn_of_meter(struct bench *bench, struct result *result)
{
    struct source_frame frames[SOURCE_BURST_FRAMES];
    struct record_message message;

    prepare_all(bench);
    uint64_t start_ns = clock_now_ns();
    for (uint64_t i = 0; i < bench->settings.buffers; i += SOURCE_BURST_FRAMES) {
        unsigned count = (unsigned)(bench->settings.buffers - i < SOURCE_BURST_FRAMES ? bench->settings.buffers - i
                                                                                      : SOURCE_BURST_FRAMES);
        for (unsigned j = 0; j < count; j++, bench->passed++)
            frames[j] = (struct source_frame){.bytes = bench->buffers + (i + j) * BUFFER_BYTES,
                                              .captured_bytes = HEADER_BYTES + 12,
                                              .original_bytes = 14 + 20 + 8 + 12 + PAYLOAD_BYTES + 4,
                                              .at_ns = 1000000000 + bench->passed * FRAME_NS,
                                              .port = 1};
        meter_frames(&bench->meter, frames, count);
        while (message_take(bench->meter.messages, &message))
            bench->messages++;
    }
    add_turn(bench, result, start_ns);
}

static int check_sums(const struct bench *bench)
{
    uint64_t frames = 0, payload_bytes = 0, repeated = 0;

    for (uint32_t number = 1; number <= flow_count(bench->meter.flows); number++) {
        const struct flow_count *total = &flow_at(bench->meter.flows, number)->total;
        frames += total->data_frames;
        payload_bytes += total->payload_bytes;
        repeated += total->repeated_frames + total->late_frames;
    }
    if (flow_count(bench->meter.flows) == bench->settings.flows && frames == bench->passed &&
        payload_bytes == expected_payload(bench) && repeated == 0)
        return 0;
    return log_error_return(1, "%u flows, %llu of %llu frames, %llu of %llu bytes, %llu repeated or late",
                            flow_count(bench->meter.flows), (unsigned long long)frames,
                            (unsigned long long)bench->passed, (unsigned long long)payload_bytes,
                            (unsigned long long)expected_payload(bench), (unsigned long long)repeated);
}

static void print(const struct bench *bench, const char *name, const struct result *result, const char *separator)
{
    double frame_ns = (double)result->taken_ns / (double)result->frames;

    if (bench->settings.json)
        printf("\"%s\":{\"frames\":%llu,\"ns_per_frame\":%.2f,\"frames_per_second\":%.0f}%s", name,
               (unsigned long long)result->frames, frame_ns, 1e9 / frame_ns, separator);
    else
        printf("%-8s %8.2f ns a frame  %8.2f million frames/s, best turn %.2f ns\n", name, frame_ns, 1e3 / frame_ns,
               (double)result->best_ns / (double)bench->settings.buffers);
}

static int open_bench(struct bench *bench)
{
    const struct meter_options options = {.window_ns = (uint32_t)bench->settings.window_ns,
                                          .flows_max =
                                              bench->settings.flows < 8192 ? 8192 : (uint32_t)bench->settings.flows,
                                          .messages_max = 65536,
                                          .memory_bytes = bench->settings.memory_bytes};

    bench->buffers = pages_create(bench->settings.buffers * BUFFER_BYTES);
    if (bench->buffers == NULL)
        return log_error_return(1, "no memory for %llu buffers", (unsigned long long)bench->settings.buffers);
    memset(bench->buffers, 0, bench->settings.buffers * BUFFER_BYTES);
    for (uint64_t i = 0; i < bench->settings.buffers; i++)
        make_frame(bench->buffers + i * BUFFER_BYTES, (uint32_t)(i % bench->settings.flows));
    int error = meter_init(&bench->meter, &options, &bench->tallies);
    if (error == 0)
        meter_prepare(&bench->meter);
    return error;
}

static int run(struct bench *bench)
{
    struct result floor = {0}, path = {0};

    turn_of_meter(bench, &path); /* flows begin, memory is touched */
    path = (struct result){0};
    while (path.taken_ns < bench->settings.duration_ns) {
        turn_of_floor(bench, &floor);
        turn_of_meter(bench, &path);
    }
    if (bench->settings.json)
        printf("{\"flows\":%llu,\"window_ns\":%llu,", (unsigned long long)bench->settings.flows,
               (unsigned long long)bench->settings.window_ns);
    print(bench, "floor", &floor, ",");
    print(bench, "path", &path, "}\n");
    return check_sums(bench);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.settings = {.flows = 2000,
                                              .buffers = 16000,
                                              .window_ns = 8000,
                                              .duration_ns = 10000000000u,
                                              .memory_bytes = 128u << 20}};
    char **positionals;
    size_t count;

    log_init("bench_nic", LOG_INFO);
    int parsed = option_parse(&program, argc, argv, &bench.settings, &positionals, &count);
    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    bench.settings.buffers -= bench.settings.buffers % bench.settings.flows; /* a flow keeps its buffers */
    if (bench.settings.buffers == 0)
        bench.settings.buffers = bench.settings.flows;
    int result = open_bench(&bench) == 0 ? run(&bench) : 1;
    meter_fini(&bench.meter);
    pages_destroy(bench.buffers, bench.settings.buffers * BUFFER_BYTES);
    return result == 0 ? 0 : 1;
}
