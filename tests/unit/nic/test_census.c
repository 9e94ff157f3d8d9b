/* SPDX-License-Identifier: BSD-2-Clause */
/* A run of a source that counts: what it hands out lies in the capture file, and on standard output, in an order that
 * can be read. */
#include "nic/counting/census.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "nic/source/source_private.h"
#include "wire/batch.h"
#include "wire/capture.h"
#include "wire/clock.h"

#define READINGS 20u

/* One endpoint, then a reading of it every time that it is asked. */
struct made_source {
    struct source source;
    bool is_changed;
    unsigned readings;
};

static void close_made(struct source *source)
{
    free(source);
}

static size_t ports_made(const struct source *source, struct record_port *ports, size_t capacity)
{
    (void)source;
    if (capacity > 0)
        ports[0] = (struct record_port){.port = 1, .name = "rxe0/1"};
    return 1;
}

static uint64_t covered_made(const struct source *source)
{
    (void)source;
    return clock_now_ns();
}

static void describe_made(const struct source *source, struct record_traffic_source *description)
{
    (void)source;
    description->grain_ns = 5000000;
}

static size_t counts_made(struct source *source, struct source_count *counts, size_t capacity)
{
    struct made_source *self = (struct made_source *)source;

    assert_true(capacity > 0);
    if (self->is_changed) {
        counts[0] = (struct source_count){.kind = RECORD_ENDPOINT, .endpoint = {.endpoint = 1, .qpn = 17, .port = 1}};
        self->is_changed = false;
        return 1;
    }
    if (self->readings == READINGS)
        return 0;
    counts[0] = (struct source_count){
        .kind = RECORD_READING,
        .reading = {
            .header.source = 1, .from_ns = 100 + self->readings, .to_ns = 200 + self->readings, .sent_packets = 3}};
    self->readings++;
    return 1;
}

static void repeat_made(struct source *source)
{
    ((struct made_source *)source)->is_changed = true;
}

static uint64_t refused_made(const struct source *source)
{
    (void)source;
    return 2;
}

static struct source *make_source(void)
{
    static const struct source_operations operations = {
        .kind = TRAFFIC_SOURCE_PSN,
        .close = close_made,
        .ports = ports_made,
        .covered_ns = covered_made,
        .describe = describe_made,
        .counts = counts_made,
        .repeat = repeat_made,
        .refused = refused_made,
    };
    struct made_source *made = calloc(1, sizeof *made);

    made->source.operations = &operations;
    made->is_changed = true;
    return &made->source;
}

struct heard {
    unsigned sources;
    unsigned endpoints;
    unsigned readings;
    uint64_t packets;
    uint64_t refused;
    bool is_wrong; /* a reading before its endpoint, an endpoint before its port or the source */
    bool has_port;
};

static void hear(struct heard *heard, const union record *record)
{
    switch (record->header.kind) {
    case RECORD_TRAFFIC_SOURCE:
        heard->sources++;
        heard->is_wrong |= record->traffic_source.kind != TRAFFIC_SOURCE_PSN ||
                           record->traffic_source.fields != 0x418 || record->traffic_source.grain_ns != 5000000;
        break;
    case RECORD_PORT:
        heard->has_port = true;
        break;
    case RECORD_ENDPOINT:
        heard->endpoints++;
        heard->is_wrong |= heard->sources == 0 || !heard->has_port;
        break;
    case RECORD_READING:
        heard->readings++;
        heard->packets += record->reading.sent_packets;
        heard->is_wrong |= heard->endpoints == 0;
        break;
    case RECORD_COUNTER:
        if (strcmp(record->counter.name, "endpoints_refused_total") == 0)
            heard->refused = record->counter.total;
        break;
    default:
        break;
    }
}

static void read_capture(const char *path, struct heard *heard)
{
    struct capture_reader *reader;
    const void *bytes;
    size_t length_bytes;

    assert_int_equal(capture_reader_open(&reader, path), 0);
    while (capture_read(reader, &bytes, &length_bytes) == 1) {
        struct batch batch;
        union record record;
        uint64_t unknown_count = 0;
        assert_int_equal(batch_read(&batch, bytes, length_bytes), 0);
        while (batch_next(&batch, &record, &unknown_count) == 1)
            hear(heard, &record);
    }
    capture_reader_close(&reader);
}

static unsigned count_lines(FILE *file, const char *begin)
{
    char line[2048];
    unsigned count = 0;

    rewind(file);
    while (fgets(line, sizeof line, file) != NULL)
        count += strncmp(line, begin, strlen(begin)) == 0;
    return count;
}

static void all_is_passed_on(void **state)
{
    char path[] = "/tmp/qpscope-census-XXXXXX";
    static const struct option_list none;
    atomic_bool stop = false;
    struct heard heard = {0};
    struct report report = {.to = tmpfile(), .is_json = true};

    (void)state;
    close(mkstemp(path));
    const struct metric_page_place nowhere = {.address = NULL};
    const struct census_options options = {
        .name = "psn",
        .http = &nowhere,
        .publisher = {.emitter = {.kind = EMITTER_NIC, .instance = "test", .record_path = path}},
        .ports = {.devices = &none, .interval_ns = 0},
        .is_published = true,
        .duration_ns = 300000000,
    };
    assert_int_equal(census_run(make_source(), &options, &report, &stop), 0);
    read_capture(path, &heard);
    assert_false(heard.is_wrong);
    assert_true(heard.sources >= 1);
    assert_true(heard.endpoints >= 1);
    assert_int_equal(heard.readings, READINGS);
    assert_int_equal(heard.packets, 3 * READINGS);
    assert_int_equal(heard.refused, 2);
    assert_int_equal(count_lines(report.to, "{\"row\":\"reading\""), READINGS);
    assert_int_equal(count_lines(report.to, "{\"row\":\"header\""), 1);
    assert_int_equal(count_lines(report.to, "{\"row\":\"summary\""), 1);
    fclose(report.to);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
