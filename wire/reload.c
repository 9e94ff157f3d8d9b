/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a configuration again. Invariant: `used` is what the program goes by: what it was started with, but for the
 * live ones. It is a copy, since a program may fill in what was left open.
 */
#include "wire/reload.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "wire/log.h"

#define NAMES_BYTES 512

struct reload {
    struct reload_options options;
    int descriptor;
    unsigned char *used;
    unsigned char *defaults;
    unsigned char *fresh;
};

static int open_signal(struct reload *reload)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    reload->descriptor = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return reload->descriptor < 0 ? -errno : 0;
}

int reload_open(struct reload **reload, const struct reload_options *options)
{
    struct reload *made = calloc(1, sizeof *made);
    unsigned char *copies = malloc(3 * options->values_bytes);
    int error = 0;

    if (made == NULL || copies == NULL) {
        free(made);
        free(copies);
        return log_error_return(-ENOMEM, "out of memory for the configuration");
    }
    made->options = *options;
    made->used = copies;
    made->defaults = copies + options->values_bytes;
    made->fresh = copies + 2 * options->values_bytes;
    memcpy(made->used, options->values, options->values_bytes);
    memcpy(made->defaults, options->defaults, options->values_bytes);
    memcpy(made->fresh, options->defaults, options->values_bytes);
    made->descriptor = -1;
    if (option_parse_again(options->program, options->argc, options->argv, made->fresh) == 1)
        error = open_signal(made);
    if (error != 0) {
        reload_close(&made);
        return log_error_return(error, "cannot wait for SIGHUP: %s", strerror(-error));
    }
    *reload = made;
    return 0;
}

int reload_descriptor(const struct reload *reload)
{
    return reload->descriptor;
}

static size_t kind_bytes(enum option_kind kind)
{
    switch (kind) {
    case OPTION_FLAG:
        return sizeof(bool);
    case OPTION_CHOICE:
        return sizeof(int);
    case OPTION_TEXT:
        return sizeof(const char *);
    case OPTION_TEXT_LIST:
        return sizeof(struct option_list);
    case OPTION_UNSIGNED:
    case OPTION_DURATION:
    case OPTION_BYTES:
        return sizeof(uint64_t);
    }
    return 0;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_list(const struct option_list *a, const struct option_list *b)
{
    for (size_t i = 0; i < a->count && a->count == b->count; i++)
        if (!same_text(a->values[i], b->values[i]))
            return false;
    return a->count == b->count;
}

static bool is_same(const struct reload *reload, const struct option_spec *spec)
{
    const void *used = reload->used + spec->offset;
    const void *fresh = reload->fresh + spec->offset;

    if (spec->kind == OPTION_TEXT)
        return same_text(*(const char *const *)used, *(const char *const *)fresh);
    if (spec->kind == OPTION_TEXT_LIST)
        return same_list(used, fresh);
    return memcmp(used, fresh, kind_bytes(spec->kind)) == 0;
}

static bool is_live(const struct reload *reload, const struct option_spec *spec)
{
    for (const char *const *name = reload->options.live; *name != NULL; name++)
        if (strcmp(*name, spec->name) == 0)
            return true;
    return false;
}

static void note(char names[NAMES_BYTES], const char *name)
{
    size_t length = strlen(names);

    snprintf(names + length, NAMES_BYTES - length, "%s%s", length == 0 ? "" : ", ", name);
}

static void take_over(struct reload *reload, const struct option_spec *spec)
{
    size_t length = kind_bytes(spec->kind);

    memcpy(reload->used + spec->offset, reload->fresh + spec->offset, length);
    memcpy((char *)reload->options.values + spec->offset, reload->fresh + spec->offset, length);
}

static bool compare(struct reload *reload)
{
    const struct option_program *program = reload->options.program;
    char taken[NAMES_BYTES] = "";
    char kept[NAMES_BYTES] = "";

    for (size_t i = 0; i < program->options_count; i++) {
        const struct option_spec *spec = &program->options[i];
        if (is_same(reload, spec))
            continue;
        if (is_live(reload, spec))
            take_over(reload, spec);
        note(is_live(reload, spec) ? taken : kept, spec->name);
    }
    if (kept[0] != '\0')
        log_warning("SIGHUP: what was changed of %s needs a new start: it stays as it was", kept);
    if (taken[0] != '\0')
        log_info("SIGHUP: taken over: %s", taken);
    if (taken[0] == '\0' && kept[0] == '\0')
        log_info("SIGHUP: the configuration was read again; nothing of it has changed");
    return taken[0] != '\0';
}

bool reload_take(struct reload *reload)
{
    const struct reload_options *options = &reload->options;
    struct signalfd_siginfo signal;

    while (read(reload->descriptor, &signal, sizeof signal) > 0)
        continue;
    memcpy(reload->fresh, reload->defaults, options->values_bytes);
    int result = option_parse_again(options->program, options->argc, options->argv, reload->fresh);
    if (result == 1 && options->check != NULL && options->check(reload->fresh) != 0)
        result = -EINVAL;
    if (result < 0)
        log_error("SIGHUP: the configuration is wrong, as said before: all stays as it was");
    return result == 1 && compare(reload);
}

void reload_close(struct reload **reload)
{
    if (*reload == NULL)
        return;
    if ((*reload)->descriptor >= 0)
        close((*reload)->descriptor);
    free((*reload)->used);
    free(*reload);
    *reload = NULL;
}
