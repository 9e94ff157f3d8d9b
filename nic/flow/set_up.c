/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ConnectRequest and ConnectReply. Source: InfiniBand Architecture Specification volume 1, sections 13.4.2 (management
 * datagram header), 12.6.5 and 12.6.8 (their contents). Requests wait for their reply, and connections for their flows,
 * in tables that are directly mapped: a newer one takes an older one's place, which is then merely not known.
 */
#include "nic/flow/set_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cursor.h"

#define REQUESTS_COUNT    256u
#define CONNECTIONS_COUNT 4096u
#define BASE_VERSION      1
#define CLASS_CONNECTION  7
#define CLASS_VERSION     2
#define METHOD_SEND       3
#define CONNECT_REQUEST   0x0010
#define CONNECT_REPLY     0x0013

struct request {
    uint64_t asker[2];
    uint64_t asked[2];
    uint32_t identifier;
    uint32_t qpn; /* the asker's; 0: none */
};

/* Who sends to this queue pair from there. */
struct connection {
    uint64_t source[2];
    uint64_t destination[2];
    uint32_t destination_qpn; /* 0: none */
    uint32_t source_qpn;
};

struct set_ups {
    struct request requests[REQUESTS_COUNT];
    struct connection connections[CONNECTIONS_COUNT];
};

struct datagram {
    uint16_t attribute;
    uint32_t local_identifier;
    uint32_t remote_identifier; /* of a reply */
    uint32_t qpn;
};

int set_ups_create(struct set_ups **set_ups)
{
    struct set_ups *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    *set_ups = made;
    return 0;
}

void set_ups_destroy(struct set_ups **set_ups)
{
    free(*set_ups);
    *set_ups = NULL;
}

size_t set_ups_bytes(void)
{
    return sizeof(struct set_ups);
}

static uint32_t place_of(const uint64_t a[2], const uint64_t b[2], uint32_t number, uint32_t count)
{
    uint64_t mixed = a[0] ^ a[1] * 3 ^ b[0] * 5 ^ b[1] * 7 ^ number;

    return (uint32_t)((mixed * 0x9e3779b97f4a7c15u) >> 40) % count;
}

static bool is_same(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

static bool read_datagram(struct datagram *datagram, const void *bytes, size_t length_bytes)
{
    struct cursor in;

    if (length_bytes != SET_UP_MAD_BYTES)
        return false;
    cursor_init(&in, bytes, length_bytes);
    if (cursor_u8(&in) != BASE_VERSION || cursor_u8(&in) != CLASS_CONNECTION || cursor_u8(&in) != CLASS_VERSION ||
        cursor_u8(&in) != METHOD_SEND)
        return false;
    cursor_skip(&in, 12); /* status, class, transaction */
    datagram->attribute = cursor_be16(&in);
    cursor_skip(&in, 6); /* and its modifier */
    datagram->local_identifier = cursor_be32(&in);
    datagram->remote_identifier = cursor_be32(&in);
    cursor_skip(&in, datagram->attribute == CONNECT_REQUEST ? 24 : 4);
    datagram->qpn = cursor_be32(&in) >> 8;
    return !in.failed && datagram->qpn > SET_UP_QPN;
}

static void put_connection(struct set_ups *set_ups, const struct connection *connection)
{
    set_ups->connections[place_of(connection->source, connection->destination, connection->destination_qpn,
                                  CONNECTIONS_COUNT)] = *connection;
}

static struct request *find_request(struct set_ups *set_ups, const uint64_t asker[2], const uint64_t asked[2],
                                    uint32_t identifier)
{
    return &set_ups->requests[place_of(asker, asked, identifier, REQUESTS_COUNT)];
}

static void note_request(struct set_ups *set_ups, const struct flow_key *key, const struct datagram *datagram)
{
    struct request *request = find_request(set_ups, key->source, key->destination, datagram->local_identifier);

    *request = (struct request){.identifier = datagram->local_identifier, .qpn = datagram->qpn};
    memcpy(request->asker, key->source, sizeof request->asker);
    memcpy(request->asked, key->destination, sizeof request->asked);
}

static bool note_reply(struct set_ups *set_ups, const struct flow_key *key, const struct datagram *datagram)
{
    struct request *request = find_request(set_ups, key->destination, key->source, datagram->remote_identifier);
    struct connection there = {.destination_qpn = datagram->qpn, .source_qpn = request->qpn};
    struct connection back = {.destination_qpn = request->qpn, .source_qpn = datagram->qpn};

    if (request->qpn == 0 || request->identifier != datagram->remote_identifier ||
        !is_same(request->asker, key->destination) || !is_same(request->asked, key->source))
        return false;
    memcpy(there.source, request->asker, sizeof there.source);
    memcpy(there.destination, request->asked, sizeof there.destination);
    memcpy(back.source, request->asked, sizeof back.source);
    memcpy(back.destination, request->asker, sizeof back.destination);
    put_connection(set_ups, &there);
    put_connection(set_ups, &back);
    request->qpn = 0;
    return true;
}

bool set_ups_note(struct set_ups *set_ups, const struct frame *frame, const void *mad, size_t length_bytes)
{
    struct datagram datagram;

    if (!read_datagram(&datagram, mad, length_bytes))
        return false;
    if (datagram.attribute == CONNECT_REQUEST)
        note_request(set_ups, &frame->key, &datagram);
    return datagram.attribute == CONNECT_REPLY && note_reply(set_ups, &frame->key, &datagram);
}

bool set_ups_reverse(const struct set_ups *set_ups, const struct flow_key *key, struct flow_key *reverse)
{
    const struct connection *connection =
        &set_ups->connections[place_of(key->source, key->destination, key->destination_qpn, CONNECTIONS_COUNT)];

    if (connection->destination_qpn == 0 || connection->destination_qpn != key->destination_qpn ||
        !is_same(connection->source, key->source) || !is_same(connection->destination, key->destination))
        return false;
    *reverse = *key;
    memcpy(reverse->source, key->destination, sizeof reverse->source);
    memcpy(reverse->destination, key->source, sizeof reverse->destination);
    reverse->destination_qpn = connection->source_qpn;
    return true;
}
