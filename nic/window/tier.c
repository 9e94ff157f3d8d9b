/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Splitting the budget, and telling how far it reaches. Invariant: the shares add up to the whole; what is
 * counted in the first ring is counted in the others.
 */
#include "nic/window/tier.h"

#include <errno.h>
#include <string.h>

_Static_assert(TIER_WINDOWS_SHARE + TIER_PINNED_SHARE + TIER_MESSAGES_SHARE + 2 * TIER_COARSE_SHARE == TIER_SHARES,
               "the shares are the whole");

static const struct {
    enum tally stored;
    enum tally overwritten;
    enum tally coverage;
} ring_tallies[TIER_RINGS_COUNT] = {
    {TALLY_WINDOWS, TALLY_WINDOWS_OVERWRITTEN, TALLY_WINDOWS_COVERAGE},
    {TALLY_WINDOWS_MIDDLE, TALLY_WINDOWS_MIDDLE_OVERWRITTEN, TALLY_WINDOWS_MIDDLE_COVERAGE},
    {TALLY_WINDOWS_LONG, TALLY_WINDOWS_LONG_OVERWRITTEN, TALLY_WINDOWS_LONG_COVERAGE},
};

static int create_ring(struct tiers *tiers, unsigned ring, uint32_t window_ns, size_t bytes, size_t pinned_bytes)
{
    const struct window_tallies tallies = {tiers->tallies, ring_tallies[ring].stored, ring_tallies[ring].overwritten};
    int error = window_ring_create(&tiers->rings[ring], window_ns, bytes, pinned_bytes, &tallies);

    if (error == 0 && ring != 0)
        window_ring_add_coarser(tiers->rings[0], tiers->rings[ring]);
    return error;
}

static uint32_t floor_to_power_of_two(uint32_t value)
{
    return 1u << (31 - __builtin_clz(value));
}

int tiers_create(struct tiers *tiers, uint32_t window_ns, size_t memory_bytes, struct tallies *tallies)
{
    size_t share = memory_bytes / TIER_SHARES;
    uint32_t ratio =
        window_ns < TIER_MIDDLE_NS / 2 ? floor_to_power_of_two(TIER_MIDDLE_NS / window_ns) : TIER_LONG_RATIO;

    memset(tiers, 0, sizeof *tiers);
    tiers->tallies = tallies;
    int error =
        create_ring(tiers, 0, window_ns, (TIER_WINDOWS_SHARE + TIER_PINNED_SHARE) * share, TIER_PINNED_SHARE * share);
    if (error == 0)
        error = create_ring(tiers, 1, window_ns * ratio, TIER_COARSE_SHARE * share, 0);
    if (error == 0)
        error = create_ring(tiers, 2, window_ns * ratio * TIER_LONG_RATIO, TIER_COARSE_SHARE * share, 0);
    if (error == 0)
        error = history_create(&tiers->history, TIER_MESSAGES_SHARE * share, tallies);
    if (error != 0)
        tiers_destroy(tiers);
    return error;
}

void tiers_destroy(struct tiers *tiers)
{
    for (unsigned i = 0; i < TIER_RINGS_COUNT; i++)
        window_ring_destroy(&tiers->rings[i]);
    history_destroy(&tiers->history);
}

void tiers_prepare(struct tiers *tiers)
{
    for (unsigned i = 0; i < TIER_RINGS_COUNT; i++)
        window_ring_prepare(tiers->rings[i]);
    history_prepare(tiers->history);
}

/* How long the capacity lasts when so many bytes came in the time; UINT64_MAX when none came. */
static uint64_t lasts_ns(uint64_t capacity_bytes, uint64_t came_bytes, uint64_t time_ns)
{
    return came_bytes == 0 ? UINT64_MAX : (uint64_t)((double)capacity_bytes / (double)came_bytes * (double)time_ns);
}

/*
 * With very many flows windows of the second length are nearly as many as the shortest, and the memory for them would
 * last no longer than that of those: then they are passed over, which saves their time too.
 */
static void judge_middle(struct tiers *tiers, const uint64_t lasts[TIER_RINGS_COUNT], uint64_t now_ns)
{
    bool is_passed_over = window_ring_passes_over(tiers->rings[0]);
    uint64_t expected_ns = is_passed_over ? lasts[2] / TIER_LONG_RATIO : lasts[1];

    if (!is_passed_over && expected_ns < lasts[0])
        window_ring_pass_over(tiers->rings[0], true, now_ns);
    else if (is_passed_over && expected_ns / 2 > lasts[0])
        window_ring_pass_over(tiers->rings[0], false, now_ns);
}

void tiers_measure(struct tiers *tiers, uint64_t now_ns)
{
    uint64_t time_ns = now_ns - tiers->measured_ns, lasts[TIER_RINGS_COUNT + 1];
    bool is_first = tiers->measured_ns == 0;

    if (time_ns < TIER_GAUGES_NS)
        return;
    for (unsigned i = 0; i <= TIER_RINGS_COUNT; i++) {
        bool is_ring = i < TIER_RINGS_COUNT;
        uint64_t stored = is_ring ? window_ring_bytes_stored(tiers->rings[i]) : history_bytes_stored(tiers->history);
        uint64_t capacity =
            is_ring ? window_ring_bytes_capacity(tiers->rings[i]) : history_bytes_capacity(tiers->history);
        lasts[i] = lasts_ns(capacity, stored - tiers->bytes[i], time_ns);
        tiers->bytes[i] = stored;
        if (!is_first)
            tally_set(tiers->tallies, is_ring ? ring_tallies[i].coverage : TALLY_MESSAGES_COVERAGE, lasts[i]);
    }
    if (!is_first)
        judge_middle(tiers, lasts, now_ns);
    tiers->measured_ns = now_ns;
}

bool tiers_pin(struct tiers *tiers, uint64_t from_ns, uint64_t to_ns)
{
    return window_pin(tiers->rings[0], from_ns, to_ns);
}
