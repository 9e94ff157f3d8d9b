/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: capabilities(7), /proc/self/status, kernel_lockdown(7). */
#include "host/rights.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wire/log.h"

static uint64_t effective_capabilities(void)
{
    char line[256];
    uint64_t capabilities = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "CapEff: %" SCNx64, &capabilities) == 1)
            break;
    fclose(file);
    return capabilities;
}

static const struct {
    int number;
    const char *name;
    const char *purpose;
} needed[] = {
    {CAP_BPF, "CAP_BPF", "to load the probes"},
    {CAP_PERFMON, "CAP_PERFMON", "to set the probes and to see new processes"},
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "to see which libraries the processes of other users have mapped"},
};

static int explain_capabilities(void)
{
    int missing = 0;
    const uint64_t capabilities = effective_capabilities();
    const bool administrator = (capabilities & (1ULL << CAP_SYS_ADMIN)) != 0;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        const bool granted =
            (capabilities & (1ULL << needed[i].number)) != 0 || (administrator && needed[i].number != CAP_SYS_PTRACE);
        if (granted)
            continue;
        log_error("missing %s, %s: run as root, or give the capability to the service", needed[i].name,
                  needed[i].purpose);
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
    char text[128] = "";
    FILE *file = fopen("/sys/kernel/security/lockdown", "re");
    if (file == NULL)
        return 0;
    const bool confidential = fgets(text, sizeof text, file) != NULL && strstr(text, "[confidentiality]") != NULL;
    fclose(file);
    if (!confidential)
        return 0;
    log_error("kernel lockdown is in confidentiality mode, in which no probe may read memory: boot with "
              "lockdown=integrity");
    return 1;
}

int rights_explain(void)
{
    return explain_capabilities() +
           explain_file("/sys/kernel/btf/vmlinux",
                        "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF), or /sys is not mounted") +
           explain_file("/sys/bus/event_source/devices/uprobe/type",
                        "the kernel has no uprobes (CONFIG_UPROBE_EVENTS), or /sys is not mounted") +
           explain_lockdown();
}
