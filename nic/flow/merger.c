/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bucket of bytes that fills at the set rate, and for each flow two messages that may wait: one of data, one of any
 * other role. Invariant: a flow's waiting message is in the queue once; nothing is lost, every message is in exactly
 * one record.
 */
#include "nic/flow/merger.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/message_run.h"

#define SECOND_NS   1000000000u
#define SLOTS       2u /* a flow */
#define BURST_SHARE 10u
#define MESSAGE     ((int64_t)MESSAGE_CODE_BYTES_MAX) /* as much as one can take */

struct waiting {
    struct record_message message; /* header.source 0: none */
    uint64_t since_ns;
    uint32_t messages;
};

struct merger {
    struct tallies *tallies;
    uint64_t bytes_per_second;
    int64_t bytes; /* that may be sent now; below 0 when a change of role forced some out */
    uint64_t filled_ns;
    uint32_t slots_count;
    struct waiting *waiting; /* by (flow number - 1) * SLOTS + slot */
    uint32_t *queue;         /* ring of slots that wait, the longest waiting first */
    uint32_t first;
    uint32_t count;
};

int merger_create(struct merger **merger, uint32_t flows_max, uint64_t bytes_per_second, struct tallies *tallies)
{
    struct merger *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->tallies = tallies;
    made->bytes_per_second = bytes_per_second;
    made->slots_count = flows_max * SLOTS;
    made->waiting = calloc(made->slots_count, sizeof *made->waiting);
    made->queue = calloc(made->slots_count, sizeof *made->queue);
    if (made->waiting == NULL || made->queue == NULL) {
        merger_destroy(&made);
        return -ENOMEM;
    }
    *merger = made;
    return 0;
}

void merger_destroy(struct merger **merger)
{
    if (*merger == NULL)
        return;
    free((*merger)->waiting);
    free((*merger)->queue);
    free(*merger);
    *merger = NULL;
}

void merger_set_rate(struct merger *merger, uint64_t bytes_per_second)
{
    merger->bytes_per_second = bytes_per_second;
}

static void fill(struct merger *merger, uint64_t now_ns)
{
    int64_t most = (int64_t)(merger->bytes_per_second / BURST_SHARE) + MESSAGE;
    uint64_t passed_ns = now_ns - merger->filled_ns;

    if (now_ns <= merger->filled_ns)
        return;
    if (passed_ns > SECOND_NS)
        passed_ns = SECOND_NS;
    int64_t more = (int64_t)(passed_ns * merger->bytes_per_second / SECOND_NS);
    if (more == 0)
        return;
    merger->filled_ns = now_ns;
    merger->bytes = merger->bytes + more < most ? merger->bytes + more : most;
}

static void send_slot(struct merger *merger, struct waiting *waiting, merger_send send, void *context)
{
    merger->bytes -= (int64_t)send(context, &waiting->message);
    waiting->message.header.source = 0;
}

static bool can_merge(const struct record_message *message, const struct record_message *next)
{
    uint64_t duration_ns = next->first_ns + next->duration_ns - message->first_ns;

    return message->role == next->role && next->first_ns >= message->first_ns && duration_ns <= UINT32_MAX &&
           next->payload_bytes <= UINT32_MAX - message->payload_bytes && next->frames <= UINT32_MAX - message->frames;
}

static void merge(struct waiting *waiting, const struct record_message *next)
{
    struct record_message *message = &waiting->message;
    uint64_t end_ns = message->first_ns + message->duration_ns, next_end_ns = next->first_ns + next->duration_ns;

    message->duration_ns = (uint32_t)((next_end_ns > end_ns ? next_end_ns : end_ns) - message->first_ns);
    message->payload_bytes += next->payload_bytes;
    message->frames += next->frames;
    message->immediate = ++waiting->messages;
    message->place = next->place;
    message->opcode = next->opcode;
    message->flags &= (uint16_t)~MESSAGE_PLACED;
    message->flags |= next->flags | MESSAGE_MERGED;
    message->flags &= (uint16_t)~MESSAGE_IMMEDIATE;
}

void merger_add(struct merger *merger, const struct record_message *message, uint64_t now_ns, merger_send send,
                void *context)
{
    uint32_t slot = (message->header.source - 1) * SLOTS + (message->role != ROLE_DATA);
    struct waiting *waiting = &merger->waiting[slot];
    uint64_t ended_ns = message->first_ns + message->duration_ns;

    if (merger->bytes_per_second == 0) {
        send(context, message);
        return;
    }
    fill(merger, ended_ns > now_ns ? ended_ns : now_ns);
    if (waiting->message.header.source != 0 && can_merge(&waiting->message, message)) {
        tally_add(merger->tallies, TALLY_MESSAGES_MERGED, 1);
        merge(waiting, message);
        return;
    }
    if (waiting->message.header.source == 0 && merger->bytes >= MESSAGE && merger->count == 0) {
        merger->bytes -= (int64_t)send(context, message);
        return;
    }
    bool is_queued = waiting->message.header.source != 0;
    uint64_t since_ns = is_queued           ? waiting->since_ns
                        : ended_ns < now_ns ? ended_ns
                                            : now_ns; /* it keeps its place in the queue */
    if (is_queued)
        send_slot(merger, waiting, send, context);
    else
        merger->queue[(merger->first + merger->count++) % merger->slots_count] = slot;
    *waiting = (struct waiting){.message = *message, .since_ns = since_ns, .messages = 1};
}

void merger_go_on(struct merger *merger, uint64_t now_ns, bool all, merger_send send, void *context)
{
    fill(merger, now_ns);
    while (merger->count != 0 && (all || merger->bytes_per_second == 0 || merger->bytes >= MESSAGE)) {
        send_slot(merger, &merger->waiting[merger->queue[merger->first]], send, context);
        merger->first = (merger->first + 1) % merger->slots_count;
        merger->count--;
    }
}

bool merger_waits_since(const struct merger *merger, uint64_t *since_ns)
{
    if (merger->count == 0)
        return false;
    *since_ns = merger->waiting[merger->queue[merger->first]].since_ns;
    return true;
}
