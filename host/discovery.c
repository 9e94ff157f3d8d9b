/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: a file with probes is in `libraries` and stays there: its inode is held by its probes, so its key cannot
 * come to mean another file. A file without is remembered with its time of change, and looked at again when that moves.
 */
#include "host/discovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "host/counter.h"
#include "wire/log.h"

#define LIBRARIES_MAX  256
#define STRANGERS_MAX  32768
#define DIRECTORY_DEEP 2 /* folders of folders: /usr/lib/x86_64-linux-gnu, /usr/local/cuda-13/lib64 */

/* A file that is none of ours. */
struct stranger {
    struct file_key file;
    struct timespec changed;
    UT_hash_handle hh;
};

struct discovery {
    struct discovery_options options;
    struct library libraries[LIBRARIES_MAX];
    size_t libraries_count;
    struct stranger *strangers;
    pid_t self;
};

int discovery_create(struct discovery **discovery, const struct discovery_options *options)
{
    struct discovery *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for the table of libraries");
    fresh->options = *options;
    fresh->self = getpid();
    *discovery = fresh;
    return 0;
}

static void forget_strangers(struct discovery *discovery)
{
    struct stranger *stranger;
    struct stranger *next;
    HASH_ITER(hh, discovery->strangers, stranger, next)
    {
        HASH_DEL(discovery->strangers, stranger);
        free(stranger);
    }
}

void discovery_destroy(struct discovery **discovery)
{
    if (*discovery == NULL)
        return;
    forget_strangers(*discovery);
    free(*discovery);
    *discovery = NULL;
}

static bool is_library(const struct discovery *discovery, const struct file_key *file)
{
    for (size_t i = 0; i < discovery->libraries_count; i++)
        if (memcmp(&discovery->libraries[i].file, file, sizeof *file) == 0)
            return true;
    return false;
}

static struct stranger *find_stranger(const struct discovery *discovery, const struct file_key *file)
{
    struct stranger *stranger;
    HASH_FIND(hh, discovery->strangers, file, sizeof *file, stranger);
    return stranger;
}

static void remember_stranger(struct discovery *discovery, const struct file_key *file, int descriptor)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return;
    struct stranger *stranger = find_stranger(discovery, file);
    if (stranger == NULL) {
        if (HASH_COUNT(discovery->strangers) >= STRANGERS_MAX)
            forget_strangers(discovery); /* they are looked at once more */
        stranger = calloc(1, sizeof *stranger);
        if (stranger == NULL)
            return;
        stranger->file = *file;
        HASH_ADD(hh, discovery->strangers, file, sizeof stranger->file, stranger);
    }
    stranger->changed = status.st_ctim;
}

static size_t add_library(struct discovery *discovery, const struct file_key *file, const char *path, int descriptor,
                          const struct library_places *places, uint64_t mapped_ns)
{
    if (discovery->libraries_count == LIBRARIES_MAX) {
        counter_add(discovery->options.counters, COUNT_LIBRARIES_REFUSED, 1);
        return 0;
    }
    struct library *library = &discovery->libraries[discovery->libraries_count];
    library->number = ++discovery->libraries_count;
    library->file = *file;
    snprintf(library->path, sizeof library->path, "%s", path);
    counter_add(discovery->options.counters, COUNT_LIBRARIES, 1);
    return discovery->options.attach(discovery->options.context, library, descriptor, places, mapped_ns);
}

/*
 * Looks into an open file. `file` NULL: its key has to be found out, which is done for our kind only. Returns the
 * number of probes set (0 for a stranger), -EALREADY for a file that has them, else -errno.
 */
static int examine(struct discovery *discovery, int descriptor, const struct file_key *file, const char *path,
                   uint64_t mapped_ns)
{
    struct library_places places;
    counter_add(discovery->options.counters, COUNT_FILES_SEEN, 1);
    const int error = library_find(descriptor, &places);
    if (error != 0 && error != -ENOEXEC)
        counter_add(discovery->options.counters, COUNT_FILES_UNREADABLE, 1);
    if ((error != 0 || places.count == 0) && file != NULL)
        remember_stranger(discovery, file, descriptor);
    if (error != 0 || places.count == 0)
        return error;
    struct file_key found;
    const int unknown = file == NULL ? process_file_key(descriptor, &found) : 0;
    if (unknown != 0)
        return unknown;
    if (file == NULL)
        file = &found;
    if (is_library(discovery, file))
        return -EALREADY;
    return (int)add_library(discovery, file, path, descriptor, &places, mapped_ns);
}

/* Whether the file is one that was looked at before and has not changed since. */
static bool is_known_stranger(const struct discovery *discovery, pid_t pid, const struct mapping *mapping)
{
    const struct stranger *stranger = find_stranger(discovery, &mapping->file);
    if (stranger == NULL)
        return false;
    char path[PROCESS_PATH_BYTES + 64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, mapping->path);
    if (stat(path, &status) != 0 || status.st_ino != mapping->file.inode)
        return true;
    return status.st_ctim.tv_sec == stranger->changed.tv_sec && status.st_ctim.tv_nsec == stranger->changed.tv_nsec;
}

void discovery_look_at_mapping(struct discovery *discovery, pid_t pid, const struct mapping *mapping,
                               uint64_t mapped_ns)
{
    if (pid == discovery->self || is_library(discovery, &mapping->file) || is_known_stranger(discovery, pid, mapping))
        return;
    const int descriptor = process_open(pid, mapping);
    if (descriptor < 0) {
        counter_add(discovery->options.counters, COUNT_FILES_UNREADABLE, 1);
        return;
    }
    examine(discovery, descriptor, &mapping->file, mapping->path, mapped_ns);
    close(descriptor);
}

static int visit_mapping(void *context, pid_t pid, const struct mapping *mapping)
{
    discovery_look_at_mapping(context, pid, mapping, 0);
    return 0;
}

static void visit_process(void *context, pid_t pid)
{
    process_each_mapping(pid, visit_mapping, context);
}

void discovery_scan_processes(struct discovery *discovery)
{
    process_each(visit_process, discovery);
}

int discovery_look_at_file(struct discovery *discovery, const char *path)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return log_error_return(-errno, "%s: %s", path, strerror(errno));
    const int result = examine(discovery, descriptor, NULL, path, 0);
    close(descriptor);
    if (result > 0 || result == -EALREADY)
        return 0;
    if (result == 0 || result == -ENOEXEC)
        return log_error_return(-EINVAL,
                                "%s: no collective library and no libibverbs: it defines neither "
                                "ncclCommInitRank nor ibv_create_qp",
                                path);
    return log_error_return(result, "%s: cannot read its symbols: %s", path, strerror(-result));
}

static bool is_shared_object(const char *name)
{
    const char *suffix = strstr(name, ".so");
    return suffix != NULL && (suffix[3] == '\0' || suffix[3] == '.');
}

static void scan_file(struct discovery *discovery, const char *path, size_t root_length)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return;
    examine(discovery, descriptor, NULL, path + root_length, 0);
    close(descriptor);
}

/* Links to folders are followed (cuda/lib64 is one), links to files are not (what they name lies beside them). */
static mode_t entry_type(int directory, const struct dirent *entry)
{
    struct stat status;
    if (fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    if (!S_ISLNK(status.st_mode))
        return status.st_mode & S_IFMT;
    return fstatat(directory, entry->d_name, &status, 0) == 0 && S_ISDIR(status.st_mode) ? S_IFDIR : 0;
}

static void scan_directory(struct discovery *discovery, const char *path, size_t root_length, int deep)
{
    DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        char below[PROCESS_PATH_BYTES];
        if (entry->d_name[0] == '.' || snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= (int)sizeof below)
            continue;
        const mode_t type = entry_type(dirfd(directory), entry);
        if (type == S_IFDIR && deep > 0)
            scan_directory(discovery, below, root_length, deep - 1);
        else if (type == S_IFREG && is_shared_object(entry->d_name))
            scan_file(discovery, below, root_length);
    }
    closedir(directory);
}

void discovery_scan_root(struct discovery *discovery, const char *root)
{
    static const char *const folders[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local", "/opt"};
    const size_t root_length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[PROCESS_PATH_BYTES];
        struct stat status;
        snprintf(path, sizeof path, "%.*s%s", (int)root_length, root, folders[i]);
        if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode)) /* /lib is often a link to /usr/lib */
            scan_directory(discovery, path, root_length, DIRECTORY_DEEP);
    }
}

const struct library *discovery_library(const struct discovery *discovery, uint64_t number)
{
    return number == 0 || number > discovery->libraries_count ? NULL : &discovery->libraries[number - 1];
}
