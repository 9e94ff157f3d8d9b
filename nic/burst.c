/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A budget of records that fills with time (a leaky bucket, by the messages' own times), and a table of bursts held
 * back, one for each flow and role, directly mapped. Invariant: messages of one flow and role go out in their order;
 * none is lost, whatever the rate.
 */
#include "nic/burst.h"

#include <errno.h>
#include <stdlib.h>

#define SECOND_NS    1000000000u
#define CREDIT_NS    100000000u /* so long the rate may be exceeded when it was not before */
#define DEBT_NS      SECOND_NS
#define BURSTS_COUNT 4096u
#define ROLES        4u
#define PAYLOAD_MAX  (UINT32_MAX / 2)
#define KEPT_FLAGS   (MESSAGE_INCOMPLETE | MESSAGE_RETRANSMITTED)

struct burst {
    struct record_message record; /* as the first message was, while there is one */
    uint32_t messages;            /* 0: nothing is held back */
};

struct bursts {
    struct tallies *tallies;
    uint64_t record_ns; /* what one record costs */
    uint64_t paid_ns;   /* up to when the budget is spent */
    uint64_t held_from_ns;
    uint32_t held;   /* bursts */
    uint32_t cursor; /* of bursts_take */
    struct burst burst[BURSTS_COUNT];
};

int bursts_create(struct bursts **bursts, uint32_t rate, struct tallies *tallies)
{
    struct bursts *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->tallies = tallies;
    made->record_ns = rate == 0 ? 0 : SECOND_NS / rate;
    made->held_from_ns = UINT64_MAX;
    *bursts = made;
    return 0;
}

void bursts_destroy(struct bursts **bursts)
{
    free(*bursts);
    *bursts = NULL;
}

size_t bursts_bytes(void)
{
    return sizeof(struct bursts);
}

static uint64_t end_of(const struct record_message *record)
{
    return record->first_ns + record->duration_ns;
}

static struct burst *find(struct bursts *bursts, const struct record_message *message)
{
    uint32_t role = message->role == ROLE_DATA     ? 0
                    : message->role == ROLE_CREDIT ? 1
                    : message->role == ROLE_SIZE   ? 2
                                                   : 3;

    return &bursts->burst[(message->header.source * ROLES + role) % BURSTS_COUNT];
}

static bool may_join(const struct burst *burst, const struct record_message *message)
{
    return burst->record.header.source == message->header.source && burst->record.role == message->role &&
           (uint64_t)burst->record.payload_bytes + message->payload_bytes <= PAYLOAD_MAX &&
           end_of(message) - burst->record.first_ns <= UINT32_MAX;
}

static void join(struct burst *burst, const struct record_message *message)
{
    struct record_message *record = &burst->record;
    uint64_t end_ns = end_of(record) > end_of(message) ? end_of(record) : end_of(message);

    record->first_ns = message->first_ns < record->first_ns ? message->first_ns : record->first_ns;
    record->duration_ns = (uint32_t)(end_ns - record->first_ns);
    record->payload_bytes += message->payload_bytes;
    record->frames += message->frames;
    record->opcode = message->opcode;
    record->flags |= message->flags & KEPT_FLAGS;
    burst->messages++;
}

static void hold(struct bursts *bursts, struct burst *burst, const struct record_message *message)
{
    *burst = (struct burst){.record = *message, .messages = 1};
    bursts->held++;
    if (message->first_ns < bursts->held_from_ns)
        bursts->held_from_ns = message->first_ns;
}

/* Empties a place of the table into a record; a lone message goes as it came. */
static void release(struct bursts *bursts, struct burst *burst, struct record_message *record)
{
    *record = burst->record;
    if (burst->messages > 1) {
        record->immediate = burst->messages;
        record->place = 0;
        record->flags = (uint16_t)((record->flags & KEPT_FLAGS) | MESSAGE_MERGED);
        tally_add(bursts->tallies, TALLY_MESSAGES_MERGED, burst->messages);
    }
    burst->messages = 0;
    if (--bursts->held == 0)
        bursts->held_from_ns = UINT64_MAX;
}

static bool can_pay(const struct bursts *bursts, uint64_t now_ns)
{
    return bursts->paid_ns <= now_ns + CREDIT_NS;
}

static void pay(struct bursts *bursts, uint64_t now_ns)
{
    uint64_t from_ns = bursts->paid_ns > now_ns ? bursts->paid_ns : now_ns;

    if (from_ns < now_ns + DEBT_NS)
        bursts->paid_ns = from_ns + bursts->record_ns;
}

unsigned bursts_pass(struct bursts *bursts, const struct record_message *message,
                     struct record_message records[BURST_RECORDS_MAX])
{
    uint64_t now_ns = end_of(message);
    struct burst *burst = find(bursts, message);
    unsigned count = 0;

    if (burst->messages != 0 && may_join(burst, message) && !can_pay(bursts, now_ns)) {
        join(burst, message);
        return 0;
    }
    if (burst->messages != 0) {
        release(bursts, burst, &records[count++]);
        pay(bursts, now_ns);
    }
    if (!can_pay(bursts, now_ns)) {
        hold(bursts, burst, message);
        return count;
    }
    records[count++] = *message;
    pay(bursts, now_ns);
    return count;
}

bool bursts_take(struct bursts *bursts, struct record_message *record)
{
    while (bursts->held != 0) {
        struct burst *burst = &bursts->burst[bursts->cursor++ % BURSTS_COUNT];
        if (burst->messages == 0)
            continue;
        uint64_t end_ns = end_of(&burst->record);
        release(bursts, burst, record);
        pay(bursts, end_ns);
        return true;
    }
    return false;
}

uint64_t bursts_held_from_ns(const struct bursts *bursts)
{
    return bursts->held_from_ns;
}
