/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of communicators that share their parent's service thread (NCCL's splitShare, shrinkShare): that thread
 * makes them, so they look like the parent's. They belong to the child whose call they were made in. Invariant: a queue
 * pair goes to a child only when that is so at both its ends, and no call of its parent's was under way.
 */
#include "correlator/naming/naming_join.h"

#include <stdlib.h>

static bool descends_from(const struct naming *naming, int32_t member, int32_t ancestor)
{
    for (size_t i = 0; i < naming->members.count && member >= 0 && member != ancestor; i++)
        member = naming->members.items[member].parent;
    return member == ancestor;
}

/* How many of the member's calls, which are in order of enqueue, had been enqueued by then. */
static size_t enqueued_by(const struct naming *naming, const struct member *member, uint64_t at_ns)
{
    size_t low = 0;
    size_t high = member->calls.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (naming->calls.items[member->calls.items[middle]].enqueued_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool under_way(const struct call *call, uint64_t at_ns)
{
    return call->record.returned_after_ns != 0 && call->entered_ns <= at_ns &&
           at_ns <= call->entered_ns + call->record.returned_after_ns;
}

/* It was being made, or one of its calls was under way. */
static bool busy_at(const struct naming *naming, const struct member *member, uint64_t at_ns)
{
    size_t next = enqueued_by(naming, member, at_ns);

    if (member->created_ns != 0 && member->created_ns <= at_ns && at_ns <= member->ready_ns)
        return true;
    return (next > 0 && under_way(&naming->calls.items[member->calls.items[next - 1]], at_ns)) ||
           (next < member->calls.count && under_way(&naming->calls.items[member->calls.items[next]], at_ns));
}

typedef ARRAY(int32_t) member_list;

/* Children that have no queue pairs: they share their parent's thread, or need none. */
static void children_without(const struct naming *naming, member_list *children)
{
    for (size_t i = 0; i < naming->members.count; i++)
        if (naming->members.items[i].parent >= 0 && naming->members.items[i].queue_pairs.count == 0)
            *(int32_t *)array_add(children) = (int32_t)i;
}

/* The only one of the children that was busy when the queue pair was made; -1: none, or not sure. */
static int32_t child_of(const struct naming *naming, const member_list *children, const struct queue_pair *pair)
{
    int32_t found = -1;

    if (pair->member < 0 || pair->created_ns == 0 || (pair->record.flags & QUEUE_PAIR_LATE) != 0)
        return -1;
    for (size_t i = 0; i < children->count; i++) {
        const struct member *member = &naming->members.items[children->items[i]];
        if (member->process != pair->process || !descends_from(naming, children->items[i], pair->member) ||
            !busy_at(naming, member, pair->created_ns))
            continue;
        if (found >= 0)
            return -1;
        found = children->items[i];
    }
    return found < 0 || busy_at(naming, &naming->members.items[pair->member], pair->created_ns) ? -1 : found;
}

static bool ends_agree(const struct naming *naming, const int32_t *child, size_t index)
{
    int32_t peer = naming->queue_pairs.items[index].peer;

    return child[index] >= 0 && peer >= 0 && child[peer] >= 0 &&
           naming->members.items[child[index]].communicator == naming->members.items[child[peer]].communicator;
}

static void take_from_owner(struct naming *naming, int32_t index)
{
    struct member *owner = &naming->members.items[naming->queue_pairs.items[index].member];
    size_t kept = 0;

    for (size_t i = 0; i < owner->queue_pairs.count; i++)
        if (owner->queue_pairs.items[i] != index)
            owner->queue_pairs.items[kept++] = owner->queue_pairs.items[i];
    owner->queue_pairs.count = kept;
}

void naming_share(struct naming *naming)
{
    int32_t *child = array_zeroed(naming->queue_pairs.count * sizeof *child);
    member_list children = {0};

    children_without(naming, &children);
    for (size_t i = 0; i < naming->queue_pairs.count; i++)
        child[i] = child_of(naming, &children, &naming->queue_pairs.items[i]);
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        if (!ends_agree(naming, child, i))
            continue;
        take_from_owner(naming, (int32_t)i);
        naming->queue_pairs.items[i].member = child[i];
        *(int32_t *)array_add(&naming->members.items[child[i]].queue_pairs) = (int32_t)i;
    }
    array_fini(&children);
    free(child);
}
