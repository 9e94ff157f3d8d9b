/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two text formats. Source: Prometheus' "Exposition formats" (text format 0.0.4) and the OpenMetrics 1.0 text
 * format. Where they differ: in OpenMetrics a counter's family has no _total, an info is a type of its own, units are
 * told, and the text ends with "# EOF".
 */
#include "wire/metric/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENMETRICS_TYPE "application/openmetrics-text"
#define NAME_BYTES       128
#define BOUND_BYTES      40

static bool reserve(struct metric_writer *writer, size_t more_bytes)
{
    size_t needed = writer->length_bytes + more_bytes, capacity = writer->capacity_bytes;

    if (writer->failed || needed <= capacity)
        return !writer->failed;
    while (capacity < needed)
        capacity = capacity == 0 ? 16384 : capacity * 2;
    char *bytes = realloc(writer->bytes, capacity);
    writer->failed = bytes == NULL;
    if (writer->failed)
        return false;
    writer->bytes = bytes;
    writer->capacity_bytes = capacity;
    return true;
}

static void put(struct metric_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct metric_writer *writer, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text || !reserve(writer, (size_t)length)) {
        writer->failed = true;
        return;
    }
    memcpy(writer->bytes + writer->length_bytes, text, (size_t)length);
    writer->length_bytes += (size_t)length;
}

/* With backslash and newline escaped, and quotes where the text stands in some. */
static void put_text(struct metric_writer *writer, const char *text, bool is_quoted)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            put(writer, "\\n");
        else if (*text == '\\' || (*text == '"' && is_quoted))
            put(writer, "\\%c", *text);
        else
            put(writer, "%c", *text);
    }
}

/* ---- the whole ---- */

/* The weight of one media range, "type/subtype;name=value;q=0.5", up to the next comma: 0 to 1. */
static double weight_of(const char *range)
{
    size_t length = strcspn(range, ",");
    const char *q = strstr(range, "q=");

    return q == NULL || q >= range + length ? 1 : strtod(q + 2, NULL);
}

static double weight_of_type(const char *accept, const char *type)
{
    const char *range = strstr(accept, type);

    return range == NULL ? 0 : weight_of(range);
}

bool metric_accepts_openmetrics(const char *accept)
{
    double weight = weight_of_type(accept, OPENMETRICS_TYPE);

    return weight > 0 && weight >= weight_of_type(accept, "text/plain");
}

const char *metric_content_type(bool is_openmetrics)
{
    return is_openmetrics ? OPENMETRICS_TYPE "; version=1.0.0; charset=utf-8"
                          : "text/plain; version=0.0.4; charset=utf-8";
}

void metric_open(struct metric_writer *writer, bool is_openmetrics)
{
    *writer = (struct metric_writer){.is_openmetrics = is_openmetrics};
}

char *metric_close(struct metric_writer *writer, size_t *length_bytes)
{
    if (writer->is_openmetrics)
        put(writer, "# EOF\n");
    if (writer->failed) {
        free(writer->bytes);
        writer->bytes = NULL;
        writer->length_bytes = 0;
    }
    *length_bytes = writer->length_bytes;
    return writer->bytes;
}

/* ---- families ---- */

static const char *suffix(const struct metric_spec *spec)
{
    return spec->type == METRIC_COUNTER ? "_total" : spec->type == METRIC_INFO ? "_info" : "";
}

void metric_begin(struct metric_writer *writer, const struct metric_spec *spec)
{
    static const char *const types[] = {"counter", "gauge", "histogram", "info"};
    bool is_plain_info = spec->type == METRIC_INFO && !writer->is_openmetrics;
    const char *ending = writer->is_openmetrics ? "" : suffix(spec);

    writer->family = spec;
    writer->labels_count = 0;
    put(writer, "# HELP %s%s ", spec->name, ending);
    put_text(writer, spec->help, writer->is_openmetrics);
    put(writer, "\n# TYPE %s%s %s\n", spec->name, ending, types[is_plain_info ? METRIC_GAUGE : spec->type]);
    if (writer->is_openmetrics && spec->unit[0] != '\0')
        put(writer, "# UNIT %s %s\n", spec->name, spec->unit);
}

void metric_labels(struct metric_writer *writer, const struct metric_label *labels, size_t count)
{
    count = count < METRIC_LABELS_MAX ? count : METRIC_LABELS_MAX;
    if (count > 0)
        memcpy(writer->labels, labels, count * sizeof *labels);
    writer->labels_count = count;
}

/* The sample's name and labels, and one more label unless it has no name. */
static void put_name(struct metric_writer *writer, const char *ending, const struct metric_label *more)
{
    const char *separator = "{";

    put(writer, "%s%s", writer->family->name, ending);
    for (size_t i = 0; i < writer->labels_count + (more != NULL ? 1 : 0); i++) {
        const struct metric_label *label = i < writer->labels_count ? &writer->labels[i] : more;
        put(writer, "%s%s=\"", separator, label->name);
        put_text(writer, label->value, true);
        put(writer, "\"");
        separator = ",";
    }
    put(writer, "%s ", separator[0] == ',' ? "}" : "");
}

/* As short as it can be without being another number. */
static void put_real(struct metric_writer *writer, double value)
{
    char text[40];
    int digits = 15;

    if (isinf(value) || isnan(value)) {
        put(writer, "%s\n", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    put(writer, "%s\n", text);
}

void metric_integer(struct metric_writer *writer, uint64_t value)
{
    put_name(writer, suffix(writer->family), NULL);
    put(writer, "%" PRIu64 "\n", value);
}

void metric_real(struct metric_writer *writer, double value)
{
    put_name(writer, suffix(writer->family), NULL);
    put_real(writer, value);
}

/* OpenMetrics wants canonical floating point numbers here: "1024.0". */
static void print_bound(const struct metric_writer *writer, const struct histogram *histogram, unsigned index,
                        char bound[BOUND_BYTES])
{
    if (index == histogram->shape.count) {
        snprintf(bound, BOUND_BYTES, "+Inf");
        return;
    }
    snprintf(bound, BOUND_BYTES, "%.9g", histogram_bound(histogram, index));
    if (writer->is_openmetrics && strpbrk(bound, ".e") == NULL)
        strcat(bound, ".0");
}

void metric_histogram(struct metric_writer *writer, const struct histogram *histogram)
{
    uint64_t below = 0;
    char bound[BOUND_BYTES];

    for (unsigned i = 0; i <= histogram->shape.count; i++) {
        below += histogram->counts[i];
        print_bound(writer, histogram, i, bound);
        put_name(writer, "_bucket", &(struct metric_label){"le", bound});
        put(writer, "%" PRIu64 "\n", below);
    }
    put_name(writer, "_sum", NULL);
    put_real(writer, histogram->sum);
    put_name(writer, "_count", NULL);
    put(writer, "%" PRIu64 "\n", histogram->total);
}

void metric_one(struct metric_writer *writer, const struct metric_spec *spec, double value)
{
    metric_begin(writer, spec);
    metric_real(writer, value);
}

/* ---- named counters ---- */

static bool take_off(char *name, const char *ending)
{
    size_t length = strlen(name), ending_length = strlen(ending);

    if (length < ending_length || strcmp(name + length - ending_length, ending) != 0)
        return false;
    name[length - ending_length] = '\0';
    return true;
}

static uint64_t value_of(const struct counter_table *tables, size_t count, size_t index, bool is_counter)
{
    uint64_t value = counter_read(tables[0].values, index);

    for (size_t i = 1; i < count; i++) {
        uint64_t other = counter_read(tables[i].values, index);
        if (is_counter)
            value += other;
        else if (other < value)
            value = other;
    }
    return value;
}

static void put_counter(struct metric_writer *writer, const char *prefix, const struct counter_table *tables,
                        size_t count, size_t index)
{
    char name[NAME_BYTES];
    struct metric_spec spec = {name, METRIC_GAUGE, "", tables[0].specs[index].help};

    snprintf(name, sizeof name - sizeof "seconds", "%s_%s", prefix, tables[0].specs[index].name);
    if (take_off(name, "_total"))
        spec.type = METRIC_COUNTER;
    bool is_time = take_off(name, "_ns");
    if (is_time) {
        strcat(name, "_seconds");
        spec.unit = "seconds";
    }
    uint64_t value = value_of(tables, count, index, spec.type == METRIC_COUNTER);
    metric_begin(writer, &spec);
    if (is_time)
        metric_real(writer, value == UINT64_MAX ? INFINITY : (double)value / 1e9);
    else
        metric_integer(writer, value);
}

void metric_counters(struct metric_writer *writer, const char *prefix, const struct counter_table *tables, size_t count)
{
    for (size_t i = 0; count > 0 && i < tables[0].count; i++)
        put_counter(writer, prefix, tables, count, i);
    writer->family = NULL;
}
