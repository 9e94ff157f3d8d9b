/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a server listens. "9419" and "localhost:9419" are this machine alone; an address that others can reach is asked
 * for by name: "10.0.0.5:9419", "[fd00::5]:9419", or "0.0.0.0:9419" and "[::]:9419" for all of the machine's. Port 0:
 * one that is free. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct http_address {
    char host[64]; /* a numeric address */
    uint16_t port;
    bool open_to_others; /* not a loopback address */
};

/* -EINVAL, logged with what is right. */
int http_address_read(struct http_address *address, const char *text);

/* A listening socket, or -errno, logged. Sets the address's port to the one that it has. */
int http_address_listen(struct http_address *address);
