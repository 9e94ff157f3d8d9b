/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * break_files DIRECTORY [--all]: every capture in the directory, ended at every byte, with every frame in it cut at
 * every byte, and with random bytes changed, goes the whole way from file to flow; TAP, a line a file. Checked: what a
 * file gives before a cut is what it gives whole; each frame is counted under one verdict, the same one by the parser's
 * short way and by its long one; and, with sanitizers, that
 * nothing is read beyond the end: each input lies in memory of its own size. Without --all large files are tried at
 * some of their bytes only.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nic/frame/icrc.h"
#include "nic/meter.h"
#include "nic/source/packet_file.h"
#include "wire/log.h"

#define CUTS_SAMPLED  5000u
#define FLIPS_SAMPLED 2000u
#define FLIPS_ALL     20000u

struct input {
    uint8_t *bytes;
    size_t length;
};

static struct icrc *icrc;
static struct tallies tallies;
static struct meter meter;

static bool read_input(const char *directory, const char *name, struct input *input)
{
    char path[4096];
    struct stat status;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &status) != 0)
        return false;
    input->length = (size_t)status.st_size;
    input->bytes = malloc(input->length + 1);
    bool is_read = input->bytes != NULL && fread(input->bytes, 1, input->length, file) == input->length;
    fclose(file);
    return is_read;
}

static uint64_t count_verdicts(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i <= TALLY_FRAMES_BAD_ICRC; i++)
        sum += tallies.values[i];
    return sum;
}

/* Whether the short way through the parser gives the answer of the long one, which is that of verifying the ICRC. */
static bool is_parsed_alike(const struct packet *packet, const uint8_t *bytes, uint32_t captured_bytes,
                            uint32_t original_bytes)
{
    struct frame frame = {.key.port = 0}, again = {.key.port = 0};
    enum tally verdict = frame_parse(&frame, packet->layer, bytes, captured_bytes, original_bytes);
    enum tally verified = frame_parse_verified(&again, icrc, packet->layer, bytes, captured_bytes, original_bytes);

    if (verified == TALLY_FRAMES_ICRC_UNVERIFIED || verified == TALLY_FRAMES_BAD_ICRC)
        verified = TALLY_FRAMES_ROCE;
    return verified == verdict && (!frame_is_kept(verdict) || memcmp(&frame, &again, sizeof frame) == 0);
}

/* A frame through parser and meter; false when it is not counted under exactly one verdict. */
static bool take_frame(const struct packet *packet, const uint8_t *bytes, uint32_t captured_bytes)
{
    const struct source_frame frame = {.bytes = bytes,
                                       .captured_bytes = captured_bytes,
                                       .original_bytes = packet->original_bytes,
                                       .at_ns = packet->at_ns,
                                       .port = 1,
                                       .layer = packet->layer};
    struct record_message message;
    uint64_t before = count_verdicts();

    meter_frames(&meter, &frame, 1);
    while (message_take(meter.messages, &message))
        continue;
    return count_verdicts() == before + 1 && is_parsed_alike(packet, bytes, captured_bytes, packet->original_bytes);
}

/* How many packets lie in the first `length` bytes; -1 when something is wrong with one. */
static long take_file(const uint8_t *bytes, size_t length)
{
    struct packet_file *file;
    struct packet packet;
    long packets = 0;

    if (packet_file_open_memory(&file, "broken", bytes, length) != 0)
        return 0;
    while (packets >= 0 && packet_file_next(file, &packet) == 1)
        packets = take_frame(&packet, packet.bytes, packet.captured_bytes) ? packets + 1 : -1;
    packet_file_close(&file);
    return packets;
}

static long take_copy(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length == 0 ? 1 : length);

    if (copy == NULL)
        return -1;
    memcpy(copy, bytes, length);
    long packets = take_file(copy, length);
    free(copy);
    return packets;
}

static bool cut_file(const struct input *input, size_t step)
{
    long before = 0;

    for (size_t length = 0; length <= input->length; length += step) {
        long packets = take_copy(input->bytes, length);
        if (packets < before)
            return false;
        before = packets;
    }
    return take_copy(input->bytes, input->length) >= before;
}

static bool cut_frame(const struct packet *packet, uint32_t step)
{
    for (uint32_t length = 0; length <= packet->captured_bytes; length += length < 256 ? 1 : step) {
        uint8_t *copy = malloc(length == 0 ? 1 : length);
        if (copy == NULL)
            return false;
        memcpy(copy, packet->bytes, length);
        bool is_right =
            take_frame(packet, copy, length) && is_parsed_alike(packet, copy, length, length); /* it ended there */
        free(copy);
        if (!is_right)
            return false;
    }
    return true;
}

static bool cut_frames(const struct input *input, uint32_t step, unsigned frames_max)
{
    struct packet_file *file;
    struct packet packet;
    bool is_good = true;

    if (packet_file_open_memory(&file, "broken", input->bytes, input->length) != 0)
        return true;
    while (is_good && frames_max-- != 0 && packet_file_next(file, &packet) == 1)
        is_good = cut_frame(&packet, step);
    packet_file_close(&file);
    return is_good;
}

static bool flip_bytes(const struct input *input, unsigned times)
{
    unsigned seed = (unsigned)input->length;

    for (unsigned i = 0; i < times && input->length != 0; i++) {
        uint8_t *copy = malloc(input->length);
        if (copy == NULL)
            return false;
        memcpy(copy, input->bytes, input->length);
        for (unsigned j = 0; j < 1 + i % 8; j++) /* half of them where the headers of file and first frame are */
            copy[(unsigned)rand_r(&seed) % (j % 2 == 0 && input->length > 256 ? 256 : input->length)] =
                (uint8_t)rand_r(&seed);
        long packets = take_file(copy, input->length);
        free(copy);
        if (packets < 0)
            return false;
    }
    return true;
}

static bool break_file(const struct input *input, bool is_all)
{
    size_t step = is_all || input->length < CUTS_SAMPLED ? 1 : input->length / CUTS_SAMPLED | 1;

    return cut_file(input, step) && cut_frames(input, is_all ? 1 : 61, is_all ? 1000000 : 100) &&
           flip_bytes(input, is_all ? FLIPS_ALL : FLIPS_SAMPLED);
}

static int is_capture(const struct dirent *entry)
{
    return strstr(entry->d_name, ".pcap") != NULL;
}

int main(int argc, char **argv)
{
    const struct meter_options options = {
        .window_ns = 8000, .flows_max = 4096, .messages_max = 1024, .memory_bytes = 64u << 20};
    struct dirent **entries;
    int failed = 0, count = argc >= 2 ? scandir(argv[1], &entries, is_capture, alphasort) : -1;

    if (count <= 0 || icrc_create(&icrc) != 0 || meter_init(&meter, &options, &tallies) != 0) {
        fprintf(stderr, "usage: break_files DIRECTORY [--all]\n");
        return 2;
    }
    log_init("break_files", LOG_NONE); /* each broken file would say so */
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        struct input input = {NULL, 0};
        bool is_good = read_input(argv[1], entries[i]->d_name, &input) && break_file(&input, argc > 2);
        printf("%s %d - %s\n", is_good ? "ok" : "not ok", i + 1, entries[i]->d_name);
        fflush(stdout);
        failed += !is_good;
        free(input.bytes);
        free(entries[i]);
    }
    free(entries);
    meter_fini(&meter);
    icrc_destroy(&icrc);
    return failed == 0 ? 0 : 1;
}
