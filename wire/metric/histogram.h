/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram whose buckets grow by a power of two: the n-th upper bound is 2^((first + n) * growth / 4). They are
 * those of Prometheus' native histograms (upper-inclusive; growth 2 is schema 1, 4 is schema 0, 8 is schema -1), so
 * that what is kept in either way adds up. Fixed memory. One thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BUCKETS_MAX 48

struct histogram_shape {
    int first;      /* number of the first bound */
    unsigned count; /* of bounds, at most HISTOGRAM_BUCKETS_MAX; above the last one is one bucket more */
    int growth;     /* in quarters of a doubling from bound to bound */
};

struct histogram {
    struct histogram_shape shape;
    uint64_t counts[HISTOGRAM_BUCKETS_MAX + 1];
    uint64_t total;
    double sum;
};

void histogram_init(struct histogram *histogram, struct histogram_shape shape);
void histogram_add(struct histogram *histogram, double value);

/* The upper bound of bucket `index` (below shape.count). */
double histogram_bound(const struct histogram *histogram, unsigned index);
