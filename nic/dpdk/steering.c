/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: at every moment, also between two rules made or taken away, each frame of others has its way: the rule
 * that carries frames on is made before the one that sends them there, and goes after it. Rules for messages' edges lie
 * in group 1, since the BTH cannot be matched in group 0 (DPDK's guide to mlx5); in the e-switch the frames then go on
 * in group 2. An Ethernet rule without a VLAN item matches tagged frames as well there.
 */
#include "nic/dpdk/steering.h"

#include <errno.h>
#include <string.h>

#include "nic/frame/opcode.h"
#include "wire/log.h"

#define GROUP_ROOT   0
#define GROUP_EDGES  1
#define GROUP_ONWARD 2
#define LAST         1 /* priority of what is left over */

static void add_rule(struct steering_plan *plan, const struct steering_rule *rule)
{
    struct steering_rule *added = &plan->rules[plan->rules_count++];

    *added = *rule;
    added->port = plan->port.id;
    added->in_switch = plan->mode == STEERING_MIRROR && rule->fate != STEERING_TO_QUEUES;
}

/* What lets frames in: one rule for each form of RoCE. */
static void add_entries(struct steering_plan *plan, enum steering_fate fate, uint32_t next_group)
{
    struct steering_rule rule = {.group = GROUP_ROOT, .fate = fate, .next_group = next_group};

    rule.source_port_mask = plan->flows_part > 1 ? (uint16_t)(plan->flows_part - 1) : 0;
    rule.network = STEERING_IPV4;
    add_rule(plan, &rule);
    rule.network = STEERING_IPV6;
    rule.not_seen = "RoCE over IPv6";
    add_rule(plan, &rule);
    if (plan->flows_part > 1 || plan->edges_only)
        return; /* has no UDP source port; and its BTH cannot be matched */
    rule.network = STEERING_ROCE_V1;
    rule.not_seen = "RoCE v1 (Ethernet type 0x8915)";
    add_rule(plan, &rule);
}

/* `fate` is for frames in the middle of a message, `rest` for all others. */
static void add_edges(struct steering_plan *plan, enum steering_fate fate, enum steering_fate rest)
{
    static const enum steering_network networks[] = {STEERING_IPV4, STEERING_IPV6};
    struct steering_rule rule = {.group = GROUP_EDGES, .priority = LAST, .fate = rest, .next_group = GROUP_ONWARD};

    add_rule(plan, &rule);
    rule = (struct steering_rule){.group = GROUP_EDGES, .fate = fate, .has_opcode = true, .next_group = GROUP_ONWARD};
    for (size_t n = 0; n < sizeof networks / sizeof networks[0]; n++) {
        rule.network = networks[n];
        for (unsigned number = 0; number <= UINT8_MAX; number++) {
            const struct opcode *opcode = opcode_find((uint8_t)number);
            if (opcode == NULL || opcode->position != OPCODE_MIDDLE)
                continue;
            rule.opcode = (uint8_t)number;
            add_rule(plan, &rule);
        }
    }
}

static void plan_take(struct steering_plan *plan)
{
    plan->isolates = plan->port.is_shared;
    if (!plan->edges_only) {
        add_entries(plan, STEERING_TO_QUEUES, 0);
        return;
    }
    add_edges(plan, STEERING_DISCARD, STEERING_TO_QUEUES);
    add_entries(plan, STEERING_TO_GROUP, GROUP_EDGES);
}

static void plan_mirror(struct steering_plan *plan)
{
    const struct steering_rule onward = {
        .group = GROUP_ONWARD, .fate = STEERING_TO_OTHER_SIDE, .other_side = plan->port.other_side};

    plan->isolates = true;
    add_rule(plan, &onward);
    add_entries(plan, STEERING_TO_QUEUES, 0); /* where the copies arrive */
    if (!plan->edges_only) {
        add_entries(plan, STEERING_COPY_AND_TO_GROUP, GROUP_ONWARD);
        return;
    }
    add_edges(plan, STEERING_TO_GROUP, STEERING_COPY_AND_TO_GROUP);
    add_entries(plan, STEERING_TO_GROUP, GROUP_EDGES);
}

static void make_rules(struct steering_plan *plan)
{
    plan->rules_count = 0;
    plan->isolates = false;
    if (plan->mode == STEERING_TAKE)
        plan_take(plan);
    else if (plan->mode == STEERING_MIRROR)
        plan_mirror(plan);
}

static int check_mirror(const struct steering_port *port)
{
    if (!port->has_switch)
        return log_error_return(
            -ENOTSUP,
            "port %s: has no e-switch that is ours, so its frames cannot be mirrored: run on the DPU "
            "with the e-switch in switchdev mode, or give --steering take where no job uses this port",
            port->name);
    if (!port->has_other_side)
        return log_error_return(-ENOTSUP,
                                "port %s: to mirror its frames, give the e-switch's two ports between which they go as "
                                "two --port (as 0000:03:00.0,representor=pf0 makes them), or --steering take where no "
                                "job uses this port",
                                port->name);
    return 0;
}

int steering_decide(struct steering_plan *plan, const struct steering_port *port, const struct steering_wish *wish)
{
    struct steering_plan made = {.port = *port, .mode = wish->mode, .flows_part = wish->flows_part};
    bool thins = wish->edges_only || wish->flows_part > 1;
    int error = 0;

    if (made.mode == STEERING_AUTO)
        made.mode = port->is_shared ? STEERING_MIRROR : thins ? STEERING_TAKE : STEERING_OFF;
    if (made.mode == STEERING_MIRROR)
        error = check_mirror(port);
    if (error != 0)
        return error;
    if (made.mode == STEERING_OFF && thins)
        return log_error_return(-ENOTSUP, "port %s: --steering off makes no rules, so nothing can be left out by them",
                                port->name);
    if (made.mode == STEERING_OFF && port->is_shared)
        log_warning("port %s: --steering off takes all frames that come to it from the kernel", port->name);
    made.edges_only = wish->edges_only && port->can_match_bth;
    if (wish->edges_only && !port->can_match_bth)
        log_warning("port %s: rules cannot match the BTH here (DPDK 23.07 or later has it): --edges-only is not "
                    "followed, all frames come",
                    port->name);
    make_rules(&made);
    *plan = made;
    return 0;
}

/* ---- printing ---- */

static void print_pattern(const struct steering_rule *rule, FILE *to)
{
    static const char *const networks[] = {
        [STEERING_ANYTHING] = "eth",
        [STEERING_IPV4] = "eth / ipv4 / udp dst is 4791",
        [STEERING_IPV6] = "eth / ipv6 / udp dst is 4791",
        [STEERING_ROCE_V1] = "eth type is 0x8915",
    };

    if (rule->in_switch)
        fprintf(to, "represented_port ethdev_port_id is %u / ", rule->port);
    fputs(networks[rule->network], to);
    if (rule->source_port_mask != 0)
        fprintf(to, " src spec 0 src mask 0x%04x", rule->source_port_mask);
    if (rule->has_opcode)
        fprintf(to, " / ib_bth opcode is 0x%02x", rule->opcode);
}

static void print_rule(const struct steering_rule *rule, FILE *to)
{
    fprintf(to, "flow create %u group %u priority %u %s pattern ", rule->port, rule->group, rule->priority,
            rule->in_switch ? "transfer" : "ingress");
    print_pattern(rule, to);
    fputs(" / end actions ", to);
    switch (rule->fate) {
    case STEERING_TO_QUEUES:
        fputs("rss", to);
        break;
    case STEERING_TO_GROUP:
        fprintf(to, "jump group %u", rule->next_group);
        break;
    case STEERING_COPY_AND_TO_GROUP:
        fprintf(to, "sample ratio 1 (port_representor port_id %u) / jump group %u", rule->port, rule->next_group);
        break;
    case STEERING_TO_OTHER_SIDE:
        fprintf(to, "represented_port ethdev_port_id %u", rule->other_side);
        break;
    case STEERING_DISCARD:
        fputs("drop", to);
        break;
    }
    fputs(" / end\n", to);
}

void steering_print(const struct steering_plan *plan, FILE *to)
{
    static const char *const modes[] = {"auto", "off", "take", "mirror"};

    fprintf(to, "port %s: steering %s%s\n", plan->port.name, modes[plan->mode],
            plan->rules_count == 0 ? ", no rules: all that comes to the port is read" : "");
    if (plan->isolates)
        fprintf(to, "flow isolate %u true\n", plan->port.id);
    for (size_t i = 0; i < plan->rules_count; i++)
        print_rule(&plan->rules[i], to);
}

/* ---- making and taking away ---- */

static const char *or_none(const char *why)
{
    return why == NULL ? "no reason given" : why;
}

/* 0 also when a rule that can be missed was refused. */
static int make_rule(struct steering *steering, size_t index)
{
    const struct steering_rule *rule = &steering->plan.rules[index];
    const char *why = NULL;

    steering->handles[index] = NULL;
    int error = steering->calls.validate(steering->calls.context, rule, &why);
    if (error == 0)
        error = steering->calls.create(steering->calls.context, rule, &steering->handles[index], &why);
    steering->made = index + 1;
    if (error == 0)
        return 0;
    steering->handles[index] = NULL;
    if (rule->not_seen == NULL)
        return log_error_return(error, "port %s: refuses the rule that steering rests on: %s (%s)",
                                steering->plan.port.name, or_none(why), strerror(-error));
    if (index == 0 || steering->plan.rules[index - 1].not_seen != rule->not_seen ||
        steering->handles[index - 1] != NULL)
        log_warning("port %s: %s is not seen: the rule for it is refused: %s", steering->plan.port.name, rule->not_seen,
                    or_none(why));
    return 0;
}

static int make_all(struct steering *steering)
{
    int error = 0;

    for (size_t i = 0; i < steering->plan.rules_count && error == 0; i++)
        error = make_rule(steering, i);
    if (error != 0)
        steering_end(steering);
    return error;
}

static void say_thinned(const struct steering_plan *plan)
{
    if (plan->edges_only)
        log_warning("port %s: only first and last frames of messages are seen: windows lack what is between them",
                    plan->port.name);
    if (plan->flows_part > 1)
        log_warning("port %s: one flow in %u is seen, by its UDP source port; RoCE v1 is not", plan->port.name,
                    plan->flows_part);
}

int steering_begin(struct steering *steering, const struct steering_plan *plan, const struct steering_calls *calls)
{
    *steering = (struct steering){.calls = *calls, .plan = *plan};
    int error = make_all(steering);

    if (error != 0 && steering->plan.edges_only) {
        log_warning("port %s: goes on without --edges-only: all frames come", plan->port.name);
        steering->plan.edges_only = false;
        make_rules(&steering->plan);
        error = make_all(steering);
    }
    if (error != 0)
        return log_error_return(
            -ENOTSUP, "port %s: cannot be steered as asked; --steering off reads all that comes to it%s",
            plan->port.name,
            plan->port.is_shared ? ", and takes it from the kernel: only for a port that nobody uses" : "");
    say_thinned(&steering->plan);
    return 0;
}

void steering_end(struct steering *steering)
{
    while (steering->made > 0) {
        void *handle = steering->handles[--steering->made];
        if (handle == NULL)
            continue;
        int error = steering->calls.destroy(steering->calls.context, handle);
        if (error != 0)
            log_warning("port %s: a rule cannot be taken away (%s); it goes when the program ends",
                        steering->plan.port.name, strerror(-error));
    }
}
