/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qpscope record: hears the agents of this host that run, starts those that do not and hears them as a correlator
 * would, and keeps what they tell in one capture. The clocks of agents that it starts are compared with this program's,
 * those of running ones are with their correlator's: so the capture is worth as much as a journal.
 */
#include "cli/doctor.h"
#include "cli/gather/daemon.h"
#include "cli/gather/hearer.h"
#include "cli/gather/tally.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "correlator/intake/listener.h"
#include "report/form/text.h"
#include "report/report.h"
#include "wire/capture.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/seal.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE_BYTES   64 /* of the folder of temporary files; with a longer one the sockets' names would be too long */
#define QUEUE_BYTES   (64u << 20)
#define TURN_NS       200000000u
#define SETTLE_NS     300000000u /* after the agents' end: what is still on the link */
#define START_NS      60000000000u
#define ARGUMENTS_MAX (6 * OPTION_LIST_MAX + 16)
#define URL_BYTES     128

struct record_options {
    const char *output;
    uint64_t duration_ns;
    struct option_list ports;
    struct option_list devices;
    int source;
    int only;
    int agents;
    const char *clock;
    const char *serve_clock;
    const char *key_file;
    struct option_list nic_options;
    struct option_list host_options;
    bool force;
    bool json;
};

enum source_choice {
    SOURCE_PORTS,
    SOURCE_MLX5,
    SOURCE_PSN,
};
static const char *const sources[] = {"ports", "mlx5", "psn", NULL};

enum only_choice {
    ONLY_ALL,
    ONLY_NIC,
    ONLY_HOST,
};
static const char *const onlys[] = {"all", "nic", "host", NULL};

enum agents_choice {
    AGENTS_AUTO,
    AGENTS_RUNNING,
    AGENTS_OWN,
};
static const char *const agents_choices[] = {"auto", "running", "own", NULL};

#define AT(member) offsetof(struct record_options, member)
static const struct option_spec option_specs[] = {
    {"output", 'o', OPTION_TEXT, AT(output), "FILE", "the capture", 0, 0, NULL},
    {"for", 'f', OPTION_DURATION, AT(duration_ns), "TIME",
     "how long, from when all agents are there; ctrl-C ends it sooner, in order", 100000000, 0, NULL},
    {"agents", 'a', OPTION_CHOICE, AT(agents), "WHICH",
     "running: those that run here; own: started for this alone; auto: those that run, and others started", 0, 0,
     agents_choices},
    {"port", 'p', OPTION_TEXT_LIST, AT(ports), "SPEC[@ADDRESS]",
     "a port that qpscope-nic watches (qpscope-nic(8)); may be given several times", 0, 0, NULL},
    {"source", 's', OPTION_CHOICE, AT(source), "KIND", "what qpscope-nic reads: ports, or counters by mlx5 or psn", 0,
     0, sources},
    {"device", 'd', OPTION_TEXT_LIST, AT(devices), "NAME[/PORT][@ADDRESS]",
     "with --source mlx5 or psn: a device (default: all); may be given several times", 0, 0, NULL},
    {"only", 0, OPTION_CHOICE, AT(only), "SIDE", "all, nic, or host", 0, 0, onlys},
    {"clock", 'c', OPTION_TEXT, AT(clock), "URL",
     "compare clocks with what answers at URL: a correlator's --clock, another host's --serve-clock", 0, 0, NULL},
    {"serve-clock", 0, OPTION_TEXT, AT(serve_clock), "URL", "answer other hosts' clock questions at URL", 0, 0, NULL},
    {"key-file", 'k', OPTION_TEXT, AT(key_file), "FILE", "seal the links with this key: needed beyond this machine", 0,
     0, NULL},
    {"nic-option", 0, OPTION_TEXT_LIST, AT(nic_options), "WORD",
     "a word more for qpscope-nic's command line; may be given several times", 0, 0, NULL},
    {"host-option", 0, OPTION_TEXT_LIST, AT(host_options), "WORD", "the same for qpscope-host", 0, 0, NULL},
    {"force", 0, OPTION_FLAG, AT(force), NULL, "replace a file of that name", 0, 0, NULL},
    {"json", 'j', OPTION_FLAG, AT(json), NULL, "print one JSON object instead of text", 0, 0, NULL},
};

const struct option_program subcommand_record_program = {
    .name = "qpscope record",
    .summary = "Keeps what the agents of this host tell for a while in one capture; starts those that do not run.",
    .usage = "[OPTIONS]",
    .options = option_specs,
    .options_count = sizeof(option_specs) / sizeof(option_specs[0]),
    .epilogue = "Needs no correlator, and the rights that the agents need (qpscope doctor).\n"
                "Examples:\n"
                "  qpscope record --agents running --for 30s    of the agents that run here, as they are\n"
                "  qpscope record --port 'net_pcap0,iface=eth0@10.0.0.1' --for 30s -o node1.capture\n"
                "  qpscope record --source psn --only nic\n"
                "  qpscope record ... -k key --serve-clock tcp://10.0.0.1:7000    one host's clock for all\n"
                "  qpscope record ... -k key --clock tcp://10.0.0.1:7000          on the others; then merge\n"
                "  qpscope replay node1.capture\n"
                "Exit codes: 0 done, 1 failed (what came before is kept), 2 used wrongly.",
};

enum side {
    SIDE_NIC,
    SIDE_HOST,
    SIDES,
};
static const char *const side_names[SIDES] = {"nic", "host"};

struct recording {
    const struct record_options *options;
    char folder[PLACE_BYTES + 32];
    char intake[URL_BYTES];
    char own_clock[URL_BYTES];
    const char *clock; /* where the agents ask */
    struct capture_writer *capture;
    struct hearer *hearer;
    struct listener *listener; /* NULL: no agent was started */
    struct clock_server *clock_server;
    bool starts[SIDES];
    struct daemon daemons[SIDES];
    size_t daemons_count;
    struct gather_tally tally;
};

static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int signal_number)
{
    (void)signal_number;
    stop_asked = 1;
}

static void add_words(char **arguments, size_t *count, const char *option, const struct option_list *words)
{
    for (size_t i = 0; i < words->count; i++) {
        if (option != NULL) {
            arguments[(*count)++] = (char *)option;
        }
        arguments[(*count)++] = (char *)words->values[i];
    }
}

static int start(struct recording *recording, const char *name, bool is_nic)
{
    const struct record_options *options = recording->options;
    char *arguments[ARGUMENTS_MAX] = {(char *)name, "--link", recording->intake, "--clock", (char *)recording->clock};
    size_t count = 5;
    if (options->key_file != NULL) {
        arguments[count++] = "--key-file";
        arguments[count++] = (char *)options->key_file;
    }
    if (is_nic) {
        add_words(arguments, &count, "--port", &options->ports);
        add_words(arguments, &count, "--device", &options->devices);
        if (options->source != SOURCE_PORTS) {
            arguments[count++] = "--source";
            arguments[count++] = (char *)sources[options->source];
        }
    }
    add_words(arguments, &count, NULL, is_nic ? &options->nic_options : &options->host_options);
    arguments[count] = NULL;
    return daemon_start(&recording->daemons[recording->daemons_count++], name, arguments);
}

static int start_all(struct recording *recording)
{
    int result = recording->starts[SIDE_NIC] ? start(recording, "qpscope-nic", true) : 0;
    return result == 0 && recording->starts[SIDE_HOST] ? start(recording, "qpscope-host", false) : result;
}

/* The links lie in a folder that only this user enters. */
static int open_links(struct recording *recording)
{
    uint64_t boot_id = seal_random();
    const char *place = getenv("TMPDIR");
    if (place == NULL || strlen(place) > PLACE_BYTES) {
        place = "/tmp";
    }
    snprintf(recording->folder, sizeof(recording->folder), "%s/qpscope-record-XXXXXX", place);
    if (mkdtemp(recording->folder) == NULL) {
        int error = -errno;
        recording->folder[0] = '\0';
        return log_error_return(error, "cannot make a folder in %s for the links: %s", place, strerror(-error));
    }
    snprintf(recording->intake, URL_BYTES, "ipc://%s/intake", recording->folder);
    snprintf(recording->own_clock, URL_BYTES, "ipc://%s/clock", recording->folder);
    const struct record_options *options = recording->options;
    recording->clock = options->clock != NULL         ? options->clock
                       : options->serve_clock != NULL ? options->serve_clock
                                                      : recording->own_clock;
    const struct clock_options clock = {.url = recording->clock, .key_file = options->key_file, .boot_id = boot_id};
    const struct listener_options listener = {
        .url = recording->intake, .key_file = options->key_file, .boot_id = boot_id, .queue_bytes = QUEUE_BYTES};
    int result = options->clock != NULL ? 0 : clock_server_open(&recording->clock_server, &clock);
    return result == 0 ? listener_open(&recording->listener, &listener) : result;
}

static void close_links(struct recording *recording)
{
    char path[URL_BYTES];
    listener_close(&recording->listener);
    clock_server_close(&recording->clock_server);
    if (recording->folder[0] != '\0') {
        snprintf(path, sizeof(path), "%s/intake", recording->folder);
        unlink(path);
        snprintf(path, sizeof(path), "%s/clock", recording->folder);
        unlink(path);
        rmdir(recording->folder);
    }
}

static void take_batch(void *context, const void *bytes, size_t length_bytes)
{
    struct recording *recording = context;
    capture_write(recording->capture, bytes, length_bytes);
    gather_tally_add(&recording->tally, bytes, length_bytes);
}

static void hear(struct recording *recording, uint64_t for_ns)
{
    uint64_t until_ns = clock_now_ns() + for_ns;
    struct listener *listener = recording->listener;
    struct pollfd pollers[] = {{.fd = hearer_descriptor(recording->hearer), .events = POLLIN},
                               {.fd = listener == NULL ? -1 : listener_descriptor(listener), .events = POLLIN}};
    do {
        uint64_t now_ns = clock_now_ns();
        poll(pollers, 2, now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000 + 1) : 0);
        hearer_take(recording->hearer, take_batch, recording);
        if (listener != NULL) {
            listener_take(listener, take_batch, recording);
        }
        capture_flush(recording->capture);
    } while (clock_now_ns() < until_ns && !stop_asked);
}

#define BAR_COLUMNS 30

static void show_progress(const struct recording *recording, uint64_t passed_ns)
{
    char passed[TEXT_NUMBER_BYTES];
    char whole[TEXT_NUMBER_BYTES];
    char bytes[TEXT_NUMBER_BYTES];
    uint64_t duration_ns = recording->options->duration_ns;
    int filled = (int)(passed_ns >= duration_ns ? BAR_COLUMNS : passed_ns * BAR_COLUMNS / duration_ns);
    if (!isatty(STDERR_FILENO)) {
        return;
    }
    fprintf(stderr, "\r\033[K[%.*s%*s] %s of %s, %s heard", filled, "##############################",
            BAR_COLUMNS - filled, "", text_duration(passed, (int64_t)passed_ns),
            text_duration(whole, (int64_t)duration_ns), text_bytes(bytes, (int64_t)recording->tally.bytes));
}

static bool is_one_gone(struct recording *recording)
{
    for (size_t i = 0; i < recording->daemons_count; i++) {
        if (!daemon_runs(&recording->daemons[i])) {
            return true;
        }
    }
    return hearer_ended(recording->hearer) > 0;
}

/* The time counts from when all have said hello. */
static void await_all(struct recording *recording)
{
    uint64_t until_ns = clock_now_ns() + START_NS;
    size_t heard = 0;
    size_t expected = recording->daemons_count + hearer_count(recording->hearer);
    while (heard < expected && clock_now_ns() < until_ns && !stop_asked && !is_one_gone(recording)) {
        hear(recording, TURN_NS);
        heard = 0;
        for (size_t i = 0; i < recording->tally.emitters_count; i++) {
            heard += recording->tally.emitters[i].said_hello;
        }
    }
}

static void hear_all(struct recording *recording)
{
    uint64_t began_ns = clock_now_ns();
    uint64_t passed_ns = 0;
    while (passed_ns < recording->options->duration_ns && !stop_asked && !is_one_gone(recording)) {
        uint64_t left_ns = recording->options->duration_ns - passed_ns;
        hear(recording, left_ns < TURN_NS ? left_ns : TURN_NS);
        passed_ns = clock_now_ns() - began_ns;
        show_progress(recording, passed_ns);
    }
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
}

/* -ENOTCONN, logged, when one that was asked has ended. */
static int check_running(const struct recording *recording)
{
    if (hearer_missing(recording->hearer) > 0) {
        log_warning("%" PRIu64
                    " batches of agents that run here came faster than they could be written, and are missing",
                    hearer_missing(recording->hearer));
    }
    return hearer_ended(recording->hearer) == 0
               ? 0
               : log_error_return(
                     -ENOTCONN,
                     "%zu of the agents that run here ended, or have other listeners: what came before is kept",
                     hearer_ended(recording->hearer));
}

/* -ECHILD, logged, when one of them failed. */
static int end_all(struct recording *recording)
{
    int result = 0;
    for (size_t i = 0; i < recording->daemons_count; i++) {
        daemon_ask_to_end(&recording->daemons[i]);
    }
    for (size_t i = 0; i < recording->daemons_count; i++) {
        daemon_wait(&recording->daemons[i]);
        if (daemon_is_missing(&recording->daemons[i])) {
            result = -ENOENT; /* which it has said */
        } else if (daemon_failed(&recording->daemons[i])) {
            result =
                log_error_return(-ECHILD, "%s failed (what it said stands above); qpscope doctor says what it needs",
                                 recording->daemons[i].name);
        }
    }
    stop_asked = 0;
    hear(recording, SETTLE_NS);
    return result != 0 ? result : check_running(recording);
}

static void print(const struct recording *recording, bool is_kept)
{
    const char *path = recording->options->output;
    struct json json;
    json_init(&json, stdout);
    if (recording->options->json) {
        report_json_begin(&json);
        json_text(&json, "file", is_kept ? path : NULL);
        json_integer(&json, "asked", (int64_t)hearer_count(recording->hearer));
        json_integer(&json, "started", (int64_t)recording->daemons_count);
        json_integer(&json, "missing", (int64_t)hearer_missing(recording->hearer));
        gather_tally_print(&recording->tally, &json);
        json_object_end(&json);
    } else if (is_kept) {
        printf("%s, of %zu agents that ran here and %zu started for it:\n", path, hearer_count(recording->hearer),
               recording->daemons_count);
        gather_tally_print(&recording->tally, NULL);
        if (hearer_missing(recording->hearer) > 0) {
            printf("  missing: %" PRIu64 " batches\n", hearer_missing(recording->hearer));
        }
        printf("qpscope replay %s\n", path);
    }
}

static int record(struct recording *recording)
{
    const char *path = recording->options->output;
    int result = capture_writer_open(&recording->capture, path, 0);
    if (result != 0) {
        return result;
    }
    result = recording->starts[SIDE_NIC] || recording->starts[SIDE_HOST] ? open_links(recording) : 0;
    if (result == 0) {
        result = start_all(recording);
    }
    if (result == 0) {
        await_all(recording);
        hear_all(recording);
    }
    int ended = end_all(recording);
    close_links(recording);
    int closed = capture_writer_close(&recording->capture);
    bool is_kept = recording->tally.batches > 0;
    if (!is_kept) {
        output_remove(path);
        ended =
            result != 0 || ended != 0 ? ended : log_error_return(-ENODATA, "nothing was heard: %s is not kept", path);
    }
    print(recording, is_kept);
    return result != 0 ? result : ended != 0 ? ended : closed;
}

static bool is_meant(const struct record_options *options, enum side side)
{
    return options->only != (side == SIDE_NIC ? ONLY_HOST : ONLY_NIC);
}

static bool does_run(enum side side)
{
    const struct doctor_machine machine = {.root = "", .store = ""};
    for (size_t i = 0; i < DOCTOR_DAEMONS; i++) {
        if (strcmp(doctor_daemon_name(i), side_names[side]) == 0) {
            return doctor_daemon_count(&machine, i) > 0;
        }
    }
    return false;
}

/* Asks those that run, and says what becomes of the others. */
static void ask(struct recording *recording, enum side side)
{
    const struct record_options *options = recording->options;
    const char *name = side_names[side];
    size_t asked = options->agents == AGENTS_OWN ? 0 : hearer_find(recording->hearer, name);
    recording->starts[side] = asked == 0 && options->agents != AGENTS_RUNNING;
    if (asked > 0 && side == SIDE_NIC && (options->ports.count > 0 || options->source != SOURCE_PORTS)) {
        log_warning("qpscope-nic runs here and is asked: --port, --source and --device are for one that is started "
                    "(--agents own)");
    } else if (asked == 0 && does_run(side)) {
        log_warning(
            "qpscope-%s runs here, but is not asked%s; its correlator's journal (STORE.journal) is a capture as "
            "well, for qpscope merge and replay",
            name, recording->starts[side] ? ": a second one costs as much again" : "");
    }
}

static const char *wrong_usage(const struct record_options *options)
{
    if (options->source != SOURCE_PORTS && options->ports.count != 0) {
        return "--port goes with --source ports";
    }
    if (options->clock != NULL && options->serve_clock != NULL) {
        return "--clock takes another's clock, --serve-clock gives this one's: one of them";
    }
    return NULL;
}

/* What is to be asked or started, and whether that can be. */
static const char *choose(struct recording *recording)
{
    const struct record_options *options = recording->options;
    for (enum side side = 0; side < SIDES; side++) {
        if (is_meant(options, side)) {
            ask(recording, side);
        }
    }
    if (recording->starts[SIDE_NIC] && options->source == SOURCE_PORTS && options->ports.count == 0) {
        return "say what qpscope-nic is to watch: --port or --source; or record --only host";
    }
    return NULL;
}

static int record_chosen(struct recording *recording)
{
    const char *wrong = choose(recording);
    if (wrong != NULL) {
        return subcommand_usage_error(&subcommand_record_program, "%s", wrong);
    }
    if (hearer_count(recording->hearer) == 0 && !recording->starts[SIDE_NIC] && !recording->starts[SIDE_HOST]) {
        log_error("no agent that runs here can be asked: qpscope doctor says what runs; without --agents running they "
                  "are started");
        return EXIT_CODE_FAILURE;
    }
    return subcommand_exit(record(recording));
}

int subcommand_record(int argc, char **argv)
{
    struct record_options options = {.output = "qpscope.capture", .duration_ns = 10000000000u};
    const struct sigaction action = {.sa_handler = ask_to_stop};
    struct stat status;
    int exit_code;
    if (!subcommand_parse(&subcommand_record_program, argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    const char *wrong = wrong_usage(&options);
    if (wrong != NULL) {
        return subcommand_usage_error(&subcommand_record_program, "%s", wrong);
    }
    if (!options.force && stat(options.output, &status) == 0) {
        log_error("%s exists: name a new file with --output, or add --force to replace it", options.output);
        return EXIT_CODE_FAILURE;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct recording recording = {.options = &options};
    if (hearer_create(&recording.hearer) != 0) {
        return EXIT_CODE_FAILURE;
    }
    exit_code = record_chosen(&recording);
    hearer_destroy(&recording.hearer);
    gather_tally_fini(&recording.tally);
    return exit_code;
}
