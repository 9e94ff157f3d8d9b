/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: Documentation/admin-guide/kernel-parameters.txt (preempt=), kernel/Kconfig.preempt, and what
 * /proc/sys/kernel/version names. A kernel that can change its mode says it in debugfs; where that is not mounted, what
 * it was started with counts, then what it was built with.
 */
#include "wire/preemption.h"

#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 4096
#define LINE_BYTES 256
#define MAJOR      6
#define MINOR      6

static FILE *open_below(const char *root, const char *path)
{
    char whole[TEXT_BYTES];
    return snprintf(whole, sizeof whole, "%s%s", root, path) < (int)sizeof whole ? fopen(whole, "re") : NULL;
}

/* The first line; "" when there is none. */
static void read_line(const char *root, const char *path, char text[TEXT_BYTES])
{
    FILE *file = open_below(root, path);
    text[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(text, TEXT_BYTES, file) == NULL)
        text[0] = '\0';
    fclose(file);
}

static enum preemption mode_of(const char *name, size_t length)
{
    return length == strlen("full") && memcmp(name, "full", length) == 0 ? PREEMPTION_FULL : PREEMPTION_OTHER;
}

/* "none voluntary (full)": what holds stands in brackets. */
static enum preemption read_present(const char *root)
{
    char text[TEXT_BYTES];
    read_line(root, "/sys/kernel/debug/sched/preempt", text);
    const char *from = strchr(text, '(');
    const char *to = from == NULL ? NULL : strchr(from, ')');
    return to == NULL ? PREEMPTION_UNKNOWN : mode_of(from + 1, (size_t)(to - from - 1));
}

/* The last one counts. */
static enum preemption read_command_line(const char *root)
{
    char text[TEXT_BYTES];
    char *rest = NULL;
    enum preemption found = PREEMPTION_UNKNOWN;
    read_line(root, "/proc/cmdline", text);
    for (const char *word = strtok_r(text, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest))
        if (strncmp(word, "preempt=", 8) == 0)
            found = mode_of(word + 8, strlen(word + 8));
    return found;
}

static enum preemption read_configuration(const char *root, const char *release)
{
    char path[LINE_BYTES];
    char line[LINE_BYTES];
    enum preemption found = PREEMPTION_UNKNOWN;
    snprintf(path, sizeof path, "/boot/config-%.200s", release);
    FILE *file = open_below(root, path);
    if (file == NULL)
        return PREEMPTION_UNKNOWN;
    while (found == PREEMPTION_UNKNOWN && fgets(line, sizeof line, file) != NULL) {
        if (strcmp(line, "CONFIG_PREEMPT=y\n") == 0)
            found = PREEMPTION_FULL;
        else if (strcmp(line, "CONFIG_PREEMPT_VOLUNTARY=y\n") == 0 || strcmp(line, "CONFIG_PREEMPT_NONE=y\n") == 0)
            found = PREEMPTION_OTHER;
    }
    fclose(file);
    return found;
}

/* "#1 SMP PREEMPT_DYNAMIC Debian 6.1.1-1": a word of its own. */
static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\n' || at[length] == '\0'))
            return true;
    return false;
}

enum preemption preemption_read(const char *root)
{
    char release[TEXT_BYTES];
    char version[TEXT_BYTES];
    int major = 0;
    int minor = 0;
    read_line(root, "/proc/sys/kernel/osrelease", release);
    read_line(root, "/proc/sys/kernel/version", version);
    release[strcspn(release, "\n")] = '\0';
    if (sscanf(release, "%d.%d", &major, &minor) != 2 || version[0] == '\0')
        return PREEMPTION_UNKNOWN;
    if (major > MAJOR || (major == MAJOR && minor >= MINOR))
        return PREEMPTION_HARMLESS;
    if (!has_word(version, "PREEMPT_DYNAMIC"))
        return has_word(version, "PREEMPT") || has_word(version, "PREEMPT_RT") ? PREEMPTION_FULL : PREEMPTION_OTHER;
    enum preemption found = read_present(root);
    if (found == PREEMPTION_UNKNOWN)
        found = read_command_line(root);
    return found == PREEMPTION_UNKNOWN ? read_configuration(root, release) : found;
}
