/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering against a stand-in port that records the calls, refuses what the test says, and holds the rules that are
 * there. After each call it checks what must hold at every moment: a frame that no rule of ours is for, and one that is
 * mirrored, has a way on.
 */
#include "nic/dpdk/steering.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CALLS_MAX 256

struct call {
    char what; /* v, c, d */
    struct steering_rule rule;
};

struct stand_in {
    struct call calls[CALLS_MAX];
    size_t calls_count;
    struct steering_rule *held[STEERING_RULES_MAX];
    size_t held_count;
    bool (*refuses)(const struct steering_rule *rule);
    bool refuses_late; /* accepts when asked, and fails when it is to be done */
};

static void note(struct stand_in *port, char what, const struct steering_rule *rule)
{
    assert_in_range(port->calls_count, 0, CALLS_MAX - 1);
    port->calls[port->calls_count++] = (struct call){what, *rule};
}

static bool holds_group(const struct stand_in *port, uint32_t group)
{
    for (size_t i = 0; i < port->held_count; i++) {
        if (port->held[i]->group == group && port->held[i]->network == STEERING_ANYTHING)
            return true;
    }
    return false;
}

static size_t count_held(const struct stand_in *port, uint32_t group, enum steering_fate fate)
{
    size_t count = 0;

    for (size_t i = 0; i < port->held_count; i++)
        count += port->held[i]->group == group && port->held[i]->fate == fate;
    return count;
}

/* Every rule that sends frames on to a group: there is one for all frames there. */
static void check_no_dead_end(const struct stand_in *port)
{
    for (size_t i = 0; i < port->held_count; i++) {
        enum steering_fate fate = port->held[i]->fate;
        if (fate == STEERING_TO_GROUP || fate == STEERING_COPY_AND_TO_GROUP)
            assert_true(holds_group(port, port->held[i]->next_group));
        if (port->held[i]->in_switch)
            assert_true(fate != STEERING_DISCARD && fate != STEERING_TO_QUEUES);
        if (fate == STEERING_COPY_AND_TO_GROUP) /* somebody reads the copies */
            assert_true(count_held(port, 0, STEERING_TO_QUEUES) > 0);
    }
}

static int validate(void *context, const struct steering_rule *rule, const char **why)
{
    struct stand_in *port = context;

    note(port, 'v', rule);
    if (port->refuses == NULL || port->refuses_late || !port->refuses(rule))
        return 0;
    *why = "not supported here";
    return -ENOTSUP;
}

static int create(void *context, const struct steering_rule *rule, void **handle, const char **why)
{
    struct stand_in *port = context;

    note(port, 'c', rule);
    if (port->refuses != NULL && port->refuses(rule)) {
        *why = "no room";
        return -ENOSPC;
    }
    struct steering_rule *held = malloc(sizeof *held);
    assert_non_null(held);
    *held = *rule;
    port->held[port->held_count++] = held;
    *handle = held;
    check_no_dead_end(port);
    return 0;
}

static int destroy(void *context, void *handle)
{
    struct stand_in *port = context;
    size_t at = 0;

    while (at < port->held_count && port->held[at] != handle)
        at++;
    assert_in_range(at, 0, port->held_count - 1);
    note(port, 'd', port->held[at]);
    port->held_count--;
    memmove(&port->held[at], &port->held[at + 1], (port->held_count - at) * sizeof port->held[0]);
    free(handle);
    check_no_dead_end(port);
    return 0;
}

static struct steering_calls calls_of(struct stand_in *port)
{
    return (struct steering_calls){.validate = validate, .create = create, .destroy = destroy, .context = port};
}

static const struct steering_port plain = {.id = 3, .name = "plain", .can_match_bth = true};
static const struct steering_port shared = {.id = 3, .name = "shared", .is_shared = true, .can_match_bth = true};
static const struct steering_port on_switch = {.id = 3,
                                               .name = "wire",
                                               .is_shared = true,
                                               .has_switch = true,
                                               .has_other_side = true,
                                               .other_side = 4,
                                               .can_match_bth = true};

static void decide(struct steering_plan *plan, const struct steering_port *port, enum steering_mode mode,
                   bool edges_only, unsigned flows_part)
{
    const struct steering_wish wish = {.mode = mode, .edges_only = edges_only, .flows_part = flows_part};

    assert_int_equal(steering_decide(plan, port, &wish), 0);
}

/* What was made is taken away in the opposite order. */
static void check_order(const struct stand_in *port)
{
    size_t made = 0, taken = 0;
    struct steering_rule order[STEERING_RULES_MAX];

    for (size_t i = 0; i < port->calls_count; i++) {
        if (port->calls[i].what == 'c')
            order[made++] = port->calls[i].rule;
        else if (port->calls[i].what == 'd')
            assert_memory_equal(&port->calls[i].rule, &order[made - ++taken], sizeof order[0]);
    }
    assert_int_equal(made, taken);
    assert_int_equal(port->held_count, 0);
}

static void test_modes(void **state)
{
    struct steering_plan plan;
    const struct steering_wish automatic = {.mode = STEERING_AUTO};
    const struct steering_wish mirror = {.mode = STEERING_MIRROR};
    struct steering_port alone = on_switch;

    (void)state;
    alone.has_other_side = false;
    decide(&plan, &plain, STEERING_AUTO, false, 1);
    assert_int_equal(plan.mode, STEERING_OFF);
    assert_int_equal(plan.rules_count, 0);
    assert_false(plan.isolates);
    decide(&plan, &on_switch, STEERING_AUTO, false, 1);
    assert_int_equal(plan.mode, STEERING_MIRROR);
    assert_true(plan.isolates);
    assert_int_equal(steering_decide(&plan, &shared, &automatic), -ENOTSUP); /* would take the job's own frames */
    assert_int_equal(steering_decide(&plan, &alone, &automatic), -ENOTSUP);
    assert_int_equal(steering_decide(&plan, &plain, &mirror), -ENOTSUP);
    decide(&plan, &shared, STEERING_TAKE, false, 1);
    assert_true(plan.isolates);
    decide(&plan, &plain, STEERING_TAKE, false, 1);
    assert_false(plan.isolates);
    decide(&plan, &shared, STEERING_OFF, false, 1);
    assert_int_equal(plan.rules_count, 0);
}

static void test_take(void **state)
{
    struct stand_in port = {.calls_count = 0};
    const struct steering_calls calls = calls_of(&port);
    struct steering steering;
    struct steering_plan plan;

    (void)state;
    decide(&plan, &shared, STEERING_TAKE, false, 1);
    assert_int_equal(steering_begin(&steering, &plan, &calls), 0);
    assert_int_equal(port.held_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(port.held[i]->fate, STEERING_TO_QUEUES);
        assert_int_equal(port.held[i]->port, 3);
        assert_false(port.held[i]->in_switch);
        assert_int_equal(port.held[i]->source_port_mask, 0);
    }
    assert_int_equal(port.held[0]->network, STEERING_IPV4);
    assert_int_equal(port.held[1]->network, STEERING_IPV6);
    assert_int_equal(port.held[2]->network, STEERING_ROCE_V1);
    for (size_t i = 0; i < 6; i++) /* each is asked about before it is made */
        assert_int_equal(port.calls[i].what, i % 2 == 0 ? 'v' : 'c');
    steering_end(&steering);
    check_order(&port);
    steering_end(&steering); /* a second time: nothing */
    assert_int_equal(port.calls_count, 9);
}

static void test_mirror_leaves_the_way_open(void **state)
{
    struct stand_in port = {.calls_count = 0};
    const struct steering_calls calls = calls_of(&port);
    struct steering steering;
    struct steering_plan plan;

    (void)state;
    decide(&plan, &on_switch, STEERING_MIRROR, false, 1);
    assert_int_equal(steering_begin(&steering, &plan, &calls), 0);
    assert_int_equal(port.calls[1].rule.fate, STEERING_TO_OTHER_SIDE); /* the way on, first of all */
    assert_int_equal(port.calls[1].rule.other_side, 4);
    assert_int_equal(count_held(&port, 0, STEERING_COPY_AND_TO_GROUP), 3);
    assert_int_equal(count_held(&port, 0, STEERING_TO_QUEUES), 3);
    for (size_t i = 0; i < port.held_count; i++)
        assert_true(port.held[i]->in_switch == (port.held[i]->fate != STEERING_TO_QUEUES));
    steering_end(&steering);
    check_order(&port);
    assert_int_equal(port.calls[port.calls_count - 1].rule.fate, STEERING_TO_OTHER_SIDE);
}

/* The opcodes in the middle of a message, by the InfiniBand specification: RC, UC, RD, XRC. */
static const uint8_t middles[] = {0x01, 0x07, 0x0e, 0x21, 0x27, 0x41, 0x47, 0x4e, 0xa1, 0xa7, 0xae};

static void test_edges(void **state)
{
    static const enum steering_fate fates[] = {STEERING_DISCARD, STEERING_TO_GROUP};
    static const enum steering_fate rests[] = {STEERING_TO_QUEUES, STEERING_COPY_AND_TO_GROUP};

    (void)state;
    for (int mirrors = 0; mirrors < 2; mirrors++) {
        struct stand_in port = {.calls_count = 0};
        const struct steering_calls calls = calls_of(&port);
        struct steering steering;
        struct steering_plan plan;
        decide(&plan, mirrors ? &on_switch : &plain, mirrors ? STEERING_MIRROR : STEERING_TAKE, true, 1);
        assert_int_equal(steering_begin(&steering, &plan, &calls), 0);
        assert_int_equal(count_held(&port, 1, fates[mirrors]), 2 * sizeof middles);
        assert_int_equal(count_held(&port, 1, rests[mirrors]), 1);
        assert_int_equal(count_held(&port, 0, STEERING_TO_QUEUES), mirrors ? 2 : 0);
        for (size_t i = 0, seen = 0; i < port.held_count; i++) {
            if (!port.held[i]->has_opcode)
                continue;
            assert_int_equal(port.held[i]->opcode, middles[seen++ % sizeof middles]);
            assert_int_equal(port.held[i]->priority, 0);
            assert_int_equal(port.held[i]->group, 1);
        }
        assert_true(steering.plan.edges_only);
        steering_end(&steering);
        check_order(&port);
    }
}

static void test_part_of_flows(void **state)
{
    struct stand_in port = {.calls_count = 0};
    const struct steering_calls calls = calls_of(&port);
    struct steering steering;
    struct steering_plan plan;

    (void)state;
    decide(&plan, &on_switch, STEERING_AUTO, false, 8);
    assert_int_equal(steering_begin(&steering, &plan, &calls), 0);
    assert_int_equal(count_held(&port, 0, STEERING_COPY_AND_TO_GROUP), 2); /* IPv4 and IPv6: v1 has no UDP port */
    assert_int_equal(port.held[1]->source_port_mask, 7);
    steering_end(&steering);
    decide(&plan, &plain, STEERING_AUTO, false, 4); /* what is asked to be left out needs rules */
    assert_int_equal(plan.mode, STEERING_TAKE);
    const struct steering_wish impossible = {.mode = STEERING_OFF, .flows_part = 4};
    assert_int_equal(steering_decide(&plan, &plain, &impossible), -ENOTSUP);
}

static bool is_v6_or_v1(const struct steering_rule *rule)
{
    return rule->network == STEERING_IPV6 || rule->network == STEERING_ROCE_V1;
}

static bool is_bth(const struct steering_rule *rule)
{
    return rule->has_opcode;
}

static bool is_v4(const struct steering_rule *rule)
{
    return rule->network == STEERING_IPV4;
}

static bool is_onward(const struct steering_rule *rule)
{
    return rule->fate == STEERING_TO_OTHER_SIDE;
}

static void test_refused_levels(void **state)
{
    struct steering_plan plan;
    struct steering steering;

    (void)state;
    for (int late = 0; late < 2; late++) {
        struct stand_in port = {.refuses = is_v6_or_v1, .refuses_late = late};
        const struct steering_calls calls = calls_of(&port);
        decide(&plan, &shared, STEERING_TAKE, false, 1); /* goes on without what the port cannot do */
        assert_int_equal(steering_begin(&steering, &plan, &calls), 0);
        assert_int_equal(port.held_count, 1);
        assert_int_equal(port.held[0]->network, STEERING_IPV4);
        steering_end(&steering);
        assert_int_equal(port.held_count, 0);

        port = (struct stand_in){.refuses = is_bth, .refuses_late = late};
        decide(&plan, &on_switch, STEERING_MIRROR, true, 1); /* all frames instead of edges only */
        assert_int_equal(steering_begin(&steering, &plan, &calls), 0);
        assert_false(steering.plan.edges_only);
        assert_int_equal(count_held(&port, 0, STEERING_COPY_AND_TO_GROUP), 3);
        assert_int_equal(count_held(&port, 1, STEERING_TO_GROUP), 0);
        steering_end(&steering);
        assert_int_equal(port.held_count, 0);
    }
}

static void test_nothing_left(void **state)
{
    bool (*const refusals[])(const struct steering_rule *) = {is_v4, is_onward};
    struct steering_plan plan;
    struct steering steering;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct stand_in port = {.refuses = refusals[i]};
        const struct steering_calls calls = calls_of(&port);
        decide(&plan, &on_switch, STEERING_MIRROR, false, 1);
        assert_int_equal(steering_begin(&steering, &plan, &calls), -ENOTSUP);
        assert_int_equal(port.held_count, 0); /* none is left behind */
        steering_end(&steering);
    }
}

static void test_headers_without_bth(void **state)
{
    struct steering_port old = plain;
    struct steering_plan plan;

    (void)state;
    old.can_match_bth = false;
    decide(&plan, &old, STEERING_TAKE, true, 1);
    assert_false(plan.edges_only);
    assert_int_equal(plan.rules_count, 3);
    for (size_t i = 0; i < plan.rules_count; i++)
        assert_false(plan.rules[i].has_opcode);
}

static void test_print(void **state)
{
    static const char wanted[] =
        "port wire: steering mirror\n"
        "flow isolate 3 true\n"
        "flow create 3 group 2 priority 0 transfer pattern represented_port ethdev_port_id is 3 / eth / end actions "
        "represented_port ethdev_port_id 4 / end\n"
        "flow create 3 group 0 priority 0 ingress pattern eth / ipv4 / udp dst is 4791 src spec 0 src mask 0x0001 / "
        "end "
        "actions rss / end\n"
        "flow create 3 group 0 priority 0 ingress pattern eth / ipv6 / udp dst is 4791 src spec 0 src mask 0x0001 / "
        "end "
        "actions rss / end\n"
        "flow create 3 group 0 priority 0 transfer pattern represented_port ethdev_port_id is 3 / eth / ipv4 / udp dst "
        "is 4791 src spec 0 src mask 0x0001 / end actions sample ratio 1 (port_representor port_id 3) / jump group 2 / "
        "end\n";
    struct steering_plan plan;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    (void)state;
    decide(&plan, &on_switch, STEERING_AUTO, false, 2);
    steering_print(&plan, to);
    fclose(to);
    assert_int_equal(strncmp(text, wanted, strlen(wanted)), 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_mirror_leaves_the_way_open),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_part_of_flows),
        cmocka_unit_test(test_refused_levels),
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_headers_without_bth),
        cmocka_unit_test(test_print),
    };

    return cmocka_run_group_tests_name("steering", tests, NULL, NULL);
}
