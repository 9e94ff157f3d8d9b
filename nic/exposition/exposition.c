/* SPDX-License-Identifier: BSD-2-Clause */
/* The readers' boards and counters as metrics. Ports that several readers share, a queue each, are one port here. */
#include "nic/exposition/exposition.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/exposition/board.h"
#include "wire/log.h"
#include "wire/metric/metric_page.h"

enum {
#define METRIC(name, text, type, unit, help) EXPOSITION_##name,
#include "nic/exposition/metric.def"
#undef METRIC
};

static const struct metric_spec specs[] = {
#define METRIC(name, text, type, unit, help) METRIC_SPEC(text, type, unit, help),
#include "nic/exposition/metric.def"
#undef METRIC
};

/* By enum vantage. */
static const struct metric_spec traffic_specs[BOARD_VANTAGES][BOARD_TRAFFIC] = {
#define TRAFFIC(name, text, field, unit, help)                                                                         \
    {"qpscope_nic_passed_" text, METRIC_COUNTER, unit, "Where senders and receivers are not told apart: " help},
    {
#include "wire/metric/traffic.def"
    },
#undef TRAFFIC
#define TRAFFIC(name, text, field, unit, help)                                                                         \
    {"qpscope_nic_sent_" text, METRIC_COUNTER, unit, "Sent by the port: " help},
    {
#include "wire/metric/traffic.def"
    },
#undef TRAFFIC
#define TRAFFIC(name, text, field, unit, help)                                                                         \
    {"qpscope_nic_received_" text, METRIC_COUNTER, unit, "Received by the port: " help},
    {
#include "wire/metric/traffic.def"
    },
#undef TRAFFIC
};

struct port_family {
    uint16_t number;
    uint8_t kind;
    const char *name;
    const char *help;
};

static const struct port_family port_families[] = {
#define PORT_METRIC(name, number, text, kind, help) {number, PORT_METRIC_##kind, text, help},
#include "wire/port_metric.def"
#undef PORT_METRIC
};

struct exposition {
    struct metric_page page;
    struct http_server *server;
    size_t workers_count;
    const struct worker *workers[SOURCE_QUEUES_MAX];
    struct board_port ports[SOURCE_PORTS_MAX]; /* as they were when somebody asked */
    size_t ports_count;
};

/* ---- the ports, of all readers ---- */

static struct board_port *port_named(struct exposition *exposition, const struct record_port *record)
{
    for (size_t i = 0; i < exposition->ports_count; i++)
        if (strncmp(exposition->ports[i].record.name, record->name, sizeof record->name) == 0)
            return &exposition->ports[i];
    if (exposition->ports_count == SOURCE_PORTS_MAX)
        return NULL;
    struct board_port *port = &exposition->ports[exposition->ports_count++];
    memset(port, 0, sizeof *port);
    port->record = *record;
    return port;
}

/* Traffic adds up; of a port's own counters, which one reader reads, there is one. */
static void add_port(struct board_port *port, const struct board_port *of)
{
    for (size_t i = 0; i < BOARD_VANTAGES; i++)
        for (size_t j = 0; j < BOARD_TRAFFIC; j++)
            port->traffic[i][j] += of->traffic[i][j];
    port->lost_frames += of->lost_frames;
    for (size_t i = 0; i < BOARD_METRICS; i++) {
        if (of->known[i] == 0)
            continue;
        port->known[i] = of->known[i];
        memcpy(port->counters[i], of->counters[i], sizeof port->counters[i]);
    }
}

static void read_ports(struct exposition *exposition)
{
    static struct board_port read; /* large; of the server's thread alone */

    exposition->ports_count = 0;
    for (size_t i = 0; i < exposition->workers_count; i++) {
        const struct board *board = exposition->workers[i]->board;
        for (size_t j = 0; board != NULL && j < board_ports(board); j++) {
            board_read(board, j, &read);
            struct board_port *port = port_named(exposition, &read.record);
            if (port != NULL)
                add_port(port, &read);
        }
    }
}

/* ---- families ---- */

static void label_port(struct metric_writer *writer, const struct board_port *port, const char *priority)
{
    static char name[sizeof port->record.name + 1];
    const struct metric_label labels[] = {{"device", name}, {"priority", priority}};

    memcpy(name, port->record.name, sizeof port->record.name);
    metric_labels(writer, labels, priority == NULL ? 1 : 2);
}

static void write_port_infos(const struct exposition *exposition, struct metric_writer *writer)
{
    static const uint8_t none[ADDRESS_BYTES], mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN];

    metric_begin(writer, &specs[EXPOSITION_PORT]);
    for (size_t i = 0; i < exposition->ports_count; i++) {
        const uint8_t *address = exposition->ports[i].record.address;
        char name[sizeof exposition->ports[i].record.name + 1] = "";
        memcpy(name, exposition->ports[i].record.name, sizeof name - 1);
        const struct metric_label labels[] = {{"device", name}, {"address", text}};
        bool is_four = memcmp(address, mapped, sizeof mapped) == 0;
        if (memcmp(address, none, sizeof none) == 0)
            text[0] = '\0';
        else
            inet_ntop(is_four ? AF_INET : AF_INET6, is_four ? address + sizeof mapped : address, text, sizeof text);
        metric_labels(writer, labels, 2);
        metric_integer(writer, 1);
    }
}

static bool any_traffic(const struct exposition *exposition, size_t vantage)
{
    for (size_t i = 0; i < exposition->ports_count; i++)
        for (size_t j = 0; j < BOARD_TRAFFIC; j++)
            if (exposition->ports[i].traffic[vantage][j] != 0)
                return true;
    return false;
}

/* What is sent and received is always told, also when it is 0; what passes only where there is such a port. */
static void write_traffic(const struct exposition *exposition, struct metric_writer *writer)
{
    for (size_t vantage = 0; vantage < BOARD_VANTAGES; vantage++) {
        if (vantage == VANTAGE_MIDDLE && !any_traffic(exposition, vantage))
            continue;
        for (size_t i = 0; i < BOARD_TRAFFIC; i++) {
            metric_begin(writer, &traffic_specs[vantage][i]);
            for (size_t j = 0; j < exposition->ports_count; j++) {
                label_port(writer, &exposition->ports[j], NULL);
                metric_integer(writer, exposition->ports[j].traffic[vantage][i]);
            }
        }
    }
    metric_begin(writer, &specs[EXPOSITION_LOST]);
    for (size_t j = 0; j < exposition->ports_count; j++) {
        label_port(writer, &exposition->ports[j], NULL);
        metric_integer(writer, exposition->ports[j].lost_frames);
    }
}

static void write_value(struct metric_writer *writer, const struct port_family *metric, uint64_t value)
{
    if (metric->kind == PORT_METRIC_DURATION)
        metric_real(writer, (double)value / 1e9);
    else
        metric_integer(writer, value);
}

/* By priority where the device counts so, else for the whole port: never both, so that sums are right. */
static void write_slots(struct metric_writer *writer, const struct port_family *metric, const struct board_port *port)
{
    uint64_t known = port->known[metric->number];
    bool by_priority = (known & ((1u << (BOARD_SLOTS - 1)) - 1)) != 0;

    for (unsigned slot = 0; slot < BOARD_SLOTS; slot++) {
        const char priority[] = {(char)('0' + slot), '\0'};
        if ((known >> slot & 1) == 0 || (by_priority && slot == BOARD_SLOTS - 1))
            continue;
        label_port(writer, port, by_priority ? priority : NULL);
        write_value(writer, metric, port->counters[metric->number][slot]);
    }
}

/* "pause_sent_ns" is qpscope_nic_port_pause_sent_seconds, a counter; what nobody told is left out. */
static void write_port_metric(const struct exposition *exposition, struct metric_writer *writer,
                              const struct port_family *metric)
{
    char name[96];
    struct metric_spec spec = {name, metric->kind == PORT_METRIC_STATE ? METRIC_GAUGE : METRIC_COUNTER, "",
                               metric->help};
    bool any = false;

    for (size_t i = 0; i < exposition->ports_count; i++)
        any |= exposition->ports[i].known[metric->number] != 0;
    if (!any)
        return;
    int length = (int)strlen(metric->name);
    const char *unit = strrchr(metric->name, '_');
    if (metric->kind == PORT_METRIC_DURATION || strcmp(unit, "_total") == 0)
        length = (int)(unit - metric->name);
    if (metric->kind == PORT_METRIC_DURATION)
        spec.unit = "seconds";
    snprintf(name, sizeof name, "qpscope_nic_port_%.*s%s", length, metric->name,
             metric->kind == PORT_METRIC_DURATION ? "_seconds" : "");
    metric_begin(writer, &spec);
    for (size_t i = 0; i < exposition->ports_count; i++)
        write_slots(writer, metric, &exposition->ports[i]);
}

static void write_streams(const struct exposition *exposition, struct metric_writer *writer)
{
    struct counter_table own[SOURCE_QUEUES_MAX], counters[SOURCE_QUEUES_MAX];
    uint64_t batches = 0, waiting = 0, round_trip_ns = 0;
    size_t count = exposition->workers_count;

    for (size_t i = 0; i < count; i++) {
        struct emitter *emitter = publisher_emitter(exposition->workers[i]->publisher);
        own[i] = emitter_counters(emitter);
        counters[i] = exposition->workers[i]->counters;
        batches += emitter_fact(emitter, EMITTER_BATCHES);
        waiting += emitter_fact(emitter, EMITTER_WAITING_BATCHES);
        if (emitter_fact(emitter, EMITTER_CLOCK_ROUND_TRIP_NS) > round_trip_ns)
            round_trip_ns = emitter_fact(emitter, EMITTER_CLOCK_ROUND_TRIP_NS);
    }
    metric_one(writer, &specs[EXPOSITION_READERS], (double)count);
    metric_one(writer, &specs[EXPOSITION_BATCHES], (double)batches);
    metric_one(writer, &specs[EXPOSITION_WAITING], (double)waiting);
    if (round_trip_ns != 0)
        metric_one(writer, &specs[EXPOSITION_ROUND_TRIP], (double)round_trip_ns / 1e9);
    metric_counters(writer, "qpscope_nic", own, count);
    metric_counters(writer, "qpscope_nic", counters, count);
}

static void collect(void *context, struct metric_writer *writer)
{
    struct exposition *exposition = context;

    read_ports(exposition);
    write_port_infos(exposition, writer);
    write_traffic(exposition, writer);
    for (size_t i = 0; i < sizeof port_families / sizeof port_families[0]; i++)
        write_port_metric(exposition, writer, &port_families[i]);
    write_streams(exposition, writer);
}

/* ---- opening and closing ---- */

int exposition_open(struct exposition **result, const struct metric_page_place *place,
                    const struct worker *const *workers, size_t count)
{
    if (place->address == NULL)
        return 0;
    struct exposition *exposition = calloc(1, sizeof *exposition);
    if (exposition == NULL)
        return log_error_return(-ENOMEM, "no memory for metrics");
    exposition->page = (struct metric_page){.program = "qpscope-nic", .collect = collect, .context = exposition};
    exposition->workers_count = count;
    memcpy(exposition->workers, workers, count * sizeof *workers);
    const struct http_route routes[] = {METRIC_PAGE_ROUTES(&exposition->page)};
    const struct http_options options = {.address = place->address,
                                         .names = place->names.values,
                                         .names_count = place->names.count,
                                         .routes = routes,
                                         .routes_count = 3};
    int error = http_server_open(&exposition->server, &options);
    if (error != 0) {
        free(exposition);
        return error;
    }
    *result = exposition;
    return 0;
}

void exposition_close(struct exposition **exposition)
{
    if (*exposition == NULL)
        return;
    http_server_close(&(*exposition)->server);
    free(*exposition);
    *exposition = NULL;
}
