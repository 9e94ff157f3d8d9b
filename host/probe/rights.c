/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: capabilities(7), proc(5): status, uid_map; kernel_lockdown(7), seccomp(2), perf_event_open(2). The capability
 * numbers of <linux/capability.h>.
 */
#include "host/probe/rights.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/log.h"
#include "wire/preemption.h"

#define GRANT "run as root, or give the capability to the service (AmbientCapabilities=) or container (--cap-add)"

/* The number behind "Name:" in /proc/self/status. */
static bool read_status(const char *name, int base, uint64_t *value)
{
    char line[256];
    bool found = false;
    const size_t length = strlen(name);
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, name, length) == 0 && line[length] == ':';
    fclose(file);
    if (found)
        *value = strtoull(line + length + 1, NULL, base);
    return found;
}

static bool read_line(const char *path, char *line, int capacity)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const bool read = fgets(line, capacity, file) != NULL;
    fclose(file);
    return read;
}

static bool has_capability(int number)
{
    uint64_t capabilities = 0;
    return read_status("CapEff", 16, &capabilities) && (capabilities & (1ULL << number)) != 0;
}

static const struct {
    int number;
    const char *name;
    bool implied; /* by CAP_SYS_ADMIN */
    bool essential;
    const char *purpose;
    const char *without; /* what is not seen, where it is not essential */
} needed[] = {
    {CAP_BPF, "CAP_BPF", true, true, "to load the probes", NULL},
    {CAP_PERFMON, "CAP_PERFMON", true, true, "to set the probes and to see new processes", NULL},
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", false, false, "to see which libraries the processes of other users have mapped",
     "only libraries in the folders of --root, those given with --library and those of this user's processes are "
     "probed, and who a process of another user is stays unknown"},
    {CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", true, false,
     "to read a library that was deleted while it is mapped", "such libraries are not probed"},
};

/* `all`: also those without which nothing works, which are there when the probes are set. */
static int explain_capabilities(bool all)
{
    int missing = 0;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (has_capability(needed[i].number) || (needed[i].implied && has_capability(CAP_SYS_ADMIN)) ||
            (needed[i].essential && !all))
            continue;
        if (needed[i].essential)
            log_error("missing %s, %s: " GRANT, needed[i].name, needed[i].purpose);
        else
            log_warning("missing %s, %s: %s; " GRANT, needed[i].name, needed[i].purpose, needed[i].without);
        missing++;
    }
    return missing;
}

static int explain_file(const char *path, const char *text)
{
    if (access(path, R_OK) == 0)
        return 0;
    log_error("missing %s: %s", path, text);
    return 1;
}

static int explain_lockdown(void)
{
    char text[128];
    if (!read_line("/sys/kernel/security/lockdown", text, sizeof text) || strstr(text, "[confidentiality]") == NULL)
        return 0;
    log_error("kernel lockdown is in confidentiality mode, in which no probe may read memory: boot with "
              "lockdown=integrity");
    return 1;
}

/* Its root has capabilities over itself only: "0 0 4294967295" is the initial namespace's map. */
static int explain_user_namespace(void)
{
    char line[128];
    unsigned inside, outside, count;
    if (!read_line("/proc/self/uid_map", line, sizeof line) || sscanf(line, "%u %u %u", &inside, &outside, &count) != 3)
        return 0;
    if (inside == 0 && outside == 0 && count == UINT32_MAX)
        return 0;
    log_error(
        "this process is in a user namespace, where capabilities do not reach the kernel's probes: run it outside, "
        "not in a rootless container");
    return 1;
}

static int explain_seccomp(void)
{
    uint64_t mode = 0;
    if (!read_status("Seccomp", 10, &mode) || mode == 0)
        return 0;
    log_error("a seccomp filter is set, which may forbid bpf and perf_event_open, as container runtimes' own do: start "
              "the container with --security-opt seccomp=unconfined, or with a profile that allows both");
    return 1;
}

static int explain_paranoid(void)
{
    char text[32];
    if (has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN) ||
        !read_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof text))
        return 0;
    log_error("kernel.perf_event_paranoid is %d, and without CAP_PERFMON no event of the whole machine may be opened: "
              "give the capability rather than lower the setting",
              atoi(text));
    return 1;
}

int rights_explain(void)
{
    return explain_capabilities(true) + explain_user_namespace() + explain_seccomp() + explain_paranoid() +
           explain_file("/sys/kernel/btf/vmlinux",
                        "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF), or /sys is not mounted") +
           explain_file("/sys/bus/event_source/devices/uprobe/type",
                        "the kernel has no uprobes (CONFIG_UPROBE_EVENTS), or /sys is not mounted") +
           explain_lockdown();
}

static int explain_preemption(void)
{
    if (preemption_read("") != PREEMPTION_FULL)
        return 0;
    log_warning("this kernel preempts everywhere (preempt=full), and before Linux 6.6 it skips runs of probes then and "
                "tells nobody: queue pairs or their ends may be missing; boot with preempt=voluntary or preempt=none, "
                "or a newer kernel");
    return 1;
}

int rights_warn(void)
{
    return explain_capabilities(false) + explain_preemption();
}
