/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Growing arrays, and a median. An array owns its items; it is empty when zeroed. Memory that cannot be had ends the
 * program with a log line: what the correlator keeps is bounded by --memory, so there is nothing left to give back.
 * Pointers to items are valid until the next array_add. Any thread, one at a time for one array.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ARRAY(type)                                                                                                    \
    struct {                                                                                                           \
        type *items;                                                                                                   \
        size_t count;                                                                                                  \
        size_t capacity;                                                                                               \
    }

/* A new zeroed item at the end; evaluates to its address. */
#define array_add(array)                                                                                               \
    ((array)->items = array_room((array)->items, sizeof *(array)->items, (array)->count, &(array)->capacity),          \
     &(array)->items[(array)->count++])

/* Room for `count` items in all, where it is known before: no item is moved, and none is held that is not used. */
#define array_reserve(array, count)                                                                                    \
    ((array)->items = array_grow((array)->items, sizeof *(array)->items, (count), &(array)->capacity))

#define array_fini(array) array_release((void **)&(array)->items, &(array)->count, &(array)->capacity)

#define array_sort(array, compare) array_order((array)->items, (array)->count, sizeof *(array)->items, (compare))

void *array_room(void *items, size_t item_bytes, size_t count, size_t *capacity);
void *array_grow(void *items, size_t item_bytes, size_t wanted, size_t *capacity);
void array_release(void **items, size_t *count, size_t *capacity);

/* Sorts; keeps the order of equal items, so that what follows does not depend on the C library. */
void array_order(void *items, size_t count, size_t item_bytes, int (*compare)(const void *, const void *));

/* `bytes` zeroed bytes. */
void *array_zeroed(size_t bytes);

/* Numbers in rising order. */
void array_sort_values(int64_t *values, size_t count);

struct array_middles { /* of some values: what the lower median is without any one of them */
    size_t count;
    int64_t low;
    int64_t high;
};

/* Moves the values about. */
struct array_middles array_middles(int64_t *values, size_t count);

/* The lower median without one of the values, which is `own`; 0 of none. */
static inline int64_t array_median_without(struct array_middles middles, int64_t own)
{
    return middles.count < 2 ? 0 : middles.low < own ? middles.low : middles.high;
}

/* The item that a fraction of `per_mille` thousandths of the (sorted in place) values do not exceed; 0 of none. */
int64_t array_quantile(int64_t *values, size_t count, unsigned per_mille);

/* The same without sorting, which moves them about: much sooner for many values. */
int64_t array_select(int64_t *values, size_t count, unsigned per_mille);

/* The same, of sorted values without some of them: `own`, sorted too. */
int64_t array_quantile_without(const int64_t *sorted, size_t count, const int64_t *own, size_t own_count,
                               unsigned per_mille);

/* The lower median; sorts `values`. */
static inline int64_t array_median(int64_t *values, size_t count)
{
    return array_quantile(values, count, 500);
}

/* The median, of an even count the mean of the two in the middle; sorts `values`. 0 of none. */
int64_t array_middle(int64_t *values, size_t count);

/* value x times, at most INT64_MAX; neither is negative. */
static inline int64_t array_multiple(int64_t value, int64_t times)
{
    return value > INT64_MAX / times ? INT64_MAX : value * times;
}

/* 1.4826 x the median distance from the median: a standard deviation that outliers do not move. Overwrites. */
int64_t array_spread(int64_t *values, size_t count);
