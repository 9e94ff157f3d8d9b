/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines, table-driven: a program describes its options once; parsing, --help and --version follow from it.
 * Options are parsed straight into a caller's struct through offsets. Text values point into argv.
 * Every program has -h/--help and -V/--version by itself, a daemon --config and --check-config. What a configuration
 * file says comes first: the command line overrides it, and adds to lists. Single-threaded.
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
    size_t positionals_max; /* more of them are a usage error; SIZE_MAX: any number */
    bool has_config;        /* it takes --config FILE and --check-config: option_file.h, with the long names as keys */
    const char *const *words; /* NULL-terminated: what the positionals may be; NULL = anything */
};

enum option_result {
    OPTION_RESULT_RUN = 0,  /* go on */
    OPTION_RESULT_DONE = 1, /* --help or --version was printed, or the configuration was fine: exit 0 */
};

/*
 * argv[0] is the program's (or subcommand's) own word and is not looked at.
 * Fills `values` (preset with the defaults by the caller; --help shows them). Options and positionals may be mixed;
 * "--" ends options. On success *positionals points into argv and *positionals_count says how many there are. Returns
 * OPTION_RESULT_RUN, OPTION_RESULT_DONE, or -EINVAL after naming the bad option on stderr (exit code 2).
 */
int option_parse(const struct option_program *program, int argc, char **argv, void *values, char ***positionals,
                 size_t *positionals_count);

/*
 * The same once more, into values preset with the defaults, when the configuration may have changed; the words of argv
 * stay where they are. 1 when a configuration was read, 0 when none is named, -EINVAL after naming what is wrong.
 */
int option_parse_again(const struct option_program *program, int argc, char **argv, void *values);

/* Which of program->words it is, from 0; -1 for none. */
int option_word(const struct option_program *program, const char *text);
