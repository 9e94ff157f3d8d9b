/* SPDX-License-Identifier: BSD-2-Clause */
/* What the probes may take of the job's time: counts their hits, and has some taken away when they take more. */
#include "host/agent/agent_private.h"
#include "wire/log.h"

#define SECOND_NS 1000000000u
/* What following a thread takes when it leaves a CPU or comes to one, waking included: tests/bench/host/bench_switch.
 */
#define SWITCH_COST_NS 175

static void set_duty(void *context, enum probe_duty duty, bool on)
{
    const struct agent *agent = context;
    probe_set_duty(agent->probe, duty, on);
    if (duty == DUTY_MARKER && !on)
        tracker_markers_end(agent->tracker);
}

/* Of a group's calls the returns are hit too. A marker has an entry and a return. */
static void count_hits(struct agent *agent)
{
    struct budget_hits *hits = &agent->hits;
    const uint64_t calls = counter_read(agent->counters, COUNT_CALLS);
    const uint64_t groups = counter_read(agent->counters, COUNT_GROUPS);
    const uint64_t markers = counter_read(agent->counters, COUNT_MARKERS);
    if (probe_duty(agent->probe, DUTY_RETURN))
        hits->total[DUTY_RETURN][COST_RETURN] += calls - agent->calls;
    agent->calls = calls;
    hits->total[DUTY_ALWAYS][COST_ENTRY] = calls + 2 * groups;
    hits->total[DUTY_ALWAYS][COST_RETURN] = groups;
    hits->total[DUTY_MARKER][COST_ENTRY] = markers;
    hits->total[DUTY_MARKER][COST_RETURN] = markers;
    hits->total[DUTY_DELAY][COST_SWITCH] = 2 * counter_read(agent->counters, COUNT_SWITCHES);
    hits->processes = tracker_processes(agent->tracker);
}

void agent_keep_within_budget(struct agent *agent, uint64_t now_ns)
{
    count_hits(agent);
    agent_raise_counter(agent, COUNT_BACK_OFFS, budget_tick(agent->budget, now_ns, &agent->hits));
    probe_set_duty(agent->probe, DUTY_DELAY, agent->hits.processes != 0 && budget_allows(agent->budget, DUTY_DELAY));
}

static double share_of(const struct agent_options *options)
{
    return options->probe_time_ns == SECOND_NS ? 1e9 : (double)options->probe_time_ns / SECOND_NS;
}

void agent_reload(struct agent *agent, const struct agent_options *options)
{
    if (!reload_take(options->reload))
        return;
    budget_set_share(agent->budget, share_of(options));
    log_set_level(options->verbose ? LOG_DEBUG : LOG_INFO);
}

int agent_open_budget(struct agent *agent, const struct agent_options *options)
{
    struct cost cost;
    struct budget_options budget = {
        .share = share_of(options),
        .set = set_duty,
        .context = agent,
    };
    probe_cost(agent->probe, &cost);
    budget.cost_ns[COST_ENTRY] = cost.entry_ns;
    budget.cost_ns[COST_RETURN] = cost.return_ns;
    budget.cost_ns[COST_SWITCH] = SWITCH_COST_NS;
    return budget_create(&agent->budget, &budget);
}
