/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads pcap (micro- and nanosecond, both byte orders) and pcapng (every time resolution, several interfaces and
 * sections, both byte orders, enhanced, simple and obsolete packet blocks). What was whole before a cut is given out.
 * One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "nic/frame/frame.h"

struct packet_file;

struct packet {
    const uint8_t *bytes; /* valid until the next call */
    uint32_t captured_bytes;
    uint32_t original_bytes;
    uint64_t at_ns; /* as the file says, since 1970; 0 = it does not say */
    enum frame_layer layer;
};

/* -errno after logging: cannot be read, empty, cut in its header, of no known kind, of a link type that is not read. */
int packet_file_open(struct packet_file **file, const char *path);

/* The same on bytes in memory, which stay the caller's. `name` is for diagnostics. */
int packet_file_open_memory(struct packet_file **file, const char *name, const void *bytes, size_t length_bytes);

/*
 * Returns 1 with a packet (of FRAME_LAYER_OTHER where only some of the interfaces have a link type that is read; warned
 * of once), 0 at the end, -EPROTONOSUPPORT (logged) when the file has nothing else,
 * -EBADMSG (logged with the offset) at a cut or a damaged record.
 */
int packet_file_next(struct packet_file *file, struct packet *packet);

void packet_file_close(struct packet_file **file);
