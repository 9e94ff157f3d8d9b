/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The meter's results as records. Invariants: a flow's record goes out before anything that names it, and again when
 * the receiver may have missed it (the emitter's epoch); what a trigger asks for goes out in pieces between bursts
 * (fetch.h).
 */
#include "nic/publisher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/flow/merger.h"
#include "nic/window/fetch.h"
#include "wire/batch.h"
#include "wire/link.h"
#include "wire/log.h"

#define MS                  1000000ull
#define TOTALS_INTERVAL_NS  (100u * MS)
#define TOTAL_PACE_NS       (MS / 4) /* so that the totals of many flows take no more than 0.8 MB/s */
#define TOTALS_A_TICK       16
#define CONTROL_INTERVAL_NS (10u * MS)

struct publisher {
    struct emitter *emitter;
    struct link *control;
    struct meter *meter;
    struct record_traffic_source source; /* kind 0: not known yet */
    struct source *told_source;          /* that wants to hear of queue pairs */
    uint64_t epoch;
    uint64_t covered_ns; /* everything of frames up to here has been added */
    uint32_t announced;  /* flows 1 .. announced have been introduced */
    uint64_t *told;      /* by flow: frames and messages counted when its totals were last sent */
    uint32_t told_count;
    uint32_t totalled; /* flows 1 .. totalled have been looked at in this round */
    uint64_t totals_due_ns;
    uint64_t control_due_ns;
    struct fetch *fetch;
    struct merger *merger;
    const atomic_uint_fast64_t *message_rate; /* NULL: it stays */
    uint8_t message[LINK_MESSAGE_BYTES_MAX];
};

static int open_parts(struct publisher *publisher, const struct publisher_options *options)
{
    const struct link_options control = {
        .role = LINK_RECEIVE, .url = options->control_url, .key_file = options->emitter.key_file};
    int error = emitter_open(&publisher->emitter, &options->emitter);

    if (error == 0 && options->control_url != NULL)
        error = link_open(&publisher->control, &control);
    if (error == 0)
        error = merger_create(&publisher->merger, flow_capacity(publisher->meter->flows),
                              options->message_bytes_a_second, publisher->meter->tallies);
    if (error == 0)
        error = fetch_create(&publisher->fetch, publisher->meter, publisher->emitter);
    return error;
}

int publisher_open(struct publisher **publisher, const struct publisher_options *options, struct meter *meter)
{
    struct publisher *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->meter = meter;
    made->message_rate = options->message_rate;
    made->epoch = UINT64_MAX; /* nothing has been announced */
    made->told_count = flow_capacity(meter->flows);
    made->told = calloc(made->told_count, sizeof *made->told);
    int error = made->told == NULL ? -ENOMEM : open_parts(made, options);
    if (error != 0) {
        publisher_close(&made);
        return error;
    }
    *publisher = made;
    return 0;
}

struct emitter *publisher_emitter(const struct publisher *publisher)
{
    return publisher->emitter;
}

uint64_t publisher_now_ns(const struct publisher *publisher)
{
    return emitter_now_ns(publisher->emitter);
}

static void announce(struct publisher *publisher)
{
    uint64_t epoch = emitter_epoch(publisher->emitter);

    if (epoch != publisher->epoch) {
        if (publisher->source.kind != 0)
            emitter_add(publisher->emitter, RECORD_TRAFFIC_SOURCE, &publisher->source);
        for (size_t i = 0; i < publisher->meter->ports_count; i++)
            emitter_add(publisher->emitter, RECORD_PORT, &publisher->meter->ports[i]);
        publisher->announced = 0;
        publisher->epoch = epoch;
    }
    while (publisher->announced < flow_count(publisher->meter->flows)) {
        struct record_flow record;
        flow_record(flow_at(publisher->meter->flows, ++publisher->announced), &record);
        emitter_add(publisher->emitter, RECORD_FLOW, &record);
    }
}

void publisher_set_source(struct publisher *publisher, const struct record_traffic_source *source)
{
    publisher->source = *source;
    if (publisher->epoch == emitter_epoch(publisher->emitter))
        emitter_add(publisher->emitter, RECORD_TRAFFIC_SOURCE, &publisher->source);
    announce(publisher);
}

void publisher_tell(struct publisher *publisher, struct source *source)
{
    publisher->told_source = source;
}

uint64_t publisher_epoch(const struct publisher *publisher)
{
    return emitter_epoch(publisher->emitter);
}

void publisher_add(struct publisher *publisher, enum record_kind kind, void *record)
{
    announce(publisher);
    emitter_add(publisher->emitter, kind, record);
}

static size_t send_message(void *context, const struct record_message *message)
{
    struct publisher *publisher = context;

    return emitter_add_message(publisher->emitter, message);
}

void publisher_add_message(struct publisher *publisher, struct record_message *message)
{
    announce(publisher);
    merger_add(publisher->merger, message, publisher->covered_ns, send_message, publisher);
}

void publisher_add_window(struct publisher *publisher, struct record_window *window)
{
    announce(publisher);
    emitter_add(publisher->emitter, RECORD_WINDOW, window);
}

void publisher_add_loss(struct publisher *publisher, const struct source_loss *loss)
{
    struct record_loss record = {
        .header.source = loss->port,
        .from_ns = loss->from_ns,
        .to_ns = loss->to_ns,
        .lost = loss->frames,
        .cause = LOSS_PORT_DROP,
    };

    announce(publisher);
    emitter_add(publisher->emitter, RECORD_LOSS, &record);
}

static bool has_changed(struct publisher *publisher, const struct record_flow_total *total)
{
    uint64_t counted = total->data_frames + total->acks + total->naks + total->rnr_naks + total->cnps +
                       total->messages + total->pair + total->got_acks + total->got_cnps + total->got_rnr_naks;
    uint64_t *told = &publisher->told[total->header.source - 1];

    for (unsigned i = 0; i < NAK_CODES_COUNT; i++)
        counted += total->got_naks[i];
    bool has_changed = counted != *told;
    *told = counted;
    return has_changed;
}

/* Totals of some of the flows from where it ended the last time. */
static void add_totals(struct publisher *publisher, uint32_t count)
{
    announce(publisher);
    for (; count > 0 && publisher->totalled < flow_count(publisher->meter->flows); count--) {
        const struct flow *flow = flow_at(publisher->meter->flows, ++publisher->totalled);
        struct record_flow_total total;
        flow_total_record(publisher->meter->flows, flow, &total);
        if (!has_changed(publisher, &total))
            continue;
        total.at_ns = publisher->covered_ns;
        emitter_add(publisher->emitter, RECORD_FLOW_TOTAL, &total);
        publisher->totals_due_ns += TOTAL_PACE_NS;
    }
}

static void go_on_with_totals(struct publisher *publisher, uint64_t now_ns)
{
    if (publisher->totalled < flow_count(publisher->meter->flows))
        add_totals(publisher, TOTALS_A_TICK);
    if (now_ns < publisher->totals_due_ns)
        return;
    publisher->totalled = 0;
    publisher->totals_due_ns = now_ns + TOTALS_INTERVAL_NS;
}

static bool is_asked(const struct publisher *publisher, const struct record_trigger *trigger)
{
    return trigger->boot_id == 0 || trigger->boot_id == emitter_boot_id(publisher->emitter);
}

static void tell(struct publisher *publisher, const struct record_queue_pair *pair, bool is_here)
{
    meter_tell(publisher->meter, pair);
    if (publisher->told_source != NULL)
        source_tell(publisher->told_source, pair, is_here);
}

/* What is told of queue pairs comes behind the hello of the host side that knows them. */
static int take_batch(struct publisher *publisher, struct batch *batch, uint64_t now_ns)
{
    union record record;
    uint64_t unknown_count = 0;
    bool is_here = false;
    int result;

    while ((result = batch_next(batch, &record, &unknown_count)) == 1) {
        if (record.header.kind == RECORD_HELLO)
            is_here = emitter_is_here(publisher->emitter, &record.hello);
        if (record.header.kind == RECORD_QUEUE_PAIR)
            tell(publisher, &record.queue_pair, is_here);
        if (record.header.kind == RECORD_TRIGGER && is_asked(publisher, &record.trigger))
            fetch_ask(publisher->fetch, &record.trigger, now_ns);
    }
    return result;
}

static void take_control(struct publisher *publisher, uint64_t now_ns)
{
    size_t length_bytes;

    while (link_receive(publisher->control, publisher->message, sizeof publisher->message, &length_bytes) == 0) {
        struct batch batch;
        int result = batch_read(&batch, publisher->message, length_bytes);
        if (result == 0)
            result = take_batch(publisher, &batch, now_ns);
        if (result < 0)
            tally_add(publisher->meter->tallies, TALLY_CONTROL_REJECTED, 1);
    }
}

static void go_on_fetching(struct publisher *publisher, uint64_t now_ns, bool is_idle)
{
    if (!fetch_is_waiting(publisher->fetch))
        return;
    announce(publisher);
    fetch_go_on(publisher->fetch, now_ns, is_idle);
}

void publisher_idle(struct publisher *publisher)
{
    go_on_fetching(publisher, emitter_now_ns(publisher->emitter), true);
}

/* Messages that wait to be merged have not been added yet, nor has what may follow them. */
static void cover(struct publisher *publisher)
{
    uint64_t covered_ns = publisher->covered_ns, since_ns;

    if (publisher->message_rate != NULL)
        merger_set_rate(publisher->merger, atomic_load_explicit(publisher->message_rate, memory_order_relaxed));
    merger_go_on(publisher->merger, covered_ns, false, send_message, publisher);
    if (merger_waits_since(publisher->merger, &since_ns) && since_ns < covered_ns)
        covered_ns = since_ns;
    emitter_cover(publisher->emitter, covered_ns);
}

void publisher_tick(struct publisher *publisher, uint64_t covered_ns)
{
    uint64_t now_ns = emitter_now_ns(publisher->emitter);

    publisher->covered_ns = covered_ns == 0 ? 1 : covered_ns;
    cover(publisher);
    go_on_with_totals(publisher, now_ns);
    if (publisher->control != NULL && now_ns >= publisher->control_due_ns) {
        publisher->control_due_ns = now_ns + CONTROL_INTERVAL_NS;
        take_control(publisher, now_ns);
    }
    go_on_fetching(publisher, now_ns, false);
    emitter_tick(publisher->emitter);
}

int publisher_close(struct publisher **publisher)
{
    int error = 0;

    if (*publisher == NULL)
        return 0;
    if ((*publisher)->emitter != NULL) {
        if ((*publisher)->merger != NULL)
            merger_go_on((*publisher)->merger, (*publisher)->covered_ns, true, send_message, *publisher);
        (*publisher)->totalled = 0;
        add_totals(*publisher, UINT32_MAX);
        error = emitter_close(&(*publisher)->emitter);
    }
    merger_destroy(&(*publisher)->merger);
    fetch_destroy(&(*publisher)->fetch);
    link_close(&(*publisher)->control, 0);
    free((*publisher)->told);
    free(*publisher);
    *publisher = NULL;
    return error;
}
