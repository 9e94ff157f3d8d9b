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

void p2p_run(const struct place *place)
{
    struct half receive = {place, &place->work->p2p[0]}, send = {place, &place->work->p2p[1]};
    bool receives = p2p_elem_used(receive.elem), sends = p2p_elem_used(send.elem);
    pthread_t thread;

    if (sends && send.elem->peer == place->devcomm->rank) {
        memmove(p2p_elem_buffer(receive.elem), p2p_elem_buffer(send.elem), (size_t)p2p_elem_count(send.elem));
        return;
    }
    if (!receives) {
        half_run(&send);
        return;
    }
    if (sends) {
        if (pthread_create(&thread, NULL, half_run, &send))
            abort();
        pthread_setname_np(thread, "standin-send");
    }
    half_run(&receive);
    if (sends)
        pthread_join(thread, NULL);
}
