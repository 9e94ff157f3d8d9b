/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Critical paths and costs in a made-up job: rank 2 is late by a known time at the first operation of each step from
 * step 4 on. What the step waited for, and how long it would have been without, follow from that by arithmetic.
 */
#include "correlator/job/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "correlator/analysis.h"
#include "tests/unit/correlator/world.h"
#include "wire/log.h"

#define LATE_RANK  2
#define FIRST_STEP 4
#define LATE_NS    (67 * MADE_MS)
#define NOISE_NS   (2 * MADE_MS) /* what chance adds in the made-up job, over all operations of a step */

static const struct made_options options = {.ranks = 4,
                                            .channels = 2,
                                            .steps = 12,
                                            .seed = 5,
                                            .fault = MADE_GPU,
                                            .fault_rank = LATE_RANK,
                                            .fault_first_step = FIRST_STEP,
                                            .fault_ns = LATE_NS};

struct made {
    struct made_job *job;
    struct analysis *analysis;
};

static struct made make(enum made_fault fault)
{
    struct made_options own = options;

    own.fault = fault;
    struct made made = {.job = made_create(&own)};
    made.analysis = world_analysis(made.job);
    assert_int_equal(made.analysis->job.steps.count, own.steps);
    return made;
}

static void end(struct made *made)
{
    analysis_destroy(&made->analysis);
    made_destroy(made->job);
}

static void a_late_rank_costs_what_all_waited_for_it(enum made_fault fault)
{
    struct made made = make(fault);
    const struct job *job = &made.analysis->job;

    for (size_t i = 0; i < job->rank_steps.count; i++) {
        const struct rank_step *own = &job->rank_steps.items[i];
        bool is_late = own->rank == LATE_RANK && own->step >= FIRST_STEP;
        assert_in_range(own->cost_ns, is_late ? LATE_NS - NOISE_NS : 0, is_late ? LATE_NS + NOISE_NS : NOISE_NS);
    }
    end(&made);
}

static void a_late_gpu_costs_its_delay(void **state)
{
    (void)state;
    a_late_rank_costs_what_all_waited_for_it(MADE_GPU);
}

static void a_late_host_costs_its_delay(void **state)
{
    (void)state;
    a_late_rank_costs_what_all_waited_for_it(MADE_HOST);
}

/* Without what it cost, a late step is as long as the others. */
static void a_step_without_its_straggler_is_like_the_others(void **state)
{
    struct made made = make(MADE_GPU);
    const struct job *job = &made.analysis->job;
    int64_t quiet_ns = (int64_t)job->steps.items[FIRST_STEP - 1].duration_ns;

    (void)state;
    for (size_t i = FIRST_STEP; i < job->steps.count; i++) {
        const struct step *step = &job->steps.items[i];
        int64_t without_ns = (int64_t)step->duration_ns - job->rank_steps.items[step->first_rank + LATE_RANK].cost_ns;
        assert_in_range(without_ns, quiet_ns - (int64_t)NOISE_NS, quiet_ns + (int64_t)NOISE_NS);
    }
    end(&made);
}

/* From the step's start to its last end without a gap, and in late steps by way of the late rank to the first
 * operation. */
static void a_path_leads_from_start_to_end(void **state)
{
    struct made made = make(MADE_GPU);
    const struct job *job = &made.analysis->job;
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < job->steps.count; i++) {
        const struct step *step = &job->steps.items[i];
        uint64_t until_ns = step->start_ns, waited_ns = 0;
        for (; at < job->path.count && job->path.items[at].step == (int32_t)i; at++) {
            const struct path_part *part = &job->path.items[at];
            bool is_first = job->operations.items[part->operation].place == 0;
            assert_int_equal(part->from_ns, until_ns);
            assert_true(part->to_ns > part->from_ns);
            until_ns = part->to_ns;
            waited_ns += !part->is_transfer && part->rank == LATE_RANK && is_first ? part->to_ns - part->from_ns : 0;
        }
        assert_in_range(until_ns, step->end_ns - NOISE_NS, step->end_ns);
        if (i >= FIRST_STEP)
            assert_true(waited_ns >= LATE_NS);
    }
    assert_int_equal(at, job->path.count);
    end(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_gpu_costs_its_delay),
        cmocka_unit_test(a_late_host_costs_its_delay),
        cmocka_unit_test(a_step_without_its_straggler_is_like_the_others),
        cmocka_unit_test(a_path_leads_from_start_to_end),
    };
    log_init("test", LOG_ERROR);
    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
