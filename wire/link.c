/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links over nanomsg, and nothing else touches nanomsg. PUSH and PULL, because they refuse a message with EAGAIN where
 * PUB would drop it in silence; REQ and REP for clock exchanges.
 * Invariants: no call waits; a message that goes beyond the machine, or any message of a link with a key, is sealed; a
 * message that does not open, or opens a second time, is never handed on.
 */
#include "wire/link.h"

#include "wire/log.h"
#include "wire/seal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <nanomsg/nn.h>
#include <nanomsg/pipeline.h>
#include <nanomsg/reqrep.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOCKET_BUFFER_BYTES (1024 * 1024)
#define RECONNECT_MIN_MS    20
#define RECONNECT_MAX_MS    1000
#define READ_GRACE_MS       200
#define REJECTED_RUN_MAX    64 /* bad messages that one link_receive passes over, so that a flood cannot hold it */

struct link {
    int socket;
    int send_descriptor;
    int receive_descriptor;
    enum link_role role;
    struct seal *seal;
    struct link_counts counts;
};

struct role_traits {
    int protocol;
    bool binds;
    bool sends;
    bool receives;
};

static const struct role_traits role_traits[] = {
    [LINK_SEND] = {NN_PUSH, false, true, false},
    [LINK_RECEIVE] = {NN_PULL, true, false, true},
    [LINK_ASK] = {NN_REQ, false, true, true},
    [LINK_ANSWER] = {NN_REP, true, true, true},
};

/* nanomsg's error as -errno; its own EFSM (an answer without a question) and ETERM have no number in errno.h. */
static int last_error(void)
{
    int error = nn_errno();

    if (error == EFSM)
        return -EPROTO;
    return error == ETERM ? -ESHUTDOWN : -error;
}

static bool host_is_loopback(const char *host)
{
    struct in_addr address;
    struct in6_addr address6;

    if (strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &address) == 1)
        return ntohl(address.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &address6) == 1 && IN6_IS_ADDR_LOOPBACK(&address6);
}

/* The host of "tcp://HOST:PORT" or "tcp://[HOST]:PORT". */
static int tcp_host(const char *url, char *host, size_t capacity_bytes)
{
    const char *start = url + strlen("tcp://");
    const char *colon = strrchr(start, ':');

    if (colon == NULL || colon == start || colon[1] == '\0')
        return -EINVAL;
    size_t length = (size_t)(colon - start);
    if (length > 2 && start[0] == '[' && start[length - 1] == ']') {
        start++;
        length -= 2;
    }
    if (length >= capacity_bytes)
        return -EINVAL;
    memcpy(host, start, length);
    host[length] = '\0';
    return 0;
}

static int check_url(const char *url, const char *key_file)
{
    char host[256];

    if (strncmp(url, "ipc://", 6) == 0 || strncmp(url, "inproc://", 9) == 0)
        return 0;
    if (strncmp(url, "tcp://", 6) != 0 || tcp_host(url, host, sizeof host) != 0)
        return log_error_return(-EINVAL, "link %s: not a URL that is known; give ipc://PATH or tcp://HOST:PORT", url);
    if (key_file == NULL && !host_is_loopback(host))
        return log_error_return(-EPERM,
                                "link %s leaves this machine, and no key file is given; make a key with: (umask 077; "
                                "head -c 32 /dev/urandom | od -An -v -tx1 > qpscope.key), copy it to all machines, and "
                                "give it to each program with --key-file qpscope.key",
                                url);
    return 0;
}

struct socket_setting {
    int level;
    int option;
    int value;
};

/* IPv6 for a literal in brackets only: nanomsg 1.1.5 aborts when an IPv4 peer is called with IPv6 allowed. */
static int set_options(struct link *link, const char *url)
{
    const struct socket_setting settings[] = {
        {NN_SOL_SOCKET, NN_SNDBUF, SOCKET_BUFFER_BYTES},
        {NN_SOL_SOCKET, NN_RCVBUF, SOCKET_BUFFER_BYTES},
        {NN_SOL_SOCKET, NN_RCVMAXSIZE, LINK_MESSAGE_BYTES_MAX + SEAL_OVERHEAD_BYTES},
        {NN_SOL_SOCKET, NN_RECONNECT_IVL, RECONNECT_MIN_MS},
        {NN_SOL_SOCKET, NN_RECONNECT_IVL_MAX, RECONNECT_MAX_MS},
        {NN_SOL_SOCKET, NN_IPV4ONLY, strchr(url, '[') == NULL},
    };
    int never_ms = INT_MAX;

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (nn_setsockopt(link->socket, settings[i].level, settings[i].option, &settings[i].value, sizeof(int)) < 0)
            return last_error();
    /* A question is never asked again by itself: an old time stamp would come back as a new sample. */
    if (link->role == LINK_ASK &&
        nn_setsockopt(link->socket, NN_REQ, NN_REQ_RESEND_IVL, &never_ms, sizeof never_ms) < 0)
        return last_error();
    return 0;
}

static int get_descriptors(struct link *link)
{
    size_t length = sizeof(int);

    if (role_traits[link->role].sends &&
        nn_getsockopt(link->socket, NN_SOL_SOCKET, NN_SNDFD, &link->send_descriptor, &length) < 0)
        return last_error();
    if (role_traits[link->role].receives &&
        nn_getsockopt(link->socket, NN_SOL_SOCKET, NN_RCVFD, &link->receive_descriptor, &length) < 0)
        return last_error();
    return 0;
}

static int attach(struct link *link, const char *url)
{
    bool binds = role_traits[link->role].binds;
    int end = binds ? nn_bind(link->socket, url) : nn_connect(link->socket, url);

    if (end >= 0)
        return 0;
    int error = last_error();
    if (error == -EADDRINUSE)
        return log_error_return(error, "link %s: another program listens there already; stop it or choose another URL",
                                url);
    return log_error_return(error, "link %s: cannot %s: %s", url, binds ? "listen" : "connect", nn_strerror(-error));
}

static int open_socket(struct link *link, const char *url)
{
    link->socket = nn_socket(AF_SP, role_traits[link->role].protocol);
    if (link->socket < 0)
        return log_error_return(last_error(), "link %s: no socket: %s", url, nn_strerror(nn_errno()));
    int error = set_options(link, url);
    if (error == 0)
        error = get_descriptors(link);
    if (error != 0)
        return log_error_return(error, "link %s: cannot be set up: %s", url, strerror(-error));
    return attach(link, url);
}

int link_open(struct link **link, const struct link_options *options)
{
    int error = check_url(options->url, options->key_file);
    if (error != 0)
        return error;
    struct link *made = calloc(1, sizeof *made);
    if (made == NULL)
        return -ENOMEM;
    *made = (struct link){.socket = -1, .send_descriptor = -1, .receive_descriptor = -1, .role = options->role};
    if (options->key_file != NULL)
        error = seal_create(&made->seal, options->key_file, options->emitter_id, options->boot_id);
    if (error == 0)
        error = open_socket(made, options->url);
    if (error != 0) {
        link_close(&made, 0);
        return error;
    }
    *link = made;
    return 0;
}

static bool is_writable(const struct link *link, int timeout_ms)
{
    struct pollfd poller = {.fd = link->send_descriptor, .events = POLLIN}; /* nanomsg: readable means "can send" */

    return poll(&poller, 1, timeout_ms) == 1 && (poller.revents & POLLIN) != 0;
}

static int send_clear(struct link *link, const void *bytes, size_t length_bytes)
{
    return nn_send(link->socket, bytes, length_bytes, NN_DONTWAIT) < 0 ? last_error() : 0;
}

/* Asks for room first: sealing what is then refused would cost the sender for nothing. */
static int send_sealed(struct link *link, const void *bytes, size_t length_bytes)
{
    if (link->role == LINK_SEND && !is_writable(link, 0))
        return -EAGAIN;
    void *message = nn_allocmsg(length_bytes + SEAL_OVERHEAD_BYTES, 0);
    if (message == NULL)
        return -ENOMEM;
    seal_close(link->seal, bytes, length_bytes, message);
    if (nn_send(link->socket, &message, NN_MSG, NN_DONTWAIT) >= 0)
        return 0;
    int error = last_error();
    nn_freemsg(message);
    return error;
}

int link_send(struct link *link, const void *bytes, size_t length_bytes)
{
    if (length_bytes > LINK_MESSAGE_BYTES_MAX)
        return log_error_return(-EMSGSIZE, "a message of %zu bytes is longer than a link takes (%u bytes)",
                                length_bytes, LINK_MESSAGE_BYTES_MAX);
    int error = link->seal != NULL ? send_sealed(link, bytes, length_bytes) : send_clear(link, bytes, length_bytes);
    if (error == 0)
        link->counts.sent++;
    else
        link->counts.refused++;
    return error;
}

static int receive_clear(struct link *link, void *bytes, size_t capacity_bytes, size_t *length_bytes)
{
    int length = nn_recv(link->socket, bytes, capacity_bytes, NN_DONTWAIT);

    if (length < 0)
        return last_error();
    if ((size_t)length > capacity_bytes)
        return -EMSGSIZE;
    *length_bytes = (size_t)length;
    return 0;
}

static int receive_sealed(struct link *link, void *bytes, size_t capacity_bytes, size_t *length_bytes)
{
    void *message = NULL;
    int length = nn_recv(link->socket, &message, NN_MSG, NN_DONTWAIT);

    if (length < 0)
        return last_error();
    int error = (size_t)length > capacity_bytes + SEAL_OVERHEAD_BYTES
                    ? -EMSGSIZE
                    : seal_open(link->seal, message, (size_t)length, bytes, length_bytes);
    nn_freemsg(message);
    return error;
}

static bool is_rejection(int error)
{
    return error == -EBADMSG || error == -EALREADY || error == -ENOSPC;
}

int link_receive(struct link *link, void *bytes, size_t capacity_bytes, size_t *length_bytes)
{
    for (int run = 0; run < REJECTED_RUN_MAX; run++) {
        int error = link->seal != NULL ? receive_sealed(link, bytes, capacity_bytes, length_bytes)
                                       : receive_clear(link, bytes, capacity_bytes, length_bytes);
        if (error == 0)
            link->counts.received++;
        else if (error == -EMSGSIZE || is_rejection(error))
            link->counts.rejected++;
        if (!is_rejection(error))
            return error;
    }
    return -EAGAIN;
}

int link_descriptor(const struct link *link)
{
    return link->receive_descriptor;
}

void link_counts(const struct link *link, struct link_counts *counts)
{
    *counts = link->counts;
    counts->connections = (uint64_t)nn_get_statistic(link->socket, NN_STAT_ESTABLISHED_CONNECTIONS) +
                          (uint64_t)nn_get_statistic(link->socket, NN_STAT_ACCEPTED_CONNECTIONS);
}

/*
 * Room for the next message means that the last one is with the kernel. A nanomsg receiver drops what it has not read
 * yet when it sees the sender's end, so it gets a moment to read.
 */
static void linger(const struct link *link, int linger_ms)
{
    if (is_writable(link, linger_ms))
        poll(NULL, 0, linger_ms < READ_GRACE_MS ? linger_ms : READ_GRACE_MS);
}

void link_close(struct link **link, int linger_ms)
{
    if (*link == NULL)
        return;
    if ((*link)->role == LINK_SEND && linger_ms > 0 && (*link)->counts.sent > 0)
        linger(*link, linger_ms);
    if ((*link)->socket >= 0)
        nn_close((*link)->socket);
    seal_destroy(&(*link)->seal);
    free(*link);
    *link = NULL;
}
