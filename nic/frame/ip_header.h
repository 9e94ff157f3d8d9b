/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4's header with its options, and IPv6's with its extension headers: what they say of the bytes behind them. A GRH
 * has the layout of IPv6's header. Nothing is kept; any thread.
 */
#pragma once

#include "wire/cursor.h"

enum ip_header_fragment {
    IP_HEADER_WHOLE = 0,
    IP_HEADER_FIRST, /* more fragments follow: the bytes behind the header are not all of the datagram */
    IP_HEADER_LATER, /* no transport header behind it */
};

struct ip_header {
    const uint8_t *source; /* 4 or 16 bytes, in the frame */
    const uint8_t *destination;
    size_t payload_bytes; /* behind this header and its options or extension headers, as it says itself */
    enum ip_header_fragment fragment;
    uint8_t version;
    uint8_t protocol; /* of the payload */
    uint8_t traffic_class;
    bool is_plain; /* no options, no extension headers */
};

/*
 * Reads at `in` and leaves it behind the header. False: the bytes ended (in->failed), or this is no such header.
 * *header is then undefined.
 */
bool ip_header_read_v4(struct ip_header *header, struct cursor *in);
bool ip_header_read_v6(struct ip_header *header, struct cursor *in);

/* IPv6's fixed header alone, as a GRH is. */
bool ip_header_read_grh(struct ip_header *header, struct cursor *in);
