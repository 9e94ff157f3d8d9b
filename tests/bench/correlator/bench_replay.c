/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_replay: both stages on capture files, part by part: reading, the analysis, the store into a new file, and once
 * more into the same, which holds it all already. Time is the CPU's, of this thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "correlator/analysis.h"
#include "correlator/store/store.h"
#include "wire/log.h"
#include "wire/option.h"

struct settings {
    const char *store;
    bool json;
};

#define AT(member) offsetof(struct settings, member)
static const struct option_spec options[] = {
    {"store", 's', OPTION_TEXT, AT(store), "FILE", "write a store into this new file too", 0, 0, NULL},
    {"json", 'j', OPTION_FLAG, AT(json), NULL, "one JSON object", 0, 0, NULL},
};

static const struct option_program program = {
    .name = "bench_replay",
    .summary = "measure both stages on capture files, part by part",
    .usage = "[OPTIONS] CAPTURE...",
    .options = options,
    .options_count = sizeof options / sizeof *options,
    .positionals_max = SIZE_MAX,
    .epilogue = "Exit codes: 0 done, 1 failure, 2 usage.\n",
};

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t count_records(const struct intake *intake)
{
    struct intake_walk walk = {.intake = intake};
    union record record;
    uint64_t count = 0;

    while (intake_next(&walk, &record))
        count++;
    return count;
}

static int time_store(const struct analysis *analysis, const char *path, double *first, double *again)
{
    struct store *store;
    int error = store_open(&store, path);

    if (error != 0)
        return error;
    double begun = cpu_seconds();
    error = store_write(store, analysis);
    *first = cpu_seconds() - begun;
    begun = cpu_seconds();
    if (error == 0)
        error = store_write(store, analysis);
    *again = cpu_seconds() - begun;
    store_close(&store);
    return error;
}

int main(int argc, char **argv)
{
    struct settings settings = {0};
    char **positionals;
    size_t count;
    double stored = 0, again = 0;
    int error = 0;
    int parsed = option_parse(&program, argc, argv, &settings, &positionals, &count);

    if (parsed != OPTION_RESULT_RUN)
        return parsed == OPTION_RESULT_DONE ? 0 : 2;
    log_init("bench_replay", LOG_INFO);
    struct analysis *analysis = analysis_create(SIZE_MAX / 2);
    double begun = cpu_seconds();
    for (size_t i = 0; i < count && error == 0; i++)
        error = analysis_add_capture(analysis, positionals[i]);
    double read = cpu_seconds() - begun;
    begun = cpu_seconds();
    analysis_run(analysis);
    double analysed = cpu_seconds() - begun;
    uint64_t records = count_records(&analysis->intake);
    if (error == 0 && settings.store != NULL)
        error = time_store(analysis, settings.store, &stored, &again);
    printf(settings.json ? "{\"records\": %" PRIu64 ", \"read_seconds\": %.3f, \"analysis_seconds\": %.3f, "
                           "\"store_seconds\": %.3f, \"store_again_seconds\": %.3f, \"records_per_second\": %.0f, "
                           "\"with_store\": %.0f}\n"
                         : "records %" PRIu64 "  read %.3f s  analysed %.3f s  stored %.3f s, again %.3f s  %.0f "
                           "records/s, with the store %.0f\n",
           records, read, analysed, stored, again, (double)records / (read + analysed),
           (double)records / (read + analysed + stored));
    analysis_destroy(&analysis);
    return error == 0 ? 0 : 1;
}
