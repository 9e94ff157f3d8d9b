/* SPDX-License-Identifier: BSD-2-Clause */
/* What subcommands share when they read their command line. */
#include "cli/subcommand.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool subcommand_parse_words(const struct option_program *program, int argc, char **argv, void *values, char ***words,
                            size_t *words_count, int *exit_code)
{
    int result = option_parse(program, argc, argv, values, words, words_count);
    *exit_code = result < 0 ? EXIT_CODE_USAGE : EXIT_CODE_OK;
    return result == OPTION_RESULT_RUN;
}

bool subcommand_parse(const struct option_program *program, int argc, char **argv, void *values, int *exit_code)
{
    char **words;
    size_t words_count;
    return subcommand_parse_words(program, argc, argv, values, &words, &words_count, exit_code);
}

int subcommand_usage_error(const struct option_program *program, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: ", program->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry '%s --help'.\n", program->name);
    return EXIT_CODE_USAGE;
}

static bool parse_number(const char *text, char **end, int64_t *number)
{
    errno = 0;
    *number = 0;
    if (*text < '0' || *text > '9') {
        return false;
    }
    *number = strtoll(text, end, 10);
    return errno == 0;
}

static int value_error(const struct option_program *program, const char *name, const char *text, const char *form)
{
    subcommand_usage_error(program, "--%s: '%s' is not %s", name, text, form);
    return -EINVAL;
}

int subcommand_parse_number(const struct option_program *program, const char *name, const char *text, int64_t *number)
{
    char *end;
    int64_t parsed;
    if (!parse_number(text, &end, &parsed) || *end != '\0') {
        return value_error(program, name, text,
                           errno == ERANGE ? "so small a number as there can be" : "a whole number");
    }
    *number = parsed;
    return 0;
}

int subcommand_parse_steps(const struct option_program *program, const char *text, int64_t *first, int64_t *last)
{
    char *end;
    int64_t from;
    bool valid = parse_number(text, &end, &from);
    int64_t to = from;
    if (valid && strncmp(end, "..", 2) == 0) {
        valid = parse_number(end + 2, &end, &to);
    }
    if (!valid || *end != '\0' || to < from) {
        return value_error(program, "step", text, "a step (3) or a range of steps (3..7)");
    }
    *first = from;
    *last = to;
    return 0;
}
