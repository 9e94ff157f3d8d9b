/* SPDX-License-Identifier: BSD-2-Clause */
/* A rank's side of the talk with a proxy's service thread. Used by one thread at a time; errors are those of tcp.h. */
#pragma once

#include "proxy/message.h"

#include <netinet/in.h>

struct client {
    int fd;
    const volatile uint32_t *abort_flag;
};

int client_open(struct client *client, const struct sockaddr_in *address, const volatile uint32_t *abort_flag);
void client_close(struct client *client);

/* Asks and waits for the answer to it. */
int client_call(struct client *client, enum message_type type, void *connection, const void *request, int request_bytes,
                void *response, int response_bytes);

/* Only asks; client_answer takes the answers, in any order: `operation` tells which it is. */
int client_ask(struct client *client, enum message_type type, void *connection, const void *request, int request_bytes,
               int response_bytes, void *operation);
int client_answer(struct client *client, void **operation, void *response, int response_bytes);
