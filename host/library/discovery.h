/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the library files to probe: what running processes have mapped, what new ones map, and what lies in library
 * folders before anybody maps it (then no call can be missed). Each file is looked at once; a changed file again. Files
 * are known by the device and inode that really hold their code, so that one file seen below several roots or through
 * several overlay file systems is probed once. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/library/library.h"
#include "host/process/process.h"

struct discovery;

struct library {
    uint64_t number;      /* from 1 */
    struct file_key file; /* the one that holds the code */
    char path[256];       /* under which it was found, as the process that had it sees it */
};

struct discovery_options {
    /*
     * Has its probes set; the descriptor is closed afterwards. `mapped_ns`: when a process mapped it, 0 = nobody has,
     * or it is not known. 0 or -errno, logged.
     */
    int (*attach)(void *context, const struct library *library, int descriptor, const struct library_places *places,
                  uint64_t mapped_ns);
    /* The file that really holds the code of an open file; 0 or -errno. */
    int (*file_key)(void *context, int descriptor, struct file_key *file);
    /* Asked between two files of a scan, which may be thousands: its caller's other matters. False: it ends early. */
    bool (*go_on)(void *context);
    void *context;
    uint64_t *counters; /* HOST_COUNTERS of them, the caller's */
};

int discovery_create(struct discovery **discovery, const struct discovery_options *options);
void discovery_destroy(struct discovery **discovery);

/* Looks at what all running processes have mapped: first at what is called as such libraries usually are. */
void discovery_scan_processes(struct discovery *discovery);

/* Looks at the shared objects in the library folders of a tree ("" = this machine's own). */
void discovery_scan_root(struct discovery *discovery, const char *root);

/* A file that a person names: -errno, logged, when it cannot be read or holds no probed symbol. */
int discovery_look_at_file(struct discovery *discovery, const char *path);

/* What a process has just mapped. */
void discovery_look_at_mapping(struct discovery *discovery, pid_t pid, const struct mapping *mapping,
                               uint64_t mapped_ns);

/* The library's path as this process sees it; where it cannot be told any more, as the first one saw it. "" = no such.
 */
void discovery_path(struct discovery *discovery, uint64_t number, pid_t pid, char *path, size_t path_bytes);
