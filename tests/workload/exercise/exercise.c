/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exercises a collective library's public API, a process for each rank, and writes what really happened into the file
 * that LAB_TRUTH names. Without --rank it starts all ranks itself, each as a host of its own.
 */
#include "exercise/api.h"
#include "exercise/scenario.h"

#include "cuda.h"
#include "meet.h"
#include "truth.h"

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct options {
    int64_t rank, ranks_here, ranks, settle_ms;
    const char *library, *meet;
    bool wait_release;
};

static void usage_print(void)
{
    puts(
        "usage: exercise [OPTIONS] SCENARIO...\n"
        "Runs scenarios on a collective library, one after the other. LAB_TRUTH=FILE: what really happened goes "
        "there.\n"
        "  --ranks N       ranks (4)\n"
        "  --rank R        be this rank only; the others are started apart\n"
        "  --ranks-here N  with --rank: stand for N ranks, for scenarios of one process alone (1)\n"
        "  --settle-ms MS  between loading the library and its first call, for the GPU's set-up that is not there (0)\n"
        "  --library FILE  the collective library (libnccl.so.2)\n"
        "  --meet DIR      directory that all ranks share; must be empty (.)\n"
        "  --wait-release  at the end wait until the file DIR/release is there\n"
        "scenarios:");
    for (int i = 0; i < scenarios_count; i++)
        printf("  %-14s  %s\n", scenarios[i].name, scenarios[i].help);
}

static const struct scenario *scenario_find(const char *name)
{
    for (int i = 0; i < scenarios_count; i++)
        if (!strcmp(scenarios[i].name, name))
            return &scenarios[i];
    fprintf(stderr, "exercise: unknown scenario '%s'; --help lists them\n", name);
    return NULL;
}

static uint64_t scenario_run(const struct scenario *scenario, const struct options *options)
{
    struct actor actor = {.rank = (int)options->rank, .scenario = scenario->name};
    struct truth_line line;

    actor.job = (struct job){.ranks = options->ranks, .meet = options->meet};
    truth_begin(&line, "scenario");
    truth_text(&line, "scenario", scenario->name);
    truth_signed(&line, "rank", actor.rank);
    truth_signed(&line, "ranks", options->ranks);
    truth_number(&line, "at_ns", truth_now_ns());
    truth_put(&line);
    cudaStreamCreate(&actor.stream);
    scenario->run(&actor);
    cudaStreamDestroy(actor.stream);
    fprintf(stderr, "exercise: rank %d, %s: %lu values were wrong\n", actor.rank, scenario->name, actor.wrong);
    return actor.wrong;
}

static int rank_run(const struct options *options, char **names)
{
    const struct job job = {.meet = options->meet};
    uint64_t wrong = 0;

    truth_clock();
    api_open(options->library);
    nanosleep(&(struct timespec){options->settle_ms / 1000, options->settle_ms % 1000 * 1000000}, NULL);
    for (; *names; names++)
        wrong += scenario_run(scenario_find(*names), options);
    truth_clock();
    for (int64_t i = 0; i < options->ranks_here; i++)
        meet_mark(&job, "done", (int)(options->rank + i));
    if (options->wait_release)
        meet_await(&job, "release");
    return wrong ? 1 : 0;
}

static int ranks_run(struct options *options, char **names)
{
    int failed = 0, status;

    for (int64_t rank = 0; rank < options->ranks; rank++) {
        char host[32];
        pid_t child = fork();
        if (child < 0) {
            perror("exercise: cannot fork");
            return 1;
        }
        if (child > 0)
            continue;
        options->rank = rank;
        snprintf(host, sizeof host, "host%ld", rank);
        setenv("NCCL_HOSTID", host, 0);
        exit(rank_run(options, names));
    }
    while (wait(&status) > 0)
        failed |= status != 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* one kills itself */
    return failed;
}

static int options_parse(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {{"ranks", required_argument, NULL, 'n'},
                                          {"rank", required_argument, NULL, 'r'},
                                          {"ranks-here", required_argument, NULL, 'i'},
                                          {"settle-ms", required_argument, NULL, 's'},
                                          {"library", required_argument, NULL, 'l'},
                                          {"meet", required_argument, NULL, 'm'},
                                          {"wait-release", no_argument, NULL, 'w'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};

    for (;;) {
        switch (getopt_long(argc, argv, "", known, NULL)) {
        case 'n':
            options->ranks = strtol(optarg, NULL, 0);
            break;
        case 'r':
            options->rank = strtol(optarg, NULL, 0);
            break;
        case 'i':
            options->ranks_here = strtol(optarg, NULL, 0);
            break;
        case 's':
            options->settle_ms = strtol(optarg, NULL, 0);
            break;
        case 'l':
            options->library = optarg;
            break;
        case 'm':
            options->meet = optarg;
            break;
        case 'w':
            options->wait_release = true;
            break;
        case 'h':
            usage_print();
            return 1;
        case -1:
            return 0;
        default:
            return -1;
        }
    }
}

int main(int argc, char **argv)
{
    struct options options = {.rank = -1, .ranks_here = 1, .ranks = 4, .library = "libnccl.so.2", .meet = "."};
    int parsed = options_parse(&options, argc, argv);

    if (parsed)
        return parsed < 0 ? 2 : 0;
    if (optind == argc || options.ranks < 1 || options.ranks > RANKS_MAX || options.rank >= options.ranks) {
        fprintf(stderr, "exercise: name a scenario, and from 1 to %d ranks; --help lists the scenarios\n", RANKS_MAX);
        return 2;
    }
    for (int i = optind; i < argc; i++)
        if (!scenario_find(argv[i]))
            return 2;
    return options.rank < 0 ? ranks_run(&options, argv + optind) : rank_run(&options, argv + optind);
}
