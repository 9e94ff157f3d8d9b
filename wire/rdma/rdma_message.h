/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel's RDMA netlink answers, read out of its bytes: devices, queue pairs, and a queue pair's raw context.
 * Bounds-checked; what is not there is left at "not known". Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RDMA_UNKNOWN8 255

struct rdma_queue_pair {
    uint32_t device; /* the kernel's index */
    uint32_t port;   /* 0 = not bound to one yet */
    uint32_t qpn;
    uint32_t remote_qpn; /* 0 = none */
    uint32_t pid;        /* 0 = the kernel's own, or not visible from here */
    uint8_t type;        /* enum ibv_qp_type, or RDMA_UNKNOWN8 */
    uint8_t state;       /* enum ibv_qp_state, or RDMA_UNKNOWN8 */
    bool has_send_psn;
    bool has_receive_psn;
    uint32_t send_psn;    /* next to be sent */
    uint32_t receive_psn; /* next that is awaited */
};

struct rdma_message {
    uint16_t type;
    bool is_last; /* of a dump */
    bool is_error;
    int error; /* 0 = an acknowledgement */
    uint32_t device;
    char device_name[64];
    const uint8_t *raw; /* RES_RAW, within the message; NULL = none */
    size_t raw_bytes;
};

/* A queue pair of a dump, or of an answer for one. */
typedef void (*rdma_message_visit)(void *context, const struct rdma_queue_pair *pair);

/*
 * Takes the first message off the buffer. Returns the bytes that it took, 0 when nothing is left, -EBADMSG when its
 * lengths contradict each other. `visit` may be NULL.
 */
int rdma_message_read(const uint8_t *bytes, size_t length_bytes, struct rdma_message *message, rdma_message_visit visit,
                      void *context);
