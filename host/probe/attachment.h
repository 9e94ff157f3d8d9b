/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of the kernel set at places of a file's code. Where the kernel can (Linux 6.6), the places of one program
 * are set by one link, and links are let go side by side: taking a probe away waits for the kernel to be done with it
 * (a quarter of a second, seen), so that one after the other they take minutes. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether the kernel can set one program at many places at once; programs must be loaded for it. */
bool attachment_multiple_is_possible(void);
#define ATTACHMENT_MULTIPLE 48 /* BPF_TRACE_UPROBE_MULTI, the expected attach type of such a program */

/* All that was set, and is taken away together. */
struct attachment_set {
    int *descriptors;
    size_t count;
    size_t capacity;
    bool multiple; /* the programs were loaded for it */
};

struct attachment {
    int program;      /* descriptor */
    const char *path; /* of the file */
    const uint64_t *offsets;
    size_t offsets_count;
    uint64_t cookie;
    bool at_return;
    pid_t pid; /* only in this process; 0 = in all */
};

/* Returns how many of the places could be set; *error is the -errno of one that could not. */
size_t attachment_set_add(struct attachment_set *set, const struct attachment *attachment, int *error);

/* Takes everything away: no probe is hit once it returns. */
void attachment_set_clear(struct attachment_set *set);
