/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads requests from its clients one after the other; connecting goes on between them, since the other side's service
 * thread may need this one first.
 */
#include "proxy/service.h"

#include "net/tcp.h"
#include "proxy/message.h"

#include "setting.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS_MAX = 128, PENDING_MAX = 512, PENDING_WAIT_MS = 1, IDLE_WAIT_MS = 200 };

struct request { /* as it was read */
    int type, request_bytes, response_bytes;
    struct connection *connection;
    void *operation;
    union {
        struct init_request init;
        struct setup_request setup;
        char handle[NET_HANDLE_BYTES];
        char bytes[256];
    };
};

struct pending { /* a connect that is under way */
    struct connection *connection;
    void *operation;
    int client_fd;
};

struct loop { /* of the thread alone */
    struct service *service;
    int clients[CLIENTS_MAX], clients_count, pending_count;
    struct pending pending[PENDING_MAX];
    bool stop, abort;
};

static int respond(int fd, void *operation, int result, const void *response, int size_bytes)
{
    struct response_header header = {operation, result, size_bytes};
    int error = tcp_send(fd, &header, sizeof header);

    return error || !size_bytes ? error : tcp_send(fd, response, (size_t)size_bytes);
}

static int request_read(int fd, struct request *request)
{
    const struct {
        void *to;
        size_t size_bytes;
    } parts[] = {{&request->type, sizeof(int)},
                 {&request->connection, sizeof(void *)},
                 {&request->request_bytes, sizeof(int)},
                 {&request->response_bytes, sizeof(int)}};
    int error = 0;

    for (size_t i = 0; !error && i < sizeof parts / sizeof parts[0]; i++)
        error = tcp_receive(fd, parts[i].to, parts[i].size_bytes, NULL);
    if (!error && (request->request_bytes < 0 || (size_t)request->request_bytes > sizeof request->bytes))
        error = -EPROTO;
    if (!error)
        error = tcp_receive(fd, request->bytes, (size_t)request->request_bytes, NULL);
    return error ? error : tcp_receive(fd, &request->operation, sizeof request->operation, NULL);
}

static int connection_init(struct loop *loop, const struct request *request, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct init_response response = {connection};
    struct service *service = loop->service;

    connection->service = service;
    connection->carrier.sends = request->init.send;
    connection->next = service->connections;
    service->connections = connection;
    int error = progress_start(&service->progress);
    return respond(fd, request->operation, error, &response, sizeof response);
}

static int connection_setup(const struct request *request, int fd)
{
    struct connection *connection = request->connection;
    const struct service *service = connection->service;
    const struct setup_request *setup = &request->setup;
    struct setup_response response = {{0}};

    connection->device = setup->net_device;
    connection->needs_flush = setup->need_flush;
    connection->is_shared = setup->shared && net_receives() > 1 && setting_read("NCCL_NET_SHARED_COMMS", 0);
    connection->far_proxy = setup->tp_remote_rank;
    connection->carrier.tag = (uint32_t)(connection->carrier.sends ? setup->tp_rank : setup->tp_remote_rank);
    if (!connection->label.comm)
        connection->label =
            (struct net_label){.comm = service->comm,
                               .comm_hash = service->comm_hash,
                               .rank = service->tp_rank,
                               .peer = setup->tp_remote_rank,
                               .origin = connection->carrier.sends ? setup->tp_rank : setup->tp_remote_rank,
                               .channel = setup->channel,
                               .connection = setup->connection,
                               .is_shared = setup->shared};
    connection->label.owner_rank = service->tp_rank;
    connection->label.tp_rank = setup->tp_rank;
    connection->label.tp_peer = setup->tp_remote_rank;
    if (connection->carrier.sends)
        return respond(fd, request->operation, 0, NULL, 0);
    int error = net_listen(connection->device, &connection->listener, response.handle);
    return respond(fd, request->operation, error, &response, sizeof response);
}

/* A connection to the same rank's proxy, over the same device and channel, which carries other ranks' messages too. */
static struct connection *partner_find(const struct connection *connection)
{
    struct connection *other = connection->is_shared ? connection->service->connections : NULL;

    while (other && (other == connection || !other->is_shared || !other->carrier.end ||
                     other->carrier.sends != connection->carrier.sends || other->device != connection->device ||
                     other->far_proxy != connection->far_proxy || other->label.channel != connection->label.channel))
        other = other->next;
    return other;
}

/* One look at a connection that is being made; -EAGAIN while it is not done. */
static int connect_step(struct connection *connection)
{
    struct carrier *carrier = &connection->carrier;
    struct connection *partner = carrier->end ? NULL : partner_find(connection);
    int error = 0;

    if (partner && !partner->is_ready)
        return -EAGAIN;
    if (partner) {
        carrier->end = partner->carrier.end;
        net_join(carrier->end, &connection->label);
        return 0;
    }
    if (!carrier->end && carrier->sends)
        error = net_connect(connection->device, connection->handle, &connection->label, &carrier->end);
    else if (!carrier->end)
        error = net_accept(connection->listener, connection->needs_flush, &connection->label, &carrier->end);
    return error ? error : net_ready(carrier->end);
}

static int connect_finish(struct connection *connection)
{
    struct carrier *carrier = &connection->carrier;
    struct service *service = connection->service;
    int error = lane_create(&carrier->lane, service->step_bytes);

    if (!error)
        error = net_register(carrier->end, carrier->lane.buffer, (size_t)service->step_bytes * STEPS);
    if (error)
        return error;
    connection->is_ready = 1;
    progress_add(&service->progress, carrier);
    return 0;
}

static void pending_step(struct loop *loop, int number)
{
    struct pending *pending = &loop->pending[number];
    struct connection *connection = pending->connection;
    int error = connect_step(connection);

    if (error == -EAGAIN)
        return;
    if (!error)
        error = connect_finish(connection);
    if (error)
        setting_say(1, "a connection of rank %d failed: %s", loop->service->tp_rank, strerror(-error));
    struct connect_response response = {getpid(), connection->carrier.lane.fd, connection->carrier.lane.step_bytes};
    respond(pending->client_fd, pending->operation, error, &response, sizeof response);
    *pending = loop->pending[--loop->pending_count];
}

static int connection_connect(struct loop *loop, const struct request *request, int fd)
{
    if (loop->pending_count == PENDING_MAX)
        return respond(fd, request->operation, -EBUSY, NULL, 0);
    if (request->connection->carrier.sends)
        memcpy(request->connection->handle, request->handle, sizeof request->connection->handle);
    else
        memcpy(&request->connection->far_proxy, request->bytes, sizeof request->connection->far_proxy);
    loop->pending[loop->pending_count++] = (struct pending){request->connection, request->operation, fd};
    return 0;
}

/* It is in the service's list no more. */
static void connection_free(struct connection *connection)
{
    const struct connection *other = connection->service->connections;

    progress_remove(&connection->service->progress, &connection->carrier);
    while (other && other->carrier.end != connection->carrier.end)
        other = other->next;
    if (connection->carrier.end && !other)
        net_close(connection->carrier.end);
    if (connection->listener)
        net_listener_close(connection->listener);
    lane_close(&connection->carrier.lane);
    free(connection);
}

static int connection_close(struct loop *loop, const struct request *request, int fd)
{
    struct connection **at = &loop->service->connections;

    while (*at && *at != request->connection)
        at = &(*at)->next;
    if (*at) {
        *at = request->connection->next;
        connection_free(request->connection);
    }
    return respond(fd, request->operation, 0, NULL, 0);
}

static int request_serve(struct loop *loop, const struct request *request, int fd)
{
    switch (request->type) {
    case MESSAGE_INIT:
        return connection_init(loop, request, fd);
    case MESSAGE_SETUP:
        return connection_setup(request, fd);
    case MESSAGE_CONNECT:
        return connection_connect(loop, request, fd);
    case MESSAGE_CLOSE:
        return connection_close(loop, request, fd);
    case MESSAGE_ABORT:
        loop->abort = true;
        return 0;
    case MESSAGE_STOP:
        loop->stop = true;
        return 0;
    }
    return -EPROTO;
}

static void client_drop(struct loop *loop, int number)
{
    for (int i = loop->pending_count - 1; i >= 0; i--)
        if (loop->pending[i].client_fd == loop->clients[number])
            loop->pending[i] = loop->pending[--loop->pending_count];
    close(loop->clients[number]);
    loop->clients[number] = loop->clients[--loop->clients_count];
}

static void clients_poll(struct loop *loop)
{
    struct pollfd waits[CLIENTS_MAX + 1];
    struct request request = {0};
    int count = loop->clients_count;

    for (int i = 0; i < count; i++)
        waits[i] = (struct pollfd){loop->clients[i], POLLIN, 0};
    waits[count] = (struct pollfd){loop->service->listen_fd, POLLIN, 0};
    if (poll(waits, (nfds_t)count + 1, loop->pending_count ? PENDING_WAIT_MS : IDLE_WAIT_MS) <= 0)
        return;
    for (int i = count - 1; i >= 0; i--) {
        if (!waits[i].revents)
            continue;
        if (request_read(waits[i].fd, &request) || request_serve(loop, &request, waits[i].fd))
            client_drop(loop, i);
    }
    if (waits[count].revents && loop->clients_count < CLIENTS_MAX) {
        int fd = tcp_accept(loop->service->listen_fd, NULL);
        if (fd >= 0)
            loop->clients[loop->clients_count++] = fd;
    }
}

static void *service_run(void *argument)
{
    struct service *service = argument;
    struct loop *loop = calloc(1, sizeof *loop);
    struct connection *connection;

    loop->service = service;
    while (!loop->abort && !(loop->stop && !loop->clients_count)) { /* neighbours may still need it */
        clients_poll(loop);
        for (int i = loop->pending_count - 1; i >= 0; i--)
            pending_step(loop, i);
    }
    while ((connection = service->connections)) {
        service->connections = connection->next;
        connection_free(connection);
    }
    progress_stop(&service->progress);
    for (int i = 0; i < loop->clients_count; i++)
        close(loop->clients[i]);
    free(loop);
    return NULL;
}

int service_create(struct service **service, const struct service *first)
{
    struct service *fresh = malloc(sizeof *fresh);

    *fresh = *first;
    fresh->references = 1;
    fresh->connections = NULL;
    progress_init(&fresh->progress);
    fresh->listen_fd = tcp_listen(&fresh->address);
    int error = fresh->listen_fd < 0 ? fresh->listen_fd : -pthread_create(&fresh->thread, NULL, service_run, fresh);
    if (error) {
        if (fresh->listen_fd >= 0)
            close(fresh->listen_fd);
        free(fresh);
        return error;
    }
    *service = fresh;
    return 0;
}

void service_join(struct service *service)
{
    pthread_join(service->thread, NULL);
    close(service->listen_fd);
    free(service);
}
