/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdicts on a ring of eight ranks, whose records are made by arithmetic: who is blamed, who is not, and for how much.
 * In steps FIRST to LAST something takes so much longer; all other steps are alike, but for a spread that is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/verdict/evidence.h"

#define RANKS      8
#define STEPS      30
#define MS         1000000LL
#define US         1000LL
#define COMPUTE_NS (20 * MS)
#define SEND_NS    (2 * MS)
#define STEP_NS    (23 * MS)
#define TURN_NS    (5 * US)
#define WAY_NS     (10 * US) /* of a frame, to the next rank */
#define RANK       3         /* whose link, or GPU, it is */
#define NEXT       4
#define FIRST      10
#define LAST       19

struct made {
    int first, last;      /* steps that are longer */
    int64_t longer_ns;    /* each of them, for all ranks */
    int64_t way_ns;       /* in them the last frame to NEXT is so much longer on its way */
    int64_t way_in_ns;    /* and the last one to RANK */
    int64_t sends_ns;     /* in them RANK sends for so much longer */
    int64_t always_ns;    /* in all steps it does */
    int64_t comes_ns;     /* in them what comes to RANK takes so much longer there than it was sent */
    int64_t next_late_ns; /* in them the first data of NEXT comes so much later */
    int64_t all_late_ns;  /* and that of all */
    int64_t spread_ns;    /* first data comes up to so much later, evenly */
    int steps;
};

static const struct made plain = {.first = FIRST, .last = LAST, .spread_ns = 10 * US, .steps = STEPS};

static bool is_longer(const struct made *made, int step)
{
    return step >= made->first && step <= made->last;
}

static uint64_t begin_of(const struct made *made, int step)
{
    int64_t longer = 0;

    for (int before = 0; before < step; before++)
        longer += is_longer(made, before) ? made->longer_ns : 0;
    return (uint64_t)(1000 * MS + step * STEP_NS + longer);
}

static int64_t chance(const struct made *made, int step, int rank)
{
    return (step * 37 + rank * 61 + step * rank * 17) % 101 * made->spread_ns / 100;
}

static uint64_t sending_ns(const struct made *made, int step, int rank)
{
    if (rank != RANK)
        return SEND_NS;
    return (uint64_t)(SEND_NS + made->always_ns + (is_longer(made, step) ? made->sends_ns : 0));
}

static struct record_rank_operation make(const struct made *made, int step, int rank)
{
    bool longer = is_longer(made, step);
    uint64_t begin = begin_of(made, step);
    uint64_t data = begin + COMPUTE_NS + (uint64_t)chance(made, step, rank);
    uint64_t end = begin + COMPUTE_NS + SEND_NS + (uint64_t)(longer ? made->longer_ns : 0);
    uint64_t sent = end;

    data += (uint64_t)(longer ? made->all_late_ns : 0);
    if (longer && rank == NEXT)
        data += (uint64_t)made->next_late_ns;
    if (longer && rank == RANK) /* it sent in time, and nobody had it */
        sent -= (uint64_t)made->way_ns;
    if (longer && rank == RANK - 1)
        sent -= (uint64_t)made->way_in_ns;
    return (struct record_rank_operation){
        .communicator = {1},
        .operation = OPERATION_ALL_REDUCE,
        .sequence = (uint64_t)step,
        .rank = rank,
        .ranks_count = RANKS,
        .peer = -1,
        .next = (rank + 1) % RANKS,
        .previous = (rank + RANKS - 1) % RANKS,
        .enqueued_ns = begin,
        .host_ready_ns = begin + TURN_NS,
        .held_ns = begin + TURN_NS,
        .gpu_ready_ns = data,
        .first_data_ns = data,
        .last_data_ns = sent,
        .end_ns = end + WAY_NS,
        .received_ns = end + WAY_NS,
        .active_ns = sending_ns(made, step, rank),
        .receive_active_ns = rank == NEXT ? sending_ns(made, step, RANK)
                                          : (uint64_t)(SEND_NS + (longer && rank == RANK ? made->comes_ns : 0)),
        .buffer_bytes = 1 << 20,
        .expected_bytes = 1 << 20,
        .observed_bytes = 1 << 20,
        .received_bytes = 1 << 20,
    };
}

static int32_t same_rank(const void *context, const uint8_t *communicator, int32_t rank)
{
    (void)context;
    (void)communicator;
    return rank;
}

static void build(struct job *job, const struct made *made, const struct evidence *evidence)
{
    struct record_rank_operation records[STEPS * RANKS];

    for (int step = 0; step < made->steps; step++)
        for (int rank = 0; rank < RANKS; rank++)
            records[step * RANKS + rank] = make(made, step, rank);
    job_build(job, (struct job_ranks){.rank_of = same_rank}, evidence, records, (size_t)made->steps * RANKS);
    assert_int_equal(job->steps.count, made->steps);
}

static void check_count(const struct made *made, const struct evidence *evidence, size_t count)
{
    struct job job;

    build(&job, made, evidence);
    assert_int_equal(job.verdicts.count, count);
    job_fini(&job);
}

/* One verdict for each longer step, and none else. */
static void check(const struct made *made, const struct evidence *evidence, enum verdict_class class, int rank,
                  int peer, int64_t size_ns)
{
    struct job job;

    build(&job, made, evidence);
    assert_int_equal(job.verdicts.count, made->last - made->first + 1);
    for (size_t i = 0; i < job.verdicts.count; i++) {
        const struct verdict *verdict = &job.verdicts.items[i];
        assert_string_equal(verdict_class_name(verdict->class), verdict_class_name(class));
        assert_int_equal(verdict->rank, rank);
        assert_int_equal(verdict->peer_rank, peer);
        assert_int_equal(verdict->step, made->first + (int)i);
        assert_in_range(verdict->size_ns, size_ns - 30 * US, size_ns + 30 * US);
    }
    job_fini(&job);
}

/* ---- links ---- */

/* Nothing but the way of the last frame is longer, as when the network holds messages up at random. */
static void the_way_of_the_last_frame_is_measured(void **state)
{
    struct made made = plain;

    (void)state;
    made.longer_ns = made.way_ns = 500 * US;
    check(&made, NULL, VERDICT_NETWORK_SLOW, RANK, NEXT, 500 * US);
    made.longer_ns = 3 * MS; /* each message waits, and the next one for it, while the pace is hardly slower */
    made.sends_ns = 300 * US;
    check(&made, NULL, VERDICT_NETWORK_SLOW, RANK, NEXT, 3 * MS);
    made.sends_ns = 0;
    made.longer_ns = 500 * US;
    made.way_ns = 0; /* all are longer alike */
    check_count(&made, NULL, 0);
    made.longer_ns = 0; /* nobody waits for it */
    made.sends_ns = 500 * US;
    check_count(&made, NULL, 0);
}

/* There is no step without it: it is measured by the other links, and costs what it takes longer. Then nothing else
 * speaks for it, and what is a little more than worth a verdict is none. */
static void a_link_that_is_slow_all_along(void **state)
{
    struct made made = plain;

    (void)state;
    made.first = 0;
    made.last = STEPS - 1;
    made.always_ns = SEND_NS / 2;
    check(&made, NULL, VERDICT_NETWORK_SLOW, RANK, NEXT, SEND_NS / 2);
    made.always_ns = STEP_NS / 50;
    check_count(&made, NULL, 0);
}

/* What stands before the number, which is MB/s within a hundredth, and what stands behind it. */
static void check_rate(const struct made *made, const char *before, double rate, const char *after)
{
    struct job job = {0};

    build(&job, made, NULL);
    assert_true(job.verdicts.count != 0);
    for (size_t i = 0; i < job.verdicts.count; i++) {
        const char *found = strstr(job.verdicts.items[i].evidence, before);
        char *end = NULL;
        if (found == NULL)
            fail_msg("no \"%s\" in %s", before, job.verdicts.items[i].evidence);
        double said = strtod(found + strlen(before), &end);
        assert_true(said > 0.99 * rate && said < 1.01 * rate);
        assert_int_equal(strncmp(end, after, strlen(after)), 0);
    }
    job_fini(&job);
}

/* 1 MiB in SEND_NS is what it had before, and what its peers have where it never was well. */
static void a_slow_link_is_compared_with_itself_or_its_peers(void **state)
{
    const double rate = (1 << 20) * 1e3 / SEND_NS;
    struct made made = plain;
    char after[80];

    (void)state;
    made.longer_ns = 3 * MS;
    made.sends_ns = 3 * MS;
    snprintf(after, sizeof after, " MB/s (median of %d steps without the fault)",
             made.steps - 2 - (made.last - made.first + 1));
    check_rate(&made, "; healthy, this very link had ", rate, after);
    made.longer_ns = made.sends_ns = 0;
    made.first = 0;
    made.last = STEPS - 1;
    made.always_ns = SEND_NS / 2;
    snprintf(after, sizeof after, " MB/s (median of %d other links in this step)", RANKS - 1);
    check_rate(&made, "own healthy rate: its peers had ", rate, after);
}

/* Whose data is late because it waits in a slow link is not blamed; without that link it is. */
static void victims_of_a_slow_link_are_not_named(void **state)
{
    struct made made = plain;

    (void)state;
    made.longer_ns = 3 * MS;
    made.next_late_ns = 2 * MS;
    made.sends_ns = 3 * MS;
    check(&made, NULL, VERDICT_NETWORK_SLOW, RANK, NEXT, 3 * MS);
    made.sends_ns = 0;
    check(&made, NULL, VERDICT_GPU_LATE, NEXT, -1, 2 * MS);
}

/* What it sends and what comes to it take four times as long; either alone is a link's. */
static void both_directions_are_the_device(void **state)
{
    struct made made = plain;

    (void)state;
    made.longer_ns = 6 * MS;
    made.sends_ns = made.comes_ns = 3 * SEND_NS;
    check(&made, NULL, VERDICT_NIC_SLOW, RANK, -1, 6 * MS);
    made.sends_ns = 0;
    check(&made, NULL, VERDICT_NETWORK_SLOW, RANK - 1, RANK, 6 * MS);
    made.sends_ns = 3 * SEND_NS;
    made.comes_ns = 0;
    check(&made, NULL, VERDICT_NETWORK_SLOW, RANK, NEXT, 6 * MS);
    made.way_in_ns = 500 * US; /* what comes in queues before it */
    check(&made, NULL, VERDICT_NIC_SLOW, RANK, -1, 6 * MS);
}

/* ---- all alike ---- */

/* What all take longer is nobody's own, and does not hide what one takes longer still. */
static void what_all_take_longer_is_nobodys(void **state)
{
    struct made made = plain;

    (void)state;
    made.longer_ns = made.all_late_ns = 6 * MS;
    check_count(&made, NULL, 0);
    made.longer_ns = 7 * MS;
    made.next_late_ns = MS;
    check(&made, NULL, VERDICT_GPU_LATE, NEXT, -1, MS);
}

/* ---- single latenesses ---- */

/* Its spread is even, so that nothing is ever later than the latest: six times the ninth tenth would be a whole ms. */
static void once_is_measured_by_the_tail(void **state)
{
    struct made made = plain;
    struct job job;

    (void)state;
    made.first = made.last = 20;
    made.spread_ns = 200 * US;
    made.longer_ns = made.next_late_ns = 600 * US;
    build(&job, &made, NULL);
    assert_int_equal(job.verdicts.count, 1);
    assert_int_equal(job.verdicts.items[0].class, VERDICT_GPU_LATE);
    assert_int_equal(job.verdicts.items[0].rank, NEXT);
    assert_int_equal(job.verdicts.items[0].step, 20);
    assert_in_range(job.verdicts.items[0].size_ns, 400 * US, 800 * US);
    job_fini(&job);
    made.longer_ns = made.next_late_ns = 200 * US; /* less than a hundredth of a step */
    check_count(&made, NULL, 0);
    made.longer_ns = made.next_late_ns = 600 * US;
    made.steps = 20; /* too few to tell the tail */
    made.first = made.last = 15;
    check_count(&made, NULL, 0);
}

/* What is worth a verdict is for a person to say: 3 ms are 130 thousandths of a step. */
static void limits_can_be_set(void **state)
{
    struct made made = plain;
    struct evidence evidence = {0};

    (void)state;
    for (int rank = 0; rank < RANKS; rank++)
        *(uint32_t *)array_add(&evidence.sights) = SOURCE_MESSAGES;
    made.longer_ns = made.next_late_ns = 3 * MS;
    check(&made, &evidence, VERDICT_GPU_LATE, NEXT, -1, 3 * MS);
    evidence.limits.least_permille = 120;
    check(&made, &evidence, VERDICT_GPU_LATE, NEXT, -1, 3 * MS);
    evidence.limits.least_permille = 140;
    check_count(&made, &evidence, 0);
    evidence.limits.least_permille = 0;
    evidence.limits.spreads = 1000;
    check_count(&made, &evidence, 0);
    evidence_fini(&evidence);
}

/* ---- what was counted, and what is seen ---- */

static size_t kind_of(uint16_t metric)
{
    for (size_t i = 0; i < evidence_kinds_count; i++)
        if (evidence_kinds[i].of_port && evidence_kinds[i].number == metric)
            return i;
    fail_msg("no such kind");
    return 0;
}

static void see(struct evidence *evidence, uint32_t fields, uint32_t fields_of_rank)
{
    for (int rank = 0; rank < RANKS; rank++)
        *(uint32_t *)array_add(&evidence->sights) = rank == RANK ? fields_of_rank : fields;
}

/* The ports of the ranks in [from, to] count something in each of the longer steps. */
static void count_at(struct evidence *evidence, const struct made *made, uint16_t metric, int from, int to)
{
    for (int rank = from; rank <= to; rank++) {
        *(struct evidence_port *)array_add(&evidence->ports) = (struct evidence_port){"port"};
        *(struct evidence_place *)array_add(&evidence->places) = (struct evidence_place){
            .from = rank, .to = (rank + 1) % RANKS, .of_port = true, .side = EVIDENCE_SENDER, .owner = rank - from};
        *(struct evidence_series *)array_add(&evidence->series) =
            (struct evidence_series){.of_port = true,
                                     .owner = rank - from,
                                     .kind = (uint8_t)kind_of(metric),
                                     .priority = PRIORITY_NONE,
                                     .first = evidence->changes.count,
                                     .count = (size_t)(made->last - made->first) + 1};
        for (int step = made->first; step <= made->last; step++)
            *(struct evidence_change *)array_add(&evidence->changes) =
                (struct evidence_change){begin_of(made, step) + MS, begin_of(made, step) + 20 * MS, 5, step};
    }
}

/* A few messages that met no buffer change no pace; the step is longer, and one port counted them. */
static void what_only_counted_is_named_where_the_step_is_longer(void **state)
{
    struct made made = plain;
    struct evidence evidence = {0}, everywhere = {0};

    (void)state;
    made.longer_ns = MS;
    see(&evidence, SOURCE_MESSAGES, SOURCE_MESSAGES);
    see(&everywhere, SOURCE_MESSAGES, SOURCE_MESSAGES);
    count_at(&evidence, &made, PORT_METRIC_RNR_NAKS_RECEIVED, RANK, RANK);
    check(&made, &evidence, VERDICT_RECEIVER_SLOW, RANK, NEXT, MS);
    count_at(&everywhere, &made, PORT_METRIC_RNR_NAKS_RECEIVED, 0, RANKS - 1);
    check_count(&made, &everywhere, 0);
    made.longer_ns = 0;
    check_count(&made, &evidence, 0);
    evidence_fini(&evidence);
    evidence_fini(&everywhere);
}

/* All are longer alike, which is nobody's fault; but where one rank is not seen it may be that one's. */
static void what_is_not_seen_is_said(void **state)
{
    struct made made = plain;
    struct evidence seen = {0}, unseen = {0};

    (void)state;
    made.longer_ns = 3 * MS;
    see(&seen, SOURCE_MESSAGES, SOURCE_MESSAGES);
    check_count(&made, &seen, 0);
    see(&unseen, SOURCE_MESSAGES, SOURCE_PACKETS);
    check(&made, &unseen, VERDICT_LATE_UNSEEN, -1, -1, 3 * MS);
    made.next_late_ns = 3 * MS; /* who is seen to be late is blamed all the same */
    check(&made, &unseen, VERDICT_GPU_LATE, NEXT, -1, 3 * MS);
    evidence_fini(&seen);
    evidence_fini(&unseen);
}

/* ---- stages ---- */

/* Even ranks compute and send to the next one, which only receives; then all reduce. */
static struct record_rank_operation stage(const struct made *made, int step, int rank, int64_t late_ns)
{
    struct record_rank_operation record = make(made, step, rank);
    bool sends = rank % 2 == 0;
    uint64_t data = begin_of(made, step) + COMPUTE_NS / 2 + (uint64_t)(late_ns + chance(made, step, rank / 2 * 2));

    record.operation = sends ? OPERATION_SEND : OPERATION_RECV;
    record.peer = sends ? rank + 1 : rank - 1;
    record.next = sends ? rank + 1 : -1;
    record.previous = sends ? -1 : rank - 1;
    record.group = (uint64_t)step + 1;
    record.host_ready_ns = sends ? 0 : record.host_ready_ns;
    record.held_ns = sends ? record.held_ns : 0;
    record.gpu_ready_ns = record.first_data_ns = sends ? data : 0;
    record.last_data_ns = sends ? data + SEND_NS : 0;
    record.end_ns = data + SEND_NS + WAY_NS;
    record.received_ns = sends ? 0 : record.end_ns;
    record.observed_bytes = record.expected_bytes = sends ? 1 << 20 : 0;
    record.received_bytes = sends ? 0 : 1 << 20;
    record.active_ns = sends ? SEND_NS : 0;
    record.receive_active_ns = sends ? 0 : SEND_NS;
    return record;
}

static void build_stages(struct job *job, const struct made *made, int late_rank)
{
    static struct record_rank_operation records[2 * STEPS * RANKS];
    size_t count = 0;

    for (int step = 0; step < STEPS; step++)
        for (int rank = 0; rank < RANKS; rank++) {
            int64_t late_ns = is_longer(made, step) ? made->longer_ns : 0;
            bool is_late = late_rank < 0 || late_rank == rank / 2 * 2;
            records[count++] = stage(made, step, rank, is_late ? late_ns : 0);
            struct record_rank_operation record = make(made, step, rank);
            record.enqueued_ns += MS;
            record.host_ready_ns += MS;
            record.held_ns += MS;
            record.first_data_ns += (uint64_t)late_ns;
            record.gpu_ready_ns += (uint64_t)late_ns;
            records[count++] = record;
        }
    job_build(job, (struct job_ranks){.rank_of = same_rank}, NULL, records, count);
}

/* A stage that receives takes no time, one that computes takes ten ms: neither is late for it, and each only by itself.
 */
static void stages_are_measured_by_themselves(void **state)
{
    struct made made = plain;
    struct job job;

    (void)state;
    build_stages(&job, &made, 2); /* nothing is longer */
    assert_int_equal(job.steps.count, STEPS);
    assert_int_equal(job.verdicts.count, 0);
    job_fini(&job);
    made.longer_ns = 3 * MS;
    build_stages(&job, &made, 2);
    assert_int_equal(job.verdicts.count, LAST - FIRST + 1);
    for (size_t i = 0; i < job.verdicts.count; i++) {
        assert_int_equal(job.verdicts.items[i].class, VERDICT_GPU_LATE);
        assert_int_equal(job.verdicts.items[i].rank, 2);
        assert_in_range(job.verdicts.items[i].size_ns, 3 * MS - 30 * US, 3 * MS + 30 * US);
    }
    job_fini(&job);
    build_stages(&job, &made, -1); /* all are longer alike */
    assert_int_equal(job.verdicts.count, 0);
    job_fini(&job);
}

/* ---- what hangs ---- */

/* All are heard of for five seconds after the last step. */
static void live_on(struct evidence *evidence)
{
    for (int rank = 0; rank < RANKS; rank++)
        *(struct host_member *)array_add(&evidence->host.members) = (struct host_member){
            .communicator = {1},
            .communicator_rank = rank,
            .rank = rank,
            .heard_ns = begin_of(&plain, STEPS) + 5000 * MS,
        };
}

/* What came of an operation after the last step: nothing ended, and the rank sent so much. */
static struct record_rank_operation hang(int rank, uint64_t sent)
{
    struct record_rank_operation record = make(&plain, STEPS, rank);

    record.observed_bytes = sent;
    record.first_data_ns = record.gpu_ready_ns = record.last_data_ns = sent == 0 ? 0 : record.held_ns + MS;
    record.end_ns = record.received_ns = 0;
    record.flags = RANK_OPERATION_INCOMPLETE;
    return record;
}

static void check_hang(const struct record_rank_operation *hanging, size_t count, int rank)
{
    struct record_rank_operation records[(STEPS + 1) * RANKS];
    struct evidence evidence = {0};
    struct job job;

    for (int step = 0; step < STEPS; step++)
        for (int own = 0; own < RANKS; own++)
            records[step * RANKS + own] = make(&plain, step, own);
    memcpy(&records[STEPS * RANKS], hanging, count * sizeof *hanging);
    live_on(&evidence);
    job_build(&job, (struct job_ranks){.rank_of = same_rank}, &evidence, records, STEPS * RANKS + count);
    assert_int_equal(job.verdicts.count, 1);
    assert_int_equal(job.verdicts.items[0].class, VERDICT_HANG);
    assert_int_equal(job.verdicts.items[0].rank, rank);
    assert_in_range(job.verdicts.items[0].size_ns, 4999 * MS, 5001 * MS);
    job_fini(&job);
    evidence_fini(&evidence);
}

/* In a ring all send their first slots, but the one whose GPU does not begin. */
static void who_alone_sends_nothing_hangs(void **state)
{
    struct record_rank_operation hanging[RANKS];

    (void)state;
    for (int rank = 0; rank < RANKS; rank++)
        hanging[rank] = hang(rank, rank == RANK ? 0 : 65536);
    check_hang(hanging, RANKS, RANK);
    hanging[NEXT].observed_bytes = 0; /* two are silent: nobody is named */
    check_hang(hanging, RANKS, -1);
}

static struct record_rank_operation exchange(int rank, int peer, bool sends, uint64_t group, int64_t after_ns)
{
    struct record_rank_operation record = hang(rank, 0);

    record.operation = sends ? OPERATION_SEND : OPERATION_RECV;
    record.peer = peer;
    record.next = sends ? peer : -1;
    record.previous = sends ? -1 : peer;
    record.sequence = 1;
    record.group = group;
    record.enqueued_ns += (uint64_t)after_ns;
    record.host_ready_ns = sends ? 0 : record.host_ready_ns + (uint64_t)after_ns;
    record.held_ns = sends ? record.held_ns + (uint64_t)after_ns : 0;
    record.expected_bytes = sends ? record.expected_bytes : 0;
    record.received_bytes = 0;
    return record;
}

/* NEXT is to pass on what RANK does not send: both are silent, and the second one waits for the first. */
static void who_waits_for_a_silent_rank_is_not_named(void **state)
{
    const struct record_rank_operation hanging[] = {
        exchange(NEXT, NEXT + 1, true, 2, MS),
        exchange(NEXT + 1, NEXT, false, 1, 0),
        exchange(RANK, NEXT, true, 1, 2 * MS),
        exchange(NEXT, RANK, false, 1, MS / 2),
    };

    (void)state;
    check_hang(hanging, 4, RANK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_of_the_last_frame_is_measured),
        cmocka_unit_test(a_link_that_is_slow_all_along),
        cmocka_unit_test(a_slow_link_is_compared_with_itself_or_its_peers),
        cmocka_unit_test(victims_of_a_slow_link_are_not_named),
        cmocka_unit_test(both_directions_are_the_device),
        cmocka_unit_test(what_all_take_longer_is_nobodys),
        cmocka_unit_test(once_is_measured_by_the_tail),
        cmocka_unit_test(limits_can_be_set),
        cmocka_unit_test(what_only_counted_is_named_where_the_step_is_longer),
        cmocka_unit_test(what_is_not_seen_is_said),
        cmocka_unit_test(stages_are_measured_by_themselves),
        cmocka_unit_test(who_alone_sends_nothing_hangs),
        cmocka_unit_test(who_waits_for_a_silent_rank_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
