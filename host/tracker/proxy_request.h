/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What NCCL's proxy messages say of a connection: bytes of another process, bounds-checked. Source: NCCL 2.13 to 2.30
 * and RCCL, transport/net.cc (struct setupReq) and the handle of net_ib, which begins with its socket's address. Pure;
 * any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who asked for a connection over the network, and for what. */
struct proxy_request {
    int32_t origin_rank; /* of the (top parent's) communicator */
    int32_t far_rank;
    int32_t channel;
    bool shared; /* several origin ranks may send through it */
};

/* Where a socket listens: family (AF_INET or AF_INET6), port and address, the rest zeros. */
struct proxy_address {
    uint16_t family;
    uint16_t port; /* wire order */
    uint8_t address[16];
};

/*
 * Decodes a request of the given length, whose first `bytes_count` bytes are there. `split`: the library
 * knows ncclCommSplit, so that it is of NCCL 2.18 or later.
 * -EPROTONOSUPPORT: another transport's, by its length; -EBADMSG: numbers that cannot be.
 */
int proxy_request_decode(const void *bytes, size_t bytes_count, size_t request_bytes, bool split,
                         struct proxy_request *request);

/* The address that these bytes begin with: a struct sockaddr. -EBADMSG: they begin with none. */
int proxy_address_decode(const void *bytes, size_t bytes_count, struct proxy_address *address);
