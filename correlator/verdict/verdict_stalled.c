/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which machine a ring waits for, where each rank that sends over the wire has sent something: a rank that only has
 * neighbours in its machine is in no frame. From a rank that does not go on each next one in the ring sends by what it
 * adds itself more, and then holds credit without sending; so of the machines whose ranks all do, the one that sent
 * least has it. Nothing may be on its way: then a link would be what holds it up.
 */
#include <stdlib.h>
#include <string.h>

#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

struct machine {
    uint64_t sent_bytes;
    unsigned senders;
    unsigned holding; /* of these: they hold credit and do not send */
};

static bool sends(const struct record_rank_operation *record)
{
    return (record->flags & RANK_OPERATION_NO_WIRE) == 0 && record->expected_bytes != 0;
}

/* Of a ring that all ranks have given, each that sends has begun, and all that was sent has come. */
static bool is_readable(const struct job *job, const struct operation *operation)
{
    uint64_t sent_bytes = 0, received_bytes = 0;
    bool is_known = operation->kind != OPERATION_GROUP && operation->algorithm == ALGORITHM_RING &&
                    operation->ranks == (size_t)operation->ranks_count;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks && is_known; i++) {
        const struct record_rank_operation *record = &job->rank_operations.items[i].record;
        sent_bytes += record->observed_bytes;
        received_bytes += record->received_bytes;
        is_known = (record->flags & (RANK_OPERATION_EXPECTED_UNKNOWN | RANK_OPERATION_UNKNOWN_ALGORITHM)) == 0 &&
                   (!sends(record) || record->observed_bytes != 0);
    }
    return is_known && sent_bytes == received_bytes;
}

static const struct host_member *member_at(const struct job *job, const struct rank_operation *of)
{
    const struct host_evidence *host = &job->evidence->host;

    for (size_t i = 0; i < host->members.count; i++)
        if (host->members.items[i].rank == of->rank && of->rank >= 0 &&
            memcmp(host->members.items[i].communicator, of->record.communicator, IDENTITY_BYTES) == 0)
            return &host->members.items[i];
    return NULL;
}

/* False where the machine of a rank is not known. */
static bool add_up(const struct job *job, const struct operation *operation, struct machine *machines)
{
    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        const struct host_member *member = member_at(job, of);
        if (member == NULL)
            return false;
        struct machine *machine = &machines[member->machine];
        machine->sent_bytes += of->record.observed_bytes;
        machine->senders += sends(&of->record);
        machine->holding += sends(&of->record) && (of->record.flags & RANK_OPERATION_HOLDS_CREDIT) != 0;
    }
    return true;
}

/* The only one that sent least of those whose ranks all hold credit; -1: there is none. */
static int64_t least_of(const struct machine *machines, size_t count)
{
    int64_t found = -1;
    bool is_only = false;

    for (size_t i = 0; i < count; i++) {
        if (machines[i].senders == 0 || machines[i].holding < machines[i].senders)
            continue;
        if (found >= 0 && machines[i].sent_bytes == machines[found].sent_bytes)
            is_only = false;
        if (found >= 0 && machines[i].sent_bytes >= machines[found].sent_bytes)
            continue;
        found = (int64_t)i;
        is_only = true;
    }
    return is_only ? found : -1;
}

bool judge_find_stalled(const struct job *job, int32_t operation, struct stalled *stalled)
{
    const struct operation *of = &job->operations.items[operation];
    size_t count = 0;

    for (size_t i = 0; i < job->evidence->host.members.count; i++)
        if (job->evidence->host.members.items[i].machine >= count)
            count = job->evidence->host.members.items[i].machine + 1;
    struct machine *machines = array_zeroed((count + 1) * sizeof *machines);
    int64_t found = is_readable(job, of) && add_up(job, of, machines) ? least_of(machines, count) : -1;
    if (found >= 0)
        *stalled = (struct stalled){(size_t)found, machines[found].sent_bytes};
    free(machines);
    return found >= 0;
}
