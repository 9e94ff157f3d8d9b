/* SPDX-License-Identifier: BSD-2-Clause */
/* Other programs of qpscope, started as children of this one. One thread. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct daemon {
    const char *name; /* "qpscope-nic": looked for beside this program, in ../sbin, in PATH */
    pid_t pid;        /* 0: not running */
    int status;       /* of wait(2), once it has ended */
    bool was_asked;   /* to end */
};

/*
 * Its standard output is thrown away, what it says on stderr is seen. It is ended when this program dies. -errno after
 * logging; a program that is not there shows as an end with exit code 127.
 */
int daemon_start(struct daemon *daemon, const char *name, char *const *arguments);

/* Whether there was no such program. */
bool daemon_is_missing(const struct daemon *daemon);

/* Whether it still runs; its end is taken note of. */
bool daemon_runs(struct daemon *daemon);

/* Asks it to end (SIGTERM). A no-op when it does not run. */
void daemon_ask_to_end(struct daemon *daemon);

/* Waits for its end; after a while it is killed. */
void daemon_wait(struct daemon *daemon);

/* Whether it ended otherwise than with exit code 0, or as it was asked to before it took care of that itself. */
bool daemon_failed(const struct daemon *daemon);
