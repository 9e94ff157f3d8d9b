/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Growing arrays. Invariant: items[0..count) are initialised, capacity >= count. The sort is a merge sort: stable and
 * the same everywhere, since the store's rows must not depend on who sorted.
 */
#include "correlator/array.h"

#include <stdbool.h>
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

void *array_grow(void *items, size_t item_bytes, size_t wanted, size_t *capacity)
{
    if (wanted <= *capacity)
        return items;
    *capacity = wanted;
    return must_have(realloc(items, wanted * item_bytes), wanted * item_bytes);
}

void array_release(void **items, size_t *count, size_t *capacity)
{
    free(*items);
    *items = NULL;
    *count = 0;
    *capacity = 0;
}

#define INSERTED 8 /* so few items are sorted one by one */

struct sorting {
    size_t item_bytes;
    int (*compare)(const void *, const void *);
    char *spare; /* half of the items, one at least */
};

/* Items are mostly some words. */
static void copy_item(const struct sorting *sorting, char *restrict to, const char *restrict from)
{
    size_t bytes = sorting->item_bytes;

    if (bytes % sizeof(uint64_t) != 0) {
        memcpy(to, from, bytes);
        return;
    }
    for (; bytes > 0; bytes -= sizeof(uint64_t), to += sizeof(uint64_t), from += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, from, sizeof word);
        memcpy(to, &word, sizeof word);
    }
}

/* `left` is apart; what is right of it stands at the end of where all are to be. */
static void merge(const struct sorting *sorting, char *into, size_t left_count, size_t right_count)
{
    const char *left = sorting->spare;
    const char *right = into + left_count * sorting->item_bytes;

    while (left_count > 0 && right_count > 0) {
        bool from_right = sorting->compare(left, right) > 0;
        copy_item(sorting, into, from_right ? right : left);
        into += sorting->item_bytes;
        if (from_right) {
            right += sorting->item_bytes;
            right_count--;
        } else {
            left += sorting->item_bytes;
            left_count--;
        }
    }
    memcpy(into, left, left_count * sorting->item_bytes);
}

static void insert_items(const struct sorting *sorting, char *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        char *at = items + i * sorting->item_bytes;
        if (sorting->compare(at - sorting->item_bytes, at) <= 0)
            continue;
        memcpy(sorting->spare, at, sorting->item_bytes);
        for (; at > items && sorting->compare(at - sorting->item_bytes, sorting->spare) > 0; at -= sorting->item_bytes)
            copy_item(sorting, at, at - sorting->item_bytes);
        memcpy(at, sorting->spare, sorting->item_bytes);
    }
}

static void sort_items(const struct sorting *sorting, char *items, size_t count)
{
    size_t left = count / 2;
    char *right = items + left * sorting->item_bytes;

    if (count <= INSERTED) {
        insert_items(sorting, items, count);
        return;
    }
    sort_items(sorting, items, left);
    sort_items(sorting, right, count - left);
    if (sorting->compare(right - sorting->item_bytes, right) <= 0)
        return;
    memcpy(sorting->spare, items, left * sorting->item_bytes);
    merge(sorting, items, left, count - left);
}

void array_order(void *items, size_t count, size_t item_bytes, int (*compare)(const void *, const void *))
{
    if (count < 2)
        return;
    struct sorting sorting = {item_bytes, compare, array_zeroed((count / 2 + 1) * item_bytes)};
    sort_items(&sorting, items, count);
    free(sorting.spare);
}

static void sift_down(int64_t *values, size_t count, size_t at)
{
    int64_t moved = values[at];

    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && values[child + 1] > values[child])
            child++;
        if (values[child] <= moved)
            break;
        values[at] = values[child];
    }
    values[at] = moved;
}

static void heap_sort(int64_t *values, size_t count)
{
    for (size_t at = count / 2; at-- > 0;)
        sift_down(values, count, at);
    for (size_t left = count; left-- > 1;) {
        int64_t largest = values[0];
        values[0] = values[left];
        values[left] = largest;
        sift_down(values, left, 0);
    }
}

static void insertion_sort(int64_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        int64_t value = values[i];
        size_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

static int64_t middle_of_three(int64_t a, int64_t b, int64_t c)
{
    int64_t low = a < b ? a : b;
    int64_t high = a < b ? b : a;

    return c < low ? low : c > high ? high : c;
}

/* Quicksort; where its halves stay uneven for too long the heap does the rest. Equal numbers are alike. */
static void sort_values(int64_t *values, size_t count, unsigned depth)
{
    while (count > 16) {
        if (depth-- == 0) {
            heap_sort(values, count);
            return;
        }
        int64_t pivot = middle_of_three(values[0], values[count / 2], values[count - 1]);
        size_t low = 0;
        size_t high = count - 1;
        for (;; low++, high--) {
            while (values[low] < pivot)
                low++;
            while (values[high] > pivot)
                high--;
            if (low >= high)
                break;
            int64_t swap = values[low];
            values[low] = values[high];
            values[high] = swap;
        }
        sort_values(values, low, depth);
        values += low;
        count -= low;
    }
    insertion_sort(values, count);
}

void array_sort_values(int64_t *values, size_t count)
{
    sort_values(values, count, 128);
}

int64_t array_quantile(int64_t *values, size_t count, unsigned per_mille)
{
    if (count == 0)
        return 0;
    array_sort_values(values, count);
    return values[(count - 1) * per_mille / 1000];
}

/* Parts [0, count) around a value; returns where the upper part begins. Neither part is empty. */
static size_t part_values(int64_t *values, size_t count)
{
    int64_t pivot = middle_of_three(values[0], values[count / 2], values[count - 1]);
    size_t low = 0, high = count - 1;

    for (;; low++, high--) {
        while (values[low] < pivot)
            low++;
        while (values[high] > pivot)
            high--;
        if (low >= high)
            return low == 0 ? 1 : low;
        int64_t swap = values[low];
        values[low] = values[high];
        values[high] = swap;
    }
}

/* Puts the value there that sorting would, none larger before it, none smaller behind. */
static int64_t select_at(int64_t *values, size_t count, size_t wanted)
{
    for (unsigned depth = 0; count > 32 && depth < 128; depth++) {
        size_t upper = part_values(values, count);
        if (wanted < upper) {
            count = upper;
        } else {
            values += upper;
            wanted -= upper;
            count -= upper;
        }
    }
    array_sort_values(values, count);
    return values[wanted];
}

int64_t array_select(int64_t *values, size_t count, unsigned per_mille)
{
    return count == 0 ? 0 : select_at(values, count, (count - 1) * per_mille / 1000);
}

struct array_middles array_middles(int64_t *values, size_t count)
{
    struct array_middles middles = {.count = count};

    if (count < 2)
        return middles;
    size_t middle = (count - 2) / 2;
    middles.low = select_at(values, count, middle);
    middles.high = values[middle + 1];
    for (size_t i = middle + 2; i < count; i++)
        middles.high = values[i] < middles.high ? values[i] : middles.high;
    return middles;
}

static size_t count_up_to(const int64_t *sorted, size_t count, int64_t value)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t array_quantile_without(const int64_t *sorted, size_t count, const int64_t *own, size_t own_count,
                               unsigned per_mille)
{
    if (count <= own_count)
        return 0;
    size_t wanted = (count - own_count - 1) * per_mille / 1000;
    for (size_t at = wanted; at < count; at++)
        if (count_up_to(sorted, count, sorted[at]) - count_up_to(own, own_count, sorted[at]) > wanted)
            return sorted[at];
    return 0;
}

int64_t array_middle(int64_t *values, size_t count)
{
    int64_t low = array_median(values, count);

    return count == 0 || count % 2 != 0 ? low : low + (values[count / 2] - low) / 2;
}

int64_t array_spread(int64_t *values, size_t count)
{
    int64_t middle = array_select(values, count, 500);
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] > middle ? values[i] - middle : middle - values[i];
    int64_t distance = array_select(values, count, 500);
    return distance / 10000 * 14826 + distance % 10000 * 14826 / 10000;
}
