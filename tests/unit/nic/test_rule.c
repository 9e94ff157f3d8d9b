/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering's rules as rte_flow gets them, against a stand-in for DPDK's side of it (the functions below are found
 * before the library's). Headers to match are read by their byte offsets in the protocols, not by DPDK's fields.
 */
#include "nic/dpdk/rule.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#define TEXT_BYTES 256
#define RULES_MAX  64
#define PROXY      9 /* takes the e-switch's rules */

struct rte_flow {
    char text[TEXT_BYTES];
    uint16_t port;
};

static struct rte_flow made[RULES_MAX];
static size_t made_count, held_count, validated_count;
static const char *refusal; /* refuses rules whose text has it */

static unsigned be16(const uint8_t *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

static bool is_zero(const uint8_t *bytes, size_t from, size_t to)
{
    while (from < to && bytes[from] == 0)
        from++;
    return from == to;
}

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char *text, const char *format, ...)
{
    size_t used = strlen(text);
    va_list values;

    va_start(values, format);
    vsnprintf(text + used, TEXT_BYTES - used, format, values);
    va_end(values);
}

static void add_udp(char *text, const uint8_t *value, const uint8_t *mask)
{
    assert_int_equal(be16(mask + 2), 0xffff);
    assert_true(is_zero(mask, 4, 8));
    assert_int_equal(be16(value), 0);
    add(text, "udp to %u", be16(value + 2));
    if (be16(mask) != 0)
        add(text, " from 0/%x", be16(mask));
}

#ifdef HAVE_IB_BTH
static void add_bth(char *text, const uint8_t *value, const uint8_t *mask)
{
    assert_int_equal(mask[0], 0xff);
    assert_true(is_zero(mask, 1, 12));
    add(text, "bth %02x ", value[0]);
}
#endif

static void add_item(char *text, const struct rte_flow_item *item)
{
    switch (item->type) {
    case RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT:
        add(text, "from %u ", ((const struct rte_flow_item_ethdev *)item->spec)->port_id);
        break;
    case RTE_FLOW_ITEM_TYPE_ETH:
        add(text, "eth ");
        if (item->spec == NULL)
            break;
        assert_int_equal(be16((const uint8_t *)item->mask + 12), 0xffff);
        assert_true(is_zero(item->mask, 0, 12));
        add(text, "%04x ", be16((const uint8_t *)item->spec + 12));
        break;
    case RTE_FLOW_ITEM_TYPE_IPV4:
        assert_null(item->spec);
        add(text, "ipv4 ");
        break;
    case RTE_FLOW_ITEM_TYPE_IPV6:
        assert_null(item->spec);
        add(text, "ipv6 ");
        break;
    case RTE_FLOW_ITEM_TYPE_UDP:
        add_udp(text, item->spec, item->mask);
        add(text, " ");
        break;
#ifdef HAVE_IB_BTH
    case RTE_FLOW_ITEM_TYPE_IB_BTH:
        add_bth(text, item->spec, item->mask);
        break;
#endif
    default:
        fail_msg("item %d", item->type);
    }
}

static void add_spread(char *text, const struct rte_flow_action_rss *spread)
{
    add(text, "spread by %llx with %u %02x over", (unsigned long long)spread->types, spread->key_len,
        spread->key_len == 0 ? 0 : spread->key[1]);
    for (unsigned i = 0; i < spread->queue_num; i++)
        add(text, " %u", spread->queue[i]);
    add(text, " ");
}

static void add_action(char *text, const struct rte_flow_action *action)
{
    const struct rte_flow_action_sample *sample = action->conf;

    switch (action->type) {
    case RTE_FLOW_ACTION_TYPE_QUEUE:
        add(text, "queue %u ", ((const struct rte_flow_action_queue *)action->conf)->index);
        break;
    case RTE_FLOW_ACTION_TYPE_RSS:
        add_spread(text, action->conf);
        break;
    case RTE_FLOW_ACTION_TYPE_JUMP:
        add(text, "group %u ", ((const struct rte_flow_action_jump *)action->conf)->group);
        break;
    case RTE_FLOW_ACTION_TYPE_DROP:
        add(text, "drop ");
        break;
    case RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT:
        add(text, "out of %u ", ((const struct rte_flow_action_ethdev *)action->conf)->port_id);
        break;
    case RTE_FLOW_ACTION_TYPE_SAMPLE:
        assert_int_equal(sample->ratio, 1);
        assert_int_equal(sample->actions[0].type, RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR);
        assert_int_equal(sample->actions[1].type, RTE_FLOW_ACTION_TYPE_END);
        add(text, "copy to %u ", ((const struct rte_flow_action_ethdev *)sample->actions[0].conf)->port_id);
        break;
    default:
        fail_msg("action %d", action->type);
    }
}

static void describe(char *text, const struct rte_flow_attr *attributes, const struct rte_flow_item *items,
                     const struct rte_flow_action *actions)
{
    assert_int_equal(attributes->ingress + attributes->transfer, 1);
    assert_int_equal(attributes->egress, 0);
    text[0] = '\0';
    add(text, "%s %u.%u: ", attributes->transfer ? "switch" : "port", attributes->group, attributes->priority);
    for (; items->type != RTE_FLOW_ITEM_TYPE_END; items++)
        add_item(text, items);
    add(text, "-> ");
    for (; actions->type != RTE_FLOW_ACTION_TYPE_END; actions++)
        add_action(text, actions);
}

static bool is_refused(const char *text, struct rte_flow_error *error)
{
    if (refusal == NULL || strstr(text, refusal) == NULL)
        return false;
    error->message = "the card cannot";
    return true;
}

int rte_flow_validate(uint16_t port, const struct rte_flow_attr *attributes, const struct rte_flow_item items[],
                      const struct rte_flow_action actions[], struct rte_flow_error *error)
{
    char text[TEXT_BYTES];

    (void)port;
    validated_count++;
    describe(text, attributes, items, actions);
    return is_refused(text, error) ? -ENOTSUP : 0;
}

struct rte_flow *rte_flow_create(uint16_t port, const struct rte_flow_attr *attributes,
                                 const struct rte_flow_item items[], const struct rte_flow_action actions[],
                                 struct rte_flow_error *error)
{
    (void)error;
    made[made_count].port = port;
    describe(made[made_count].text, attributes, items, actions);
    held_count++;
    return &made[made_count++];
}

int rte_flow_destroy(uint16_t port, struct rte_flow *flow, struct rte_flow_error *error)
{
    (void)error;
    assert_int_equal(port, flow->port);
    assert_ptr_equal(flow, &made[--held_count]); /* the last one first */
    return 0;
}

int rte_flow_isolate(uint16_t port, int set, struct rte_flow_error *error)
{
    assert_int_equal(set, 1);
    error->message = "the card cannot";
    rte_errno = ENOTSUP;
    return port == 7 ? 0 : -ENOTSUP;
}

int rte_flow_pick_transfer_proxy(uint16_t port, uint16_t *proxy, struct rte_flow_error *error)
{
    (void)error;
    *proxy = PROXY;
    return port == 3 ? 0 : -EINVAL;
}

static void begin(struct steering *steering, struct rule_context *context, enum steering_mode mode, bool edges_only,
                  unsigned flows_part)
{
    const struct steering_port port = {.id = 3,
                                       .name = "test",
                                       .is_shared = true,
                                       .has_switch = true,
                                       .has_other_side = true,
                                       .other_side = 4,
                                       .can_match_bth = rule_can_match_bth()};
    const struct steering_wish wish = {.mode = mode, .edges_only = edges_only, .flows_part = flows_part};
    const struct steering_calls calls = rule_calls(context);
    struct steering_plan plan;

    made_count = held_count = validated_count = 0;
    assert_int_equal(steering_decide(&plan, &port, &wish), 0);
    assert_int_equal(steering_begin(steering, &plan, &calls), 0);
}

static void test_take(void **state)
{
    struct rule_context one = {.queues_count = 1};
    struct rule_context two = {.queues = {0, 1}, .queues_count = 2, .spread_by = RTE_ETH_RSS_NONFRAG_IPV4_UDP};
    struct steering steering;

    spread_key(two.spread_key, 40);
    two.spread_key_bytes = 40;
    (void)state;
    begin(&steering, &one, STEERING_TAKE, false, 1);
    assert_int_equal(made_count, 3);
    assert_string_equal(made[0].text, "port 0.0: eth ipv4 udp to 4791 -> queue 0 ");
    assert_string_equal(made[1].text, "port 0.0: eth ipv6 udp to 4791 -> queue 0 ");
    assert_string_equal(made[2].text, "port 0.0: eth 8915 -> queue 0 ");
    assert_int_equal(made[0].port, 3);
    assert_int_equal(validated_count, 3);
    steering_end(&steering);
    assert_int_equal(held_count, 0);
    begin(&steering, &two, STEERING_TAKE, false, 4);
    assert_string_equal(made[0].text, "port 0.0: eth ipv4 udp to 4791 from 0/3 -> spread by 20 with 40 5a over 0 1 ");
    steering_end(&steering);
}

static void test_mirror(void **state)
{
    struct rule_context context = {.queues_count = 1};
    struct steering steering;

    (void)state;
    begin(&steering, &context, STEERING_AUTO, false, 1);
    assert_int_equal(made_count, 7);
    assert_string_equal(made[0].text, "switch 2.0: from 3 eth -> out of 4 ");
    assert_string_equal(made[1].text, "port 0.0: eth ipv4 udp to 4791 -> queue 0 ");
    assert_string_equal(made[4].text, "switch 0.0: from 3 eth ipv4 udp to 4791 -> copy to 3 group 2 ");
    for (size_t i = 0; i < made_count; i++)
        assert_int_equal(made[i].port, made[i].text[0] == 's' ? PROXY : 3);
    steering_end(&steering);
    assert_int_equal(held_count, 0);
}

static void test_refused(void **state)
{
    struct rule_context context = {.queues_count = 1};
    struct steering steering;

    (void)state;
    refusal = "ipv6";
    begin(&steering, &context, STEERING_TAKE, false, 1);
    refusal = NULL;
    assert_int_equal(made_count, 2);
    assert_string_equal(context.why, "the card cannot");
    steering_end(&steering);
    assert_int_equal(held_count, 0);
}

#ifdef HAVE_IB_BTH
static void test_edges(void **state)
{
    struct rule_context context = {.queues_count = 1};
    struct steering steering;

    (void)state;
    begin(&steering, &context, STEERING_TAKE, true, 1);
    assert_string_equal(made[0].text, "port 1.1: eth -> queue 0 ");
    assert_string_equal(made[1].text, "port 1.0: eth ipv4 udp to 4791 bth 01 -> drop ");  /* RC SEND MIDDLE */
    assert_string_equal(made[11].text, "port 1.0: eth ipv4 udp to 4791 bth ae -> drop "); /* XRC READ RESPONSE MIDDLE */
    assert_string_equal(made[12].text, "port 1.0: eth ipv6 udp to 4791 bth 01 -> drop ");
    assert_string_equal(made[made_count - 1].text, "port 0.0: eth ipv6 udp to 4791 -> group 1 ");
    steering_end(&steering);
    begin(&steering, &context, STEERING_MIRROR, true, 1);
    assert_string_equal(made[3].text, "switch 1.1: from 3 eth -> copy to 3 group 2 ");
    assert_string_equal(made[4].text, "switch 1.0: from 3 eth ipv4 udp to 4791 bth 01 -> group 2 ");
    steering_end(&steering);
    assert_int_equal(held_count, 0);
}
#else
/* The BTH is not known: nothing is left out by it. */
static void test_edges(void **state)
{
    struct rule_context context = {.queues_count = 1};
    struct steering steering;

    (void)state;
    begin(&steering, &context, STEERING_TAKE, true, 1);
    assert_false(steering.plan.edges_only);
    assert_int_equal(made_count, 3);
    steering_end(&steering);
}
#endif

static void test_isolate(void **state)
{
    (void)state;
    assert_int_equal(rule_isolate(7), 0);
    assert_int_equal(rule_isolate(8), -ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),  cmocka_unit_test(test_mirror),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_edges), cmocka_unit_test(test_isolate),
    };

    return cmocka_run_group_tests_name("rule", tests, NULL, NULL);
}
