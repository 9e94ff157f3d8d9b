/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads /proc. Source: proc(5), maps: "start-end perms offset major:minor inode path".
 * Invariant: nothing read here is trusted to belong to a living process.
 */
#include "host/process/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LINE_BYTES (PROCESS_PATH_BYTES + 256)

int process_each(process_visit *visit, void *context)
{
    DIR *directory = opendir("/proc");
    if (directory == NULL)
        return -errno;
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        char *end;
        const long pid = strtol(entry->d_name, &end, 10);
        if (isdigit((unsigned char)entry->d_name[0]) && *end == '\0')
            visit(context, (pid_t)pid);
    }
    closedir(directory);
    return 0;
}

static void cut_suffix(char *text, const char *suffix)
{
    const size_t length = strlen(text);
    const size_t suffix_length = strlen(suffix);
    if (length > suffix_length && strcmp(text + length - suffix_length, suffix) == 0)
        text[length - suffix_length] = '\0';
}

/* The kernel shows maps' paths from the reader's root: takes the process's root off again. */
static void cut_root(char *path, const char *root, size_t root_length)
{
    if (root_length > 1 && strncmp(path, root, root_length) == 0 && path[root_length] == '/')
        memmove(path, path + root_length, strlen(path + root_length) + 1);
}

static size_t read_root(pid_t pid, char *root, size_t root_bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
    const ssize_t length = readlink(path, root, root_bytes);
    return length < 0 ? 0 : (size_t)length;
}

/* Whether the line is an executable mapping of a file. */
static bool parse_mapping(const char *line, struct mapping *mapping)
{
    char rights[5];
    int path_at = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n", &mapping->start,
               &mapping->end, rights, &mapping->file_offset, &mapping->file.device_major, &mapping->file.device_minor,
               &mapping->file.inode, &path_at) != 7 ||
        path_at == 0 || strlen(rights) < 4 || rights[2] != 'x' || mapping->file.inode == 0 || line[path_at] != '/')
        return false;
    snprintf(mapping->path, sizeof mapping->path, "%s", line + path_at);
    mapping->path[strcspn(mapping->path, "\n")] = '\0';
    cut_suffix(mapping->path, " (deleted)");
    return true;
}

int process_each_mapping(pid_t pid, mapping_visit *visit, void *context)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -errno;
    int result = 0;
    char line[LINE_BYTES];
    char root[PROCESS_PATH_BYTES];
    const size_t root_length = read_root(pid, root, sizeof root);
    struct mapping mapping;
    while (result == 0 && fgets(line, sizeof line, file) != NULL) {
        if (!parse_mapping(line, &mapping))
            continue;
        cut_root(mapping.path, root, root_length);
        result = visit(context, pid, &mapping);
    }
    fclose(file);
    return result;
}

int process_open(pid_t pid, const struct mapping *mapping)
{
    char path[PROCESS_PATH_BYTES + 64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, mapping->path);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_ino == mapping->file.inode)
        return descriptor;
    if (descriptor >= 0)
        close(descriptor);
    snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, mapping->start, mapping->end);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    return descriptor >= 0 ? descriptor : -errno;
}

/* "fe80:0000:...": 8 groups of 4 hexadecimal digits. */
pid_t process_of_thread(pid_t tid)
{
    char path[64], line[128];
    int pid = -ESRCH;
    snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -ESRCH;
    while (pid == -ESRCH && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Tgid: %d", &pid) != 1)
            pid = -ESRCH;
    fclose(file);
    return pid;
}

static bool parse_gid(const char *text, uint8_t gid[16])
{
    for (size_t i = 0; i < 8; i++) {
        char *end;
        const unsigned long group = strtoul(text, &end, 16);
        if (end != text + 4 || group > 0xffff || (i < 7 && *end != ':'))
            return false;
        gid[2 * i] = (uint8_t)(group >> 8);
        gid[2 * i + 1] = (uint8_t)group;
        text = end + 1;
    }
    return true;
}

static int read_gid(const char *root, const char *device, unsigned port, unsigned index, uint8_t gid[16])
{
    char path[256];
    char text[64];
    uint8_t parsed[16];
    snprintf(path, sizeof path, "%s/sys/class/infiniband/%s/ports/%u/gids/%u", root, device, port, index);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -errno;
    const bool read = fgets(text, sizeof text, file) != NULL && parse_gid(text, parsed);
    fclose(file);
    if (!read)
        return -ENOENT;
    memcpy(gid, parsed, sizeof parsed);
    return 0;
}

int process_read_gid(pid_t pid, const char *device, unsigned port, unsigned index, uint8_t gid[16])
{
    char root[64];
    if (strchr(device, '/') != NULL || device[0] == '\0' || device[0] == '.')
        return -ENOENT;
    snprintf(root, sizeof root, "/proc/%d/root", (int)pid);
    return read_gid(root, device, port, index, gid) == 0 ? 0 : read_gid("", device, port, index, gid);
}

int process_read_memory(pid_t pid, uint64_t address, void *into, size_t size_bytes)
{
    const struct iovec to = {.iov_base = into, .iov_len = size_bytes};
    const struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = size_bytes};
    const ssize_t read = process_vm_readv(pid, &to, 1, &from, 1, 0);
    if (read < 0)
        return -errno;
    return (size_t)read == size_bytes ? 0 : -EFAULT;
}
