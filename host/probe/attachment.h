/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of the kernel set at places of a file's code. Where the kernel can (Linux 6.6), one link sets all places of
 * a program. To set one place is a matter of milliseconds; to take one away waits until the kernel is done with it (a
 * tenth of a second and more). Any thread, but one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether the kernel can set one program at many places at once; programs must be loaded for it. */
bool attachment_multiple_is_possible(void);
#define ATTACHMENT_MULTIPLE 48 /* BPF_TRACE_UPROBE_MULTI, the expected attach type of such a program */

struct attachment {
    int program; /* descriptor */
    int file;    /* descriptor; -1 = none: the program names its place in the kernel itself */
    const uint64_t *offsets;
    size_t offsets_count;
    uint64_t cookie;
    bool at_return;
    pid_t pid; /* only in this process; 0 = in all */
};

/*
 * Sets all places of it, or none: a link, a descriptor; or -errno. `multiple`: the program was loaded for it; else it
 * must be one place.
 */
int attachment_open(const struct attachment *attachment, bool multiple);

/*
 * Takes them away: no probe of theirs is hit once it returns. Side by side, which helps where a link has many places: a
 * kernel that sets one place a link takes them one after the other away all the same.
 */
void attachment_close(const int *links, size_t count);
