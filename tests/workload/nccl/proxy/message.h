/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes over the TCP connection from a rank to a proxy's service thread, laid out as in NCCL 2.30: type,
 * connection, size of the request, size of the response, the request, and a number for the answer, each in a send of
 * its own.
 */
#pragma once

#include "net/net.h"

#include <stdint.h>

enum message_type {
    MESSAGE_INIT = 1,
    MESSAGE_SETUP = 3,
    MESSAGE_CONNECT = 4,
    MESSAGE_CLOSE = 6,
    MESSAGE_ABORT = 7,
    MESSAGE_STOP = 8
};

struct init_request {
    int transport, send, tp_local_rank, tp_rank, same_process;
};

struct setup_request {
    int tp_rank, tp_local_rank, tp_remote_rank, shared, net_device, use_gdr, need_flush, channel, connection,
        same_device;
};

_Static_assert(sizeof(struct setup_request) == 40, "setupReq of 2.30");

struct init_response {
    void *connection;
};

struct setup_response {
    char handle[NET_HANDLE_BYTES];
};

struct connect_response { /* where the lane is */
    int pid, fd, step_bytes;
};

struct response_header {
    void *operation;
    int result, size_bytes;
};
