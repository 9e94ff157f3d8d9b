/* SPDX-License-Identifier: BSD-2-Clause */
/* When a rank's operation before one was over for it: by what records say of two ranks' operations, by arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "correlator/job/job.h"

#define MS     1000000ULL
#define BUFFER (1u << 20)

static int32_t same_rank(const void *context, const uint8_t *communicator, int32_t rank)
{
    (void)context;
    (void)communicator;
    return rank;
}

/* An AllReduce of two: each receives the buffer once, here until `end_ms`. */
static struct record_rank_operation make(uint8_t communicator, uint64_t sequence, int32_t rank, uint64_t enqueued_ms,
                                         uint64_t end_ms)
{
    return (struct record_rank_operation){
        .communicator = {communicator},
        .operation = OPERATION_ALL_REDUCE,
        .algorithm = ALGORITHM_RING,
        .sequence = sequence,
        .rank = rank,
        .ranks_count = 2,
        .peer = -1,
        .next = 1 - rank,
        .previous = 1 - rank,
        .enqueued_ns = enqueued_ms * MS,
        .first_data_ns = (end_ms - 1) * MS,
        .last_data_ns = end_ms * MS,
        .end_ns = end_ms * MS,
        .received_ns = end_ms * MS,
        .buffer_bytes = BUFFER,
        .observed_bytes = BUFFER,
        .received_bytes = BUFFER,
    };
}

static void check_before(const struct record_rank_operation *records, size_t count, size_t record, uint64_t before_ms)
{
    struct job job;

    job_build(&job, (struct job_ranks){.rank_of = same_rank}, NULL, records, count);
    assert_int_equal(job.rank_operations.items[job.rank_operation_of.items[record]].before_ns, before_ms * MS);
    job_fini(&job);
}

/* What came for the second one was there before the first was over: the GPU had to end that one first. */
static void what_comes_early_does_not_end_early(void **state)
{
    struct record_rank_operation records[] = {make(1, 0, 0, 1, 20), make(1, 1, 0, 2, 15), make(1, 2, 0, 3, 30)};

    (void)state;
    check_before(records, 3, 1, 20);
    check_before(records, 3, 2, 20);
}

/* Communicators do not wait for each other. */
static void communicators_are_apart(void **state)
{
    struct record_rank_operation records[] = {make(1, 0, 0, 1, 20), make(2, 0, 0, 2, 15), make(2, 1, 0, 3, 30)};

    (void)state;
    check_before(records, 3, 2, 15);
}

/* Half of it comes over NVLink, so that of it only the end of the whole operation is known. */
static void what_nvlink_brings_ends_with_the_operation(void **state)
{
    struct record_rank_operation records[] = {make(1, 0, 0, 1, 20), make(1, 0, 1, 1, 25), make(1, 1, 0, 2, 40)};

    (void)state;
    check_before(records, 3, 2, 20);
    records[0].received_bytes = BUFFER / 2;
    check_before(records, 3, 2, 25);
    records[0].algorithm = ALGORITHM_TREE; /* where not all receive alike */
    check_before(records, 3, 2, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_early_does_not_end_early),
        cmocka_unit_test(communicators_are_apart),
        cmocka_unit_test(what_nvlink_brings_ends_with_the_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
