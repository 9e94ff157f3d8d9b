/* SPDX-License-Identifier: BSD-2-Clause */
/* simulate: plays a training job and writes what the agents would have told, and the truth. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/simulation/job.h"
#include "wire/log.h"
#include "wire/option.h"

static const char *const shape_names[] = {
#define SHAPE(name, text, make, help) text,
#include "tests/simulation/shape.def"
#undef SHAPE
    NULL};
static const char *const fault_names[] = {
#define FAULT(name, text, class, place, help) text,
#include "tests/simulation/fault.def"
#undef FAULT
    NULL};
static const char *const sight_names[] = {"both", "sender", "receiver", "counters", NULL};

static const char *const protocol_names[] = {"simple", "ll", "ll128", "mixed", NULL};

static const char *const nccl_names[] = {
#define NCCL(text, version) text,
#include "tests/simulation/nccl.def"
#undef NCCL
    NULL};

static const char *const graph_names[] = {"none", "shown", "hidden", NULL};

#define ROW(text, letter, what, member, word, says)                                                                    \
    .name = (text), .short_name = (letter), .kind = (what), .offset = offsetof(struct setting, member),                \
    .argument = (word), .help = (says)

static const struct option_spec options[] = {
    {ROW("shape", 's', OPTION_CHOICE, shape, "SHAPE", "what a step does"), .choices = shape_names},
    {ROW("fault", 'f', OPTION_CHOICE, fault, "FAULT", "what goes wrong, or looks like it"), .choices = fault_names},
    {ROW("protocol", 0, OPTION_CHOICE, protocol, "PROTOCOL", "of collectives; mixed: each by its size"),
     .choices = protocol_names},
    {ROW("nccl", 0, OPTION_CHOICE, nccl, "VERSION", "whose arithmetic collectives are cut in, from this version on"),
     .choices = nccl_names},
    {ROW("nodes", 'n', OPTION_UNSIGNED, nodes, "N", "machines"), .minimum = 1, .maximum = 65536},
    {ROW("gpus", 'g', OPTION_UNSIGNED, gpus, "N", "GPUs of a machine, each with a NIC"), .minimum = 1, .maximum = 16},
    {ROW("leaf-nodes", 0, OPTION_UNSIGNED, leaf_nodes, "N", "machines at one leaf switch"), .minimum = 1},
    {ROW("steps", 't', OPTION_UNSIGNED, steps, "N", "steps"), .minimum = 1, .maximum = 1000000},
    {ROW("channels", 'c', OPTION_UNSIGNED, channels, "N", "channels of a communicator"), .minimum = 1, .maximum = 32},
    {ROW("seed", 'r', OPTION_UNSIGNED, seed, "N", "of all chance")},
    {ROW("fault-rank", 0, OPTION_UNSIGNED, fault_rank, "RANK", "whom it hits")},
    {ROW("fault-first", 0, OPTION_UNSIGNED, fault_first_step, "STEP", "first step with it")},
    {ROW("fault-last", 0, OPTION_UNSIGNED, fault_last_step, "STEP", "last step with it")},
    {ROW("fault-delay", 0, OPTION_DURATION, fault_delay_ns, "DURATION", "its size, where it is a delay")},
    {ROW("fault-rate", 0, OPTION_UNSIGNED, fault_rate_percent, "PERCENT", "what is left of the link's rate"),
     .minimum = 1, .maximum = 100},
    {ROW("fault-ppm", 0, OPTION_UNSIGNED, fault_loss_ppm, "PPM", "of frames lost, or messages that meet no buffer"),
     .maximum = 1000000},
    {ROW("compute", 0, OPTION_DURATION, compute_ns, "DURATION", "of a step on each GPU"), .minimum = 1000},
    {ROW("bytes", 0, OPTION_BYTES, bytes, "SIZE", "gradients of a rank in a step"), .minimum = 1024},
    {ROW("exchange", 0, OPTION_BYTES, exchange_bytes, "SIZE", "a pipeline's send; all-to-all: to all ranks together"),
     .minimum = 1024},
    {ROW("buffer", 0, OPTION_BYTES, buffer_bytes, "SIZE", "a connection's eight slots (NCCL_BUFFSIZE)"),
     .minimum = 65536},
    {ROW("message", 0, OPTION_BYTES, message_bytes, "SIZE", "a send's chunk"), .minimum = 1024},
    {ROW("round", 0, OPTION_BYTES, round_bytes, "SIZE", "chunks are multiples of it: 8 bytes a thread"), .minimum = 4},
    {ROW("link-gbps", 0, OPTION_UNSIGNED, link_gbps, "GBPS", "of each NIC"), .minimum = 1, .maximum = 10000},
    {ROW("latency", 0, OPTION_DURATION, latency_ns, "DURATION", "between two NICs at one leaf")},
    {ROW("noise", 0, OPTION_UNSIGNED, noise_percent, "PERCENT", "of the natural spread"), .maximum = 10000},
    {ROW("clock-offset", 0, OPTION_DURATION, clock_offset_ns, "DURATION", "agents' clocks are off by up to")},
    {ROW("clock-drift", 0, OPTION_UNSIGNED, clock_drift_ppm, "PPM", "and drift by up to"), .maximum = 500},
    {ROW("sight", 0, OPTION_CHOICE, sight, "PORTS",
         "at which port of a flow frames are seen; counters: at none, only what ports count"),
     .choices = sight_names},
    {ROW("graph", 0, OPTION_CHOICE, graph, "CALLS",
         "from the fourth step on a step is the launch of a graph: its calls are shown, or only that they were "
         "captured"),
     .choices = graph_names},
    {ROW("tree", 0, OPTION_FLAG, tree, NULL, "AllReduces go over trees, not rings")},
    {ROW("pxn", 0, OPTION_FLAG, pxn, NULL, "sends leave through a neighbour of the sender (PXN)")},
    {ROW("waits", 0, OPTION_FLAG, waits, NULL, "hosts tell when a thread waited for its GPU")},
    {ROW("no-version", 0, OPTION_FLAG, no_version, NULL, "hosts do not tell the library's version")},
    {ROW("no-host", 0, OPTION_FLAG, no_host, NULL, "without host agents")},
    {ROW("one-file", 0, OPTION_FLAG, one_file, NULL, "all agents into one capture, all.capture")},
    {ROW("operations", 0, OPTION_FLAG, operations, NULL, "the truth about each operation, too: operations.tsv")},
};

static const struct option_program program = {
    .name = "simulate",
    .summary = "Plays a training job; writes the agents' captures and the truth into FOLDER.",
    .usage = "[OPTIONS] [FOLDER]",
    .options = options,
    .options_count = sizeof options / sizeof *options,
    .epilogue = "Without FOLDER only the truth's sums are printed. tests/simulation/README.md says what is modelled.\n"
                "Exit codes: 0 done, 1 failed, 2 used wrongly.\n",
    .positionals_max = 1,
};

static const struct setting usual = {
    .shape = SHAPE_PLAIN,
    .nodes = 4,
    .gpus = 2,
    .leaf_nodes = 16,
    .steps = 40,
    .channels = 2,
    .seed = 1,
    .fault_rank = 1,
    .fault_first_step = 10,
    .fault_last_step = UINT32_MAX,
    .fault_delay_ns = 2000000,
    .fault_rate_percent = 30,
    .fault_loss_ppm = 2000,
    .compute_ns = 20000000,
    .bytes = 32u << 20,
    .exchange_bytes = 4u << 20,
    .buffer_bytes = 4u << 20,
    .message_bytes = 512u << 10,
    .round_bytes = 4096,
    .link_gbps = 400,
    .latency_ns = 1500,
    .noise_percent = 100,
    .clock_offset_ns = 10000000000ULL,
    .clock_drift_ppm = 30,
};

static void report(const struct setting *setting, const struct job_outcome *outcome)
{
    printf("{\"shape\": \"%s\", \"fault\": \"%s\", \"ranks\": %" PRIu64 ", \"events\": %" PRIu64,
           shape_names[setting->shape], fault_names[setting->fault], setting->nodes * setting->gpus, outcome->events);
    printf(", \"records\": %" PRIu64 ", \"seconds\": %.3f, \"step_ns\": %" PRIu64 "}\n", outcome->records,
           outcome->seconds, outcome->step_ns);
}

int main(int argc, char **argv)
{
    struct setting setting = usual;
    char **positionals;
    size_t count;

    log_init("simulate", LOG_WARNING);
    int result = option_parse(&program, argc, argv, &setting, &positionals, &count);
    if (result != OPTION_RESULT_RUN)
        return result == OPTION_RESULT_DONE ? 0 : 2;
    if (setting.fault_rank >= setting.nodes * setting.gpus) {
        log_error("--fault-rank %llu: there are only %llu ranks", (unsigned long long)setting.fault_rank,
                  (unsigned long long)(setting.nodes * setting.gpus));
        return 2;
    }
    if (count > 0) {
        setting.folder = positionals[0];
        mkdir(setting.folder, 0777);
    }
    struct job_outcome outcome;
    if (job_run(&setting, &outcome) != 0)
        return 1;
    report(&setting, &outcome);
    return 0;
}
