/* SPDX-License-Identifier: BSD-2-Clause */
/* Made worlds. Invariant: an emitter stays where it is, so that tests may keep pointers to it. */
#include "tests/unit/correlator/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define EXCHANGES   5
#define EXCHANGE_NS 30000
#define WINDOW_NS   8000

struct world *world_create(void)
{
    struct world *world = calloc(1, sizeof *world);

    assert(world != NULL);
    return world;
}

struct world *world_create_pair(int64_t host_offset_ns, int64_t nic_offset_ns)
{
    struct world *world = world_create();

    world->nic = world_add(world, EMITTER_NIC, 1, 1, nic_offset_ns, WORLD_SECOND);
    world->host = world_add(world, EMITTER_HOST, 1, 1, host_offset_ns, WORLD_SECOND);
    return world;
}

struct feed *world_add(struct world *world, uint16_t kind, uint64_t emitter, uint64_t boot, int64_t offset_ns,
                       uint64_t started_ns)
{
    struct feed *feed = calloc(1, sizeof *feed);

    assert(feed != NULL && world->count < WORLD_EMITTERS_MAX);
    world->emitters[world->count++] = feed;
    feed_init(feed, kind, emitter, boot, offset_ns);
    feed_hello(feed, started_ns, kind == EMITTER_NIC ? WINDOW_NS : 0);
    for (unsigned i = 1; i <= EXCHANGES; i++)
        feed_exchange(feed, started_ns + i * WORLD_SECOND, EXCHANGE_NS, EXCHANGE_NS);
    return feed;
}

void world_name(struct world *world)
{
    intake_init(&world->intake, ANALYSIS_MEMORY_BYTES);
    for (size_t i = 0; i < world->count; i++) {
        struct feed *feed = world->emitters[i];
        feed_send(feed, WORLD_END);
        for (size_t j = 0; j < feed->count; j++)
            intake_add(&world->intake, feed->batches[j].bytes, feed->batches[j].length_bytes);
    }
    timeline_build(&world->timeline, &world->intake);
    naming_build(&world->naming, &world->intake, &world->timeline);
}

void world_destroy(struct world *world)
{
    naming_fini(&world->naming);
    timeline_fini(&world->timeline);
    intake_fini(&world->intake);
    for (size_t i = 0; i < world->count; i++) {
        feed_fini(world->emitters[i]);
        free(world->emitters[i]);
    }
    free(world);
}

void world_address(uint8_t *bytes, uint8_t last)
{
    memset(bytes, 0, ADDRESS_BYTES);
    bytes[10] = bytes[11] = 0xff;
    bytes[12] = 10;
    bytes[15] = last;
}

static void add_feed(struct analysis *analysis, const struct feed *feed)
{
    for (size_t i = 0; i < feed->count; i++)
        analysis_add_batch(analysis, feed->batches[i].bytes, feed->batches[i].length_bytes);
}

struct analysis *world_analysis(const struct made_job *job)
{
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);

    add_feed(analysis, &job->nic);
    add_feed(analysis, &job->host);
    analysis_run(analysis);
    return analysis;
}
