/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host: the rank sleeps before its first operation. gpu: its first kernel begins late. link: its interface gets a token
 * bucket whose rate lets a step's bytes take the usual time and the delay together; the lab's tc(8) waits behind a
 * FIFO, so that nothing is forked here. cpu: a real-time thread has the CPU of the rank's own thread, which wants to
 * run, for the delay. io, pages: that thread reads a slow block device, by itself or through mapped pages. tcp: it
 * waits for what is lost on the way and sent again. wire: tc is told something else. hang: the rank stands still for
 * ever. death: it kills its process.
 */
#include "fault.h"

#include "disk.h"
#include "hip.h"
#include "hog.h"
#include "lossy.h"
#include "meet.h"
#include "tc.h"
#include "truth.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUSY_PERCENT = 77 };
enum { WIRE_PERCENT = 103 }; /* frames of 4096 bytes of payload with their headers */

static bool fault_acts(const struct fault *fault, int64_t step)
{
    const struct job *job = fault->job;
    bool is_hit = job->fault_rank == fault->world_rank || job->fault_rank == FAULT_EVERYBODY;

    return job->fault != FAULT_NONE && is_hit && step >= job->fault_first_step && step <= job->fault_last_step &&
           (step - job->fault_first_step) % job->fault_every == 0;
}

static void fault_note(const struct fault *fault, int64_t step, uint64_t rate_bit_s)
{
    struct truth_line line;

    truth_begin(&line, "fault");
    truth_text(&line, "fault", fault_kind_names[fault->job->fault]);
    truth_signed(&line, "rank", fault->world_rank);
    truth_signed(&line, "step", step);
    truth_signed(&line, "delay_ns", fault->job->fault_delay_ms * 1000000);
    truth_number(&line, "rate_bit_s", rate_bit_s);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_put(&line);
}

static uint64_t link_rate_bit_s(const struct fault *fault)
{
    uint64_t usual_ns = fault->quiet_steps ? fault->quiet_ns / fault->quiet_steps : 300000000;
    uint64_t allowed_ns = usual_ns * BUSY_PERCENT / 100 + (uint64_t)fault->job->fault_delay_ms * 1000000;

    return fault->sent_bytes * 8 * WIRE_PERCENT / 100 * 1000000 / (allowed_ns / 1000);
}

static void link_slow(const struct fault *fault, uint64_t rate_bit_s)
{
    char command[200];

    snprintf(command, sizeof command, "qdisc replace dev %s root tbf rate %lubit burst 16kb limit 16mb",
             fault->job->link_name, rate_bit_s);
    tc_tell(fault->job, command);
}

static bool is_of_wire(const struct fault *fault)
{
    return fault->job->fault == FAULT_LINK || fault->job->fault == FAULT_WIRE;
}

void fault_step_begin(struct fault *fault, int64_t step)
{
    bool is_first = step == fault->job->fault_first_step;

    if (!fault_acts(fault, step) || !is_of_wire(fault))
        return;
    uint64_t rate_bit_s = fault->job->fault == FAULT_LINK ? link_rate_bit_s(fault) : 0;
    if (is_first && fault->job->fault == FAULT_WIRE)
        tc_tell(fault->job, fault->job->fault_command);
    else if (is_first)
        link_slow(fault, rate_bit_s);
    fault_note(fault, step, rate_bit_s);
}

static void stand_still(void)
{
    for (;;)
        pause();
}

void fault_before_enqueue(struct fault *fault, int64_t step)
{
    int64_t delay_ms = fault->job->fault_delay_ms;

    if (!fault_acts(fault, step) || is_of_wire(fault))
        return;
    fault_note(fault, step, 0);
    switch (fault->job->fault) {
    case FAULT_GPU:
        standin_delay_next_launch((uint64_t)delay_ms * 1000);
        break;
    case FAULT_CPU:
        hog_own_cpu((uint64_t)delay_ms * 1000000);
        break;
    case FAULT_IO:
        disk_read_for((uint64_t)delay_ms * 1000000);
        break;
    case FAULT_PAGES:
        disk_touch_for((uint64_t)delay_ms * 1000000);
        break;
    case FAULT_TCP:
        lossy_wait_for(fault->job, (uint64_t)delay_ms * 1000000);
        break;
    case FAULT_HANG:
        stand_still();
        break;
    case FAULT_DEATH:
        meet_mark(fault->job, "killed", fault->world_rank);
        kill(getpid(), SIGKILL);
        break;
    default:
        nanosleep(&(struct timespec){delay_ms / 1000, delay_ms % 1000 * 1000000}, NULL);
    }
}

void fault_step_end(struct fault *fault, int64_t step, uint64_t communicating_ns)
{
    if (step == 0 || fault_acts(fault, step))
        return;
    fault->quiet_ns += communicating_ns;
    fault->quiet_steps++;
}
