/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: a queue pair counts as told on a link as the digest of what the link last took of it. A batch has the
 * hello of a host side before the queue pairs that it knows, since their devices' names mean something on its machine
 * only. What is gone before it was ever told of is not told.
 */
#include "correlator/control/teller.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/array.h"
#include "correlator/hash.h"
#include "wire/clock.h"
#include "wire/log.h"

#define TELL_INTERVAL_NS 250000000ULL
#define TELL_PAIRS       512u

struct told {
    uint64_t boot_id; /* of the host side */
    uint32_t number;
    uint64_t digest;
};
typedef ARRAY(struct told) told_list;

struct audience {
    told_list told; /* by boot, number */
    uint64_t connections;
    uint64_t looked_ns;
};

struct teller {
    struct controls *controls;
    struct audience audiences[OPTION_LIST_MAX];
    uint64_t refused;
    bool has_complained;
};

/* What is put together of one look. */
struct draft {
    told_list told; /* what is told when the link takes the batch */
    size_t stream;  /* whose hello the batch has last; SIZE_MAX = none yet */
    uint32_t records_count;
    uint32_t pairs_count;
    size_t bytes_used;
    uint8_t bytes[CONTROL_RECORDS_BYTES];
};

void teller_create(struct teller **teller, struct controls *controls)
{
    struct teller *made = array_zeroed(sizeof *made);

    made->controls = controls;
    *teller = made;
}

void teller_destroy(struct teller **teller)
{
    if (*teller == NULL)
        return;
    for (size_t i = 0; i < OPTION_LIST_MAX; i++)
        array_fini(&(*teller)->audiences[i].told);
    free(*teller);
    *teller = NULL;
}

uint64_t teller_refused(const struct teller *teller)
{
    return teller->refused;
}

static int told_order(const void *left, const void *right)
{
    const struct told *a = left, *b = right;

    if (a->boot_id != b->boot_id)
        return a->boot_id < b->boot_id ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static void append(struct draft *draft, uint16_t kind, const void *record)
{
    size_t length = record_kind_bytes(kind);
    struct record_header header = {.kind = kind, .length_bytes = (uint16_t)length};

    memcpy(draft->bytes + draft->bytes_used, record, length);
    memcpy(draft->bytes + draft->bytes_used, &header, sizeof header);
    draft->bytes_used += length;
    draft->records_count++;
}

/* Whether there was room for it. */
static bool draft_pair(struct draft *draft, const struct intake *intake, const struct queue_pair *pair)
{
    const size_t most = sizeof(struct record_hello) + sizeof(struct record_queue_pair);

    if (draft->pairs_count == TELL_PAIRS || draft->bytes_used + most > sizeof draft->bytes)
        return false;
    if (draft->stream != pair->stream)
        append(draft, RECORD_HELLO, &intake->streams.items[pair->stream].hello);
    draft->stream = pair->stream;
    append(draft, RECORD_QUEUE_PAIR, &pair->record);
    draft->pairs_count++;
    return true;
}

static void look_at(struct draft *draft, const struct audience *audience, const struct intake *intake,
                    const struct queue_pair *pair)
{
    struct told now = {.boot_id = intake->streams.items[pair->stream].boot_id,
                       .number = pair->record.queue_pair,
                       .digest = hash_mix(HASH_START, &pair->record, sizeof pair->record)};
    const struct told *before = audience->told.count == 0
                                    ? NULL
                                    : bsearch(&now, audience->told.items, audience->told.count, sizeof now, told_order);
    bool is_known = before != NULL && before->digest == now.digest;
    bool is_over = before == NULL && pair->record.destroyed_ns != 0;

    if (is_known || is_over || draft_pair(draft, intake, pair))
        *(struct told *)array_add(&draft->told) = now;
    else if (before != NULL)
        *(struct told *)array_add(&draft->told) = *before;
}

static void draft_all(struct teller *teller, const struct audience *audience, const struct analysis *analysis,
                      struct draft *draft)
{
    const struct naming *naming = &analysis->naming;
    size_t count = naming->queue_pairs.count;

    if (count > TELLER_PAIRS_MAX) {
        teller->refused = count - TELLER_PAIRS_MAX > teller->refused ? count - TELLER_PAIRS_MAX : teller->refused;
        if (!teller->has_complained)
            log_warning("more than %u queue pairs: the NIC side is not told of the others", TELLER_PAIRS_MAX);
        teller->has_complained = true;
        count = TELLER_PAIRS_MAX;
    }
    for (size_t i = 0; i < count; i++)
        look_at(draft, audience, &analysis->intake, &naming->queue_pairs.items[i]);
    array_sort(&draft->told, told_order);
}

static void look(struct teller *teller, size_t control, const struct analysis *analysis, struct draft *draft)
{
    struct audience *audience = &teller->audiences[control];
    uint64_t now_ns = clock_now_ns(), connections = controls_connections(teller->controls, control);

    if (now_ns - audience->looked_ns < TELL_INTERVAL_NS)
        return;
    audience->looked_ns = now_ns;
    if (connections != audience->connections)
        array_fini(&audience->told);
    audience->connections = connections;
    memset(draft, 0, offsetof(struct draft, bytes));
    draft->stream = SIZE_MAX;
    draft_all(teller, audience, analysis, draft);
    if (draft->pairs_count != 0 &&
        !controls_send(teller->controls, control, draft->bytes, draft->bytes_used, draft->records_count)) {
        array_fini(&draft->told);
        return;
    }
    array_fini(&audience->told);
    audience->told = draft->told;
}

void teller_look(struct teller *teller, const struct analysis *analysis)
{
    struct draft *draft = malloc(sizeof *draft);

    for (size_t i = 0; draft != NULL && i < controls_count(teller->controls); i++)
        look(teller, i, analysis, draft);
    free(draft);
}
