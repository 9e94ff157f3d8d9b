/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a communicator is called, and which rank a member of it is, where its own call did not say. NCCL orders the
 * ranks of a split by key, then by the parent's rank. Invariant: a rank that is given here follows from the records of
 * all ranks of the parent; an identity that is replaced here belongs to the same hash and number of ranks.
 */
#include "correlator/naming/naming_join.h"

#include <stdlib.h>
#include <string.h>

/* ---- one identity for each communicator ---- */

struct group { /* members of one identity, by rank */
    struct member *const *members;
    size_t count;
};

static int by_identity(const void *a, const void *b)
{
    const struct record_communicator *left = &(*(struct member *const *)a)->record;
    const struct record_communicator *right = &(*(struct member *const *)b)->record;
    int order = memcmp(left->identity, right->identity, IDENTITY_BYTES);

    return order != 0 ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

static const struct record_communicator *first_of(const struct group *group)
{
    return &group->members[0]->record;
}

static bool overlap(const struct member *a, const struct member *b)
{
    bool a_before = a->destroyed_ns != 0 && a->destroyed_ns < b->created_ns;
    bool b_before = b->destroyed_ns != 0 && b->destroyed_ns < a->created_ns;
    return !a_before && !b_before;
}

/* The same by hash and size, and no rank would be there twice at one time. */
static bool may_join(const struct group *a, const struct group *b)
{
    if (first_of(a)->hash == 0 || first_of(a)->hash != first_of(b)->hash ||
        first_of(a)->ranks_count != first_of(b)->ranks_count)
        return false;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const struct member *left = a->members[i];
        const struct member *right = b->members[j];
        if (left->record.rank == right->record.rank && overlap(left, right))
            return false;
        if (left->record.rank <= right->record.rank)
            i++;
        else
            j++;
    }
    return true;
}

/* Kinds from weak to strong: communicators are called by the strongest. */
static unsigned strength(const struct group *group)
{
    static const unsigned strengths[] = {
        [IDENTITY_UNKNOWN] = 0, [IDENTITY_OF_HASH] = 1, [IDENTITY_OF_PARENT] = 2,
        [IDENTITY_OF_CALL] = 3, [IDENTITY_OF_ID] = 4,
    };
    uint8_t kind = first_of(group)->identity_kind;
    return kind < sizeof strengths / sizeof strengths[0] ? strengths[kind] : 0;
}

/* The only stronger group that this one may be joined with; NULL when there is none, or are several. */
static const struct group *namesake(const struct group *groups, size_t count, const struct group *group)
{
    const struct group *found = NULL;

    for (size_t i = 0; i < count; i++) {
        if (strength(&groups[i]) <= strength(group) || !may_join(group, &groups[i]))
            continue;
        if (found != NULL)
            return NULL;
        found = &groups[i];
    }
    return found;
}

static void rename_group(const struct group *group, const struct group *as)
{
    const struct record_communicator *name = first_of(as);

    for (size_t i = 0; i < group->count; i++) {
        memcpy(group->members[i]->record.identity, name->identity, IDENTITY_BYTES);
        group->members[i]->record.identity_kind = name->identity_kind;
    }
}

void naming_identify(struct naming *naming)
{
    ARRAY(struct member *) members = {0};
    ARRAY(struct group) groups = {0};

    for (size_t i = 0; i < naming->members.count; i++)
        if (naming->members.items[i].record.identity_kind != IDENTITY_UNKNOWN)
            *(struct member **)array_add(&members) = &naming->members.items[i];
    array_sort(&members, by_identity);
    for (size_t begin = 0, end; begin < members.count; begin = end) {
        for (end = begin + 1; end < members.count && memcmp(members.items[begin]->record.identity,
                                                            members.items[end]->record.identity, IDENTITY_BYTES) == 0;)
            end++;
        *(struct group *)array_add(&groups) = (struct group){members.items + begin, end - begin};
    }
    for (size_t i = 0; i < groups.count; i++) {
        const struct group *other = namesake(groups.items, groups.count, &groups.items[i]);
        if (other != NULL)
            rename_group(&groups.items[i], other);
    }
    array_fini(&groups);
    array_fini(&members);
}

/* ---- ranks of a split's children ---- */

struct birth { /* what one rank of the parent said */
    const struct member *parent;
    struct member *child;
};
typedef ARRAY(struct birth) birth_list;

static int by_call(const void *a, const void *b)
{
    const struct birth *left = a;
    const struct birth *right = b;
    int order = memcmp(left->parent->record.identity, right->parent->record.identity, IDENTITY_BYTES);

    if (order == 0)
        order = (left->child->record.child > right->child->record.child) -
                (left->child->record.child < right->child->record.child);
    return order;
}

static int by_rank(const void *a, const void *b)
{
    const struct birth *left = a;
    const struct birth *right = b;
    const struct record_communicator *one = &left->child->record;
    const struct record_communicator *other = &right->child->record;
    int order = by_call(a, b);

    if (order == 0)
        order = (one->color > other->color) - (one->color < other->color);
    if (order == 0)
        order = (one->key > other->key) - (one->key < other->key);
    if (order == 0)
        order = (left->parent->record.rank > right->parent->record.rank) -
                (left->parent->record.rank < right->parent->record.rank);
    return order;
}

/* All ranks of the parent, each once. */
static bool is_whole(const struct birth *births, size_t count)
{
    const int32_t expected = births[0].parent->record.ranks_count;
    bool whole = expected > 0 && (size_t)expected == count;
    bool *seen = array_zeroed(count * sizeof *seen);

    for (size_t i = 0; i < count && whole; i++) {
        const int32_t rank = births[i].parent->record.rank;
        whole = rank >= 0 && rank < expected && !seen[rank];
        if (whole)
            seen[rank] = true;
    }
    free(seen);
    return whole;
}

static void rank_one_color(struct birth *births, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct record_communicator *record = &births[i].child->record;
        if (record->color == COLOR_NONE || record->rank >= 0)
            continue;
        record->rank = (int32_t)i;
        record->ranks_count = (int32_t)count;
    }
}

static void rank_call(struct birth *births, size_t count)
{
    if (!is_whole(births, count))
        return;
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin; end < count && births[end].child->record.color == births[begin].child->record.color;)
            end++;
        rank_one_color(births + begin, end - begin);
    }
}

static void list_births(struct naming *naming, birth_list *births)
{
    for (size_t i = 0; i < naming->members.count; i++) {
        struct member *child = &naming->members.items[i];
        const struct member *parent = child->parent < 0 ? NULL : &naming->members.items[child->parent];
        if (child->record.creator == COMMUNICATOR_BY_SPLIT && parent != NULL &&
            parent->record.identity_kind != IDENTITY_UNKNOWN)
            *(struct birth *)array_add(births) = (struct birth){parent, child};
    }
}

static size_t rank_all(birth_list *births)
{
    size_t known = 0;

    array_sort(births, by_rank);
    for (size_t begin = 0, end; begin < births->count; begin = end) {
        for (end = begin; end < births->count && by_call(&births->items[begin], &births->items[end]) == 0;)
            end++;
        rank_call(births->items + begin, end - begin);
    }
    for (size_t i = 0; i < births->count; i++)
        known += births->items[i].child->record.rank >= 0;
    return known;
}

void naming_rank_children(struct naming *naming)
{
    birth_list births = {0};
    size_t known = 0, before;

    list_births(naming, &births);
    do { /* a child's rank may be what its own children's ranks follow from */
        before = known;
        known = rank_all(&births);
    } while (known > before);
    array_fini(&births);
}
