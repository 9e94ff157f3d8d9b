/* SPDX-License-Identifier: BSD-2-Clause */
/* A lane of text on which bars stand for intervals of time. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CHART_COLUMNS_MAX 1024

/* The time that a whole lane shows, and its width; columns is at least 1 and at most CHART_COLUMNS_MAX. */
struct chart_scale {
    int64_t from_ns;
    int64_t to_ns;
    size_t columns;
};

struct chart_lane {
    char text[CHART_COLUMNS_MAX + 1];
};

void chart_lane_init(struct chart_lane *lane, const struct chart_scale *scale);

/* Draws [from_ns, to_ns] with `symbol`, at least one column wide, clipped to the lane; later bars cover earlier ones.
 */
void chart_bar(struct chart_lane *lane, const struct chart_scale *scale, int64_t from_ns, int64_t to_ns, char symbol);

/* The same, but only on columns that are still blank. */
void chart_fill(struct chart_lane *lane, const struct chart_scale *scale, int64_t from_ns, int64_t to_ns, char symbol);

/* 0 to 9, a to z, A to Z, then '*'. */
char chart_symbol(int64_t number);

#define CHART_SYMBOLS "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
