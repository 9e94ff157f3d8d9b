/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout's assertions, and what unpacks its packed fields. */
#include "rccl_layout.h"

_Static_assert(sizeof(struct conn) == 112 && offsetof(struct conn, sizes_fifo) == 64 &&
                   offsetof(struct conn, step) == 80,
               "conn");
_Static_assert(sizeof(struct peer) == 672 && sizeof(struct channel) == 160, "peer, channel");
_Static_assert(offsetof(struct channel, tree) == 32 && offsetof(struct channel, work_fifo_done) == 152, "channel");
_Static_assert(offsetof(struct devcomm, abort_flag) == 32 && offsetof(struct devcomm, channels) == 40, "devcomm");
_Static_assert(sizeof(struct coll_elem) == 56 && sizeof(struct p2p_elem) == 28 && sizeof(struct work) == WORK_SIZE,
               "work");
_Static_assert(offsetof(struct work, coll) == 8 && offsetof(struct work, p2p) == 8 && FUNC_P2P == 2710, "work");

struct func func_decode(int index)
{
    int row = index / (NALGOS * NPROTOS);

    if (index == FUNC_P2P)
        return (struct func){SENDRECV, SUM, I8, RING, SIMPLE};
    return (struct func){row / NTYPES / NREDOPS, row / NTYPES % NREDOPS, row % NTYPES, index / NPROTOS % NALGOS,
                         index % NPROTOS};
}

int type_size_bytes(enum dtype type)
{
    static const int sizes[NTYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

    return sizes[type];
}

bool p2p_elem_used(const struct p2p_elem *elem)
{
    return elem->type != P2P_UNUSED && elem->peer != -1;
}

int64_t p2p_elem_count(const struct p2p_elem *elem)
{
    return (int64_t)((uint64_t)elem->count_hi << 32 | elem->count_lo);
}

char *p2p_elem_buffer(const struct p2p_elem *elem)
{
    return (char *)((uintptr_t)elem->buff_hi << 32 | elem->buff_lo);
}
