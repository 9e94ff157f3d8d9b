/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope replay: the correlator's analysis on capture files, then the steps and the worst of them. */
#include "cli/subcommand.h"
#include "correlator/analysis.h"
#include "report/report.h"
#include "wire/clock.h"
#include "wire/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct replay_options {
    struct report_options report;
    uint64_t memory_bytes;
    const char *step_on;
    struct step_mark mark; /* that it names */
    uint64_t window_records;
    struct verdict_limits limits;
    bool force;
};

static const struct option_spec option_specs[] = {
    {
        .name = "store",
        .short_name = 's',
        .kind = OPTION_TEXT,
        .offset = offsetof(struct replay_options, report.store),
        .argument = "FILE",
        .help = "keep the store in this new file (default: it is only shown)",
    },
    REPORT_OPTION_JSON(struct replay_options, report),
    {
        .name = "force",
        .short_name = 'f',
        .kind = OPTION_FLAG,
        .offset = offsetof(struct replay_options, force),
        .help = "with --store: replace what a store of that name holds",
    },
    {
        .name = "memory",
        .short_name = 'm',
        .kind = OPTION_BYTES,
        .offset = offsetof(struct replay_options, memory_bytes),
        .argument = "SIZE",
        .help = "for the captures' records (half of the machine's); what does not fit is counted as lost",
        .minimum = 1u << 20,
    },
    {
        .name = "step-on",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct replay_options, step_on),
        .argument = "OPERATION",
        .help = "a step ends with each of these: AllReduce, or AllReduce:4096 of so many bytes",
    },
    {
        .name = "judge-window",
        .kind = OPTION_UNSIGNED,
        .offset = offsetof(struct replay_options, window_records),
        .argument = "RECORDS",
        .help = "judge window by window, as a correlator that was told so; 0: never (0)",
        .minimum = 0,
        .maximum = UINT32_MAX,
    },
    {
        .name = "least",
        .kind = OPTION_UNSIGNED,
        .offset = offsetof(struct replay_options, limits.least_permille),
        .argument = "PERMILLE",
        .help = "no verdict on what costs less than this part of a step, in thousandths",
        .minimum = 1,
        .maximum = 1000,
    },
    {
        .name = "spreads",
        .kind = OPTION_UNSIGNED,
        .offset = offsetof(struct replay_options, limits.spreads),
        .argument = "N",
        .help = "a rank is late when it is so in step after step by N times its usual spread",
        .minimum = 1,
        .maximum = 1000,
    },
};

const struct option_program subcommand_replay_program = {
    .name = "qpscope replay",
    .summary = "The same analysis from capture files, in any order: steps, and why the worst of them was slow.",
    .usage = "[OPTIONS] CAPTURE...",
    .options = option_specs,
    .options_count = COUNT(option_specs),
    .epilogue = "Needs no rights and no daemon. Captures are what the daemons write with --record. One that was cut\n"
                "counts up to the cut: a warning says so, and the exit code is 0.\n"
                "Example:\n"
                "  qpscope replay nic.capture host.capture --store job.db && qpscope qps --all --store job.db\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.",
    .positionals_max = SIZE_MAX,
};

#define FOLDER_BYTES      4096
#define PROGRESS_AFTER_NS 2000000000u

/* Where the store goes: a named file, or one in a folder that is removed at the end. */
struct place {
    char folder[FOLDER_BYTES]; /* empty for a named file */
    char store[FOLDER_BYTES + 16];
};

static int place_open(struct place *place, const struct replay_options *options)
{
    const char *named = options->report.store;
    struct stat status;
    place->folder[0] = '\0';
    if (named != NULL) {
        if (!options->force && stat(named, &status) == 0 && status.st_size > 0) {
            return log_error_return(-EEXIST,
                                    "%s exists: name a new file with --store, or add --force to replace what "
                                    "it holds",
                                    named);
        }
        snprintf(place->store, sizeof(place->store), "%s", named);
        return 0;
    }
    const char *folder = getenv("TMPDIR");
    snprintf(place->folder, sizeof(place->folder), "%s/qpscope-XXXXXX", folder == NULL ? "/tmp" : folder);
    if (mkdtemp(place->folder) == NULL) {
        int error = -errno;
        log_error("cannot make the folder %s for a store: %s: set TMPDIR, or name a file with --store", place->folder,
                  strerror(-error));
        place->folder[0] = '\0';
        return error;
    }
    snprintf(place->store, sizeof(place->store), "%s/replay.db", place->folder);
    return 0;
}

static void place_close(const struct place *place)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    if (place->folder[0] == '\0') {
        return;
    }
    for (size_t i = 0; i < COUNT(endings); i++) {
        char name[sizeof(place->store) + 16];
        snprintf(name, sizeof(name), "%s%s", place->store, endings[i]);
        unlink(name);
    }
    rmdir(place->folder);
}

/* A capture that was cut or is damaged counts up to there (the reader has said so); one that gives nothing is refused.
 */
static int read_capture(struct analysis *analysis, const char *path)
{
    const struct intake *intake = &analysis->intake;
    uint64_t heard = intake->held_bytes + intake->duplicates_count;
    int result = analysis_add_capture(analysis, path);
    return result == -EBADMSG && intake->held_bytes + intake->duplicates_count > heard ? 0 : result;
}

static int read_captures(struct analysis *analysis, char **captures, size_t captures_count, uint64_t began_ns)
{
    for (size_t i = 0; i < captures_count; i++) {
        int result = read_capture(analysis, captures[i]);
        if (result != 0) {
            return result;
        }
        if (clock_now_ns() - began_ns > PROGRESS_AFTER_NS) {
            log_info("read %zu of %zu captures", i + 1, captures_count);
        }
    }
    return 0;
}

static int analyse(const struct replay_options *options, char **captures, size_t captures_count, const char *store)
{
    uint64_t began_ns = clock_now_ns();
    struct analysis *analysis = analysis_create(options->memory_bytes);
    analysis_judge_in_windows(analysis, options->window_records);
    analysis->step_on = options->mark;
    analysis->limits = options->limits;
    int result = read_captures(analysis, captures, captures_count, began_ns);
    if (result == 0) {
        analysis_run(analysis);
        result = analysis_write(analysis, store);
    }
    analysis_destroy(&analysis);
    return result;
}

static int show(const struct replay_options *options, char *store)
{
    char steps[] = "steps";
    char why[] = "why";
    char store_option[] = "--store";
    char json_option[] = "--json";
    char *arguments[] = {steps, store_option, store, options->report.json ? json_option : NULL, NULL};
    int count = options->report.json ? 4 : 3;
    int exit_code = subcommand_steps(count, arguments);
    if (exit_code == EXIT_CODE_OK && !options->report.json) {
        putchar('\n');
        arguments[0] = why;
        exit_code = subcommand_why(count, arguments);
    }
    return exit_code;
}

/* Files wait; nothing beside this program needs the memory for as long as a daemon would hold it. */
static uint64_t memory_usual(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t half = pages > 0 && page_bytes > 0 ? (uint64_t)pages / 2 * (uint64_t)page_bytes : 0;

    return half > ANALYSIS_MEMORY_BYTES ? half : ANALYSIS_MEMORY_BYTES;
}

int subcommand_replay(int argc, char **argv)
{
    struct replay_options options = {.memory_bytes = memory_usual(),
                                     .limits = {VERDICT_LEAST_PERMILLE, VERDICT_SPREADS}};
    struct place place;
    char **captures;
    size_t captures_count;
    int parsed = option_parse(&subcommand_replay_program, argc, argv, &options, &captures, &captures_count);
    if (parsed != OPTION_RESULT_RUN) {
        return parsed < 0 ? EXIT_CODE_USAGE : EXIT_CODE_OK;
    }
    if (captures_count == 0) {
        fprintf(stderr, "%s: name the capture files\nTry '%s --help'.\n", subcommand_replay_program.name,
                subcommand_replay_program.name);
        return EXIT_CODE_USAGE;
    }
    if (options.step_on != NULL && step_mark_read(&options.mark, options.step_on) != 0) {
        return EXIT_CODE_USAGE;
    }
    if (place_open(&place, &options) != 0) {
        return EXIT_CODE_FAILURE;
    }
    int exit_code = EXIT_CODE_FAILURE;
    if (analyse(&options, captures, captures_count, place.store) == 0) {
        exit_code = show(&options, place.store);
    }
    place_close(&place);
    return exit_code;
}
