/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope qps: its options. */
#include "cli/subcommand.h"
#include "report/report.h"
#include "report/subject/queue_pair_report.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct qps_options {
    struct report_options report;
    const char *rank;
    struct queue_pair_filter filter;
};

static const struct option_spec option_specs[] = {
    REPORT_OPTION_STORE(struct qps_options, report),
    REPORT_OPTION_JSON(struct qps_options, report),
    {
        .name = "rank",
        .short_name = 'r',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct qps_options, rank),
        .argument = "N",
        .help = "only those of this rank's process",
    },
    {
        .name = "device",
        .short_name = 'd',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct qps_options, filter.device),
        .argument = "DEVICE[/PORT]",
        .help = "only those of this device, as mlx5_0 or mlx5_0/1",
    },
    {
        .name = "communicator",
        .short_name = 'c',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct qps_options, filter.communicator),
        .argument = "C",
        .help = "only those of this communicator: its number, or at least four digits of its identity",
    },
    {
        .name = "all",
        .short_name = 'a',
        .kind = OPTION_FLAG,
        .offset = offsetof(struct qps_options, filter.all),
        .help = "also what is destroyed, unused, for flushing, or not the job's, and flows without an owner",
    },
};

const struct option_program subcommand_qps_program = {
    .name = "qpscope qps",
    .summary = "The queue pairs: device, peer, communicator, rank and peer rank, role, bytes of payload sent.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = COUNT(option_specs),
    .epilogue = "Examples:\n"
                "  qpscope qps --rank 2                 what rank 2 talks over\n"
                "  qpscope qps --device mlx5_0/1 --all  everything that was seen on a port\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
};

#define DIGITS              "0123456789"
#define IDENTITY_DIGITS_MIN 4

static bool is_communicator(const char *text)
{
    size_t length = strlen(text);
    bool is_number = length > 0 && strspn(text, DIGITS) == length;
    return is_number || (length >= IDENTITY_DIGITS_MIN && strspn(text, DIGITS "abcdef") == length);
}

int subcommand_qps(int argc, char **argv)
{
    struct qps_options options = {0};
    int exit_code;
    if (!subcommand_parse(&subcommand_qps_program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    if (options.rank != NULL) {
        options.filter.rank.kind = STORE_INTEGER;
        if (subcommand_parse_number(&subcommand_qps_program, "rank", options.rank, &options.filter.rank.integer) != 0) {
            return EXIT_CODE_USAGE;
        }
    }
    if (options.filter.communicator != NULL && !is_communicator(options.filter.communicator)) {
        return subcommand_usage_error(&subcommand_qps_program,
                                      "--communicator: '%s' is neither a number nor four or more digits (0-9, a-f) of "
                                      "an identity",
                                      options.filter.communicator);
    }
    struct report report;
    int result = report_open(&report, &options.report);
    if (result == 0) {
        result = queue_pair_report_print(&report, &options.filter);
        report_close(&report);
    }
    return subcommand_exit(result);
}
