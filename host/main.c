/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope-host: who owns each queue pair, and what each rank asked the collective library for. Its command line. */
#include <stddef.h>

#include "host/agent/agent.h"
#include "host/agent/detach.h"
#include "wire/log.h"
#include "wire/metric/metric_page.h"

struct settings {
    struct agent_options agent;
    bool check;
    bool detach;
};

#define SETTING(member) offsetof(struct settings, member)
static const struct option_spec option_specs[] = {
    EMITTER_OPTIONS(settings, agent.emitter),
    {.name = "control",
     .kind = OPTION_TEXT,
     .offset = SETTING(agent.control),
     .argument = "URL",
     .help = "hear at URL what to follow more closely for a while (qpscope follow)"},
    METRIC_PAGE_OPTIONS(struct settings, agent.http, "metrics (/metrics, for Prometheus)"),
    {.name = "root",
     .kind = OPTION_TEXT_LIST,
     .offset = SETTING(agent.roots),
     .argument = "DIR",
     .help = "look for libraries in the tree below DIR before a job starts (default /)"},
    {.name = "library",
     .kind = OPTION_TEXT_LIST,
     .offset = SETTING(agent.libraries),
     .argument = "FILE",
     .help = "probe FILE before a job maps it"},
    {.name = "buffer",
     .kind = OPTION_BYTES,
     .offset = SETTING(agent.buffer_bytes),
     .argument = "SIZE",
     .help = "size of the probes' ring buffer (4MiB)",
     .minimum = 4096,
     .maximum = 1ULL << 30},
    {.name = "probe-time",
     .kind = OPTION_DURATION,
     .offset = SETTING(agent.probe_time_ns),
     .argument = "TIME",
     .help = "let probes take at most so much of each second of a process (1600us); 1s: as much as they do",
     .minimum = 1000,
     .maximum = 1000000000},
    {.name = "check",
     .kind = OPTION_FLAG,
     .offset = SETTING(check),
     .help = "load the probes, say what is missing if they cannot be, and end"},
    {.name = "detach",
     .kind = OPTION_FLAG,
     .offset = SETTING(detach),
     .help = "end every qpscope-host on this machine, and its probes with it; say what was found, and end"},
    {.name = "json",
     .short_name = 'j',
     .kind = OPTION_FLAG,
     .offset = SETTING(agent.json),
     .help = "print each record as a JSON object on a line of its own"},
    {.name = "verbose",
     .short_name = 'v',
     .kind = OPTION_FLAG,
     .offset = SETTING(agent.verbose),
     .help = "say more on stderr"},
};

static const struct option_program program = {
    .name = "qpscope-host",
    .has_config = true,
    .summary = "tell who owns each RDMA queue pair and what each rank asked of NCCL or RCCL",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = sizeof option_specs / sizeof option_specs[0],
    .epilogue = "Libraries are found by their symbols in every process, whatever their file's name or root.\n"
                "Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.\n"
                "\n"
                "Exit codes: 0 ended by SIGINT or SIGTERM, 1 failure, 2 usage.\n",
};

static const char *const live[] = {"probe-time", "verbose", NULL};

static int run(struct settings *settings, const struct settings *defaults, int argc, char **argv)
{
    const struct reload_options reload = {.program = &program,
                                          .argc = argc,
                                          .argv = argv,
                                          .values = settings,
                                          .defaults = defaults,
                                          .values_bytes = sizeof *settings,
                                          .live = live};
    int error = reload_open(&settings->agent.reload, &reload);
    if (error == 0)
        error = agent_run(&settings->agent);
    reload_close(&settings->agent.reload);
    return error;
}

int main(int argc, char **argv)
{
    const struct settings defaults = {.agent = {.buffer_bytes = 4 << 20, .probe_time_ns = 1600000}};
    struct settings settings = defaults;
    char **positionals;
    size_t positionals_count;
    const int parsed = option_parse(&program, argc, argv, &settings, &positionals, &positionals_count);
    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    log_init(program.name, settings.agent.verbose ? LOG_DEBUG : LOG_INFO);
    if (settings.check)
        return agent_check(&settings.agent) == 0 ? 0 : 1;
    if (settings.detach)
        return detach_all() == 0 ? 0 : 1;
    return run(&settings, &defaults, argc, argv) == 0 ? 0 : 1;
}
