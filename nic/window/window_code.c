/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code of windows. Numbers of variable length are LEB128; signed ones are folded (0, -1, 1, -2, ...).
 * Invariant: window_code_take, given the newest index at the block's beginning and the code as it is now,
 * reads what window_code_put wrote; so units are only ever added within a block.
 */
#include "nic/window/window_code.h"

#include <string.h>

#include "wire/number.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "entries are written as little-endian words"
#endif

#define SHAPE_BITS       2
#define UNIT_BITS        2
#define HEAD_BITS        WINDOW_CODE_HEAD_BITS
#define BACK_BITS_MIN    2
#define BACK_BITS_MAX    10
#define FRAMES_BITS_MIN  2
#define FRAMES_BITS_MAX  10
#define RARE_SHARE       16 /* one in so many may be written long */
#define LONG_EVIDENCE    4u /* in a long one's first byte: retransmitted or marked frames follow */
#define LONG_UNIT        8u /* its bytes are told as what they differ from unit 0 */
#define ADVANCE_STEP_MAX 63u

_Static_assert(HEAD_BITS == SHAPE_BITS + UNIT_BITS, "a word begins with both");

enum shape { SHAPE_SINGLE = 0, SHAPE_SEVERAL, SHAPE_LONG, SHAPE_ADVANCE };

static uint32_t mask_of(unsigned bits)
{
    return (uint32_t)(((uint64_t)1 << bits) - 1);
}

static unsigned bits_of(uint32_t value)
{
    return value == 0 ? 0 : 32 - (unsigned)__builtin_clz(value);
}

/* Bits that are left over in the last byte go to `back`, and to `frames`. */
static void lay_out(struct window_code *code, unsigned flow_bits, unsigned back_bits, unsigned frames_bits)
{
    unsigned single = HEAD_BITS + flow_bits + back_bits + code->offset_bits;
    unsigned spare = (8 - single % 8) % 8;

    if (back_bits + spare > BACK_BITS_MAX)
        spare = BACK_BITS_MAX - back_bits;
    back_bits += spare;
    unsigned several = single + spare + code->offset_bits + frames_bits;
    frames_bits += (8 - several % 8) % 8;
    several += (8 - several % 8) % 8;
    code->flow_bits = (uint8_t)flow_bits;
    code->back_bits = (uint8_t)back_bits;
    code->back_at = (uint8_t)(HEAD_BITS + flow_bits);
    code->first_at = (uint8_t)(code->back_at + back_bits);
    code->span_at = (uint8_t)(code->first_at + code->offset_bits);
    code->frames_at = (uint8_t)(code->span_at + code->offset_bits);
    code->flow_max = mask_of(flow_bits);
    code->back_max = mask_of(back_bits);
    code->frames_max = mask_of(frames_bits);
    code->single_bytes = (uint8_t)((single + spare + 7) / 8);
    code->several_bytes = several <= 64 ? (uint8_t)(several / 8) : 0;
}

static void forget_units(struct window_code *code)
{
    code->units_count = 0;
    code->units[0] = (struct window_code_unit){.payload_bytes = 1, .wire_bytes = 0};
}

/* The commonest unit comes first: window_code_put looks for no other. */
static void sort_units(struct window_code *code, const struct window_code_met *met, uint32_t entries)
{
    for (unsigned i = 1; i < code->units_count; i++) {
        struct window_code_unit unit = code->units[0];
        if (met->unit_entries[i] <= entries / 2)
            continue;
        code->units[0] = code->units[i];
        code->units[i] = unit;
    }
}

void window_code_begin(struct window_code *code, uint32_t window_ns)
{
    *code = (struct window_code){.offset_bits = (uint8_t)bits_of(window_ns - 1)};
    forget_units(code);
    lay_out(code, 8, BACK_BITS_MIN, FRAMES_BITS_MIN);
}

static unsigned adapt_bits(unsigned present, unsigned met, bool is_short, unsigned min, unsigned max)
{
    unsigned wanted = is_short ? present + 2 : met;

    return wanted < min ? min : wanted > max ? max : wanted;
}

void window_code_adapt(struct window_code *code, const struct window_code_met *met, uint32_t entries)
{
    unsigned flow_bits = bits_of(met->flows | 1);
    unsigned back_bits = adapt_bits(code->back_bits, bits_of(met->backs), met->far_entries > entries / RARE_SHARE,
                                    BACK_BITS_MIN, BACK_BITS_MAX);
    unsigned frames_bits = adapt_bits(bits_of(code->frames_max), bits_of(met->frames),
                                      met->full_entries > entries / RARE_SHARE, FRAMES_BITS_MIN, FRAMES_BITS_MAX);

    sort_units(code, met, entries);
    if (met->odd_entries > entries / 4)
        forget_units(code);
    lay_out(code, flow_bits, back_bits, frames_bits);
}

static uint8_t *put_advance(struct window_code *code, uint8_t *at, uint64_t index)
{
    uint64_t step = index - code->newest;

    code->newest = index;
    if (step < ADVANCE_STEP_MAX) {
        *at++ = (uint8_t)(SHAPE_ADVANCE | step << SHAPE_BITS);
        return at;
    }
    *at++ = (uint8_t)(SHAPE_ADVANCE | ADVANCE_STEP_MAX << SHAPE_BITS);
    return number_put(at, step);
}

/* The unit that all frames of the window have, or WINDOW_CODE_UNITS. */
static unsigned find_unit(const struct window_code *code, const struct window *window)
{
    for (unsigned unit = 0; unit < code->units_count; unit++) {
        if (code->units[unit].payload_bytes * window->frames == window->payload_bytes &&
            code->units[unit].wire_bytes * window->frames == window->wire_bytes)
            return unit;
    }
    return WINDOW_CODE_UNITS;
}

static void learn_unit(struct window_code *code, const struct window *window)
{
    if (code->units_count == WINDOW_CODE_UNITS || window->frames == 0 || window->payload_bytes % window->frames != 0 ||
        window->wire_bytes % window->frames != 0)
        return;
    code->units[code->units_count++] = (struct window_code_unit){
        .payload_bytes = window->payload_bytes / window->frames, .wire_bytes = window->wire_bytes / window->frames};
}

static struct window_code_unit long_unit(const struct window_code *code, unsigned head)
{
    static const struct window_code_unit none;

    return (head & LONG_UNIT) != 0 ? code->units[0] : none;
}

static uint8_t *put_long(const struct window_code *code, uint8_t *at, const struct window *window, uint32_t flow)
{
    bool has_evidence = window->retransmitted_frames != 0 || window->marked_frames != 0;
    unsigned head = SHAPE_LONG | (has_evidence ? LONG_EVIDENCE : 0) |
                    (code->units_count != 0 && window->frames != 0 ? LONG_UNIT : 0);
    struct window_code_unit unit = long_unit(code, head);

    *at++ = (uint8_t)head;
    at = number_put(at, flow);
    at = number_put(at, code->newest - window->index);
    at = number_put(at, window->frames);
    at = number_put(at, window->first_offset_ns);
    at = number_put(at, window->last_offset_ns - window->first_offset_ns);
    at = number_put(at, number_fold((int64_t)window->payload_bytes - (int64_t)unit.payload_bytes * window->frames));
    at = number_put(at, number_fold((int64_t)window->wire_bytes - (int64_t)window->payload_bytes -
                                    (int64_t)(unit.wire_bytes - unit.payload_bytes) * window->frames));
    if (has_evidence) {
        at = number_put(at, window->retransmitted_frames);
        at = number_put(at, window->marked_frames);
    }
    return at;
}

static void note_long(struct window_code *code, struct window_code_met *met, const struct window *window, uint64_t back,
                      unsigned unit)
{
    met->far_entries += back > code->back_max && back <= mask_of(BACK_BITS_MAX);
    met->full_entries += window->frames > code->frames_max && window->frames <= mask_of(FRAMES_BITS_MAX);
    met->odd_entries += unit == WINDOW_CODE_UNITS;
}

static bool is_single(const struct window *window)
{
    return window->frames == 1 && window->first_offset_ns == window->last_offset_ns;
}

/* A single or a several, whose fields fit into the bits that there are for them. */
static inline uint8_t *put_short(const struct window_code *code, struct window_code_met *met, uint8_t *at,
                                 const struct window *window, uint32_t flow, unsigned unit, uint32_t back)
{
    uint64_t word = unit << SHAPE_BITS | (uint64_t)flow << HEAD_BITS | (uint64_t)back << code->back_at |
                    (uint64_t)window->first_offset_ns << code->first_at;
    size_t bytes = code->single_bytes;

    met->flows |= flow;
    met->backs |= back;
    met->unit_entries[unit]++;
    if (!is_single(window)) {
        met->frames |= window->frames;
        word |= SHAPE_SEVERAL | (uint64_t)(window->last_offset_ns - window->first_offset_ns) << code->span_at |
                (uint64_t)window->frames << code->frames_at;
        bytes = code->several_bytes;
    }
    memcpy(at, &word, sizeof word);
    return at + bytes;
}

uint8_t *window_code_put_other(struct window_code *code, struct window_code_met *met, uint8_t *at,
                               const struct window *window, uint32_t flow)
{
    if (window->index > code->newest)
        at = put_advance(code, at, window->index);
    uint64_t back = code->newest - window->index;
    unsigned unit = find_unit(code, window);
    bool fits = back <= code->back_max && flow <= code->flow_max && window->frames - 1 < code->frames_max &&
                (window->retransmitted_frames | window->marked_frames) == 0 &&
                (code->several_bytes != 0 || is_single(window));
    if (fits && unit != WINDOW_CODE_UNITS)
        return put_short(code, met, at, window, flow, unit, (uint32_t)back);
    if (unit == WINDOW_CODE_UNITS)
        learn_unit(code, window);
    met->flows |= flow;
    note_long(code, met, window, back, unit);
    return put_long(code, at, window, flow);
}

static const uint8_t *take_long(const struct window_code *code, uint64_t newest, const uint8_t *at,
                                struct window *window, uint32_t *flow)
{
    unsigned head = *at++;
    struct window_code_unit unit = long_unit(code, head);
    uint64_t numbers[9] = {0};
    unsigned count = (head & LONG_EVIDENCE) != 0 ? 9 : 7;

    for (unsigned i = 0; i < count; i++)
        at = number_take(at, &numbers[i]);
    int64_t payload_bytes = number_unfold(numbers[5]) + (int64_t)unit.payload_bytes * (int64_t)numbers[2];
    int64_t overhead_bytes =
        number_unfold(numbers[6]) + (int64_t)(unit.wire_bytes - unit.payload_bytes) * (int64_t)numbers[2];
    *flow = (uint32_t)numbers[0];
    *window = (struct window){
        .index = newest - numbers[1],
        .frames = (uint32_t)numbers[2],
        .first_offset_ns = (uint32_t)numbers[3],
        .last_offset_ns = (uint32_t)(numbers[3] + numbers[4]),
        .payload_bytes = (uint32_t)payload_bytes,
        .wire_bytes = (uint32_t)(payload_bytes + overhead_bytes),
        .retransmitted_frames = (uint16_t)numbers[7],
        .marked_frames = (uint16_t)numbers[8],
    };
    return at;
}

static const uint8_t *take_advance(uint64_t *newest, const uint8_t *at)
{
    uint64_t step = *at++ >> SHAPE_BITS;

    if (step == ADVANCE_STEP_MAX)
        at = number_take(at, &step);
    *newest += step;
    return at;
}

static const uint8_t *take_short(const struct window_code *code, uint64_t newest, const uint8_t *at,
                                 struct window *window, uint32_t *flow)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    const struct window_code_unit *unit = &code->units[word >> SHAPE_BITS & mask_of(UNIT_BITS)];
    bool is_several = (word & mask_of(SHAPE_BITS)) == SHAPE_SEVERAL;
    *flow = (uint32_t)(word >> HEAD_BITS) & code->flow_max;
    *window = (struct window){.index = newest - ((uint32_t)(word >> code->back_at) & code->back_max),
                              .first_offset_ns = (uint32_t)(word >> code->first_at) & mask_of(code->offset_bits),
                              .frames = 1};
    window->last_offset_ns = window->first_offset_ns;
    if (is_several) {
        window->last_offset_ns += (uint32_t)(word >> code->span_at) & mask_of(code->offset_bits);
        window->frames = (uint32_t)(word >> code->frames_at) & code->frames_max;
    }
    window->payload_bytes = unit->payload_bytes * window->frames;
    window->wire_bytes = unit->wire_bytes * window->frames;
    return at + (is_several ? code->several_bytes : code->single_bytes);
}

const uint8_t *window_code_take(const struct window_code *code, uint64_t *newest, const uint8_t *at,
                                struct window *window, uint32_t *flow)
{
    switch ((enum shape)(*at & mask_of(SHAPE_BITS))) {
    case SHAPE_ADVANCE:
        *flow = 0;
        return take_advance(newest, at);
    case SHAPE_LONG:
        return take_long(code, *newest, at, window, flow);
    default:
        return take_short(code, *newest, at, window, flow);
    }
}
