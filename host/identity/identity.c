/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: proc(5): environ, cmdline, status, cgroup; namespaces(7). Invariant: only what was read is told, and each
 * fact once an index. The environment is that of the process's start: what it set itself since is not in it.
 */
#include "host/identity/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "host/identity/cgroup.h"
#include "host/identity/gpu.h"

#define ENVIRONMENT_BYTES_MAX (4u << 20)
#define FILE_BYTES_MAX        65536

struct reader {
    const char *root;
    pid_t pid;
    identity_visit *visit;
    void *context;
};

static void tell(const struct reader *reader, enum process_fact fact, unsigned index, struct text text)
{
    if (text.length != 0)
        reader->visit(reader->context, fact, index, text);
}

static struct text text_of(const char *string)
{
    return (struct text){string, strlen(string)};
}

/* A file of the process in fresh memory, which the caller frees; empty when it cannot be read, NULL without memory. */
static char *read_file(const struct reader *reader, const char *name, size_t capacity, size_t *length_bytes)
{
    char path[PATH_MAX];
    *length_bytes = 0;
    snprintf(path, sizeof path, "%s/proc/%d/%s", reader->root, (int)reader->pid, name);
    char *bytes = malloc(capacity);
    if (bytes == NULL)
        return NULL;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = descriptor < 0 ? -1 : 1;
    while (got > 0 && *length_bytes < capacity) {
        got = read(descriptor, bytes + *length_bytes, capacity - *length_bytes);
        *length_bytes += got > 0 ? (size_t)got : 0;
    }
    if (descriptor >= 0)
        close(descriptor);
    return bytes;
}

static void read_command_line(const struct reader *reader)
{
    size_t length;
    char *bytes = read_file(reader, "cmdline", FILE_BYTES_MAX, &length);
    if (bytes == NULL)
        return;
    while (length != 0 && bytes[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == '\0')
            bytes[i] = ' ';
    tell(reader, PROCESS_FACT_COMMAND_LINE, 0, (struct text){bytes, length});
    free(bytes);
}

/* The nth word (from 0) of a line, parted by blanks; the last one when n is -1. */
static struct text word_of(struct text line, int n)
{
    struct cursor cursor;
    struct text word = {0};
    int count = 0;
    text_read(&cursor, line);
    while (cursor_left(&cursor) != 0 && (n < 0 || count <= n)) {
        const struct text next = text_take(&cursor, '\t');
        if (next.length != 0) {
            word = next;
            count++;
        }
    }
    return n < 0 || count == n + 1 ? word : (struct text){0};
}

static void read_status(const struct reader *reader)
{
    size_t length;
    struct cursor cursor;
    char *bytes = read_file(reader, "status", FILE_BYTES_MAX, &length);
    if (bytes == NULL)
        return;
    cursor_init(&cursor, bytes, length);
    while (cursor_left(&cursor) != 0) {
        const struct text line = text_take(&cursor, '\n');
        if (text_begins(line, "Uid:"))
            tell(reader, PROCESS_FACT_USER, 0, word_of(line, 2));
        if (text_begins(line, "NSpid:"))
            tell(reader, PROCESS_FACT_PID, 0, word_of(line, -1));
    }
    free(bytes);
}

/* ---- the environment ---- */

static const struct {
    const char *name;
    enum process_fact fact;
} variables[] = {
#define FACT(name, number, text, help)
#define VARIABLE(name, number, help) {#name, PROCESS_FACT_##name},
#include "wire/process_fact.def"
#undef VARIABLE
#undef FACT
};

/* What other facts are made of. */
struct environment {
    struct text slurm_job;
    struct text slurm_step;
    struct text visible;
    bool by_address; /* CUDA numbers devices by PCI address */
    bool restricted; /* the container has but some of the GPUs */
    unsigned nccl_count;
};

static void note_variable(struct environment *environment, struct text name, struct text value)
{
    if (text_is(name, "SLURM_JOB_ID"))
        environment->slurm_job = value;
    if (text_is(name, "SLURM_STEP_ID"))
        environment->slurm_step = value;
    if (text_is(name, "CUDA_VISIBLE_DEVICES"))
        environment->visible = value;
    if (text_is(name, "CUDA_DEVICE_ORDER"))
        environment->by_address = text_is(value, "PCI_BUS_ID");
    if (text_is(name, "NVIDIA_VISIBLE_DEVICES"))
        environment->restricted = !text_is(value, "all");
}

static void take_variable(const struct reader *reader, struct text variable, struct environment *environment)
{
    struct cursor cursor;
    text_read(&cursor, variable);
    const struct text name = text_take(&cursor, '=');
    const struct text value = {(const char *)cursor.at, cursor_left(&cursor)};
    note_variable(environment, name, value);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (text_is(name, variables[i].name))
            tell(reader, variables[i].fact, 0, value);
    if (text_begins(name, "NCCL_") && environment->nccl_count < IDENTITY_VARIABLES_MAX)
        tell(reader, PROCESS_FACT_NCCL_VARIABLE, environment->nccl_count++, variable);
}

/* ---- where it runs ---- */

static void read_cgroup(const struct reader *reader, const struct environment *environment)
{
    size_t length;
    struct cgroup cgroup;
    char *bytes = read_file(reader, "cgroup", FILE_BYTES_MAX, &length);
    if (bytes == NULL)
        return;
    cgroup_parse(bytes, length, &cgroup);
    tell(reader, PROCESS_FACT_CGROUP, 0, cgroup.path);
    tell(reader, PROCESS_FACT_CONTAINER, 0, cgroup.container);
    if (cgroup.runtime != NULL)
        tell(reader, PROCESS_FACT_CONTAINER_RUNTIME, 0, text_of(cgroup.runtime));
    tell(reader, PROCESS_FACT_POD, 0, text_of(cgroup.pod));
    const bool told = cgroup.slurm_job.length != 0;
    tell(reader, PROCESS_FACT_SLURM_JOB, 0, told ? cgroup.slurm_job : environment->slurm_job);
    tell(reader, PROCESS_FACT_SLURM_STEP, 0, told ? cgroup.slurm_step : environment->slurm_step);
    free(bytes);
}

static bool same_file(const char *left, const char *right)
{
    struct stat a;
    struct stat b;
    return stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* What the process's UTS namespace says: this thread goes there to ask, and comes back. */
static int read_foreign_name(const char *namespace, struct utsname *name)
{
    int error = 0;
    const int own = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    const int other = open(namespace, O_RDONLY | O_CLOEXEC);
    if (own < 0 || other < 0 || setns(other, CLONE_NEWUTS) != 0)
        error = -errno;
    else {
        uname(name);
        setns(own, CLONE_NEWUTS);
    }
    if (own >= 0)
        close(own);
    if (other >= 0)
        close(other);
    return error;
}

static void read_host_name(const struct reader *reader)
{
    char path[PATH_MAX];
    struct utsname name;
    snprintf(path, sizeof path, "%s/proc/%d/ns/uts", reader->root, (int)reader->pid);
    const int error = same_file(path, "/proc/self/ns/uts") ? uname(&name) : read_foreign_name(path, &name);
    if (error == 0)
        tell(reader, PROCESS_FACT_HOST_NAME, 0, text_of(name.nodename));
}

/* ---- GPUs ---- */

static void tell_open(void *context, unsigned number, const char *address)
{
    tell(context, PROCESS_FACT_GPU, number, text_of(address));
}

static void tell_visible(void *context, unsigned number, const char *address)
{
    tell(context, PROCESS_FACT_CUDA_DEVICE, number, text_of(address));
}

void identity_read(const char *root, pid_t pid, identity_visit *visit, void *context)
{
    struct reader reader = {.root = root, .pid = pid, .visit = visit, .context = context};
    struct environment environment = {0};
    struct cursor cursor;
    size_t length;
    char *bytes = read_file(&reader, "environ", ENVIRONMENT_BYTES_MAX, &length);
    if (bytes == NULL)
        return;
    cursor_init(&cursor, bytes, length);
    read_status(&reader);
    read_command_line(&reader);
    read_host_name(&reader);
    while (cursor_left(&cursor) != 0)
        take_variable(&reader, text_take(&cursor, '\0'), &environment);
    read_cgroup(&reader, &environment);
    gpu_each_open(root, pid, tell_open, &reader);
    gpu_each_visible(root, environment.visible, environment.by_address && !environment.restricted, tell_visible,
                     &reader);
    free(bytes);
}
