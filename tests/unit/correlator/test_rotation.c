/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of sizes that tell them apart are dealt to strands by NCCL's rule, and must come out as they went in. */
#include "correlator/node/rotation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define STRANDS_MAX 8
#define SLOTS       40
#define SPACING_NS  1000u
#define TOOK_NS     300u
#define ALIGN_BYTES 128u

struct dealt {
    struct strand strands[STRANDS_MAX];
    size_t count;
    size_t parts;
    outage_list outages;
    bool seen_from_start;
    slot_list slots;
};

static uint32_t size_of(size_t slot)
{
    return 4096 + 128 * (uint32_t)slot;
}

static uint64_t begin_of(size_t slot)
{
    return 5000 + SPACING_NS * slot;
}

static void add_piece(struct dealt *dealt, size_t strand, uint64_t first_ns, uint64_t bytes, uint32_t size)
{
    struct piece *piece = array_add(&dealt->strands[strand].pieces);

    piece->slot = (struct slot){first_ns, first_ns + TOOK_NS, first_ns + TOOK_NS, bytes, 0, true};
    piece->immediate = size;
    piece->ended = true;
}

/* The n-th slot: to the strands whose turn it is, in parts of which the last is what is left. */
static void deal(struct dealt *dealt, size_t slot, uint64_t first_ns, uint32_t size)
{
    size_t groups = dealt->count / dealt->parts;
    uint64_t part = (size + dealt->parts - 1) / dealt->parts;
    uint64_t left = size;

    part = (part + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    for (size_t i = 0; i < dealt->parts; i++) {
        uint64_t bytes = left < part ? left : part;
        add_piece(dealt, slot % groups * dealt->parts + i, first_ns + i, bytes, size);
        left -= bytes;
    }
}

static void weave(struct dealt *dealt, size_t parts)
{
    const struct rotation rotation = {dealt->strands, dealt->count, &dealt->outages, dealt->seen_from_start};

    assert_int_equal(rotation_parts(&rotation), parts);
    rotation_weave(&dealt->slots, &rotation, parts == 0 ? 1 : (unsigned)parts);
}

static void clear(struct dealt *dealt)
{
    for (size_t i = 0; i < dealt->count; i++)
        strand_fini(&dealt->strands[i]);
    array_fini(&dealt->outages);
    array_fini(&dealt->slots);
}

static const struct {
    size_t count;
    size_t parts;
} shapes[] = {{1, 1}, {2, 1}, {4, 1}, {8, 1}, {2, 2}, {4, 4}, {4, 2}, {8, 2}};
#define SHAPES (sizeof shapes / sizeof shapes[0])

/* Every seventh slot waits until its two followers have begun: turns tell, times do not. */
static void test_turns_tell_the_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        struct dealt dealt = {.count = shapes[i].count, .parts = shapes[i].parts, .seen_from_start = true};
        bool may_wait = dealt.count / dealt.parts > 2;
        for (size_t slot = 0; slot < SLOTS; slot++)
            deal(&dealt, slot, begin_of(slot) + (may_wait && slot % 7 == 3 ? 2 * SPACING_NS + 500 : 0), size_of(slot));
        weave(&dealt, dealt.parts);
        assert_int_equal(dealt.slots.count, SLOTS);
        for (size_t slot = 0; slot < SLOTS; slot++) {
            assert_int_equal(dealt.slots.items[slot].bytes, size_of(slot));
            assert_true(dealt.slots.items[slot].whole);
            assert_int_equal(dealt.slots.items[slot].last_ns - dealt.slots.items[slot].first_ns,
                             TOOK_NS + dealt.parts - 1);
        }
        clear(&dealt);
    }
}

/* Whoever comes late finds whose turn it is, also among slots that overtake each other. */
static void test_late_comers_find_the_turn(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t missed = 1; missed < 9; missed++) {
            struct dealt dealt = {.count = shapes[i].count, .parts = shapes[i].parts};
            bool may_wait = dealt.count / dealt.parts > 2;
            for (size_t slot = missed; slot < SLOTS; slot++)
                deal(&dealt, slot, begin_of(slot) + (may_wait && slot % 7 == 5 ? SPACING_NS + 500 : 0), size_of(slot));
            weave(&dealt, dealt.parts);
            assert_int_equal(dealt.slots.count, SLOTS - missed);
            for (size_t slot = missed; slot < SLOTS; slot++)
                assert_int_equal(dealt.slots.items[slot - missed].bytes, size_of(slot));
            clear(&dealt);
        }
}

/* What begins within [from, to] and is one of three on its queue pair was not seen. */
static size_t lose(struct dealt *dealt, uint64_t from_ns, uint64_t to_ns)
{
    size_t lost = 0;

    *(struct outage *)array_add(&dealt->outages) = (struct outage){from_ns, to_ns};
    for (size_t i = 0; i < dealt->count; i++) {
        struct strand *strand = &dealt->strands[i];
        size_t kept = 0;
        for (size_t j = 0; j < strand->pieces.count; j++) {
            struct piece *piece = &strand->pieces.items[j];
            bool inside = piece->slot.first_ns >= from_ns && piece->slot.first_ns <= to_ns;
            if (inside && (i + j) % 3 == 0)
                lost++;
            else
                strand->pieces.items[kept++] = *piece;
        }
        strand->pieces.count = kept;
    }
    return lost;
}

/* A window of 13 slots in which pieces were missed: what lies before and behind it is as if nothing had happened. */
static void test_an_outage_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t begin = 10; begin < 18; begin++) {
            struct dealt dealt = {.count = shapes[i].count, .parts = shapes[i].parts, .seen_from_start = true};
            size_t end = begin + 13, before = 0, behind = 0;
            for (size_t slot = 0; slot < SLOTS; slot++)
                deal(&dealt, slot, begin_of(slot), size_of(slot));
            assert_true(lose(&dealt, begin_of(begin), begin_of(end) - 1) > 0);
            weave(&dealt, dealt.parts);
            for (size_t slot = 0; slot < begin; slot++, before++)
                assert_int_equal(dealt.slots.items[slot].bytes, size_of(slot));
            for (size_t slot = SLOTS; slot-- > end; behind++) {
                assert_int_equal(dealt.slots.items[dealt.slots.count - SLOTS + slot].bytes, size_of(slot));
                assert_true(dealt.slots.items[dealt.slots.count - SLOTS + slot].whole);
            }
            for (size_t slot = before; slot < dealt.slots.count - behind; slot++)
                if (dealt.slots.items[slot].whole)
                    assert_int_equal(dealt.slots.items[slot].bytes,
                                     size_of((dealt.slots.items[slot].first_ns - begin_of(0)) / SPACING_NS));
            clear(&dealt);
        }
}

/* A stripe's first part was missed, its other parts were seen behind the window: they are no part of what follows. */
static void test_a_rest_stands_alone(void **state)
{
    struct dealt dealt = {.count = 2, .parts = 2, .seen_from_start = true};
    (void)state;
    for (size_t slot = 0; slot < SLOTS; slot++)
        deal(&dealt, slot, begin_of(slot), 8192);
    for (size_t piece = 10; piece + 1 < SLOTS; piece++)
        dealt.strands[0].pieces.items[piece] = dealt.strands[0].pieces.items[piece + 1];
    dealt.strands[0].pieces.count--;
    *(struct outage *)array_add(&dealt.outages) = (struct outage){begin_of(10), begin_of(10)};
    weave(&dealt, 2);
    assert_int_equal(dealt.slots.count, SLOTS);
    for (size_t slot = 0; slot < SLOTS; slot++) {
        assert_int_equal(dealt.slots.items[slot].whole, slot != 10);
        assert_int_equal(dealt.slots.items[slot].bytes, slot == 10 ? 4096 : 8192);
    }
    clear(&dealt);
}

/* Sizes up to 128 bytes go over the first queue pair of a stripe, the others carry nothing but the size. */
static void test_small_stripes(void **state)
{
    static const uint32_t sizes[] = {64, 0, 128, 100, 0, 24};
    struct dealt dealt = {.count = 4, .parts = 4, .seen_from_start = true};
    (void)state;
    for (size_t slot = 0; slot < 6; slot++)
        deal(&dealt, slot, begin_of(slot), sizes[slot]);
    weave(&dealt, 4);
    assert_int_equal(dealt.slots.count, 6);
    for (size_t slot = 0; slot < 6; slot++) {
        assert_int_equal(dealt.slots.items[slot].bytes, sizes[slot]);
        assert_true(dealt.slots.items[slot].whole);
    }
    clear(&dealt);
}

static void test_sizes_in_either_byte_order(void **state)
{
    struct dealt dealt = {.count = 2, .parts = 2, .seen_from_start = true};
    (void)state;
    for (size_t slot = 0; slot < SLOTS; slot++)
        deal(&dealt, slot, begin_of(slot), size_of(slot));
    for (size_t i = 0; i < 2; i++)
        for (size_t piece = 0; piece < SLOTS; piece++)
            dealt.strands[i].pieces.items[piece].immediate = __builtin_bswap32(size_of(piece));
    weave(&dealt, 2);
    for (size_t slot = 0; slot < SLOTS; slot++)
        assert_true(dealt.slots.items[slot].whole);
    clear(&dealt);
}

static void test_empty_slots_tell_nothing(void **state)
{
    struct dealt dealt = {.count = 2, .parts = 1, .seen_from_start = true};
    (void)state;
    for (size_t slot = 0; slot < 6; slot++)
        deal(&dealt, slot, begin_of(slot), 0);
    weave(&dealt, 0);
    assert_int_equal(dealt.slots.count, 6);
    clear(&dealt);
}

/* Whatever strands hold: each piece becomes part of one slot, and no byte is lost or doubled. */
static void test_nonsense_is_kept(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (size_t round = 0; round < 200; round++) {
        struct dealt dealt = {.count = 1 + round % STRANDS_MAX, .seen_from_start = round % 2 == 0};
        const struct rotation rotation = {dealt.strands, dealt.count, &dealt.outages, dealt.seen_from_start};
        uint64_t sent = 0, woven = 0;
        for (size_t i = 0; i < dealt.count; i++)
            for (uint64_t at = 0, piece = 0; piece < round % 23; piece++) {
                random = random * 6364136223846793005ULL + 1442695040888963407ULL;
                at += random >> 54;
                add_piece(&dealt, i, at, random >> 40 & 255, random >> 48 & 255);
                dealt.strands[i].pieces.items[piece].ended = (random >> 36 & 7) != 0;
                sent += random >> 40 & 255;
            }
        for (size_t i = 0; i < round % 3; i++)
            *(struct outage *)array_add(&dealt.outages) = (struct outage){2000 + 3000 * i, 3000 + 4000 * i};
        for (unsigned parts = 1; parts <= dealt.count; parts++) {
            if (dealt.count % parts != 0)
                continue;
            dealt.slots.count = 0;
            rotation_weave(&dealt.slots, &rotation, parts);
            woven = 0;
            for (size_t slot = 0; slot < dealt.slots.count; slot++)
                woven += dealt.slots.items[slot].bytes;
            assert_int_equal(woven, sent);
        }
        clear(&dealt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_tell_the_order),
        cmocka_unit_test(test_late_comers_find_the_turn),
        cmocka_unit_test(test_an_outage_ends),
        cmocka_unit_test(test_a_rest_stands_alone),
        cmocka_unit_test(test_small_stripes),
        cmocka_unit_test(test_sizes_in_either_byte_order),
        cmocka_unit_test(test_empty_slots_tell_nothing),
        cmocka_unit_test(test_nonsense_is_kept),
    };
    return cmocka_run_group_tests_name("rotation", tests, NULL, NULL);
}
