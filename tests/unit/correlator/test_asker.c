/* SPDX-License-Identifier: BSD-2-Clause */
#include "correlator/control/asker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/correlator/made_job.h"
#include "wire/batch.h"
#include "wire/link.h"
#include "wire/log.h"

#define FIRST_FAULTY 4
#define STEPS        10
#define NIC_AHEAD_NS 5000000000LL
#define PAUSE_US     260000 /* it asks four times a second at most */

/* A job whose NIC side is still there: the batch with its last heartbeat has not come. */
static struct analysis *running(const struct made_job *job)
{
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);

    for (size_t i = 0; i + 1 < job->nic.count; i++)
        analysis_add_batch(analysis, job->nic.batches[i].bytes, job->nic.batches[i].length_bytes);
    for (size_t i = 0; i < job->host.count; i++)
        analysis_add_batch(analysis, job->host.batches[i].bytes, job->host.batches[i].length_bytes);
    analysis_run(analysis);
    return analysis;
}

/* The next trigger on the control link, or false when none comes. */
static bool next_trigger(struct link *control, struct record_trigger *trigger)
{
    uint8_t bytes[1024];
    size_t length_bytes;
    struct batch batch;
    union record record;
    uint64_t unknown = 0;

    if (link_receive(control, bytes, sizeof bytes, &length_bytes) != 0)
        return false;
    assert_int_equal(batch_read(&batch, bytes, length_bytes), 0);
    assert_int_equal(batch.header.emitter_kind, EMITTER_COMMAND);
    assert_int_equal(batch_next(&batch, &record, &unknown), 1);
    assert_int_equal(record.header.kind, RECORD_TRIGGER);
    *trigger = record.trigger;
    return true;
}

/* Looks until a request comes: the link may still be connecting, and the machine busy. */
static void await_trigger(struct asker *asker, const struct analysis *analysis, struct link *control,
                          struct record_trigger *trigger)
{
    for (unsigned waited_ms = 0; waited_ms < 20000; waited_ms += 10) {
        asker_look(asker, analysis);
        if (next_trigger(control, trigger))
            return;
        usleep(10000);
    }
    fail_msg("no request within 20 s");
}

static void expect(struct asker *asker, const struct analysis *analysis, struct link *control, const struct step *step)
{
    struct record_trigger trigger;
    uint64_t quarter_ns = (step->end_ns - step->start_ns) / 4;
    uint64_t from_ns = step->start_ns - quarter_ns + NIC_AHEAD_NS, to_ns = step->end_ns + quarter_ns + NIC_AHEAD_NS;

    await_trigger(asker, analysis, control, &trigger);
    assert_in_range(trigger.from_ns, from_ns - MADE_MS, from_ns + MADE_MS);
    assert_in_range(trigger.to_ns, to_ns - MADE_MS, to_ns + MADE_MS);
    assert_int_equal(trigger.boot_id, 0xb1); /* made_job.c's NIC side */
}

/* Each judged step is asked about once, with a quarter of it before and after, in the NIC side's own clock, which is 5
 * s ahead here; and again when it turns out to be longer than that. */
static void test_asks_for_the_windows_of_judged_steps(void **state)
{
    (void)state;
    const struct made_options options = {.ranks = 4,
                                         .channels = 1,
                                         .steps = STEPS,
                                         .seed = 3,
                                         .fault = MADE_GPU,
                                         .fault_rank = 2,
                                         .fault_first_step = FIRST_FAULTY,
                                         .fault_ns = 60 * MADE_MS,
                                         .nic_offset_ns = NIC_AHEAD_NS};
    char url[300];
    snprintf(url, sizeof url, "ipc:///tmp/qpscope-test-asker-%d", getpid());
    struct made_job *job = made_create(&options);
    struct analysis *analysis = running(job);
    struct link *control;
    struct controls *controls;
    struct asker *asker;
    const struct link_options receive = {.role = LINK_RECEIVE, .url = url, .boot_id = 2};
    const struct option_list urls = {.values = {url}, .count = 1};

    assert_int_equal(link_open(&control, &receive), 0);
    assert_int_equal(controls_open(&controls, &urls, NULL, 1), 0);
    asker_create(&asker, controls);
    assert_int_equal(analysis->job.steps.count, STEPS);
    for (int step = FIRST_FAULTY; step < STEPS; step++)
        expect(asker, analysis, control, &analysis->job.steps.items[step]);
    struct step *last = &analysis->job.steps.items[STEPS - 1];
    last->end_ns += (last->end_ns - last->start_ns) / 2;
    expect(asker, analysis, control, last);
    asker_look(asker, analysis);
    usleep(PAUSE_US);
    struct record_trigger none;
    assert_false(next_trigger(control, &none));
    asker_destroy(&asker);
    controls_close(&controls);
    link_close(&control, 0);
    unlink(url + strlen("ipc://"));
    analysis_destroy(&analysis);
    made_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asks_for_the_windows_of_judged_steps),
    };

    log_init("test_asker", LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
