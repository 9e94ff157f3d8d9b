/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources: RFC 791, RFC 8200, RFC 4302 (whose length counts otherwise). Invariant: no length is taken to be larger than
 * the header that encloses it says.
 */
#include "nic/frame/ip_header.h"

#define V4_BYTES               20
#define V6_BYTES               40
#define EXTENSION_HEADERS_MAX  8
#define EXTENSION_HOP_BY_HOP   0
#define EXTENSION_ROUTING      43
#define EXTENSION_FRAGMENT     44
#define EXTENSION_AUTHENTICATE 51
#define EXTENSION_DESTINATION  60
#define FRAGMENT_V4_MORE       0x2000u
#define FRAGMENT_V4_OFFSET     0x1fffu
#define FRAGMENT_V6_MORE       0x0001u
#define FRAGMENT_V6_OFFSET     0xfff8u

static enum ip_header_fragment fragment_of(bool is_later, bool has_more)
{
    if (is_later)
        return IP_HEADER_LATER;
    return has_more ? IP_HEADER_FIRST : IP_HEADER_WHOLE;
}

bool ip_header_read_v4(struct ip_header *header, struct cursor *in)
{
    const uint8_t *ip = cursor_take(in, V4_BYTES);

    if (ip == NULL || ip[0] >> 4 != 4)
        return false;
    size_t header_bytes = (size_t)(ip[0] & 0x0f) * 4;
    size_t total_bytes = (size_t)ip[2] << 8 | ip[3];
    unsigned fragment = (unsigned)ip[6] << 8 | ip[7];
    if (header_bytes < V4_BYTES || total_bytes < header_bytes || !cursor_skip(in, header_bytes - V4_BYTES))
        return false;
    *header = (struct ip_header){
        .source = ip + 12,
        .destination = ip + 16,
        .payload_bytes = total_bytes - header_bytes,
        .fragment = fragment_of((fragment & FRAGMENT_V4_OFFSET) != 0, (fragment & FRAGMENT_V4_MORE) != 0),
        .version = 4,
        .protocol = ip[9],
        .traffic_class = ip[1],
        .is_plain = header_bytes == V4_BYTES,
    };
    return true;
}

bool ip_header_read_grh(struct ip_header *header, struct cursor *in)
{
    const uint8_t *ip = cursor_take(in, V6_BYTES);

    if (ip == NULL || ip[0] >> 4 != 6)
        return false;
    *header = (struct ip_header){
        .source = ip + 8,
        .destination = ip + 24,
        .payload_bytes = (size_t)ip[4] << 8 | ip[5],
        .version = 6,
        .protocol = ip[6],
        .traffic_class = (uint8_t)(ip[0] << 4 | ip[1] >> 4),
        .is_plain = true,
    };
    return true;
}

static bool is_extension(uint8_t protocol)
{
    return protocol == EXTENSION_HOP_BY_HOP || protocol == EXTENSION_ROUTING || protocol == EXTENSION_FRAGMENT ||
           protocol == EXTENSION_AUTHENTICATE || protocol == EXTENSION_DESTINATION;
}

static size_t extension_bytes(uint8_t protocol, uint8_t length)
{
    if (protocol == EXTENSION_FRAGMENT)
        return 8;
    return protocol == EXTENSION_AUTHENTICATE ? ((size_t)length + 2) * 4 : ((size_t)length + 1) * 8;
}

static bool read_extension(struct ip_header *header, struct cursor *in)
{
    const uint8_t *extension = cursor_take(in, 8);

    if (extension == NULL)
        return false;
    size_t bytes = extension_bytes(header->protocol, extension[1]);
    if (bytes < 8 || header->payload_bytes < bytes || !cursor_skip(in, bytes - 8))
        return false;
    if (header->protocol == EXTENSION_FRAGMENT) {
        unsigned fragment = (unsigned)extension[2] << 8 | extension[3];
        header->fragment = fragment_of((fragment & FRAGMENT_V6_OFFSET) != 0, (fragment & FRAGMENT_V6_MORE) != 0);
    }
    header->payload_bytes -= bytes;
    header->protocol = extension[0];
    header->is_plain = false;
    return true;
}

bool ip_header_read_v6(struct ip_header *header, struct cursor *in)
{
    if (!ip_header_read_grh(header, in))
        return false;
    for (unsigned i = 0; i < EXTENSION_HEADERS_MAX; i++) {
        if (header->fragment == IP_HEADER_LATER || !is_extension(header->protocol))
            return true;
        if (!read_extension(header, in))
            return false;
    }
    return !is_extension(header->protocol);
}
