/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rate over time from intervals with bytes (messages, windows). Each counts with its bytes spread evenly over its
 * time, at least 1 us; the rate at a moment is the sum over the intervals that hold it, [from, to). One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATE_SHORTEST_NS 1000

struct rate_edge {
    int64_t time_ns;
    int64_t change; /* bytes per second */
};

/* Begins as zeros. */
struct rate {
    struct rate_edge *edges;
    size_t count;
    size_t capacity;
    int64_t bytes_per_s; /* while rate_next walks */
};

struct rate_value {
    int64_t time_ns;
    int64_t bytes_per_s; /* from then on */
};

/* -ENOMEM after logging. */
int rate_add(struct rate *rate, int64_t from_ns, int64_t to_ns, int64_t bytes);

/* After the last rate_add, before the first rate_next. */
void rate_sort(struct rate *rate);

/* The next moment at which an interval begins or ends; `at` begins as 0. False at the end. */
bool rate_next(struct rate *rate, size_t *at, struct rate_value *value);

/* The rate's means over intervals of equal length: where there would be more values than somebody can hold. */
struct rate_means {
    struct rate *rate;
    int64_t from_ns; /* of the next interval */
    int64_t to_ns;
    int64_t interval_ns;
    size_t at;
    bool more;
    struct rate_value value;
    struct rate_value next;
};

/* Of [from_ns, to_ns), after rate_sort and instead of rate_next. */
void rate_means_begin(struct rate_means *means, struct rate *rate, int64_t from_ns, int64_t to_ns, int64_t interval_ns);
bool rate_means_next(struct rate_means *means, struct rate_value *mean);

void rate_fini(struct rate *rate);
