/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture file as a traffic source: one port. Invariant: the frames of a burst point into the reader's buffer, so a
 * burst ends where the buffer would move; here a burst is one frame.
 */
#include "nic/source/source_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/source/packet_file.h"

struct file_source {
    struct source source;
    struct packet_file *file;
    uint64_t covered_ns;
    char name[sizeof((struct record_port *)0)->name];
};

static void close_file(struct source *source)
{
    struct file_source *self = (struct file_source *)source;

    packet_file_close(&self->file);
    free(self);
}

static int receive_file(struct source *source, struct source_frame frames[SOURCE_BURST_FRAMES])
{
    struct file_source *self = (struct file_source *)source;
    struct packet packet;
    int result = packet_file_next(self->file, &packet);

    if (result <= 0)
        return result == 0 ? -ENODATA : result;
    if (packet.at_ns > self->covered_ns)
        self->covered_ns = packet.at_ns;
    frames[0] = (struct source_frame){.bytes = packet.bytes,
                                      .captured_bytes = packet.captured_bytes,
                                      .original_bytes = packet.original_bytes,
                                      .at_ns = packet.at_ns,
                                      .port = 1,
                                      .layer = packet.layer};
    return 1;
}

static size_t list_file(const struct source *source, struct record_port *ports, size_t capacity)
{
    const struct file_source *self = (const struct file_source *)source;

    if (capacity == 0)
        return 0;
    ports[0] = (struct record_port){.port = 1};
    memcpy(ports[0].name, self->name, sizeof ports[0].name);
    return 1;
}

static uint64_t cover_file(const struct source *source)
{
    return ((const struct file_source *)source)->covered_ns;
}

static const struct source_operations operations = {
    .kind = TRAFFIC_SOURCE_FILE,
    .close = close_file,
    .receive = receive_file,
    .ports = list_file,
    .covered_ns = cover_file,
};

int source_open_file(struct source **source, const char *path)
{
    const char *base = strrchr(path, '/');
    struct file_source *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->source.operations = &operations;
    snprintf(made->name, sizeof made->name, "%s", base == NULL ? path : base + 1);
    int error = packet_file_open(&made->file, path);
    if (error != 0) {
        free(made);
        return error;
    }
    *source = &made->source;
    return 0;
}
