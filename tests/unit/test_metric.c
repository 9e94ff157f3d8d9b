/* SPDX-License-Identifier: BSD-2-Clause */
/* What is expected is written by hand from the formats' specifications (text format 0.0.4, OpenMetrics 1.0). */
#include "wire/metric/metric.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "wire/metric/own.h"

static const struct metric_spec frames = {"qpscope_made_frames", METRIC_COUNTER, "frames",
                                          "Frames \"made\" \\ here\nnow"};
static const struct metric_spec heat = {"qpscope_heat", METRIC_GAUGE, "", "Heat"};
static const struct metric_spec build = {"qpscope_build", METRIC_INFO, "", "Build"};
static const struct metric_spec size = {"qpscope_size_bytes", METRIC_HISTOGRAM, "bytes", "Sizes"};

static void write_all(struct metric_writer *writer)
{
    const struct metric_label labels[] = {{"device", "mlx5_0/1"}, {"text", "a\"b\\c\nd"}};
    struct histogram histogram;

    metric_begin(writer, &frames);
    metric_labels(writer, labels, 2);
    metric_integer(writer, UINT64_MAX);
    metric_one(writer, &heat, -0.1);
    metric_begin(writer, &build);
    metric_labels(writer, labels, 1);
    metric_integer(writer, 1);
    histogram_init(&histogram, (struct histogram_shape){.first = 5, .count = 2, .growth = 8}); /* 1 KiB, 4 KiB */
    histogram_add(&histogram, 1024);
    histogram_add(&histogram, 1025);
    histogram_add(&histogram, 1e9);
    metric_begin(writer, &size);
    metric_labels(writer, labels, 1);
    metric_histogram(writer, &histogram);
}

static void assert_text(bool is_openmetrics, const char *expected)
{
    struct metric_writer writer;
    size_t length;

    metric_open(&writer, is_openmetrics);
    write_all(&writer);
    char *text = metric_close(&writer, &length);
    assert_non_null(text);
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(text, expected, length);
    free(text);
}

static void writes_the_text_format(void **state)
{
    (void)state;
    assert_text(false, "# HELP qpscope_made_frames_total Frames \"made\" \\\\ here\\nnow\n"
                       "# TYPE qpscope_made_frames_total counter\n"
                       "qpscope_made_frames_total{device=\"mlx5_0/1\",text=\"a\\\"b\\\\c\\nd\"} 18446744073709551615\n"
                       "# HELP qpscope_heat Heat\n"
                       "# TYPE qpscope_heat gauge\n"
                       "qpscope_heat -0.1\n"
                       "# HELP qpscope_build_info Build\n"
                       "# TYPE qpscope_build_info gauge\n"
                       "qpscope_build_info{device=\"mlx5_0/1\"} 1\n"
                       "# HELP qpscope_size_bytes Sizes\n"
                       "# TYPE qpscope_size_bytes histogram\n"
                       "qpscope_size_bytes_bucket{device=\"mlx5_0/1\",le=\"1024\"} 1\n"
                       "qpscope_size_bytes_bucket{device=\"mlx5_0/1\",le=\"4096\"} 2\n"
                       "qpscope_size_bytes_bucket{device=\"mlx5_0/1\",le=\"+Inf\"} 3\n"
                       "qpscope_size_bytes_sum{device=\"mlx5_0/1\"} 1000002049\n"
                       "qpscope_size_bytes_count{device=\"mlx5_0/1\"} 3\n");
}

static void writes_openmetrics(void **state)
{
    (void)state;
    assert_text(true, "# HELP qpscope_made_frames Frames \\\"made\\\" \\\\ here\\nnow\n"
                      "# TYPE qpscope_made_frames counter\n"
                      "# UNIT qpscope_made_frames frames\n"
                      "qpscope_made_frames_total{device=\"mlx5_0/1\",text=\"a\\\"b\\\\c\\nd\"} 18446744073709551615\n"
                      "# HELP qpscope_heat Heat\n"
                      "# TYPE qpscope_heat gauge\n"
                      "qpscope_heat -0.1\n"
                      "# HELP qpscope_build Build\n"
                      "# TYPE qpscope_build info\n"
                      "qpscope_build_info{device=\"mlx5_0/1\"} 1\n"
                      "# HELP qpscope_size_bytes Sizes\n"
                      "# TYPE qpscope_size_bytes histogram\n"
                      "# UNIT qpscope_size_bytes bytes\n"
                      "qpscope_size_bytes_bucket{device=\"mlx5_0/1\",le=\"1024.0\"} 1\n"
                      "qpscope_size_bytes_bucket{device=\"mlx5_0/1\",le=\"4096.0\"} 2\n"
                      "qpscope_size_bytes_bucket{device=\"mlx5_0/1\",le=\"+Inf\"} 3\n"
                      "qpscope_size_bytes_sum{device=\"mlx5_0/1\"} 1000002049\n"
                      "qpscope_size_bytes_count{device=\"mlx5_0/1\"} 3\n"
                      "# EOF\n");
}

struct accept_case {
    const char *accept;
    bool is_openmetrics;
};

static void answers_in_the_format_that_is_asked_for(void **state)
{
    static const struct accept_case cases[] = {
        {"", false},
        {"*/*", false},
        {"text/plain", false},
        {"application/openmetrics-text", true},
        /* as Prometheus 2.42 asks */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         true},
        {"text/plain;version=0.0.4;q=0.9,application/openmetrics-text;q=0.5", false},
        {"application/openmetrics-text;q=0", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(metric_accepts_openmetrics(cases[i].accept), cases[i].is_openmetrics);
    assert_string_equal(metric_content_type(false), "text/plain; version=0.0.4; charset=utf-8");
    assert_string_equal(metric_content_type(true), "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

static void has_the_bounds_of_native_histograms(void **state)
{
    struct histogram histogram;

    (void)state;
    histogram_init(&histogram, (struct histogram_shape){.first = -2, .count = 5, .growth = 2});
    const double bounds[] = {0.5, M_SQRT1_2, 1, M_SQRT2, 2};
    for (unsigned i = 0; i < 5; i++)
        assert_true(fabs(histogram_bound(&histogram, i) - bounds[i]) < 1e-15);
    histogram_add(&histogram, 0);
    histogram_add(&histogram, 0.5); /* upper-inclusive */
    histogram_add(&histogram, 1);
    histogram_add(&histogram, 1.0001);
    histogram_add(&histogram, 2.0001);
    const uint64_t counts[] = {2, 0, 1, 1, 0, 1};
    assert_memory_equal(histogram.counts, counts, sizeof counts);
    assert_int_equal(histogram.total, 5);
}

static void tells_named_counters(void **state)
{
    const struct counter_spec specs[] = {
        {"frames_total", "Frames"}, {"coverage_ns", "Coverage"}, {"waiting", "Waiting"}};
    uint64_t first[] = {3, 2500000000, 7}, second[] = {4, 1500000000, 9};
    const struct counter_table tables[] = {{specs, first, 3}, {specs, second, 3}};
    struct metric_writer writer;
    size_t length;
    const char *expected = "# HELP qpscope_x_frames_total Frames\n"
                           "# TYPE qpscope_x_frames_total counter\n"
                           "qpscope_x_frames_total 7\n"
                           "# HELP qpscope_x_coverage_seconds Coverage\n"
                           "# TYPE qpscope_x_coverage_seconds gauge\n"
                           "qpscope_x_coverage_seconds 1.5\n"
                           "# HELP qpscope_x_waiting Waiting\n"
                           "# TYPE qpscope_x_waiting gauge\n"
                           "qpscope_x_waiting 7\n";

    (void)state;
    metric_open(&writer, false);
    metric_counters(&writer, "qpscope_x", tables, 2);
    char *text = metric_close(&writer, &length);
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(text, expected, length);
    free(text);
}

static double own_value(const char *name)
{
    struct metric_writer writer;
    size_t length;
    char wanted[128];

    metric_open(&writer, false);
    own_write(&writer, "test");
    char *text = metric_close(&writer, &length);
    text = realloc(text, length + 1);
    text[length] = '\0';
    snprintf(wanted, sizeof wanted, "\n%s ", name);
    const char *found = strstr(text, wanted);
    assert_non_null(found);
    double value = strtod(found + strlen(wanted), NULL);
    free(text);
    return value;
}

static void tells_of_itself(void **state)
{
    char line[256];
    unsigned long resident_kib = 0;
    double cpu_seconds = own_value("qpscope_cpu_seconds_total");
    FILE *status = fopen("/proc/self/status", "r");

    (void)state;
    assert_non_null(status);
    while (fgets(line, sizeof line, status) != NULL)
        sscanf(line, "VmRSS: %lu", &resident_kib);
    fclose(status);
    assert_true(fabs(own_value("qpscope_resident_memory_bytes") - (double)resident_kib * 1024) < 4e6);
    assert_true(own_value("qpscope_cpu_seconds_total") >= cpu_seconds);
    double age_seconds = (double)time(NULL) - own_value("qpscope_start_timestamp_seconds");
    assert_true(age_seconds > -2 && age_seconds < 60);
    double before = own_value("qpscope_open_descriptors");
    FILE *one_more = fopen("/dev/null", "r");
    assert_true(own_value("qpscope_open_descriptors") == before + 1);
    fclose(one_more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_text_format),
        cmocka_unit_test(writes_openmetrics),
        cmocka_unit_test(answers_in_the_format_that_is_asked_for),
        cmocka_unit_test(has_the_bounds_of_native_histograms),
        cmocka_unit_test(tells_named_counters),
        cmocka_unit_test(tells_of_itself),
    };

    return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
