/* SPDX-License-Identifier: BSD-2-Clause */
/* For the kinds of source only: each embeds a struct source as its first member. */
#pragma once

#include "nic/source/source.h"

struct source_operations {
    enum traffic_source kind;
    void (*close)(struct source *source);
    int (*receive)(struct source *source, struct source_frame frames[SOURCE_BURST_FRAMES]); /* NULL = no frames */
    size_t (*ports)(const struct source *source, struct record_port *ports, size_t capacity);
    uint64_t (*covered_ns)(const struct source *source);
    bool (*take_loss)(struct source *source, struct source_loss *loss); /* NULL = never loses */
    void (*rest)(struct source *source, size_t received);               /* NULL = never rests */
    void (*describe)(const struct source *source,
                     struct record_traffic_source *description);                           /* NULL = nothing to add */
    size_t (*counts)(struct source *source, struct source_count *counts, size_t capacity); /* NULL = none */
    void (*repeat)(struct source *source);                                                 /* NULL = has no endpoints */
    uint64_t (*refused)(const struct source *source);                                      /* NULL = never refuses */
    void (*tell)(struct source *source, const struct record_queue_pair *pair, bool is_here); /* NULL = need not know */
    void (*statistics)(struct source *source, uint32_t port, source_statistic visit, void *context); /* NULL = none */
};

struct source {
    const struct source_operations *operations;
};
