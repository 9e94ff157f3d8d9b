/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: a file with probes is in `libraries` and stays there: its inode is held by its probes, so its key cannot
 * come to mean another file. Every other key that was met (of strangers, and of an overlay's view of a library) is
 * remembered with its file's time of change, and looked at again when that moves.
 */
#include "host/library/discovery.h"

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
#define SEEN_MAX       32768
#define DIRECTORY_DEEP 2 /* folders of folders: /usr/lib/x86_64-linux-gnu, /usr/local/cuda-13/lib64 */

/* A file that was looked at. */
struct seen {
    struct file_key file; /* as processes show it */
    struct timespec changed;
    uint64_t library; /* 0 = none of ours */
    UT_hash_handle hh;
};

struct discovery {
    struct discovery_options options;
    struct library libraries[LIBRARIES_MAX];
    size_t libraries_count;
    struct seen *seen;
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

static void forget_seen(struct discovery *discovery)
{
    struct seen *seen;
    struct seen *next;
    HASH_ITER(hh, discovery->seen, seen, next)
    {
        HASH_DEL(discovery->seen, seen);
        free(seen);
    }
}

void discovery_destroy(struct discovery **discovery)
{
    if (*discovery == NULL)
        return;
    forget_seen(*discovery);
    free(*discovery);
    *discovery = NULL;
}

/* The library whose code this file holds; NULL = none. */
static struct library *find_library(struct discovery *discovery, const struct file_key *file)
{
    for (size_t i = 0; i < discovery->libraries_count; i++)
        if (memcmp(&discovery->libraries[i].file, file, sizeof *file) == 0)
            return &discovery->libraries[i];
    return NULL;
}

static struct seen *find_seen(const struct discovery *discovery, const struct file_key *file)
{
    struct seen *seen;
    HASH_FIND(hh, discovery->seen, file, sizeof *file, seen);
    return seen;
}

static void remember(struct discovery *discovery, const struct file_key *file, int descriptor, uint64_t library)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return;
    struct seen *seen = find_seen(discovery, file);
    if (seen == NULL) {
        if (HASH_COUNT(discovery->seen) >= SEEN_MAX)
            forget_seen(discovery); /* they are looked at once more */
        seen = calloc(1, sizeof *seen);
        if (seen == NULL)
            return;
        seen->file = *file;
        HASH_ADD(hh, discovery->seen, file, sizeof seen->file, seen);
    }
    seen->changed = status.st_ctim;
    seen->library = library;
}

/* Has the probes of a file set that has none yet. NULL when the table is full, or they cannot be ordered. */
static struct library *add_library(struct discovery *discovery, const struct file_key *file, const char *path,
                                   int descriptor, const struct library_places *places, uint64_t mapped_ns)
{
    if (discovery->libraries_count == LIBRARIES_MAX) {
        counter_add(discovery->options.counters, COUNT_LIBRARIES_REFUSED, 1);
        return NULL;
    }
    struct library *library = &discovery->libraries[discovery->libraries_count];
    library->number = discovery->libraries_count + 1;
    library->file = *file;
    snprintf(library->path, sizeof library->path, "%s", path);
    if (discovery->options.attach(discovery->options.context, library, descriptor, places, mapped_ns) != 0)
        return NULL;
    discovery->libraries_count++;
    counter_add(discovery->options.counters, COUNT_LIBRARIES, 1);
    return library;
}

/* Finds or sets the probes of an open file. Returns the library's number, 0 for a stranger, or -errno. */
static int64_t examine(struct discovery *discovery, int descriptor, const char *path, uint64_t mapped_ns)
{
    struct library_places places;
    struct file_key file;
    counter_add(discovery->options.counters, COUNT_FILES_SEEN, 1);
    int error = library_find(descriptor, &places);
    if (error == 0 && places.count == 0)
        return 0;
    if (error == 0)
        error = discovery->options.file_key(discovery->options.context, descriptor, &file);
    if (error != 0) {
        counter_add(discovery->options.counters, COUNT_FILES_UNREADABLE, error != -ENOEXEC);
        return error;
    }
    const struct library *library = find_library(discovery, &file);
    if (library == NULL)
        library = add_library(discovery, &file, path, descriptor, &places, mapped_ns);
    return library == NULL ? -ENOSPC : (int64_t)library->number;
}

/* Whether the file was looked at before and has not changed since. */
static bool is_seen(const struct discovery *discovery, pid_t pid, const struct mapping *mapping)
{
    const struct seen *seen = find_seen(discovery, &mapping->file);
    if (seen == NULL)
        return false;
    char path[PROCESS_PATH_BYTES + 64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, mapping->path);
    if (stat(path, &status) != 0 || status.st_ino != mapping->file.inode)
        return true;
    return status.st_ctim.tv_sec == seen->changed.tv_sec && status.st_ctim.tv_nsec == seen->changed.tv_nsec;
}

void discovery_look_at_mapping(struct discovery *discovery, pid_t pid, const struct mapping *mapping,
                               uint64_t mapped_ns)
{
    if (pid == discovery->self || find_library(discovery, &mapping->file) != NULL || is_seen(discovery, pid, mapping))
        return;
    const int descriptor = process_open(pid, mapping);
    if (descriptor < 0) {
        counter_add(discovery->options.counters, COUNT_FILES_UNREADABLE, 1);
        return;
    }
    const int64_t library = examine(discovery, descriptor, mapping->path, mapped_ns);
    remember(discovery, &mapping->file, descriptor, library < 0 ? 0 : (uint64_t)library);
    close(descriptor);
}

static bool goes_on(const struct discovery *discovery)
{
    return discovery->options.go_on == NULL || discovery->options.go_on(discovery->options.context);
}

static int visit_mapping(void *context, pid_t pid, const struct mapping *mapping)
{
    struct discovery *discovery = context;
    discovery_look_at_mapping(discovery, pid, mapping, 0);
    return goes_on(discovery) ? 0 : -ECANCELED;
}

static int visit_usual_mapping(void *context, pid_t pid, const struct mapping *mapping)
{
    return library_has_usual_name(mapping->path) ? visit_mapping(context, pid, mapping) : 0;
}

static void visit_process_first(void *context, pid_t pid)
{
    if (goes_on(context))
        process_each_mapping(pid, visit_usual_mapping, context);
}

static void visit_process(void *context, pid_t pid)
{
    if (goes_on(context))
        process_each_mapping(pid, visit_mapping, context);
}

void discovery_scan_processes(struct discovery *discovery)
{
    process_each(visit_process_first, discovery);
    process_each(visit_process, discovery);
}

int discovery_look_at_file(struct discovery *discovery, const char *path)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return log_error_return(-errno, "%s: %s", path, strerror(errno));
    const int64_t result = examine(discovery, descriptor, path, 0);
    close(descriptor);
    if (result > 0)
        return 0;
    if (result == 0 || result == -ENOEXEC)
        return log_error_return(-EINVAL,
                                "%s: no collective library and no libibverbs: it defines neither "
                                "ncclCommInitRank nor ibv_create_qp",
                                path);
    if (result == -ENOSPC)
        return log_error_return(-ENOSPC, "%s: no probe could be set in it", path);
    return log_error_return((int)result, "%s: cannot be probed: %s", path, strerror((int)-result));
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
    examine(discovery, descriptor, path + root_length, 0);
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
    while (goes_on(discovery) && (entry = readdir(directory)) != NULL) {
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

struct path_search {
    struct discovery *discovery;
    uint64_t number;
    char *path;
    size_t path_bytes;
};

static int match_library(void *context, pid_t pid, const struct mapping *mapping)
{
    (void)pid;
    const struct path_search *search = context;
    const struct library *library = find_library(search->discovery, &mapping->file);
    const struct seen *seen = find_seen(search->discovery, &mapping->file);
    const uint64_t number = library != NULL ? library->number : seen != NULL ? seen->library : 0;
    if (number != search->number)
        return 0;
    snprintf(search->path, search->path_bytes, "%s", mapping->path);
    return 1;
}

void discovery_path(struct discovery *discovery, uint64_t number, pid_t pid, char *path, size_t path_bytes)
{
    struct path_search search = {discovery, number, path, path_bytes};
    path[0] = '\0';
    if (number == 0 || number > discovery->libraries_count)
        return;
    if (process_each_mapping(pid, match_library, &search) != 1)
        snprintf(path, path_bytes, "%s", discovery->libraries[number - 1].path);
}
