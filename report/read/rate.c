/* SPDX-License-Identifier: BSD-2-Clause */
/* Rates in whole bytes per second, so that what an interval adds it takes away again exactly. */
#include "report/read/rate.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/log.h"

#define EDGES_AT_FIRST 1024
#define NS_PER_S       1000000000

int rate_add(struct rate *rate, int64_t from_ns, int64_t to_ns, int64_t bytes)
{
    if (rate->count + 2 > rate->capacity) {
        size_t capacity = rate->capacity == 0 ? EDGES_AT_FIRST : rate->capacity * 2;
        struct rate_edge *edges = realloc(rate->edges, capacity * sizeof(*edges));
        if (edges == NULL) {
            return log_error_return(-ENOMEM, "out of memory for the rate of a flow");
        }
        rate->edges = edges;
        rate->capacity = capacity;
    }
    int64_t length_ns = to_ns - from_ns < RATE_SHORTEST_NS ? RATE_SHORTEST_NS : to_ns - from_ns;
    int64_t change = (int64_t)((__int128)bytes * NS_PER_S / length_ns);
    rate->edges[rate->count++] = (struct rate_edge){from_ns, change};
    rate->edges[rate->count++] = (struct rate_edge){from_ns + length_ns, -change};
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct rate_edge *a = left;
    const struct rate_edge *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

void rate_sort(struct rate *rate)
{
    if (rate->count > 0) {
        qsort(rate->edges, rate->count, sizeof(*rate->edges), compare);
    }
    rate->bytes_per_s = 0;
}

bool rate_next(struct rate *rate, size_t *at, struct rate_value *value)
{
    if (*at == rate->count) {
        return false;
    }
    value->time_ns = rate->edges[*at].time_ns;
    while (*at < rate->count && rate->edges[*at].time_ns == value->time_ns) {
        rate->bytes_per_s += rate->edges[(*at)++].change;
    }
    value->bytes_per_s = rate->bytes_per_s;
    return true;
}

void rate_means_begin(struct rate_means *means, struct rate *rate, int64_t from_ns, int64_t to_ns, int64_t interval_ns)
{
    *means = (struct rate_means){rate, from_ns, to_ns, interval_ns, 0, false, {.time_ns = from_ns}, {0}};
    means->more = rate_next(rate, &means->at, &means->next);
}

bool rate_means_next(struct rate_means *means, struct rate_value *mean)
{
    int64_t to_ns = means->from_ns + means->interval_ns;
    int64_t now_ns = means->from_ns;
    __int128 sum = 0;
    if (means->from_ns >= means->to_ns) {
        return false;
    }
    while (means->more && means->next.time_ns < to_ns) {
        if (means->next.time_ns > now_ns) {
            sum += (__int128)means->value.bytes_per_s * (means->next.time_ns - now_ns);
            now_ns = means->next.time_ns;
        }
        means->value = means->next;
        means->more = rate_next(means->rate, &means->at, &means->next);
    }
    sum += (__int128)means->value.bytes_per_s * (to_ns - now_ns);
    *mean = (struct rate_value){means->from_ns, (int64_t)(sum / means->interval_ns)};
    means->from_ns = to_ns;
    return true;
}

void rate_fini(struct rate *rate)
{
    free(rate->edges);
    *rate = (struct rate){0};
}
