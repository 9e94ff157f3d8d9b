/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the command line says about the job: read once, constant from then on, shared by the threads of all ranks in
 * this process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { RANKS_MAX = 64, FAULT_EVERYBODY = -1 };

enum fault_kind {
#define FAULT(NAME, name) FAULT_##NAME,
#include "fault.def"
#undef FAULT
    FAULT_KINDS,
};

extern const char *const fault_kind_names[FAULT_KINDS];

struct job {
    int64_t rank;       /* the first rank of this process */
    int64_t ranks_here; /* how many ranks are threads of this process */
    int64_t ranks;
    int64_t steps;
    int64_t worlds; /* communicators of all ranks */
    int64_t compute_us;
    int64_t elements; /* the unit of the operations' sizes, in floats */
    uint64_t seed;
    bool spin;             /* compute on the CPU instead of sleeping */
    const char *library;   /* the collective library */
    int64_t settle_ms;     /* between loading it and its first call, as the rest of a real job's start takes */
    const char *meet;      /* a directory that all ranks share: communicator ids, marks */
    const char *link_fifo; /* where commands for tc(8) go */
    const char *link_name; /* the network interface behind this rank's device */
    bool wait_release;     /* keep the communicators until the file `release` is in `meet` */
    enum fault_kind fault;
    int64_t fault_rank; /* FAULT_EVERYBODY: all ranks alike */
    int64_t fault_delay_ms;
    int64_t fault_first_step;
    int64_t fault_last_step;
    int64_t fault_every;       /* of so many steps, from the first on, one */
    const char *fault_command; /* for tc(8), when it begins */
};

/* Returns 0 to go on, 1 when --help was printed, -EINVAL after a message about what is wrong. */
int job_parse(struct job *job, int argc, char **argv);

/* A number from the job's seed that is the same in every process for the same `salt`. */
uint64_t job_random(const struct job *job, uint64_t salt);
