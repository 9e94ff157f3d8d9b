/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job as metrics. Invariant: the server's thread sees nothing of the analysis but the ledger and the snapshot, and
 * both only under the lock.
 */
#include "correlator/exposition/exposition.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "correlator/exposition/ledger.h"
#include "correlator/exposition/snapshot.h"

enum {
#define METRIC(name, text, type, unit, help) EXPOSITION_##name,
#include "correlator/exposition/metric.def"
#undef METRIC
    EXPOSITION_METRICS,
};

static const struct metric_spec specs[EXPOSITION_METRICS] = {
#define METRIC(name, text, type, unit, help) METRIC_SPEC(text, type, unit, help),
#include "correlator/exposition/metric.def"
#undef METRIC
};

/* By enum vantage. */
static const struct metric_spec traffic_specs[][SNAPSHOT_TRAFFIC] = {
#define TRAFFIC(name, text, field, unit, help)                                                                         \
    {"qpscope_device_passed_" text, METRIC_COUNTER, unit, "Where senders and receivers are not told apart: " help},
    {
#include "wire/metric/traffic.def"
    },
#undef TRAFFIC
#define TRAFFIC(name, text, field, unit, help)                                                                         \
    {"qpscope_device_sent_" text, METRIC_COUNTER, unit, "Sent by the device: " help},
    {
#include "wire/metric/traffic.def"
    },
#undef TRAFFIC
#define TRAFFIC(name, text, field, unit, help)                                                                         \
    {"qpscope_device_received_" text, METRIC_COUNTER, unit, "Received by the device: " help},
    {
#include "wire/metric/traffic.def"
    },
#undef TRAFFIC
};

struct exposition {
    struct metric_page page;
    pthread_mutex_t lock;
    struct ledger ledger;
    struct snapshot snapshot;
    uint64_t analyses;
    uint64_t analysis_ns;
};

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

/* ---- steps, ranks, verdicts ---- */

static double realtime_seconds(const struct snapshot *snapshot, uint64_t reference_ns)
{
    return (double)((int64_t)reference_ns + snapshot->realtime_minus_reference_ns) / 1e9;
}

static void write_steps(struct metric_writer *writer, const struct exposition *exposition)
{
    const struct ledger *ledger = &exposition->ledger;

    metric_begin(writer, &specs[EXPOSITION_STEP_DURATION]);
    for (unsigned i = 0; i < STEP_KINDS; i++) {
        metric_labels(writer, &(struct metric_label){"kind", step_kind_name(i)}, 1);
        metric_histogram(writer, &ledger->steps[i]);
    }
    metric_one(writer, &specs[EXPOSITION_STEPS_INCOMPLETE], (double)ledger->steps_incomplete);
    if (ledger->last_step_end_ns == 0)
        return;
    metric_one(writer, &specs[EXPOSITION_LAST_STEP], ledger->last_step_seconds);
    if (exposition->snapshot.realtime_known)
        metric_one(writer, &specs[EXPOSITION_LAST_STEP_END],
                   realtime_seconds(&exposition->snapshot, ledger->last_step_end_ns));
}

static void write_rank_sum(struct metric_writer *writer, const struct ledger *ledger, unsigned spec, size_t offset)
{
    char number[24];

    metric_begin(writer, &specs[spec]);
    for (size_t i = 0; i < ledger->ranks.count; i++) {
        if (!ledger->ranks.items[i].is_known)
            continue;
        snprintf(number, sizeof number, "%zu", i);
        metric_labels(writer, &(struct metric_label){"rank", number}, 1);
        metric_real(writer, *(const double *)((const char *)&ledger->ranks.items[i] + offset));
    }
}

static void write_ranks(struct metric_writer *writer, const struct ledger *ledger)
{
    write_rank_sum(writer, ledger, EXPOSITION_RANK_LATE, offsetof(struct ledger_rank, late_seconds));
    write_rank_sum(writer, ledger, EXPOSITION_RANK_LAST_LATE, offsetof(struct ledger_rank, last_late_seconds));
    write_rank_sum(writer, ledger, EXPOSITION_RANK_COST, offsetof(struct ledger_rank, cost_seconds));
}

static void write_verdicts(struct metric_writer *writer, const struct ledger *ledger)
{
    metric_begin(writer, &specs[EXPOSITION_VERDICTS]);
    for (unsigned i = 0; i < VERDICT_CLASSES; i++) {
        metric_labels(writer, &(struct metric_label){"class", verdict_class_name(i)}, 1);
        metric_integer(writer, ledger->verdicts[i]);
    }
    metric_begin(writer, &specs[EXPOSITION_VERDICT_SIZE]);
    for (unsigned i = 0; i < VERDICT_CLASSES; i++) {
        metric_labels(writer, &(struct metric_label){"class", verdict_class_name(i)}, 1);
        metric_real(writer, ledger->verdict_seconds[i]);
    }
}

/* ---- operations ---- */

#define IDENTITY_DIGITS 8 /* of 32: enough to tell a job's communicators apart; the command takes four */

static const char *short_identity(const uint8_t *identity, char text[IDENTITY_DIGITS + 1])
{
    for (unsigned i = 0; i < IDENTITY_DIGITS / 2; i++)
        snprintf(text + 2 * (size_t)i, 3, "%02x", identity[i]);
    return text;
}

static void label_kind(struct metric_writer *writer, const struct ledger_kind *kind)
{
    static const char *const algorithms[] = {"unknown", "ring", "tree", "point-to-point"};
    static char identity[IDENTITY_DIGITS + 1];
    const struct metric_label labels[] = {
        {"communicator", kind->is_other ? "other" : short_identity(kind->communicator, identity)},
        {"operation", kind->operation == OPERATION_GROUP ? "SendRecv" : operation_name(kind->operation)},
        {"algorithm", algorithms[kind->algorithm < 4 ? kind->algorithm : 0]}};

    metric_labels(writer, labels, 3);
}

static void write_counts(struct metric_writer *writer, const struct ledger *ledger, unsigned spec, size_t offset)
{
    metric_begin(writer, &specs[spec]);
    for (size_t i = 0; i < ledger->kinds.count; i++) {
        label_kind(writer, &ledger->kinds.items[i]);
        metric_integer(writer, *(const uint64_t *)((const char *)&ledger->kinds.items[i] + offset));
    }
}

static void write_sums(struct metric_writer *writer, const struct ledger *ledger, unsigned spec, size_t offset)
{
    metric_begin(writer, &specs[spec]);
    for (size_t i = 0; i < ledger->kinds.count; i++) {
        label_kind(writer, &ledger->kinds.items[i]);
        metric_real(writer, *(const double *)((const char *)&ledger->kinds.items[i] + offset));
    }
}

static void write_histograms(struct metric_writer *writer, const struct ledger *ledger, unsigned spec, size_t offset)
{
    metric_begin(writer, &specs[spec]);
    for (size_t i = 0; i < ledger->kinds.count; i++) {
        label_kind(writer, &ledger->kinds.items[i]);
        metric_histogram(writer, (const void *)((const char *)&ledger->kinds.items[i] + offset));
    }
}

#define OF_KIND(member) offsetof(struct ledger_kind, member)

static void write_operations(struct metric_writer *writer, const struct ledger *ledger)
{
    write_counts(writer, ledger, EXPOSITION_OPERATIONS, OF_KIND(count));
    write_counts(writer, ledger, EXPOSITION_OPERATIONS_INCOMPLETE, OF_KIND(incomplete));
    write_counts(writer, ledger, EXPOSITION_RETRANSMITTED, OF_KIND(retransmitted_frames));
    write_sums(writer, ledger, EXPOSITION_MESSAGE_BYTES, OF_KIND(message_bytes));
    write_sums(writer, ledger, EXPOSITION_BUS_BYTES, OF_KIND(bus_bytes));
    write_sums(writer, ledger, EXPOSITION_WIRE_BYTES, OF_KIND(wire_bytes));
    write_sums(writer, ledger, EXPOSITION_WAIT, OF_KIND(wait_seconds));
    write_sums(writer, ledger, EXPOSITION_TRANSFER, OF_KIND(transfer_seconds));
    write_sums(writer, ledger, EXPOSITION_ACTIVE, OF_KIND(active_seconds));
    write_histograms(writer, ledger, EXPOSITION_OPERATION_SIZE, OF_KIND(size));
    write_histograms(writer, ledger, EXPOSITION_OPERATION_DURATION, OF_KIND(duration));
}

/* ---- who is who ---- */

static void write_infos(struct metric_writer *writer, const struct snapshot *snapshot)
{
    char number[24], count[16], identity[IDENTITY_DIGITS + 1];

    metric_begin(writer, &specs[EXPOSITION_JOB]);
    snprintf(count, sizeof count, "%d", snapshot->ranks_count);
    metric_labels(writer, (const struct metric_label[]){{"ranks", count}, {"slurm_job", snapshot->slurm_job}}, 2);
    metric_integer(writer, 1);
    metric_begin(writer, &specs[EXPOSITION_RANK]);
    for (size_t i = 0; i < snapshot->ranks.count && i < LEDGER_RANKS_MAX; i++) {
        const struct snapshot_rank *rank = &snapshot->ranks.items[i];
        snprintf(number, sizeof number, "%d", rank->rank);
        metric_labels(writer, (const struct metric_label[]){{"rank", number}, {"host", rank->host}, {"pod", rank->pod}},
                      3);
        metric_integer(writer, 1);
    }
    metric_begin(writer, &specs[EXPOSITION_COMMUNICATOR]);
    for (size_t i = 0; i < snapshot->communicators.count; i++) {
        const struct snapshot_communicator *communicator = &snapshot->communicators.items[i];
        snprintf(number, sizeof number, "%zu", i + 1);
        snprintf(count, sizeof count, "%d", communicator->ranks_count);
        metric_labels(writer,
                      (const struct metric_label[]){{"communicator", short_identity(communicator->identity, identity)},
                                                    {"number", number},
                                                    {"ranks", count}},
                      3);
        metric_integer(writer, 1);
    }
}

/* ---- devices, losses, agents ---- */

static void label_device(struct metric_writer *writer, const struct snapshot_device *device)
{
    metric_labels(writer, (const struct metric_label[]){{"host", device->host}, {"device", device->device}}, 2);
}

static bool any_passed(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->devices.count; i++)
        for (size_t j = 0; j < SNAPSHOT_TRAFFIC; j++)
            if (snapshot->devices.items[i].traffic[VANTAGE_MIDDLE][j] != 0)
                return true;
    return false;
}

/* What is sent and received is always told, also when it is 0; what passes only where there is such a port. */
static void write_devices(struct metric_writer *writer, const struct snapshot *snapshot)
{
    for (unsigned vantage = 0; vantage < 3; vantage++) {
        if (vantage == VANTAGE_MIDDLE && !any_passed(snapshot))
            continue;
        for (size_t i = 0; i < SNAPSHOT_TRAFFIC; i++) {
            metric_begin(writer, &traffic_specs[vantage][i]);
            for (size_t j = 0; j < snapshot->devices.count; j++) {
                label_device(writer, &snapshot->devices.items[j]);
                metric_integer(writer, snapshot->devices.items[j].traffic[vantage][i]);
            }
        }
    }
    metric_begin(writer, &specs[EXPOSITION_DEVICE_LOST]);
    for (size_t j = 0; j < snapshot->devices.count; j++) {
        label_device(writer, &snapshot->devices.items[j]);
        metric_integer(writer, snapshot->devices.items[j].lost_frames);
    }
}

static void write_gap(struct metric_writer *writer, const struct snapshot *snapshot, unsigned spec)
{
    metric_begin(writer, &specs[spec]);
    for (size_t i = 0; i < snapshot->gaps.count; i++) {
        const struct snapshot_gap *gap = &snapshot->gaps.items[i];
        metric_labels(writer, &(struct metric_label){"cause", gap->cause}, 1);
        if (spec == EXPOSITION_GAP_TIME)
            metric_real(writer, seconds(gap->duration_ns));
        else
            metric_integer(writer, spec == EXPOSITION_GAPS ? gap->count : gap->lost);
    }
}

static void write_agent_number(struct metric_writer *writer, const struct snapshot *snapshot,
                               const struct snapshot_agent *agent, unsigned spec)
{
    switch (spec) {
    case EXPOSITION_CLOCK_ERROR:
        if (agent->clock_known)
            metric_real(writer, seconds(agent->clock_error_ns));
        break;
    case EXPOSITION_AGENT_HEARD:
        if (snapshot->realtime_known && agent->clock_known)
            metric_real(writer, realtime_seconds(snapshot, agent->heard_ns));
        break;
    case EXPOSITION_AGENT_ENDED:
        metric_integer(writer, agent->ended);
        break;
    default:
        metric_integer(writer, agent->batches);
    }
}

static void write_agents(struct metric_writer *writer, const struct snapshot *snapshot)
{
    static const unsigned of_agents[] = {EXPOSITION_CLOCK_ERROR, EXPOSITION_AGENT_HEARD, EXPOSITION_AGENT_ENDED,
                                         EXPOSITION_AGENT_BATCHES};

    for (size_t i = 0; i < sizeof of_agents / sizeof of_agents[0]; i++) {
        metric_begin(writer, &specs[of_agents[i]]);
        for (size_t j = 0; j < snapshot->agents.count; j++) {
            const struct snapshot_agent *agent = &snapshot->agents.items[j];
            metric_labels(writer,
                          (const struct metric_label[]){
                              {"agent", agent->kind}, {"host", agent->host}, {"watches", agent->instance}},
                          3);
            write_agent_number(writer, snapshot, agent, of_agents[i]);
        }
    }
}

static void write_own(struct metric_writer *writer, const struct exposition *exposition)
{
    const struct snapshot *snapshot = &exposition->snapshot;

    metric_one(writer, &specs[EXPOSITION_DAMAGED], (double)snapshot->damaged);
    metric_one(writer, &specs[EXPOSITION_DUPLICATES], (double)snapshot->duplicates);
    metric_one(writer, &specs[EXPOSITION_HELD], (double)snapshot->held_bytes);
    metric_one(writer, &specs[EXPOSITION_HELD_LIMIT], (double)snapshot->limit_bytes);
    metric_one(writer, &specs[EXPOSITION_ANALYSES], (double)exposition->analyses);
    metric_one(writer, &specs[EXPOSITION_ANALYSIS_TIME], seconds(exposition->analysis_ns));
    metric_one(writer, &specs[EXPOSITION_LEFT_OUT], (double)exposition->ledger.left_out);
}

static void collect(void *context, struct metric_writer *writer)
{
    struct exposition *exposition = context;

    pthread_mutex_lock(&exposition->lock);
    write_infos(writer, &exposition->snapshot);
    write_steps(writer, exposition);
    write_ranks(writer, &exposition->ledger);
    write_verdicts(writer, &exposition->ledger);
    write_operations(writer, &exposition->ledger);
    write_devices(writer, &exposition->snapshot);
    write_gap(writer, &exposition->snapshot, EXPOSITION_GAPS);
    write_gap(writer, &exposition->snapshot, EXPOSITION_GAP_TIME);
    write_gap(writer, &exposition->snapshot, EXPOSITION_LOST);
    write_agents(writer, &exposition->snapshot);
    write_own(writer, exposition);
    pthread_mutex_unlock(&exposition->lock);
}

/* ---- the analysis's side ---- */

struct exposition *exposition_create(void)
{
    struct exposition *exposition = array_zeroed(sizeof *exposition);

    exposition->page = (struct metric_page){.program = "qpscope-correlator", .collect = collect, .context = exposition};
    pthread_mutex_init(&exposition->lock, NULL);
    ledger_init(&exposition->ledger);
    return exposition;
}

void exposition_destroy(struct exposition **exposition)
{
    if (*exposition == NULL)
        return;
    ledger_fini(&(*exposition)->ledger);
    snapshot_fini(&(*exposition)->snapshot);
    pthread_mutex_destroy(&(*exposition)->lock);
    free(*exposition);
    *exposition = NULL;
}

void exposition_take(struct exposition *exposition, const struct analysis *analysis, uint64_t took_ns)
{
    if (exposition == NULL)
        return;
    pthread_mutex_lock(&exposition->lock);
    ledger_take(&exposition->ledger, analysis);
    snapshot_take(&exposition->snapshot, analysis);
    exposition->analyses++;
    exposition->analysis_ns += took_ns;
    pthread_mutex_unlock(&exposition->lock);
}

struct metric_page *exposition_page(struct exposition *exposition)
{
    return &exposition->page;
}
