/* SPDX-License-Identifier: BSD-2-Clause */
/* Bars of text. A time belongs to the column whose share of the scale it lies in; the end of a bar is exclusive. */
#include "report/form/chart.h"

#include <stdbool.h>
#include <string.h>

void chart_lane_init(struct chart_lane *lane, const struct chart_scale *scale)
{
    memset(lane->text, ' ', scale->columns);
    lane->text[scale->columns] = '\0';
}

static int64_t column_of(const struct chart_scale *scale, int64_t time_ns)
{
    int64_t span_ns = scale->to_ns > scale->from_ns ? scale->to_ns - scale->from_ns : 1;
    double place = (double)(time_ns - scale->from_ns) / (double)span_ns * (double)scale->columns;
    if (place < 0) {
        return -1;
    }
    return place >= (double)scale->columns ? (int64_t)scale->columns : (int64_t)place;
}

static void draw(struct chart_lane *lane, const struct chart_scale *scale, int64_t from_ns, int64_t to_ns, char symbol,
                 bool cover)
{
    int64_t last = (int64_t)scale->columns - 1;
    int64_t from = column_of(scale, from_ns);
    int64_t to = column_of(scale, to_ns) - 1;
    to = to < from ? from : to;
    from = from < 0 ? 0 : from;
    to = to > last ? last : to;
    for (int64_t column = from; column <= to; column++) {
        if (cover || lane->text[column] == ' ') {
            lane->text[column] = symbol;
        }
    }
}

void chart_bar(struct chart_lane *lane, const struct chart_scale *scale, int64_t from_ns, int64_t to_ns, char symbol)
{
    draw(lane, scale, from_ns, to_ns, symbol, true);
}

void chart_fill(struct chart_lane *lane, const struct chart_scale *scale, int64_t from_ns, int64_t to_ns, char symbol)
{
    draw(lane, scale, from_ns, to_ns, symbol, false);
}

char chart_symbol(int64_t number)
{
    static const char symbols[] = CHART_SYMBOLS;
    return number >= 0 && number < (int64_t)sizeof(symbols) - 1 ? symbols[number] : '*';
}
