/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A made world for tests of the correlator's parts: emitters, what they told, and what naming makes of it.
 *
 *     world_create -> records (feed_add) -> world_name -> world_destroy
 *
 * Tests of the whole analysis make a job instead (made_job.h); world_analysis runs it.
 */
#pragma once

#include "correlator/analysis.h"
#include "tests/unit/correlator/made_job.h"

#define WORLD_EMITTERS_MAX 6
#define WORLD_SECOND       1000000000ULL
#define WORLD_END          (60 * WORLD_SECOND) /* when everything is sent */

struct world {
    struct feed *emitters[WORLD_EMITTERS_MAX];
    size_t count;
    struct feed *host; /* with world_create_pair */
    struct feed *nic;
    uint32_t queue_pairs; /* numbers that a test has given out */
    uint32_t flows;
    struct intake intake;
    struct timeline timeline;
    struct naming naming;
};

/* Heap; empty. To be given to world_destroy. */
struct world *world_create(void);

/* With a host side and a NIC side of one machine, both there from second 1 on, each with a clock of its own. */
struct world *world_create_pair(int64_t host_offset_ns, int64_t nic_offset_ns);

/* An emitter that says hello and then exchanges time stamps once a second, five times, in 30 us each way. */
struct feed *world_add(struct world *world, uint16_t kind, uint64_t emitter, uint64_t boot, int64_t offset_ns,
                       uint64_t started_ns);

/* Sends what was told, takes it in, maps the clocks, and names. Once. */
void world_name(struct world *world);
void world_destroy(struct world *world);

/* 10.0.0.last */
void world_address(uint8_t *bytes, uint8_t last);

/* What the correlator makes of a job; to be given to analysis_destroy. */
struct analysis *world_analysis(const struct made_job *job);
