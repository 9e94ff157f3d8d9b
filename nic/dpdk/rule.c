/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rule of ours is one rte_flow rule. Invariant: a rule is built in full before it is handed out, on the stack; what
 * DPDK keeps of it, it copies. Rules of the e-switch go through the port that DPDK names for them.
 */
#include "nic/dpdk/rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "wire/log.h"

#define ROCE_UDP_PORT  4791
#define ROCE_V1_TYPE   0x8915
#define ITEMS_MAX      6
#define MIRROR_ACTIONS 2

/* One rule with everything that it points at. */
struct built {
    struct rte_flow_attr attributes;
    struct rte_flow_item items[ITEMS_MAX];
    unsigned items_count;
    struct rte_flow_item_ethdev from;
    struct rte_flow_item_eth ethernet, ethernet_mask;
    struct rte_flow_item_udp udp, udp_mask;
#ifdef HAVE_IB_BTH
    struct rte_flow_item_ib_bth bth, bth_mask;
#endif
    struct rte_flow_action actions[3];
    struct rte_flow_action copy[MIRROR_ACTIONS];
    struct rte_flow_action_rss spread;
    struct rte_flow_action_queue queue;
    struct rte_flow_action_jump jump;
    struct rte_flow_action_sample sample;
    struct rte_flow_action_ethdev self;
    struct rte_flow_action_ethdev other_side;
};

bool rule_can_match_bth(void)
{
#ifdef HAVE_IB_BTH
    return true;
#else
    return false;
#endif
}

static void add_item(struct built *built, enum rte_flow_item_type type, const void *value, const void *mask)
{
    built->items[built->items_count++] = (struct rte_flow_item){.type = type, .spec = value, .mask = mask};
}

static void add_udp(struct built *built, const struct steering_rule *rule)
{
    built->udp.hdr.dst_port = RTE_BE16(ROCE_UDP_PORT);
    built->udp_mask.hdr.dst_port = RTE_BE16(0xffff);
    built->udp_mask.hdr.src_port = rte_cpu_to_be_16(rule->source_port_mask);
    add_item(built, RTE_FLOW_ITEM_TYPE_UDP, &built->udp, &built->udp_mask);
}

static void add_bth(struct built *built, const struct steering_rule *rule)
{
#ifdef HAVE_IB_BTH
    built->bth.hdr.opcode = rule->opcode;
    built->bth_mask.hdr.opcode = 0xff;
    add_item(built, RTE_FLOW_ITEM_TYPE_IB_BTH, &built->bth, &built->bth_mask);
#else
    (void)built;
    (void)rule;
#endif
}

static void build_pattern(struct built *built, const struct steering_rule *rule)
{
    built->from.port_id = rule->port;
    if (rule->in_switch)
        add_item(built, RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT, &built->from, &rte_flow_item_ethdev_mask);
    built->ethernet.hdr.ether_type = RTE_BE16(ROCE_V1_TYPE);
    built->ethernet_mask.hdr.ether_type = RTE_BE16(0xffff);
    if (rule->network == STEERING_ROCE_V1)
        add_item(built, RTE_FLOW_ITEM_TYPE_ETH, &built->ethernet, &built->ethernet_mask);
    else
        add_item(built, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL);
    if (rule->network == STEERING_IPV4 || rule->network == STEERING_IPV6) {
        add_item(built, rule->network == STEERING_IPV4 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6, NULL, NULL);
        add_udp(built, rule);
    }
    if (rule->has_opcode)
        add_bth(built, rule);
    add_item(built, RTE_FLOW_ITEM_TYPE_END, NULL, NULL);
}

static struct rte_flow_action action_of(enum rte_flow_action_type type, const void *configuration)
{
    return (struct rte_flow_action){.type = type, .conf = configuration};
}

static struct rte_flow_action queue_action(struct built *built, const struct rule_context *context)
{
    if (context->queues_count == 1)
        return action_of(RTE_FLOW_ACTION_TYPE_QUEUE, &built->queue);
    built->spread = (struct rte_flow_action_rss){.func = RTE_ETH_HASH_FUNCTION_DEFAULT,
                                                 .types = context->spread_by,
                                                 .key_len = context->spread_key_bytes,
                                                 .key = context->spread_key_bytes == 0 ? NULL : context->spread_key,
                                                 .queue_num = context->queues_count,
                                                 .queue = context->queues};
    return action_of(RTE_FLOW_ACTION_TYPE_RSS, &built->spread);
}

static void build_actions(struct built *built, const struct steering_rule *rule, const struct rule_context *context)
{
    unsigned count = 0;

    built->jump.group = rule->next_group;
    built->self.port_id = rule->port;
    built->other_side.port_id = rule->other_side;
    switch (rule->fate) {
    case STEERING_TO_QUEUES:
        built->actions[count++] = queue_action(built, context);
        break;
    case STEERING_COPY_AND_TO_GROUP:
        built->copy[0] = action_of(RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR, &built->self);
        built->copy[1] = action_of(RTE_FLOW_ACTION_TYPE_END, NULL);
        built->sample = (struct rte_flow_action_sample){.ratio = 1, .actions = built->copy};
        built->actions[count++] = action_of(RTE_FLOW_ACTION_TYPE_SAMPLE, &built->sample);
        built->actions[count++] = action_of(RTE_FLOW_ACTION_TYPE_JUMP, &built->jump);
        break;
    case STEERING_TO_GROUP:
        built->actions[count++] = action_of(RTE_FLOW_ACTION_TYPE_JUMP, &built->jump);
        break;
    case STEERING_TO_OTHER_SIDE:
        built->actions[count++] = action_of(RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, &built->other_side);
        break;
    case STEERING_DISCARD:
        built->actions[count++] = action_of(RTE_FLOW_ACTION_TYPE_DROP, NULL);
        break;
    }
    built->actions[count] = action_of(RTE_FLOW_ACTION_TYPE_END, NULL);
}

static void build(struct built *built, const struct steering_rule *rule, const struct rule_context *context)
{
    *built = (struct built){.attributes = {.group = rule->group,
                                           .priority = rule->priority,
                                           .ingress = !rule->in_switch,
                                           .transfer = rule->in_switch}};
    build_pattern(built, rule);
    build_actions(built, rule, context);
}

/* The port that takes rules like this one. */
static uint16_t asked_port(uint16_t port, bool in_switch)
{
    uint16_t proxy;

    return in_switch && rte_flow_pick_transfer_proxy(port, &proxy, NULL) == 0 ? proxy : port;
}

static int refuse(struct rule_context *context, int error, const struct rte_flow_error *said, const char **why)
{
    snprintf(context->why, sizeof context->why, "%s", said->message == NULL ? rte_strerror(-error) : said->message);
    *why = context->why;
    return error;
}

static int validate_rule(void *opaque, const struct steering_rule *rule, const char **why)
{
    struct rule_context *context = opaque;
    struct rte_flow_error said = {.message = NULL};
    struct built built;

    build(&built, rule, context);
    int error = rte_flow_validate(asked_port(rule->port, rule->in_switch), &built.attributes, built.items,
                                  built.actions, &said);
    return error == 0 ? 0 : refuse(context, error, &said, why);
}

/* A handle that remembers whom to ask when the rule goes. */
struct made_rule {
    uint16_t port;
    struct rte_flow *flow;
};

static int create_rule(void *opaque, const struct steering_rule *rule, void **handle, const char **why)
{
    struct rule_context *context = opaque;
    struct rte_flow_error said = {.message = NULL};
    struct made_rule *made = malloc(sizeof *made);
    struct built built;

    if (made == NULL)
        return -ENOMEM;
    build(&built, rule, context);
    made->port = asked_port(rule->port, rule->in_switch);
    made->flow = rte_flow_create(made->port, &built.attributes, built.items, built.actions, &said);
    if (made->flow == NULL) {
        free(made);
        return refuse(context, rte_errno == 0 ? -EINVAL : -rte_errno, &said, why);
    }
    *handle = made;
    return 0;
}

static int destroy_rule(void *opaque, void *handle)
{
    struct made_rule *made = handle;
    struct rte_flow_error said = {.message = NULL};

    (void)opaque;
    int error = rte_flow_destroy(made->port, made->flow, &said);
    free(made);
    return error;
}

struct steering_calls rule_calls(struct rule_context *context)
{
    return (struct steering_calls){
        .validate = validate_rule, .create = create_rule, .destroy = destroy_rule, .context = context};
}

int rule_isolate(uint16_t port)
{
    struct rte_flow_error said = {.message = NULL};

    if (rte_flow_isolate(port, 1, &said) == 0)
        return 0;
    return log_error_return(
        -ENOTSUP,
        "port %u: cannot be asked to leave the kernel's frames alone (%s); --steering off reads all "
        "that comes to it, and takes it from the kernel: only for a port that nobody uses",
        port, said.message == NULL ? rte_strerror(rte_errno) : said.message);
}
