/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What /proc tells of processes: who runs, which files they have mapped to execute, and how to open such a file as the
 * process sees it, below another root or deleted. Processes end at any moment: -ESRCH or -ENOENT then, never logged.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_PATH_BYTES 4096

/* A file by its device and inode. */
struct file_key {
    uint32_t device_major;
    uint32_t device_minor;
    uint64_t inode;
};

/* A part of a file mapped to be executed. */
struct mapping {
    struct file_key file;
    uint64_t start; /* addresses in the process */
    uint64_t end;
    uint64_t file_offset;          /* of `start` */
    char path[PROCESS_PATH_BYTES]; /* as the process sees it; " (deleted)" is cut off */
};

typedef void process_visit(void *context, pid_t pid);
typedef int mapping_visit(void *context, pid_t pid, const struct mapping *mapping);

/* Every process that runs. */
int process_each(process_visit *visit, void *context);

/* Every executable file mapping of a process; ends early when `visit` returns other than 0, and returns that. */
int process_each_mapping(pid_t pid, mapping_visit *visit, void *context);

/*
 * A descriptor (O_RDONLY) of the mapped file, by the path below the process's root or, when that is another file by
 * now, by /proc/PID/map_files. The caller closes it.
 */
int process_open(pid_t pid, const struct mapping *mapping);

/* The process of a thread; -ESRCH when it is gone. */
pid_t process_of_thread(pid_t tid);

/* The 16 bytes of a GID as /sys of the process's root (else our own) shows it; -ENOENT when it shows none. */
int process_read_gid(pid_t pid, const char *device, unsigned port, unsigned index, uint8_t gid[16]);

/* Reads a process's memory, all of it or nothing: 0 or -errno. */
int process_read_memory(pid_t pid, uint64_t address, void *into, size_t size_bytes);
