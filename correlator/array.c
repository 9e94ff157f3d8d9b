/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Growing arrays. Invariant: items[0..count) are initialised, capacity >= count. The sort is a merge sort: stable and
 * the same everywhere, since the store's rows must not depend on who sorted.
 */
#include "correlator/array.h"

#include <stdlib.h>
#include <string.h>

#include "wire/log.h"

static void *must_have(void *memory, size_t bytes)
{
    if (memory == NULL) {
        log_error("out of memory (%zu bytes wanted): give --memory a smaller size", bytes);
        abort();
    }
    return memory;
}

void *array_zeroed(size_t bytes)
{
    return must_have(calloc(1, bytes == 0 ? 1 : bytes), bytes);
}

void *array_room(void *items, size_t item_bytes, size_t count, size_t *capacity)
{
    if (count == *capacity) {
        size_t wider = *capacity == 0 ? 16 : *capacity * 2;
        items = must_have(realloc(items, wider * item_bytes), wider * item_bytes);
        *capacity = wider;
    }
    memset((char *)items + count * item_bytes, 0, item_bytes);
    return items;
}

void array_release(void **items, size_t *count, size_t *capacity)
{
    free(*items);
    *items = NULL;
    *count = 0;
    *capacity = 0;
}

static void merge(char *into, const char *left, size_t left_count, const char *right, size_t right_count,
                  size_t item_bytes, int (*compare)(const void *, const void *))
{
    while (left_count > 0 && right_count > 0) {
        int from_right = compare(left, right) > 0;
        memcpy(into, from_right ? right : left, item_bytes);
        into += item_bytes;
        if (from_right) {
            right += item_bytes;
            right_count--;
        } else {
            left += item_bytes;
            left_count--;
        }
    }
    memcpy(into, left, left_count * item_bytes);
    memcpy(into + left_count * item_bytes, right, right_count * item_bytes);
}

void array_order(void *items, size_t count, size_t item_bytes, int (*compare)(const void *, const void *))
{
    if (count < 2)
        return;
    char *from = items;
    char *spare = array_zeroed(count * item_bytes);
    char *to = spare;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            size_t left = count - at < run ? count - at : run;
            size_t right = count - at - left < run ? count - at - left : run;
            merge(to + at * item_bytes, from + at * item_bytes, left, from + (at + left) * item_bytes, right,
                  item_bytes, compare);
        }
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != (char *)items)
        memcpy(items, from, count * item_bytes);
    free(spare);
}

static int by_value(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

int64_t array_quantile(int64_t *values, size_t count, unsigned per_mille)
{
    if (count == 0)
        return 0;
    array_order(values, count, sizeof *values, by_value);
    return values[(count - 1) * per_mille / 1000];
}

int64_t array_middle(int64_t *values, size_t count)
{
    int64_t low = array_median(values, count);

    return count == 0 || count % 2 != 0 ? low : low + (values[count / 2] - low) / 2;
}

int64_t array_spread(int64_t *values, size_t count)
{
    int64_t middle = array_median(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] > middle ? values[i] - middle : middle - values[i];
    int64_t distance = array_median(values, count);
    return distance / 10000 * 14826 + distance % 10000 * 14826 / 10000;
}
