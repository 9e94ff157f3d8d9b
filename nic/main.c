/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qpscope-nic: reads frames from DPDK ports or from a capture file, and tells what each flow sent and when. One thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nic/meter.h"
#include "nic/publisher.h"
#include "nic/report.h"
#include "nic/source.h"
#include "wire/clock.h"
#include "wire/log.h"
#include "wire/option.h"

#define HOUSEKEEPING_NS 100000000u
#define STALE_NS        1000000000u /* after this a message whose last frame was seen waits no longer for the rest */

struct settings {
    const char *file;
    struct option_list ports;
    struct option_list eal;
    const char *link;
    const char *clock;
    const char *control;
    const char *key_file;
    const char *record;
    const char *instance;
    uint64_t window_ns;
    uint64_t memory_bytes;
    uint64_t flows_max;
    uint64_t messages_max;
    bool json;
    bool windows;
    bool messages;
};

struct program {
    struct settings settings;
    struct tallies tallies;
    struct counter_table counters;
    struct meter meter;
    struct source *source;
    struct publisher *publisher; /* NULL: only printed */
    struct report report;
    bool is_reporting;
};

static volatile sig_atomic_t stop_asked;

#define AT(field) offsetof(struct settings, field)
static const struct option_spec specs[] = {
    {"port", 'p', OPTION_TEXT_LIST, AT(ports), "SPEC[@ADDRESS]",
     "watch a DPDK port: a virtual device (net_pcap0,iface=eth0), a PCI address or a port's name; ADDRESS is the "
     "port's own GID or IP address; may be given several times",
     0, 0, NULL},
    {"file", 'f', OPTION_TEXT, AT(file), "CAPTURE", "read a pcap or pcapng file instead", 0, 0, NULL},
    {"link", 'l', OPTION_TEXT, AT(link), "URL", "send records to the correlator's intake", 0, 0, NULL},
    {"clock", 'c', OPTION_TEXT, AT(clock), "URL", "exchange clock samples with the correlator", 0, 0, NULL},
    {"control", 0, OPTION_TEXT, AT(control), "URL", "listen here for requests for an interval's windows", 0, 0, NULL},
    {"key-file", 'k', OPTION_TEXT, AT(key_file), "FILE", "seal the links with this key", 0, 0, NULL},
    {"record", 'r', OPTION_TEXT, AT(record), "FILE", "write the records to a capture file as well", 0, 0, NULL},
    {"instance", 0, OPTION_TEXT, AT(instance), "NAME", "name this agent (default: the first port or file)", 0, 0, NULL},
    {"window", 'w', OPTION_DURATION, AT(window_ns), "TIME", "window length, 1us to 1ms", WINDOW_NS_MIN, WINDOW_NS_MAX,
     NULL},
    {"memory", 'm', OPTION_BYTES, AT(memory_bytes), "SIZE", "memory for flows, messages and windows", 4u << 20,
     (uint64_t)1 << 40, NULL},
    {"max-flows", 0, OPTION_UNSIGNED, AT(flows_max), "N", "flows that are told apart; more are refused and counted", 16,
     WINDOW_FLOW_MAX, NULL},
    {"max-messages", 0, OPTION_UNSIGNED, AT(messages_max), "N", "messages that can wait to be sent", 64, 1u << 24,
     NULL},
    {"eal", 0, OPTION_TEXT_LIST, AT(eal), "ARGUMENT", "pass an argument on to DPDK's EAL; may be given several times",
     0, 0, NULL},
    {"json", 'j', OPTION_FLAG, AT(json), NULL, "with --file: print rows of JSON instead of tables", 0, 0, NULL},
    {"windows", 0, OPTION_FLAG, AT(windows), NULL, "with --file: print (and record) one row a window", 0, 0, NULL},
    {"messages", 0, OPTION_FLAG, AT(messages), NULL, "with --file: print one row a message", 0, 0, NULL},
};

static const struct option_program program_options = {
    .name = "qpscope-nic",
    .summary = "What each RDMA queue pair sends, in windows of microseconds, seen at a port or in a capture file.",
    .usage = "{--port SPEC[@ADDRESS]... [--link URL] [--record FILE] | --file CAPTURE [--json]} [OPTIONS]",
    .options = specs,
    .options_count = sizeof specs / sizeof specs[0],
    .epilogue = "Examples:\n"
                "  qpscope-nic --file capture.pcap                  what each flow sent\n"
                "  qpscope-nic --file capture.pcap --json --windows\n"
                "  qpscope-nic --port net_pcap0,iface=eth0@10.0.0.1 --record nic.capture\n"
                "Exit code 0: done; 1: a failure (what was read before it is still printed); 2: wrong usage.",
};

static void ask_to_stop(int signal_number)
{
    (void)signal_number;
    stop_asked = 1;
}

static int usage_error(const char *text)
{
    log_error("%s; see --help", text);
    return 2;
}

static int check_settings(const struct settings *settings)
{
    bool has_output = settings->link != NULL || settings->record != NULL;

    if ((settings->file != NULL) == (settings->ports.count != 0))
        return usage_error("give either --port (to watch ports) or --file (to read a capture)");
    if (settings->file == NULL && (settings->json || settings->windows || settings->messages))
        return usage_error("--json, --windows and --messages go with --file");
    if (settings->file == NULL && !has_output)
        return usage_error("--port needs --link or --record: where the records go");
    if (!has_output && (settings->control != NULL || settings->clock != NULL))
        return usage_error("--control and --clock go with --link");
    return 0;
}

static void describe_source(struct program *program)
{
    struct record_traffic_source description;

    source_describe(program->source, &description);
    if (description.grain_ns == 0)
        description.grain_ns = program->settings.window_ns;
    description.at_ns = publisher_now_ns(program->publisher);
    publisher_set_source(program->publisher, &description);
}

static int open_publisher(struct program *program)
{
    const struct settings *settings = &program->settings;
    struct publisher_options options = {
        .emitter = {.kind = EMITTER_NIC,
                    .instance = settings->instance,
                    .link_url = settings->link,
                    .clock_url = settings->clock,
                    .key_file = settings->key_file,
                    .record_path = settings->record,
                    .window_ns = (uint32_t)settings->window_ns,
                    .counters = &program->counters},
        .control_url = settings->control,
    };

    if (settings->file != NULL) { /* a capture file's times are CLOCK_REALTIME: so is the clock of this emitter */
        struct record_clock_pair pair;
        clock_read_pair(&pair, 0);
        options.emitter.clock_offset_ns = (int64_t)(pair.realtime_ns - pair.monotonic_ns);
    }
    int error = publisher_open(&program->publisher, &options, &program->meter);
    if (error == 0)
        describe_source(program);
    return error;
}

static int open_all(struct program *program)
{
    struct settings *settings = &program->settings;
    const struct meter_options options = {.window_ns = (uint32_t)settings->window_ns,
                                          .flows_max = (uint32_t)settings->flows_max,
                                          .messages_max = (uint32_t)settings->messages_max,
                                          .memory_bytes = settings->memory_bytes};
    int error = meter_init(&program->meter, &options, &program->tallies);

    if (error != 0)
        return error;
    error = settings->file != NULL ? source_open_file(&program->source, settings->file)
                                   : source_open_dpdk(&program->source, &settings->ports, &settings->eal);
    if (error != 0)
        return error;
    meter_set_ports(&program->meter, program->source);
    if (settings->instance == NULL)
        settings->instance = program->meter.ports[0].name;
    return settings->link == NULL && settings->record == NULL ? 0 : open_publisher(program);
}

static void take_messages(struct program *program)
{
    struct record_message message;

    while (message_take(program->meter.messages, &message)) {
        if (program->is_reporting && program->settings.messages)
            report_message(&program->report, flow_at(program->meter.flows, message.header.source), &message);
        if (program->publisher != NULL)
            publisher_add_message(program->publisher, &message);
    }
}

static void take_windows(struct program *program)
{
    struct window_walk walk;
    struct record_window windows[64];
    bool done = false;

    window_walk_begin(program->meter.windows, &walk, 0, UINT64_MAX, 0);
    while (!done) {
        size_t count = window_walk_next(program->meter.windows, &walk, windows, 64, SIZE_MAX, &done);
        for (size_t i = 0; i < count; i++) {
            report_window(&program->report, flow_at(program->meter.flows, windows[i].header.source), &windows[i]);
            if (program->publisher != NULL)
                publisher_add_window(program->publisher, &windows[i]);
        }
    }
}

static void report_one_flow(struct program *program, const struct flow *flow)
{
    struct record_flow_total total;

    flow_total_record(program->meter.flows, flow, &total);
    report_flow(&program->report, flow, &total);
}

static void report_rest(struct program *program, bool is_complete)
{
    meter_settle(&program->meter, UINT64_MAX, UINT64_MAX);
    take_messages(program);
    if (program->settings.windows)
        take_windows(program);
    if (!program->settings.windows && !program->settings.messages) {
        for (uint32_t number = 1; number <= flow_count(program->meter.flows); number++)
            report_one_flow(program, flow_at(program->meter.flows, number));
    }
    report_end(&program->report, &program->counters, is_complete);
}

/* Reads the capture file to its end, or to where it can be read no further. */
static int run_file(struct program *program)
{
    struct source_frame frames[SOURCE_BURST_FRAMES];
    int received;

    report_begin(&program->report, program->settings.file);
    while ((received = source_receive(program->source, frames)) > 0 && !stop_asked) {
        meter_frames(&program->meter, frames, (size_t)received);
        take_messages(program);
        if (program->publisher != NULL)
            publisher_tick(program->publisher, source_covered_ns(program->source));
    }
    int error = received == -ENODATA ? 0 : received < 0 ? received : -EINTR;
    uint64_t overwritten = counter_read(program->tallies.values, TALLY_WINDOWS_OVERWRITTEN);
    if (error == 0 && program->settings.windows && overwritten != 0)
        error = log_error_return(-ENOSPC, "%llu windows were given up for newer ones: raise --memory",
                                 (unsigned long long)overwritten);
    report_rest(program, error == 0);
    return error;
}

/* What needs no doing at every burst. */
static void keep_house(struct program *program, uint64_t *due_ns)
{
    uint64_t now_ns = publisher_now_ns(program->publisher);
    struct source_loss loss;

    if (now_ns < *due_ns)
        return;
    *due_ns = now_ns + HOUSEKEEPING_NS;
    meter_settle(&program->meter, now_ns - HOUSEKEEPING_NS, now_ns - STALE_NS);
    while (source_take_loss(program->source, &loss)) {
        tally_add(&program->tallies, TALLY_FRAMES_PORT_DROPPED, loss.frames);
        publisher_add_loss(program->publisher, &loss);
    }
}

static int run_live(struct program *program)
{
    struct source_frame frames[SOURCE_BURST_FRAMES];
    uint64_t due_ns = 0;
    int received = 0;

    log_info("ready: watching %zu port%s", program->meter.ports_count, program->meter.ports_count == 1 ? "" : "s");
    while (!stop_asked && (received = source_receive(program->source, frames)) >= 0) {
        meter_frames(&program->meter, frames, (size_t)received);
        take_messages(program);
        keep_house(program, &due_ns);
        publisher_tick(program->publisher, source_covered_ns(program->source));
        source_rest(program->source, (size_t)received);
    }
    meter_settle(&program->meter, UINT64_MAX, UINT64_MAX);
    take_messages(program);
    return received < 0 ? received : 0;
}

static int run(struct program *program)
{
    const struct sigaction action = {.sa_handler = ask_to_stop};
    int error = open_all(program);

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (error == 0)
        error = program->is_reporting ? run_file(program) : run_live(program);
    source_close(&program->source);
    int close_error = publisher_close(&program->publisher);
    meter_fini(&program->meter);
    return error != 0 ? error : close_error;
}

int main(int argc, char **argv)
{
    static struct program program = {
        .settings = {.window_ns = 8000, .memory_bytes = 128u << 20, .flows_max = 8192, .messages_max = 65536}};
    char **positionals;
    size_t positionals_count;

    log_init("qpscope-nic", LOG_INFO);
    int parsed = option_parse(&program_options, argc, argv, &program.settings, &positionals, &positionals_count);
    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    if (check_settings(&program.settings) != 0)
        return 2;
    program.counters = tally_table(&program.tallies);
    program.is_reporting = program.settings.file != NULL;
    program.report = (struct report){
        .to = stdout, .is_json = program.settings.json, .window_ns = (uint32_t)program.settings.window_ns};
    int error = run(&program);
    if (fflush(stdout) != 0 || ferror(stdout))
        error = log_error_return(-EIO, "cannot write to standard output");
    return error == 0 ? 0 : 1;
}
