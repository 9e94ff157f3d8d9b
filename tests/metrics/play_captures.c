/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * play_captures URL SECONDS CAPTURE...: sends what is in capture files to an intake as it was sent then, all of it
 * spread over so many seconds: each emitter's batches at the part of its life at which it made them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/batch.h"
#include "wire/capture.h"
#include "wire/link.h"
#include "wire/log.h"

#define EMITTERS_MAX 1024
#define LINGER_MS    5000

struct item {
    double at; /* part of its emitter's life, 0 to 1 */
    uint64_t sent_ns;
    size_t emitter;
    void *bytes;
    size_t length_bytes;
};

struct life {
    uint64_t boot_id;
    uint64_t first_ns;
    uint64_t last_ns;
};

static struct item *items;
static size_t items_count;
static struct life lives[EMITTERS_MAX];
static size_t lives_count;

static size_t life_of(const struct batch_header *header)
{
    size_t i = 0;

    while (i < lives_count && lives[i].boot_id != header->boot_id)
        i++;
    if (i == EMITTERS_MAX)
        exit(log_error_return(1, "more than %d emitters", EMITTERS_MAX));
    if (i == lives_count)
        lives[lives_count++] = (struct life){header->boot_id, header->sent_ns, header->sent_ns};
    if (header->sent_ns < lives[i].first_ns)
        lives[i].first_ns = header->sent_ns;
    if (header->sent_ns > lives[i].last_ns)
        lives[i].last_ns = header->sent_ns;
    return i;
}

static void keep(const void *bytes, size_t length_bytes)
{
    struct batch batch;

    if (batch_read(&batch, bytes, length_bytes) != 0)
        return;
    items = realloc(items, (items_count + 1) * sizeof *items);
    if (items == NULL)
        exit(log_error_return(1, "no memory"));
    struct item *item = &items[items_count++];
    *item = (struct item){.sent_ns = batch.header.sent_ns,
                          .emitter = life_of(&batch.header),
                          .bytes = malloc(length_bytes),
                          .length_bytes = length_bytes};
    if (item->bytes == NULL)
        exit(log_error_return(1, "no memory"));
    memcpy(item->bytes, bytes, length_bytes);
}

static int load(const char *path)
{
    struct capture_reader *reader;
    const void *bytes;
    size_t length_bytes;
    int error = capture_reader_open(&reader, path);

    if (error != 0)
        return error;
    while ((error = capture_read(reader, &bytes, &length_bytes)) > 0)
        keep(bytes, length_bytes);
    capture_reader_close(&reader);
    return error;
}

static int by_time(const void *left, const void *right)
{
    const struct item *a = left, *b = right;

    return a->at != b->at ? (a->at > b->at) - (a->at < b->at) : (a->sent_ns > b->sent_ns) - (a->sent_ns < b->sent_ns);
}

static void order(void)
{
    for (size_t i = 0; i < items_count; i++) {
        const struct life *life = &lives[items[i].emitter];
        uint64_t length_ns = life->last_ns - life->first_ns;
        items[i].at = length_ns == 0 ? 0 : (double)(items[i].sent_ns - life->first_ns) / (double)length_ns;
    }
    qsort(items, items_count, sizeof *items, by_time);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void play(struct link *link, double seconds)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    double begun = now();

    for (size_t i = 0; i < items_count; i++) {
        while (now() < begun + items[i].at * seconds)
            nanosleep(&pause, NULL);
        while (link_send(link, items[i].bytes, items[i].length_bytes) == -EAGAIN)
            nanosleep(&pause, NULL);
    }
}

int main(int argc, char **argv)
{
    struct link *link;
    int error = 0;

    log_init("play_captures", LOG_INFO);
    if (argc < 4)
        return log_error_return(2, "usage: play_captures URL SECONDS CAPTURE...");
    for (int i = 3; i < argc && error == 0; i++)
        error = load(argv[i]);
    if (error != 0 || link_open(&link, &(struct link_options){.role = LINK_SEND, .url = argv[1]}) != 0)
        return 1;
    order();
    play(link, atof(argv[2]));
    link_close(&link, LINGER_MS);
    for (size_t i = 0; i < items_count; i++)
        free(items[i].bytes);
    free(items);
    return 0;
}
