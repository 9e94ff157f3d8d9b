/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buckets by powers of two. Invariant: counts add up to total; a value that equals a bound is below it.
 */
#include "wire/metric/histogram.h"

#include <assert.h>
#include <math.h>

void histogram_init(struct histogram *histogram, struct histogram_shape shape)
{
    assert(shape.count <= HISTOGRAM_BUCKETS_MAX);
    *histogram = (struct histogram){.shape = shape};
}

double histogram_bound(const struct histogram *histogram, unsigned index)
{
    return exp2((histogram->shape.first + (int)index) * histogram->shape.growth / 4.0);
}

void histogram_add(struct histogram *histogram, double value)
{
    unsigned index = 0;

    while (index < histogram->shape.count && value > histogram_bound(histogram, index))
        index++;
    histogram->counts[index]++;
    histogram->total++;
    histogram->sum += value;
}
