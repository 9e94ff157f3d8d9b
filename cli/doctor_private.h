/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks, and what they share. */
#pragma once

#include <glob.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/doctor.h"

#define DOCTOR_CHECK(name, needed_by, title, advice)                                                                   \
    void doctor_look_##name(const struct doctor_machine *machine, struct doctor_finding *finding);
#include "cli/doctor_check.def"
#undef DOCTOR_CHECK

#define DOCTOR_PATH_BYTES 4096

void doctor_found(struct doctor_finding *finding, enum doctor_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The first bytes of a file below the root as text, without the last newline. False when it cannot be read. */
bool doctor_read(const struct doctor_machine *machine, const char *path, char *into, size_t capacity);

/* The number behind `key` in a file of lines "key number". False when there is none. */
bool doctor_read_number(const struct doctor_machine *machine, const char *path, const char *key, int base,
                        uint64_t *number);

/* The paths below the root that match; end with globfree. Returns how many there are. */
size_t doctor_glob(const struct doctor_machine *machine, const char *pattern, glob_t *paths);

/* The last parts of the paths, ", " between them, as many as fit. */
void doctor_join(const glob_t *paths, char *into, size_t capacity);

/* Whether this process has a capability, by its number in capabilities(7), or CAP_SYS_ADMIN where that implies it. */
bool doctor_has_capability(const struct doctor_machine *machine, unsigned capability);
