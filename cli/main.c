/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope: everything a person types. Finds the subcommand; alone it shows the present state. */
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/state.h"
#include "cli/subcommand.h"
#include "report/report.h"
#include "wire/log.h"

const struct subcommand subcommands[] = {
#define SUBCOMMAND(identifier, name, help) {name, help, &subcommand_##identifier##_program, subcommand_##identifier},
#include "cli/subcommand.def"
#undef SUBCOMMAND
};
const size_t subcommands_count = sizeof(subcommands) / sizeof(subcommands[0]);

static void print_help(FILE *out)
{
    fputs("Usage: qpscope [SUBCOMMAND] [OPTIONS]\n"
          "Which rank held back a training step, by how much, and why.\n"
          "\n"
          "Subcommands:\n",
          out);
    for (size_t i = 0; i < subcommands_count; i++) {
        fprintf(out, "  %-12s %s\n", subcommands[i].name, subcommands[i].help);
    }
    fputs("\n"
          "Options without a subcommand, for the present state in ten lines:\n"
          "  -s, --store FILE  the store (default $QPSCOPE_STORE, else " STORE_PATH_DEFAULT ")\n"
          "  -j, --json        print one JSON object instead of text\n"
          "  -h, --help        print this and exit\n"
          "  -V, --version     print the version and exit\n"
          "\n"
          "'qpscope SUBCOMMAND --help' explains one.\n"
          "Exit codes: 0 done, 1 failed, 2 used wrongly.\n",
          out);
}

static const struct subcommand *subcommand_find(const char *name)
{
    for (size_t i = 0; i < subcommands_count; i++) {
        if (strcmp(subcommands[i].name, name) == 0) {
            return &subcommands[i];
        }
    }
    return NULL;
}

struct bare_options {
    struct report_options report;
};

static const struct option_spec bare_specs[] = {
    REPORT_OPTION_STORE(struct bare_options, report),
    REPORT_OPTION_JSON(struct bare_options, report),
};

/* Without a subcommand. --help is our own. */
static const struct option_program bare = {
    .name = "qpscope",
    .options = bare_specs,
    .options_count = sizeof(bare_specs) / sizeof(bare_specs[0]),
};

static int run_bare(int argc, char **argv)
{
    struct bare_options options = {0};
    int exit_code;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(stdout);
            return EXIT_CODE_OK;
        }
    }
    if (!subcommand_parse(&bare, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    return subcommand_exit(state_print(&options.report));
}

static int run(int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-') {
        return run_bare(argc, argv);
    }
    bool is_help = strcmp(argv[1], "help") == 0;
    if (is_help && argc == 2) {
        print_help(stdout);
        return EXIT_CODE_OK;
    }
    const char *name = is_help ? argv[2] : argv[1];
    const struct subcommand *subcommand = subcommand_find(name);
    if (subcommand == NULL) {
        return subcommand_usage_error(&bare, "there is no subcommand '%s'", name);
    }
    char *help[] = {argv[argc - 1], "--help"};
    return is_help ? subcommand->run(2, help) : subcommand->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    log_init("qpscope", LOG_INFO);
    int exit_code = run(argc, argv);
    return output_end() == 0 ? exit_code : EXIT_CODE_FAILURE;
}
