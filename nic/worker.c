/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop of a reader. Invariant: what needs no doing at every burst is done every 100 ms, between two bursts. */
#include "nic/worker.h"

#include "nic/port/port_counter.h"

#define HOUSEKEEPING_NS 100000000u
#define SETTLED_FLOWS   16u
#define STALE_NS        1000000000u /* after this a message whose last frame was seen waits no longer for the rest */

int worker_open(struct worker *worker, struct source *source, const struct meter_options *options)
{
    worker->source = source;
    worker->counters = tally_table(&worker->tallies);
    int error = meter_init(&worker->meter, options, &worker->tallies);

    if (error == 0)
        meter_set_ports(&worker->meter, source);
    return error;
}

int worker_publish(struct worker *worker, const struct publisher_options *options, bool is_watched)
{
    struct publisher_options own = *options;

    own.emitter.counters = &worker->counters;
    int error = is_watched ? board_create(&worker->board, flow_capacity(worker->meter.flows)) : 0;
    if (worker->board != NULL) {
        own.emitter.tap = board_take;
        own.emitter.tap_context = worker->board;
    }
    if (error == 0)
        error = publisher_open(&worker->publisher, &own, &worker->meter);
    worker->counting.source = worker->source;
    worker->counting.publisher = worker->publisher;
    worker->counting.fallback_grain_ns = own.emitter.window_ns;
    if (error == 0)
        counting_pass(&worker->counting);
    return error;
}

void worker_take_messages(struct worker *worker, worker_message visit, void *context)
{
    struct record_message message;

    while (message_take(worker->meter.messages, &message)) {
        if (visit != NULL)
            visit(context, flow_at(worker->meter.flows, message.header.source), &message);
        if (worker->watch != NULL)
            watch_message(worker->watch, &message);
        if (worker->publisher != NULL)
            publisher_add_message(worker->publisher, &message);
    }
}

/* A few flows at each burst, so that none waits for all of them. */
static void settle_some(struct worker *worker)
{
    if (worker->settled != 0)
        worker->settled = meter_settle_some(&worker->meter, worker->settled, SETTLED_FLOWS, worker->settled_ns,
                                            worker->settled_ns - (STALE_NS - HOUSEKEEPING_NS));
}

/* Says which intervals are kept now, so that whoever asks later knows. */
static void watch_some(struct worker *worker)
{
    struct record_pin pin;

    watch_go_on(worker->watch, source_covered_ns(worker->source));
    while (watch_take(worker->watch, &pin))
        publisher_add(worker->publisher, RECORD_PIN, &pin);
}

static void keep_house(struct worker *worker, uint64_t *due_ns)
{
    uint64_t now_ns = publisher_now_ns(worker->publisher);
    struct source_loss loss;

    if (now_ns < *due_ns)
        return;
    *due_ns = now_ns + HOUSEKEEPING_NS;
    if (worker->settled == 0) {
        worker->settled = 1;
        worker->settled_ns = now_ns - HOUSEKEEPING_NS;
    }
    tiers_measure(&worker->meter.tiers, now_ns);
    while (source_take_loss(worker->source, &loss)) {
        tally_add(&worker->tallies, TALLY_FRAMES_PORT_DROPPED, loss.frames);
        publisher_add_loss(worker->publisher, &loss);
    }
    counting_pass(&worker->counting);
}

int worker_run(struct worker *worker, const atomic_bool *stop)
{
    struct source_frame frames[SOURCE_BURST_FRAMES];
    uint64_t due_ns = 0;
    int received = 0;

    int error = watch_create(&worker->watch, &worker->meter);
    if (error != 0)
        return error;
    meter_prepare(&worker->meter);
    while (!atomic_load_explicit(stop, memory_order_relaxed) &&
           (received = source_receive(worker->source, frames)) >= 0) {
        meter_frames(&worker->meter, frames, (size_t)received);
        worker_take_messages(worker, NULL, NULL);
        keep_house(worker, &due_ns);
        settle_some(worker);
        watch_some(worker);
        publisher_tick(worker->publisher, source_covered_ns(worker->source));
        if (received == 0)
            publisher_idle(worker->publisher);
        source_rest(worker->source, (size_t)received);
    }
    meter_settle(&worker->meter, UINT64_MAX, UINT64_MAX);
    worker_take_messages(worker, NULL, NULL);
    return received < 0 ? received : 0;
}

int worker_close(struct worker *worker)
{
    watch_destroy(&worker->watch);
    port_counters_close(&worker->counting.port_counters);
    source_close(&worker->source);
    int error = publisher_close(&worker->publisher);
    board_destroy(&worker->board);
    meter_fini(&worker->meter);
    return error;
}
