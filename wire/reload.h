/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon's configuration, read again when SIGHUP comes: the files of --config, and the command line over them, as at
 * the start. What is live is taken over; whatever else changed is named in one line, and stays. A configuration that is
 * wrong changes nothing. One thread, which may be another than the values' users' only where these are read as atomics.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/option.h"

struct reload;

struct reload_options {
    const struct option_program *program;
    int argc; /* as they were parsed at the start; both stay as long as the reload */
    char **argv;
    void *values;         /* the program's settings in use; live ones are changed here */
    const void *defaults; /* what they were preset with; copied */
    size_t values_bytes;
    const char *const *live;          /* NULL-terminated long names; of kinds that are numbers, flags or choices */
    int (*check)(const void *values); /* not 0, after logging: these do not go together; NULL = all do */
};

/*
 * From now on SIGHUP is blocked in this thread, and those it starts; without --config it ends the program as it did.
 * -errno after logging.
 */
int reload_open(struct reload **reload, const struct reload_options *options);

/* Polls readable when SIGHUP came; -1 without --config. */
int reload_descriptor(const struct reload *reload);

/* Reads the signal and the configuration, and says what came of it. True when something that is live has another value.
 */
bool reload_take(struct reload *reload);

/* A no-op on NULL. */
void reload_close(struct reload **reload);
