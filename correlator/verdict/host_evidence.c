/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: tracks are sorted by rank, posts by rank and time, so that what concerns a rank is found by halving. */
#include "correlator/verdict/host_evidence.h"

const struct host_kind host_kinds[] = {
#define HOST_KIND(name, class, metric, words, source, role, amount, weight)                                            \
    {metric, words, VERDICT_##class, (role), HOST_OF_##source, HOST_##amount, (weight)},
#include "correlator/verdict/host_kind.def"
#undef HOST_KIND
};
const size_t host_kinds_count = sizeof host_kinds / sizeof host_kinds[0];
_Static_assert(sizeof host_kinds / sizeof host_kinds[0] <= HOST_KINDS_MAX, "kinds of what hosts told");

void host_evidence_fini(struct host_evidence *evidence)
{
    array_fini(&evidence->stays);
    array_fini(&evidence->tracks);
    array_fini(&evidence->posts);
    array_fini(&evidence->followed);
    array_fini(&evidence->failures);
    array_fini(&evidence->members);
    array_fini(&evidence->watches);
    array_fini(&evidence->back_offs);
}

static size_t first_track(const struct host_evidence *evidence, int32_t rank)
{
    size_t low = 0, high = evidence->tracks.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (evidence->tracks.items[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A track's first stay that ends after a time. */
static size_t first_stay(const struct host_evidence *evidence, const struct host_track *track, uint64_t after_ns)
{
    size_t low = track->first, high = track->first + track->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (evidence->stays.items[middle].to_ns <= after_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t common_ns(const struct host_stay *stay, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t from = stay->from_ns > from_ns ? stay->from_ns : from_ns;
    uint64_t to = stay->to_ns < to_ns ? stay->to_ns : to_ns;

    return to > from ? to - from : 0;
}

static void add_stay(struct host_sum *sum, const struct host_stay *stay, uint64_t common, enum host_amount amount)
{
    uint64_t all = stay->amounts[amount];

    double part = (double)all * ((double)common / (double)(stay->to_ns - stay->from_ns));
    sum->likely += (uint64_t)part;
    if (amount >= HOST_DURATIONS && (double)(uint64_t)part < part) /* what was counted was so as a whole */
        sum->likely++;
    sum->most += amount < HOST_DURATIONS && all > common ? common : all;
}

static struct host_sum sum_track(const struct host_evidence *evidence, const struct host_track *track,
                                 enum host_amount amount, uint64_t from_ns, uint64_t to_ns)
{
    struct host_sum sum = {.first_row = -1, .last_row = -1, .tid = track->tid};

    for (size_t i = first_stay(evidence, track, from_ns); i < track->first + track->count; i++) {
        const struct host_stay *stay = &evidence->stays.items[i];
        uint64_t common = common_ns(stay, from_ns, to_ns);
        if (stay->from_ns >= to_ns)
            break;
        if (common == 0 || stay->amounts[amount] == 0)
            continue;
        add_stay(&sum, stay, common, amount);
        sum.last_row = track->first_row + (int32_t)(i - track->first);
        sum.first_row = sum.first_row < 0 ? sum.last_row : sum.first_row;
    }
    return sum;
}

/* A thread that makes data calls and serves besides is a caller. */
static bool has_role(const struct host_track *track, uint16_t role)
{
    bool calls = (track->role & HOST_DELAY_CALLS) != 0;

    return role == HOST_DELAY_CALLS ? calls : !calls && (track->role & role) != 0;
}

bool host_evidence_followed(const struct host_evidence *evidence, int32_t rank, uint64_t from_ns, uint64_t to_ns)
{
    for (size_t i = 0; i < evidence->followed.count; i++) {
        const struct host_followed *followed = &evidence->followed.items[i];
        if (followed->rank == rank && followed->from_ns <= from_ns && followed->to_ns >= to_ns)
            return true;
    }
    return false;
}

struct host_sum host_evidence_sum(const struct host_evidence *evidence, const struct host_kind *kind, int32_t rank,
                                  uint64_t from_ns, uint64_t to_ns)
{
    bool followed = kind->amount < HOST_GPU_WAIT && host_evidence_followed(evidence, rank, from_ns, to_ns);
    uint8_t source = kind->source == HOST_OF_DELAY && followed ? HOST_OF_STAY : kind->source;
    struct host_sum best = {.first_row = -1, .last_row = -1};

    if (source == HOST_OF_STAY && !followed)
        return best;
    for (size_t i = first_track(evidence, rank); i < evidence->tracks.count; i++) {
        const struct host_track *track = &evidence->tracks.items[i];
        if (track->rank != rank)
            break;
        if (track->source != source || !has_role(track, kind->role))
            continue;
        struct host_sum sum = sum_track(evidence, track, kind->amount, from_ns, to_ns);
        if (sum.likely > best.likely)
            best = sum;
    }
    return best;
}

bool host_evidence_sums(const struct host_track *track, const struct host_kind *kind)
{
    return kind->source == HOST_OF_DELAY && track->source == HOST_OF_DELAY && has_role(track, kind->role);
}

struct host_pool host_evidence_pool(const struct host_evidence *evidence, const struct host_kind *kind, int32_t rank,
                                    uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
    struct host_pool pool = {0};

    if (host_evidence_followed(evidence, rank, from_ns, to_ns))
        return pool;
    for (size_t i = first_track(evidence, rank); i < evidence->tracks.count; i++) {
        const struct host_track *track = &evidence->tracks.items[i];
        if (track->rank != rank)
            break;
        if (track->tid != tid || !host_evidence_sums(track, kind))
            continue;
        for (size_t j = first_stay(evidence, track, from_ns); j < track->first + track->count; j++) {
            const struct host_stay *stay = &evidence->stays.items[j];
            if (stay->from_ns >= to_ns)
                break;
            pool.from_ns = pool.from_ns == 0 ? stay->from_ns : pool.from_ns;
            pool.to_ns = stay->to_ns;
            pool.amount += stay->amounts[kind->amount];
        }
    }
    return pool;
}

uint64_t host_evidence_total(const struct host_evidence *evidence, enum host_amount amount, int32_t rank, uint16_t role,
                             uint64_t from_ns, uint64_t to_ns)
{
    uint64_t total = 0;

    for (size_t i = first_track(evidence, rank); i < evidence->tracks.count; i++) {
        const struct host_track *track = &evidence->tracks.items[i];
        if (track->rank != rank)
            break;
        if (track->source == HOST_OF_DELAY && (track->role & role) != 0)
            total += sum_track(evidence, track, amount, from_ns, to_ns).likely;
    }
    return total;
}

uint64_t host_evidence_seen_ns(const struct host_evidence *evidence, int32_t rank, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t best = 0;

    for (size_t i = first_track(evidence, rank); i < evidence->tracks.count; i++) {
        const struct host_track *track = &evidence->tracks.items[i];
        uint64_t seen = 0;
        if (track->rank != rank)
            break;
        if (track->source != HOST_OF_DELAY || !has_role(track, HOST_DELAY_CALLS))
            continue;
        for (size_t j = first_stay(evidence, track, from_ns); j < track->first + track->count; j++)
            seen += common_ns(&evidence->stays.items[j], from_ns, to_ns);
        best = seen > best ? seen : best;
    }
    return best;
}

const struct host_post *host_evidence_post(const struct host_evidence *evidence, int32_t rank, uint64_t wire_ns)
{
    size_t low = 0, high = evidence->posts.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct host_post *post = &evidence->posts.items[middle];
        if (post->rank < rank || (post->rank == rank && post->wire_ns < wire_ns))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == evidence->posts.count || evidence->posts.items[low].rank != rank ||
        evidence->posts.items[low].wire_ns != wire_ns)
        return NULL;
    return &evidence->posts.items[low];
}
