/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process's control group tells of where it runs: the shapes that Docker, containerd, CRI-O, Podman, Kubernetes
 * and Slurm give to its path. What no shape fits is left empty. Pure; the results point into the caller's bytes.
 */
#pragma once

#include "host/identity/text.h"

#define CGROUP_POD_BYTES 37

struct cgroup {
    struct text path;           /* of version 2 where there is one, else the longest */
    struct text container;      /* its id: the innermost, where one is within another */
    const char *runtime;        /* NULL = not told by the path */
    char pod[CGROUP_POD_BYTES]; /* UID, NUL-terminated; "" = none */
    struct text slurm_job;
    struct text slurm_step;
};

/* `bytes`: /proc/PID/cgroup. */
void cgroup_parse(const void *bytes, size_t length_bytes, struct cgroup *cgroup);
