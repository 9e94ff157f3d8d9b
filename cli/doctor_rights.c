/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel can do and lets this process do. Sources: capabilities(7), proc(5), kernel_lockdown(7). */
#include "cli/doctor_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/form/text.h"
#include "wire/preemption.h"

#define CAP_NET_RAW    13
#define CAP_IPC_LOCK   14
#define CAP_SYS_PTRACE 19
#define CAP_SYS_ADMIN  21
#define CAP_PERFMON    38
#define CAP_BPF        39

#define KERNEL_MAJOR      5
#define KERNEL_MINOR      8
#define MEMLOCK_LEAST     (64ull << 20)
#define PARANOID_HARMLESS 2
#define LINE_BYTES        512

void doctor_look_kernel(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    char release[LINE_BYTES];
    int major = 0;
    int minor = 0;
    if (!doctor_read(machine, "/proc/sys/kernel/osrelease", release, sizeof(release)) ||
        sscanf(release, "%d.%d", &major, &minor) != 2) {
        doctor_found(finding, DOCTOR_MISSING, "not known: /proc is not mounted");
        return;
    }
    bool enough = major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR);
    doctor_found(finding, enough ? DOCTOR_OK : DOCTOR_MISSING, "Linux %.200s", release);
}

void doctor_look_preemption(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    switch (preemption_read(machine->root)) {
    case PREEMPTION_HARMLESS:
        doctor_found(finding, DOCTOR_OK, "of no matter from Linux 6.6 on");
        return;
    case PREEMPTION_OTHER:
        doctor_found(finding, DOCTOR_OK, "not everywhere");
        return;
    case PREEMPTION_FULL:
        doctor_found(finding, DOCTOR_WARNING, "everywhere (preempt=full) on a kernel before 6.6");
        return;
    case PREEMPTION_UNKNOWN:
        break;
    }
    doctor_found(finding, DOCTOR_WARNING,
                 "not known: mount debugfs at /sys/kernel/debug, or look for preempt= in /proc/cmdline");
}

void doctor_look_btf(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    char first[2];
    bool found = doctor_read(machine, "/sys/kernel/btf/vmlinux", first, sizeof(first));
    doctor_found(finding, found ? DOCTOR_OK : DOCTOR_MISSING, "/sys/kernel/btf/vmlinux is %s",
                 found ? "there" : "not there");
}

/* The file reads as "none [integrity] confidentiality": what holds stands in brackets. */
void doctor_look_lockdown(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    char text[LINE_BYTES];
    if (!doctor_read(machine, "/sys/kernel/security/lockdown", text, sizeof(text))) {
        doctor_found(finding, DOCTOR_OK, "none (the kernel has no lockdown, or securityfs is not mounted)");
        return;
    }
    const char *open = strchr(text, '[');
    const char *close = open == NULL ? NULL : strchr(open, ']');
    if (close == NULL) {
        doctor_found(finding, DOCTOR_WARNING, "not understood: %.200s", text);
        return;
    }
    bool forbids = strncmp(open, "[confidentiality]", strlen("[confidentiality]")) == 0;
    doctor_found(finding, forbids ? DOCTOR_MISSING : DOCTOR_OK, "%.*s", (int)(close - open - 1), open + 1);
}

bool doctor_has_capability(const struct doctor_machine *machine, unsigned capability)
{
    uint64_t effective;
    if (!doctor_read_number(machine, "/proc/self/status", "CapEff:", 16, &effective)) {
        return false;
    }
    bool implied = capability == CAP_BPF || capability == CAP_PERFMON;
    return (effective >> capability & 1) != 0 || (implied && (effective >> CAP_SYS_ADMIN & 1) != 0);
}

static void look_capability(const struct doctor_machine *machine, unsigned capability, struct doctor_finding *finding)
{
    bool has = doctor_has_capability(machine, capability);
    doctor_found(finding, has ? DOCTOR_OK : DOCTOR_MISSING,
                 has ? "this process has it" : "this process does not have it");
}

void doctor_look_cap_bpf(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    look_capability(machine, CAP_BPF, finding);
}

void doctor_look_cap_perfmon(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    look_capability(machine, CAP_PERFMON, finding);
}

void doctor_look_cap_sys_ptrace(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    look_capability(machine, CAP_SYS_PTRACE, finding);
}

void doctor_look_cap_net_raw(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    look_capability(machine, CAP_NET_RAW, finding);
}

void doctor_look_perf_event_paranoid(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    char text[LINE_BYTES];
    if (!doctor_read(machine, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text))) {
        doctor_found(finding, DOCTOR_MISSING, "the kernel has no perf events (CONFIG_PERF_EVENTS)");
        return;
    }
    bool may = strtol(text, NULL, 10) <= PARANOID_HARMLESS || doctor_has_capability(machine, CAP_PERFMON);
    doctor_found(finding, may ? DOCTOR_OK : DOCTOR_WARNING, "%.200s", text);
}

void doctor_look_memlock(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    uint64_t limit;
    char bytes[TEXT_NUMBER_BYTES];
    if (doctor_has_capability(machine, CAP_IPC_LOCK)) {
        doctor_found(finding, DOCTOR_OK, "no limit (CAP_IPC_LOCK)");
    } else if (doctor_read_number(machine, "/proc/self/limits", "Max locked memory", 10, &limit)) {
        doctor_found(finding, limit >= MEMLOCK_LEAST ? DOCTOR_OK : DOCTOR_WARNING, "at most %s",
                     text_bytes(bytes, (int64_t)limit));
    } else {
        doctor_found(finding, DOCTOR_OK, "no limit");
    }
}
