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

#define SUBCOMMAND(name, help) int subcommand_##name(int argc, char **argv);
#include "cli/subcommand.def"
#undef SUBCOMMAND

/*
 * What a subcommand prints of an open report, so that others can hold the same. `step` is STORE_NULL where none is
 * asked for. -errno after logging.
 */
struct report;
struct store_value;
int subcommand_steps_print(struct report *report);
int subcommand_why_print(struct report *report, const struct store_value *step);
int subcommand_timeline_print(struct report *report, const struct store_value *step);
int subcommand_qps_print_all(struct report *report);

/*
 * Parses the options of a subcommand that takes no positionals. True: go on; false: end with *exit_code. `values` is
 * filled as by option_parse.
 */
bool subcommand_parse(const struct option_program *program, int argc, char **argv, void *values, int *exit_code);

/* The value "3" of the option `name`. -EINVAL after naming it on stderr (exit code 2). */
int subcommand_parse_number(const struct option_program *program, const char *name, const char *text, int64_t *number);

/* The value "3" or "3..7" of --step; both ends belong to it. The same errors. */
int subcommand_parse_steps(const struct option_program *program, const char *text, int64_t *first, int64_t *last);

/* 0 and -errno as an exit code. */
static inline int subcommand_exit(int result)
{
    return result < 0 ? EXIT_CODE_FAILURE : EXIT_CODE_OK;
}
