/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host: the rank sleeps before its first operation. gpu: its first kernel begins late. link: its interface gets a token
 * bucket whose rate lets a step's bytes take the usual time and the delay together; the lab's tc(8) waits behind a
 * FIFO, so that nothing is forked here. cpu: a real-time thread has the CPU of the rank's own thread, which wants to
 * run, for the delay.
 */
#include "fault.h"

#include "hip.h"
#include "hog.h"
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUSY_PERCENT = 77 };
enum { WIRE_PERCENT = 103 }; /* frames of 4096 bytes of payload with their headers */

static bool fault_acts(const struct fault *fault, int64_t step)
{
    const struct job *job = fault->job;

    return job->fault != FAULT_NONE && job->fault_rank == fault->world_rank && step >= job->fault_first_step;
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
    int fifo = open(fault->job->link_fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    int length = snprintf(command, sizeof command, "qdisc replace dev %s root tbf rate %lubit burst 16kb limit 16mb\n",
                          fault->job->link_name, rate_bit_s);

    if (fifo < 0 || write(fifo, command, (size_t)length) != length) {
        fprintf(stderr, "train: cannot slow the link: %s: %s\n", fault->job->link_fifo, strerror(errno));
        _exit(1);
    }
    close(fifo);
}

void fault_step_begin(struct fault *fault, int64_t step)
{
    if (!fault_acts(fault, step) || fault->job->fault != FAULT_LINK)
        return;
    uint64_t rate_bit_s = link_rate_bit_s(fault);
    if (step == fault->job->fault_first_step)
        link_slow(fault, rate_bit_s);
    fault_note(fault, step, rate_bit_s);
}

void fault_before_enqueue(struct fault *fault, int64_t step)
{
    int64_t delay_ms = fault->job->fault_delay_ms;

    if (!fault_acts(fault, step) || fault->job->fault == FAULT_LINK)
        return;
    fault_note(fault, step, 0);
    if (fault->job->fault == FAULT_GPU)
        standin_delay_next_launch((uint64_t)delay_ms * 1000);
    else if (fault->job->fault == FAULT_CPU)
        hog_own_cpu((uint64_t)delay_ms * 1000000);
    else
        nanosleep(&(struct timespec){delay_ms / 1000, delay_ms % 1000 * 1000000}, NULL);
}

void fault_step_end(struct fault *fault, int64_t step, uint64_t communicating_ns)
{
    if (step == 0 || fault_acts(fault, step))
        return;
    fault->quiet_ns += communicating_ns;
    fault->quiet_steps++;
}
