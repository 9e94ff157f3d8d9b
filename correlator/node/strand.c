/* SPDX-License-Identifier: BSD-2-Clause */
/* Strands. Invariant: pieces are in order of their first frame, and each message belongs to one. */
#include "correlator/node/strand.h"

struct timed {
    uint64_t first_ns;
    int32_t message;
};
typedef ARRAY(struct timed) timed_list;

bool strand_says(uint32_t immediate, uint64_t bytes)
{
    return immediate == bytes || __builtin_bswap32(immediate) == bytes;
}

static int by_first(const void *a, const void *b)
{
    const struct timed *left = a;
    const struct timed *right = b;

    if (left->first_ns != right->first_ns)
        return left->first_ns < right->first_ns ? -1 : 1;
    return (left->message > right->message) - (left->message < right->message);
}

/* Data in the order in which it was begun: what was lost and sent again ends after what was sent behind it. */
static void sort_data(timed_list *list, const struct naming *naming, const struct flow *flow)
{
    for (size_t i = 0; i < flow->messages.count; i++) {
        int32_t index = flow->messages.items[i];
        const struct message *message = &naming->messages.items[index];
        if (message->role == ROLE_DATA)
            *(struct timed *)array_add(list) = (struct timed){message->first_ns, index};
    }
    array_sort(list, by_first);
}

static struct piece *open_piece(struct strand *strand, bool *open, const struct message *message)
{
    if (*open)
        return &strand->pieces.items[strand->pieces.count - 1];
    struct piece *piece = array_add(&strand->pieces);
    piece->slot.first_ns = message->first_ns;
    piece->slot.data_last_ns = message->first_ns;
    piece->slot.whole = true;
    *open = true;
    return piece;
}

static void fill_piece(struct piece *piece, const struct message *message)
{
    struct slot *slot = &piece->slot;

    slot->last_ns = message->last_ns;
    slot->bytes += message->payload_bytes;
    if (message->payload_bytes > 0)
        slot->data_last_ns = message->last_ns;
    if ((message->flags & (MESSAGE_INCOMPLETE | MESSAGE_MERGED)) != 0)
        slot->whole = false;
    if ((message->flags & MESSAGE_RETRANSMITTED) != 0)
        slot->retransmitted++;
    if ((message->flags & (MESSAGE_IMMEDIATE | MESSAGE_MERGED)) == MESSAGE_IMMEDIATE) {
        piece->immediate = message->immediate;
        piece->ended = true;
    }
}

/* A burst stands for itself: where one piece ends in it and the next begins is not known. */
static void add_data(struct strand *strand, bool *open, const struct message *message, int32_t index)
{
    bool is_burst = (message->flags & MESSAGE_MERGED) != 0;

    if (is_burst && *open)
        strand->pieces.items[strand->pieces.count - 1].slot.whole = false;
    *open &= !is_burst;
    struct piece *piece = open_piece(strand, open, message);
    struct slot_message *of = array_add(&strand->messages);
    of->slot = strand->pieces.count - 1;
    of->message = index;
    fill_piece(piece, message);
    *open = !is_burst && !piece->ended;
}

void strand_build(struct strand *strand, const struct naming *naming, int32_t flow)
{
    timed_list data = {0};
    bool open = false;

    if (flow < 0)
        return;
    strand->stream = naming->flows.items[flow].stream;
    sort_data(&data, naming, &naming->flows.items[flow]);
    for (size_t i = 0; i < data.count; i++) {
        int32_t index = data.items[i].message;
        add_data(strand, &open, &naming->messages.items[index], index);
    }
    array_fini(&data);
    if (open)
        strand->pieces.items[strand->pieces.count - 1].slot.whole = false;
}

void strand_fini(struct strand *strand)
{
    array_fini(&strand->pieces);
    array_fini(&strand->messages);
}
