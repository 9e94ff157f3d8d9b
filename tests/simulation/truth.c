/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows by step and rank; written as one JSON object. */
#include "tests/simulation/truth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/agent.h"
#include "wire/log.h"

struct truth {
    const struct setting *setting;
    uint32_t ranks;
    uint64_t steps;
    struct truth_row *rows;
};

struct truth *truth_create(const struct setting *setting, uint32_t ranks, uint64_t steps)
{
    struct truth *truth = calloc(1, sizeof *truth);

    if (truth == NULL || (truth->rows = calloc(ranks * steps, sizeof *truth->rows)) == NULL)
        abort();
    truth->setting = setting;
    truth->ranks = ranks;
    truth->steps = steps;
    return truth;
}

void truth_destroy(struct truth *truth)
{
    free(truth->rows);
    free(truth);
}

struct truth_row *truth_at(struct truth *truth, uint32_t rank, uint64_t step)
{
    return &truth->rows[step * truth->ranks + rank];
}

/* False when a rank that began it never ended it. */
static bool step_span(const struct truth *truth, uint64_t step, uint64_t *begin_ns, uint64_t *end_ns)
{
    const struct truth_row *rows = &truth->rows[step * truth->ranks];
    bool whole = true;

    *begin_ns = UINT64_MAX;
    *end_ns = 0;
    for (uint32_t rank = 0; rank < truth->ranks; rank++) {
        if (rows[rank].begin_ns == 0) /* it has left the job, or nobody began it */
            continue;
        *begin_ns = rows[rank].begin_ns < *begin_ns ? rows[rank].begin_ns : *begin_ns;
        *end_ns = rows[rank].end_ns > *end_ns ? rows[rank].end_ns : *end_ns;
        whole = whole && rows[rank].end_ns != 0;
    }
    if (*begin_ns == UINT64_MAX)
        *begin_ns = 0;
    return whole && *begin_ns != 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

uint64_t truth_step_ns(const struct truth *truth)
{
    uint64_t *spans = calloc(truth->steps + 1, sizeof *spans), begin_ns, end_ns, count = 0;

    if (spans == NULL)
        abort();
    for (uint64_t step = 0; step < truth->steps; step++)
        if (step_span(truth, step, &begin_ns, &end_ns))
            spans[count++] = end_ns - begin_ns;
    qsort(spans, count, sizeof *spans, compare);
    uint64_t median = count == 0 ? 0 : spans[count / 2];
    free(spans);
    return median;
}

static void write_fault(const struct truth *truth, FILE *file)
{
    const struct setting *setting = truth->setting;
    static const char *const places[] = {"rank", "link", "into", "job"};

    fprintf(file, "  \"fault\": {\"name\": \"%s\", \"class\": \"%s\", \"place\": \"%s\", \"rank\": %" PRIu64,
            setting_fault_name(setting->fault), setting_fault_class(setting->fault),
            places[setting_fault_place(setting->fault)], setting->fault_rank);
    fprintf(file, ", \"first_step\": %" PRIu64 ", \"last_step\": %" PRIu64 ", \"delay_ns\": %" PRIu64,
            setting->fault_first_step, setting->fault_last_step, setting->fault_delay_ns);
    fprintf(file, ", \"rate_percent\": %" PRIu64 ", \"loss_ppm\": %" PRIu64 "},\n", setting->fault_rate_percent,
            setting->fault_loss_ppm);
}

static void write_setting(const struct truth *truth, const struct truth_sum *sum, FILE *file)
{
    const struct setting *setting = truth->setting;

    fprintf(file, "{\n  \"shape\": \"%s\", \"seed\": %" PRIu64 ", \"ranks\": %u, \"nodes\": %" PRIu64,
            setting_shape_name(setting->shape), setting->seed, truth->ranks, setting->nodes);
    fprintf(file, ", \"gpus\": %" PRIu64 ", \"channels\": %" PRIu64 ", \"steps\": %" PRIu64 ", \"bytes\": %" PRIu64,
            setting->gpus, setting->channels, truth->steps, setting->bytes);
    fprintf(file, ",\n  \"events\": %" PRIu64 ", \"records\": %" PRIu64 ", \"seconds\": %.3f, \"step_ns\": %" PRIu64,
            sum->events, sum->records, sum->seconds, truth_step_ns(truth));
    fprintf(file, ",\n");
    write_fault(truth, file);
}

static uint64_t reference(uint64_t true_ns)
{
    return true_ns == 0 ? 0 : true_ns + AGENT_REFERENCE_NS;
}

static void write_step(const struct truth *truth, uint64_t step, FILE *file)
{
    const struct truth_row *rows = &truth->rows[step * truth->ranks];
    uint64_t begin_ns, end_ns;
    bool whole = step_span(truth, step, &begin_ns, &end_ns);

    fprintf(file, "    {\"step\": %" PRIu64 ", \"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64, step,
            reference(begin_ns), whole ? reference(end_ns) : 0);
    fprintf(file, ", \"evaluation\": %u, \"ranks\": [", rows[0].evaluates);
    for (uint32_t rank = 0; rank < truth->ranks; rank++) {
        fprintf(file, "%s\n      [%" PRIu64 ", %" PRIu64, rank == 0 ? "" : ",", reference(rows[rank].begin_ns),
                reference(rows[rank].end_ns));
        fprintf(file, ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", rows[rank].compute_ns, rows[rank].gpu_late_ns,
                rows[rank].host_late_ns);
    }
    fprintf(file, "]}%s\n", step + 1 < truth->steps ? "," : "");
}

int truth_write(const struct truth *truth, const struct truth_sum *sum, const char *path)
{
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        int error = errno;
        log_error("cannot write %s: %s", path, strerror(error));
        return -error;
    }
    write_setting(truth, sum, file);
    fprintf(file,
            "  \"rank_columns\": [\"begin_ns\", \"end_ns\", \"compute_ns\", \"gpu_late_ns\", \"host_late_ns\"],\n");
    fprintf(file, "  \"rows\": [\n");
    for (uint64_t step = 0; step < truth->steps; step++)
        write_step(truth, step, file);
    fprintf(file, "  ]\n}\n");
    if (fclose(file) == 0)
        return 0;
    log_error("cannot write %s: %s", path, strerror(errno));
    return -EIO;
}
