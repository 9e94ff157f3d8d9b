/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: chance depends on names only, so a record is the same whoever asks for it. */
#include "tests/bench/correlator/made.h"

#include <string.h>
#include <sys/resource.h>

#include "wire/log.h"

#define US      1000ULL
#define MS      1000000ULL
#define STEP_NS (50 * MS)
#define LATE_NS (6 * MS)

static uint64_t late_rank(const struct made_shape *shape)
{
    return shape->ranks / 3;
}

static bool is_late(const struct made_shape *shape, uint64_t step)
{
    return step >= shape->steps / 2;
}

static uint64_t chance(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t hash = (a * 0x9e3779b97f4a7c15ULL) ^ (b * 0xc2b2ae3d27d4eb4fULL) ^ (c * 0x165667b19e3779f9ULL);

    hash ^= hash >> 31;
    hash *= 0xd6e8feb86659fd93ULL;
    return hash ^ (hash >> 29);
}

void made_identity(uint8_t *identity, bool of_all, uint64_t rank)
{
    uint64_t first = of_all ? 0 : rank / MADE_GROUP * MADE_GROUP;

    memset(identity, 0, IDENTITY_BYTES);
    identity[0] = of_all;
    memcpy(identity + 1, &first, sizeof first);
    identity[IDENTITY_BYTES - 1] = 1; /* zeros are none */
}

/* The last operation of a step is that of all ranks; the late rank's GPU is late in the first one. */
void made_record(struct record_rank_operation *record, const struct made_shape *shape, uint64_t step, uint64_t n,
                 uint64_t rank)
{
    bool of_all = n + 1 == shape->operations;
    uint64_t members = of_all ? shape->ranks : MADE_GROUP;
    uint64_t first = of_all ? 0 : rank / MADE_GROUP * MADE_GROUP;
    uint64_t slot = STEP_NS * 8 / 10 / shape->operations;
    uint64_t enqueued = 1000 * MS + step * (STEP_NS + LATE_NS) + n * slot + chance(step, n, rank) % (20 * US);
    bool late_here = is_late(shape, step) && n == 0 && rank == late_rank(shape);
    bool waits = is_late(shape, step) && (n > 0 || rank / MADE_GROUP == late_rank(shape) / MADE_GROUP);
    uint64_t data = enqueued + slot / 4 + chance(rank, step, n) % (30 * US) + (waits && n > 0 ? LATE_NS : 0) +
                    (late_here ? LATE_NS : 0);
    uint64_t end = enqueued + slot / 2 + (waits ? LATE_NS : 0);

    *record = (struct record_rank_operation){
        .operation = OPERATION_ALL_REDUCE,
        .sequence = of_all ? step : step * (shape->operations - 1) + n,
        .rank = (int32_t)(rank - first),
        .ranks_count = (int32_t)members,
        .peer = -1,
        .next = (int32_t)((rank - first + 1) % members),
        .previous = (int32_t)((rank - first + members - 1) % members),
        .enqueued_ns = enqueued,
        .host_ready_ns = enqueued + 10 * US,
        .held_ns = enqueued + 40 * US,
        .gpu_ready_ns = data,
        .first_data_ns = data,
        .last_data_ns = end,
        .end_ns = end,
        .received_ns = end,
        .active_ns = end - data,
        .receive_active_ns = end - data,
        .bound_ns = 20 * US,
        .buffer_bytes = (n + 1) << 20,
        .expected_bytes = 1 << 20,
        .observed_bytes = 1 << 20,
        .received_bytes = 1 << 20,
        .device = "mlx5_0/1",
    };
    made_identity(record->communicator, of_all, rank);
}

int32_t made_rank(const void *context, const uint8_t *communicator, int32_t rank)
{
    uint64_t first;

    (void)context;
    memcpy(&first, communicator + 1, sizeof first);
    return (int32_t)first + rank;
}

double made_cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 + (double)usage.ru_stime.tv_sec +
           (double)usage.ru_stime.tv_usec / 1e6;
}

double made_peak_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* How many of the late steps have that rank's verdict, and how many verdicts name another. */
void made_count(const struct job *job, const struct made_shape *shape, size_t *found, size_t *wrong)
{
    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *verdict = &job->verdicts.items[i];
        bool right = verdict->class == VERDICT_GPU_LATE && verdict->rank == (int32_t)late_rank(shape) &&
                     is_late(shape, (uint64_t)verdict->step);
        *found += right;
        *wrong += !right;
        if (!right)
            log_warning("step %d: %s, rank %d to %d, %.3f ms: %s", verdict->step, verdict_class_name(verdict->class),
                        verdict->rank, verdict->peer_rank, (double)verdict->size_ns / 1e6, verdict->evidence);
    }
}
