/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subcommands: each is a function that parses its own options (argv[0] is its name), prints, and returns the exit
 * code: 0 done, 1 failed, 2 used wrongly. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/option.h"

enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_FAILURE = 1,
    EXIT_CODE_USAGE = 2,
};

#define SUBCOMMAND(identifier, name, help)                                                                             \
    int subcommand_##identifier(int argc, char **argv);                                                                \
    extern const struct option_program subcommand_##identifier##_program;
#include "cli/subcommand.def"
#undef SUBCOMMAND

struct subcommand {
    const char *name;
    const char *help;
    const struct option_program *program;
    int (*run)(int argc, char **argv);
};

/* In the order of subcommand.def. */
extern const struct subcommand subcommands[];
extern const size_t subcommands_count;

/*
 * Parses the options of a subcommand that takes no positionals. True: go on; false: end with *exit_code. `values` is
 * filled as by option_parse.
 */
bool subcommand_parse(const struct option_program *program, int argc, char **argv, void *values, int *exit_code);

/* The same, with the positionals as option_parse gives them. */
bool subcommand_parse_words(const struct option_program *program, int argc, char **argv, void *values, char ***words,
                            size_t *words_count, int *exit_code);

/* The value "3" of the option `name`. -EINVAL after naming it on stderr (exit code 2). */
int subcommand_parse_number(const struct option_program *program, const char *name, const char *text, int64_t *number);

/* The value "3" or "3..7" of --step; both ends belong to it. The same errors. */
int subcommand_parse_steps(const struct option_program *program, const char *text, int64_t *first, int64_t *last);

/* What is wrong with the command line, on stderr. EXIT_CODE_USAGE. */
int subcommand_usage_error(const struct option_program *program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 0 and -errno as an exit code. */
static inline int subcommand_exit(int result)
{
    return result < 0 ? EXIT_CODE_FAILURE : EXIT_CODE_OK;
}
