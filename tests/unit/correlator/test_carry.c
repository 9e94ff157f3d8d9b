/* SPDX-License-Identifier: BSD-2-Clause */
/* What a rank carried into a step, in made-up steps of two ranks and one operation each. */
#include "correlator/job/carry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS       1000000
#define STEP_NS  (1000 * MS)
#define STEPS    12
#define LATE_NS  (120 * MS)
#define OTHER_NS (12 * MS) /* from the other rank's begin to its first data */

/* Rank 1's step begins `begun_ns` behind rank 0's, and it computes `computed_ns`; it seems to have added LATE_NS. */
static int64_t added(int64_t begun_ns, int64_t computed_ns, int64_t *longer_ns)
{
    struct job job = {0};
    struct blame *blames = calloc(2 * STEPS, sizeof *blames);

    for (int step = 0; step < STEPS; step++) {
        ((struct operation *)array_add(&job.operations))->step = step;
        for (int rank = 0; rank < 2; rank++) {
            uint64_t begin_ns = (uint64_t)((step + 1) * (int64_t)STEP_NS + (rank == 1 ? begun_ns : 0));
            struct rank_operation *of = array_add(&job.rank_operations);
            of->operation = step;
            of->rank = rank;
            of->record.enqueued_ns = begin_ns;
            of->record.gpu_ready_ns = begin_ns + (uint64_t)(rank == 1 ? computed_ns : OTHER_NS);
            blames[2 * step + rank] = (struct blame){.known = true, .place = 1};
            blames[2 * step + rank].own_ns[BLAME_GPU] = rank == 1 ? LATE_NS : 0;
        }
    }
    carry_leave_out(&job, blames);
    int64_t own_ns = blames[2 * (STEPS - 1) + 1].own_ns[BLAME_GPU];
    *longer_ns = blames[2 * (STEPS - 1) + 1].longer_ns;
    free(blames);
    array_fini(&job.operations);
    array_fini(&job.rank_operations);
    return own_ns;
}

static void what_was_carried_is_not_its_own(void **state)
{
    int64_t longer_ns;

    (void)state;
    assert_int_equal(added(100 * MS, OTHER_NS + 20 * MS, &longer_ns), 20 * MS);
    assert_int_equal(longer_ns, 20 * MS);
    assert_int_equal(added(LATE_NS, OTHER_NS, &longer_ns), 0);
}

/* It computed all of that, and the other rank takes 12 ms of its own, which is no reason to take them off. */
static void what_was_computed_stays_whole(void **state)
{
    int64_t longer_ns;

    (void)state;
    assert_int_equal(added(0, LATE_NS, &longer_ns), LATE_NS);
    assert_int_equal(longer_ns, LATE_NS - OTHER_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_carried_is_not_its_own),
        cmocka_unit_test(what_was_computed_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
