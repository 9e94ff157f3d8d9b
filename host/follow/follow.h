/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is followed more closely for a while because somebody asked: each kind until a time or a number of hits is
 * reached, whichever comes first, counted from when all its probes are set. A new request for a kind takes the place of
 * the one before. One thread.
 */
#pragma once

#include <stdint.h>

#include "wire/record.h"

struct follow;

struct follow_options {
    /* One kind, a single bit of enum follow_what: has its probes set. 0 or -errno, logged. */
    int (*begin)(void *context, enum follow_what what, const struct record_follow *request);
    /* 1: not all of them are set yet; 0: they are; -errno: they cannot be. */
    int (*settling)(void *context, enum follow_what what);
    /* They are: they tell from now on. */
    void (*start)(void *context, enum follow_what what, const struct record_follow *request);
    void (*end)(void *context, enum follow_what what);
    /* Hits that may still be; below 1: none. */
    int64_t (*left)(void *context, enum follow_what what);
    uint64_t (*now_ns)(void *context);
    /* Tells what was followed, once it has ended or could not begin. */
    void (*publish)(void *context, const struct record_followed *record);
    void *context;
};

int follow_create(struct follow **follow, const struct follow_options *options);

/* Ends what runs; publishes nothing. */
void follow_destroy(struct follow **follow);

/* Bounds that are missing or too wide are made FOLLOW_DURATION_MAX_NS and FOLLOW_HITS_MAX. */
#define FOLLOW_DURATION_MAX_NS 60000000000u
#define FOLLOW_HITS_MAX        10000000u
void follow_request(struct follow *follow, const struct record_follow *request);

/* Call often (every 50 ms). */
void follow_tick(struct follow *follow);
