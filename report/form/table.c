/* SPDX-License-Identifier: BSD-2-Clause */
/* Aligned text. Invariant: `cells` holds cells_count cleaned texts, row after row; the last row may be unfinished. */
#include "report/form/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/form/text.h"
#include "wire/log.h"

#define SPACE          2 /* between columns */
#define NARROWEST      8 /* a text column is not cut below this */
#define CELLS_AT_FIRST 64
#define ELLIPSIS       "…"

struct table {
    const struct table_heading *headings;
    size_t columns_count;
    char **cells;
    size_t cells_count;
    size_t cells_capacity;
};

struct layout {
    size_t shown_count; /* columns */
    bool *shown;
    size_t *widths;
};

int table_create(struct table **table, const struct table_heading *headings, size_t columns_count)
{
    struct table *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return log_error_return(-ENOMEM, "out of memory for a table");
    }
    made->headings = headings;
    made->columns_count = columns_count;
    *table = made;
    return 0;
}

void table_destroy(struct table **table)
{
    if (*table == NULL) {
        return;
    }
    for (size_t i = 0; i < (*table)->cells_count; i++) {
        free((*table)->cells[i]);
    }
    free((*table)->cells);
    free(*table);
    *table = NULL;
}

int table_add(struct table *table, const char *text)
{
    if (table->cells_count == table->cells_capacity) {
        size_t capacity = table->cells_capacity == 0 ? CELLS_AT_FIRST : table->cells_capacity * 2;
        char **cells = realloc(table->cells, capacity * sizeof(*cells));
        if (cells == NULL) {
            return log_error_return(-ENOMEM, "out of memory for a table");
        }
        table->cells = cells;
        table->cells_capacity = capacity;
    }
    char *clean = text_clean(text);
    if (clean == NULL) {
        return log_error_return(-ENOMEM, "out of memory for a table");
    }
    table->cells[table->cells_count++] = clean;
    return 0;
}

static size_t natural_width(const struct table *table, size_t column)
{
    size_t widest = text_width(table->headings[column].text);
    for (size_t i = column; i < table->cells_count; i += table->columns_count) {
        size_t width = text_width(table->cells[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static size_t total_width(const struct table *table, const struct layout *layout)
{
    size_t total = 0;
    for (size_t i = 0; i < table->columns_count; i++) {
        total += layout->shown[i] ? layout->widths[i] + SPACE : 0;
    }
    return total - SPACE;
}

/* Takes `excess` columns from the widest text column that still has some to give; false when none has. */
static bool narrow_one(const struct table *table, struct layout *layout, size_t excess)
{
    size_t widest = table->columns_count;
    for (size_t i = 0; i < table->columns_count; i++) {
        if (!layout->shown[i] || table->headings[i].right || layout->widths[i] <= NARROWEST) {
            continue;
        }
        if (widest == table->columns_count || layout->widths[i] > layout->widths[widest]) {
            widest = i;
        }
    }
    if (widest == table->columns_count) {
        return false;
    }
    size_t spare = layout->widths[widest] - NARROWEST;
    layout->widths[widest] -= excess < spare ? excess : spare;
    return true;
}

/* The last column that is shown (of the spare ones); false when there is none. */
static bool leave_one_out(const struct table *table, struct layout *layout, bool spare_only)
{
    for (size_t i = table->columns_count; i > 0; i--) {
        if (layout->shown[i - 1] && (!spare_only || table->headings[i - 1].spare)) {
            layout->shown[i - 1] = false;
            layout->shown_count--;
            return true;
        }
    }
    return false;
}

static void fit(const struct table *table, struct layout *layout, size_t width)
{
    size_t natural[table->columns_count];
    for (size_t i = 0; i < table->columns_count; i++) {
        natural[i] = natural_width(table, i);
        layout->shown[i] = true;
    }
    layout->shown_count = table->columns_count;
    memcpy(layout->widths, natural, sizeof(natural));
    while (layout->shown_count > 1 && total_width(table, layout) > width && leave_one_out(table, layout, true)) {
    }
    while (layout->shown_count > 1 && total_width(table, layout) > width) {
        if (!narrow_one(table, layout, total_width(table, layout) - width)) {
            leave_one_out(table, layout, false);
            memcpy(layout->widths, natural, sizeof(natural));
        }
    }
}

/* Whether no column behind it is shown. */
static bool is_last(const struct table *table, const struct layout *layout, size_t column)
{
    for (size_t i = column + 1; i < table->columns_count; i++) {
        if (layout->shown[i]) {
            return false;
        }
    }
    return true;
}

/* Prints at most `width` columns of it; returns how many it took. */
static size_t print_cut(FILE *out, const char *text, size_t width)
{
    size_t natural = text_width(text);
    size_t take = natural > width ? width - 1 : natural;
    for (size_t i = 0; i < take; i++) {
        bool valid;
        size_t length = text_character(text, &valid);
        fwrite(text, 1, length, out);
        text += length;
    }
    if (natural > width) {
        fputs(ELLIPSIS, out);
        return width;
    }
    return natural;
}

static void print_cell(FILE *out, const char *text, size_t width, bool right, bool last)
{
    size_t natural = text_width(text);
    size_t blanks = natural < width ? width - natural : 0;
    if (right) {
        fprintf(out, "%*s", (int)blanks, "");
        blanks = 0;
    }
    print_cut(out, text, width);
    if (!last) {
        fprintf(out, "%*s", (int)(blanks + SPACE), "");
    }
}

static void print_headings(const struct table *table, FILE *out, const struct terminal *terminal,
                           const struct layout *layout)
{
    fputs(terminal->colour ? "\033[1m" : "", out);
    for (size_t i = 0; i < table->columns_count; i++) {
        if (layout->shown[i]) {
            print_cell(out, table->headings[i].text, layout->widths[i], table->headings[i].right,
                       is_last(table, layout, i));
        }
    }
    fputs(terminal->colour ? "\033[0m\n" : "\n", out);
}

static void print_rows(const struct table *table, FILE *out, const struct layout *layout)
{
    for (size_t i = 0; i < table->cells_count; i++) {
        size_t column = i % table->columns_count;
        if (layout->shown[column]) {
            print_cell(out, table->cells[i], layout->widths[column], table->headings[column].right,
                       is_last(table, layout, column));
        }
        if (column + 1 == table->columns_count) {
            putc('\n', out);
        }
    }
}

static void print_blocks(const struct table *table, FILE *out, const struct terminal *terminal)
{
    size_t widest = 0;
    for (size_t i = 0; i < table->columns_count; i++) {
        size_t width = text_width(table->headings[i].text);
        widest = width > widest ? width : widest;
    }
    for (size_t i = 0; i < table->cells_count; i++) {
        size_t column = i % table->columns_count;
        fputs(i > 0 && column == 0 ? "\n" : "", out);
        fputs(terminal->colour ? "\033[1m" : "", out);
        print_cell(out, table->headings[column].text, widest, false, false);
        fprintf(out, "%s%s\n", terminal->colour ? "\033[0m" : "", table->cells[i]);
    }
}

void table_print_whole(const struct table *table, FILE *out, const struct terminal *terminal)
{
    size_t widths[table->columns_count];
    bool shown[table->columns_count];
    struct layout layout = {.widths = widths, .shown = shown};
    fit(table, &layout, SIZE_MAX);
    if (!terminal->is_assumed && table->cells_count > 0 && total_width(table, &layout) > terminal->width) {
        print_blocks(table, out, terminal);
    } else {
        print_headings(table, out, terminal, &layout);
        print_rows(table, out, &layout);
    }
}

void table_print(const struct table *table, FILE *out, const struct terminal *terminal)
{
    size_t widths[table->columns_count];
    bool shown[table->columns_count];
    struct layout layout = {.widths = widths, .shown = shown};
    fit(table, &layout, terminal->width);
    print_headings(table, out, terminal, &layout);
    print_rows(table, out, &layout);
    if (layout.shown_count < table->columns_count) {
        size_t left_out = table->columns_count - layout.shown_count;
        fprintf(out, "(%zu column%s left out; --json has all)\n", left_out, left_out == 1 ? "" : "s");
    }
}
