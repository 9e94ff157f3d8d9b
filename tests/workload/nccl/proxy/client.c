/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests are sent field by field, as NCCL does. */
#include "proxy/client.h"

#include "net/tcp.h"

#include <errno.h>
#include <unistd.h>

int client_open(struct client *client, const struct sockaddr_in *address, const volatile uint32_t *abort_flag)
{
    client->fd = tcp_connect(address);
    client->abort_flag = abort_flag;
    return client->fd < 0 ? client->fd : 0;
}

void client_close(struct client *client)
{
    if (client->fd > 0)
        close(client->fd);
    client->fd = 0;
}

int client_ask(struct client *client, enum message_type type, void *connection, const void *request, int request_bytes,
               int response_bytes, void *operation)
{
    const int number = (int)type;
    const struct {
        const void *from;
        size_t size_bytes;
    } parts[] = {{&number, sizeof number},
                 {&connection, sizeof connection},
                 {&request_bytes, sizeof request_bytes},
                 {&response_bytes, sizeof response_bytes},
                 {request, (size_t)request_bytes},
                 {&operation, sizeof operation}};
    int error = 0;

    for (size_t i = 0; !error && i < sizeof parts / sizeof parts[0]; i++)
        error = tcp_send(client->fd, parts[i].from, parts[i].size_bytes);
    return error;
}

int client_answer(struct client *client, void **operation, void *response, int response_bytes)
{
    struct response_header header;
    int error = tcp_receive(client->fd, &header, sizeof header, client->abort_flag);

    if (!error && header.size_bytes > response_bytes)
        error = -EPROTO;
    if (!error && header.size_bytes)
        error = tcp_receive(client->fd, response, (size_t)header.size_bytes, client->abort_flag);
    if (error)
        return error;
    *operation = header.operation;
    return header.result;
}

int client_call(struct client *client, enum message_type type, void *connection, const void *request, int request_bytes,
                void *response, int response_bytes)
{
    void *operation;
    int error = client_ask(client, type, connection, request, request_bytes, response_bytes, &operation);

    return error ? error : client_answer(client, &operation, response, response_bytes);
}
