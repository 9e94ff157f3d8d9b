/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of clients. Invariant: it is a ring through the head, which those that are not listed stand outside of. */
#include "wire/http/http_client.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

void http_clients_init(struct http_clients *clients)
{
    *clients = (struct http_clients){0};
    clients->head.next = clients->head.previous = &clients->head;
}

void http_client_keep(struct http_client *client)
{
    if (!client->listed)
        return;
    client->previous->next = client->next;
    client->next->previous = client->previous;
    client->listed = false;
}

void http_client_renew(struct http_clients *clients, struct http_client *client)
{
    http_client_keep(client);
    client->next = &clients->head;
    client->previous = clients->head.previous;
    client->previous->next = client;
    clients->head.previous = client;
    client->listed = true;
}

struct http_client *http_client_create(struct http_clients *clients, int descriptor)
{
    struct http_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        abort();
    client->descriptor = descriptor;
    clients->count++;
    http_client_renew(clients, client);
    return client;
}

void http_client_destroy(struct http_clients *clients, struct http_client *client)
{
    http_client_keep(client);
    clients->count--;
    free(client);
}

void http_clients_cut_oldest(struct http_clients *clients)
{
    struct http_client *oldest = clients->head.next;

    if (oldest == &clients->head)
        return;
    http_client_keep(oldest);
    shutdown(oldest->descriptor, SHUT_RDWR);
}

void http_client_reached(const struct http_client *client, char text[INET6_ADDRSTRLEN])
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } own = {0};
    socklen_t length = sizeof own;

    text[0] = '\0';
    if (getsockname(client->descriptor, &own.any, &length) != 0)
        return;
    if (own.any.sa_family == AF_INET)
        inet_ntop(AF_INET, &own.four.sin_addr, text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, &own.six.sin6_addr, text, INET6_ADDRSTRLEN);
}
