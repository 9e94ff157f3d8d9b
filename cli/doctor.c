/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of checks, and reading of files below the root. */
#include "cli/doctor_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 16384

const struct doctor_check doctor_checks[] = {
#define DOCTOR_CHECK(name, needed_by, title, advice) {#name, DOCTOR_##needed_by, title, advice, doctor_look_##name},
#include "cli/doctor_check.def"
#undef DOCTOR_CHECK
};

const size_t doctor_checks_count = sizeof(doctor_checks) / sizeof(doctor_checks[0]);

const char *doctor_status_name(enum doctor_status status)
{
    static const char *const names[] = {"ok", "warning", "missing"};
    return names[status];
}

const char *doctor_program_name(enum doctor_program program)
{
    static const char *const names[] = {"host", "nic", "correlator"};
    return names[program];
}

void doctor_found(struct doctor_finding *finding, enum doctor_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->found, sizeof(finding->found), format, arguments);
    va_end(arguments);
    finding->status = status;
}

bool doctor_read(const struct doctor_machine *machine, const char *path, char *into, size_t capacity)
{
    char name[DOCTOR_PATH_BYTES];
    snprintf(name, sizeof(name), "%s%s", machine->root, path);
    FILE *file = fopen(name, "re");
    if (file == NULL) {
        return false;
    }
    size_t length = fread(into, 1, capacity - 1, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    into[length] = '\0';
    if (length > 0 && into[length - 1] == '\n') {
        into[length - 1] = '\0';
    }
    return !failed;
}

bool doctor_read_number(const struct doctor_machine *machine, const char *path, const char *key, int base,
                        uint64_t *number)
{
    char text[TEXT_BYTES];
    if (!doctor_read(machine, path, text, sizeof(text))) {
        return false;
    }
    const char *found = strstr(text, key);
    if (found == NULL) {
        return false;
    }
    char *end;
    errno = 0;
    uint64_t value = strtoull(found + strlen(key), &end, base);
    if (errno != 0 || end == found + strlen(key)) {
        return false;
    }
    *number = value;
    return true;
}

size_t doctor_glob(const struct doctor_machine *machine, const char *pattern, glob_t *paths)
{
    char name[DOCTOR_PATH_BYTES];
    snprintf(name, sizeof(name), "%s%s", machine->root, pattern);
    memset(paths, 0, sizeof(*paths));
    return glob(name, GLOB_BRACE, NULL, paths) == 0 ? paths->gl_pathc : 0;
}

void doctor_join(const glob_t *paths, char *into, size_t capacity)
{
    size_t length = 0;
    into[0] = '\0';
    for (size_t i = 0; i < paths->gl_pathc && length < capacity; i++) {
        length += (size_t)snprintf(into + length, capacity - length, "%s%s", i == 0 ? "" : ", ",
                                   basename(paths->gl_pathv[i]));
    }
}
