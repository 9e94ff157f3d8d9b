/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: taken <= arrived <= posted <= filled, posted <= credited <= given <= taken + depth. As in NCCL's proxies,
 * credit for an operation is given only when the one before it on the connection has been taken whole, and each
 * operation begins at a multiple of its chunk's slots. A slice above 8 KiB is a write and an empty write with immediate
 * data, which announces it; the immediate is the size in host byte order.
 */
#include "tests/simulation/connection.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulation/chance.h"

#define SHARES                64u /* operations that a proxy may have before it */
#define SIZES                 16u /* slices under way, at most */
#define CREDIT_BYTES          64u
#define CREDIT_STRIDE         512u
#define CREDITS_FIFO          256u
#define SPLIT_BYTES           8192u
#define PROXY_CREDIT_NS       3000u
#define PROXY_POST_NS         2500u
#define FIFO_NS               300u /* between two credits that are given at once */
#define LAST_NS               2u   /* the empty write's own time, behind the data's */
#define LOCAL_LATENCY_NS      900u
#define LOCAL_GBPS            1600u
#define OPCODE_LAST           8u
#define OPCODE_LAST_IMMEDIATE 9u
#define OPCODE_ONLY           10u
#define OPCODE_IMMEDIATE      11u

struct shares { /* operations that a proxy has, in order */
    struct connection_share of[SHARES];
    uint32_t first, count;
    uint64_t done; /* slices of the first one */
};

struct connection {
    struct connection_options options;
    void *sender, *receiver;
    struct shares expected, offered;
    uint64_t given, credited, filled, posted, arrived, taken, acknowledged;
    uint64_t slots, credits; /* the sender's next slot; the receiver's next place in the sender's fifo */
    uint64_t arrives_ns, credit_arrives_ns, posts_ns, leaves_ns; /* of the slice before */
    uint32_t sizes[SIZES];
    struct flight { /* a slice on its way */
        uint32_t bytes, place;
        struct passage passage;
    } flights[SIZES];
    uint64_t left; /* slices whose last frame has passed the sender's port */
    struct sighting *data_sent, *data_received, *credit_sent, *credit_received;
    struct connection_sum sum;
};

static void see(struct connection *connection)
{
    const struct connection_end *from = &connection->options.sender, *to = &connection->options.receiver;
    int sight = connection->options.setting->sight;
    struct view_flow data = {from->nic, to->nic, to->qpn, from->qpn, VANTAGE_TX};
    struct view_flow credit = {to->nic, from->nic, from->qpn, to->qpn, VANTAGE_TX};

    if (sight == SIGHT_COUNTERS)
        return;
    if (from->view != NULL && sight != SIGHT_RECEIVER) {
        connection->data_sent = view_add(from->view, &data);
        credit.vantage = VANTAGE_RX;
        connection->credit_received = view_add(from->view, &credit);
    }
    if (to->view != NULL && sight != SIGHT_SENDER) {
        data.vantage = VANTAGE_RX;
        credit.vantage = VANTAGE_TX;
        connection->data_received = view_add(to->view, &data);
        connection->credit_sent = view_add(to->view, &credit);
    }
    sighting_pair(connection->data_sent, connection->credit_received);
    sighting_pair(connection->data_received, connection->credit_sent);
}

struct connection *connection_create(const struct connection_options *options)
{
    struct connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL)
        abort();
    connection->options = *options;
    if (!options->is_local)
        see(connection);
    return connection;
}

void connection_destroy(struct connection *connection)
{
    free(connection);
}

bool connection_is_local(const struct connection *connection)
{
    return connection->options.is_local;
}

void connection_set_sender(struct connection *connection, void *lane)
{
    connection->sender = lane;
}

void connection_set_receiver(struct connection *connection, void *lane)
{
    connection->receiver = lane;
}

static void push(struct shares *shares, const struct connection_share *share)
{
    if (shares->count == SHARES)
        abort();
    shares->of[(shares->first + shares->count++) % SHARES] = *share;
}

static struct connection_share *first(struct shares *shares)
{
    return shares->count == 0 ? NULL : &shares->of[shares->first];
}

static void count_done(struct shares *shares)
{
    if (++shares->done < first(shares)->slices)
        return;
    shares->done = 0;
    shares->first = (shares->first + 1) % SHARES;
    shares->count--;
}

static uint64_t now(const struct connection *connection)
{
    return agenda_now_ns(connection->options.agenda);
}

/* A proxy's own time: its poll loop, and now and then something longer. */
static uint64_t proxy_ns(const struct connection *connection, uint64_t usual_ns, uint64_t name)
{
    const struct setting *setting = connection->options.setting;
    double spread = chance_decaying(setting->seed, CHANCE_PROXY, ((uint64_t)connection->options.name << 32) ^ name);

    return usual_ns + (uint64_t)(spread * (double)usual_ns * 0.3 * (double)setting->noise_percent / 100);
}

static void post(void *subject, uint64_t argument);

static void post_next(struct connection *connection)
{
    uint64_t waiting = connection->posts_ns != 0;

    if (waiting || connection->posted == connection->filled || connection->posted == connection->credited)
        return;
    connection->posts_ns = now(connection) + proxy_ns(connection, PROXY_POST_NS, 2 * connection->posted);
    if (connection->offered.done == 0 && !connection->options.is_local)
        connection->posts_ns += first(&connection->offered)->proxy_late_ns;
    agenda_add(connection->options.agenda, connection->posts_ns, post, connection, 0);
}

static void acknowledged(void *subject, uint64_t argument)
{
    struct connection *connection = subject;

    connection->acknowledged += argument;
    if (connection->sender != NULL)
        connection->options.sender_woken(connection->sender, 0);
}

static void tell_data(struct connection *connection, struct sighting *sighting, const struct flight *flight,
                      uint64_t first_ns, uint64_t last_ns)
{
    bool split = flight->bytes > SPLIT_BYTES;
    struct sighted data = {.role = ROLE_DATA, .bytes = flight->bytes, .place = flight->place};
    struct sighted last = {.role = ROLE_DATA, .opcode = OPCODE_IMMEDIATE, .flags = 17};

    data.passage = &flight->passage;
    data.flags = split ? MESSAGE_PLACED : MESSAGE_PLACED | MESSAGE_IMMEDIATE;
    data.opcode = split ? OPCODE_LAST : flight->bytes > FRAME_BYTES ? OPCODE_LAST_IMMEDIATE : OPCODE_IMMEDIATE;
    last.immediate = __builtin_bswap32(flight->bytes);
    data.immediate = split ? 0 : last.immediate;
    data.first_ns = first_ns;
    data.last_ns = split ? last_ns - LAST_NS : last_ns;
    last.first_ns = last.last_ns = last_ns;
    sighting_message(sighting, &data, now(connection));
    if (split)
        sighting_message(sighting, &last, now(connection));
}

static void left(void *subject, uint64_t argument)
{
    struct connection *connection = subject;
    const struct flight *flight = &connection->flights[connection->left++ % SIZES];

    (void)argument;
    tell_data(connection, connection->data_sent, flight, flight->passage.first_ns, flight->passage.last_ns);
}

static void arrived(void *subject, uint64_t argument)
{
    struct connection *connection = subject;
    const struct flight *flight = &connection->flights[connection->arrived % SIZES];

    tell_data(connection, connection->data_received, flight, flight->passage.arrives_first_ns,
              flight->passage.arrives_last_ns);
    if (!connection->options.is_local)
        ledger_received(first(&connection->expected)->row, flight->bytes, flight->passage.arrives_last_ns);
    connection->arrived += argument;
    if (connection->receiver != NULL)
        connection->options.receiver_woken(connection->receiver, 0);
}

/* No slice overtakes another one of its queue pair. */
static void keep_order(uint64_t *latest_ns, struct passage *passage)
{
    uint64_t behind = passage->arrives_first_ns <= *latest_ns ? *latest_ns + 1 - passage->arrives_first_ns : 0;

    passage->arrives_first_ns += behind;
    passage->arrives_last_ns += behind;
    *latest_ns = passage->arrives_last_ns;
}

static void post_local(struct connection *connection, uint32_t bytes, struct passage *passage)
{
    passage->arrives_first_ns = now(connection) + LOCAL_LATENCY_NS;
    passage->arrives_last_ns = passage->arrives_first_ns + (uint64_t)bytes * 8 / LOCAL_GBPS;
    keep_order(&connection->arrives_ns, passage);
    agenda_add(connection->options.agenda, passage->arrives_last_ns, acknowledged, connection, 1);
}

static void post_wire(struct connection *connection, uint32_t bytes, struct passage *passage)
{
    const struct connection_options *options = &connection->options;
    struct fabric_message message = {
        .from = options->sender.nic,
        .to = options->receiver.nic,
        .bytes = bytes,
        .posted_ns = now(connection) > connection->leaves_ns ? now(connection) : connection->leaves_ns,
        .step = first(&connection->offered)->step,
        .name = ((uint64_t)options->name << 32) + connection->posted,
    };

    fabric_pass(options->fabric, &message, passage);
    keep_order(&connection->arrives_ns, passage);
    connection->leaves_ns = passage->last_ns + 1;
    ledger_sent(first(&connection->offered)->row, bytes, passage->first_ns, passage->last_ns);
    if (connection->data_sent != NULL)
        agenda_add(options->agenda, passage->last_ns, left, connection, 0);
    uint64_t back_ns = fabric_latency_ns(options->fabric, message.from, message.to);
    agenda_add(options->agenda, passage->arrives_last_ns + back_ns, acknowledged, connection, 1);
}

static void post(void *subject, uint64_t argument)
{
    struct connection *connection = subject;
    const struct connection_share *share = first(&connection->offered);
    struct flight *flight = &connection->flights[connection->posted % SIZES];
    uint32_t bytes = connection->sizes[connection->posted % SIZES];

    (void)argument;
    connection->posts_ns = 0;
    *flight = (struct flight){.bytes = bytes};
    if (connection->offered.done == 0)
        connection->slots =
            (connection->slots + share->slots_a_chunk - 1) / share->slots_a_chunk * share->slots_a_chunk;
    flight->place = (connection->options.name << 22) +
                    (uint32_t)(connection->slots % 8) * (uint32_t)(connection->options.setting->buffer_bytes / 8);
    if (connection->options.is_local)
        post_local(connection, bytes, &flight->passage);
    else
        post_wire(connection, bytes, &flight->passage);
    agenda_add(connection->options.agenda, flight->passage.arrives_last_ns, arrived, connection, 1);
    connection->sum.bytes += bytes;
    connection->sum.messages++;
    connection->slots += share->slots_a_slice;
    connection->posted++;
    count_done(&connection->offered);
    post_next(connection);
}

static void credit_arrived(void *subject, uint64_t argument)
{
    struct connection *connection = subject;

    connection->credited += argument;
    post_next(connection);
}

static void tell_credit(struct connection *connection, const struct passage *passage)
{
    struct sighted credit = {
        .role = ROLE_CREDIT, .bytes = CREDIT_BYTES, .opcode = OPCODE_ONLY, .flags = MESSAGE_PLACED};

    credit.place = (connection->options.name << 17) + (uint32_t)(connection->credits % CREDITS_FIFO) * CREDIT_STRIDE;
    credit.first_ns = credit.last_ns = passage->first_ns;
    sighting_message(connection->credit_sent, &credit, now(connection));
    credit.first_ns = credit.last_ns = passage->arrives_first_ns;
    sighting_message(connection->credit_received, &credit, now(connection));
}

static void give(void *subject, uint64_t argument)
{
    struct connection *connection = subject;
    const struct connection_options *options = &connection->options;
    struct passage passage = {.arrives_first_ns = now(connection) + LOCAL_LATENCY_NS};
    struct fabric_message message = {.from = options->receiver.nic, .to = options->sender.nic, .bytes = CREDIT_BYTES};

    message.posted_ns = now(connection);
    message.step = argument;
    message.name = ((uint64_t)options->name << 32) + (1u << 31) + connection->credits;
    passage.arrives_last_ns = passage.arrives_first_ns;
    if (!options->is_local)
        fabric_pass(options->fabric, &message, &passage);
    keep_order(&connection->credit_arrives_ns, &passage);
    if (!options->is_local)
        tell_credit(connection, &passage);
    agenda_add(options->agenda, passage.arrives_last_ns, credit_arrived, connection, 1);
    connection->credits++;
    connection->sum.credits++;
    if (connection->credits - connection->posted > connection->sum.deepest)
        connection->sum.deepest = connection->credits - connection->posted;
}

/* Credits for the first operation that is expected, as far as slots are free. */
static void give_next(struct connection *connection)
{
    const struct connection_share *share = first(&connection->expected);
    uint64_t done = connection->expected.done, at_once = 0;

    while (share != NULL && connection->given < connection->taken + share->depth &&
           connection->given < connection->taken - done + share->slices) {
        uint64_t in_ns = proxy_ns(connection, PROXY_CREDIT_NS, 2 * connection->taken + 1) + FIFO_NS * at_once++;
        if (done == 0 && !connection->options.is_local)
            in_ns += share->proxy_late_ns;
        agenda_add(connection->options.agenda, now(connection) + in_ns, give, connection, share->step);
        connection->given++;
    }
}

void connection_expect(struct connection *connection, const struct connection_share *share)
{
    push(&connection->expected, share);
    if (connection->expected.count == 1)
        give_next(connection);
}

void connection_offer(struct connection *connection, const struct connection_share *share)
{
    push(&connection->offered, share);
}

bool connection_has_room(const struct connection *connection)
{
    const struct connection_share *share = first((struct shares *)&connection->offered);

    return connection->filled - connection->acknowledged < (share == NULL ? 1 : share->depth);
}

bool connection_has_data(const struct connection *connection)
{
    return connection->arrived > connection->taken;
}

void connection_fill(struct connection *connection, uint32_t bytes)
{
    connection->sizes[connection->filled++ % SIZES] = bytes;
    post_next(connection);
}

uint32_t connection_next_bytes(const struct connection *connection)
{
    return connection->sizes[connection->taken % SIZES];
}

uint32_t connection_take(struct connection *connection)
{
    uint32_t bytes = connection_next_bytes(connection);

    connection->taken++;
    count_done(&connection->expected);
    give_next(connection);
    return bytes;
}

const struct connection_sum *connection_sum(const struct connection *connection)
{
    return &connection->sum;
}
