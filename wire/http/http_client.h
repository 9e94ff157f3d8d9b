/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is connected, in the order of their last request: which one makes room when there are too many. One thread.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>

struct http_client {
    struct http_client *next;
    struct http_client *previous;
    int descriptor; /* of its connection, which somebody else closes */
    bool listed;    /* it may have to make room */
};

struct http_clients {
    struct http_client head; /* its next is the oldest */
    unsigned count;          /* also of those that are not listed */
};

void http_clients_init(struct http_clients *clients);

/* As the newest. */
struct http_client *http_client_create(struct http_clients *clients, int descriptor);
void http_client_destroy(struct http_clients *clients, struct http_client *client);

/* It has asked for something: it is the newest. */
void http_client_renew(struct http_clients *clients, struct http_client *client);

/* It need not make room, until it is renewed. */
void http_client_keep(struct http_client *client);

/* The oldest one's connection ends, whatever it waits for. Nothing where none may have to go. */
void http_clients_cut_oldest(struct http_clients *clients);

/* The numeric address of this machine that it came to; "" where that is not known. */
void http_client_reached(const struct http_client *client, char text[INET6_ADDRSTRLEN]);
