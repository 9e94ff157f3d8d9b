/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/option.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct values {
    bool json;
    bool verbose;
    const char *file;
    struct option_list ports;
    uint64_t count;
    uint64_t window_ns;
    uint64_t memory_bytes;
    int mode;
};

static const char *const modes[] = {"none", "host", "gpu", NULL};

static const struct option_spec specs[] = {
    {"json", 'j', OPTION_FLAG, offsetof(struct values, json), NULL, "print JSON", 0, 0, NULL},
    {"verbose", 'v', OPTION_FLAG, offsetof(struct values, verbose), NULL, "say more", 0, 0, NULL},
    {"file", 'f', OPTION_TEXT, offsetof(struct values, file), "PATH", "read this file", 0, 0, NULL},
    {"port", 'p', OPTION_TEXT_LIST, offsetof(struct values, ports), "NAME", "watch this port", 0, 0, NULL},
    {"count", 'n', OPTION_UNSIGNED, offsetof(struct values, count), "N", "how many", 1, 100, NULL},
    {"window", 'w', OPTION_DURATION, offsetof(struct values, window_ns), "TIME", "window length", 1000, 1000000, NULL},
    {"memory", 0, OPTION_BYTES, offsetof(struct values, memory_bytes), "BYTES", "memory", 4096, 0, NULL},
    {"mode", 'm', OPTION_CHOICE, offsetof(struct values, mode), "MODE", "which", 0, 0, modes},
};

static const struct option_program program = {
    .name = "qpscope-try",
    .summary = "Tries options.",
    .usage = "[OPTIONS] [FILE...]",
    .options = specs,
    .options_count = sizeof specs / sizeof specs[0],
    .epilogue = "Exit codes: 0 ok.",
    .positionals_max = 2,
};

#define WORDS_MAX 80

/* One run: what was parsed, what was printed on each stream. */
struct run {
    int result;
    struct values values;
    char **positionals;
    size_t positionals_count;
    char words[4096];
    char *argv[WORDS_MAX];
    char out[8192];
    char err[8192];
};
static struct run run;

static void read_back(FILE *file, char *text, size_t capacity)
{
    rewind(file);
    text[fread(text, 1, capacity - 1, file)] = '\0';
    fclose(file);
}

/* Parses a line of words that are separated by blanks. */
static void parse(const char *line)
{
    int argc = 0;
    FILE *out = tmpfile(), *err = tmpfile();
    int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO);

    memset(&run, 0, sizeof run);
    run.values = (struct values){.count = 7, .window_ns = 8000, .memory_bytes = 128u << 20, .file = "in.pcap"};
    snprintf(run.words, sizeof run.words, "qpscope-try %s", line);
    for (char *word = strtok(run.words, " "); word != NULL; word = strtok(NULL, " "))
        run.argv[argc++] = word;
    fflush(stdout);
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    run.result = option_parse(&program, argc, run.argv, &run.values, &run.positionals, &run.positionals_count);
    fflush(stdout);
    fflush(stderr);
    dup2(saved_out, STDOUT_FILENO);
    dup2(saved_err, STDERR_FILENO);
    close(saved_out);
    close(saved_err);
    read_back(out, run.out, sizeof run.out);
    read_back(err, run.err, sizeof run.err);
}

static void assert_refused(const char *line, const char *named)
{
    parse(line);
    assert_int_equal(run.result, -EINVAL);
    assert_non_null(strstr(run.err, named));
    assert_non_null(strstr(run.err, "Try 'qpscope-try --help'."));
    assert_string_equal(run.out, "");
}

static void keeps_the_defaults(void **state)
{
    (void)state;
    parse("");
    assert_int_equal(run.result, OPTION_RESULT_RUN);
    assert_int_equal(run.values.count, 7);
    assert_int_equal(run.positionals_count, 0);
    assert_string_equal(run.values.file, "in.pcap");
}

static void takes_long_options_both_ways(void **state)
{
    (void)state;
    parse("--json --file=a=b --count 100 --window=1ms --mode gpu --memory 64KiB");
    assert_int_equal(run.result, OPTION_RESULT_RUN);
    assert_true(run.values.json);
    assert_false(run.values.verbose);
    assert_string_equal(run.values.file, "a=b");
    assert_int_equal(run.values.count, 100);
    assert_int_equal(run.values.window_ns, 1000000);
    assert_int_equal(run.values.mode, 2);
    assert_int_equal(run.values.memory_bytes, 65536);
}

static void takes_short_options(void **state)
{
    (void)state;
    parse("-jv -n5 -w 2us -fx");
    assert_int_equal(run.result, OPTION_RESULT_RUN);
    assert_true(run.values.json && run.values.verbose);
    assert_int_equal(run.values.count, 5);
    assert_int_equal(run.values.window_ns, 2000);
    assert_string_equal(run.values.file, "x");
}

static void collects_lists(void **state)
{
    char line[4096] = "";

    (void)state;
    parse("--port a -p b --port=c");
    assert_int_equal(run.values.ports.count, 3);
    assert_string_equal(run.values.ports.values[0], "a");
    assert_string_equal(run.values.ports.values[2], "c");
    for (int i = 0; i < OPTION_LIST_MAX + 1; i++)
        strcat(line, "-pa ");
    assert_refused(line, "--port");
}

static void mixes_options_and_positionals(void **state)
{
    (void)state;
    parse("one -j two --count 3");
    assert_int_equal(run.result, OPTION_RESULT_RUN);
    assert_int_equal(run.positionals_count, 2);
    assert_string_equal(run.positionals[0], "one");
    assert_string_equal(run.positionals[1], "two");
    assert_int_equal(run.values.count, 3);
    parse("-- --json -");
    assert_int_equal(run.positionals_count, 2);
    assert_string_equal(run.positionals[0], "--json");
    assert_string_equal(run.positionals[1], "-");
    assert_false(run.values.json);
    assert_refused("one two three", "'three'");
}

static void reads_numbers(void **state)
{
    (void)state;
    parse("--count 0x10");
    assert_int_equal(run.values.count, 16);
    assert_refused("--count 0", "from 1 to 100");
    assert_refused("--count 101", "from 1 to 100");
    assert_refused("--count 99999999999999999999", "--count");
    assert_refused("--count -5", "whole number");
    assert_refused("--count 5x", "whole number");
    assert_refused("--count 0x", "whole number");
    assert_refused("--count=", "whole number");
    assert_int_equal(run.values.count, 7);
}

static void reads_durations(void **state)
{
    (void)state;
    parse("--window 1000ns");
    assert_int_equal(run.values.window_ns, 1000);
    parse("--window 500us");
    assert_int_equal(run.values.window_ns, 500000);
    assert_refused("--window 8", "unit");
    assert_refused("--window 1.5ms", "unit");
    assert_refused("--window 8 us", "unit");
    assert_refused("--window us", "unit");
    assert_refused("--window 999ns", "from 1us to 1ms");
    assert_refused("--window 1s", "from 1us to 1ms");
    assert_refused("--window 18446744073709551615s", "from 1us to 1ms");
}

static void reads_bytes(void **state)
{
    (void)state;
    parse("--memory 1GiB");
    assert_int_equal(run.values.memory_bytes, 1u << 30);
    parse("--memory 4096");
    assert_int_equal(run.values.memory_bytes, 4096);
    parse("--memory 3MiB");
    assert_int_equal(run.values.memory_bytes, 3u << 20);
    assert_refused("--memory 1MB", "KiB, MiB");
    assert_refused("--memory 99999999TiB", "--memory: '99999999TiB' is too big a number");
    assert_refused("--memory 1KiB", "--memory: '1KiB' is out of range; it is at least 4KiB");
}

static void refuses_what_it_does_not_know(void **state)
{
    (void)state;
    assert_refused("--colour", "unknown option --colour");
    assert_refused("--jso", "unknown option --jso");
    assert_refused("--jsonx", "unknown option --jsonx");
    assert_refused("--file", "--file needs a value: PATH");
    assert_refused("--json=yes", "--json takes no value");
    assert_refused("-x", "unknown option -x");
    assert_refused("-jx", "unknown option -x");
    assert_refused("--mode fast", "'fast' is none of: none, host, gpu");
    assert_refused("--help=x", "unknown option --help");
}

static void prints_help(void **state)
{
    (void)state;
    parse("--help");
    assert_int_equal(run.result, OPTION_RESULT_DONE);
    assert_string_equal(run.err, "");
    assert_non_null(strstr(run.out, "Usage: qpscope-try [OPTIONS] [FILE...]\nTries options.\n"));
    for (size_t i = 0; i < program.options_count; i++) {
        assert_non_null(strstr(run.out, specs[i].name));
        assert_non_null(strstr(run.out, specs[i].help));
    }
    assert_non_null(strstr(run.out, "  -w, --window TIME"));
    assert_non_null(strstr(run.out, "window length (default 8us)"));
    assert_non_null(strstr(run.out, "memory (default 128MiB)"));
    assert_non_null(strstr(run.out, "which (default none)"));
    assert_non_null(strstr(run.out, "-h, --help"));
    assert_non_null(strstr(run.out, "Exit codes: 0 ok.\n"));
    parse("-h");
    assert_int_equal(run.result, OPTION_RESULT_DONE);
}

static void prints_the_version(void **state)
{
    (void)state;
    parse("--version");
    assert_int_equal(run.result, OPTION_RESULT_DONE);
    assert_string_equal(run.out, "qpscope-try " QPSCOPE_VERSION "\n");
    parse("-j -V");
    assert_string_equal(run.out, "qpscope-try " QPSCOPE_VERSION "\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_defaults),
        cmocka_unit_test(takes_long_options_both_ways),
        cmocka_unit_test(takes_short_options),
        cmocka_unit_test(collects_lists),
        cmocka_unit_test(mixes_options_and_positionals),
        cmocka_unit_test(reads_numbers),
        cmocka_unit_test(reads_durations),
        cmocka_unit_test(reads_bytes),
        cmocka_unit_test(refuses_what_it_does_not_know),
        cmocka_unit_test(prints_help),
        cmocka_unit_test(prints_the_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
