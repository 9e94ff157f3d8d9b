/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocking sockets; waits look at the abort flag ten times a second. */
#include "net/tcp.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 256, LOOK_MS = 100, CONNECT_TRIES = 50 };

static struct in_addr interface_address(void)
{
    struct in_addr found = {.s_addr = htonl(INADDR_LOOPBACK)};
    const char *wanted = getenv("NCCL_SOCKET_IFNAME");
    struct ifaddrs *all;

    if (!wanted || getifaddrs(&all))
        return found;
    wanted += *wanted == '=';
    for (const struct ifaddrs *one = all; one; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && !strncmp(one->ifa_name, wanted, strlen(wanted)))
            found = ((const struct sockaddr_in *)one->ifa_addr)->sin_addr;
    freeifaddrs(all);
    return found;
}

int tcp_listen(struct sockaddr_in *address)
{
    struct sockaddr_in mine = {.sin_family = AF_INET, .sin_addr = interface_address()};
    socklen_t length = sizeof mine;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&mine, sizeof mine) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&mine, &length)) {
        int error = -errno;
        close(fd);
        return error;
    }
    *address = mine;
    return fd;
}

static int readable_await(int fd, const volatile uint32_t *abort_flag)
{
    struct pollfd wait = {fd, POLLIN, 0};
    int found;

    while ((found = poll(&wait, 1, LOOK_MS)) <= 0) {
        if (found < 0 && errno != EINTR)
            return -errno;
        if (abort_flag && *abort_flag)
            return -ECANCELED;
    }
    return 0;
}

static void delay_off(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

int tcp_accept(int listen_fd, const volatile uint32_t *abort_flag)
{
    int error = readable_await(listen_fd, abort_flag);

    if (error)
        return error;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return -errno;
    delay_off(fd);
    return fd;
}

int tcp_connect(const struct sockaddr_in *address)
{
    int error = 0;

    for (int tries = 0; tries < CONNECT_TRIES; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return -errno;
        if (!connect(fd, (const struct sockaddr *)address, sizeof *address)) {
            delay_off(fd);
            return fd;
        }
        error = -errno;
        close(fd);
        if (error != -ECONNREFUSED && error != -ETIMEDOUT && error != -EINTR)
            break;
        poll(NULL, 0, LOOK_MS);
    }
    return error;
}

int tcp_send(int fd, const void *bytes, size_t length_bytes)
{
    for (size_t done = 0; done < length_bytes;) {
        ssize_t sent = send(fd, (const char *)bytes + done, length_bytes - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return -errno;
        done += sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

int tcp_receive(int fd, void *bytes, size_t length_bytes, const volatile uint32_t *abort_flag)
{
    for (size_t done = 0; done < length_bytes;) {
        int error = readable_await(fd, abort_flag);
        if (error)
            return error;
        ssize_t got = recv(fd, (char *)bytes + done, length_bytes - done, 0);
        if (got == 0)
            return -ECONNRESET;
        if (got < 0 && errno != EINTR)
            return -errno;
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

int tcp_is_readable(int fd)
{
    struct pollfd wait = {fd, POLLIN, 0};

    return poll(&wait, 1, 0) > 0;
}
