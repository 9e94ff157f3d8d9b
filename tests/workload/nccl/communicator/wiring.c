/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As NCCL: receivers set up first and their handles go to the senders through the bootstrap; then all connects are
 * asked for at once and awaited together.
 */
#include "communicator/wiring.h"

#include "communicator/tree.h"

#include "setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct want {
    int channel, peer, connection;
    bool sends;
};

struct wants {
    struct want *items;
    int count;
};

static void wants_add(struct wants *wants, const struct ncclComm *comm, const struct want *want)
{
    if (want->peer == comm->rank ||
        communicator_wire(comm, want->channel, want->peer, want->connection, want->sends)->connection)
        return;
    wants->items = realloc(wants->items, (size_t)(wants->count + 1) * sizeof *want);
    wants->items[wants->count++] = *want;
}

static struct wire *wire_of(const struct ncclComm *comm, const struct want *want)
{
    return communicator_wire(comm, want->channel, want->peer, want->connection, want->sends);
}

/* With PXN a sender uses the proxy of the rank on its host whose device is the one that the receiver has on its own. */
static int sender_proxy(const struct ncclComm *comm, int sender, int receiver)
{
    const struct peer_info *mine = &comm->peers[sender], *theirs = &comm->peers[receiver];

    if (setting_read("NCCL_PXN_DISABLE", 1) || comm->service->comm != comm)
        return sender;
    for (int i = 0; i < comm->ranks; i++)
        if (comm->peers[i].host == mine->host && theirs->host != mine->host &&
            comm->peers[i].local_rank == theirs->local_rank)
            return i;
    return sender;
}

static struct client *client_of(struct ncclComm *comm, int rank, int *error)
{
    struct client *client = &comm->clients[rank];

    *error = client->fd ? 0 : client_open(client, &comm->peers[rank].service, &comm->abort_flag);
    return client;
}

static void label_set(struct ncclComm *comm, const struct want *want, struct connection *connection)
{
    connection->label = (struct net_label){.comm = comm,
                                           .comm_hash = comm->comm_hash,
                                           .rank = comm->rank,
                                           .peer = want->peer,
                                           .origin = want->sends ? comm->rank : want->peer,
                                           .channel = want->channel,
                                           .connection = want->connection,
                                           .is_shared = comm->service->comm != comm};
}

static uint32_t want_tag(const struct want *want)
{
    return (uint32_t)(want->channel * LANE_CONNS + want->connection);
}

/* Any level but the one that means "never". */
static int gdr_is_on(void)
{
    const char *level = getenv("NCCL_NET_GDR_LEVEL");

    return level && *level && strcmp(level, "LOC");
}

/* Init and Setup; the handle of a receiver goes to its sender. */
static int want_setup(struct ncclComm *comm, const struct want *want)
{
    struct wire *wire = wire_of(comm, want);
    const struct peer_info *mine = &comm->peers[comm->rank];
    int error, use_gdr = gdr_is_on(), is_own;
    struct setup_response response;
    struct init_response made;

    wire->proxy_rank = want->sends ? sender_proxy(comm, comm->rank, want->peer) : comm->rank;
    is_own = wire->proxy_rank == comm->rank;
    struct client *client = client_of(comm, wire->proxy_rank, &error);
    struct init_request init = {2, want->sends, mine->local_rank, comm->top_ranks[comm->rank], is_own};
    struct setup_request setup = {.tp_rank = comm->top_ranks[comm->rank],
                                  .tp_local_rank = mine->local_rank,
                                  .tp_remote_rank = comm->top_ranks[want->peer],
                                  .shared = want->connection == P2P_CONN,
                                  .net_device = comm->peers[wire->proxy_rank].net_device,
                                  .use_gdr = use_gdr,
                                  .need_flush = use_gdr && !want->sends,
                                  .channel = want->channel,
                                  .connection = want->connection,
                                  .same_device = 1};
    if (!error)
        error = client_call(client, MESSAGE_INIT, NULL, &init, sizeof init, &made, sizeof made);
    if (error)
        return error;
    wire->connection = made.connection;
    if (is_own)
        label_set(comm, want, wire->connection);
    error = client_call(client, MESSAGE_SETUP, wire->connection, &setup, sizeof setup, &response, sizeof response);
    if (error || want->sends)
        return error;
    return bootstrap_send(comm->bootstrap, want->peer, want_tag(want), response.handle, sizeof response.handle);
}

static int want_connect(struct ncclComm *comm, const struct want *want)
{
    struct wire *wire = wire_of(comm, want);
    char handle[NET_HANDLE_BYTES] = {0};
    int error = 0;

    if (want->sends)
        error = bootstrap_receive(comm->bootstrap, want->peer, want_tag(want), handle, sizeof handle);
    if (error)
        return error;
    if (!want->sends) /* the receiver wants to know whose proxy has the other end */
        memcpy(handle, &comm->top_ranks[sender_proxy(comm, want->peer, comm->rank)], sizeof(int));
    return client_ask(&comm->clients[wire->proxy_rank], MESSAGE_CONNECT, wire->connection, handle,
                      want->sends ? (int)sizeof handle : (int)sizeof(int), sizeof(struct connect_response), wire);
}

static int answer_take(struct ncclComm *comm, int proxy_rank)
{
    struct connect_response response;
    void *operation;
    int error = client_answer(&comm->clients[proxy_rank], &operation, &response, sizeof response);

    if (error)
        return error;
    struct wire *wire = operation;
    return lane_attach(&wire->lane, response.pid, response.fd, response.step_bytes);
}

static void conn_describe(struct ncclComm *comm, const struct want *want)
{
    struct peer *peer = &comm->channels[want->channel].peers[want->peer];

    lane_describe(&wire_of(comm, want)->lane,
                  want->sends ? &peer->send[want->connection] : &peer->recv[want->connection]);
}

static int wants_connect(struct ncclComm *comm, const struct wants *wants)
{
    int error = 0;

    for (int sends = 0; sends < 2; sends++)
        for (int i = 0; !error && i < wants->count; i++)
            if (wants->items[i].sends == sends)
                error = want_setup(comm, &wants->items[i]);
    for (int i = 0; !error && i < wants->count; i++)
        error = want_connect(comm, &wants->items[i]);
    for (int i = 0; !error && i < wants->count; i++)
        error = answer_take(comm, wire_of(comm, &wants->items[i])->proxy_rank);
    for (int i = 0; !error && i < wants->count; i++)
        conn_describe(comm, &wants->items[i]);
    free(wants->items);
    return error;
}

/* Both ways with the parent and the children; one of them may be a neighbour in the ring, whose connection it shares.
 */
static void tree_add(struct wants *wants, const struct ncclComm *comm, int channel)
{
    const struct channel *here = &comm->channels[channel];
    const int peers[] = {here->tree.up, here->tree.down[0], here->tree.down[1], here->tree.down[2]};

    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        if (peers[i] >= 0 && peers[i] != here->ring.prev)
            wants_add(wants, comm, &(struct want){channel, peers[i], 0, false});
        if (peers[i] >= 0 && peers[i] != here->ring.next)
            wants_add(wants, comm, &(struct want){channel, peers[i], 0, true});
    }
}

int wiring_connect_rings(struct ncclComm *comm)
{
    struct wants wants = {NULL, 0};

    if (comm->rings_connected || comm->ranks == 1)
        return 0;
    for (int i = 0; i < comm->channels_count; i++) {
        wants_add(&wants, comm, &(struct want){i, comm->channels[i].ring.prev, 0, false});
        wants_add(&wants, comm, &(struct want){i, comm->channels[i].ring.next, 0, true});
        if (tree_is_wanted())
            tree_add(&wants, comm, i);
    }
    int error = wants_connect(comm, &wants);
    comm->rings_connected = !error;
    return error;
}

int wiring_connect_peers(struct ncclComm *comm, const bool *sends, const bool *receives)
{
    struct wants wants = {NULL, 0};

    for (int step = 1; step < comm->ranks; step++) {
        int to = (comm->rank + step) % comm->ranks, from = (comm->rank + comm->ranks - step) % comm->ranks;
        for (int i = 0; i < comm->channels_count; i++) {
            if (receives[from])
                wants_add(&wants, comm, &(struct want){i, from, P2P_CONN, false});
            if (sends[to])
                wants_add(&wants, comm, &(struct want){i, to, P2P_CONN, true});
        }
    }
    return wants_connect(comm, &wants);
}

int wiring_connect_mesh(struct ncclComm *comm)
{
    struct wants wants = {NULL, 0};

    for (int step = 1; step < comm->ranks; step++) {
        int to = (comm->rank + step) % comm->ranks, from = (comm->rank + comm->ranks - step) % comm->ranks;
        wants_add(&wants, comm, &(struct want){0, from, ONE_SIDED_CONN, false});
        wants_add(&wants, comm, &(struct want){0, to, ONE_SIDED_CONN, true});
    }
    return wants_connect(comm, &wants);
}

void wiring_close(struct ncclComm *comm)
{
    int count = comm->wires ? comm->channels_count * comm->ranks * LANE_CONNS * 2 : 0;

    for (int i = 0; i < count; i++) {
        struct wire *wire = &comm->wires[i];
        if (wire->connection)
            client_call(&comm->clients[wire->proxy_rank], MESSAGE_CLOSE, wire->connection, "", 0, NULL, 0);
        lane_close(&wire->lane);
    }
}
