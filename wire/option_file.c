/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration files. Invariant: `texts` has every file that was read, since values point into them until the end.
 * What is read is trusted no further than a command line is: it is text of bounded size, taken apart in place.
 */
#include "wire/option_file.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/log.h"

#define FILE_BYTES_MAX (1u << 20)
#define WHERE_BYTES    512
#define FAMILY         "qpscope-"

struct text {
    struct text *next;
    char bytes[];
};

struct reading {
    const char *path;
    const char *program;
    option_file_take *take;
    void *context;
    bool is_ours;  /* the section that the line is in */
    unsigned file; /* counts from 0 */
    unsigned line;
    int error; /* the first one */
};

static struct text *texts;

static int fail(const char *path, int error)
{
    return log_error_return(error, "cannot read the configuration %s: %s", path,
                            error == -EINVAL ? "it is no text of at most a mebibyte" : strerror(-error));
}

static int keep(const char *read, size_t length, char **bytes)
{
    struct text *text = malloc(sizeof *text + length + 1);
    if (text == NULL)
        return -ENOMEM;
    memcpy(text->bytes, read, length);
    text->bytes[length] = '\0';
    text->next = texts;
    texts = text;
    *bytes = text->bytes;
    return 0;
}

static int load_open(FILE *file, char **bytes)
{
    char *read = NULL;
    size_t capacity = 0;
    errno = 0;
    ssize_t length = getdelim(&read, &capacity, '\0', file);
    int error = length < 0 && errno != 0 ? -errno : 0;
    length = length < 0 ? 0 : length;
    if (error == 0 && ((size_t)length > FILE_BYTES_MAX || (length > 0 && read[length - 1] == '\0')))
        error = -EINVAL;
    if (error == 0)
        error = keep(read == NULL ? "" : read, (size_t)length, bytes);
    free(read);
    return error;
}

static int load(const char *path, char **bytes)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return fail(path, -errno);
    int error = load_open(file, bytes);
    fclose(file);
    return error == 0 ? 0 : fail(path, error);
}

/* Without blanks at both ends; in place. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return text;
}

static int wrong(const struct reading *reading, const char *what, const char *text)
{
    return log_error_return(-EINVAL, "%s:%u: '%s' %s", reading->path, reading->line, text, what);
}

static int take_section(struct reading *reading, char *name)
{
    size_t length = strlen(name);
    if (name[length - 1] != ']')
        return wrong(reading, "begins a section that does not end: [NAME]", name);
    name[length - 1] = '\0';
    name = trim(name + 1);
    reading->is_ours = strcmp(name, reading->program) == 0;
    if (!reading->is_ours && strncmp(name, FAMILY, strlen(FAMILY)) != 0)
        return wrong(reading, "is no program of qpscope: sections are named after those, as [qpscope-nic]", name);
    return 0;
}

static int take_line(struct reading *reading, char *line)
{
    char where[WHERE_BYTES];
    char *text = trim(line);
    if (*text == '\0' || *text == '#' || *text == ';')
        return 0;
    if (*text == '[')
        return take_section(reading, text);
    char *equals = strchr(text, '=');
    if (equals == NULL)
        return wrong(reading, "is no 'key = value'", text);
    if (!reading->is_ours)
        return 0;
    *equals = '\0';
    snprintf(where, sizeof where, "%s:%u", reading->path, reading->line);
    return reading->take(reading->context, reading->file, where, trim(text), trim(equals + 1));
}

static void read_file(struct reading *reading, const char *path)
{
    char *rest;
    int error = load(path, &rest);

    reading->path = path;
    reading->line = 0;
    reading->is_ours = true;
    while (error == 0 && rest != NULL) {
        char *line = strsep(&rest, "\n");
        reading->line++;
        int taken = take_line(reading, line);
        reading->error = reading->error == 0 ? taken : reading->error;
    }
    reading->error = reading->error == 0 ? error : reading->error;
}

int option_file_read(const char *path, const char *program, option_file_take *take, void *context)
{
    struct reading reading = {.program = program, .take = take, .context = context};
    char pattern[4096];
    glob_t more;

    read_file(&reading, path);
    snprintf(pattern, sizeof pattern, "%s.d/*.conf", path);
    if (glob(pattern, 0, NULL, &more) == 0) {
        for (size_t i = 0; i < more.gl_pathc; i++) {
            reading.file++;
            read_file(&reading, more.gl_pathv[i]);
        }
        globfree(&more);
    }
    return reading.error;
}
