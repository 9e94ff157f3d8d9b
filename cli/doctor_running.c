/* SPDX-License-Identifier: BSD-2-Clause */
/* What runs on the machine: jobs, qpscope's own daemons, and their store. */
#include "cli/doctor_private.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "report/form/text.h"
#include "report/read/store_reader.h"

#define FREE_LEAST_BYTES (1ull << 30)
#define LINE_BYTES       4096
#define PROCESSES        "/proc/[0-9]*"

/* The path of a mapped NCCL or RCCL in a line of /proc/PID/maps, or NULL. */
static char *collective_in(char *line)
{
    char *path = strchr(line, '/');
    if (path == NULL || strstr(path, ".so") == NULL ||
        (strstr(path, "/libnccl") == NULL && strstr(path, "/librccl") == NULL)) {
        return NULL;
    }
    path[strcspn(path, "\n")] = '\0';
    return path;
}

static bool maps_collective(const char *process, char *path, size_t capacity)
{
    char name[DOCTOR_PATH_BYTES];
    char line[LINE_BYTES];
    snprintf(name, sizeof(name), "%s/maps", process);
    FILE *file = fopen(name, "re");
    if (file == NULL) {
        return false;
    }
    char *found = NULL;
    while (found == NULL && fgets(line, sizeof(line), file) != NULL) {
        found = collective_in(line);
    }
    if (found != NULL) {
        snprintf(path, capacity, "%s", found);
    }
    fclose(file);
    return found != NULL;
}

void doctor_look_collective(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    glob_t processes;
    char path[LINE_BYTES] = "";
    size_t users = 0;
    doctor_glob(machine, PROCESSES, &processes);
    for (size_t i = 0; i < processes.gl_pathc; i++) {
        users += maps_collective(processes.gl_pathv[i], path, sizeof(path));
    }
    globfree(&processes);
    if (users > 0) {
        doctor_found(finding, DOCTOR_OK, "%zu process%s, such as %.150s", users, users == 1 ? "" : "es", path);
    } else {
        doctor_found(finding, DOCTOR_WARNING, "no process that may be looked at maps it");
    }
}

void doctor_look_time_namespace(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    char text[LINE_BYTES];
    long long seconds = 0;
    long nanoseconds = 0;
    if (!doctor_read(machine, "/proc/self/timens_offsets", text, sizeof(text)) ||
        sscanf(text, "monotonic %lld %ld", &seconds, &nanoseconds) != 2) {
        doctor_found(finding, DOCTOR_OK, "the kernel has none");
    } else if (seconds == 0 && nanoseconds == 0) {
        doctor_found(finding, DOCTOR_OK, "the machine's own clock");
    } else {
        doctor_found(finding, DOCTOR_WARNING, "CLOCK_MONOTONIC is shifted by %lld s and %ld ns", seconds, nanoseconds);
    }
}

/* The kernel cuts a process's name to 15 bytes. */
static const struct {
    const char *name;
    const char *command;
} daemons[DOCTOR_DAEMONS] = {
    {"nic", "qpscope-nic"},
    {"host", "qpscope-host"},
    {"correlator", "qpscope-correla"},
};

static size_t count_processes(const struct doctor_machine *machine, const char *command)
{
    glob_t processes;
    size_t count = 0;
    doctor_glob(machine, PROCESSES "/comm", &processes);
    for (size_t i = 0; i < processes.gl_pathc; i++) {
        char name[32];
        count += doctor_read(machine, processes.gl_pathv[i] + strlen(machine->root), name, sizeof(name)) &&
                 strcmp(name, command) == 0;
    }
    globfree(&processes);
    return count;
}

const char *doctor_daemon_name(size_t daemon)
{
    return daemons[daemon].name;
}

size_t doctor_daemon_count(const struct doctor_machine *machine, size_t daemon)
{
    return count_processes(machine, daemons[daemon].command);
}

void doctor_look_daemons(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    char text[DOCTOR_FOUND_BYTES] = "";
    size_t length = 0;
    bool all = true;
    for (size_t i = 0; i < DOCTOR_DAEMONS; i++) {
        size_t count = doctor_daemon_count(machine, i);
        all = all && count > 0;
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %s", i == 0 ? "" : ", ", daemons[i].name,
                                   count == 0 ? "not running" : "running");
    }
    doctor_found(finding, all ? DOCTOR_OK : DOCTOR_WARNING, "%s", text);
}

/* When the store or its log was written last. */
static time_t written_s(const char *store)
{
    char log[DOCTOR_PATH_BYTES];
    struct stat status;
    time_t last = stat(store, &status) == 0 ? status.st_mtime : 0;
    snprintf(log, sizeof(log), "%s-wal", store);
    return stat(log, &status) == 0 && status.st_mtime > last ? status.st_mtime : last;
}

int64_t doctor_store_age_ns(const char *store)
{
    time_t last = written_s(store);
    return last == 0 ? 0 : (int64_t)(time(NULL) - last) * 1000000000;
}

void doctor_look_store(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    struct store_reader *reader = NULL;
    struct stat status;
    char age[TEXT_NUMBER_BYTES];
    if (stat(machine->store, &status) != 0) {
        doctor_found(finding, DOCTOR_WARNING, "%.150s: %s", machine->store, strerror(errno));
        return;
    }
    if (store_reader_open(&reader, machine->store) != 0) {
        doctor_found(finding, DOCTOR_MISSING, "%.150s cannot be read", machine->store);
        return;
    }
    store_reader_close(&reader);
    int64_t age_ns = doctor_store_age_ns(machine->store);
    text_duration(age, age_ns);
    doctor_found(finding, age_ns <= DOCTOR_STALE_NS ? DOCTOR_OK : DOCTOR_WARNING, "%.150s, last written %s ago",
                 machine->store, age);
}

void doctor_look_disk(const struct doctor_machine *machine, struct doctor_finding *finding)
{
    char path[DOCTOR_PATH_BYTES];
    char *folder = path;
    struct statvfs status;
    char bytes[TEXT_NUMBER_BYTES];
    snprintf(path, sizeof(path), "%s", machine->store);
    do {
        folder = dirname(folder);
    } while (statvfs(folder, &status) != 0 && strcmp(folder, "/") != 0 && strcmp(folder, ".") != 0);
    if (statvfs(folder, &status) != 0) {
        doctor_found(finding, DOCTOR_WARNING, "%.150s: %s", folder, strerror(errno));
        return;
    }
    uint64_t free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    doctor_found(finding, free_bytes >= FREE_LEAST_BYTES ? DOCTOR_OK : DOCTOR_WARNING, "%s free on %.150s",
                 text_bytes(bytes, (int64_t)free_bytes), folder);
}
