/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Job ranks. Invariant: a member's rank is the rank of a member of its process in the process's largest communicator:
 * of the only one, or of the one that shares a thread (who created it, who calls on it) or else a local address with
 * it. Of several that are as large, which may number the same processes differently, it is the one that counts as the
 * launcher does, and else the one that was made first. Where that gives one rank to two processes that call at the same
 * time (the job has no communicator of all its ranks), it is the rank that the launcher gave the process; where not
 * every process was told one of its own, the largest communicators are numbered one behind the other.
 */
#include "correlator/naming/naming_join.h"

#include <stdlib.h>
#include <string.h>

enum agreement { /* of a communicator's ranks with those that the launcher gave */
                 AGREEMENT_NONE,
                 AGREEMENT_WHOLE,
                 AGREEMENT_BROKEN,
};

/* By communicator. The caller frees it. */
static enum agreement *find_agreements(const struct naming *naming)
{
    enum agreement *agreements = array_zeroed(naming->communicators.count * sizeof *agreements);
    int32_t *launched = naming_launched(naming);

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        enum agreement *agreement = &agreements[member->communicator];
        if (member->record.rank < 0 || launched[member->process] < 0 || *agreement == AGREEMENT_BROKEN)
            continue;
        *agreement = launched[member->process] == member->record.rank ? AGREEMENT_WHOLE : AGREEMENT_BROKEN;
    }
    free(launched);
    return agreements;
}

static bool larger(const struct naming *naming, const enum agreement *agreements, int32_t candidate, int32_t best)
{
    if (best < 0)
        return true;
    int32_t left = naming->communicators.items[candidate].ranks_count;
    int32_t right = naming->communicators.items[best].ranks_count;
    bool is_launchers = agreements[candidate] == AGREEMENT_WHOLE;
    if (left != right)
        return left > right;
    return is_launchers != (agreements[best] == AGREEMENT_WHOLE) ? is_launchers : candidate < best;
}

static int32_t main_communicator(const struct naming *naming, const enum agreement *agreements, int32_t process)
{
    int32_t best = -1;

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->process == process && member->record.rank >= 0 &&
            larger(naming, agreements, member->communicator, best))
            best = member->communicator;
    }
    return best;
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

struct holder { /* of a rank: a process, while it calls */
    int32_t rank;
    int32_t process;
    int32_t main;
    uint64_t from_ns;
    uint64_t to_ns;
};
typedef ARRAY(struct holder) holder_list;

static int by_rank_and_time(const void *a, const void *b)
{
    const struct holder *left = a;
    const struct holder *right = b;

    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->from_ns > right->from_ns) - (left->from_ns < right->from_ns);
}

/* `found` has each process's holders of ranks together: the last one of the same rank is the one to look at. */
static void hold(holder_list *found, const struct naming *naming, const struct member *member, int32_t main)
{
    uint64_t first_ns = naming->calls.items[member->calls.items[0]].enqueued_ns;
    uint64_t last_ns = naming->calls.items[member->calls.items[member->calls.count - 1]].enqueued_ns;
    struct holder *holder = NULL;

    for (size_t i = found->count; i-- > 0 && found->items[i].process == member->process && holder == NULL;)
        holder = found->items[i].rank == member->rank ? &found->items[i] : NULL;
    if (holder == NULL) {
        holder = array_add(found);
        *holder = (struct holder){member->rank, member->process, main, first_ns, last_ns};
    }
    holder->from_ns = first_ns < holder->from_ns ? first_ns : holder->from_ns;
    holder->to_ns = last_ns > holder->to_ns ? last_ns : holder->to_ns;
}

static int by_process(const void *a, const void *b)
{
    const struct member *const *left = a;
    const struct member *const *right = b;

    return ((*left)->process > (*right)->process) - ((*left)->process < (*right)->process);
}

static void find_holders(holder_list *holders, const struct naming *naming, const int32_t *mains)
{
    ARRAY(const struct member *) members = {0};

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->process >= 0 && member->rank >= 0 && member->calls.count > 0)
            *(const struct member **)array_add(&members) = member;
    }
    array_sort(&members, by_process);
    for (size_t i = 0; i < members.count; i++)
        hold(holders, naming, members.items[i], mains[members.items[i]->process]);
    array_fini(&members);
}

/* True when two processes have one rank at the same time. Sorts. */
static bool is_shared(holder_list *holders)
{
    array_sort(holders, by_rank_and_time);
    for (size_t i = 1; i < holders->count; i++) {
        const struct holder *before = &holders->items[i - 1];
        const struct holder *now = &holders->items[i];
        if (before->rank == now->rank && before->process != now->process && now->from_ns < before->to_ns)
            return true;
    }
    return false;
}

/* Takes the launcher's ranks if each process has one rank, was told one, and they are not shared. */
static bool take_launched(struct naming *naming, const holder_list *holders)
{
    int32_t *ranks = array_zeroed(naming->processes.count * sizeof *ranks);
    int32_t *told_ranks = naming_launched(naming);
    holder_list launched = {0};
    bool told = true;

    for (size_t i = 0; i < holders->count; i++) {
        struct holder *holder = array_add(&launched);
        *holder = holders->items[i];
        told &= ranks[holder->process] == 0; /* a second one: it has several ranks */
        holder->rank = told_ranks[holder->process];
        ranks[holder->process] = holder->rank + 1;
        told &= holder->rank >= 0;
    }
    told = told && !is_shared(&launched);
    for (size_t i = 0; i < naming->members.count && told; i++) {
        struct member *member = &naming->members.items[i];
        if (member->process >= 0 && ranks[member->process] != 0 && member->rank >= 0)
            member->rank = ranks[member->process] - 1;
    }
    array_fini(&launched);
    free(told_ranks);
    free(ranks);
    return told;
}

/* Numbers largest communicators that are used at the same time one behind the other. */
static void number_on(struct naming *naming, const holder_list *holders, const int32_t *mains)
{
    size_t count = naming->communicators.count;
    struct holder *uses = array_zeroed(count * sizeof *uses); /* of each communicator; rank: its first one */

    for (size_t i = 0; i < holders->count; i++) {
        const struct holder *holder = &holders->items[i];
        struct holder *use = &uses[holder->main];
        use->from_ns = use->to_ns == 0 || holder->from_ns < use->from_ns ? holder->from_ns : use->from_ns;
        use->to_ns = holder->to_ns > use->to_ns ? holder->to_ns : use->to_ns;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i && uses[i].to_ns != 0; j++) {
            int32_t behind = uses[j].rank + naming->communicators.items[j].ranks_count;
            bool together = uses[j].to_ns > uses[i].from_ns && uses[i].to_ns > uses[j].from_ns;
            uses[i].rank = together && behind > uses[i].rank ? behind : uses[i].rank;
        }
    for (size_t i = 0; i < naming->members.count; i++) {
        struct member *member = &naming->members.items[i];
        if (member->process >= 0 && member->rank >= 0 && mains[member->process] >= 0)
            member->rank += uses[mains[member->process]].rank;
    }
    free(uses);
}

static void part_ranks(struct naming *naming, const int32_t *mains)
{
    holder_list holders = {0};

    find_holders(&holders, naming, mains);
    if (is_shared(&holders) && !take_launched(naming, &holders))
        number_on(naming, &holders, mains);
    array_fini(&holders);
    for (size_t i = 0; i < naming->members.count; i++)
        if (naming->members.items[i].rank >= naming->ranks_count)
            naming->ranks_count = naming->members.items[i].rank + 1;
}

void naming_rank(struct naming *naming)
{
    int32_t *mains = array_zeroed(naming->processes.count * sizeof *mains);
    enum agreement *agreements = find_agreements(naming);

    for (size_t i = 0; i < naming->processes.count; i++) {
        int32_t main = mains[i] = main_communicator(naming, agreements, (int32_t)i);
        for (size_t j = 0; j < naming->members.count; j++) {
            struct member *member = &naming->members.items[j];
            if (member->process == (int32_t)i)
                member->rank = rank_of(naming, member, main);
        }
        if (main >= 0 && naming->communicators.items[main].ranks_count > naming->ranks_count)
            naming->ranks_count = naming->communicators.items[main].ranks_count;
    }
    part_ranks(naming, mains);
    free(agreements);
    free(mains);
}
