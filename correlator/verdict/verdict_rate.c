/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rate that a slow link should have had. Its own is the best measure: the median over the steps of training in
 * which it was not slow. Where there are too few, that of the other links in the same step, which may differ by what
 * they carry. Invariant: what is compared with is said.
 */
#include <stdlib.h>

#include "correlator/verdict/verdict_private.h"

#define STEPS_MIN  3 /* of its own, to be a measure */
#define WARM_STEPS 2 /* that still make connections */

/* The paces of those that `takes` takes, sorted by nobody; to be freed. */
static int64_t *collect(const struct judge *judge, const struct pair_time *slow,
                        bool (*takes)(const struct judge *judge, const struct pair_time *pair,
                                      const struct pair_time *slow),
                        size_t *count)
{
    int64_t *paces = array_zeroed((judge->pairs.count + 1) * sizeof *paces);

    *count = 0;
    for (size_t i = 0; i < judge->pairs.count; i++)
        if (takes(judge, &judge->pairs.items[i], slow))
            paces[(*count)++] = (int64_t)judge->pairs.items[i].pace;
    return paces;
}

static bool is_itself_well(const struct judge *judge, const struct pair_time *pair, const struct pair_time *slow)
{
    return pair->from == slow->from && pair->to == slow->to && !pair->slow && pair->pace != 0 &&
           pair->step >= WARM_STEPS && judge->job->steps.items[pair->step].kind == STEP_TRAINING;
}

static bool is_peer(const struct judge *judge, const struct pair_time *pair, const struct pair_time *slow)
{
    (void)judge;
    return pair->step == slow->step && !pair->slow && pair->pace != 0 &&
           (pair->from != slow->from || pair->to != slow->to);
}

void judge_say_rate(const struct judge *judge, struct verdict *verdict, const struct pair_time *slow)
{
    size_t own_count, peers_count;
    int64_t *own = collect(judge, slow, is_itself_well, &own_count);
    int64_t *peers = collect(judge, slow, is_peer, &peers_count);

    if (own_count >= STEPS_MIN)
        judge_say(verdict, "; healthy, this very link had %.2f MB/s (median of %zu steps without the fault)",
                  1e6 / (double)array_middle(own, own_count), own_count);
    else if (peers_count != 0)
        judge_say(verdict,
                  "; too few steps are without the fault to tell this link's own healthy rate: its peers had %.2f MB/s "
                  "(median of %zu other links in this step)",
                  1e6 / (double)array_middle(peers, peers_count), peers_count);
    else
        judge_say(verdict, "; its healthy rate is not known: there are neither steps without the fault nor peers");
    free(own);
    free(peers);
}
