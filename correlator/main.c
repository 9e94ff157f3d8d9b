/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qpscope-correlator: hears the NIC and the host side, keeps a journal, analyses, writes the store. Sleeps in poll;
 * runs the analysis when something came, but no more than every 500 ms and --share of a core.
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
#include "correlator/exposition/exposition.h"
#include "correlator/exposition/news.h"
#include "correlator/intake/listener.h"
#include "correlator/relay/uplink.h"
#include "correlator/store/store.h"
#include "report/page/live_page.h"
#include "wire/capture.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/option.h"
#include "wire/reload.h"
#include "wire/seal.h"

#define SHARE_PERCENT     10
#define JOB_SHARE_PERCENT 50
#define RUN_INTERVAL_NS   500000000ULL
#define SILENT_NS         1000000000ULL
#define QUIET_NS          300000000ULL
#define DRAIN_NS          2000000000ULL
#define QUEUE_BYTES       (64u << 20)
#define STORE_BYTES       (4ULL << 30)
#define STORE_BYTES_LEAST (4u << 20)

struct settings {
    const char *intake;
    const char *clock;
    const char *store;
    const char *journal;
    struct option_list controls;
    const char *key_file;
    struct metric_page_place http;
    int stage; /* enum analysis_stage */
    const char *link;
    uint64_t memory_bytes;
    uint64_t store_bytes;
    uint64_t share_percent;
    uint64_t window_records;
    const char *step_on;
    struct verdict_limits limits;
    bool verbose;
};

#define AT(member) offsetof(struct settings, member)
static const char *const stages[] = {"both", "node", "job", NULL}; /* as enum analysis_stage */

static const struct option_spec option_specs[] = {
    {"stage", 0, OPTION_CHOICE, AT(stage), "STAGE",
     "node: tell a job stage, judge nothing; job: judge what node stages tell (both)", 0, 0, stages},
    {"link", 0, OPTION_TEXT, AT(link), "URL", "of a node stage: its job stage's intake", 0, 0, NULL},
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
    METRIC_PAGE_OPTIONS(struct settings, http, "the live page (/), its JSON (/api/v1) and metrics (/metrics)"),
    {"memory", 0, OPTION_BYTES, AT(memory_bytes), "SIZE", "hold at most SIZE of records (1GiB)", 1u << 20, 0, NULL},
    {"store-size", 0, OPTION_BYTES, AT(store_bytes), "SIZE",
     "the store takes at most SIZE, its log with it: the oldest detail goes first (4GiB); 0: no limit", 0, 0, NULL},
    {"share", 0, OPTION_UNSIGNED, AT(share_percent), "PERCENT",
     "analyse for this part of the time at most (10; a job stage 50); more gives verdicts sooner", 1, 100, NULL},
    {"judge-window", 0, OPTION_UNSIGNED, AT(window_records), "RECORDS",
     "judge a job of more than so many ranks times operations window by window, which is sooner and sees less; 0: "
     "never (0)",
     0, UINT32_MAX, NULL},
    {"step-on", 0, OPTION_TEXT, AT(step_on), "OPERATION",
     "a step ends with each of these: AllReduce, or AllReduce:4096 of so many bytes", 0, 0, NULL},
    {"least", 0, OPTION_UNSIGNED, AT(limits.least_permille), "PERMILLE",
     "no verdict on what costs less than this part of a step, in thousandths", 1, 1000, NULL},
    {"spreads", 0, OPTION_UNSIGNED, AT(limits.spreads), "N",
     "a rank is late when it is so in step after step by N times its usual spread", 1, 1000, NULL},
    {"verbose", 'v', OPTION_FLAG, AT(verbose), NULL, "say each new step and verdict on stderr", 0, 0, NULL},
};

static const struct option_program program = {
    .name = "qpscope-correlator",
    .has_config = true,
    .summary = "join what the NIC and the host side saw into steps and verdicts",
    .usage = "--intake URL --clock URL --store FILE [OPTIONS]\n"
             "       qpscope-correlator --stage node --intake URL --link URL [OPTIONS]",
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
    struct uplink *uplink;         /* of a node stage */
    struct exposition *exposition; /* NULL: nobody watches */
    struct live_page *page;        /* the same */
    struct news news;
    struct http_server *http;
    int signals;
    struct reload *reload;
    bool fresh;    /* something came since the last run */
    bool ends;     /* this run is the last */
    bool told_all; /* by a node stage: also what is not over yet */
    uint64_t next_run_ns;
    uint64_t heard_ns;
    size_t steps_said;
    size_t verdicts_said;
};

static void take_batch(void *context, const void *bytes, size_t length_bytes)
{
    struct correlator *correlator = context;

    if (analysis_add_batch(correlator->analysis, bytes, length_bytes) <= 0)
        return;
    correlator->fresh = true;
    uplink_batch(correlator->uplink, bytes, length_bytes);
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

static bool is_silent(const struct correlator *correlator, uint64_t now_ns)
{
    return now_ns > correlator->heard_ns + SILENT_NS;
}

/* A job stage is beside no job, and has a verdict to give within a second. */
static uint64_t share_of(const struct settings *settings)
{
    if (settings->share_percent != 0)
        return settings->share_percent;
    return settings->stage == ANALYSIS_JOB ? JOB_SHARE_PERCENT : SHARE_PERCENT;
}

/* A failed write was logged; the analysis goes on, and the next write holds what this one could not. */
static void analyse(struct correlator *correlator)
{
    uint64_t begun_ns = clock_now_ns();

    analysis_run(correlator->analysis);
    if (correlator->store != NULL)
        store_write(correlator->store, correlator->analysis);
    live_page_note(correlator->page);
    correlator->told_all = correlator->ends || is_silent(correlator, begun_ns);
    uplink_operations(correlator->uplink, correlator->analysis, correlator->told_all);
    correlator->fresh = false;
    if (correlator->settings->verbose)
        say_news(correlator);
    teller_look(correlator->teller, correlator->analysis);
    asker_look(correlator->asker, correlator->analysis);
    uint64_t took_ns = clock_now_ns() - begun_ns;
    exposition_take(correlator->exposition, correlator->analysis, took_ns);
    if (news_take(&correlator->news, &correlator->analysis->job))
        live_page_tell(correlator->page, correlator->http);
    uint64_t share_percent = share_of(correlator->settings);
    uint64_t rest_ns = took_ns * (100 - share_percent) / share_percent;
    if (rest_ns < RUN_INTERVAL_NS)
        rest_ns = RUN_INTERVAL_NS;
    correlator->next_run_ns = begun_ns + took_ns + rest_ns;
    log_debug("analysis of %.1f MiB took %.1f ms", (double)correlator->analysis->intake.held_bytes / (1 << 20),
              (double)took_ns / 1e6);
}

/* What was judged is judged anew. */
static void reload(struct correlator *correlator)
{
    const struct settings *settings = correlator->settings;

    if (!reload_take(correlator->reload))
        return;
    log_set_level(settings->verbose ? LOG_DEBUG : LOG_INFO);
    correlator->analysis->limits = settings->limits;
    if (correlator->store != NULL)
        store_set_limit(correlator->store,
                        settings->store_bytes); /* what fails was logged: the limit holds from the next write on */
    correlator->fresh = true;
}

/* True when a signal to end came. */
static bool wait_for_news(struct correlator *correlator, uint64_t until_ns)
{
    struct pollfd pollers[] = {{.fd = correlator->signals, .events = POLLIN},
                               {.fd = listener_descriptor(correlator->listener), .events = POLLIN},
                               {.fd = reload_descriptor(correlator->reload), .events = POLLIN}};
    uint64_t now_ns = clock_now_ns();
    int timeout_ms = until_ns == 0 ? -1 : until_ns > now_ns ? (int)((until_ns - now_ns) / 1000000 + 1) : 0;

    poll(pollers, 3, timeout_ms);
    if (pollers[1].revents != 0)
        hear(correlator);
    if (pollers[2].revents != 0)
        reload(correlator);
    uplink_drain(correlator->uplink);
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

/* A node stage has something to say though nothing came: its job stage is new, or its agents have stopped. */
static bool is_owed(const struct correlator *correlator, uint64_t now_ns)
{
    return correlator->uplink != NULL &&
           (uplink_is_new(correlator->uplink) || (!correlator->told_all && is_silent(correlator, now_ns)));
}

static uint64_t next_look_ns(const struct correlator *correlator)
{
    if (correlator->fresh)
        return correlator->next_run_ns;
    return correlator->uplink == NULL ? 0 : clock_now_ns() + RUN_INTERVAL_NS;
}

static void run(struct correlator *correlator)
{
    while (!wait_for_news(correlator, next_look_ns(correlator))) {
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= correlator->next_run_ns && (correlator->fresh || is_owed(correlator, now_ns)))
            analyse(correlator);
    }
    drain(correlator);
    correlator->ends = true;
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
        correlator->next_run_ns = clock_now_ns();
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
    const struct uplink_options uplink = {.url = settings->link, .key_file = settings->key_file, .boot_id = boot_id};
    int error = settings->clock == NULL ? 0 : clock_server_open(&correlator->clock, &clock);

    if (error == 0 && settings->link != NULL)
        error = uplink_open(&correlator->uplink, &uplink);
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

static int open_http(struct correlator *correlator)
{
    if (correlator->settings->http.address == NULL)
        return 0;
    correlator->exposition = exposition_create();
    struct metric_page *page = exposition_page(correlator->exposition);
    correlator->page = live_page_create(correlator->settings->store);
    const struct http_route routes[] = {METRIC_PAGE_ROUTES(page), LIVE_PAGE_ROUTES(correlator->page)};
    const struct metric_page_place *place = &correlator->settings->http;
    const struct http_options options = {.address = place->address,
                                         .names = place->names.values,
                                         .names_count = place->names.count,
                                         .routes = routes,
                                         .routes_count = sizeof routes / sizeof routes[0]};
    int error = http_server_open(&correlator->http, &options);
    if (error == 0)
        log_info("serving page and metrics at port %u (--http %s)", http_server_port(correlator->http), place->address);
    return error;
}

static int open_all(struct correlator *correlator, const char *journal_path)
{
    int error = open_signals(correlator);

    if (error == 0 && correlator->settings->store != NULL)
        error = store_open(&correlator->store, correlator->settings->store);
    if (error == 0 && correlator->store != NULL)
        error = store_set_limit(correlator->store, correlator->settings->store_bytes);
    if (error == 0 && journal_path[0] != '\0')
        error = open_journal(correlator, journal_path);
    if (error == 0)
        error = open_links(correlator);
    if (error == 0)
        error = open_http(correlator);
    return error;
}

static void close_all(struct correlator *correlator)
{
    http_server_close(&correlator->http);
    live_page_destroy(&correlator->page);
    exposition_destroy(&correlator->exposition);
    asker_destroy(&correlator->asker);
    teller_destroy(&correlator->teller);
    controls_close(&correlator->controls);
    listener_close(&correlator->listener);
    clock_server_close(&correlator->clock);
    uplink_close(&correlator->uplink);
    capture_writer_close(&correlator->journal);
    store_close(&correlator->store);
    analysis_destroy(&correlator->analysis);
}

/* A node stage's agents ask the job stage's clock, and there is nothing to store or show. */
static int check_settings(const void *values)
{
    const struct settings *settings = values;
    bool is_node = settings->stage == ANALYSIS_NODE;

    if (settings->intake == NULL || (!is_node && (settings->clock == NULL || settings->store == NULL)))
        return log_error_return(-EINVAL, "--intake, --clock and --store are needed (see --help)");
    if (is_node != (settings->link != NULL))
        return log_error_return(-EINVAL, "--link and --stage node go together (see --help)");
    if (is_node && (settings->clock != NULL || settings->store != NULL || settings->http.address != NULL))
        return log_error_return(-EINVAL, "--clock, --store and --http are the job stage's: its agents ask its clock");
    if (settings->store_bytes != 0 && settings->store_bytes < STORE_BYTES_LEAST)
        return log_error_return(-EINVAL, "--store-size takes 4MiB or more, or 0 for no limit");
    return 0;
}

/* Of a node stage only where it is named: what it lost, its agents send no more, and the job stage has most of it. */
static void name_journal(const struct settings *settings, char *path, size_t bytes)
{
    if (settings->journal != NULL || settings->store == NULL)
        snprintf(path, bytes, "%s", settings->journal != NULL ? settings->journal : "");
    else
        snprintf(path, bytes, "%s.journal", settings->store);
}

static const char *const live[] = {"store-size", "share", "least", "spreads", "verbose", NULL};

static int open_reload(struct correlator *correlator, struct settings *settings, const struct settings *defaults,
                       int argc, char **argv)
{
    const struct reload_options options = {.program = &program,
                                           .argc = argc,
                                           .argv = argv,
                                           .values = settings,
                                           .defaults = defaults,
                                           .values_bytes = sizeof *settings,
                                           .live = live,
                                           .check = check_settings};
    return reload_open(&correlator->reload, &options);
}

int main(int argc, char **argv)
{
    const struct settings defaults = {.memory_bytes = ANALYSIS_MEMORY_BYTES,
                                      .store_bytes = STORE_BYTES,
                                      .limits = {VERDICT_LEAST_PERMILLE, VERDICT_SPREADS}};
    struct settings settings = defaults;
    struct correlator correlator = {.settings = &settings};
    char journal[4096];
    char **positionals;
    size_t positionals_count;
    int parsed = option_parse(&program, argc, argv, &settings, &positionals, &positionals_count);

    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    log_init(program.name, settings.verbose ? LOG_DEBUG : LOG_INFO);
    if (check_settings(&settings) != 0)
        return 2;
    struct step_mark mark = {0};
    if (settings.step_on != NULL && step_mark_read(&mark, settings.step_on) != 0)
        return 2;
    name_journal(&settings, journal, sizeof journal);
    correlator.analysis = analysis_create(settings.memory_bytes);
    analysis_judge_in_windows(correlator.analysis, settings.window_records);
    correlator.analysis->stage = (enum analysis_stage)settings.stage;
    correlator.analysis->step_on = mark;
    correlator.analysis->limits = settings.limits;
    int error = open_reload(&correlator, &settings, &defaults, argc, argv);
    if (error == 0)
        error = open_all(&correlator, journal);
    if (error == 0) {
        log_info("ready: hearing at %s", settings.intake);
        run(&correlator);
    }
    close_all(&correlator);
    reload_close(&correlator.reload);
    return error == 0 ? 0 : 1;
}
