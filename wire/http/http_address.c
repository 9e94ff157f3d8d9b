/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses to listen at. Invariant: nothing that others can reach is listened at unless its address was written out;
 * names are not resolved, since what they lead to may change.
 */
#include "wire/http/http_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/log.h"

#define BACKLOG 32

union socket_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static bool read_port(const char *text, uint16_t *port)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > UINT16_MAX)
        return false;
    *port = (uint16_t)value;
    return true;
}

/* The text before the port: "" (none), HOST or [HOST]. */
static bool read_host(const char *text, size_t length, char *host, size_t capacity_bytes)
{
    if (length == 0)
        return snprintf(host, capacity_bytes, "127.0.0.1") > 0;
    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    if (length >= capacity_bytes)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    if (strcmp(host, "localhost") == 0)
        snprintf(host, capacity_bytes, "127.0.0.1");
    return true;
}

static bool host_is_loopback(const char *host, bool *known)
{
    struct in_addr four;
    struct in6_addr six;

    *known = true;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &six) == 1)
        return IN6_IS_ADDR_LOOPBACK(&six);
    *known = false;
    return false;
}

int http_address_read(struct http_address *address, const char *text)
{
    const char *colon = strrchr(text, ':');
    const char *port = colon == NULL ? text : colon + 1;
    struct http_address read = {0};
    bool known = false;

    if (colon != text && read_port(port, &read.port) &&
        read_host(text, colon == NULL ? 0 : (size_t)(colon - text), read.host, sizeof read.host))
        read.open_to_others = !host_is_loopback(read.host, &known);
    if (!known)
        return log_error_return(
            -EINVAL,
            "%s is no address to listen at; give PORT or 127.0.0.1:PORT for this machine alone, "
            "ADDRESS:PORT or [ADDRESS]:PORT for those that reach that address, 0.0.0.0:PORT for all",
            text);
    *address = read;
    return 0;
}

static socklen_t fill(union socket_address *socket_address, const struct http_address *address)
{
    memset(socket_address, 0, sizeof *socket_address);
    if (strchr(address->host, ':') == NULL) {
        socket_address->four.sin_family = AF_INET;
        socket_address->four.sin_port = htons(address->port);
        inet_pton(AF_INET, address->host, &socket_address->four.sin_addr);
        return sizeof socket_address->four;
    }
    socket_address->six.sin6_family = AF_INET6;
    socket_address->six.sin6_port = htons(address->port);
    inet_pton(AF_INET6, address->host, &socket_address->six.sin6_addr);
    return sizeof socket_address->six;
}

static int bind_and_listen(int descriptor, struct http_address *address)
{
    union socket_address socket_address;
    socklen_t length = fill(&socket_address, address);
    const int yes = 1;

    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(descriptor, &socket_address.any, length) != 0 || listen(descriptor, BACKLOG) != 0 ||
        getsockname(descriptor, &socket_address.any, &length) != 0)
        return -errno;
    address->port =
        ntohs(socket_address.any.sa_family == AF_INET ? socket_address.four.sin_port : socket_address.six.sin6_port);
    return 0;
}

int http_address_listen(struct http_address *address)
{
    int family = strchr(address->host, ':') == NULL ? AF_INET : AF_INET6;
    int descriptor = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = descriptor < 0 ? -errno : bind_and_listen(descriptor, address);

    if (error == 0)
        return descriptor;
    if (descriptor >= 0)
        close(descriptor);
    return log_error_return(error, "cannot listen at %s port %u: %s", address->host, address->port, strerror(-error));
}
