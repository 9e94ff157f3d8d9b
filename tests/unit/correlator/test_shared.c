/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdicts on four nodes of two ranks, whose records are made by arithmetic. In each step the ranks of a node have an
 * operation over NVLink, of which no NIC sees anything, then the even and the odd ranks one on the wire each. In steps
 * FIRST to LAST the node of RANK comes late to the wire.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/job/companion.h"
#include "correlator/verdict/evidence.h"

#define RANKS      8
#define STEPS      30
#define RECORDS    ((STEPS + 1) * RANKS * 2)
#define MS         1000000LL
#define US         1000LL
#define COMPUTE_NS (20 * MS)
#define SEND_NS    (2 * MS)
#define STEP_NS    (25 * MS)
#define TURN_NS    (5 * US)
#define LATE_NS    (3 * MS)
#define RANK       5
#define COMPANION  4
#define FIRST      10
#define LAST       19

struct made {
    int64_t late_ns;      /* of RANK's data, in the longer steps */
    int64_t companion_ns; /* of COMPANION's */
    int64_t host_ns;      /* by so much later RANK gives its operations in them */
};

static bool is_longer(int step)
{
    return step >= FIRST && step <= LAST;
}

static uint64_t begin_of(int step)
{
    int longer = 0;

    for (int before = 0; before < step; before++)
        longer += is_longer(before);
    return (uint64_t)(1000 * MS + step * STEP_NS + longer * LATE_NS);
}

static int64_t chance(int step, int rank)
{
    return (step * 37 + rank * 61 + step * rank * 17) % 101 * 10 * US / 100;
}

static struct record_rank_operation over_nvlink(const struct made *made, int step, int rank)
{
    return (struct record_rank_operation){
        .communicator = {1, (uint8_t)(rank / 2)},
        .operation = OPERATION_ALL_REDUCE,
        .sequence = (uint64_t)step,
        .rank = rank % 2,
        .ranks_count = 2,
        .peer = -1,
        .next = -1,
        .previous = -1,
        .flags = RANK_OPERATION_NO_WIRE,
        .enqueued_ns = begin_of(step) + (uint64_t)(rank == RANK && is_longer(step) ? made->host_ns : 0),
        .buffer_bytes = 4096,
    };
}

static struct record_rank_operation on_the_wire(const struct made *made, int step, int rank)
{
    bool longer = is_longer(step);
    int64_t late_ns = !longer ? 0 : rank == RANK ? made->late_ns : rank == COMPANION ? made->companion_ns : 0;
    uint64_t enqueued = over_nvlink(made, step, rank).enqueued_ns + 100 * US;
    uint64_t data = begin_of(step) + (uint64_t)(COMPUTE_NS + chance(step, rank) + late_ns);
    uint64_t end = begin_of(step) + (uint64_t)(COMPUTE_NS + SEND_NS + (longer ? LATE_NS : 0));

    return (struct record_rank_operation){
        .communicator = {2, (uint8_t)(rank % 2)},
        .operation = OPERATION_ALL_REDUCE,
        .sequence = (uint64_t)step,
        .rank = rank / 2,
        .ranks_count = RANKS / 2,
        .peer = -1,
        .next = (rank / 2 + 1) % (RANKS / 2),
        .previous = (rank / 2 + RANKS / 2 - 1) % (RANKS / 2),
        .enqueued_ns = enqueued,
        .host_ready_ns = enqueued + TURN_NS,
        .held_ns = enqueued + TURN_NS,
        .gpu_ready_ns = data,
        .first_data_ns = data,
        .last_data_ns = end,
        .end_ns = end,
        .received_ns = end,
        .active_ns = SEND_NS,
        .receive_active_ns = SEND_NS,
        .buffer_bytes = 1 << 20,
        .expected_bytes = 1 << 20,
        .observed_bytes = 1 << 20,
        .received_bytes = 1 << 20,
    };
}

static int32_t rank_of(const void *context, const uint8_t *communicator, int32_t rank)
{
    (void)context;
    return communicator[0] == 1 ? communicator[1] * 2 + rank : rank * 2 + communicator[1];
}

static const struct job_ranks ranks = {.rank_of = rank_of};

static size_t make(struct record_rank_operation *records, const struct made *made, int steps)
{
    size_t count = 0;

    for (int step = 0; step < steps; step++)
        for (int rank = 0; rank < RANKS; rank++) {
            records[count++] = over_nvlink(made, step, rank);
            records[count++] = on_the_wire(made, step, rank);
        }
    return count;
}

/* One verdict for each longer step, and none else; `companion` < 0: the rank alone. */
static void check(const struct made *made, enum verdict_class class, int32_t rank, int32_t companion)
{
    static struct record_rank_operation records[RECORDS];
    struct job job;

    job_build(&job, ranks, NULL, records, make(records, made, STEPS));
    assert_int_equal(job.steps.count, STEPS);
    assert_int_equal(job.verdicts.count, LAST - FIRST + 1);
    for (size_t i = 0; i < job.verdicts.count; i++) {
        const struct verdict *verdict = &job.verdicts.items[i];
        assert_int_equal(verdict->class, class);
        assert_int_equal(verdict->step, FIRST + (int)i);
        assert_int_equal(verdict->rank, rank);
        assert_int_equal(verdict->candidates.count, companion < 0 ? 0 : 2);
        if (companion >= 0) {
            assert_int_equal(verdict->candidates.items[0], rank);
            assert_int_equal(verdict->candidates.items[1], companion);
        }
        assert_in_range(verdict->size_ns, LATE_NS - 30 * US, LATE_NS + 30 * US);
    }
    job_fini(&job);
}

/* Whose GPU it was is behind NVLink: both data are late, and neither host was. */
static void it_is_one_of_those_that_were_late_alike(void **state)
{
    (void)state;
    check(&(struct made){.late_ns = LATE_NS, .companion_ns = LATE_NS}, VERDICT_GPU_LATE, COMPANION, RANK);
}

/* What made the one late came after what they share. */
static void who_is_late_alone_is_named_alone(void **state)
{
    (void)state;
    check(&(struct made){.late_ns = LATE_NS}, VERDICT_GPU_LATE, RANK, -1);
    check(&(struct made){.late_ns = LATE_NS, .companion_ns = LATE_NS / 4}, VERDICT_GPU_LATE, RANK, -1);
}

/* The one gave its operations late, the other only waited for it. */
static void a_late_host_explains_its_companions(void **state)
{
    struct made made = {.late_ns = LATE_NS, .companion_ns = LATE_NS};

    (void)state;
    made.host_ns = LATE_NS; /* so it computes that much later */
    check(&made, VERDICT_HOST_LATE, RANK, -1);
}

static void companions_are_of_operations_without_a_wire(void **state)
{
    static struct record_rank_operation records[RECORDS];
    struct companions *companions;
    companion_list list = {0};
    struct job job;

    (void)state;
    job_build(&job, ranks, NULL, records, make(records, &(struct made){0}, STEPS));
    companions = companions_create(&job);
    for (size_t i = 0; i < job.rank_operations.count; i++) {
        const struct rank_operation *of = &job.rank_operations.items[i];
        if ((of->record.flags & RANK_OPERATION_NO_WIRE) != 0)
            continue;
        list.count = 0;
        companions_find(companions, i, &list);
        assert_int_equal(list.count, 1);
        assert_int_equal(list.items[0].rank, of->rank ^ 1);
        assert_int_equal(job.rank_operations.items[list.items[0].next].rank, of->rank ^ 1);
        assert_int_equal(job.rank_operations.items[list.items[0].next].record.sequence, of->record.sequence);
    }
    array_fini(&list);
    companions_destroy(companions);
    job_fini(&job);
}

/* ---- what hangs ---- */

/* All are heard of for five seconds after the last step. */
static void live_on(struct evidence *evidence)
{
    for (int kind = 1; kind <= 2; kind++)
        for (int number = 0; number < (kind == 1 ? RANKS / 2 : 2); number++)
            for (int rank = 0; rank < (kind == 1 ? 2 : RANKS / 2); rank++) {
                struct host_member *member = array_add(&evidence->host.members);
                *member = (struct host_member){.communicator = {(uint8_t)kind, (uint8_t)number},
                                               .communicator_rank = rank,
                                               .heard_ns = begin_of(STEPS) + 5000 * MS};
                member->rank = rank_of(NULL, member->communicator, rank);
            }
    for (int rank = 0; rank < RANKS; rank++)
        *(uint32_t *)array_add(&evidence->sights) = SOURCE_MESSAGES;
}

/* A last step that does not end: who is silent got data and sent none, all others have sent a part. */
static void check_hang(unsigned silent, int32_t rank, size_t candidates)
{
    static struct record_rank_operation records[RECORDS];
    struct evidence evidence = {0};
    struct made made = {0};
    struct job job;
    size_t count = make(records, &made, STEPS + 1);

    for (size_t i = count - 2 * RANKS; i < count; i++) {
        struct record_rank_operation *record = &records[i];
        int32_t own = rank_of(NULL, record->communicator, record->rank);
        if (record->communicator[0] == 1)
            continue;
        record->flags |= RANK_OPERATION_INCOMPLETE;
        record->end_ns = record->received_ns = record->last_data_ns = 0;
        record->observed_bytes = (silent >> own & 1) != 0 ? 0 : 1 << 16;
        record->received_bytes = 1 << 16;
        if (record->observed_bytes == 0)
            record->first_data_ns = record->gpu_ready_ns = 0;
    }
    live_on(&evidence);
    job_build(&job, ranks, &evidence, records, count);
    assert_int_equal(job.verdicts.count, 1);
    assert_int_equal(job.verdicts.items[0].class, VERDICT_HANG);
    assert_int_equal(job.verdicts.items[0].rank, rank);
    assert_int_equal(job.verdicts.items[0].candidates.count, candidates);
    job_fini(&job);
    evidence_fini(&evidence);
}

static void who_hangs_behind_nvlink_is_one_of_the_silent(void **state)
{
    (void)state;
    check_hang(1u << RANK | 1u << COMPANION, COMPANION, 2);
    check_hang(1u << RANK, RANK, 0); /* its companion has come further */
}

/* Rank 0 sends to rank 1, which then reduces with ranks 2 and 3. */
static struct record_rank_operation hand_on(int step, int rank, bool ends)
{
    struct record_rank_operation record = on_the_wire(&(struct made){0}, step, rank);
    bool sends = rank == 0;

    record.communicator[0] = 3;
    record.communicator[1] = 0;
    record.rank = rank;
    record.ranks_count = 2;
    record.operation = sends ? OPERATION_SEND : OPERATION_RECV;
    record.group = (uint64_t)step + 1;
    record.peer = 1 - rank;
    record.next = sends ? 1 : -1;
    record.previous = sends ? -1 : 0;
    record.enqueued_ns -= 50 * US;
    record.expected_bytes = sends ? 1 << 20 : 0;
    record.observed_bytes = ends && sends ? 1 << 20 : 0;
    record.received_bytes = ends && !sends ? 1 << 20 : 0;
    record.host_ready_ns = record.held_ns = record.first_data_ns = record.gpu_ready_ns = 0;
    record.end_ns = ends ? begin_of(step) + 10 * MS : 0;
    record.received_ns = sends ? 0 : record.end_ns;
    record.last_data_ns = sends ? record.end_ns : 0;
    return record;
}

static struct record_rank_operation reduce(int step, int rank, bool ends)
{
    struct record_rank_operation record = on_the_wire(&(struct made){0}, step, rank);

    record.communicator[0] = 4;
    record.communicator[1] = 0;
    record.rank = rank - 1;
    record.ranks_count = 3;
    record.next = rank % 3;
    record.previous = (rank + 1) % 3;
    if (ends)
        return record;
    record.flags = RANK_OPERATION_INCOMPLETE;
    record.end_ns = record.received_ns = record.last_data_ns = 0;
    record.observed_bytes = rank == 1 ? 0 : 1 << 16;
    record.received_bytes = rank == 2 ? 0 : 1 << 16;
    if (rank == 1)
        record.first_data_ns = record.gpu_ready_ns = 0;
    return record;
}

static int32_t rank_in_line(const void *context, const uint8_t *communicator, int32_t rank)
{
    (void)context;
    return communicator[0] == 4 ? rank + 1 : rank;
}

/* 0 sends nothing in the last step, so that 1 is the only one that is silent in what is seen to hang. */
static void a_hang_is_followed_to_who_sends(void **state)
{
    static struct record_rank_operation records[RECORDS];
    struct evidence evidence = {0};
    struct job job;
    size_t count = 0;

    (void)state;
    for (int step = 0; step <= STEPS; step++) {
        for (int rank = 0; rank < 2; rank++)
            records[count++] = hand_on(step, rank, step < STEPS);
        for (int rank = 1; rank < 4; rank++)
            records[count++] = reduce(step, rank, step < STEPS);
    }
    for (int rank = 0; rank < 4; rank++)
        *(uint32_t *)array_add(&evidence.sights) = SOURCE_MESSAGES;
    for (int i = 0; i < 5; i++)
        *(struct host_member *)array_add(&evidence.host.members) = (struct host_member){
            .communicator = {i < 2 ? 3 : 4},
            .communicator_rank = i < 2 ? i : i - 2,
            .rank = i < 2 ? i : i - 1,
            .heard_ns = begin_of(STEPS) + 5000 * MS,
        };
    job_build(&job, (struct job_ranks){.rank_of = rank_in_line}, &evidence, records, count);
    assert_int_equal(job.verdicts.count, 1);
    assert_int_equal(job.verdicts.items[0].class, VERDICT_HANG);
    assert_int_equal(job.verdicts.items[0].rank, 0);
    assert_int_equal(job.operations.items[job.verdicts.items[0].operation].kind, OPERATION_GROUP);
    job_fini(&job);
    evidence_fini(&evidence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(companions_are_of_operations_without_a_wire),
        cmocka_unit_test(it_is_one_of_those_that_were_late_alike),
        cmocka_unit_test(who_is_late_alone_is_named_alone),
        cmocka_unit_test(a_late_host_explains_its_companions),
        cmocka_unit_test(who_hangs_behind_nvlink_is_one_of_the_silent),
        cmocka_unit_test(a_hang_is_followed_to_who_sends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
