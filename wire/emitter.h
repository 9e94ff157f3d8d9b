/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One running agent's stream: packs records into batches, numbers them, sends them on a link and/or writes them to a
 * capture file, and adds what every stream must have: hello, heartbeats, clock pairs and samples, changed counters, and
 * a LOSS record for the batches that the link did not take. It never waits for the link. One thread.
 *
 * Batches that the link does not take wait in a backlog of 4 MiB and go in order as soon as it does, so a receiver that
 * starts later misses nothing. When the backlog is full the newest batches are dropped (the oldest say what the later
 * ones refer to), counted, and reported by one LOSS_LINK_FULL record in the first batch that is taken again. The
 * capture file has the same batches, also the dropped ones: there the sequence numbers have no gap. Who comes to the
 * outlet gets the batches from then on, and begins an epoch.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/counter.h"
#include "wire/record.h"

struct emitter;

struct emitter_options {
    enum emitter_kind kind;
    const char *instance;                 /* what it watches, for people; part of the stable emitter id */
    const char *link_url;                 /* NULL = no link */
    const char *clock_url;                /* NULL = no clock exchanges */
    const char *key_file;                 /* NULL = none */
    const char *record_path;              /* NULL = no capture file */
    bool record_append;                   /* go on behind what the file holds; else it is emptied first */
    const char *outlet;                   /* the program's name at an outlet (outlet.h); NULL = none */
    uint32_t window_ns;                   /* for hello */
    int64_t clock_offset_ns;              /* emitter's own clock minus this process's CLOCK_MONOTONIC */
    const struct counter_table *counters; /* sent when they changed; NULL = none */
    void (*tap)(void *context,
                const struct record_header *record); /* sees each record that is added, messages but; NULL = nobody */
    void *tap_context;
};

/*
 * The options that every program with a stream has: rows of its option_spec table (wire/option.h), which fill the
 * struct emitter_options that is `member` of its `struct settings`.
 */
#define EMITTER_OPTIONS(settings, member)                                                                              \
    EMITTER_OPTION("link", 'l', settings, member.link_url, "URL", "send records to the correlator's intake"),          \
        EMITTER_OPTION("clock", 'c', settings, member.clock_url, "URL", "exchange clock samples with the correlator"), \
        EMITTER_OPTION("key-file", 'k', settings, member.key_file, "FILE", "seal the links with this key"),            \
        EMITTER_OPTION("record", 'r', settings, member.record_path, "FILE",                                            \
                       "write the records to a capture file as well")
#define EMITTER_OPTION(long_name, letter, settings, member, word, text)                                                \
    {                                                                                                                  \
        .name = (long_name), .short_name = (letter), .kind = OPTION_TEXT, .offset = offsetof(struct settings, member), \
        .argument = (word), .help = (text)                                                                             \
    }

int emitter_open(struct emitter **emitter, const struct emitter_options *options);

enum emitter_fact {                              /* what the stream tells of itself, to who watches the program */
                    EMITTER_BATCHES,             /* made so far */
                    EMITTER_WAITING_BATCHES,     /* at present, since the link does not take them */
                    EMITTER_CLOCK_ROUND_TRIP_NS, /* of the last exchange; 0 = none yet */
                    EMITTER_FACTS,
};
/* A fact as of the last heartbeat, and the emitter's own counters (wire/counter.def). Any thread. */
uint64_t emitter_fact(const struct emitter *emitter, enum emitter_fact fact);
struct counter_table emitter_counters(struct emitter *emitter);

/* Who this process is, and where it runs: a zeroed hello, but for its times. */
void emitter_fill_hello(struct record_hello *hello, const char *instance);

/* This start of it, as its batches say. */
uint64_t emitter_boot_id(const struct emitter *emitter);

/* Whether a hello of another emitter came from this machine, since it was last started. */
bool emitter_is_here(const struct emitter *emitter, const struct record_hello *hello);

/* The emitter's own clock now. */
uint64_t emitter_now_ns(const struct emitter *emitter);

/*
 * Copies one record into the batch being filled; sends it when it is full. The caller fills everything but
 * header.kind and header.length_bytes.
 */
void emitter_add(struct emitter *emitter, enum record_kind kind, void *record);

/*
 * The same for a message, which goes into the batch as one of a run (message_run.h). Returns how many bytes it took.
 */
size_t emitter_add_message(struct emitter *emitter, const struct record_message *message);

/* Sends what is there: call when it should leave now (it does so itself every 50 ms from emitter_tick). */
void emitter_flush(struct emitter *emitter);

/* Whether batches wait for the link to take them: what can come later should. */
bool emitter_is_waiting(const struct emitter *emitter);

/*
 * Rises when the receiver may lack earlier records: it has just connected (and may be a new process), or batches were
 * dropped. Then describe again everything that later records refer to; the emitter itself sends hello and all counters
 * again.
 */
uint64_t emitter_epoch(const struct emitter *emitter);

/*
 * Every record of an event up to this time (emitter's own clock) has been added: heartbeats say so much, and no more.
 * An emitter that never calls it vouches for everything up to the heartbeat's own time.
 */
void emitter_cover(struct emitter *emitter, uint64_t until_ns);

/*
 * Call often (at least every 50 ms): heartbeat and counters every 100 ms, clock pair every second, the samples
 * of the clock exchange (clock.h) as they come, flush.
 */
void emitter_tick(struct emitter *emitter);

/* Sends the last heartbeat, waits up to 500 ms for the link, closes. Returns the first error of the capture file. */
int emitter_close(struct emitter **emitter);

/* Closes without waiting for the link, and says nothing of what waits: for who has waited for it, and says so. */
void emitter_abandon(struct emitter **emitter);
