/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The meter's results as records. Invariants: a flow's record goes out before anything that names it, and again when
 * the receiver may have missed it (the emitter's epoch); an answer to a trigger goes out in pieces between bursts, so
 * that measuring goes on.
 */
#include "nic/publisher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/batch.h"
#include "wire/link.h"
#include "wire/log.h"

#define MS                  1000000ull
#define TOTALS_INTERVAL_NS  (100u * MS)
#define CONTROL_INTERVAL_NS (10u * MS)
#define TRIGGERS_MAX        32
#define TRIGGER_DELAY_NS    (50u * MS)    /* until all frames of the interval have surely been read */
#define TRIGGER_WAIT_MAX_NS (10000u * MS) /* for an interval that ends in the future */
#define LINK_WAIT_MAX_NS    (10000u * MS) /* then nobody is there to take it, though it may be recorded */
#define WALK_RECORDS        512
#define WALK_BUDGET         4096

struct answer {
    struct record_trigger trigger;
    struct window_walk walk;
    uint64_t due_ns;
    uint64_t windows;
};

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
    uint64_t totals_due_ns;
    uint64_t control_due_ns;
    struct answer answers[TRIGGERS_MAX];
    unsigned answers_first;
    unsigned answers_count;
    bool is_walking; /* the first answer has begun */
    struct record_window windows[WALK_RECORDS];
    uint8_t message[LINK_MESSAGE_BYTES_MAX];
};

static int open_parts(struct publisher *publisher, const struct publisher_options *options)
{
    const struct link_options control = {
        .role = LINK_RECEIVE, .url = options->control_url, .key_file = options->emitter.key_file};
    int error = emitter_open(&publisher->emitter, &options->emitter);

    if (error == 0 && options->control_url != NULL)
        error = link_open(&publisher->control, &control);
    return error;
}

int publisher_open(struct publisher **publisher, const struct publisher_options *options, struct meter *meter)
{
    struct publisher *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->meter = meter;
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

void publisher_add_message(struct publisher *publisher, struct record_message *message)
{
    announce(publisher);
    emitter_add(publisher->emitter, RECORD_MESSAGE, message);
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

static void add_totals(struct publisher *publisher)
{
    announce(publisher);
    for (uint32_t number = 1; number <= flow_count(publisher->meter->flows); number++) {
        struct record_flow_total total;
        flow_total_record(publisher->meter->flows, flow_at(publisher->meter->flows, number), &total);
        uint64_t counted = total.data_frames + total.acks + total.naks + total.rnr_naks + total.cnps + total.messages +
                           total.pair + total.got_acks + total.got_cnps + total.got_rnr_naks;
        for (unsigned i = 0; i < NAK_CODES_COUNT; i++)
            counted += total.got_naks[i];
        if (counted == publisher->told[number - 1])
            continue;
        publisher->told[number - 1] = counted;
        total.at_ns = publisher->covered_ns;
        emitter_add(publisher->emitter, RECORD_FLOW_TOTAL, &total);
    }
}

static void take_trigger(struct publisher *publisher, const struct record_trigger *trigger, uint64_t now_ns)
{
    struct tallies *tallies = publisher->meter->tallies;

    if (trigger->from_ns >= trigger->to_ns) {
        tally_add(tallies, TALLY_CONTROL_REJECTED, 1);
        return;
    }
    tally_add(tallies, TALLY_TRIGGERS, 1);
    if (publisher->answers_count == TRIGGERS_MAX) {
        tally_add(tallies, TALLY_TRIGGERS_REFUSED, 1);
        return;
    }
    unsigned at = (publisher->answers_first + publisher->answers_count++) % TRIGGERS_MAX;
    publisher->answers[at] = (struct answer){.trigger = *trigger, .due_ns = trigger->to_ns + TRIGGER_DELAY_NS};
    if (trigger->to_ns > now_ns + TRIGGER_WAIT_MAX_NS)
        publisher->answers[at].due_ns = now_ns + TRIGGER_WAIT_MAX_NS;
}

static void take_control(struct publisher *publisher, uint64_t now_ns)
{
    size_t length_bytes;

    while (link_receive(publisher->control, publisher->message, sizeof publisher->message, &length_bytes) == 0) {
        struct batch batch;
        union record record;
        uint64_t unknown_count = 0;
        int result = batch_read(&batch, publisher->message, length_bytes);
        if (result == 0)
            result = 1;
        while (result == 1 && (result = batch_next(&batch, &record, &unknown_count)) == 1) {
            if (record.header.kind == RECORD_QUEUE_PAIR && publisher->told_source != NULL)
                source_tell(publisher->told_source, &record.queue_pair);
            if (record.header.kind == RECORD_TRIGGER)
                take_trigger(publisher, &record.trigger, now_ns);
        }
        if (result < 0)
            tally_add(publisher->meter->tallies, TALLY_CONTROL_REJECTED, 1);
    }
}

static void end_answer(struct publisher *publisher, const struct answer *answer, uint64_t now_ns)
{
    const struct window_ring *ring = publisher->meter->windows;
    uint64_t held_ns = window_ring_held_from(ring) * window_ring_window_ns(ring);
    struct record_trigger_end end = {
        .header.source = answer->trigger.header.source,
        .from_ns = answer->trigger.from_ns,
        .to_ns = answer->trigger.to_ns < now_ns ? answer->trigger.to_ns : now_ns,
        .windows = answer->windows,
    };

    if (held_ns > end.from_ns) {
        struct record_loss loss = {.from_ns = end.from_ns, .to_ns = held_ns, .cause = LOSS_OVERWRITTEN};
        if (loss.to_ns > end.to_ns)
            loss.to_ns = end.to_ns;
        end.from_ns = loss.to_ns;
        emitter_add(publisher->emitter, RECORD_LOSS, &loss);
    }
    emitter_add(publisher->emitter, RECORD_TRIGGER_END, &end);
    emitter_flush(publisher->emitter);
    publisher->answers_first = (publisher->answers_first + 1) % TRIGGERS_MAX;
    publisher->answers_count--;
    publisher->is_walking = false;
}

/* A piece of the first answer that waits. */
static void go_on_answering(struct publisher *publisher, uint64_t now_ns)
{
    struct answer *answer = &publisher->answers[publisher->answers_first];
    const struct window_ring *ring = publisher->meter->windows;
    bool done;

    bool is_held_up = emitter_is_waiting(publisher->emitter) && now_ns < answer->due_ns + LINK_WAIT_MAX_NS;
    if (now_ns < answer->due_ns || is_held_up)
        return;
    if (!publisher->is_walking) {
        meter_settle(publisher->meter, now_ns, 0);
        window_walk_begin(ring, &answer->walk, answer->trigger.from_ns, answer->trigger.to_ns, answer->trigger.flow);
        publisher->is_walking = true;
    }
    size_t count = window_walk_next(ring, &answer->walk, publisher->windows, WALK_RECORDS, WALK_BUDGET, &done);
    announce(publisher);
    for (size_t i = 0; i < count; i++)
        emitter_add(publisher->emitter, RECORD_WINDOW, &publisher->windows[i]);
    answer->windows += count;
    if (done)
        end_answer(publisher, answer, now_ns);
}

void publisher_tick(struct publisher *publisher, uint64_t covered_ns)
{
    uint64_t now_ns = emitter_now_ns(publisher->emitter);

    publisher->covered_ns = covered_ns == 0 ? 1 : covered_ns;
    emitter_cover(publisher->emitter, publisher->covered_ns);
    if (now_ns >= publisher->totals_due_ns) {
        publisher->totals_due_ns = now_ns + TOTALS_INTERVAL_NS;
        add_totals(publisher);
    }
    if (publisher->control != NULL && now_ns >= publisher->control_due_ns) {
        publisher->control_due_ns = now_ns + CONTROL_INTERVAL_NS;
        take_control(publisher, now_ns);
    }
    if (publisher->answers_count != 0)
        go_on_answering(publisher, now_ns);
    emitter_tick(publisher->emitter);
}

int publisher_close(struct publisher **publisher)
{
    int error = 0;

    if (*publisher == NULL)
        return 0;
    if ((*publisher)->emitter != NULL) {
        add_totals(*publisher);
        error = emitter_close(&(*publisher)->emitter);
    }
    link_close(&(*publisher)->control, 0);
    free((*publisher)->told);
    free(*publisher);
    *publisher = NULL;
    return error;
}
