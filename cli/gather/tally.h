/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is in a capture, and with how much: counted batch by batch. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/form/json.h"

struct gather_emitter {
    uint64_t emitter_id;
    uint64_t boot_id;
    uint16_t kind; /* enum emitter_kind */
    bool said_hello;
    uint8_t kernel_boot[16]; /* what follows is known when it did */
    char host[64];
    char instance[32];
    uint64_t batches;
    uint64_t records;
};

struct gather_tally {
    struct gather_emitter *emitters;
    size_t emitters_count;
    size_t emitters_capacity;
    uint64_t batches;
    uint64_t bytes;
    uint64_t damaged; /* no batch, or cut */
};

/* -EBADMSG when it is no batch (counted), -ENOMEM. */
int gather_tally_add(struct gather_tally *tally, const void *batch, size_t length_bytes);

/* The emitter of that boot, or NULL. */
const struct gather_emitter *gather_tally_find(const struct gather_tally *tally, uint64_t boot_id);

/* A line an emitter on standard output, or the members "emitters", "batches", "bytes" and "damaged". */
void gather_tally_print(const struct gather_tally *tally, struct json *json);

void gather_tally_fini(struct gather_tally *tally);
