/* SPDX-License-Identifier: BSD-2-Clause */
/* Works of sends and receives: each is cut into chunks of the size that the host has chosen. */
#include "p2p.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct half {
    const struct place *place;
    const struct p2p_elem *elem;
};

static void *half_run(void *argument)
{
    const struct half *half = argument;
    int peer = half->elem->peer;
    bool is_send = half->elem->type == P2P_SEND;
    struct links links = {.place = half->place, .proto = SIMPLE, .type = I8, .elem_bytes = 1, .slices = 1, .steps = 1};
    int64_t at = 0, count = p2p_elem_count(half->elem);

    links_open(&links, (int)half->elem->conn_index, &peer, is_send ? 0 : 1, &peer, is_send ? 1 : 0);
    do { /* a message of no bytes is one empty step */
        int64_t left = count - at, now = left < half->elem->chunk_size ? left : half->elem->chunk_size;
        char *here = p2p_elem_buffer(half->elem) + at;
        links_move(&links, !is_send, is_send, is_send ? here : NULL, is_send ? NULL : here, now);
        at += now;
    } while (at < count && !links.aborted);
    links_close(&links);
    return NULL;
}

/* Pairs of a receive and a send, all at the same time: one may wait for a peer that waits for another. */
void p2p_run(const struct place *place)
{
    struct half halves[P2P_ELEMS];
    pthread_t threads[P2P_ELEMS];
    int count = 0;

    for (int i = 0; i < P2P_ELEMS; i++) {
        const struct p2p_elem *elem = &place->work->p2p[i];
        if (!p2p_elem_used(elem))
            continue;
        if (elem->peer != place->devcomm->rank)
            halves[count++] = (struct half){place, elem};
        else if (elem->type == P2P_SEND)
            memmove(p2p_elem_buffer(elem - 1), p2p_elem_buffer(elem), (size_t)p2p_elem_count(elem));
    }
    for (int i = 1; i < count; i++) {
        if (pthread_create(&threads[i], NULL, half_run, &halves[i]))
            abort();
        pthread_setname_np(threads[i], "standin-p2p");
    }
    if (count > 0)
        half_run(&halves[0]);
    for (int i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
}
