/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading clocks, and the four-time-stamp exchange with the correlator's clock over a link of its own.
 * All times are nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/clock_identity.h"
#include "wire/record.h"

/* CLOCK_MONOTONIC of this process (a time namespace shifts it). */
uint64_t clock_now_ns(void);

/*
 * CLOCK_MONOTONIC, CLOCK_REALTIME and CLOCK_TAI read together: the closest of several tries, bound_ns says how close.
 * `offset_ns` is added to the monotonic time (for an emitter whose own clock is not this process's).
 */
void clock_read_pair(struct record_clock_pair *pair, int64_t offset_ns);

/* What goes over the clock link: the question and its answer. */
struct clock_question {
    uint32_t magic;
    uint32_t number;
    uint64_t sent_ns;
};
struct clock_answer {
    struct clock_question question;
    uint64_t reference_boot;
    uint64_t received_ns;
    uint64_t replied_ns;
    struct clock_identity identity; /* of the reference clock */
};
#define CLOCK_MAGIC 0x4b4c4351u /* "QCLK" */

/*
 * Answers one question: 0 with the question, and replied_ns as the time of this call's end, in *answer, whose
 * reference_boot, received_ns and identity are the caller's; or -EBADMSG when the bytes are no question.
 */
int clock_answer(const void *question, size_t length_bytes, struct clock_answer *answer);

struct clock_options {
    const char *url;
    const char *key_file;                  /* NULL = none */
    uint64_t emitter_id;                   /* of this side, for the seal's nonce */
    uint64_t boot_id;                      /* the server's is the reference_boot of its answers */
    int64_t offset_ns;                     /* client: added to CLOCK_MONOTONIC for its own times; server: unused */
    const struct clock_identity *identity; /* of the CLOCK_MONOTONIC that it reads; NULL = this process's */
};

/* The answering side: a thread of its own that does nothing else, so that a question never waits for other work. */
struct clock_server;
int clock_server_open(struct clock_server **server, const struct clock_options *options);
void clock_server_close(struct clock_server **server);

/*
 * The asking side, a thread of its own as well: the answer's time is taken when the answer is there, and the caller
 * never waits. It asks every 10 ms in the first second, then every 100 ms, and once a second as soon as it has 64 good
 * samples (round trip at most twice the smallest). An answer that takes longer than 50 ms is thrown away. Where both
 * sides have one clock, nothing needs to be measured: a sample's four times are one moment.
 */
struct clock_client;
int clock_client_open(struct clock_client **client, const struct clock_options *options);

/* The next sample, oldest first; false when there is none. The header is left as it is. One thread. */
bool clock_client_take(struct clock_client *client, struct record_clock_sample *sample);

/* Questions without an answer in time, and samples that nobody took, since the start. */
uint64_t clock_client_missed(const struct clock_client *client);

void clock_client_close(struct clock_client **client);
