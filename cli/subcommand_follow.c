/* SPDX-License-Identifier: BSD-2-Clause */
/* qpscope follow: asks a running qpscope-host to look more closely for a while. */
#include "cli/subcommand.h"
#include "report/form/text.h"
#include "report/report.h"
#include "wire/clock.h"
#include "wire/emitter.h"
#include "wire/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define CONTROL_URL_DEFAULT "ipc:///run/qpscope/host-control"
#define DELIVERY_NS         5000000000u
#define HOLD_NS             2000000000u /* a link that closes at once may take what was not read yet with it */

struct follow_options {
    const char *control;
    const char *key_file;
    uint64_t duration_ns;
    uint64_t hits;
    uint64_t pid;
    int what;
    bool json;
};

static const char *const whats[] = {"work", "submissions", "delays", "all", NULL};
static const uint32_t what_bits[] = {
    FOLLOW_WORK,
    FOLLOW_SUBMISSIONS,
    FOLLOW_DELAYS,
    FOLLOW_WORK | FOLLOW_SUBMISSIONS | FOLLOW_DELAYS,
};

#define AT(member) offsetof(struct follow_options, member)
static const struct option_spec option_specs[] = {
    {
        .name = "control",
        .short_name = 'c',
        .kind = OPTION_TEXT,
        .offset = AT(control),
        .argument = "URL",
        .help = "where qpscope-host hears (" CONTROL_URL_DEFAULT ")",
    },
    {
        .name = "what",
        .short_name = 'w',
        .kind = OPTION_CHOICE,
        .offset = AT(what),
        .argument = "WHAT",
        .help = "work (posts and completions), submissions (to the GPU), delays (of threads) or all (work)",
        .choices = whats,
    },
    {
        .name = "for",
        .short_name = 'f',
        .kind = OPTION_DURATION,
        .offset = AT(duration_ns),
        .argument = "TIME",
        .help = "how long at most (2s)",
        .minimum = 1000000,
        .maximum = 60000000000u,
    },
    {
        .name = "hits",
        .kind = OPTION_UNSIGNED,
        .offset = AT(hits),
        .argument = "N",
        .help = "how many hits of the probes at most (100000); a post and each poll is one",
        .minimum = 1,
        .maximum = 10000000,
    },
    {
        .name = "pid",
        .short_name = 'p',
        .kind = OPTION_UNSIGNED,
        .offset = AT(pid),
        .argument = "PID",
        .help = "only this process (all of the job on that host)",
        .minimum = 1,
        .maximum = 0x7fffffff,
    },
    {
        .name = "key-file",
        .kind = OPTION_TEXT,
        .offset = AT(key_file),
        .argument = "FILE",
        .help = "seal the request with the key in FILE",
    },
    {
        .name = "json",
        .short_name = 'j',
        .kind = OPTION_FLAG,
        .offset = AT(json),
        .help = "print the request as a JSON object",
    },
};

const struct option_program subcommand_follow_program = {
    .name = "qpscope follow",
    .summary = "Asks a running qpscope-host to follow something more closely, for a while.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "Each hit costs the job 2 to 4 us while it lasts; nothing is probed before and after.\n"
                "Example:\n"
                "  qpscope follow --what delays --for 5s\n"
                "Exit codes: 0 the request was taken, 1 nobody took it, 2 used wrongly.",
};

/* Waits until the link has taken what was sent, and then for it to be read. */
static bool deliver(struct emitter *emitter)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    uint64_t until_ns = clock_now_ns() + DELIVERY_NS;
    emitter_flush(emitter);
    while (emitter_is_waiting(emitter) && clock_now_ns() < until_ns) {
        nanosleep(&pause, NULL);
        emitter_tick(emitter);
    }
    const struct timespec hold = {.tv_sec = HOLD_NS / 1000000000u};
    bool delivered = !emitter_is_waiting(emitter);
    if (delivered) {
        nanosleep(&hold, NULL);
    }
    return delivered;
}

static int ask(const struct follow_options *values, struct record_follow *request)
{
    struct emitter *emitter;
    const struct emitter_options options = {
        .kind = EMITTER_COMMAND,
        .instance = "follow",
        .link_url = values->control,
        .key_file = values->key_file,
    };
    int error = emitter_open(&emitter, &options);
    if (error != 0) {
        return error;
    }
    emitter_add(emitter, RECORD_FOLLOW, request);
    if (!deliver(emitter)) {
        emitter_abandon(&emitter);
        return log_error_return(-EPIPE, "nobody takes the request at %s: is qpscope-host running there with --control?",
                                values->control);
    }
    emitter_close(&emitter);
    return 0;
}

static void print(const struct follow_options *values, uint32_t request)
{
    char duration[TEXT_NUMBER_BYTES];
    struct json json;
    if (!values->json) {
        printf("request %" PRIu32 ": for %s or %" PRIu64 " hits\n", request,
               text_duration(duration, (int64_t)values->duration_ns), values->hits);
        return;
    }
    json_init(&json, stdout);
    report_json_begin(&json);
    json_integer(&json, "request", request);
    json_integer(&json, "for_ns", (int64_t)values->duration_ns);
    json_integer(&json, "hits", (int64_t)values->hits);
    json_object_end(&json);
}

int subcommand_follow(int argc, char **argv)
{
    struct follow_options values = {.control = CONTROL_URL_DEFAULT, .duration_ns = 2000000000u, .hits = 100000};
    int exit_code;
    if (!subcommand_parse(&subcommand_follow_program, argc, argv, &values, &exit_code)) {
        return exit_code;
    }
    log_init(subcommand_follow_program.name, LOG_WARNING);
    struct record_follow request = {
        .header.source = (uint32_t)clock_now_ns(),
        .duration_ns = values.duration_ns,
        .hits_max = values.hits,
        .what = what_bits[values.what],
        .pid = (uint32_t)values.pid,
    };
    if (ask(&values, &request) != 0) {
        return EXIT_CODE_FAILURE;
    }
    print(&values, request.header.source);
    return EXIT_CODE_OK;
}
