/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope: everything a person types. Finds the subcommand; alone it shows the steps of the default store. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/report.h"
#include "cli/subcommand.h"
#include "wire/log.h"

struct subcommand {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
};

static const struct subcommand subcommands[] = {
#define SUBCOMMAND(name, help) {#name, help, subcommand_##name},
#include "cli/subcommand.def"
#undef SUBCOMMAND
};

#define SUBCOMMANDS_COUNT (sizeof(subcommands) / sizeof(subcommands[0]))

static void print_help(FILE *out)
{
    fputs("Usage: qpscope SUBCOMMAND [OPTIONS]\n"
          "Which rank held back a training step, by how much, and why.\n"
          "\n"
          "Subcommands:\n",
          out);
    for (size_t i = 0; i < SUBCOMMANDS_COUNT; i++) {
        fprintf(out, "  %-10s %s\n", subcommands[i].name, subcommands[i].help);
    }
    fputs("\n"
          "Options:\n"
          "  -h, --help     show this help\n"
          "  -V, --version  show the version\n"
          "\n"
          "'qpscope SUBCOMMAND --help' explains one. Without a subcommand: qpscope steps, when there is a store at\n"
          "$QPSCOPE_STORE or " STORE_PATH_DEFAULT ".\n"
          "Exit codes: 0 done, 1 failed, 2 used wrongly.\n",
          out);
}

static const struct subcommand *subcommand_find(const char *name)
{
    for (size_t i = 0; i < SUBCOMMANDS_COUNT; i++) {
        if (strcmp(subcommands[i].name, name) == 0) {
            return &subcommands[i];
        }
    }
    return NULL;
}

static int run_bare(void)
{
    if (access(report_store_path(NULL), F_OK) != 0) {
        print_help(stdout);
        return EXIT_CODE_OK;
    }
    char name[] = "steps";
    char *argv[] = {name, NULL};
    return subcommand_steps(1, argv);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        return run_bare();
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return EXIT_CODE_OK;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("qpscope " QPSCOPE_VERSION);
        return EXIT_CODE_OK;
    }
    const struct subcommand *subcommand = subcommand_find(argv[1]);
    if (subcommand == NULL) {
        fprintf(stderr, "qpscope: there is no subcommand '%s'.\nTry 'qpscope --help'.\n", argv[1]);
        return EXIT_CODE_USAGE;
    }
    return subcommand->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    log_init("qpscope", LOG_INFO);
    int exit_code = run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        log_error("cannot write to standard output: %s", strerror(errno));
        return EXIT_CODE_FAILURE;
    }
    return exit_code;
}
