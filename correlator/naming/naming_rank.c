/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Job ranks. Invariant: a member's rank is the rank of a member of its process in the process's largest communicator:
 * of the only one, or of the one that shares a thread (who created it, who calls on it) or else a local address with
 * it.
 */
#include "correlator/naming/naming_join.h"

#include <string.h>

static bool larger(const struct naming *naming, const struct member *candidate, const struct member *best)
{
    if (best == NULL)
        return true;
    int32_t left = naming->communicators.items[candidate->communicator].ranks_count;
    int32_t right = naming->communicators.items[best->communicator].ranks_count;
    return left != right ? left > right : candidate->communicator < best->communicator;
}

static int32_t main_communicator(const struct naming *naming, int32_t process)
{
    const struct member *best = NULL;

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->process == process && member->record.rank >= 0 && larger(naming, member, best))
            best = member;
    }
    return best == NULL ? -1 : best->communicator;
}

static bool called_by(const struct naming *naming, const struct member *member, uint32_t tid)
{
    if (tid == 0)
        return false;
    if (member->record.header.source == tid)
        return true;
    for (size_t i = 0; i < member->calls.count; i++)
        if (naming->calls.items[member->calls.items[i]].record.tid == tid)
            return true;
    return false;
}

static bool share_thread(const struct naming *naming, const struct member *a, const struct member *b)
{
    if (called_by(naming, b, a->record.header.source))
        return true;
    uint32_t last = 0;
    for (size_t i = 0; i < a->calls.count; i++) {
        uint32_t tid = naming->calls.items[a->calls.items[i]].record.tid;
        if (tid != last && called_by(naming, b, tid))
            return true;
        last = tid;
    }
    return false;
}

static bool share_address(const struct naming *naming, const struct member *a, const struct member *b)
{
    for (size_t i = 0; i < a->queue_pairs.count; i++)
        for (size_t j = 0; j < b->queue_pairs.count; j++) {
            const uint8_t *left = naming->queue_pairs.items[a->queue_pairs.items[i]].record.address;
            const uint8_t *right = naming->queue_pairs.items[b->queue_pairs.items[j]].record.address;
            if (memcmp(left, right, ADDRESS_BYTES) == 0)
                return true;
        }
    return false;
}

typedef bool (*likeness)(const struct naming *naming, const struct member *a, const struct member *b);

/* The rank of the only member of `main` in the process that is like `member`; -1 when none or several are. */
static int32_t rank_by(const struct naming *naming, const struct member *member, int32_t main, likeness like)
{
    int32_t rank = -1;

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *other = &naming->members.items[i];
        if (other->process != member->process || other->communicator != main ||
            (like != NULL && !like(naming, member, other)))
            continue;
        if (rank >= 0)
            return -1;
        rank = other->record.rank;
    }
    return rank;
}

static int32_t rank_of(const struct naming *naming, const struct member *member, int32_t main)
{
    static const likeness ways[] = {NULL, share_thread, share_address};

    if (main < 0)
        return -1;
    if (member->communicator == main)
        return member->record.rank;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int32_t rank = rank_by(naming, member, main, ways[i]);
        if (rank >= 0)
            return rank;
    }
    return -1;
}

void naming_rank(struct naming *naming)
{
    for (size_t i = 0; i < naming->processes.count; i++) {
        int32_t main = main_communicator(naming, (int32_t)i);
        for (size_t j = 0; j < naming->members.count; j++) {
            struct member *member = &naming->members.items[j];
            if (member->process == (int32_t)i)
                member->rank = rank_of(naming, member, main);
        }
        if (main >= 0 && naming->communicators.items[main].ranks_count > naming->ranks_count)
            naming->ranks_count = naming->communicators.items[main].ranks_count;
    }
}
