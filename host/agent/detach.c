/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: proc(5), comm; pidfd_open(2): a process is signalled and awaited by what cannot come to mean another one. */
#include "host/agent/detach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/process/process.h"
#include "wire/log.h"

#define AGENT   "qpscope-host"
#define WAIT_MS 120000 /* a kernel that takes one probe a link waits for each */

struct search {
    size_t ended;
    int error; /* the first */
};

static bool is_agent(pid_t pid)
{
    char path[64];
    char name[sizeof AGENT + 2] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const bool read = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    return read && strcmp(name, AGENT "\n") == 0;
}

static int end_process(int descriptor)
{
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    if (syscall(SYS_pidfd_send_signal, descriptor, SIGTERM, NULL, 0) != 0 && errno != ESRCH)
        return -errno;
    const int ready = poll(&wait, 1, WAIT_MS);
    return ready > 0 ? 0 : ready == 0 ? -ETIMEDOUT : -errno;
}

static void visit(void *context, pid_t pid)
{
    struct search *search = context;
    if (pid == getpid() || !is_agent(pid))
        return;
    const int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
    if (descriptor < 0 && errno == ESRCH)
        return;
    const int error = descriptor < 0 ? -errno : end_process(descriptor);
    if (descriptor >= 0)
        close(descriptor);
    if (error == 0) {
        printf("process %d ended, and its probes with it\n", (int)pid);
        search->ended++;
        return;
    }
    log_error("cannot end process %d: %s; run as root, or as the user that it runs as", (int)pid, strerror(-error));
    if (search->error == 0)
        search->error = error;
}

int detach_all(void)
{
    struct search search = {0};
    const int error = process_each(visit, &search);
    if (error != 0)
        return log_error_return(error, "cannot look for processes: /proc: %s", strerror(-error));
    if (search.ended == 0 && search.error == 0)
        printf("no " AGENT " runs: no probe of it is set (a probe ends with its agent, and none is pinned)\n");
    return search.error;
}
