/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qpscope-nic: reads frames from DPDK ports or from a capture file, and tells what each flow sent and when. A capture
 * file is read by the main thread, ports by it or by a thread a receive queue.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "nic/counting/census.h"
#include "nic/report.h"
#include "nic/source/source.h"
#include "nic/team.h"
#include "nic/worker.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/metric/metric_page.h"
#include "wire/option.h"
#include "wire/reload.h"

enum source_choice {
    SOURCE_CHOICE_AUTO,
    SOURCE_CHOICE_DPDK,
    SOURCE_CHOICE_FILE,
    SOURCE_CHOICE_MLX5,
    SOURCE_CHOICE_PSN
};
static const char *const source_choices[] = {"auto", "dpdk", "file", "mlx5", "psn", NULL};

struct settings {
    int source; /* enum source_choice */
    struct option_list devices;
    uint64_t interval_ns;
    uint64_t counters_interval_ns;
    uint64_t duration_ns;
    const char *file;
    struct option_list ports;
    struct option_list eal;
    struct emitter_options emitter;
    const char *control;
    struct metric_page_place http;
    uint64_t window_ns;
    uint64_t memory_bytes;
    uint64_t flows_max;
    bool verify_icrc;
    uint64_t messages_max;
    uint64_t message_rate;
    uint64_t queues;
    uint64_t flows_part;
    int steering; /* enum steering_mode */
    bool promiscuous;
    bool edges_only;
    bool dry_run;
    bool json;
    bool windows;
    bool messages;
};

struct program {
    struct settings settings;
    struct worker worker; /* of a capture file */
    struct report report;
};

static atomic_bool stop_asked;
static atomic_uint_fast64_t message_rate; /* as it is now */

static const char *const steering_modes[] = {"auto", "off", "take", "mirror", NULL};

#define AT(field) offsetof(struct settings, field)
static const struct option_spec specs[] = {
    {"port", 'p', OPTION_TEXT_LIST, AT(ports), "SPEC[@ADDRESS]",
     "watch a DPDK port: a virtual device (net_pcap0,iface=eth0), a PCI address or a port's name; ADDRESS is the "
     "port's own GID or IP address; may be given several times",
     0, 0, NULL},
    {"file", 'f', OPTION_TEXT, AT(file), "CAPTURE", "read a pcap or pcapng file instead", 0, 0, NULL},
    {"source", 's', OPTION_CHOICE, AT(source), "KIND",
     "dpdk: frames of --port; file: frames of --file; mlx5: counters of each queue pair in the device; psn: sequence "
     "numbers of each queue pair in its context; auto: what --port or --file says",
     0, 0, source_choices},
    {"device", 'd', OPTION_TEXT_LIST, AT(devices), "NAME[/PORT][@ADDRESS]",
     "with --source mlx5 or psn: an RDMA device whose queue pairs are counted (default: all); with --port: one whose "
     "port's counters are read as well; ADDRESS is the port's own, where the system cannot tell; may be given several "
     "times",
     0, 0, NULL},
    {"interval", 'i', OPTION_DURATION, AT(interval_ns), "TIME",
     "with --source mlx5 or psn: between two readings; 0s: psn 10ms, mlx5 as fast as the device answers", 0,
     60000000000u, NULL},
    {"port-counters", 0, OPTION_DURATION, AT(counters_interval_ns), "TIME",
     "read the ports' own counters (pause, drops, errors, congestion) this often; 0s: not at all", 0, 60000000000u,
     NULL},
    {"duration", 0, OPTION_DURATION, AT(duration_ns), "TIME",
     "with --source mlx5 or psn: end after this time; 0s: when asked to", 0, 0, NULL},
    EMITTER_OPTIONS(settings, emitter),
    {"control", 0, OPTION_TEXT, AT(control), "URL", "listen here for requests for an interval's windows", 0, 0, NULL},
    METRIC_PAGE_OPTIONS(struct settings, http, "metrics (/metrics, for Prometheus)"),
    {"instance", 0, OPTION_TEXT, AT(emitter.instance), "NAME", "name this agent (default: the first port or file)", 0,
     0, NULL},
    {"window", 'w', OPTION_DURATION, AT(window_ns), "TIME", "window length, 1us to 1ms", WINDOW_NS_MIN, WINDOW_NS_MAX,
     NULL},
    {"memory", 'm', OPTION_BYTES, AT(memory_bytes), "SIZE", "memory for flows, messages and windows", 4u << 20,
     (uint64_t)1 << 40, NULL},
    {"verify-icrc", 0, OPTION_FLAG, AT(verify_icrc), NULL,
     "leave out frames whose invariant CRC is wrong, and count them", 0, 0, NULL},
    {"max-flows", 0, OPTION_UNSIGNED, AT(flows_max), "N", "flows that are told apart; more are refused and counted", 16,
     WINDOW_FLOW_MAX, NULL},
    {"max-messages", 0, OPTION_UNSIGNED, AT(messages_max), "N", "messages that can wait to be sent", 64, 1u << 24,
     NULL},
    {"message-rate", 0, OPTION_BYTES, AT(message_rate), "SIZE",
     "message records a second above which messages are merged into bursts; 0 = never", 0, (uint64_t)1 << 40, NULL},
    {"queues", 'q', OPTION_UNSIGNED, AT(queues), "N",
     "receive queues of each port, each read by a thread of its own with its share of the memory", 1, SOURCE_QUEUES_MAX,
     NULL},
    {"promiscuous", 0, OPTION_FLAG, AT(promiscuous), NULL, "ask the ports for frames of other hosts as well", 0, 0,
     NULL},
    {"steering", 0, OPTION_CHOICE, AT(steering), "HOW",
     "rules at the port: off (all that comes), take (RoCE comes here and nowhere else), mirror (a copy of RoCE comes "
     "here), auto (mirror where the kernel shares the port, else off)",
     0, 0, steering_modes},
    {"edges-only", 0, OPTION_FLAG, AT(edges_only), NULL,
     "let the port leave out what lies between a message's first and last frame", 0, 0, NULL},
    {"flows-part", 0, OPTION_UNSIGNED, AT(flows_part), "N",
     "let the port leave out all flows but one in N, by the UDP source port; a power of two", 1, 1024, NULL},
    {"dry-run", 0, OPTION_FLAG, AT(dry_run), NULL,
     "print the rules (and of mlx5 the commands) that would be made, and end", 0, 0, NULL},
    {"eal", 0, OPTION_TEXT_LIST, AT(eal), "ARGUMENT", "pass an argument on to DPDK's EAL; may be given several times",
     0, 0, NULL},
    {"json", 'j', OPTION_FLAG, AT(json), NULL, "with --file, mlx5 or psn: print rows of JSON instead of tables", 0, 0,
     NULL},
    {"windows", 0, OPTION_FLAG, AT(windows), NULL, "with --file: print (and record) one row a window", 0, 0, NULL},
    {"messages", 0, OPTION_FLAG, AT(messages), NULL, "with --file: print one row a message", 0, 0, NULL},
};

static const struct option_program program_options = {
    .name = "qpscope-nic",
    .has_config = true,
    .summary = "What each RDMA queue pair sends, in windows of microseconds, seen at a port or in a capture file.",
    .usage = "{--port SPEC[@ADDRESS]... | --file CAPTURE | --source mlx5|psn [--device NAME]...} [OPTIONS]",
    .options = specs,
    .options_count = sizeof specs / sizeof specs[0],
    .epilogue = "Examples:\n"
                "  qpscope-nic --file capture.pcap                  what each flow sent\n"
                "  qpscope-nic --file capture.pcap --json --windows\n"
                "  qpscope-nic --port net_pcap0,iface=eth0@10.0.0.1 --record nic.capture\n"
                "  qpscope-nic --source psn --duration 5s           how far each queue pair goes\n"
                "Exit code 0: done; 1: a failure (what was read before it is still printed); 2: wrong usage.",
};

static void ask_to_stop(int signal_number)
{
    (void)signal_number;
    stop_asked = true;
}

static int usage_error(const char *text)
{
    log_error("%s; see --help", text);
    return 2;
}

static bool is_counting(const struct settings *settings)
{
    return settings->source == SOURCE_CHOICE_MLX5 || settings->source == SOURCE_CHOICE_PSN;
}

static bool is_published(const struct settings *settings)
{
    return settings->emitter.link_url != NULL || settings->emitter.record_path != NULL;
}

static int check_counting(const struct settings *settings)
{
    if (settings->file != NULL || settings->ports.count != 0)
        return usage_error("--source mlx5 and psn read devices, named by --device: without --port and --file");
    if (settings->windows || settings->messages)
        return usage_error("--windows and --messages go with --file: a source that counts has neither");
    return settings->dry_run && settings->source != SOURCE_CHOICE_MLX5
               ? usage_error("--dry-run goes with --port and --source mlx5")
               : 0;
}

static int check_frames(const struct settings *settings)
{
    if ((settings->file != NULL) == (settings->ports.count != 0))
        return usage_error("give either --port (to watch ports) or --file (to read a capture)");
    if (settings->source != SOURCE_CHOICE_AUTO && (settings->source == SOURCE_CHOICE_FILE) != (settings->file != NULL))
        return usage_error("--source dpdk goes with --port, --source file with --file");
    if (settings->duration_ns != 0 || settings->interval_ns != 0)
        return usage_error("--duration and --interval go with --source mlx5 or psn");
    if (settings->file != NULL && settings->devices.count != 0)
        return usage_error("--device goes with --port, --source mlx5 or --source psn");
    if (settings->file == NULL && (settings->json || settings->windows || settings->messages))
        return usage_error("--json, --windows and --messages go with --file");
    if ((settings->flows_part & (settings->flows_part - 1)) != 0)
        return usage_error("--flows-part takes a power of two");
    if (settings->file == NULL && !is_published(settings) && !settings->dry_run)
        return usage_error("--port needs --link or --record: where the records go");
    return 0;
}

static int check_settings(const void *values)
{
    const struct settings *settings = values;
    int error = is_counting(settings) ? check_counting(settings) : check_frames(settings);

    if (error != 0)
        return error;
    if (!is_published(settings) && !settings->dry_run &&
        (settings->control != NULL || settings->emitter.clock_url != NULL || settings->http.address != NULL))
        return usage_error("--control, --clock and --http go with --link");
    if (settings->http.address != NULL && settings->file != NULL)
        return usage_error("--http goes with --port or a source that counts: a file is read and done");
    return 0;
}

static struct meter_options meter_settings(const struct settings *settings)
{
    return (struct meter_options){.window_ns = (uint32_t)settings->window_ns,
                                  .flows_max = (uint32_t)settings->flows_max,
                                  .verify_icrc = settings->verify_icrc,
                                  .messages_max = (uint32_t)settings->messages_max,
                                  .memory_bytes = settings->memory_bytes};
}

static struct publisher_options publisher_settings(const struct settings *settings)
{
    struct publisher_options options = {
        .emitter = settings->emitter,
        .control_url = settings->control,
        .message_bytes_a_second = settings->file != NULL ? 0 : settings->message_rate,
        .message_rate = settings->file != NULL ? NULL : &message_rate,
    };

    options.emitter.kind = EMITTER_NIC;
    options.emitter.outlet = settings->file != NULL ? NULL : "nic";
    options.emitter.window_ns = (uint32_t)settings->window_ns;
    return options;
}

static struct source_dpdk_options source_settings(const struct settings *settings)
{
    return (struct source_dpdk_options){
        .ports = &settings->ports,
        .eal_arguments = &settings->eal,
        .queues = (unsigned)settings->queues,
        .is_promiscuous = settings->promiscuous,
        .steering = {.mode = (enum steering_mode)settings->steering,
                     .edges_only = settings->edges_only,
                     .flows_part = (unsigned)settings->flows_part},
    };
}

static struct port_watch_options watch_settings(const struct settings *settings)
{
    return (struct port_watch_options){.devices = &settings->devices, .interval_ns = settings->counters_interval_ns};
}

/* ---- a capture file ---- */

static void report_one(void *context, const struct flow *flow, const struct record_message *message)
{
    report_message(context, flow, message);
}

static void take_messages(struct program *program)
{
    worker_take_messages(&program->worker, program->settings.messages ? report_one : NULL, &program->report);
}

static void take_windows(struct program *program)
{
    struct window_walk walk;
    struct record_window windows[64];
    bool done = false;

    window_walk_begin(program->worker.meter.windows, &walk, 0, UINT64_MAX, 0);
    while (!done) {
        size_t count = window_walk_next(program->worker.meter.windows, &walk, windows, 64, SIZE_MAX, &done);
        for (size_t i = 0; i < count; i++) {
            report_window(&program->report, flow_at(program->worker.meter.flows, windows[i].header.source),
                          &windows[i]);
            if (program->worker.publisher != NULL)
                publisher_add_window(program->worker.publisher, &windows[i]);
        }
    }
}

static void report_one_flow(struct program *program, const struct flow *flow)
{
    struct record_flow_total total;

    flow_total_record(program->worker.meter.flows, flow, &total);
    report_flow(&program->report, flow, &total);
}

static void report_rest(struct program *program, bool is_complete)
{
    meter_settle(&program->worker.meter, UINT64_MAX, UINT64_MAX);
    take_messages(program);
    if (program->settings.windows)
        take_windows(program);
    if (!program->settings.windows && !program->settings.messages) {
        for (uint32_t number = 1; number <= flow_count(program->worker.meter.flows); number++)
            report_one_flow(program, flow_at(program->worker.meter.flows, number));
    }
    report_end(&program->report, &program->worker.counters, is_complete);
}

/* Reads the capture file to its end, or to where it can be read no further. */
static int read_file(struct program *program)
{
    struct source_frame frames[SOURCE_BURST_FRAMES];
    int received;

    report_begin(&program->report, program->settings.file);
    while ((received = source_receive(program->worker.source, frames)) > 0 && !stop_asked) {
        meter_frames(&program->worker.meter, frames, (size_t)received);
        take_messages(program);
        if (program->worker.publisher != NULL)
            publisher_tick(program->worker.publisher, source_covered_ns(program->worker.source));
    }
    int error = received == -ENODATA ? 0 : received < 0 ? received : -EINTR;
    uint64_t overwritten = counter_read(program->worker.tallies.values, TALLY_WINDOWS_OVERWRITTEN);
    if (error == 0 && program->settings.windows && overwritten != 0)
        error = log_error_return(-ENOSPC, "%llu windows were given up for newer ones: raise --memory",
                                 (unsigned long long)overwritten);
    report_rest(program, error == 0);
    return error;
}

static int open_file(struct program *program)
{
    const struct settings *settings = &program->settings;
    const struct meter_options meter = meter_settings(settings);
    struct publisher_options publisher = publisher_settings(settings);
    struct source *source = NULL;
    struct record_clock_pair pair;
    int error = source_open_file(&source, settings->file);

    if (error == 0)
        error = worker_open(&program->worker, source, &meter);
    if (error != 0 || !is_published(settings))
        return error;
    if (publisher.emitter.instance == NULL)
        publisher.emitter.instance = program->worker.meter.ports[0].name;
    clock_read_pair(&pair, 0); /* a capture file's times are CLOCK_REALTIME: so is the clock of this emitter */
    publisher.emitter.clock_offset_ns = (int64_t)(pair.realtime_ns - pair.monotonic_ns);
    return worker_publish(&program->worker, &publisher, false);
}

static int run_file(struct program *program)
{
    int error = open_file(program);

    if (error == 0)
        error = read_file(program);
    int close_error = worker_close(&program->worker);
    return error != 0 ? error : close_error;
}

/* ---- ports ---- */

static int run_live(const struct settings *settings)
{
    const struct team_options options = {.meter = meter_settings(settings),
                                         .publisher = publisher_settings(settings),
                                         .source = source_settings(settings),
                                         .ports = watch_settings(settings),
                                         .http = &settings->http};
    struct team *team = NULL;
    int error = team_open(&team, &options);

    if (error == 0)
        error = team_run(team, &stop_asked);
    int close_error = team_close(&team);
    return error != 0 ? error : close_error;
}

/* ---- what others count ---- */

static int run_counting(struct program *program)
{
    const struct settings *settings = &program->settings;
    const struct source_device_options devices = {
        .devices = &settings->devices, .interval_ns = settings->interval_ns, .is_dry = settings->dry_run};
    const struct census_options options = {.name = source_choices[settings->source],
                                           .publisher = publisher_settings(settings),
                                           .ports = watch_settings(settings),
                                           .is_published = is_published(settings),
                                           .duration_ns = settings->duration_ns,
                                           .http = &settings->http};
    bool is_printed = settings->json || !is_published(settings);
    struct source *source = NULL;
    int error = settings->source == SOURCE_CHOICE_MLX5 ? source_open_mlx5(&source, &devices)
                                                       : source_open_psn(&source, &devices);

    if (error != 0 || settings->dry_run)
        return error;
    return census_run(source, &options, is_printed ? &program->report : NULL, &stop_asked);
}

/* ---- the configuration again ---- */

static const char *const live[] = {"message-rate", NULL};

/* Nobody else looks at these settings; workers read the rate. */
struct reloader {
    struct settings now;
    struct reload *reload;
};

static void *attend(void *context)
{
    struct reloader *reloader = context;
    struct pollfd poller = {.fd = reload_descriptor(reloader->reload), .events = POLLIN};

    for (;;) {
        if (poll(&poller, 1, -1) > 0 && reload_take(reloader->reload))
            atomic_store(&message_rate, reloader->now.message_rate);
    }
    return NULL;
}

/* Ends with the program. */
static int start_reloader(const struct settings *settings, const struct settings *defaults, int argc, char **argv)
{
    static struct reloader reloader;
    const struct reload_options options = {.program = &program_options,
                                           .argc = argc,
                                           .argv = argv,
                                           .values = &reloader.now,
                                           .defaults = defaults,
                                           .values_bytes = sizeof *settings,
                                           .live = live,
                                           .check = check_settings};
    pthread_t thread;

    reloader.now = *settings;
    atomic_store(&message_rate, settings->message_rate);
    int error = reload_open(&reloader.reload, &options);
    if (error != 0 || reload_descriptor(reloader.reload) < 0)
        return error;
    error = -pthread_create(&thread, NULL, attend, &reloader);
    if (error == 0)
        pthread_detach(thread);
    return error;
}

static int run(struct program *program)
{
    const struct settings *settings = &program->settings;
    const struct source_dpdk_options source = source_settings(settings);
    const struct sigaction action = {.sa_handler = ask_to_stop};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (is_counting(settings))
        return run_counting(program);
    if (settings->file != NULL)
        return run_file(program);
    return settings->dry_run ? source_print_dpdk(&source, stdout) : run_live(settings);
}

int main(int argc, char **argv)
{
    static const struct settings defaults = {.window_ns = 8000,
                                             .memory_bytes = 128u << 20,
                                             .flows_max = 8192,
                                             .messages_max = 65536,
                                             .message_rate = 4000000,
                                             .queues = 1,
                                             .flows_part = 1,
                                             .counters_interval_ns = 10000000};
    static struct program program;
    char **positionals;
    size_t positionals_count;

    program.settings = defaults;
    log_init("qpscope-nic", LOG_INFO);
    int parsed = option_parse(&program_options, argc, argv, &program.settings, &positionals, &positionals_count);
    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    if (check_settings(&program.settings) != 0)
        return 2;
    program.report = (struct report){
        .to = stdout, .is_json = program.settings.json, .window_ns = (uint32_t)program.settings.window_ns};
    bool is_service = program.settings.file == NULL && !program.settings.dry_run;
    int error = is_service ? start_reloader(&program.settings, &defaults, argc, argv) : 0;
    if (error == 0)
        error = run(&program);
    if (fflush(stdout) != 0 || ferror(stdout))
        error = log_error_return(-EIO, "cannot write to standard output");
    return error == 0 ? 0 : 1;
}
