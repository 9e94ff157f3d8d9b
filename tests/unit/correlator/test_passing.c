/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a rank passes on in a tree, by hand: on channel 0 it is an inner node, which sends up only what came from its
 * children; on channel 1 a leaf, which sends what its GPU has.
 */
#include "correlator/node/passing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct scene {
    lane_list lanes[2];
    struct operation_cut cut;
};

/* A lane that has one slot of the operation before and one of the operation. */
static void add_lane(struct scene *scene, enum lane_direction direction, int32_t channel, uint64_t first_ns,
                     uint64_t last_ns)
{
    struct lane *lane = array_add(&scene->lanes[direction]);
    share_list *shares = &scene->cut.parts[direction].shares;

    lane->direction = direction;
    lane->channel = channel;
    *(struct slot *)array_add(&lane->slots) = (struct slot){10, 20, 20, 64, 0, true};
    *(struct slot *)array_add(&lane->slots) = (struct slot){first_ns, last_ns, last_ns, 64, 0, true};
    *(struct share *)array_add(shares) = (struct share){scene->lanes[direction].count - 1, 1, 2};
}

static void end(struct scene *scene)
{
    for (int direction = 0; direction < 2; direction++) {
        lane_fini(&scene->lanes[direction]);
        array_fini(&scene->cut.parts[direction].shares);
    }
}

static void test_a_leaf_on_one_channel(void **state)
{
    struct scene scene = {0};
    struct leaf_slot leaf = {0};

    (void)state;
    add_lane(&scene, LANE_RECEIVE, 0, 900, 1000); /* a child's, early */
    add_lane(&scene, LANE_RECEIVE, 0, 1100, 1200);
    add_lane(&scene, LANE_SEND, 0, 1300, 1400);    /* up, when both were there */
    add_lane(&scene, LANE_SEND, 1, 5000, 5100);    /* its own, when its GPU was ready */
    add_lane(&scene, LANE_RECEIVE, 1, 7000, 7100); /* down again */
    assert_int_equal(passing_ns(&scene.cut, &scene.lanes[LANE_RECEIVE], 0, 1300), 1200);
    assert_int_equal(passing_ns(&scene.cut, &scene.lanes[LANE_RECEIVE], 0, 1150), 1000);
    assert_int_equal(passing_ns(&scene.cut, &scene.lanes[LANE_RECEIVE], 1, 5000), 0);
    assert_int_equal(passing_ns(&scene.cut, &scene.lanes[LANE_RECEIVE], -1, UINT64_MAX), 7100);
    assert_true(passing_leaf(&scene.cut, &scene.lanes[LANE_SEND], &scene.lanes[LANE_RECEIVE], &leaf));
    assert_int_equal(leaf.first_ns, 5000);
    assert_int_equal(leaf.lane, 1);
    assert_int_equal(leaf.slot, 1);
    end(&scene);
}

/* Of two channels on which it is a leaf the one where it sent first; none where it passes on everywhere. */
static void test_a_leaf_on_several_or_none(void **state)
{
    struct scene scene = {0};
    struct leaf_slot leaf = {0};

    (void)state;
    add_lane(&scene, LANE_SEND, 0, 3000, 3100);
    add_lane(&scene, LANE_SEND, 1, 2000, 2100);
    assert_true(passing_leaf(&scene.cut, &scene.lanes[LANE_SEND], &scene.lanes[LANE_RECEIVE], &leaf));
    assert_int_equal(leaf.first_ns, 2000);
    add_lane(&scene, LANE_RECEIVE, 1, 1000, 1100);
    assert_true(passing_leaf(&scene.cut, &scene.lanes[LANE_SEND], &scene.lanes[LANE_RECEIVE], &leaf));
    assert_int_equal(leaf.first_ns, 3000);
    add_lane(&scene, LANE_RECEIVE, 0, 1000, 1100);
    leaf.first_ns = 99;
    assert_false(passing_leaf(&scene.cut, &scene.lanes[LANE_SEND], &scene.lanes[LANE_RECEIVE], &leaf));
    assert_int_equal(leaf.first_ns, 99);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_leaf_on_one_channel),
        cmocka_unit_test(test_a_leaf_on_several_or_none),
    };
    return cmocka_run_group_tests_name("passing", tests, NULL, NULL);
}
