/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP sockets between processes of the job. Descriptors are the caller's to close. Errors: -errno, -ECONNRESET when the
 * other side is gone, -ECANCELED when `abort_flag` (may be NULL) becomes true during a wait. Any thread.
 */
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

/* A listening socket on the interface that NCCL_SOCKET_IFNAME names (lo without it), and its address. */
int tcp_listen(struct sockaddr_in *address);

int tcp_accept(int listen_fd, const volatile uint32_t *abort_flag);
int tcp_connect(const struct sockaddr_in *address);

/* All the bytes or an error. */
int tcp_send(int fd, const void *bytes, size_t length_bytes);
int tcp_receive(int fd, void *bytes, size_t length_bytes, const volatile uint32_t *abort_flag);

/* Whether something, the end among it, can be read at once. */
int tcp_is_readable(int fd);
