/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that come for a message that nobody waits for yet are parked until somebody does. */
#include "communicator/bootstrap.h"

#include "net/tcp.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { TAG_RING = UINT32_MAX, TAG_CHILD = UINT32_MAX - 1 };

struct id { /* what lies in the 128 bytes */
    uint64_t magic;
    struct sockaddr_in address;
};

struct greeting { /* the first bytes on a connection between ranks */
    int rank;
    uint32_t tag;
};

struct entry { /* what a rank tells the root */
    int rank, ranks;
    struct sockaddr_in address;
};

struct parked {
    struct greeting greeting;
    int fd;
    struct parked *next;
};

struct bootstrap {
    int rank, ranks, listen_fd, next_fd, previous_fd;
    struct sockaddr_in *addresses;
    struct parked *parked;
    const volatile uint32_t *abort_flag;
};

/* Takes the first rank's word for how many there are; fds[i] is the connection of rank i. */
static int root_collect(int listen_fd, int **fds, struct sockaddr_in **addresses, int *ranks)
{
    *ranks = 1;
    for (int arrived = 0; arrived < *ranks; arrived++) {
        struct entry entry;
        int fd = tcp_accept(listen_fd, NULL);
        if (fd < 0 || tcp_receive(fd, &entry, sizeof entry, NULL))
            return -EIO;
        if (!*fds) {
            *ranks = entry.ranks;
            *fds = calloc((size_t)*ranks, sizeof **fds);
            *addresses = calloc((size_t)*ranks, sizeof **addresses);
        }
        (*fds)[entry.rank] = fd;
        (*addresses)[entry.rank] = entry.address;
    }
    return 0;
}

static void *root_run(void *argument)
{
    int listen_fd = (int)(intptr_t)argument, *fds = NULL, ranks = 0;
    struct sockaddr_in *addresses = NULL;
    int error = root_collect(listen_fd, &fds, &addresses, &ranks);

    for (int i = 0; fds && i < ranks; i++) {
        if (!error)
            tcp_send(fds[i], addresses, (size_t)ranks * sizeof *addresses);
        close(fds[i]);
    }
    free(fds);
    free(addresses);
    close(listen_fd);
    return NULL;
}

int bootstrap_root_start(ncclUniqueId *id)
{
    struct id content = {0};
    pthread_t thread;
    int listen_fd = tcp_listen(&content.address);

    if (listen_fd < 0)
        return listen_fd;
    if (getrandom(&content.magic, sizeof content.magic, 0) != sizeof content.magic ||
        pthread_create(&thread, NULL, root_run, (void *)(intptr_t)listen_fd)) {
        close(listen_fd);
        return -EAGAIN;
    }
    pthread_detach(thread);
    memset(id, 0, sizeof *id);
    memcpy(id, &content, sizeof content);
    return 0;
}

static int greet(const struct bootstrap *from, const struct sockaddr_in *address, uint32_t tag)
{
    struct greeting greeting = {from->rank, tag};
    int fd = tcp_connect(address), error = fd < 0 ? fd : tcp_send(fd, &greeting, sizeof greeting);

    if (fd >= 0 && error)
        close(fd);
    return error ? error : fd;
}

static int parked_take(struct bootstrap *bootstrap, int rank, uint32_t tag)
{
    for (struct parked **at = &bootstrap->parked; *at; at = &(*at)->next) {
        struct parked *parked = *at;
        int fd = parked->fd;
        if (parked->greeting.rank != rank || parked->greeting.tag != tag)
            continue;
        *at = parked->next;
        free(parked);
        return fd;
    }
    return -ENOENT;
}

static int park_next(struct bootstrap *bootstrap)
{
    struct parked *parked = calloc(1, sizeof *parked), **end = &bootstrap->parked;
    int error;

    parked->fd = tcp_accept(bootstrap->listen_fd, bootstrap->abort_flag);
    error = parked->fd < 0 ? parked->fd
                           : tcp_receive(parked->fd, &parked->greeting, sizeof parked->greeting, bootstrap->abort_flag);
    if (error) {
        if (parked->fd >= 0)
            close(parked->fd);
        free(parked);
        return error;
    }
    while (*end)
        end = &(*end)->next;
    *end = parked;
    return 0;
}

static int await_greeting(struct bootstrap *bootstrap, int rank, uint32_t tag)
{
    int fd, error = 0;

    while ((fd = parked_take(bootstrap, rank, tag)) < 0 && !error)
        error = park_next(bootstrap);
    return fd < 0 ? error : fd;
}

static struct bootstrap *bootstrap_new(int rank, int ranks, const volatile uint32_t *abort_flag)
{
    struct bootstrap *bootstrap = calloc(1, sizeof *bootstrap);

    *bootstrap = (struct bootstrap){.rank = rank, .ranks = ranks, .abort_flag = abort_flag};
    bootstrap->next_fd = bootstrap->previous_fd = -1;
    bootstrap->addresses = calloc((size_t)ranks, sizeof *bootstrap->addresses);
    bootstrap->listen_fd = tcp_listen(&bootstrap->addresses[rank]);
    return bootstrap;
}

static int ring_connect(struct bootstrap *bootstrap, const struct sockaddr_in *next)
{
    int ranks = bootstrap->ranks;

    if (ranks == 1)
        return 0;
    bootstrap->next_fd = greet(bootstrap, next, TAG_RING);
    if (bootstrap->next_fd < 0)
        return bootstrap->next_fd;
    bootstrap->previous_fd = await_greeting(bootstrap, (bootstrap->rank + ranks - 1) % ranks, TAG_RING);
    return bootstrap->previous_fd < 0 ? bootstrap->previous_fd : 0;
}

static int root_ask(struct bootstrap *bootstrap, const ncclUniqueId *id)
{
    struct entry entry = {bootstrap->rank, bootstrap->ranks, bootstrap->addresses[bootstrap->rank]};
    struct id content;

    memcpy(&content, id, sizeof content);
    int fd = tcp_connect(&content.address);
    if (fd < 0)
        return fd;
    int error = tcp_send(fd, &entry, sizeof entry);
    if (!error)
        error = tcp_receive(fd, bootstrap->addresses, (size_t)bootstrap->ranks * sizeof *bootstrap->addresses,
                            bootstrap->abort_flag);
    close(fd);
    return error;
}

int bootstrap_create(struct bootstrap **bootstrap, const ncclUniqueId *id, int rank, int ranks,
                     const volatile uint32_t *abort_flag)
{
    struct bootstrap *fresh = bootstrap_new(rank, ranks, abort_flag);
    int error = fresh->listen_fd < 0 ? fresh->listen_fd : root_ask(fresh, id);

    if (!error)
        error = ring_connect(fresh, &fresh->addresses[(rank + 1) % ranks]);
    if (error) {
        bootstrap_destroy(fresh);
        return error;
    }
    *bootstrap = fresh;
    return 0;
}

/* Each member tells its address to the one before it through the parent; then the ring tells all to all. */
static int child_connect(struct bootstrap *child, struct bootstrap *parent, const int *members)
{
    int ranks = child->ranks, rank = child->rank, error = 0;
    struct sockaddr_in next;

    if (ranks == 1)
        return 0;
    error =
        bootstrap_send(parent, members[(rank + ranks - 1) % ranks], TAG_CHILD, &child->addresses[rank], sizeof next);
    if (!error)
        error = bootstrap_receive(parent, members[(rank + 1) % ranks], TAG_CHILD, &next, sizeof next);
    if (!error)
        error = ring_connect(child, &next);
    return error ? error : bootstrap_all_gather(child, child->addresses, sizeof *child->addresses);
}

int bootstrap_create_child(struct bootstrap **child, struct bootstrap *parent, const int *members, int ranks, int rank,
                           const volatile uint32_t *abort_flag)
{
    struct bootstrap *fresh = bootstrap_new(rank, ranks, abort_flag);
    int error = fresh->listen_fd < 0 ? fresh->listen_fd : child_connect(fresh, parent, members);

    if (error) {
        bootstrap_destroy(fresh);
        return error;
    }
    *child = fresh;
    return 0;
}

void bootstrap_destroy(struct bootstrap *bootstrap)
{
    struct parked *parked;

    if (!bootstrap)
        return;
    while ((parked = bootstrap->parked)) {
        bootstrap->parked = parked->next;
        close(parked->fd);
        free(parked);
    }
    if (bootstrap->next_fd >= 0)
        close(bootstrap->next_fd);
    if (bootstrap->previous_fd >= 0)
        close(bootstrap->previous_fd);
    if (bootstrap->listen_fd >= 0)
        close(bootstrap->listen_fd);
    free(bootstrap->addresses);
    free(bootstrap);
}

int bootstrap_all_gather(struct bootstrap *bootstrap, void *all, size_t size_bytes)
{
    int ranks = bootstrap->ranks, error = 0;

    for (int step = 0; !error && step < ranks - 1; step++) {
        int out = (bootstrap->rank + ranks - step) % ranks, in = (out + ranks - 1) % ranks;
        error = tcp_send(bootstrap->next_fd, (char *)all + (size_t)out * size_bytes, size_bytes);
        if (!error)
            error = tcp_receive(bootstrap->previous_fd, (char *)all + (size_t)in * size_bytes, size_bytes,
                                bootstrap->abort_flag);
    }
    return error;
}

int bootstrap_barrier(struct bootstrap *bootstrap)
{
    char *all = calloc((size_t)bootstrap->ranks, 1);
    int error = bootstrap_all_gather(bootstrap, all, 1);

    free(all);
    return error;
}

int bootstrap_send(struct bootstrap *bootstrap, int peer, uint32_t tag, const void *bytes, size_t length_bytes)
{
    int fd = greet(bootstrap, &bootstrap->addresses[peer], tag);

    if (fd < 0)
        return fd;
    int error = tcp_send(fd, bytes, length_bytes);
    close(fd);
    return error;
}

int bootstrap_receive(struct bootstrap *bootstrap, int peer, uint32_t tag, void *bytes, size_t length_bytes)
{
    int fd = await_greeting(bootstrap, peer, tag);

    if (fd < 0)
        return fd;
    int error = tcp_receive(fd, bytes, length_bytes, bootstrap->abort_flag);
    close(fd);
    return error;
}
