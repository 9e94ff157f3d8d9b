/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's counters as metrics; every number is read when somebody asks. */
#include "host/exposition.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/log.h"
#include "wire/metric/metric_page.h"

enum {
#define METRIC(name, text, type, unit, help) EXPOSITION_##name,
#include "host/metric.def"
#undef METRIC
};

static const struct metric_spec specs[] = {
#define METRIC(name, text, type, unit, help) METRIC_SPEC(text, type, unit, help),
#include "host/metric.def"
#undef METRIC
};

struct exposition {
    struct metric_page page;
    struct http_server *server;
    const struct counter_table *counters;
    struct emitter *emitter;
};

static void collect(void *context, struct metric_writer *writer)
{
    const struct exposition *exposition = context;
    const struct counter_table own = emitter_counters(exposition->emitter);
    const uint64_t round_trip_ns = emitter_fact(exposition->emitter, EMITTER_CLOCK_ROUND_TRIP_NS);

    metric_one(writer, &specs[EXPOSITION_BATCHES], (double)emitter_fact(exposition->emitter, EMITTER_BATCHES));
    metric_one(writer, &specs[EXPOSITION_WAITING], (double)emitter_fact(exposition->emitter, EMITTER_WAITING_BATCHES));
    if (round_trip_ns != 0)
        metric_one(writer, &specs[EXPOSITION_ROUND_TRIP], (double)round_trip_ns / 1e9);
    metric_counters(writer, "qpscope_host", &own, 1);
    metric_counters(writer, "qpscope_host", exposition->counters, 1);
}

int exposition_open(struct exposition **result, const struct metric_page_place *place,
                    const struct counter_table *counters, struct emitter *emitter, const bool *ready)
{
    if (place->address == NULL)
        return 0;
    struct exposition *exposition = calloc(1, sizeof *exposition);
    if (exposition == NULL)
        return log_error_return(-ENOMEM, "no memory for metrics");
    exposition->page = (struct metric_page){"qpscope-host", collect, exposition, ready};
    exposition->counters = counters;
    exposition->emitter = emitter;
    const struct http_route routes[] = {METRIC_PAGE_ROUTES(&exposition->page)};
    const struct http_options options = {.address = place->address,
                                         .names = place->names.values,
                                         .names_count = place->names.count,
                                         .routes = routes,
                                         .routes_count = 3};
    const int error = http_server_open(&exposition->server, &options);
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
