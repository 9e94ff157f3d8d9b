/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One agent of the model: a clock of its own, which is off and drifts, and a stream of batches in a capture file, with
 * hello, heartbeats, clock pairs and exchanges as an agent's stream has them. Written apart from wire/emitter: its time
 * is the model's. One thread.
 */
#pragma once

#include "wire/capture.h"
#include "wire/record.h"

#define AGENT_REFERENCE_NS 7000000000000ULL /* the reference clock minus the true one */

struct agent;

struct agent_options {
    enum emitter_kind kind;
    uint32_t node;
    uint64_t seed;
    int64_t offset_ns; /* of its clock, when the model begins */
    int64_t drift_ppb;
    struct capture_writer *writer; /* borrowed; several agents may share it */
    const char *instance;
};

struct agent *agent_create(const struct agent_options *options);
void agent_destroy(struct agent *agent);

/* The agent's clock at a true time; 0 stays 0. */
uint64_t agent_time_ns(const struct agent *agent, uint64_t true_ns);

/* Begins the stream. */
void agent_begin(struct agent *agent, uint64_t true_ns);

/* A record whose times are the agent's; `now_ns` is true. Fills kind and length. */
void agent_add(struct agent *agent, enum record_kind kind, void *record, uint64_t now_ns);

/* A message whose first_ns is true. */
void agent_add_message(struct agent *agent, struct record_message *message, uint64_t now_ns);

/* Call every 50 ms: what is due of heartbeats and exchanges, and a batch of what is there. */
void agent_tick(struct agent *agent, uint64_t now_ns);

/* The last heartbeat and batch. */
void agent_end(struct agent *agent, uint64_t now_ns);

uint64_t agent_records(const struct agent *agent);
