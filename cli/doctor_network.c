/* SPDX-License-Identifier: BSD-2-Clause */
/* What the NIC side needs, and what RDMA there is on the machine. */
#include "cli/doctor_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAMES_BYTES 200

void doctor_look_hugepages(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    uint64_t total;
    uint64_t free_pages;
    if (!doctor_read_number(machine, "/proc/meminfo", "HugePages_Total:", 10, &total) ||
        !doctor_read_number(machine, "/proc/meminfo", "HugePages_Free:", 10, &free_pages)) {
        doctor_found(finding, DOCTOR_WARNING, "the kernel has none (CONFIG_HUGETLBFS)");
        return;
    }
    doctor_found(finding, free_pages > 0 ? DOCTOR_OK : DOCTOR_WARNING, "%" PRIu64 " free of %" PRIu64, free_pages,
                 total);
}

void doctor_look_dpdk(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    (void)machine;
    doctor_found(finding, QPSCOPE_DPDK ? DOCTOR_OK : DOCTOR_WARNING, QPSCOPE_DPDK ? "built in" : "not built in");
}

void doctor_look_rdma_devices(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    glob_t paths;
    char names[NAMES_BYTES];
    if (doctor_glob(machine, "/sys/class/infiniband/*", &paths) > 0) {
        doctor_join(&paths, names, sizeof(names));
        doctor_found(finding, DOCTOR_OK, "%s", names);
    } else {
        doctor_found(finding, DOCTOR_WARNING, "none");
    }
    globfree(&paths);
}

void doctor_look_rdma_rxe(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    glob_t paths;
    char release[NAMES_BYTES] = "";
    char pattern[2 * NAMES_BYTES];
    if (doctor_glob(machine, "/sys/module/rdma_rxe", &paths) > 0) {
        doctor_found(finding, DOCTOR_OK, "loaded");
        globfree(&paths);
        return;
    }
    globfree(&paths);
    doctor_read(machine, "/proc/sys/kernel/osrelease", release, sizeof(release));
    snprintf(pattern, sizeof(pattern), "/lib/modules/%s/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko*", release);
    bool found = doctor_glob(machine, pattern, &paths) > 0;
    doctor_found(finding, found ? DOCTOR_OK : DOCTOR_WARNING, found ? "can be loaded" : "not there for this kernel");
    globfree(&paths);
}

void doctor_look_verbs(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    glob_t paths;
    if (doctor_glob(machine, "{/usr/lib,/usr/lib64,/lib,/lib64,/usr/local/lib}{,/*-linux-gnu}/libibverbs.so.1",
                    &paths) > 0) {
        doctor_found(finding, DOCTOR_OK, "%.200s", paths.gl_pathv[0] + strlen(machine->root));
    } else {
        doctor_found(finding, DOCTOR_WARNING, "not installed");
    }
    globfree(&paths);
}

void doctor_look_ptp(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    glob_t paths;
    char names[NAMES_BYTES];
    if (doctor_glob(machine, "/dev/ptp*", &paths) > 0) {
        doctor_join(&paths, names, sizeof(names));
        doctor_found(finding, DOCTOR_OK, "%s", names);
    } else {
        doctor_found(finding, DOCTOR_WARNING, "none");
    }
    globfree(&paths);
}
