/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that were there before the probes, as the kernel lists them: whose process they are, with which remote
 * QPN. With whom they are connected the kernel does not say, nor who made them for what. Invariant: each is of a
 * device and QPN that no probed queue pair has, and was in the latest list.
 */
#include "host/tracker/tracker_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "host/tracker/queue_pair.h"

#define RESIDENTS_MAX 131072

struct place {
    char device[DEVICE_NAME_BYTES];
    uint32_t qpn;
};

struct resident {
    struct place place;
    struct record_queue_pair record;
    uint32_t list; /* the latest list that it was in */
    UT_hash_handle hh;
};

/* A queue pair that a probe saw, while a list is looked through. */
struct probed {
    struct place place;
    UT_hash_handle hh;
};

struct resident_table {
    struct resident *residents;
    struct probed *probed;
    uint32_t lists;
};

static void publish_resident(struct tracker *tracker, const struct resident *resident)
{
    tracker_publish(tracker, RECORD_QUEUE_PAIR, &resident->record, sizeof resident->record);
}

static struct place place_of(const char device[DEVICE_NAME_BYTES], uint32_t qpn)
{
    struct place place;
    memset(&place, 0, sizeof place);
    memcpy(place.device, device, DEVICE_NAME_BYTES);
    place.qpn = qpn;
    return place;
}

/* ---- what the probes know ---- */

static void note_probed(void *context, struct record_queue_pair *queue_pair)
{
    struct resident_table *table = context;
    struct probed *probed = calloc(1, sizeof *probed);
    if (probed == NULL)
        return;
    probed->place = place_of(queue_pair->device, queue_pair->qpn);
    HASH_ADD(hh, table->probed, place, sizeof probed->place, probed);
}

static bool is_probed(const struct resident_table *table, const struct place *place)
{
    const struct probed *probed;
    HASH_FIND(hh, table->probed, place, sizeof *place, probed);
    return probed != NULL;
}

static void forget_probed(struct resident_table *table)
{
    struct probed *probed;
    struct probed *next;
    HASH_ITER(hh, table->probed, probed, next)
    {
        HASH_DEL(table->probed, probed);
        free(probed);
    }
}

/* ---- a list ---- */

/* The device's own address, where it has only one that is not of the link: which of several is used is not known. */
static void read_address(const struct tracker *tracker, uint32_t pid, struct record_queue_pair *record)
{
    enum { INDICES = 16 };
    static const uint8_t none[ADDRESS_BYTES];
    const struct tracker_system *system = &tracker->system;
    uint8_t found[ADDRESS_BYTES] = {0};
    for (unsigned i = 0; i < INDICES; i++) {
        uint8_t gid[ADDRESS_BYTES];
        if (system->read_gid(system->context, pid, record->device, record->port, i, gid) != 0 ||
            memcmp(gid, none, sizeof none) == 0 || (gid[0] == 0xfe && gid[1] == 0x80) ||
            memcmp(gid, found, sizeof found) == 0)
            continue;
        if (memcmp(found, none, sizeof none) != 0)
            return;
        memcpy(found, gid, sizeof found);
    }
    memcpy(record->address, found, sizeof found);
}

static void describe_resident(struct tracker *tracker, const struct job_process *process,
                              const struct tracker_resident *found, struct record_queue_pair *record)
{
    record->queue_pair = queue_pair_number(tracker->queue_pairs);
    record->process = process->record.process;
    record->flags = QUEUE_PAIR_LATE;
    record->qpn = found->qpn;
    record->type = found->type;
    record->port = found->port != 0 ? found->port : 1;
    record->creator_tid = found->tid;
    record->origin_rank = -1;
    record->far_rank = -1;
    record->channel = -1;
    memcpy(record->device, found->device, sizeof record->device);
    read_address(tracker, found->pid, record);
}

static struct resident *add_resident(struct tracker *tracker, const struct tracker_resident *found,
                                     const struct place *place)
{
    struct resident_table *table = tracker->residents;
    const struct job_process *process = tracker_process_found(tracker, found->pid);
    struct resident *resident =
        process == NULL || HASH_COUNT(table->residents) >= RESIDENTS_MAX ? NULL : calloc(1, sizeof *resident);
    if (resident == NULL) {
        tracker_refuse(tracker, COUNT_QUEUE_PAIRS_REFUSED);
        return NULL;
    }
    resident->place = *place;
    describe_resident(tracker, process, found, &resident->record);
    HASH_ADD(hh, table->residents, place, sizeof resident->place, resident);
    tracker_count(tracker, COUNT_QUEUE_PAIRS_LATE);
    return resident;
}

static void see(struct tracker *tracker, const struct tracker_resident *found)
{
    struct resident_table *table = tracker->residents;
    const struct place place = place_of(found->device, found->qpn);
    struct resident *resident;
    if (is_probed(table, &place))
        return;
    HASH_FIND(hh, table->residents, &place, sizeof place, resident);
    const bool fresh = resident == NULL;
    if (fresh)
        resident = add_resident(tracker, found, &place);
    if (resident == NULL)
        return;
    resident->list = table->lists;
    if (!fresh && resident->record.state == found->state && resident->record.remote_qpn == found->remote_qpn)
        return;
    resident->record.state = found->state;
    resident->record.remote_qpn = found->remote_qpn;
    publish_resident(tracker, resident);
}

static void end_resident(struct tracker *tracker, struct resident *resident, uint64_t at_ns)
{
    resident->record.destroyed_ns = at_ns;
    publish_resident(tracker, resident);
    HASH_DEL(tracker->residents->residents, resident);
    free(resident);
}

static void end_missing(struct tracker *tracker, uint64_t at_ns)
{
    struct resident *resident;
    struct resident *next;
    HASH_ITER(hh, tracker->residents->residents, resident, next)
    {
        if (resident->list != tracker->residents->lists)
            end_resident(tracker, resident, at_ns);
    }
}

void tracker_residents(struct tracker *tracker, const struct tracker_resident *residents, size_t count, uint64_t at_ns)
{
    struct resident_table *table = tracker->residents;
    table->lists++;
    queue_pair_each(tracker->queue_pairs, note_probed, table);
    for (size_t i = 0; i < count; i++)
        see(tracker, &residents[i]);
    forget_probed(table);
    end_missing(tracker, at_ns);
}

/* ---- the subject ---- */

static int create(struct tracker *tracker)
{
    tracker->residents = calloc(1, sizeof *tracker->residents);
    return tracker->residents == NULL ? -ENOMEM : 0;
}

static void destroy(struct tracker *tracker)
{
    struct resident *resident;
    struct resident *next;
    if (tracker->residents == NULL)
        return;
    HASH_ITER(hh, tracker->residents->residents, resident, next)
    {
        HASH_DEL(tracker->residents->residents, resident);
        free(resident);
    }
    free(tracker->residents);
    tracker->residents = NULL;
}

static void end_process(struct tracker *tracker, struct job_process *process, uint64_t at_ns)
{
    struct resident *resident;
    struct resident *next;
    HASH_ITER(hh, tracker->residents->residents, resident, next)
    {
        if (resident->record.process == process->record.process)
            end_resident(tracker, resident, at_ns);
    }
}

static void describe(struct tracker *tracker)
{
    for (const struct resident *resident = tracker->residents->residents; resident != NULL;
         resident = resident->hh.next)
        publish_resident(tracker, resident);
}

static size_t size(const struct tracker *tracker)
{
    return HASH_COUNT(tracker->residents->residents);
}

const struct tracker_subject tracker_subject_resident = {
    .create = create,
    .destroy = destroy,
    .end_process = end_process,
    .describe = describe,
    .size = size,
};
