/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Periods. Invariant: within the stretch returned, signatures[i] == signatures[i + period] wherever both lie in it. A
 * run of equal buckets inside a step repeats with period 1, but explains only that run: the winner must explain nine
 * tenths of what the best one does.
 */
#include "correlator/job/period.h"

#define EXPLAINS_TENTHS 9
#define PERIOD_MAX      4096

/* The longest stretch that repeats with `period`. */
static size_t stretch(const uint64_t *signatures, size_t count, size_t period, size_t *from)
{
    size_t best = 0;
    size_t begin = 0;

    for (size_t i = 0; i + period <= count; i++) {
        if (i + period < count && signatures[i] == signatures[i + period])
            continue;
        size_t length = i + period - begin;
        if (length >= 2 * period && length > best) {
            best = length;
            *from = begin;
        }
        begin = i + 1;
    }
    return best;
}

size_t period_find(const uint64_t *signatures, size_t count, size_t *from, size_t *to)
{
    size_t longest = count / 2 < PERIOD_MAX ? count / 2 : PERIOD_MAX;
    size_t most = 0;
    size_t begin = 0;

    for (size_t period = 1; period <= longest; period++) {
        size_t length = stretch(signatures, count, period, &begin);
        most = length > most ? length : most;
    }
    for (size_t period = 1; period <= longest && most > 0; period++) {
        size_t length = stretch(signatures, count, period, &begin);
        if (length * 10 < most * EXPLAINS_TENTHS)
            continue;
        *from = begin;
        *to = begin + length;
        return period;
    }
    return 0;
}
