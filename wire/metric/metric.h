/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics as text for Prometheus: its text format 0.0.4, or OpenMetrics 1.0. A program lists its metrics in a
 * metric.def as
 *
 *     METRIC(NAME, "qpscope_name_unit", COUNTER, "unit", "help")
 *
 * and makes a table of `metric_spec` of it (METRIC_SPEC). Names have their unit last, in base units, and no _total or
 * _info: these are added. A family is written whole: metric_begin, then its samples. One thread a writer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/counter.h"
#include "wire/metric/histogram.h"

enum metric_type {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM,
    METRIC_INFO,
};

struct metric_spec {
    const char *name;
    enum metric_type type;
    const char *unit; /* "" = none */
    const char *help;
};
/* What a METRIC of a .def file is in a table. */
#define METRIC_SPEC(name, type, unit, help)                                                                            \
    {                                                                                                                  \
        name, METRIC_##type, unit, help                                                                                \
    }

struct metric_label {
    const char *name;
    const char *value; /* any text: it is escaped */
};
#define METRIC_LABELS_MAX 6

struct metric_writer {
    bool is_openmetrics;
    bool failed; /* no memory: what follows is left out */
    char *bytes;
    size_t length_bytes;
    size_t capacity_bytes;
    const struct metric_spec *family;
    struct metric_label labels[METRIC_LABELS_MAX];
    size_t labels_count;
};

/* Whether who asks with this Accept header prefers OpenMetrics 1.0 to text 0.0.4. */
bool metric_accepts_openmetrics(const char *accept);
const char *metric_content_type(bool is_openmetrics);

void metric_open(struct metric_writer *writer, bool is_openmetrics);

/* Ends the text. The bytes are the caller's to free; NULL: there was no memory for them. */
char *metric_close(struct metric_writer *writer, size_t *length_bytes);

void metric_begin(struct metric_writer *writer, const struct metric_spec *spec);

/* The labels of the samples that follow, until the next metric_begin or metric_labels; their text is borrowed. */
void metric_labels(struct metric_writer *writer, const struct metric_label *labels, size_t count);

void metric_integer(struct metric_writer *writer, uint64_t value);
void metric_real(struct metric_writer *writer, double value);
void metric_histogram(struct metric_writer *writer, const struct histogram *histogram);

/* A family of one sample without labels. */
void metric_one(struct metric_writer *writer, const struct metric_spec *spec, double value);

/*
 * Named counters (wire/counter.h), as "PREFIX_name": a counter where the name ends in _total, else a gauge; nanoseconds
 * become seconds. Of several tables of the same counters the sum, of gauges the smallest.
 */
void metric_counters(struct metric_writer *writer, const char *prefix, const struct counter_table *tables,
                     size_t count);
