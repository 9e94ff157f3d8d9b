/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP connection for each end: a message is its length and then its bytes. Requests are served in their order by
 * whoever tests; nothing blocks.
 */
#include "net/net_private.h"
#include "net/tcp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct net_listener {
    int fd;
};

struct request {
    char *memory;
    uint64_t size_bytes; /* of a receive: the room, until the length has come */
    size_t done_bytes;   /* of the length and what follows it */
};

struct net_end {
    int fd;
    bool sends;
    uint64_t first, next; /* requests before `first` are done, those from `next` on are unused */
    struct request requests[NET_REQUESTS];
};

static int socket_open(void)
{
    return 1;
}

static int socket_listen(int device, struct net_listener **listener, void *handle)
{
    struct sockaddr_in address;
    int fd = tcp_listen(&address);

    (void)device;
    if (fd < 0)
        return fd;
    *listener = malloc(sizeof **listener);
    (*listener)->fd = fd;
    memset(handle, 0, NET_HANDLE_BYTES);
    memcpy(handle, &address, sizeof address);
    return 0;
}

static void socket_listener_close(struct net_listener *listener)
{
    close(listener->fd);
    free(listener);
}

static int end_create(int fd, bool sends, struct net_end **end)
{
    if (fd < 0)
        return fd;
    *end = calloc(1, sizeof **end);
    **end = (struct net_end){.fd = fd, .sends = sends};
    return 0;
}

static int socket_connect(int device, const void *handle, const struct net_label *label, struct net_end **end)
{
    struct sockaddr_in address;

    (void)device, (void)label;
    memcpy(&address, handle, sizeof address);
    return end_create(tcp_connect(&address), true, end);
}

static int socket_accept(struct net_listener *listener, int needs_flush, const struct net_label *label,
                         struct net_end **end)
{
    (void)needs_flush, (void)label;
    if (!tcp_is_readable(listener->fd))
        return -EAGAIN;
    return end_create(tcp_accept(listener->fd, NULL), false, end);
}

static int socket_ready(struct net_end *end)
{
    (void)end;
    return 0;
}

static int socket_register(struct net_end *end, void *memory, size_t size_bytes)
{
    (void)end, (void)memory, (void)size_bytes;
    return 0;
}

static int request_add(struct net_end *end, void *memory, uint64_t size_bytes, int *request)
{
    if (end->next - end->first == NET_REQUESTS)
        return -EAGAIN;
    *request = (int)(end->next % NET_REQUESTS);
    end->requests[end->next++ % NET_REQUESTS] = (struct request){memory, size_bytes, 0};
    return 0;
}

static int socket_send(struct net_end *end, const struct net_piece *piece, int *request)
{
    return request_add(end, piece->memory, piece->size_bytes, request);
}

static int socket_receive(struct net_end *end, const struct net_piece *pieces, int count, int *request)
{
    return count == 1 ? request_add(end, pieces->memory, pieces->size_bytes, request) : -EINVAL;
}

static int socket_flush(struct net_end *end, void *memory, int *request)
{
    (void)end, (void)memory, (void)request;
    return -EOPNOTSUPP;
}

/* Moves what goes at once of the length (first) or the bytes; the number of bytes, or -errno. */
static ssize_t request_move(struct net_end *end, struct request *request)
{
    const size_t length_bytes = sizeof request->size_bytes;
    bool is_length = request->done_bytes < length_bytes;
    char *at = is_length ? (char *)&request->size_bytes + request->done_bytes
                         : request->memory + (request->done_bytes - length_bytes);
    size_t left =
        is_length ? length_bytes - request->done_bytes : request->size_bytes - (request->done_bytes - length_bytes);
    ssize_t moved =
        end->sends ? send(end->fd, at, left, MSG_DONTWAIT | MSG_NOSIGNAL) : recv(end->fd, at, left, MSG_DONTWAIT);

    if (moved < 0)
        return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EREMOTEIO;
    return moved == 0 ? -EREMOTEIO : moved;
}

static int request_progress(struct net_end *end, struct request *request)
{
    while (request->done_bytes < sizeof request->size_bytes ||
           request->done_bytes < sizeof request->size_bytes + request->size_bytes) {
        ssize_t moved = request_move(end, request);
        if (moved < 0)
            return (int)moved;
        request->done_bytes += (size_t)moved;
    }
    end->first++;
    return 0;
}

static int socket_test(struct net_end *end, int request, size_t *size_bytes)
{
    if (end->first == end->next || (int)(end->first % NET_REQUESTS) != request)
        return -EAGAIN;
    int error = request_progress(end, &end->requests[request]);
    if (!error)
        *size_bytes = end->requests[request].size_bytes;
    return error;
}

static void socket_close(struct net_end *end)
{
    close(end->fd);
    free(end);
}

const struct net_kind net_socket = {
    .name = "Socket",
    .receives = 1,
    .open = socket_open,
    .listen = socket_listen,
    .listener_close = socket_listener_close,
    .connect = socket_connect,
    .accept = socket_accept,
    .ready = socket_ready,
    .register_memory = socket_register,
    .send = socket_send,
    .receive = socket_receive,
    .flush = socket_flush,
    .test = socket_test,
    .close = socket_close,
};
