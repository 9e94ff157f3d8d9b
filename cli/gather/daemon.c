/* SPDX-License-Identifier: BSD-2-Clause */
/* Children: found beside this program first, so that a build's or an installation's own programs are taken. */
#include "cli/gather/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/log.h"

#define PATIENCE_MS 5000
#define TURN_NS     10000000
#define NOT_FOUND   127

/* In the child. */
static void run(const char *name, char *const *arguments, pid_t parent)
{
    char here[PATH_MAX];
    char path[2 * PATH_MAX];
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(1);
    }
    setpgid(0, 0); /* Ctrl-C at the terminal is for the parent, which ends it in order */
    if (nothing >= 0) {
        dup2(nothing, STDOUT_FILENO);
    }
    if (length > 0) {
        here[length] = '\0';
        const char *folder = dirname(here);
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        execv(path, arguments);
        snprintf(path, sizeof(path), "%s/../sbin/%s", folder, name);
        execv(path, arguments);
    }
    execvp(name, arguments);
    log_error("cannot run %s: %s: install it, or put its folder into PATH", name, strerror(errno));
    _exit(NOT_FOUND);
}

int daemon_start(struct daemon *daemon, const char *name, char *const *arguments)
{
    pid_t parent = getpid();
    *daemon = (struct daemon){.name = name};
    fflush(stdout);
    daemon->pid = fork();
    if (daemon->pid == 0) {
        run(name, arguments, parent);
    }
    if (daemon->pid < 0) {
        daemon->pid = 0;
        return log_error_return(-errno, "cannot start %s: %s", name, strerror(errno));
    }
    return 0;
}

bool daemon_runs(struct daemon *daemon)
{
    if (daemon->pid != 0 && waitpid(daemon->pid, &daemon->status, WNOHANG) == daemon->pid) {
        daemon->pid = 0;
    }
    return daemon->pid != 0;
}

void daemon_ask_to_end(struct daemon *daemon)
{
    if (daemon_runs(daemon)) {
        daemon->was_asked = true;
        kill(daemon->pid, SIGTERM);
    }
}

void daemon_wait(struct daemon *daemon)
{
    const struct timespec turn = {.tv_nsec = TURN_NS};
    for (int waited_ms = 0; daemon_runs(daemon) && waited_ms < PATIENCE_MS; waited_ms += TURN_NS / 1000000) {
        nanosleep(&turn, NULL);
    }
    if (daemon_runs(daemon)) {
        log_warning("%s does not end: killed", daemon->name);
        kill(daemon->pid, SIGKILL);
        waitpid(daemon->pid, &daemon->status, 0);
        daemon->pid = 0;
    }
}

bool daemon_is_missing(const struct daemon *daemon)
{
    return daemon->pid == 0 && WIFEXITED(daemon->status) && WEXITSTATUS(daemon->status) == NOT_FOUND;
}

bool daemon_failed(const struct daemon *daemon)
{
    bool was_ended = daemon->was_asked && WIFSIGNALED(daemon->status) && WTERMSIG(daemon->status) == SIGTERM;
    bool ended_well = WIFEXITED(daemon->status) && WEXITSTATUS(daemon->status) == 0;
    return daemon->name != NULL && daemon->pid == 0 && !ended_well && !was_ended;
}
