/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_job: the job stage on made-up records of the node stage, one a rank and operation: how long, how much memory.
 * Time is the CPU's, memory what the process held at most beyond the records.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/correlator/made.h"
#include "wire/log.h"
#include "wire/option.h"

struct settings {
    struct made_shape shape;
    bool json;
};

#define AT(member) offsetof(struct settings, member)
static const struct option_spec options[] = {
    {"ranks", 'r', OPTION_UNSIGNED, AT(shape.ranks), "N", "ranks, a multiple of 64 (4096)", 64, 1 << 20, NULL},
    {"steps", 's', OPTION_UNSIGNED, AT(shape.steps), "N", "steps (100)", 1, 1 << 20, NULL},
    {"operations", 'o', OPTION_UNSIGNED, AT(shape.operations), "N", "operations of a rank and step (4)", 1, 1024, NULL},
    {"json", 'j', OPTION_FLAG, AT(json), NULL, "one JSON object", 0, 0, NULL},
};

static const struct option_program program = {
    .name = "bench_job",
    .summary = "measure the job stage on made-up records of the node stage",
    .usage = "[OPTIONS]",
    .options = options,
    .options_count = sizeof options / sizeof *options,
    .epilogue = "Exit codes: 0 the late rank was found in each step, and nobody else; 1 failure; 2 usage.\n",
};

int main(int argc, char **argv)
{
    struct settings settings = {.shape = {.ranks = 4096, .steps = 100, .operations = 4}};
    char **positionals;
    size_t positionals_count, found = 0, wrong = 0;
    struct job job;
    int parsed = option_parse(&program, argc, argv, &settings, &positionals, &positionals_count);

    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    log_init("bench_job", LOG_INFO);
    size_t count = settings.shape.ranks * settings.shape.steps * settings.shape.operations;
    struct record_rank_operation *records = array_zeroed(count * sizeof *records);
    for (size_t i = 0; i < count; i++)
        made_record(&records[i], &settings.shape, i / settings.shape.ranks / settings.shape.operations,
                    i / settings.shape.ranks % settings.shape.operations, i % settings.shape.ranks);
    double before = made_cpu_seconds(), before_mib = made_peak_mib();
    job_take(&job, (struct job_ranks){.rank_of = made_rank}, NULL, &records, count);
    double spent = made_cpu_seconds() - before, mib = made_peak_mib() - before_mib;
    made_count(&job, &settings.shape, &found, &wrong);
    printf(
        settings.json
            ? "{\"ranks\": %" PRIu64 ", \"steps\": %" PRIu64 ", \"operations\": %" PRIu64
              ", \"records\": %zu, \"seconds\": %.3f, \"records_per_second\": %.0f, \"peak_mib\": %.1f, "
              "\"bytes_per_rank_and_step\": %.0f, \"steps_found\": %zu, \"verdicts\": %zu, \"wrong\": %zu}\n"
            : "ranks %" PRIu64 "  steps %" PRIu64 "  operations %" PRIu64
              "  records %zu  %.3f s  %.0f records/s  %.1f MiB beside the records, %.0f bytes a rank and step  steps "
              "found %zu  verdicts right %zu, wrong %zu\n",
        settings.shape.ranks, settings.shape.steps, settings.shape.operations, count, spent, (double)count / spent, mib,
        mib * 1048576 / (double)(settings.shape.ranks * settings.shape.steps), job.steps.count, found, wrong);
    bool good = settings.shape.steps < 10 || (job.steps.count == settings.shape.steps && wrong == 0 &&
                                              found == settings.shape.steps - settings.shape.steps / 2);
    job_fini(&job);
    return good ? 0 : 1;
}
