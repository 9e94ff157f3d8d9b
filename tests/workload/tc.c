/* SPDX-License-Identifier: BSD-2-Clause */
/* Hands commands for tc(8) to the lab through its FIFO. */
#include "tc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void tc_tell(const struct job *job, const char *command)
{
    int fifo = open(job->link_fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

    if (fifo < 0 || dprintf(fifo, "%s\n", command) < 0) {
        fprintf(stderr, "train: tc cannot be told: %s: %s\n", job->link_fifo, strerror(errno));
        _exit(1);
    }
    close(fifo);
}
