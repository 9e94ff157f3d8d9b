/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: what was read is on its way, or printed, before the next reading. */
#include "nic/counting/census.h"

#include <errno.h>
#include <stdio.h>

#include "nic/exposition/exposition.h"
#include "wire/clock.h"
#include "wire/log.h"

/* There are no frames: the least that a meter can be. */
static const struct meter_options no_meter = {
    .window_ns = WINDOW_NS_MIN, .flows_max = 16, .messages_max = 64, .memory_bytes = 4u << 20};

static int open_all(struct worker *worker, struct source *source, const struct census_options *options,
                    struct report *report)
{
    struct publisher_options publisher = options->publisher;
    int error = worker_open(worker, source, &no_meter);

    worker->counting.source = worker->source;
    worker->counting.report = report;
    worker->counting.tallies = &worker->tallies;
    if (error == 0 && publisher.emitter.instance == NULL)
        publisher.emitter.instance = worker->meter.ports[0].name;
    publisher.emitter.window_ns = 0;
    if (error == 0 && report != NULL)
        report_begin(report, options->name);
    if (error == 0 && options->is_published)
        error = worker_publish(worker, &publisher, options->http->address != NULL);
    if (error == 0 && options->is_published)
        publisher_tell(worker->publisher, source);
    return error != 0 ? error : port_watch_start(worker, &options->ports, true);
}

static int pass_all(struct worker *worker, const struct census_options *options, struct report *report,
                    const atomic_bool *stop)
{
    uint64_t began_ns = clock_now_ns();

    log_info("ready: counting on %zu port%s", worker->meter.ports_count, worker->meter.ports_count == 1 ? "" : "s");
    while (!atomic_load_explicit(stop, memory_order_relaxed) &&
           (options->duration_ns == 0 || clock_now_ns() < began_ns + options->duration_ns)) {
        counting_pass(&worker->counting);
        if (worker->publisher != NULL)
            publisher_tick(worker->publisher, source_covered_ns(worker->source));
        if (report != NULL && fflush(report->to) != 0)
            return -EIO;
        source_rest(worker->source, 0);
    }
    counting_pass(&worker->counting);
    if (report != NULL)
        report_end(report, &worker->counters, true);
    return 0;
}

int census_run(struct source *source, const struct census_options *options, struct report *report,
               const atomic_bool *stop)
{
    static struct worker worker;
    const struct worker *const workers[] = {&worker};
    struct exposition *exposition = NULL;
    int error = open_all(&worker, source, options, report);

    if (error == 0)
        error = exposition_open(&exposition, options->http, workers, 1);
    if (error == 0)
        error = pass_all(&worker, options, report, stop);
    exposition_close(&exposition);
    int close_error = worker_close(&worker);
    return error != 0 ? error : close_error;
}
