/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks at a machine: what qpscope's programs need, what is there, what to do. Only reads. The files looked at lie
 * below a root, so that a copied /proc and /sys can be looked at as well. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum doctor_status {
    DOCTOR_OK,
    DOCTOR_WARNING, /* works, or not needed by everyone */
    DOCTOR_MISSING, /* a program that needs it does not work */
};

enum doctor_program {
    DOCTOR_HOST,
    DOCTOR_NIC,
    DOCTOR_CORRELATOR,
};

struct doctor_machine {
    const char *root;  /* "" for this machine */
    const char *store; /* the store's path, not below the root */
};

#define DOCTOR_FOUND_BYTES 256

struct doctor_finding {
    enum doctor_status status;
    char found[DOCTOR_FOUND_BYTES]; /* what is there, for people */
};

struct doctor_check {
    const char *name;
    enum doctor_program needed_by;
    const char *title;
    const char *advice;
    void (*look)(const struct doctor_machine *machine, struct doctor_finding *finding);
};

extern const struct doctor_check doctor_checks[];
extern const size_t doctor_checks_count;

const char *doctor_status_name(enum doctor_status status);
const char *doctor_program_name(enum doctor_program program);

#define DOCTOR_DAEMONS  3
#define DOCTOR_STALE_NS INT64_C(10000000000) /* a running correlator writes its store oftener */

/* The n-th of qpscope's daemons: its short name ("nic"), and how many processes of it run. */
const char *doctor_daemon_name(size_t daemon);
size_t doctor_daemon_count(const struct doctor_machine *machine, size_t daemon);

/* How long ago the store, or its log, was written; 0 when it is not there. */
int64_t doctor_store_age_ns(const char *store);
