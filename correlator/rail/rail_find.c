/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rails out of the tables of naming. Invariant: a queue pair of which no frame was seen, though frames of others were,
 * counts as one that may carry something once it can: that a rail is idle is never concluded from what nobody looks at.
 */
#include "correlator/rail/rail_find.h"

#include <stdlib.h>
#include <string.h>

#define CARRIES_LEAST_BYTES 4096 /* below that it is credit, or what a set-up sends */

struct finder {
    struct rails *rails;
    const struct naming *naming;
    const struct intake *intake;
    const struct timeline *timeline;
    int32_t *machines;    /* by stream */
    int32_t *host_of;     /* by rank */
    int32_t *first_facts; /* by process: its first fact; -1 = none */
    size_t ranks;
};

/* ---- machines and their ports ---- */

static void number_machines(struct finder *finder)
{
    const struct timeline *timeline = finder->timeline;
    size_t streams = finder->intake->streams.count;
    int32_t *numbers = array_zeroed((streams + 1) * sizeof *numbers); /* by a machine's first stream; 0 = not yet */

    finder->machines = array_zeroed((streams + 1) * sizeof *finder->machines);
    for (size_t i = 0; i < streams; i++) {
        size_t machine = timeline->clocks.items[i].kin.machine;
        if (numbers[machine] == 0) {
            array_add(&finder->rails->machines);
            numbers[machine] = (int32_t)finder->rails->machines.count;
        }
        finder->machines[i] = numbers[machine] - 1;
    }
    free(numbers);
}

static void copy_name(char *into, size_t bytes, const char *name, size_t name_bytes)
{
    size_t length = strnlen(name, name_bytes < bytes - 1 ? name_bytes : bytes - 1);

    memset(into, 0, bytes);
    memcpy(into, name, length);
}

struct told { /* a port, with a state of it or none */
    int32_t machine;
    char device[DEVICE_NAME_BYTES];
    uint8_t number;
    const struct port_state *state;
    int32_t row;
};

static int by_port(const void *a, const void *b)
{
    const struct told *left = a;
    const struct told *right = b;
    int order = left->machine == right->machine ? 0 : left->machine < right->machine ? -1 : 1;

    if (order == 0)
        order = memcmp(left->device, right->device, DEVICE_NAME_BYTES);
    if (order == 0)
        order = (int)left->number - (int)right->number;
    if (order == 0)
        order = (left->state == NULL) - (right->state == NULL);
    if (order != 0 || left->state == NULL)
        return order;
    return (left->state->at_ns > right->state->at_ns) - (left->state->at_ns < right->state->at_ns);
}

static bool is_same_port(const struct told *a, const struct told *b)
{
    return a->machine == b->machine && a->number == b->number && memcmp(a->device, b->device, DEVICE_NAME_BYTES) == 0;
}

static void describe(struct rail_port *port, const struct record_rdma_port *record)
{
    if (record->bits_a_second > port->bits_a_second) /* a port that is down may say anything */
        port->bits_a_second = record->bits_a_second;
    copy_name(port->root_port, sizeof port->root_port, record->root_port, sizeof record->root_port);
}

static void add_port(struct finder *finder, const struct told *told)
{
    struct rails *rails = finder->rails;
    struct rail_machine *machine = &rails->machines.items[told->machine];

    if (machine->ports == 0)
        machine->first_port = rails->ports.count;
    machine->ports++;
    struct rail_port *port = array_add(&rails->ports);
    port->machine = told->machine;
    port->number = told->number;
    copy_name(port->device, sizeof port->device, told->device, DEVICE_NAME_BYTES);
    port->first_change = rails->changes.count;
}

static void add_change(struct finder *finder, const struct told *told)
{
    struct rails *rails = finder->rails;
    struct rail_port *port = &rails->ports.items[rails->ports.count - 1];
    struct rail_machine *machine = &rails->machines.items[told->machine];
    const struct record_rdma_port *record = &told->state->record;

    *(struct rail_change *)array_add(&rails->changes) =
        (struct rail_change){told->state->at_ns, told->state->before_ns, record->state, told->row};
    port->changes++;
    describe(port, record);
    machine->told = record->ports_count; /* of the last port: all are told again when it is another one */
}

static void find_ports(struct finder *finder)
{
    const struct naming *naming = finder->naming;
    ARRAY(struct told) told = {0};

    for (size_t i = 0; i < naming->port_states.count; i++) {
        const struct port_state *state = &naming->port_states.items[i];
        struct told *one = array_add(&told);
        *one = (struct told){.machine = finder->machines[state->stream],
                             .number = state->record.number,
                             .state = state,
                             .row = (int32_t)i};
        memcpy(one->device, state->record.device, DEVICE_NAME_BYTES);
    }
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        const struct queue_pair *pair = &naming->queue_pairs.items[i];
        struct told *one = array_add(&told);
        *one = (struct told){.machine = finder->machines[pair->stream], .number = pair->record.port};
        memcpy(one->device, pair->record.device, DEVICE_NAME_BYTES);
        if (told.count > 1 && told.items[told.count - 2].state == NULL && is_same_port(one, one - 1))
            told.count--;
    }
    array_sort(&told, by_port);
    for (size_t i = 0; i < told.count; i++) {
        bool is_new = i == 0 || !is_same_port(&told.items[i - 1], &told.items[i]);
        const struct rail_machine *machine = &finder->rails->machines.items[told.items[i].machine];
        if (is_new && machine->ports == RAILS_MAX) {
            while (i + 1 < told.count && told.items[i + 1].machine == told.items[i].machine)
                i++;
            continue;
        }
        if (is_new)
            add_port(finder, &told.items[i]);
        if (told.items[i].state != NULL)
            add_change(finder, &told.items[i]);
    }
    array_fini(&told);
}

/* ---- ranks and hosts ---- */

static void index_facts(struct finder *finder)
{
    const struct naming *naming = finder->naming;

    finder->first_facts = array_zeroed((naming->processes.count + 1) * sizeof *finder->first_facts);
    for (size_t i = 0; i < naming->processes.count; i++)
        finder->first_facts[i] = -1;
    for (size_t i = naming->facts.count; i-- > 0;)
        if (naming->facts.items[i].process >= 0)
            finder->first_facts[naming->facts.items[i].process] = (int32_t)i;
}

/* The value of an NCCL_ variable of a process: `bytes` of it. NULL: it has none. */
static const char *variable(const struct finder *finder, int32_t process, const char *name, size_t *bytes,
                            bool *is_known)
{
    const struct naming *naming = finder->naming;
    int32_t first = process < 0 ? -1 : finder->first_facts[process];
    size_t name_bytes = strlen(name);

    *is_known = false;
    *bytes = 0;
    for (size_t i = (size_t)first; first >= 0 && i < naming->facts.count; i++) {
        const struct record_process_fact *record = &naming->facts.items[i].record;
        if (naming->facts.items[i].process != process)
            break;
        *is_known |= record->fact == PROCESS_FACT_NCCL_VARIABLE || record->fact >= PROCESS_FACT_RANK;
        size_t length = strnlen(record->text, sizeof record->text);
        if (record->fact != PROCESS_FACT_NCCL_VARIABLE || length <= name_bytes || record->text[name_bytes] != '=' ||
            memcmp(record->text, name, name_bytes) != 0)
            continue;
        *is_known = record->text_bytes <= sizeof record->text;
        *bytes = length - name_bytes - 1;
        return record->text + name_bytes + 1;
    }
    return NULL;
}

struct placed { /* a rank */
    int32_t rank;
    int32_t machine;
    uint64_t host_name;
    uint64_t created_ns;
    int32_t process;
};

static int by_host(const void *a, const void *b)
{
    const struct placed *left = a;
    const struct placed *right = b;

    if (left->machine != right->machine)
        return left->machine < right->machine ? -1 : 1;
    if (left->host_name != right->host_name)
        return left->host_name < right->host_name ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->created_ns > right->created_ns) - (left->created_ns < right->created_ns);
}

static uint64_t name_of_host(const struct finder *finder, int32_t process)
{
    size_t bytes;
    bool is_known;
    const char *text = variable(finder, process, "NCCL_HOSTID", &bytes, &is_known);
    uint64_t name = 5381;

    for (size_t i = 0; i < bytes; i++)
        name = name * 33 ^ (uint8_t)text[i];
    return name;
}

static void add_host(struct finder *finder, const struct placed *placed)
{
    const struct process *process = &finder->naming->processes.items[placed->process];
    const struct intake_stream *stream = &finder->intake->streams.items[process->stream];
    struct rail_host *host = array_add(&finder->rails->hosts);

    host->machine = placed->machine;
    host->name = placed->host_name;
    host->first_rank = finder->rails->ranks.count;
    host->created_ns = placed->created_ns;
    copy_name(host->machine_name, sizeof host->machine_name, stream->hello.host, sizeof stream->hello.host);
}

static void add_rank(struct finder *finder, const struct placed *placed)
{
    struct rails *rails = finder->rails;
    struct rail_host *host = &rails->hosts.items[rails->hosts.count - 1];
    struct rail_rank *rank = array_add(&rails->ranks);

    rank->rank = placed->rank;
    rank->host = (int32_t)rails->hosts.count - 1;
    rank->list.text = variable(finder, placed->process, "NCCL_IB_HCA", &rank->list.bytes, &rank->list_known);
    host->ranks++;
    host->created_ns = placed->created_ns < host->created_ns ? placed->created_ns : host->created_ns;
    finder->host_of[placed->rank] = rank->host;
}

static void find_hosts(struct finder *finder)
{
    const struct naming *naming = finder->naming;
    ARRAY(struct placed) placed = {0};

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->rank < 0 || member->process < 0)
            continue;
        finder->ranks = (size_t)member->rank >= finder->ranks ? (size_t)member->rank + 1 : finder->ranks;
        *(struct placed *)array_add(&placed) =
            (struct placed){member->rank, finder->machines[naming->processes.items[member->process].stream],
                            name_of_host(finder, member->process), member->created_ns, member->process};
    }
    finder->host_of = array_zeroed((finder->ranks + 1) * sizeof *finder->host_of);
    for (size_t i = 0; i < finder->ranks; i++)
        finder->host_of[i] = -1;
    array_sort(&placed, by_host);
    for (size_t i = 0; i < placed.count; i++) {
        const struct placed *one = &placed.items[i];
        bool is_new = i == 0 || one->machine != one[-1].machine || one->host_name != one[-1].host_name;
        if (is_new)
            add_host(finder, one);
        if (is_new || one->rank != one[-1].rank)
            add_rank(finder, one);
    }
    array_fini(&placed);
    for (size_t i = 0; i < finder->rails->hosts.count; i++)
        rails_sum_up(finder->rails, &finder->rails->hosts.items[i]);
}

/* ---- what carried what ---- */

struct carried { /* by one queue pair */
    struct rail_use use;
    uint64_t connection;
    bool sends;
};

static int by_use(const void *a, const void *b)
{
    const struct carried *left = a;
    const struct carried *right = b;
    int order = memcmp(left->use.communicator, right->use.communicator, IDENTITY_BYTES);

    if (order == 0)
        order = left->use.host == right->use.host ? 0 : left->use.host < right->use.host ? -1 : 1;
    if (order == 0)
        order = left->use.rank == right->use.rank ? 0 : left->use.rank < right->use.rank ? -1 : 1;
    if (order == 0)
        order = (int)left->use.port - (int)right->use.port;
    if (order == 0)
        order = (int)right->sends - (int)left->sends;
    if (order == 0)
        order = (left->connection > right->connection) - (left->connection < right->connection);
    return order;
}

static uint64_t payload_of(const struct naming *naming, const int32_t *flows, size_t count, enum vantage wanted)
{
    int32_t flow = naming_view(naming, flows, count, wanted);

    return flow < 0 ? 0 : naming->flows.items[flow].total.payload_bytes;
}

/* The place of a queue pair's port among its machine's; -1: it is not told apart. */
static int port_of(const struct finder *finder, const struct queue_pair *pair)
{
    const struct rail_machine *machine = &finder->rails->machines.items[finder->machines[pair->stream]];

    for (size_t i = 0; i < machine->ports; i++) {
        const struct rail_port *port = &finder->rails->ports.items[machine->first_port + i];
        if (port->number == pair->record.port && strncmp(port->device, pair->record.device, DEVICE_NAME_BYTES) == 0)
            return (int)i;
    }
    return -1;
}

static bool take_part(const struct finder *finder, const struct member *member, struct carried *carried)
{
    if (member->rank < 0)
        return false;
    memset(carried, 0, sizeof *carried);
    memcpy(carried->use.communicator, member->record.identity, IDENTITY_BYTES);
    carried->use.rank = member->rank;
    carried->use.host = finder->host_of[member->rank];
    carried->use.port = RAIL_NONE;
    return carried->use.host >= 0;
}

/* False: it carries nothing of the job. */
static bool carry(const struct finder *finder, const struct queue_pair *pair, struct carried *carried)
{
    const struct member *member = pair->member < 0 ? NULL : &finder->naming->members.items[pair->member];
    uint64_t out = payload_of(finder->naming, pair->flows_out.items, pair->flows_out.count, VANTAGE_TX);
    uint64_t in = payload_of(finder->naming, pair->flows_in.items, pair->flows_in.count, VANTAGE_RX);
    bool is_seen = pair->flows_out.count != 0 || pair->flows_in.count != 0;
    int port = port_of(finder, pair);

    if (member == NULL || port < 0 || (pair->record.flags & (QUEUE_PAIR_FLUSH | QUEUE_PAIR_FOREIGN)) != 0 ||
        (is_seen ? out + in < CARRIES_LEAST_BYTES : pair->ready_ns == 0) || !take_part(finder, member, carried))
        return false;
    carried->use.port = (uint8_t)port;
    carried->use.bytes = out + in;
    carried->use.is_unseen = !is_seen;
    carried->sends = out > in;
    carried->connection = pair->record.connection;
    return true;
}

static void find_uses(struct finder *finder)
{
    const struct naming *naming = finder->naming;
    ARRAY(struct carried) all = {0};
    struct carried one;

    for (size_t i = 0; i < naming->members.count && naming->flows.count != 0; i++)
        if (take_part(finder, &naming->members.items[i], &one))
            *(struct carried *)array_add(&all) = one;
    for (size_t i = 0; i < naming->queue_pairs.count && naming->flows.count != 0; i++)
        if (carry(finder, &naming->queue_pairs.items[i], &one))
            *(struct carried *)array_add(&all) = one;
    array_sort(&all, by_use);
    for (size_t i = 0; i < all.count; i++) {
        const struct carried *carried = &all.items[i], *before = carried - 1;
        bool is_same = i > 0 && memcmp(carried->use.communicator, before->use.communicator, IDENTITY_BYTES) == 0 &&
                       carried->use.rank == before->use.rank && carried->use.port == before->use.port;
        struct rails *rails = finder->rails;
        struct rail_use *use = is_same ? &rails->uses.items[rails->uses.count - 1] : array_add(&rails->uses);
        if (!is_same)
            *use = carried->use;
        else
            use->bytes += carried->use.bytes;
        use->is_unseen |= carried->use.is_unseen;
        use->connections += carried->sends && (!is_same || !before->sends || carried->connection != before->connection);
    }
    array_fini(&all);
}

void rails_find(struct rails *rails, const struct naming *naming, const struct intake *intake,
                const struct timeline *timeline)
{
    struct finder finder = {.rails = rails, .naming = naming, .intake = intake, .timeline = timeline};

    number_machines(&finder);
    find_ports(&finder);
    index_facts(&finder);
    find_hosts(&finder);
    find_uses(&finder);
    free(finder.machines);
    free(finder.host_of);
    free(finder.first_facts);
}
