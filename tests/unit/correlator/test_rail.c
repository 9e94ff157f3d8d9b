/* SPDX-License-Identifier: BSD-2-Clause */
/* Rails: NCCL_IB_HCA, and hosts that go over fewer of their devices than they should, or only seem to. */
#include "correlator/rail/shortage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlator/rail/rail_find.h"
#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

#define SECOND 1000000000ULL
#define FAST   400000000000ULL
#define BYTES  (8u << 20)

/* ---- NCCL_IB_HCA ---- */

static bool allows(const char *text, const char *device, unsigned port)
{
    return hca_list_allows((struct hca_list){text, text == NULL ? 0 : strlen(text)}, device, port);
}

static bool names(const char *text, const char *device, unsigned port)
{
    return hca_list_names((struct hca_list){text, strlen(text)}, device, port);
}

/* As NCCL's documentation of the variable says. */
static void lists_are_read_as_nccl_does(void **state)
{
    (void)state;
    assert_true(allows(NULL, "mlx5_0", 1));
    assert_true(allows("", "mlx5_0", 1));
    assert_true(allows("mlx5", "mlx5_7", 1)); /* a beginning */
    assert_false(allows("mlx5", "rxe0", 1));
    assert_true(allows("=mlx5_1,mlx5_3", "mlx5_3", 1));
    assert_false(allows("=mlx5_1", "mlx5_10", 1));
    assert_true(allows("mlx5_1", "mlx5_10", 1));
    assert_true(allows("mlx5_0:1,mlx5_1:2", "mlx5_1", 2));
    assert_false(allows("mlx5_0:1,mlx5_1:2", "mlx5_1", 1));
    assert_false(allows("^mlx5_3", "mlx5_3", 1));
    assert_true(allows("^mlx5_3", "mlx5_1", 1));
    assert_true(allows("^=mlx5_1", "mlx5_10", 1));
    assert_false(allows("^=mlx5_1,mlx5_10", "mlx5_10", 1));
    assert_true(names("mlx5_1", "mlx5_1", 1));
    assert_false(names("mlx5", "mlx5_1", 1));
    assert_false(names("^=mlx5_1", "mlx5_1", 1));
}

static void asked_devices_are_listed(void **state)
{
    static const char text[] = "=mlx5_0:1,,mlx5_bond_0";
    char name[17];

    (void)state;
    assert_true(hca_list_name((struct hca_list){text, strlen(text)}, 0, name, sizeof name));
    assert_string_equal(name, "mlx5_0");
    assert_true(hca_list_name((struct hca_list){text, strlen(text)}, 1, name, sizeof name));
    assert_string_equal(name, "mlx5_bond_0");
    assert_false(hca_list_name((struct hca_list){text, strlen(text)}, 2, name, sizeof name));
}

/* ---- a job ---- */

struct world {
    struct naming naming;
    struct intake intake;
    struct timeline timeline;
    struct rails rails;
    const struct rail_use *uses[64];
    struct shortage shortage;
    bool is_short;
};

static struct world world;

static int setup(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rails_fini(&world.rails);
    naming_fini(&world.naming);
    array_fini(&world.intake.streams);
    array_fini(&world.timeline.clocks);
    return 0;
}

static void add_machine(void)
{
    struct intake_stream *stream = array_add(&world.intake.streams);
    struct timeline_clock *clock = array_add(&world.timeline.clocks);

    stream->kind = EMITTER_HOST;
    clock->kin.machine = world.intake.streams.count - 1;
}

/* Of the last machine. Each one's count of ports is set at the end. */
static struct record_rdma_port *add_port(const char *device, uint8_t state)
{
    struct port_state *port = array_add(&world.naming.port_states);

    port->stream = world.intake.streams.count - 1;
    port->at_ns = SECOND;
    port->record = (struct record_rdma_port){.number = 1, .state = state, .bits_a_second = FAST};
    memcpy(port->record.device, device, strlen(device));
    return &port->record;
}

static void add_fact(int32_t process, const char *text)
{
    struct fact *fact = array_add(&world.naming.facts);

    fact->process = process;
    fact->record.fact = strncmp(text, "NCCL_", 5) == 0 ? PROCESS_FACT_NCCL_VARIABLE : PROCESS_FACT_RANK;
    fact->record.text_bytes = (uint32_t)strlen(text);
    memcpy(fact->record.text, text, strlen(text));
}

static void add_member(int32_t process, int32_t rank, const char *communicator, uint64_t created_ns)
{
    struct member *member = array_add(&world.naming.members);

    member->process = process;
    member->rank = rank;
    member->created_ns = created_ns;
    memcpy(member->record.identity, communicator, strlen(communicator));
}

/* On the last machine, the next rank; `list`: its NCCL_IB_HCA, NULL = it has none. */
static void add_rank(const char *list)
{
    int32_t rank = (int32_t)world.naming.processes.count;
    char text[64];
    struct process *process = array_add(&world.naming.processes);

    process->stream = world.intake.streams.count - 1;
    snprintf(text, sizeof text, "%d", rank);
    add_fact(rank, text);
    snprintf(text, sizeof text, "NCCL_IB_HCA=%s", list == NULL ? "" : list);
    if (list != NULL)
        add_fact(rank, text);
    add_member(rank, rank, "one", 5 * SECOND);
}

/* Of the last member; bytes 0: nothing is seen of it. */
static void add_pair(const char *device, uint64_t bytes)
{
    struct queue_pair *pair = array_add(&world.naming.queue_pairs);

    pair->stream = world.intake.streams.count - 1;
    pair->member = (int32_t)world.naming.members.count - 1;
    pair->ready_ns = 6 * SECOND;
    pair->record.port = 1;
    pair->record.connection = world.naming.queue_pairs.count;
    memcpy(pair->record.device, device, strlen(device));
    if (bytes == 0)
        return;
    *(int32_t *)array_add(&pair->flows_out) = (int32_t)world.naming.flows.count;
    struct flow *flow = array_add(&world.naming.flows);
    flow->record.vantage = VANTAGE_TX;
    flow->total.payload_bytes = bytes;
}

/* A machine of two devices and two ranks; the second device is in that state, and where it is not active the second
 * rank sends over the first one. */
static void add_two_by_two(uint8_t second_state, const char *list)
{
    add_machine();
    add_port("mlx5_0", RDMA_PORT_ACTIVE);
    add_port("mlx5_1", second_state);
    add_rank(list);
    add_pair("mlx5_0", BYTES);
    add_rank(list);
    add_pair(second_state == RDMA_PORT_ACTIVE && list == NULL ? "mlx5_1" : "mlx5_0", BYTES);
}

/* A machine of two devices and one rank, which has two channels: over one device, or over both. */
static void add_two_by_one(uint8_t second_state, const char *root_port, const char *second_channel, const char *list)
{
    add_machine();
    add_port("mlx5_0", RDMA_PORT_ACTIVE);
    memcpy(add_port("mlx5_1", second_state)->root_port, root_port, strlen(root_port));
    add_rank(list);
    add_pair("mlx5_0", BYTES);
    add_pair(second_channel, BYTES);
}

static bool find(void)
{
    for (size_t i = 0; i < world.naming.port_states.count; i++)
        for (size_t j = 0; j < world.naming.port_states.count; j++)
            world.naming.port_states.items[i].record.ports_count +=
                world.naming.port_states.items[i].stream == world.naming.port_states.items[j].stream;
    rails_find(&world.rails, &world.naming, &world.intake, &world.timeline);
    assert_in_range(world.rails.uses.count, 1, 64);
    struct shortage_view view = {.rails = &world.rails, .uses = world.uses, .count = world.rails.uses.count};
    for (size_t i = 0; i < view.count; i++)
        world.uses[i] = &world.rails.uses.items[i];
    view.spreads = shortage_spreads(&view);
    return shortage_find(&view, &world.shortage);
}

/* ---- found ---- */

static void a_port_that_is_down(void **state)
{
    (void)state;
    add_two_by_two(RDMA_PORT_ACTIVE, NULL);
    add_two_by_two(RDMA_PORT_DOWN, NULL);
    assert_true(find());
    assert_int_equal(world.shortage.reason, SHORTAGE_DOWN);
    assert_int_equal(world.shortage.measure, SHORTAGE_BY_USE);
    assert_string_equal(world.shortage.device, "mlx5_1/1");
    assert_int_equal(world.shortage.rank, 3); /* in whose place the other machine's rank 1 uses it */
    assert_int_equal(world.shortage.used, 1);
    assert_int_equal(world.shortage.wanted, 2);
    assert_false(world.shortage.of_all);
}

/* The library takes as many channels on all as the worst can have: all of them go over one. */
static void a_port_that_is_down_takes_the_others_with_it(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        add_machine();
        add_port("mlx5_0", RDMA_PORT_ACTIVE);
        add_port("mlx5_1", i == 1 ? RDMA_PORT_DOWN : RDMA_PORT_ACTIVE);
        add_rank(NULL);
        add_pair("mlx5_0", BYTES);
        add_rank(NULL);
        add_pair("mlx5_0", BYTES);
    }
    assert_true(find());
    assert_int_equal(world.shortage.reason, SHORTAGE_DOWN);
    assert_int_equal(world.shortage.measure, SHORTAGE_BY_OTHERS);
    assert_int_equal(world.shortage.host, 1);
    assert_true(world.shortage.of_all);
}

static void a_list_that_leaves_one_out(void **state)
{
    (void)state;
    add_two_by_two(RDMA_PORT_ACTIVE, NULL);
    add_two_by_two(RDMA_PORT_ACTIVE, "=mlx5_0");
    assert_true(find());
    assert_int_equal(world.shortage.reason, SHORTAGE_LIST);
    assert_string_equal(world.shortage.device, "mlx5_1/1");
    assert_int_equal(world.shortage.rank, 3);
}

static void a_device_that_is_not_there(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        add_two_by_two(RDMA_PORT_ACTIVE, NULL);
    add_machine();
    add_port("mlx5_0", RDMA_PORT_ACTIVE);
    for (int i = 0; i < 2; i++) {
        add_rank(NULL);
        add_pair("mlx5_0", BYTES);
    }
    assert_true(find());
    assert_int_equal(world.shortage.reason, SHORTAGE_ABSENT);
    assert_string_equal(world.shortage.device, "mlx5_1");
    assert_int_equal(world.shortage.rank, 5);
}

/* Each of them is asked for by name, and there is nobody to compare with. */
static void a_device_that_was_asked_for(void **state)
{
    (void)state;
    add_two_by_one(RDMA_PORT_DOWN, "", "mlx5_0", "=mlx5_0,mlx5_1");
    assert_true(find());
    assert_int_equal(world.shortage.reason, SHORTAGE_DOWN);
    assert_int_equal(world.shortage.measure, SHORTAGE_BY_NAME);
    assert_int_equal(world.shortage.wanted, 2);
}

/* The others were told by name to use two, and would; this one was told of one. */
static void a_list_that_is_shorter_than_others(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        add_two_by_one(RDMA_PORT_ACTIVE, "", "mlx5_0", i == 1 ? "=mlx5_0" : "=mlx5_0,mlx5_1");
    assert_true(find());
    assert_int_equal(world.shortage.reason, SHORTAGE_LIST);
    assert_int_equal(world.shortage.measure, SHORTAGE_BY_OTHERS);
    assert_int_equal(world.shortage.rank, 1);
    assert_true(world.shortage.of_all);
}

static void an_earlier_communicator_used_more(void **state)
{
    struct shortage_view views[2];

    (void)state;
    add_two_by_one(RDMA_PORT_ACTIVE, "", "mlx5_1", NULL);
    add_member(0, 0, "two", 50 * SECOND);
    add_pair("mlx5_0", BYTES);
    add_pair("mlx5_0", BYTES);
    find();
    size_t first, end = rails_uses(&world.rails, (const uint8_t[IDENTITY_BYTES]){'o', 'n', 'e'}, &first);
    assert_int_equal(first, 0);
    views[0] = (struct shortage_view){&world.rails, world.uses, end, true};
    views[1] = (struct shortage_view){&world.rails, world.uses + end, world.rails.uses.count - end, true};
    assert_true(shortage_since(&views[0], &views[1], &world.shortage));
    assert_int_equal(world.shortage.reason, SHORTAGE_ABANDONED);
    assert_string_equal(world.shortage.device, "mlx5_1/1");
    assert_int_equal(world.shortage.used, 1);
    assert_int_equal(world.shortage.wanted, 2);
    assert_false(shortage_since(&views[1], &views[0], &world.shortage));
}

/* ---- not found ---- */

static void one_device_each(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        add_machine();
        add_port("mlx5_0", RDMA_PORT_ACTIVE);
        for (int rank = 0; rank < 2; rank++) {
            add_rank(NULL);
            add_pair("mlx5_0", BYTES);
        }
    }
    assert_false(find());
}

/* Each rank has one; the other one of one machine, which nobody used, is down. */
static void a_rail_for_each_rank(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        add_two_by_one(i == 1 ? RDMA_PORT_DOWN : RDMA_PORT_ACTIVE, "0000:80:00.0", "mlx5_0", NULL);
    assert_false(find());
}

/* The same, as near to the GPU as the one that is used: but nothing shows that the library would spread a rank's. */
static void a_near_rail_that_nobody_uses(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        add_two_by_one(i == 1 ? RDMA_PORT_DOWN : RDMA_PORT_ACTIVE, "", "mlx5_0", NULL);
    assert_false(find());
}

/* A third device, for storage, is active on all but one. */
static void a_device_for_something_else(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        add_two_by_two(RDMA_PORT_ACTIVE, NULL);
        add_port("mlx5_9", i == 1 ? RDMA_PORT_DOWN : RDMA_PORT_ACTIVE);
    }
    assert_false(find());
}

/* All were told to use one of two. */
static void a_choice(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        add_two_by_two(RDMA_PORT_ACTIVE, "=mlx5_0");
    assert_false(find());
}

/* Of the second device nobody sees the frames, but its queue pair is told. */
static void what_nobody_looks_at(void **state)
{
    (void)state;
    add_two_by_two(RDMA_PORT_ACTIVE, NULL);
    add_machine();
    add_port("mlx5_0", RDMA_PORT_ACTIVE);
    add_port("mlx5_1", RDMA_PORT_ACTIVE);
    add_rank("=mlx5_0");
    add_pair("mlx5_0", BYTES);
    add_rank("=mlx5_0");
    add_pair("mlx5_0", BYTES);
    add_pair("mlx5_1", 0);
    assert_false(find());
}

/* It has one, the other one two: they may be of two kinds. */
static void another_kind_of_machine(void **state)
{
    (void)state;
    add_two_by_two(RDMA_PORT_ACTIVE, NULL);
    add_machine();
    add_port("mlx5_0", RDMA_PORT_ACTIVE);
    for (int i = 0; i < 2; i++) {
        add_rank(NULL);
        add_pair("mlx5_0", BYTES);
    }
    assert_false(find());
}

/* Hosts that do not tell of their devices. */
static void nothing_is_told(void **state)
{
    (void)state;
    add_two_by_two(RDMA_PORT_ACTIVE, NULL);
    add_two_by_two(RDMA_PORT_DOWN, NULL);
    world.naming.port_states.count = 0;
    assert_false(find());
}

/* Fewer ranks take part there. */
static void fewer_ranks(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        add_two_by_two(RDMA_PORT_ACTIVE, NULL);
    add_machine();
    add_port("mlx5_0", RDMA_PORT_ACTIVE);
    add_port("mlx5_1", RDMA_PORT_DOWN);
    add_rank(NULL);
    add_pair("mlx5_0", BYTES);
    add_pair("mlx5_0", BYTES);
    assert_false(find());
}

/* ---- what is said of it ---- */

#define STEPS 10

static void add_step(struct job *job, int32_t number, const char *communicator, uint64_t duration_ns)
{
    struct step *step = array_add(&job->steps);
    struct operation *operation = array_add(&job->operations);
    struct rank_operation *of = array_add(&job->rank_operations);
    struct path_part *part = array_add(&job->path);

    step->kind = STEP_TRAINING;
    step->start_ns = (100 + (uint64_t)number) * SECOND;
    step->duration_ns = duration_ns;
    step->end_ns = step->start_ns + duration_ns;
    operation->step = number;
    memcpy(operation->communicator, communicator, strlen(communicator));
    operation->first_rank = job->rank_operations.count - 1;
    operation->ranks = 1;
    of->record.observed_bytes = BYTES;
    of->record.first_data_ns = step->start_ns;
    of->record.last_data_ns = step->start_ns + SECOND / 10;
    *part = (struct path_part){
        .step = number, .is_transfer = true, .from_ns = step->start_ns, .to_ns = step->start_ns + SECOND / 10};
}

static void add_verdict(struct job *job, int32_t step, enum verdict_class class, int32_t rank, uint64_t size_ns)
{
    struct verdict *verdict = array_add(&job->verdicts);

    verdict->step = step;
    verdict->class = class;
    verdict->rank = rank;
    verdict->peer_rank = -1;
    verdict->size_ns = size_ns;
}

static void judge(struct job *job, struct evidence *evidence)
{
    struct judge_span spans[STEPS];
    struct judge judge = {.job = job, .spans = spans};

    for (int32_t i = 0; i < STEPS; i++)
        spans[i] = (struct judge_span){i, i + 1};
    evidence->rails = world.rails;
    job->evidence = evidence;
    judge_rails(&judge);
}

static const struct verdict *rail_verdict(const struct job *job, int32_t step)
{
    for (size_t i = 0; i < job->verdicts.count; i++)
        if (job->verdicts.items[i].step == step && job->verdicts.items[i].class == VERDICT_RAIL)
            return &job->verdicts.items[i];
    return NULL;
}

/* From step 5 on a communicator of the same rank goes over one of two: its steps take 50 ms longer. */
static void steps_after_a_communicator_was_made_anew(void **state)
{
    struct job job = {0};
    struct evidence evidence = {0};

    (void)state;
    add_two_by_one(RDMA_PORT_ACTIVE, "", "mlx5_1", NULL);
    add_member(0, 0, "two", 50 * SECOND);
    add_pair("mlx5_0", BYTES);
    add_pair("mlx5_0", BYTES);
    find();
    for (int32_t i = 0; i < STEPS; i++)
        add_step(&job, i, i < 5 ? "one" : "two", i < 5 ? 400000000 : 450000000);
    add_verdict(&job, 7, VERDICT_NETWORK_SLOW, 0, 30000000);
    add_verdict(&job, 8, VERDICT_GPU_LATE, 0, 20000000);
    judge(&job, &evidence);
    for (int32_t i = 0; i < STEPS; i++) {
        const struct verdict *verdict = rail_verdict(&job, i);
        assert_int_equal(verdict != NULL, i >= 5);
        if (verdict == NULL)
            continue;
        assert_int_equal(verdict->size_ns, 50000000);
        assert_int_equal(verdict->rank, 0);
        assert_string_equal(verdict->device, "mlx5_1/1");
        assert_int_equal(verdict->numbers.count, 2);
        assert_int_equal(verdict->numbers.items[0].amount, 3 * BYTES);
        assert_int_equal(verdict->numbers.items[1].amount, BYTES);
    }
    assert_int_equal(job.verdicts.count, 6); /* of a slow network not, since it is that; of a late GPU still */
    job_fini(&job);
}

/* All of the time: what was slow for it gives the size; in a step where nothing was, the ports were not busy either. */
static void steps_that_were_never_otherwise(void **state)
{
    struct job job = {0};
    struct evidence evidence = {0};

    (void)state;
    add_two_by_one(RDMA_PORT_DOWN, "", "mlx5_0", "=mlx5_0,mlx5_1");
    find();
    for (int32_t i = 0; i < STEPS; i++)
        add_step(&job, i, "one", 400000000);
    job.rank_operations.items[2].record.last_data_ns = job.steps.items[2].start_ns + 300000; /* 8 MiB: 220 Gb/s */
    add_verdict(&job, 1, VERDICT_NIC_SLOW, 0, 30000000);
    judge(&job, &evidence);
    assert_int_equal(job.verdicts.count, STEPS);
    assert_int_equal(rail_verdict(&job, 0)->size_ns, 0);
    assert_non_null(strstr(rail_verdict(&job, 0)->evidence, "what it costs is not known: at most 50.000 ms"));
    assert_int_equal(rail_verdict(&job, 1)->size_ns, 30000000);
    assert_in_range(rail_verdict(&job, 2)->size_ns, 83886, 83887); /* half of 8 MiB at 400 Gb/s */
    job_fini(&job);
}

/* A step that is no training is nobody's fault, and in one that goes another way nothing is short. */
static void steps_that_go_another_way(void **state)
{
    struct job job = {0};
    struct evidence evidence = {0};

    (void)state;
    add_two_by_one(RDMA_PORT_DOWN, "", "mlx5_0", "=mlx5_0,mlx5_1");
    find();
    for (int32_t i = 0; i < STEPS; i++)
        add_step(&job, i, i == 3 ? "unknown" : "one", 400000000);
    job.steps.items[4].kind = STEP_EVALUATION;
    judge(&job, &evidence);
    assert_int_equal(job.verdicts.count, STEPS - 2);
    assert_null(rail_verdict(&job, 3));
    assert_null(rail_verdict(&job, 4));
    job_fini(&job);
}

static void a_port_that_goes_down_is_told(void **state)
{
    struct rail_loss loss;

    (void)state;
    add_two_by_one(RDMA_PORT_ACTIVE, "", "mlx5_1", NULL);
    add_port("mlx5_1", RDMA_PORT_DOWN);
    world.naming.port_states.items[2].at_ns = 80 * SECOND;
    world.naming.port_states.items[2].before_ns = 79 * SECOND;
    find();
    assert_false(rails_lost(&world.rails, 80 * SECOND, 90 * SECOND, &loss));
    assert_false(rails_lost(&world.rails, 60 * SECOND, 79 * SECOND, &loss));
    assert_true(rails_lost(&world.rails, 60 * SECOND, 90 * SECOND, &loss));
    assert_string_equal(loss.port->device, "mlx5_1");
    assert_int_equal(loss.rank, 0);
    assert_int_equal(loss.change->row, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_as_nccl_does),
        cmocka_unit_test(asked_devices_are_listed),
        TEST(a_port_that_is_down),
        TEST(a_port_that_is_down_takes_the_others_with_it),
        TEST(a_list_that_leaves_one_out),
        TEST(a_device_that_is_not_there),
        TEST(a_device_that_was_asked_for),
        TEST(a_list_that_is_shorter_than_others),
        TEST(an_earlier_communicator_used_more),
        TEST(one_device_each),
        TEST(a_rail_for_each_rank),
        TEST(a_near_rail_that_nobody_uses),
        TEST(a_device_for_something_else),
        TEST(a_choice),
        TEST(what_nobody_looks_at),
        TEST(another_kind_of_machine),
        TEST(nothing_is_told),
        TEST(fewer_ranks),
        TEST(steps_after_a_communicator_was_made_anew),
        TEST(steps_that_were_never_otherwise),
        TEST(steps_that_go_another_way),
        TEST(a_port_that_goes_down_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
