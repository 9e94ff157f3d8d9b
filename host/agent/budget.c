/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: duties are given up in the order of `given_up` and taken up in the reverse, one a decision. What is given
 * up is tried again after a time that doubles with each failure, so that a job on the edge does not see probes come and
 * go.
 */
#include "host/agent/budget.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/log.h"

#define SECOND_NS    1000000000ull
#define RETRY_NS     (30 * SECOND_NS)
#define RETRY_MAX_NS (3600 * SECOND_NS)

/* What costs most and tells least comes first. */
static const struct {
    enum probe_duty duty;
    const char *tells;
} given_up[] = {
    {DUTY_RETURN, "when data calls outside of groups return, and with what result"},
    {DUTY_DELAY, "what keeps threads from running"},
    {DUTY_MARKER, "calls of the GPU's runtime, and so the data calls of graphs that are launched"},
};
#define STEPS (sizeof given_up / sizeof given_up[0])

struct budget {
    struct budget_options options;
    struct budget_hits before;
    uint64_t looked_ns;
    uint64_t retry_ns; /* when the last one that was given up is tried again */
    uint64_t patience_ns;
    size_t step; /* so many are given up */
    uint64_t times;
    double share;
};

int budget_create(struct budget **budget, const struct budget_options *options)
{
    struct budget *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the budget of probes");
    fresh->options = *options;
    fresh->patience_ns = RETRY_NS;
    *budget = fresh;
    return 0;
}

void budget_destroy(struct budget **budget)
{
    free(*budget);
    *budget = NULL;
}

static double share_of(const struct budget *budget, uint64_t now_ns, const struct budget_hits *hits)
{
    double spent_ns = 0;
    for (enum probe_duty duty = 0; duty < DUTIES; duty++)
        for (enum budget_cost cost = 0; cost < COSTS; cost++)
            spent_ns += (double)(hits->total[duty][cost] - budget->before.total[duty][cost]) *
                        (double)budget->options.cost_ns[cost];
    return hits->processes == 0 ? 0 : spent_ns / (double)(now_ns - budget->looked_ns) / (double)hits->processes;
}

static void give_up(struct budget *budget, uint64_t now_ns)
{
    log_warning("the probes take %.2f %% of the job's time, more than %.2f %%: no longer told: %s", budget->share * 100,
                budget->options.share * 100, given_up[budget->step].tells);
    budget->options.set(budget->options.context, given_up[budget->step].duty, false);
    budget->step++;
    budget->times++;
    budget->retry_ns = now_ns + budget->patience_ns;
    if (budget->patience_ns < RETRY_MAX_NS)
        budget->patience_ns *= 2;
}

static void take_up(struct budget *budget, uint64_t now_ns)
{
    budget->step--;
    log_info("told again: %s", given_up[budget->step].tells);
    budget->options.set(budget->options.context, given_up[budget->step].duty, true);
    budget->retry_ns = now_ns + budget->patience_ns;
}

uint64_t budget_tick(struct budget *budget, uint64_t now_ns, const struct budget_hits *hits)
{
    if (budget->looked_ns == 0)
        budget->looked_ns = now_ns;
    if (now_ns - budget->looked_ns < SECOND_NS)
        return budget->times;
    budget->share = share_of(budget, now_ns, hits);
    budget->before = *hits;
    budget->looked_ns = now_ns;
    if (budget->share > budget->options.share && budget->step < STEPS)
        give_up(budget, now_ns);
    else if (budget->step > 0 && budget->share < budget->options.share / 2 && now_ns >= budget->retry_ns)
        take_up(budget, now_ns);
    return budget->times;
}

void budget_set_share(struct budget *budget, double share)
{
    budget->options.share = share;
}

double budget_share(const struct budget *budget)
{
    return budget->share;
}

bool budget_allows(const struct budget *budget, enum probe_duty duty)
{
    for (size_t i = 0; i < budget->step; i++)
        if (given_up[i].duty == duty)
            return false;
    return true;
}
