/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: times that are made of the port's clock never run backwards while the clock itself does not: what a new
 * reading contradicts by little is made good within the next interval by the rate, and only a clock that was set to
 * something else is followed at once. The rate is taken over 16 to 32 s, so that the error of one reading (a
 * microsecond) is below a tenth of a millionth of it. CLOCK_REALTIME minus CLOCK_MONOTONIC only changes when somebody
 * sets the clock, so it is taken once, and again only when a later reading contradicts it.
 */
#include "nic/dpdk/stamp.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/log.h"

#define SECOND_NS         1000000000u
#define CHECK_INTERVAL_NS 100000000u
#define CHECK_MIN_NS      1000000u /* also when stamps look wrong */
#define FUTURE_MAX_NS     2000000u /* a burst may hold frames that came after its time was read */
#define AGE_MAX_NS        ((uint64_t)60 * SECOND_NS)
#define PORT_AGE_MAX_NS   ((uint64_t)2 * SECOND_NS)  /* below 2^32 ns: else a clock of 32 bits that begins again fits */
#define FIRST_AGE_MAX_NS  ((uint64_t)10 * SECOND_NS) /* what a kernel's ring can hold when we begin */
#define CALIBRATION_NS    50000000u
#define BASE_NS           ((uint64_t)16 * SECOND_NS)
#define STEP_NS           1000000 /* a clock that is further off than this was set */
#define STEPS_MAX         8       /* after which its clock is of no use */
#define TRIES_FIRST       64
#define TRIES             8
#define RATE_BITS         32

static int64_t distance(const struct stamp *stamp, uint64_t raw, uint64_t from)
{
    unsigned unused = 64 - stamp->raw_bits;

    return (int64_t)((raw - from) << unused) >> unused;
}

static uint64_t from_split(uint64_t raw)
{
    return (raw >> 32) * SECOND_NS + (uint32_t)raw;
}

static uint64_t line_time(const struct stamp *stamp, uint64_t raw)
{
    __int128 product = (__int128)distance(stamp, raw, stamp->line.raw) * stamp->line.rate;

    return stamp->line.ns + (uint64_t)(int64_t)(product >> RATE_BITS);
}

/* The closest of several readings of both clocks. */
static int read_sample(struct stamp *stamp, unsigned tries, struct stamp_sample *sample)
{
    uint64_t bound_ns = UINT64_MAX;

    for (unsigned i = 0; i < tries; i++) {
        uint64_t raw, before_ns = stamp->clocks.now_ns(stamp->clocks.context);
        int error = stamp->clocks.read_port(stamp->clocks.context, &raw);
        uint64_t after_ns = stamp->clocks.now_ns(stamp->clocks.context);
        if (error != 0)
            return error;
        if ((after_ns - before_ns) / 2 >= bound_ns)
            continue;
        bound_ns = (after_ns - before_ns) / 2;
        *sample = (struct stamp_sample){
            .raw = stamp->is_split ? from_split(raw) : raw, .ns = before_ns + bound_ns, .bound_ns = bound_ns};
    }
    return 0;
}

static uint64_t rate_between(const struct stamp_sample *from, const struct stamp_sample *to)
{
    return to->raw <= from->raw
               ? 0
               : (uint64_t)(((unsigned __int128)(to->ns - from->ns) << RATE_BITS) / (to->raw - from->raw));
}

static bool is_split_time(const struct record_clock_pair *pair, uint64_t raw)
{
    uint64_t seconds = raw >> 32, now_seconds = pair->realtime_ns / SECOND_NS;

    return (uint32_t)raw < SECOND_NS && seconds + AGE_MAX_NS / SECOND_NS > now_seconds &&
           seconds < now_seconds + AGE_MAX_NS / SECOND_NS;
}

static void begin_line(struct stamp *stamp)
{
    struct stamp_sample first, second;
    uint64_t raw;

    if (stamp->clocks.read_port == NULL || stamp->clocks.read_port(stamp->clocks.context, &raw) != 0)
        return;
    stamp->is_split = is_split_time(&stamp->pair, raw);
    if (read_sample(stamp, TRIES_FIRST, &first) != 0)
        return;
    while (stamp->clocks.now_ns(stamp->clocks.context) - first.ns < CALIBRATION_NS)
        continue;
    if (read_sample(stamp, TRIES_FIRST, &second) != 0)
        return;
    uint64_t rate = rate_between(&first, &second);
    stamp->has_line = rate != 0;
    stamp->line = (struct stamp_line){.raw = second.raw, .ns = second.ns, .rate = rate};
    stamp->line_bound_ns = first.bound_ns + second.bound_ns;
    stamp->base = first;
    stamp->next_base = stamp->last = second;
}

void stamp_init(struct stamp *stamp, const struct stamp_clocks *clocks, const char *name)
{
    struct record_clock_pair pair;

    *stamp = (struct stamp){.clocks = *clocks, .raw_bits = 64};
    snprintf(stamp->name, sizeof stamp->name, "%s", name);
    clocks->read_pair(clocks->context, &stamp->pair);
    for (unsigned i = 0; i < TRIES_FIRST; i++) {
        clocks->read_pair(clocks->context, &pair);
        if (pair.bound_ns < stamp->pair.bound_ns)
            stamp->pair = pair;
    }
    begin_line(stamp);
}

/* ---- the port's clock ---- */

static void warn_step(struct stamp *stamp, int64_t error_ns)
{
    if (++stamp->steps == STEPS_MAX) {
        stamp->kind = STAMP_NONE;
        log_warning("port %s: its clock does not run evenly; frames get the time at which they are read", stamp->name);
        return;
    }
    log_warning(
        "port %s: its clock was set by %.6f s, or stood still: frames since the last look at it have wrong times",
        stamp->name, (double)error_ns / 1e9);
}

/* Goes on counting where the clock has begun again. */
static void unwrap(const struct stamp *stamp, struct stamp_sample *sample)
{
    sample->raw = stamp->last.raw + (uint64_t)distance(stamp, sample->raw, stamp->last.raw);
}

/* True when the reading fits with a clock that began again after so many bits; the number of bits is kept then. */
static bool has_wrapped(struct stamp *stamp, const struct stamp_sample *sample)
{
    static const unsigned widths[] = {32, 40, 48, 56};

    for (unsigned i = 0; i < sizeof widths / sizeof widths[0] && stamp->raw_bits == 64; i++) {
        if (stamp->last.raw >> widths[i] != 0 || sample->raw >> widths[i] != 0)
            continue;
        stamp->raw_bits = widths[i];
        if (llabs((int64_t)(sample->ns - line_time(stamp, sample->raw))) <= STEP_NS)
            return true;
        stamp->raw_bits = 64;
    }
    return false;
}

static void follow_step(struct stamp *stamp, const struct stamp_sample *sample)
{
    stamp->line.raw = sample->raw;
    stamp->line.ns = sample->ns;
    stamp->base = stamp->next_base = *sample;
}

/* The new rate, and a part of it that makes good half of the error until the next look. */
static void turn_line(struct stamp *stamp, const struct stamp_sample *sample, int64_t error_ns)
{
    uint64_t rate = rate_between(&stamp->base, sample);
    __int128 mend = ((__int128)(error_ns / 2) * (int64_t)(rate >> 4)) / (int64_t)(CHECK_INTERVAL_NS >> 4);

    stamp->line.ns = line_time(stamp, sample->raw);
    stamp->line.raw = sample->raw;
    if (rate != 0)
        stamp->line.rate = rate + (uint64_t)(int64_t)mend;
    if (sample->ns - stamp->next_base.ns > BASE_NS) {
        stamp->base = stamp->next_base;
        stamp->next_base = *sample;
    }
}

static void check_line(struct stamp *stamp)
{
    struct stamp_sample sample;

    if (read_sample(stamp, TRIES, &sample) != 0)
        return;
    int64_t error_ns = (int64_t)(sample.ns - line_time(stamp, sample.raw));
    if (llabs(error_ns) > STEP_NS && has_wrapped(stamp, &sample))
        error_ns = (int64_t)(sample.ns - line_time(stamp, sample.raw));
    unwrap(stamp, &sample);
    if (llabs(error_ns) > STEP_NS) {
        warn_step(stamp, error_ns);
        follow_step(stamp, &sample);
    } else {
        uint64_t bound_ns = (uint64_t)llabs(error_ns) + sample.bound_ns;
        stamp->line_bound_ns = bound_ns > stamp->line_bound_ns ? bound_ns : stamp->line_bound_ns;
        turn_line(stamp, &sample, error_ns);
    }
    stamp->last = sample;
}

/* ---- the system's clocks ---- */

static int64_t realtime_offset_ns(const struct record_clock_pair *pair)
{
    return (int64_t)(pair->realtime_ns - pair->monotonic_ns);
}

static int64_t tai_offset_ns(const struct record_clock_pair *pair)
{
    return (int64_t)(pair->tai_ns - pair->monotonic_ns);
}

static void check_pair(struct stamp *stamp)
{
    struct record_clock_pair pair;

    stamp->clocks.read_pair(stamp->clocks.context, &pair);
    int64_t change_ns = realtime_offset_ns(&pair) - realtime_offset_ns(&stamp->pair);
    if ((uint64_t)llabs(change_ns) > pair.bound_ns + stamp->pair.bound_ns)
        stamp->pair = pair;
}

void stamp_check(struct stamp *stamp, uint64_t now_ns)
{
    if (now_ns < stamp->check_due_ns)
        return;
    stamp->checked_ns = now_ns;
    stamp->check_due_ns = now_ns + CHECK_INTERVAL_NS;
    check_pair(stamp);
    if (stamp->has_line && stamp->kind <= STAMP_PORT)
        check_line(stamp);
}

/* ---- a frame's time ---- */

static uint64_t convert(const struct stamp *stamp, enum stamp_kind kind, uint64_t raw)
{
    switch (kind) {
    case STAMP_PORT:
        return line_time(stamp, stamp->is_split ? from_split(raw) : raw);
    case STAMP_REALTIME_NS:
        return raw - (uint64_t)realtime_offset_ns(&stamp->pair);
    case STAMP_REALTIME_US:
        return raw * 1000 - (uint64_t)realtime_offset_ns(&stamp->pair);
    default:
        return raw - (uint64_t)tai_offset_ns(&stamp->pair);
    }
}

/* When it seems to come from the future, the clock is read again: we may have been kept from the processor since. */
static bool is_believed(const struct stamp *stamp, uint64_t at_ns, uint64_t now_ns, uint64_t age_max_ns)
{
    if (at_ns <= now_ns)
        return now_ns - at_ns <= age_max_ns;
    return at_ns - now_ns <= FUTURE_MAX_NS || at_ns <= stamp->clocks.now_ns(stamp->clocks.context) + FUTURE_MAX_NS;
}

/* The first kind that makes a time of the recent past of it. */
static void decide_kind(struct stamp *stamp, uint64_t raw, uint64_t now_ns)
{
    for (enum stamp_kind kind = stamp->has_line ? STAMP_PORT : STAMP_REALTIME_NS; kind < STAMP_NONE; kind++) {
        uint64_t age_max_ns = kind == STAMP_PORT ? PORT_AGE_MAX_NS : FIRST_AGE_MAX_NS;
        if (is_believed(stamp, convert(stamp, kind, raw), now_ns, age_max_ns)) {
            stamp->kind = kind;
            return;
        }
    }
    stamp->kind = STAMP_NONE;
    log_warning("port %s: its driver's time stamps are of no clock that is known here; frames get the time at which "
                "they are read",
                stamp->name);
}

static uint64_t refuse(struct stamp *stamp, uint64_t now_ns)
{
    stamp->refused++;
    if (stamp->check_due_ns > stamp->checked_ns + CHECK_MIN_NS)
        stamp->check_due_ns = stamp->checked_ns + CHECK_MIN_NS;
    return now_ns;
}

uint64_t stamp_time(struct stamp *stamp, uint64_t raw, uint64_t now_ns)
{
    if (stamp->kind == STAMP_UNDECIDED)
        decide_kind(stamp, raw, now_ns);
    if (stamp->kind == STAMP_NONE)
        return now_ns;
    uint64_t at_ns = convert(stamp, stamp->kind, raw);
    uint64_t age_max_ns = stamp->kind == STAMP_PORT ? PORT_AGE_MAX_NS : AGE_MAX_NS;
    return is_believed(stamp, at_ns, now_ns, age_max_ns) ? at_ns : refuse(stamp, now_ns);
}

uint64_t stamp_bound_ns(const struct stamp *stamp)
{
    switch (stamp->kind) {
    case STAMP_PORT:
        return stamp->line_bound_ns;
    case STAMP_REALTIME_NS:
    case STAMP_TAI_NS:
        return stamp->pair.bound_ns;
    case STAMP_REALTIME_US:
        return stamp->pair.bound_ns + 1000;
    default:
        return 0;
    }
}
