/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One agent's stream. Invariants: batches reach the link in the order of their sequence numbers, and a number that
 * never reaches it is told of by a LOSS record as soon as one does; a batch goes to the capture file before it goes to
 * the link; memory is fixed when the emitter is opened.
 */
#include "wire/emitter.h"

#include "wire/backlog.h"
#include "wire/capture.h"
#include "wire/clock.h"
#include "wire/clock_identity.h"
#include "wire/link.h"
#include "wire/log.h"
#include "wire/message_run.h"
#include "wire/outlet.h"
#include "wire/seal.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS                   1000000ull
#define DRAIN_INTERVAL_NS    (1u * MS)
#define FLUSH_INTERVAL_NS    (50u * MS)
#define BEAT_INTERVAL_NS     (100u * MS)
#define RECORD_INTERVAL_NS   (250u * MS)
#define PAIR_INTERVAL_NS     (1000u * MS)
#define ANNOUNCE_INTERVAL_NS (5000u * MS)
#define CLOSE_WAIT_MS        500
#define BACKLOG_BYTES        (4u * 1024u * 1024u)

enum {
#define COUNTER(name, text, help) COUNTER_##name,
#include "wire/counter.def"
#undef COUNTER
    COUNTERS_COUNT
};

static const struct counter_spec own_specs[COUNTERS_COUNT] = {
#define COUNTER(name, text, help) {text, help},
#include "wire/counter.def"
#undef COUNTER
};

/* A table and what was last told of it. */
struct reported {
    struct counter_table table;
    uint64_t *told;
};

struct emitter {
    struct link *link;
    struct clock_client *clock;
    struct capture_writer *capture;
    struct backlog *backlog;
    struct outlet *outlet; /* NULL: none */
    char *link_url;
    int64_t clock_offset_ns;
    uint64_t covered_ns; /* 0 = up to now, always */
    uint64_t own_values[COUNTERS_COUNT];
    uint64_t own_told[COUNTERS_COUNT];
    uint64_t facts[EMITTER_FACTS];
    void (*tap)(void *context, const struct record_header *record);
    void *tap_context;
    struct reported own;
    struct reported caller;
    uint64_t connections;
    uint64_t epoch;
    uint64_t drain_due_ns;
    uint64_t flush_due_ns;
    uint64_t beat_due_ns;
    uint64_t record_due_ns;
    uint64_t pair_due_ns;
    uint64_t announce_due_ns;
    struct record_hello hello;
    struct record_loss loss; /* lost > 0: not told yet */
    uint64_t last_sent_ns;
    size_t used_bytes;
    struct message_coder coder; /* of the batch's messages */
    size_t run_at;              /* where its run begins that goes on; 0 = none */
    uint32_t run_messages;
    struct batch_header header;
    uint8_t batch[BATCH_BYTES_MAX];
};

uint64_t emitter_fact(const struct emitter *emitter, enum emitter_fact fact)
{
    return counter_read(emitter->facts, fact);
}

struct counter_table emitter_counters(struct emitter *emitter)
{
    return emitter->own.table;
}

uint64_t emitter_boot_id(const struct emitter *emitter)
{
    return emitter->header.boot_id;
}

bool emitter_is_here(const struct emitter *emitter, const struct record_hello *hello)
{
    static const uint8_t unknown[sizeof hello->kernel_boot];

    return memcmp(hello->kernel_boot, unknown, sizeof unknown) != 0 &&
           memcmp(hello->kernel_boot, emitter->hello.kernel_boot, sizeof unknown) == 0;
}

uint64_t emitter_now_ns(const struct emitter *emitter)
{
    return clock_now_ns() + (uint64_t)emitter->clock_offset_ns;
}

bool emitter_is_waiting(const struct emitter *emitter)
{
    return emitter->link != NULL && backlog_count(emitter->backlog) != 0;
}

uint64_t emitter_epoch(const struct emitter *emitter)
{
    return emitter->epoch;
}

/* Hands to the link what waits for it, as far as it takes it. */
static void drain_backlog(struct emitter *emitter)
{
    const void *bytes;
    size_t length;

    while (emitter->link != NULL && backlog_front(emitter->backlog, &bytes, &length) &&
           link_send(emitter->link, bytes, length) == 0)
        backlog_pop(emitter->backlog);
}

static void note_loss(struct emitter *emitter)
{
    if (emitter->loss.lost == 0) {
        log_warning("link %s takes nothing and %u MiB wait for it: dropping what comes now", emitter->link_url,
                    BACKLOG_BYTES / 1024 / 1024);
        emitter->loss.from_ns = emitter->last_sent_ns;
    }
    emitter->loss.to_ns = emitter->header.sent_ns;
    emitter->loss.lost++;
    counter_add(emitter->own_values, COUNTER_LINK_DROPPED, 1);
}

static void begin_epoch(struct emitter *emitter)
{
    emitter->epoch++;
    emitter->announce_due_ns = 0;
}

static void pass_to_outlet(struct emitter *emitter)
{
    bool caught_up = false;

    if (emitter->outlet == NULL || !outlet_is_heard(emitter->outlet))
        return;
    unsigned refused = outlet_send(emitter->outlet, emitter->batch, emitter->used_bytes, &caught_up);
    counter_add(emitter->own_values, COUNTER_OUTLET_DROPPED, refused);
    if (caught_up)
        begin_epoch(emitter);
}

static void pass_on(struct emitter *emitter)
{
    if (emitter->capture != NULL)
        capture_write(emitter->capture, emitter->batch, emitter->used_bytes);
    pass_to_outlet(emitter);
    if (emitter->link == NULL)
        return;
    drain_backlog(emitter);
    if (backlog_put(emitter->backlog, emitter->batch, emitter->used_bytes) != 0)
        note_loss(emitter);
    drain_backlog(emitter);
}

static void end_run(struct emitter *emitter)
{
    if (emitter->run_at == 0)
        return;
    emitter->used_bytes =
        emitter->run_at +
        message_run_end(emitter->batch + emitter->run_at, emitter->used_bytes - emitter->run_at, emitter->run_messages);
    emitter->run_at = 0;
}

static void append(struct emitter *emitter, const void *record, size_t length_bytes)
{
    memcpy(emitter->batch + emitter->used_bytes, record, length_bytes);
    emitter->used_bytes += length_bytes;
    emitter->header.records_count++;
}

/* A batch that will surely be taken begins with the loss that is to be told. */
static void begin_batch(struct emitter *emitter)
{
    emitter->used_bytes = sizeof emitter->header;
    emitter->header.records_count = 0;
    emitter->coder = (struct message_coder){0};
    if (emitter->loss.lost == 0)
        return;
    drain_backlog(emitter);
    if (!backlog_has_room(emitter->backlog, BATCH_BYTES_MAX))
        return;
    append(emitter, &emitter->loss, sizeof emitter->loss);
    log_info("link %s takes messages again; %llu batches were dropped", emitter->link_url,
             (unsigned long long)emitter->loss.lost);
    emitter->loss.lost = 0;
    begin_epoch(emitter);
}

void emitter_flush(struct emitter *emitter)
{
    if (emitter->header.records_count == 0)
        return;
    end_run(emitter);
    emitter->header.sent_ns = emitter_now_ns(emitter);
    emitter->header.records_bytes = (uint32_t)(emitter->used_bytes - sizeof emitter->header);
    memcpy(emitter->batch, &emitter->header, sizeof emitter->header);
    pass_on(emitter);
    emitter->last_sent_ns = emitter->header.sent_ns;
    emitter->header.sequence++;
    begin_batch(emitter);
}

void emitter_add(struct emitter *emitter, enum record_kind kind, void *record)
{
    struct record_header *header = record;
    size_t length = record_kind_bytes((uint16_t)kind);

    header->kind = (uint16_t)kind;
    header->length_bytes = (uint16_t)length;
    end_run(emitter);
    if (emitter->used_bytes + length > sizeof emitter->batch)
        emitter_flush(emitter);
    append(emitter, record, length);
    if (emitter->tap != NULL)
        emitter->tap(emitter->tap_context, header);
}

/* Has room for one more message in the run that goes on, or in a new one. */
static void open_run(struct emitter *emitter)
{
    const size_t room = sizeof(struct record_message_run) + MESSAGE_CODE_BYTES_MAX + 8;

    if (emitter->run_at != 0 && emitter->used_bytes - emitter->run_at + room > MESSAGE_RUN_BYTES_MAX)
        end_run(emitter);
    if (emitter->used_bytes + room > sizeof emitter->batch)
        emitter_flush(emitter);
    if (emitter->run_at != 0)
        return;
    emitter->run_at = emitter->used_bytes;
    emitter->run_messages = 0;
    emitter->used_bytes += sizeof(struct record_message_run);
    emitter->header.records_count++;
}

size_t emitter_add_message(struct emitter *emitter, const struct record_message *message)
{
    open_run(emitter);
    uint8_t *at = emitter->batch + emitter->used_bytes;
    size_t length = (size_t)(message_coder_put(&emitter->coder, at, message) - at);

    emitter->used_bytes += length;
    emitter->run_messages++;
    return length;
}

static void add_counters(struct emitter *emitter, struct reported *reported, bool all)
{
    for (size_t i = 0; i < reported->table.count; i++) {
        uint64_t total = counter_read(reported->table.values, i);
        if (!all && total == reported->told[i])
            continue;
        struct record_counter record = {.at_ns = emitter_now_ns(emitter), .total = total};
        strncpy(record.name, reported->table.specs[i].name, sizeof record.name - 1);
        emitter_add(emitter, RECORD_COUNTER, &record);
        reported->told[i] = total;
    }
}

static void add_heartbeat(struct emitter *emitter, uint32_t flags)
{
    const bool vouches_for_less = emitter->covered_ns != 0 && (flags & HEARTBEAT_LAST) == 0;
    struct record_heartbeat record = {.at_ns = vouches_for_less ? emitter->covered_ns : emitter_now_ns(emitter),
                                      .flags = flags};

    emitter_add(emitter, RECORD_HEARTBEAT, &record);
}

static void add_clock_pair(struct emitter *emitter)
{
    struct record_clock_pair record = {.header.source = 0};

    clock_read_pair(&record, emitter->clock_offset_ns);
    emitter_add(emitter, RECORD_CLOCK_PAIR, &record);
}

static void add_clock_samples(struct emitter *emitter)
{
    struct record_clock_sample record = {.header.source = 0};

    if (emitter->clock == NULL)
        return;
    while (clock_client_take(emitter->clock, &record)) {
        counter_set(emitter->facts, EMITTER_CLOCK_ROUND_TRIP_NS,
                    record.returned_ns - record.sent_ns - (record.replied_ns - record.received_ns));
        emitter_add(emitter, RECORD_CLOCK_SAMPLE, &record);
    }
}

static void set_counter(struct emitter *emitter, size_t index, uint64_t total)
{
    counter_add(emitter->own_values, index, total - emitter->own_values[index]);
}

static void add_changed_counters(struct emitter *emitter)
{
    if (emitter->clock != NULL)
        set_counter(emitter, COUNTER_CLOCK_MISSED, clock_client_missed(emitter->clock));
    if (emitter->capture != NULL)
        set_counter(emitter, COUNTER_RECORD_LOST, capture_lost_batches(emitter->capture));
    add_counters(emitter, &emitter->own, false);
    add_counters(emitter, &emitter->caller, false);
}

/* Who the emitter is and all that it counts. */
static void announce(struct emitter *emitter)
{
    emitter_add(emitter, RECORD_HELLO, &emitter->hello);
    add_counters(emitter, &emitter->own, true);
    add_counters(emitter, &emitter->caller, true);
}

static void check_connections(struct emitter *emitter)
{
    struct link_counts counts;

    if (emitter->link == NULL)
        return;
    link_counts(emitter->link, &counts);
    if (counts.connections != emitter->connections)
        begin_epoch(emitter);
    emitter->connections = counts.connections;
}

static void check_outlet(struct emitter *emitter)
{
    if (emitter->outlet != NULL && outlet_accept(emitter->outlet))
        begin_epoch(emitter);
}

void emitter_cover(struct emitter *emitter, uint64_t until_ns)
{
    emitter->covered_ns = until_ns;
}

/* Whether it is time; then the next time is one interval from now. */
static bool is_due(uint64_t *due_ns, uint64_t now_ns, uint64_t interval_ns)
{
    if (now_ns < *due_ns)
        return false;
    *due_ns = now_ns + interval_ns;
    return true;
}

static void beat(struct emitter *emitter, uint64_t now_ns)
{
    check_connections(emitter);
    check_outlet(emitter);
    if (is_due(&emitter->announce_due_ns, now_ns, ANNOUNCE_INTERVAL_NS))
        announce(emitter);
    if (is_due(&emitter->pair_due_ns, now_ns, PAIR_INTERVAL_NS))
        add_clock_pair(emitter);
    add_clock_samples(emitter);
    add_changed_counters(emitter);
    add_heartbeat(emitter, 0);
    counter_set(emitter->facts, EMITTER_BATCHES, emitter->header.sequence);
    counter_set(emitter->facts, EMITTER_WAITING_BATCHES, emitter->link == NULL ? 0 : backlog_count(emitter->backlog));
}

void emitter_tick(struct emitter *emitter)
{
    uint64_t now_ns = emitter_now_ns(emitter);

    if (is_due(&emitter->beat_due_ns, now_ns, BEAT_INTERVAL_NS))
        beat(emitter, now_ns);
    if (is_due(&emitter->flush_due_ns, now_ns, FLUSH_INTERVAL_NS))
        emitter_flush(emitter);
    if (is_due(&emitter->drain_due_ns, now_ns, DRAIN_INTERVAL_NS))
        drain_backlog(emitter);
    if (emitter->capture != NULL && is_due(&emitter->record_due_ns, now_ns, RECORD_INTERVAL_NS))
        capture_flush(emitter->capture);
}

/* The first line of a small file of the kernel's or the system's; empty when there is none. */
static void read_line(const char *path, char *text, size_t capacity_bytes)
{
    FILE *file = fopen(path, "re");

    text[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(text, (int)capacity_bytes, file) != NULL)
        text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

/* The same at every start of this agent on this machine. Cloned machines share a machine id, but not a name. */
static uint64_t make_emitter_id(const struct emitter_options *options)
{
    char machine[64], host[64] = "", text[512];
    uint8_t digest[16];
    uint64_t id;

    read_line("/etc/machine-id", machine, sizeof machine);
    gethostname(host, sizeof host - 1);
    int length = snprintf(text, sizeof text, "%s\n%s\n%d\n%s", machine, host, (int)options->kind,
                          options->instance == NULL ? "" : options->instance);
    seal_digest(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1, digest);
    memcpy(&id, digest, sizeof id);
    return id == 0 ? 1 : id;
}

void emitter_fill_hello(struct record_hello *hello, const char *instance)
{
    struct clock_identity identity;

    clock_identity_read(&identity);
    hello->pid = (uint32_t)getpid();
    memcpy(hello->kernel_boot, identity.kernel_boot, sizeof hello->kernel_boot);
    gethostname(hello->host, sizeof hello->host - 1);
    strncpy(hello->version, QPSCOPE_VERSION, sizeof hello->version - 1);
    if (instance != NULL)
        strncpy(hello->instance, instance, sizeof hello->instance - 1);
}

static void fill_hello(struct emitter *emitter, const struct emitter_options *options)
{
    emitter->hello.started_ns = emitter_now_ns(emitter);
    emitter->hello.window_ns = options->window_ns;
    emitter_fill_hello(&emitter->hello, options->instance);
}

static int open_counters(struct emitter *emitter, const struct emitter_options *options)
{
    emitter->own = (struct reported){{own_specs, emitter->own_values, COUNTERS_COUNT}, emitter->own_told};
    if (options->counters == NULL || options->counters->count == 0)
        return 0;
    emitter->caller.table = *options->counters;
    emitter->caller.told = calloc(options->counters->count, sizeof *emitter->caller.told);
    return emitter->caller.told == NULL ? -ENOMEM : 0;
}

static int open_link(struct emitter *emitter, const struct emitter_options *options)
{
    const struct link_options link = {LINK_SEND, options->link_url, options->key_file, emitter->header.emitter_id,
                                      emitter->header.boot_id};

    if (options->link_url == NULL)
        return 0;
    emitter->link_url = strdup(options->link_url);
    int error = emitter->link_url == NULL ? -ENOMEM : backlog_create(&emitter->backlog, BACKLOG_BYTES);
    return error == 0 ? link_open(&emitter->link, &link) : error;
}

static int open_clock(struct emitter *emitter, const struct emitter_options *options)
{
    const struct clock_options clock = {
        .url = options->clock_url,
        .key_file = options->key_file,
        .emitter_id = emitter->header.emitter_id,
        .boot_id = emitter->header.boot_id,
        .offset_ns = options->clock_offset_ns,
    };

    return options->clock_url == NULL ? 0 : clock_client_open(&emitter->clock, &clock);
}

static int open_parts(struct emitter *emitter, const struct emitter_options *options)
{
    int error = open_counters(emitter, options);

    if (error == 0)
        error = open_link(emitter, options);
    if (error == 0)
        error = open_clock(emitter, options);
    if (error == 0 && options->record_path != NULL)
        error = capture_writer_open(&emitter->capture, options->record_path, options->record_append);
    return error;
}

static int free_parts(struct emitter *emitter, int linger_ms)
{
    int error = capture_writer_close(&emitter->capture);

    clock_client_close(&emitter->clock);
    link_close(&emitter->link, linger_ms);
    outlet_close(&emitter->outlet);
    backlog_destroy(&emitter->backlog);
    free(emitter->caller.told);
    free(emitter->link_url);
    free(emitter);
    return error;
}

int emitter_open(struct emitter **emitter, const struct emitter_options *options)
{
    struct emitter *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->clock_offset_ns = options->clock_offset_ns;
    made->tap = options->tap;
    made->tap_context = options->tap_context;
    made->header = (struct batch_header){
        .magic = BATCH_MAGIC,
        .version = BATCH_VERSION,
        .emitter_kind = (uint16_t)options->kind,
        .emitter_id = make_emitter_id(options),
        .boot_id = seal_random(),
    };
    made->loss = (struct record_loss){.header = {RECORD_LOSS, sizeof made->loss, 0}, .cause = LOSS_LINK_FULL};
    fill_hello(made, options);
    int error = open_parts(made, options);
    if (error != 0) {
        free_parts(made, 0);
        return error;
    }
    if (options->outlet != NULL)
        outlet_open(&made->outlet, options->outlet, made->header.boot_id); /* without it all else goes on */
    begin_batch(made);
    made->last_sent_ns = made->hello.started_ns;
    beat(made, made->hello.started_ns);
    *emitter = made;
    return 0;
}

/* Waits until the backlog is empty; returns what is left of the time, in milliseconds. */
static int wait_for_link(struct emitter *emitter)
{
    const struct timespec pause = {0, MS};
    uint64_t end_ns = clock_now_ns() + (uint64_t)CLOSE_WAIT_MS * MS;

    for (uint64_t now_ns = 0; (now_ns = clock_now_ns()) < end_ns; nanosleep(&pause, NULL)) {
        drain_backlog(emitter);
        if (backlog_count(emitter->backlog) == 0)
            return (int)((end_ns - now_ns) / MS);
    }
    log_warning("link %s: %zu batches could not be sent before the end", emitter->link_url,
                backlog_count(emitter->backlog));
    return 0;
}

void emitter_abandon(struct emitter **emitter)
{
    free_parts(*emitter, 0);
    *emitter = NULL;
}

int emitter_close(struct emitter **emitter)
{
    if (*emitter == NULL)
        return 0;
    add_clock_samples(*emitter);
    add_changed_counters(*emitter);
    add_heartbeat(*emitter, HEARTBEAT_LAST);
    emitter_flush(*emitter);
    int linger_ms = (*emitter)->link == NULL ? 0 : wait_for_link(*emitter);
    int error = free_parts(*emitter, linger_ms);
    *emitter = NULL;
    return error;
}
