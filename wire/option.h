/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines, table-driven: a program describes its options once; parsing, --help and --version follow from it.
 * Options are parsed straight into a caller's struct through offsets. Text values point into argv.
 * Every program has -h/--help and -V/--version by itself. Single-threaded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,      /* bool, set to true */
    OPTION_TEXT,      /* const char * */
    OPTION_TEXT_LIST, /* struct option_list, may be given several times */
    OPTION_UNSIGNED,  /* uint64_t, decimal or 0x hexadecimal, checked against minimum and maximum */
    OPTION_DURATION,  /* uint64_t nanoseconds; "8us", "1ms", "500ns", "2s"; checked against minimum and maximum (ns) */
    OPTION_BYTES,     /* uint64_t; "128MiB", "64KiB", "1GiB", or plain bytes; checked */
    OPTION_CHOICE,    /* int, index into `choices` */
};

#define OPTION_LIST_MAX 64
struct option_list {
    const char *values[OPTION_LIST_MAX];
    size_t count;
};

struct option_spec {
    const char *name; /* long name without dashes */
    char short_name;  /* 0 = none */
    enum option_kind kind;
    size_t offset;        /* of the field in the caller's struct */
    const char *argument; /* what --help calls the value, NULL for a flag */
    const char *help;
    uint64_t minimum;
    uint64_t maximum;           /* 0 = no limit */
    const char *const *choices; /* NULL-terminated, for OPTION_CHOICE */
};

struct option_program {
    const char *name;    /* "qpscope-nic", "qpscope steps" */
    const char *summary; /* one line */
    const char *usage;   /* after the name: "[OPTIONS] [CAPTURE...]" */
    const struct option_spec *options;
    size_t options_count;
    const char *epilogue;   /* examples, exit codes; may be NULL */
    size_t positionals_max; /* more of them are a usage error */
};

enum option_result {
    OPTION_RESULT_RUN = 0,  /* go on */
    OPTION_RESULT_DONE = 1, /* --help or --version was printed: exit 0 */
};

/*
 * argv[0] is the program's (or subcommand's) own word and is not looked at.
 * Fills `values` (preset with the defaults by the caller; --help shows them). Options and positionals may be mixed;
 * "--" ends options. On success *positionals points into argv and *positionals_count says how many there are. Returns
 * OPTION_RESULT_RUN, OPTION_RESULT_DONE, or -EINVAL after naming the bad option on stderr (exit code 2).
 */
int option_parse(const struct option_program *program, int argc, char **argv, void *values, char ***positionals,
                 size_t *positionals_count);
