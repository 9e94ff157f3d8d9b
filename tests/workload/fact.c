/* SPDX-License-Identifier: BSD-2-Clause */
/* Describes launches for the truth file. A collective's works on several channels are one fact, and so are the parts of
 * a send or a receive. Sequence numbers are counted here, apart from those that the job counts for its calls. */
#include "fact.h"

#include "truth.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FACTS_MAX = 128, SENT_MAX = 32, COMMS_MAX = 64, PEERS_MAX = 64, NO_PEER = -1 };

struct sent {
    int channel, peer;
    uint64_t bytes, pieces;
};

struct fact {
    const char *operation, *algorithm, *protocol, *type, *reduction;
    uint64_t op_count; /* RCCL's own number of a collective, the same in all its works */
    uint64_t bytes, sequence;
    int peer, root, channels, sent_count;
    struct sent sent[SENT_MAX];
};

struct facts {
    const void *comm;
    int rank, ranks, count;
    uint64_t launch;
    pthread_mutex_t lock;
    struct fact facts[FACTS_MAX];
};

struct comm_counts { /* next numbers of one communicator */
    const void *comm;
    uint64_t collectives, sends[PEERS_MAX], receives[PEERS_MAX];
};

static struct comm_counts comms[COMMS_MAX];
static uint64_t launches;
static pthread_mutex_t comms_lock = PTHREAD_MUTEX_INITIALIZER;

static struct comm_counts *comm_counts_find(const void *comm)
{
    for (int i = 0; i < COMMS_MAX; i++) {
        if (comms[i].comm == comm)
            return &comms[i];
        if (comms[i].comm)
            continue;
        comms[i].comm = comm;
        return &comms[i];
    }
    abort();
}

static struct fact *fact_find(struct facts *facts, const struct fact *like)
{
    for (int i = 0; i < facts->count; i++) {
        struct fact *fact = &facts->facts[i];
        if (fact->op_count == like->op_count && fact->peer == like->peer && !strcmp(fact->operation, like->operation))
            return fact;
    }
    return NULL;
}

static struct fact *fact_add(struct facts *facts, const struct fact *like)
{
    struct fact *fact = fact_find(facts, like);

    if (fact)
        return fact;
    if (facts->count == FACTS_MAX)
        abort();
    fact = &facts->facts[facts->count++];
    *fact = *like;
    return fact;
}

static struct fact collective_describe(const struct work *work)
{
    static const char *const operations[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
    static const char *const algorithms[] = {"Tree", "Ring", "CollNet"}, *const protocols[] = {"LL", "LL128", "Simple"};
    static const char *const reductions[] = {"sum", "prod", "max", "min", "premulsum", "sumpostdiv"};
    static const char *const types[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                        "uint64", "float16", "float32", "float64", "bfloat16"};
    struct func func = func_decode(work->func);

    return (struct fact){.operation = operations[func.coll],
                         .algorithm = algorithms[func.algo],
                         .protocol = protocols[func.proto],
                         .type = types[func.type],
                         .reduction = reductions[func.redop],
                         .op_count = work->coll.op_count,
                         .bytes = work->coll.count * (uint64_t)type_size_bytes(func.type),
                         .peer = NO_PEER,
                         .root = func.coll == BROADCAST || func.coll == REDUCE ? (int)work->coll.root : -1,
                         .channels = work->coll.nchannels};
}

static struct fact p2p_describe(const struct p2p_elem *elem)
{
    return (struct fact){.operation = elem->type == P2P_SEND ? "Send" : "Recv",
                         .algorithm = "P2P",
                         .protocol = "Simple",
                         .type = "int8",
                         .reduction = "",
                         .peer = elem->peer,
                         .root = -1};
}

static void work_note(struct facts *facts, const struct work *work)
{
    if (work->type == WORK_COLL) {
        struct fact like = collective_describe(work);
        fact_add(facts, &like);
        return;
    }
    for (int i = 0; i < P2P_ELEMS; i++) {
        const struct p2p_elem *elem = &work->p2p[i];
        if (!p2p_elem_used(elem))
            continue;
        struct fact like = p2p_describe(elem), *fact = fact_add(facts, &like);
        fact->bytes += (uint64_t)p2p_elem_count(elem);
        fact->channels++;
    }
}

/* Numbers follow RCCL's own count, since works lie by channel and not in the order of the calls. */
static void collectives_number(struct facts *facts, struct comm_counts *counts)
{
    uint64_t first = counts->collectives;

    for (int i = 0; i < facts->count; i++) {
        struct fact *fact = &facts->facts[i];
        if (fact->peer != NO_PEER)
            continue;
        fact->sequence = first;
        for (int other = 0; other < facts->count; other++)
            if (facts->facts[other].peer == NO_PEER && facts->facts[other].op_count < fact->op_count)
                fact->sequence++;
        counts->collectives++;
    }
}

static void facts_number(struct facts *facts)
{
    pthread_mutex_lock(&comms_lock);
    struct comm_counts *counts = comm_counts_find(facts->comm);
    facts->launch = ++launches;
    collectives_number(facts, counts);
    for (int i = 0; i < facts->count; i++) {
        struct fact *fact = &facts->facts[i];
        if (fact->peer != NO_PEER)
            fact->sequence = (!strcmp(fact->operation, "Send") ? counts->sends : counts->receives)[fact->peer]++;
    }
    pthread_mutex_unlock(&comms_lock);
}

struct facts *facts_create(const void *comm, const struct devcomm *devcomm, uint64_t channels, const struct work *works)
{
    const struct work *first = works;

    if (!truth_wanted())
        return NULL;
    struct facts *facts = calloc(1, sizeof *facts);
    *facts = (struct facts){.comm = comm, .rank = devcomm->rank, .ranks = devcomm->nranks};
    pthread_mutex_init(&facts->lock, NULL);
    for (int channel = 0; channel < CHANNELS_MAX; channel++) {
        if (!(channels >> channel & 1))
            continue;
        const struct work *work = first++;
        for (work_note(facts, work); !work->is_last; work_note(facts, work))
            work = works + work->next;
    }
    facts_number(facts);
    return facts;
}

static struct sent *sent_find(struct fact *fact, int channel, int peer)
{
    for (int i = 0; i < fact->sent_count; i++)
        if (fact->sent[i].channel == channel && fact->sent[i].peer == peer)
            return &fact->sent[i];
    if (fact->sent_count == SENT_MAX)
        abort();
    fact->sent[fact->sent_count] = (struct sent){.channel = channel, .peer = peer};
    return &fact->sent[fact->sent_count++];
}

void facts_sent(struct facts *facts, const struct work *work, int channel, int peer, uint64_t bytes, uint64_t pieces)
{
    struct fact like = {.operation = "Send", .peer = peer};

    if (!facts)
        return;
    if (work->type == WORK_COLL)
        like = collective_describe(work);
    pthread_mutex_lock(&facts->lock);
    struct fact *fact = fact_find(facts, &like);
    if (!fact)
        abort();
    struct sent *sent = sent_find(fact, channel, peer);
    sent->bytes += bytes;
    sent->pieces += pieces;
    pthread_mutex_unlock(&facts->lock);
}

static void sent_write(struct truth_line *line, const struct fact *fact)
{
    truth_raw(line, ",\"sent\":[");
    for (int i = 0; i < fact->sent_count; i++)
        truth_raw(line, "%s{\"channel\":%d,\"peer\":%d,\"bytes\":%lu,\"pieces\":%lu}", i ? "," : "",
                  fact->sent[i].channel, fact->sent[i].peer, fact->sent[i].bytes, fact->sent[i].pieces);
    truth_raw(line, "]");
}

static void fact_write(const struct facts *facts, const struct fact *fact, const struct fact_times *times)
{
    struct truth_line line;

    truth_begin(&line, "operation");
    truth_pointer(&line, "comm", facts->comm);
    truth_signed(&line, "comm_rank", facts->rank);
    truth_signed(&line, "ranks", facts->ranks);
    truth_number(&line, "launch", facts->launch);
    truth_text(&line, "operation", fact->operation);
    truth_number(&line, "sequence", fact->sequence);
    truth_signed(&line, "peer", fact->peer);
    truth_signed(&line, "root", fact->root);
    truth_text(&line, "algorithm", fact->algorithm);
    truth_text(&line, "protocol", fact->protocol);
    truth_text(&line, "type", fact->type);
    truth_text(&line, "reduction", fact->reduction);
    truth_number(&line, "bytes", fact->bytes);
    truth_signed(&line, "channels", fact->channels);
    truth_number(&line, "delay_us", times->delay_us);
    truth_number(&line, "enqueued_ns", times->enqueued_ns);
    truth_number(&line, "begun_ns", times->begun_ns);
    truth_number(&line, "ended_ns", times->ended_ns);
    sent_write(&line, fact);
    truth_put(&line);
}

void facts_write(struct facts *facts, const struct fact_times *times)
{
    if (!facts)
        return;
    for (int i = 0; i < facts->count; i++)
        fact_write(facts, &facts->facts[i], times);
    pthread_mutex_destroy(&facts->lock);
    free(facts);
}
