/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ConnectRequest and ConnectReply. Source: InfiniBand Architecture Specification volume 1, sections 13.4.2 (management
 * datagram header), 12.6.5 and 12.6.8 (their contents). Requests wait for their reply, and connections for their flows,
 * in fixed places found by a hash, a request in one and a connection in any of four: where all are taken a newer one
 * takes an older one's, which is then merely not known.
 */
#include "nic/flow/set_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cursor.h"

#define REQUESTS_COUNT   256u
#define CONNECTION_SETS  1024u
#define CONNECTION_WAYS  4u
#define BASE_VERSION     1
#define CLASS_CONNECTION 7
#define CLASS_VERSION    2
#define METHOD_SEND      3
#define CONNECT_REQUEST  0x0010
#define CONNECT_REPLY    0x0013

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
    enum paired_by by;
};

struct set_ups {
    struct request requests[REQUESTS_COUNT];
    struct connection connections[CONNECTION_SETS][CONNECTION_WAYS];
    uint32_t turn; /* which way a newer one takes */
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

static bool is_of(const struct connection *connection, const uint64_t source[2], const uint64_t destination[2],
                  uint32_t destination_qpn)
{
    return connection->destination_qpn != 0 && connection->destination_qpn == destination_qpn &&
           is_same(connection->source, source) && is_same(connection->destination, destination);
}

static const struct connection *find_connection(const struct set_ups *set_ups, const uint64_t source[2],
                                                const uint64_t destination[2], uint32_t destination_qpn)
{
    const struct connection *set =
        set_ups->connections[place_of(source, destination, destination_qpn, CONNECTION_SETS)];

    for (unsigned i = 0; i < CONNECTION_WAYS; i++)
        if (is_of(&set[i], source, destination, destination_qpn))
            return &set[i];
    return NULL;
}

/* Where a connection is, or can go. */
static struct connection *find_place(struct set_ups *set_ups, const struct connection *connection)
{
    struct connection *set = set_ups->connections[place_of(connection->source, connection->destination,
                                                           connection->destination_qpn, CONNECTION_SETS)];

    for (unsigned i = 0; i < CONNECTION_WAYS; i++)
        if (is_of(&set[i], connection->source, connection->destination, connection->destination_qpn))
            return &set[i];
    for (unsigned i = 0; i < CONNECTION_WAYS; i++)
        if (set[i].destination_qpn == 0)
            return &set[i];
    return &set[set_ups->turn++ % CONNECTION_WAYS];
}

static void put_connection(struct set_ups *set_ups, const struct connection *connection)
{
    *find_place(set_ups, connection) = *connection;
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
    struct connection there = {.destination_qpn = datagram->qpn, .source_qpn = request->qpn, .by = PAIRED_BY_SET_UP};
    struct connection back = {.destination_qpn = request->qpn, .source_qpn = datagram->qpn, .by = PAIRED_BY_SET_UP};

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

/* One direction: what `source_qpn` at `source` sends to `destination_qpn`. */
static struct connection direction_of(const uint8_t *source, uint32_t source_qpn, const uint8_t *destination,
                                      uint32_t destination_qpn)
{
    struct connection made = {.destination_qpn = destination_qpn, .source_qpn = source_qpn, .by = PAIRED_BY_HOST};

    memcpy(made.source, source, sizeof made.source);
    memcpy(made.destination, destination, sizeof made.destination);
    return made;
}

static void forget(struct set_ups *set_ups, const struct connection *connection)
{
    struct connection *place = find_place(set_ups, connection);

    if (is_of(place, connection->source, connection->destination, connection->destination_qpn) &&
        place->source_qpn == connection->source_qpn)
        place->destination_qpn = 0;
}

bool set_ups_tell(struct set_ups *set_ups, const struct record_queue_pair *pair)
{
    static const uint8_t none[ADDRESS_BYTES];
    const struct connection there = direction_of(pair->address, pair->qpn, pair->remote_address, pair->remote_qpn);
    const struct connection back = direction_of(pair->remote_address, pair->remote_qpn, pair->address, pair->qpn);

    if (pair->qpn <= SET_UP_QPN || pair->remote_qpn <= SET_UP_QPN || memcmp(pair->address, none, sizeof none) == 0 ||
        memcmp(pair->remote_address, none, sizeof none) == 0)
        return false;
    if (pair->destroyed_ns != 0) {
        forget(set_ups, &there);
        forget(set_ups, &back);
        return false;
    }
    const struct connection *known = find_connection(set_ups, there.source, there.destination, there.destination_qpn);
    bool is_new = known == NULL || known->source_qpn != there.source_qpn;
    put_connection(set_ups, &there);
    put_connection(set_ups, &back);
    return is_new;
}

enum paired_by set_ups_reverse(const struct set_ups *set_ups, const struct flow_key *key, struct flow_key *reverse)
{
    const struct connection *connection = find_connection(set_ups, key->source, key->destination, key->destination_qpn);

    if (connection == NULL)
        return PAIRED_NOT;
    *reverse = *key;
    memcpy(reverse->source, key->destination, sizeof reverse->source);
    memcpy(reverse->destination, key->source, sizeof reverse->destination);
    reverse->destination_qpn = connection->source_qpn;
    return connection->by;
}
