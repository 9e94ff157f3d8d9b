/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The made-up job. One step is an all-gather, two equal all-reduces enqueued back to back, a reduce-scatter and, where
 * asked for, a group of a send and a receive. Sizes are chosen so that every chunk is cut into two equal slices of one
 * slot each: then an all-reduce sends 2 (n - 1) chunks a channel, the others n - 1.
 */
#include "tests/unit/correlator/made_job.h"

#include <stdlib.h>
#include <string.h>

#define SLICE_BYTES    65536u
#define SLOT_NS        400000ULL /* a slot's message, at the usual pace */
#define CREDIT_NS      60000ULL
#define ENQUEUE_NS     200000ULL
#define COMPUTE_NS     (20 * MADE_MS)
#define START_NS       (1000 * MADE_MS)
#define FIRST_QPN      17
#define GROUP_BYTES    (3 * SLICE_BYTES)
#define BORROWED_PLACE 50 /* on their owner, of queue pairs that send for a neighbour */

struct connection { /* from a rank to the next one, on one channel */
    uint32_t data_flow[MADE_QUEUE_PAIRS_MAX];
    uint32_t credit_flow; /* of the first queue pair: the others carry none */
    unsigned turn;
};

enum { TWIN = 2, ECHO, COMMUNICATORS };

struct maker {
    struct made_job *job;
    struct connection rings[COMMUNICATORS][MADE_RANKS_MAX][4]; /* of each communicator */
    struct connection pairs[MADE_RANKS_MAX];
    struct connection others[MADE_RANKS_MAX][MADE_RANKS_MAX]; /* by sender and receiver */
    uint64_t free_ns[MADE_RANKS_MAX];                         /* when the rank's stream is free */
    uint64_t enqueue_ns[MADE_RANKS_MAX];                      /* when its host enqueues next */
    uint64_t sequence[COMMUNICATORS];                         /* of each communicator */
    uint64_t random;
    uint32_t group;
    int communicator; /* that calls are for and connections are made for: 0 or 1 */
    int step;
    bool first; /* operation of the step */
};

static uint64_t chance(struct maker *maker, uint64_t below)
{
    maker->random = maker->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (maker->random >> 33) % below;
}

static void address(uint8_t bytes[ADDRESS_BYTES], int rank)
{
    memset(bytes, 0, ADDRESS_BYTES);
    bytes[10] = bytes[11] = 0xff;
    bytes[12] = 10;
    bytes[15] = (uint8_t)(rank + 1);
}

/* Each rank's queue pairs are numbered from FIRST_QPN, as devices of their own do. */
static uint32_t qpn(int place)
{
    return FIRST_QPN + (uint32_t)place;
}

static uint32_t add_flow(struct maker *maker, int from, int to, uint32_t destination_qpn, uint64_t first_ns)
{
    static uint32_t number;
    struct feed *nic = &maker->job->nic;
    struct record_flow flow = {.flow = ++number, .vantage = VANTAGE_TX, .port = (uint32_t)from + 1};

    address(flow.source, from);
    address(flow.destination, to);
    flow.destination_qpn = destination_qpn;
    flow.first_ns = feed_time(nic, first_ns);
    feed_add(nic, RECORD_FLOW, &flow);
    return flow.flow;
}

static uint32_t communicator_number(const struct maker *maker, int rank)
{
    return (uint32_t)(maker->communicator * MADE_RANKS_MAX + rank) + 1;
}

/* `rank` and `peer` have the two queue pairs; what this one sends is for `origin`. */
static void add_queue_pair(struct maker *maker, int rank, int peer, int place, int remote_place, int origin,
                           uint64_t created_ns)
{
    struct feed *host = &maker->job->host;
    struct record_queue_pair pair = {
        .queue_pair = (uint32_t)(rank * 100 + place + 1),
        .process = (uint32_t)rank + 1,
        .communicator = maker->job->options.ownerless ? 0 : communicator_number(maker, rank),
        .qpn = qpn(place),
        .remote_qpn = qpn(remote_place),
        .port = 1,
        .state = QUEUE_PAIR_RTS,
        .connection = 0x1000 + (uint64_t)(place / maker->job->options.queue_pairs),
        .flags = origin == rank ? 0 : QUEUE_PAIR_PXN,
        .origin_rank = origin,
        .channel = -1,
        .created_ns = feed_time(host, created_ns),
    };

    address(pair.address, rank);
    address(pair.remote_address, peer);
    strcpy(pair.device, "rxe0");
    pair.device[3] = (char)('0' + rank);
    feed_add(host, RECORD_QUEUE_PAIR, &pair);
}

/*
 * From a rank to another. Ends on a rank: 2c sends on channel c, 2c + 1 receives; two are for the group, two more for
 * each other rank.
 */
static struct connection connect_ranks(struct maker *maker, int rank, int next, int end, const uint64_t *created_ns)
{
    int queue_pairs = maker->job->options.queue_pairs;
    uint64_t made_ns = created_ns[rank] > created_ns[next] ? created_ns[rank] : created_ns[next];
    struct connection connection = {0};
    int owner = maker->job->options.pxn && rank % 2 == 1 ? rank - 1 : rank;

    for (int i = 0; i < queue_pairs; i++) {
        int receive = (end + 1) * queue_pairs + i;
        int send = owner == rank ? end * queue_pairs + i : BORROWED_PLACE + receive;
        add_queue_pair(maker, owner, next, send, receive, rank, created_ns[rank]);
        add_queue_pair(maker, next, owner, receive, send, next, created_ns[next]);
        connection.data_flow[i] = add_flow(maker, owner, next, qpn(receive), made_ns);
        uint32_t back = add_flow(maker, next, owner, qpn(send), made_ns);
        connection.credit_flow = i == 0 ? back : connection.credit_flow;
    }
    return connection;
}

static void add_communicator(struct maker *maker, int rank)
{
    static const char *const identities[] = {"made-up-job-one", "made-up-job-two", "made-up-job-twin",
                                             "made-up-job-echo"};
    struct made_job *job = maker->job;
    struct record_communicator communicator = {
        .communicator = communicator_number(maker, rank),
        .process = (uint32_t)rank + 1,
        .pointer = 0x1000 + 0x1000 * (uint64_t)maker->communicator,
        .ranks_count = job->options.ranks,
        .rank = rank,
        .created_ns = feed_time(&job->host, START_NS - 500 * MADE_MS),
        .ready_ns = feed_time(&job->host, START_NS - 100 * MADE_MS),
    };

    memcpy(communicator.identity, identities[maker->communicator], strlen(identities[maker->communicator]));
    feed_add(&job->host, RECORD_COMMUNICATOR, &communicator);
}

static void add_rank(struct maker *maker, int rank)
{
    struct made_job *job = maker->job;
    struct record_process process = {.process = (uint32_t)rank + 1, .pid = 100 + (uint32_t)rank};
    struct record_port port = {.port = (uint32_t)rank + 1};

    strcpy(process.command, "train");
    strcpy(port.name, "fa0");
    port.name[2] = (char)('0' + rank);
    feed_add(&job->host, RECORD_PROCESS, &process);
    feed_add(&job->nic, RECORD_PORT, &port);
}

static void add_message(struct maker *maker, uint32_t flow, uint64_t first_ns, uint64_t took_ns, uint32_t bytes,
                        uint8_t role, int64_t immediate)
{
    struct feed *nic = &maker->job->nic;
    struct record_message message = {
        .header.source = flow,
        .first_ns = feed_time(nic, first_ns),
        .duration_ns = (uint32_t)took_ns,
        .payload_bytes = bytes,
        .frames = bytes / 4096 + 1,
        .role = role,
        .flags = immediate >= 0 ? MESSAGE_IMMEDIATE : 0,
        .immediate = immediate >= 0 ? __builtin_bswap32((uint32_t)immediate) : 0,
    };

    feed_add(nic, RECORD_MESSAGE, &message);
}

/* What one queue pair carries of a slot: data, and the empty write that ends it. */
static void add_piece(struct maker *maker, uint32_t flow, uint64_t data_ns, uint64_t took_ns, uint32_t bytes)
{
    add_message(maker, flow, data_ns, took_ns, bytes, ROLE_DATA, -1);
    add_message(maker, flow, data_ns + took_ns + 1000, 0, 0, ROLE_DATA, SLICE_BYTES);
}

/* One slot: a credit, and the data over the queue pair whose turn it is, or in equal parts over all. */
static uint64_t add_slot(struct maker *maker, struct connection *connection, uint64_t credit_ns, uint64_t data_ns,
                         uint64_t took_ns)
{
    unsigned queue_pairs = (unsigned)maker->job->options.queue_pairs;

    add_message(maker, connection->credit_flow, credit_ns, 0, 64, ROLE_CREDIT, -1);
    if (maker->job->options.striped)
        for (unsigned i = 0; i < queue_pairs; i++)
            add_piece(maker, connection->data_flow[i], data_ns + i, took_ns - i, SLICE_BYTES / queue_pairs);
    else
        add_piece(maker, connection->data_flow[connection->turn++ % queue_pairs], data_ns, took_ns, SLICE_BYTES);
    maker->job->sent_bytes += SLICE_BYTES;
    return data_ns + took_ns + 1000;
}

static bool faulty(const struct maker *maker, enum made_fault fault, int rank)
{
    const struct made_options *options = &maker->job->options;

    return options->fault == fault && options->fault_rank == rank && maker->step >= options->fault_first_step;
}

static void add_call(struct maker *maker, int rank, uint8_t operation, uint64_t count, int peer, uint64_t sequence,
                     uint32_t group)
{
    struct feed *host = &maker->job->host;
    struct record_call call = {
        .header.source = communicator_number(maker, rank),
        .sequence = sequence,
        .count = count,
        .entered_ns = feed_time(host, maker->enqueue_ns[rank]),
        .enqueued_ns = feed_time(host, maker->enqueue_ns[rank]),
        .peer = peer,
        .tid = 500 + (uint32_t)rank,
        .group = group,
        .operation = operation,
        .datatype = 7, /* float32 */
        .reduction = 255,
    };

    if (maker->communicator == ECHO)
        return;
    feed_add(host, RECORD_CALL, &call);
    if (!maker->job->options.twin || maker->communicator != 0)
        return;
    call.header.source = (uint32_t)(TWIN * MADE_RANKS_MAX + rank) + 1;
    feed_add(host, RECORD_CALL, &call);
}

struct wave { /* when each rank can credit and can send, in one operation */
    uint64_t credit_ns[MADE_RANKS_MAX];
    uint64_t data_ns[MADE_RANKS_MAX];
};

static void arrive(struct maker *maker, struct wave *wave)
{
    for (int rank = 0; rank < maker->job->options.ranks; rank++) {
        uint64_t host = maker->enqueue_ns[rank] + CREDIT_NS + chance(maker, CREDIT_NS);
        if (maker->first && faulty(maker, MADE_PROXY, rank))
            host += maker->job->options.fault_ns;
        uint64_t begin = maker->free_ns[rank] > host ? maker->free_ns[rank] : host;
        wave->credit_ns[rank] = host > maker->free_ns[rank] ? host : maker->free_ns[rank] + chance(maker, CREDIT_NS);
        wave->data_ns[rank] = begin + 4 * CREDIT_NS + chance(maker, CREDIT_NS);
        if (maker->first && faulty(maker, MADE_GPU, rank))
            wave->data_ns[rank] += maker->job->options.fault_ns;
        maker->enqueue_ns[rank] += ENQUEUE_NS;
    }
}

/* Plays `slots` slots on one connection; all but the first wait until every rank has sent its first one. */
static void play(struct maker *maker, int rank, int next, struct connection *connection, const struct wave *wave,
                 unsigned slots)
{
    int ranks = maker->job->options.ranks;
    unsigned times = maker->job->options.fault_times == 0 ? 10 : maker->job->options.fault_times;
    uint64_t took = faulty(maker, MADE_LINK, rank) ? times * SLOT_NS : SLOT_NS;
    uint64_t all = 0;
    uint64_t at = wave->data_ns[rank];

    for (int other = 0; other < ranks; other++) {
        uint64_t ready = wave->data_ns[other] + SLOT_NS;
        all = ready > all ? ready : all;
    }
    if (at < wave->credit_ns[next] + CREDIT_NS)
        at = wave->credit_ns[next] + CREDIT_NS;
    if (maker->first && maker->step >= 0 && connection == &maker->rings[0][rank][0])
        maker->job->first_data_ns[maker->step][rank] = at;
    for (unsigned slot = 0; slot < slots; slot++) {
        uint64_t credit = slot < 8 ? wave->credit_ns[next] + slot * 1000 : at - CREDIT_NS;
        at = add_slot(maker, connection, credit, at, took) + CREDIT_NS;
        if (slot == 0 && at < all)
            at = all;
        if (slot == 0 && maker->first && faulty(maker, MADE_STALL, rank))
            at += maker->job->options.fault_ns;
    }
    if (at > maker->free_ns[rank])
        maker->free_ns[rank] = at;
    if (at > maker->free_ns[next])
        maker->free_ns[next] = at;
}

static uint64_t latest_free(const struct maker *maker)
{
    uint64_t latest = 0;

    for (int rank = 0; rank < maker->job->options.ranks; rank++)
        latest = maker->free_ns[rank] > latest ? maker->free_ns[rank] : latest;
    return latest;
}

static void send_batches(struct maker *maker)
{
    uint64_t latest = latest_free(maker);

    feed_send(&maker->job->nic, latest);
    feed_send(&maker->job->host, latest);
}

static void collective(struct maker *maker, uint8_t operation, unsigned rounds)
{
    const struct made_options *options = &maker->job->options;
    uint64_t part = 2ULL * SLICE_BYTES * (uint64_t)options->channels;
    uint64_t bytes = operation == OPERATION_ALL_REDUCE ? part * (uint64_t)options->ranks : part;
    struct wave wave;

    for (int rank = 0; rank < options->ranks; rank++)
        add_call(maker, rank, operation, bytes / 4, -1, maker->sequence[maker->communicator], 0);
    arrive(maker, &wave);
    for (int rank = 0; rank < options->ranks; rank++)
        for (int channel = 0; channel < options->channels; channel++)
            play(maker, rank, (rank + 1) % options->ranks, &maker->rings[maker->communicator][rank][channel], &wave,
                 2 * rounds);
    maker->sequence[maker->communicator]++;
    maker->first = false;
    send_batches(maker);
}

static void group(struct maker *maker)
{
    const struct made_options *options = &maker->job->options;
    struct wave wave;

    maker->group++;
    for (int rank = 0; rank < options->ranks; rank++) {
        int next = (rank + 1) % options->ranks;
        int before = (rank + options->ranks - 1) % options->ranks;
        add_call(maker, rank, OPERATION_SEND, GROUP_BYTES / 4, next, maker->group - 1, maker->group);
        add_call(maker, rank, OPERATION_RECV, GROUP_BYTES / 4, before, maker->group - 1, maker->group);
    }
    if (options->inside) {
        add_call(maker, 0, OPERATION_SEND, GROUP_BYTES / 4, 2, maker->group - 1, maker->group);
        add_call(maker, 2, OPERATION_RECV, GROUP_BYTES / 4, 0, maker->group - 1, maker->group);
    }
    for (int rank = 0; rank < options->ranks && maker->group == 1; rank++)
        maker->pairs[rank] =
            connect_ranks(maker, rank, (rank + 1) % options->ranks, 2 * options->channels, maker->enqueue_ns);
    arrive(maker, &wave);
    for (int rank = 0; rank < options->ranks; rank++)
        play(maker, rank, (rank + 1) % options->ranks, &maker->pairs[rank], &wave, GROUP_BYTES / SLICE_BYTES);
    send_batches(maker);
}

static void connect_all(struct maker *maker)
{
    const struct made_options *options = &maker->job->options;

    for (int rank = 0; rank < options->ranks; rank++)
        for (int distance = 1; distance < options->ranks; distance++) {
            int to = (rank + distance) % options->ranks;
            int end = 2 * (options->channels + distance);
            maker->others[rank][to] = connect_ranks(maker, rank, to, end, maker->enqueue_ns);
        }
}

/* What is sent between ranks, each pair's part in GROUP_BYTES; with a root all of it comes from there or goes there. */
static void exchange(struct maker *maker, uint8_t operation, int root)
{
    const struct made_options *options = &maker->job->options;
    struct wave wave;

    for (int rank = 0; rank < options->ranks; rank++)
        add_call(maker, rank, operation, GROUP_BYTES / 4, root, maker->sequence[maker->communicator], 0);
    if (maker->others[0][1].data_flow[0] == 0)
        connect_all(maker);
    arrive(maker, &wave);
    for (int from = 0; from < options->ranks; from++)
        for (int to = 0; to < options->ranks; to++) {
            bool wanted = operation == OPERATION_ALL_TO_ALL || (operation == OPERATION_GATHER ? to : from) == root;
            if (from != to && wanted)
                play(maker, from, to, &maker->others[from][to], &wave, GROUP_BYTES / SLICE_BYTES);
        }
    maker->sequence[maker->communicator]++;
    send_batches(maker);
}

static void exchanges(struct maker *maker)
{
    exchange(maker, OPERATION_ALL_TO_ALL, -1);
    exchange(maker, OPERATION_GATHER, 1);
    exchange(maker, OPERATION_SCATTER, 1);
}

static void begin_step(struct maker *maker)
{
    const struct made_options *options = &maker->job->options;
    uint64_t latest = latest_free(maker);

    for (int rank = 0; rank < options->ranks; rank++) {
        maker->enqueue_ns[rank] = latest + COMPUTE_NS + chance(maker, MADE_MS);
        if (faulty(maker, MADE_HOST, rank))
            maker->enqueue_ns[rank] += options->fault_ns;
        if (maker->step >= 0)
            maker->job->enqueue_ns[maker->step][rank] = maker->enqueue_ns[rank];
    }
    feed_exchange(&maker->job->nic, latest, 20000 + chance(maker, 30000), 20000 + chance(maker, 30000));
    feed_exchange(&maker->job->host, latest, 20000 + chance(maker, 30000), 20000 + chance(maker, 30000));
    maker->first = true;
}

/* An all-reduce on the second communicator; what comes next begins as if it was not there. */
static void overlap(struct maker *maker)
{
    uint64_t free_ns[MADE_RANKS_MAX];

    memcpy(free_ns, maker->free_ns, sizeof free_ns);
    maker->communicator = 1;
    collective(maker, OPERATION_ALL_REDUCE, 2 * ((unsigned)maker->job->options.ranks - 1));
    maker->communicator = ECHO;
    if (maker->job->options.echo)
        collective(maker, OPERATION_ALL_REDUCE, 2 * ((unsigned)maker->job->options.ranks - 1));
    maker->communicator = 0;
    maker->first = true;
    memcpy(maker->free_ns, free_ns, sizeof free_ns);
}

static void play_step(struct maker *maker)
{
    unsigned others = (unsigned)maker->job->options.ranks - 1;

    maker->job->step_begin_ns[maker->step] = latest_free(maker);
    begin_step(maker);
    if (maker->job->options.overlaps)
        overlap(maker);
    collective(maker, OPERATION_ALL_GATHER, others);
    collective(maker, OPERATION_ALL_REDUCE, 2 * others);
    collective(maker, OPERATION_ALL_REDUCE, 2 * others);
    collective(maker, OPERATION_REDUCE_SCATTER, others);
    if (maker->job->options.groups)
        group(maker);
    if (maker->job->options.exchanges)
        exchanges(maker);
    maker->job->step_end_ns[maker->step] = latest_free(maker);
}

/* The rings of a communicator; those of the second one have the ends behind all others. */
static void set_up_communicator(struct maker *maker, int communicator)
{
    const struct made_options *options = &maker->job->options;
    int end = communicator * 2 * (options->channels + options->ranks);

    maker->communicator = communicator;
    for (int rank = 0; rank < options->ranks; rank++)
        add_communicator(maker, rank);
    for (int channel = 0; channel < options->channels; channel++)
        for (int rank = 0; rank < options->ranks; rank++)
            maker->rings[communicator][rank][channel] =
                connect_ranks(maker, rank, (rank + 1) % options->ranks, end + 2 * channel, maker->free_ns);
    maker->communicator = 0;
}

static void set_up(struct maker *maker)
{
    struct made_job *job = maker->job;
    const struct made_options *options = &job->options;

    feed_hello(&job->nic, START_NS - 900 * MADE_MS, 8000);
    feed_hello(&job->host, START_NS - 900 * MADE_MS, 0);
    for (int rank = 0; rank < options->ranks; rank++) {
        add_rank(maker, rank);
        maker->free_ns[rank] = START_NS - 300 * MADE_MS;
    }
    for (int communicator = 0; communicator <= options->overlaps; communicator++)
        set_up_communicator(maker, communicator);
    if (options->echo)
        set_up_communicator(maker, ECHO);
    maker->communicator = TWIN;
    for (int rank = 0; rank < options->ranks && options->twin; rank++)
        add_communicator(maker, rank);
    maker->communicator = 0;
    for (int rank = 0; rank < options->ranks; rank++) {
        job->data_flow[rank] = maker->rings[0][rank][0].data_flow[0];
        job->credit_flow[rank] = maker->rings[0][rank][0].credit_flow;
        maker->free_ns[rank] = START_NS;
    }
}

struct made_job *made_create(const struct made_options *options)
{
    struct made_job *job = calloc(1, sizeof *job);
    struct maker maker = {.job = job, .random = options->seed * 977 + 1, .step = -1};

    job->options = *options;
    job->options.queue_pairs = options->queue_pairs == 0 ? 1 : options->queue_pairs;
    job->operations = 4 + options->groups + 3 * options->exchanges + options->overlaps;
    feed_init(&job->nic, EMITTER_NIC, 0xa1, 0xb1, options->nic_offset_ns);
    feed_init(&job->host, EMITTER_HOST, 0xa2, 0xb2, options->host_offset_ns);
    set_up(&maker);
    if (options->warm_up) {
        begin_step(&maker);
        collective(&maker, OPERATION_ALL_REDUCE, 2 * ((unsigned)options->ranks - 1));
    }
    job->first_step_ns = maker.free_ns[0];
    for (maker.step = 0; maker.step < options->steps; maker.step++)
        play_step(&maker);
    feed_last(&job->nic, maker.free_ns[0] + MADE_MS);
    feed_last(&job->host, maker.free_ns[0] + MADE_MS);
    return job;
}

void made_destroy(struct made_job *job)
{
    feed_fini(&job->nic);
    feed_fini(&job->host);
    free(job);
}
