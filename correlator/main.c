/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qpscope-correlator: hears the NIC and the host side, keeps a journal, analyses, writes the store. Sleeps in poll;
 * runs the whole analysis anew when something came, but no more than every 500 ms and a tenth of a core.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "correlator/analysis.h"
#include "correlator/control/asker.h"
#include "correlator/control/control.h"
#include "correlator/control/teller.h"
#include "correlator/intake/listener.h"
#include "correlator/store/store.h"
#include "wire/capture.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/option.h"
#include "wire/seal.h"

#define RUN_INTERVAL_NS 500000000ULL
#define QUIET_NS        300000000ULL
#define DRAIN_NS        2000000000ULL
#define QUEUE_BYTES     (64u << 20)

struct settings {
    const char *intake;
    const char *clock;
    const char *store;
    const char *journal;
    struct option_list controls;
    const char *key_file;
    uint64_t memory_bytes;
    uint64_t share_percent;
    bool verbose;
};

#define AT(member) offsetof(struct settings, member)
static const struct option_spec option_specs[] = {
    {"intake", 0, OPTION_TEXT, AT(intake), "URL", "hear the NIC and host side here (ipc:///run/qpscope/intake)", 0, 0,
     NULL},
    {"clock", 0, OPTION_TEXT, AT(clock), "URL", "answer clock questions here (ipc:///run/qpscope/clock)", 0, 0, NULL},
    {"store", 0, OPTION_TEXT, AT(store), "FILE", "write the SQLite store FILE", 0, 0, NULL},
    {"journal", 0, OPTION_TEXT, AT(journal), "FILE", "keep what was heard in the capture file FILE (STORE.journal)", 0,
     0, NULL},
    {"control", 0, OPTION_TEXT_LIST, AT(controls), "URL",
     "ask the NIC side at URL for windows of judged steps, and tell it of queue pairs", 0, 0, NULL},
    {"key-file", 0, OPTION_TEXT, AT(key_file), "FILE", "seal and open what is on the links with the key in FILE", 0, 0,
     NULL},
    {"memory", 0, OPTION_BYTES, AT(memory_bytes), "SIZE", "hold at most SIZE of records (1GiB)", 1u << 20, 0, NULL},
    {"share", 0, OPTION_UNSIGNED, AT(share_percent), "PERCENT",
     "analyse for this part of the time at most (10); more gives verdicts sooner", 1, 100, NULL},
    {"verbose", 'v', OPTION_FLAG, AT(verbose), NULL, "say each new step and verdict on stderr", 0, 0, NULL},
};

static const struct option_program program = {
    .name = "qpscope-correlator",
    .summary = "join what the NIC and the host side saw into steps and verdicts",
    .usage = "--intake URL --clock URL --store FILE [OPTIONS]",
    .options = option_specs,
    .options_count = sizeof option_specs / sizeof option_specs[0],
    .epilogue = "One store and its journal hold one job: give the next job another store, or remove both files.\n"
                "After a restart the journal is read first, so that nothing is lost but what was sent meanwhile.\n"
                "\n"
                "Exit codes: 0 ended by SIGINT or SIGTERM, 1 failure, 2 usage.\n",
};

struct correlator {
    const struct settings *settings;
    struct analysis *analysis;
    struct store *store;
    struct capture_writer *journal;
    struct listener *listener;
    struct clock_server *clock;
    struct controls *controls;
    struct asker *asker;
    struct teller *teller;
    int signals;
    bool fresh; /* something came since the last run */
    uint64_t next_run_ns;
    uint64_t heard_ns;
    size_t steps_said;
    size_t verdicts_said;
};

static void take_batch(void *context, const void *bytes, size_t length_bytes)
{
    struct correlator *correlator = context;

    if (analysis_add_batch(correlator->analysis, bytes, length_bytes) > 0)
        correlator->fresh = true;
}

static void hear(struct correlator *correlator)
{
    if (listener_take(correlator->listener, take_batch, correlator) > 0)
        correlator->heard_ns = clock_now_ns();
}

static void say_news(struct correlator *correlator)
{
    const struct job *job = &correlator->analysis->job;

    for (; correlator->steps_said < job->steps.count; correlator->steps_said++) {
        const struct step *step = &job->steps.items[correlator->steps_said];
        log_info("step %zu: %.3f ms, %u operations", correlator->steps_said, (double)step->duration_ns / 1e6,
                 step->operations);
    }
    for (; correlator->verdicts_said < job->verdicts.count; correlator->verdicts_said++) {
        const struct verdict *verdict = &job->verdicts.items[correlator->verdicts_said];
        char where[32] = "after the last whole step";
        if (verdict->step >= 0)
            snprintf(where, sizeof where, "step %d", verdict->step);
        log_info("%s: %s, rank %d, %.3f ms: %s", where, verdict_class_name(verdict->class), verdict->rank,
                 (double)verdict->size_ns / 1e6, verdict->evidence);
    }
}

/* A failed write was logged; the analysis goes on, and the next write holds what this one could not. */
static void analyse(struct correlator *correlator)
{
    uint64_t begun_ns = clock_now_ns();

    analysis_run(correlator->analysis);
    store_write(correlator->store, correlator->analysis);
    correlator->fresh = false;
    if (correlator->settings->verbose)
        say_news(correlator);
    teller_look(correlator->teller, correlator->analysis);
    asker_look(correlator->asker, correlator->analysis);
    uint64_t took_ns = clock_now_ns() - begun_ns;
    uint64_t share_percent = correlator->settings->share_percent;
    uint64_t rest_ns = took_ns * (100 - share_percent) / share_percent;
    if (rest_ns < RUN_INTERVAL_NS)
        rest_ns = RUN_INTERVAL_NS;
    correlator->next_run_ns = begun_ns + took_ns + rest_ns;
    log_debug("analysis of %.1f MiB took %.1f ms", (double)correlator->analysis->intake.held_bytes / (1 << 20),
              (double)took_ns / 1e6);
}

/* True when a signal to end came. */
static bool wait_for_news(struct correlator *correlator, uint64_t until_ns)
{
    struct pollfd pollers[] = {{.fd = correlator->signals, .events = POLLIN},
                               {.fd = listener_descriptor(correlator->listener), .events = POLLIN}};
    uint64_t now_ns = clock_now_ns();
    int timeout_ms = until_ns == 0 ? -1 : until_ns > now_ns ? (int)((until_ns - now_ns) / 1000000 + 1) : 0;

    poll(pollers, 2, timeout_ms);
    if (pollers[1].revents != 0)
        hear(correlator);
    return pollers[0].revents != 0;
}

static void drain(struct correlator *correlator)
{
    uint64_t begun_ns = clock_now_ns();

    correlator->heard_ns = begun_ns;
    while (clock_now_ns() < correlator->heard_ns + QUIET_NS && clock_now_ns() < begun_ns + DRAIN_NS) {
        struct pollfd poller = {.fd = listener_descriptor(correlator->listener), .events = POLLIN};
        if (poll(&poller, 1, (int)(QUIET_NS / 1000000 / 10)) > 0)
            hear(correlator);
    }
}

static void run(struct correlator *correlator)
{
    while (!wait_for_news(correlator, correlator->fresh ? correlator->next_run_ns : 0))
        if (correlator->fresh && clock_now_ns() >= correlator->next_run_ns)
            analyse(correlator);
    drain(correlator);
    analyse(correlator);
}

static int open_signals(struct correlator *correlator)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    correlator->signals = signalfd(-1, &signals, SFD_CLOEXEC);
    return correlator->signals >= 0 ? 0 : log_error_return(-errno, "cannot wait for signals: %s", strerror(errno));
}

/* Takes what an earlier run of this process had heard, and goes on behind it. */
static int open_journal(struct correlator *correlator, const char *path)
{
    if (access(path, F_OK) == 0) {
        int error = analysis_add_capture(correlator->analysis, path);
        if (error != 0 && error != -EBADMSG)
            return error;
        correlator->fresh = true;
        log_info("journal %s: read %.1f MiB", path, (double)correlator->analysis->intake.held_bytes / (1 << 20));
    }
    return capture_writer_open(&correlator->journal, path, 1);
}

static int open_links(struct correlator *correlator)
{
    const struct settings *settings = correlator->settings;
    uint64_t boot_id = seal_random();
    const struct clock_options clock = {.url = settings->clock, .key_file = settings->key_file, .boot_id = boot_id};
    const struct listener_options listener = {.url = settings->intake,
                                              .key_file = settings->key_file,
                                              .boot_id = boot_id,
                                              .journal = correlator->journal,
                                              .queue_bytes = QUEUE_BYTES};
    int error = clock_server_open(&correlator->clock, &clock);

    if (error == 0)
        error = listener_open(&correlator->listener, &listener);
    if (error == 0)
        error = controls_open(&correlator->controls, &settings->controls, settings->key_file, boot_id);
    if (error != 0)
        return error;
    asker_create(&correlator->asker, correlator->controls);
    teller_create(&correlator->teller, correlator->controls);
    return 0;
}

static int open_all(struct correlator *correlator, const char *journal_path)
{
    int error = open_signals(correlator);

    if (error == 0)
        error = store_open(&correlator->store, correlator->settings->store);
    if (error == 0)
        error = open_journal(correlator, journal_path);
    if (error == 0)
        error = open_links(correlator);
    return error;
}

static void close_all(struct correlator *correlator)
{
    asker_destroy(&correlator->asker);
    teller_destroy(&correlator->teller);
    controls_close(&correlator->controls);
    listener_close(&correlator->listener);
    clock_server_close(&correlator->clock);
    capture_writer_close(&correlator->journal);
    store_close(&correlator->store);
    analysis_destroy(&correlator->analysis);
}

int main(int argc, char **argv)
{
    struct settings settings = {.memory_bytes = ANALYSIS_MEMORY_BYTES, .share_percent = 10};
    struct correlator correlator = {.settings = &settings};
    char journal[4096];
    char **positionals;
    size_t positionals_count;
    int parsed = option_parse(&program, argc, argv, &settings, &positionals, &positionals_count);

    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    log_init(program.name, settings.verbose ? LOG_DEBUG : LOG_INFO);
    if (settings.intake == NULL || settings.clock == NULL || settings.store == NULL) {
        log_error("--intake, --clock and --store are needed (see --help)");
        return 2;
    }
    snprintf(journal, sizeof journal, settings.journal != NULL ? "%s" : "%s.journal",
             settings.journal != NULL ? settings.journal : settings.store);
    correlator.analysis = analysis_create(settings.memory_bytes);
    int error = open_all(&correlator, journal);
    if (error == 0) {
        log_info("ready: hearing at %s", settings.intake);
        run(&correlator);
    }
    close_all(&correlator);
    return error == 0 ? 0 : 1;
}
