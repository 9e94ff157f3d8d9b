/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What RCCL's device code does to its connections, in its three protocols.
 * Simple: data lies in slots, the sender announces them by `tail`, the receiver returns them by `head`.
 * LL and LL128: lines that carry a flag (step + 1) next to the data, one step for each move. LL has 8 bytes of data in
 * a line of 16, LL128 has 56 in 64. How data is spread over LL128 lines differs from the GPU's way, which only the two
 * ends see; the network proxy sees the same sizes and flags.
 */
#include "links.h"

#include "reduce.h"
#include "setting.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPINS = 10, NAP_NS = 100000, REPORTED_TRY = 50000, LL_FLAG_1 = 1, LL_FLAG_2 = 3, LL128_FLAG = 7 };

/* Soon sleeps: RCCL's proxies need the CPU more. */
static void nap(unsigned *tries)
{
    if (++*tries > SPINS)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

static bool given_up(struct links *links)
{
    const struct devcomm *devcomm = links->place->devcomm;

    links->aborted = links->aborted || (devcomm->abort_flag && *devcomm->abort_flag);
    return links->aborted;
}

static void wait_report(const struct links *links, const char *what, unsigned tries, uint64_t have, uint64_t wanted)
{
    if (tries == REPORTED_TRY)
        setting_say(1, "rank %d waits for %s: %lu, wanted %lu (protocol %d, %d in, %d out)",
                    links->place->devcomm->rank, what, have, wanted, (int)links->proto, links->receive_count,
                    links->send_count);
}

static bool wait_at_least(struct links *links, const uint64_t *counter, uint64_t add, uint64_t wanted)
{
    unsigned tries = 0;

    while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) + add < wanted) {
        if (given_up(links))
            return false;
        nap(&tries);
        wait_report(links, add ? "head" : "tail", tries, *counter + add, wanted);
    }
    return true;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

void links_open(struct links *links, int conn_index, const int *from, int from_max, const int *to, int to_max)
{
    uint64_t unit = links->proto == SIMPLE ? (uint64_t)(links->slices * links->steps) : 1;
    struct peer *peers = links->place->channel->peers;

    links->receive_count = links->send_count = 0;
    for (int i = 0; i < from_max && from[i] >= 0; i++) {
        struct conn *conn = &peers[from[i]].recv[conn_index];
        links->receive[links->receive_count++] = (struct link_end){conn, from[i], round_up(conn->step, unit), 0, 0};
        if (links->proto == SIMPLE)
            __atomic_store_n(conn->head, round_up(conn->step, unit), __ATOMIC_RELEASE);
    }
    for (int i = 0; i < to_max && to[i] >= 0; i++) {
        struct conn *conn = &peers[to[i]].send[conn_index];
        links->send[links->send_count++] = (struct link_end){conn, to[i], round_up(conn->step, unit), 0, 0};
    }
}

void links_close(struct links *links)
{
    const struct place *place = links->place;

    for (int i = 0; i < links->receive_count; i++)
        links->receive[i].conn->step = links->receive[i].step;
    for (int i = 0; i < links->send_count; i++) {
        struct link_end *end = &links->send[i];
        end->conn->step = end->step;
        if (end->pieces)
            facts_sent(place->facts, place->work, place->channel_number, end->peer, end->bytes, end->pieces);
    }
}

/* The user's operand (if any) and every source, reduced, into the user's result (if any) and every destination. */
static void combine(const struct links *links, int sources, char **from, int destinations, char **to, const char *in,
                    char *out, int64_t n)
{
    char *first = out ? out : destinations ? to[0] : NULL;
    size_t bytes = (size_t)(n * links->elem_bytes);

    if (!first || !n)
        return;
    if (!sources)
        memmove(first, in, bytes);
    else if (in)
        reduce_apply(first, from[0], in, n, links->type, links->redop);
    else
        memmove(first, from[0], bytes);
    for (int i = 1; i < sources; i++)
        reduce_apply(first, first, from[i], n, links->type, links->redop);
    for (int i = 0; i < destinations; i++)
        if (to[i] != first)
            memcpy(to[i], first, bytes);
}

/* Tells the proxy how much lies in the step's slot, and remembers it for the truth. */
static void size_announce(struct link_end *end, int64_t bytes)
{
    end->bytes += (uint64_t)bytes;
    end->pieces++;
    if (end->conn->sizes_fifo)
        __atomic_store_n(&end->conn->sizes_fifo[end->step % STEPS], (int)bytes, __ATOMIC_SEQ_CST);
}

static char *slot(const struct links *links, const struct link_end *end)
{
    char *base = end->conn->buffs[links->proto];

    if (links->proto == SIMPLE && end->conn->offs_fifo) /* a pool that peers share */
        return base + ((volatile int *)end->conn->offs_fifo)[end->step % STEPS];
    return base + end->step % STEPS * (uint64_t)(links->place->devcomm->buff_sizes[links->proto] / STEPS);
}

static bool simple_slots(struct links *links, bool receives, bool sends, int64_t n, char **from, char **to)
{
    uint64_t steps = (uint64_t)links->steps;

    for (int i = 0; receives && i < links->receive_count; i++) {
        struct link_end *end = &links->receive[i];
        if (!wait_at_least(links, end->conn->tail, 0, end->step + steps))
            return false;
        from[i] = slot(links, end);
    }
    for (int i = 0; sends && i < links->send_count; i++) {
        struct link_end *end = &links->send[i];
        if (!wait_at_least(links, end->conn->head, STEPS, end->step + steps))
            return false;
        size_announce(end, n * links->elem_bytes);
        to[i] = slot(links, end);
    }
    return true;
}

static void simple_post(struct links *links, bool receives, bool sends)
{
    for (int i = 0; receives && i < links->receive_count; i++) {
        struct link_end *end = &links->receive[i];
        end->step += (uint64_t)links->steps;
        __atomic_store_n(end->conn->head, end->step, __ATOMIC_SEQ_CST);
    }
    for (int i = 0; sends && i < links->send_count; i++) {
        struct link_end *end = &links->send[i];
        end->step += (uint64_t)links->steps;
        __atomic_store_n(end->conn->tail, end->step, __ATOMIC_SEQ_CST);
    }
}

static void simple_move(struct links *links, bool receives, bool sends, const char *in, char *out, int64_t n)
{
    int elem_bytes = links->elem_bytes;
    int64_t least = (int64_t)links->place->devcomm->buff_sizes[SIMPLE] / STEPS / elem_bytes * links->steps / 32;
    int64_t slice = (n + 16 * links->slices - 1) / (16 * links->slices) * 16, at = 0;

    if (slice < least)
        slice = least;
    for (int k = 0; k < links->slices; k++) { /* every slice takes its steps, also when nothing is left for it */
        char *from[TREE_ARITY], *to[TREE_ARITY];
        if (slice > n - at)
            slice = n - at;
        if (!simple_slots(links, receives, sends, slice, from, to))
            return;
        combine(links, receives ? links->receive_count : 0, from, sends ? links->send_count : 0, to,
                in ? in + at * elem_bytes : NULL, out ? out + at * elem_bytes : NULL, slice);
        simple_post(links, receives, sends);
        at += slice;
    }
}

static int64_t line_bytes(const struct links *links)
{
    return links->proto == LL ? 16 : 64;
}

static int64_t line_data_bytes(const struct links *links)
{
    return links->proto == LL ? 8 : 56;
}

static bool line_is_ready(const struct links *links, const char *line, uint64_t flag)
{
    const uint32_t *words = (const uint32_t *)line;

    if (links->proto == LL128)
        return __atomic_load_n((const uint64_t *)line + LL128_FLAG, __ATOMIC_ACQUIRE) == flag;
    return __atomic_load_n(&words[LL_FLAG_1], __ATOMIC_ACQUIRE) == (uint32_t)flag &&
           __atomic_load_n(&words[LL_FLAG_2], __ATOMIC_ACQUIRE) == (uint32_t)flag;
}

static void line_get(const struct links *links, const char *line, char *data)
{
    if (links->proto == LL128) {
        memcpy(data, line, 56);
        return;
    }
    memcpy(data, line, 4);
    memcpy(data + 4, line + 8, 4);
}

static void line_put(const struct links *links, char *line, const char *data, uint64_t flag)
{
    uint32_t *words = (uint32_t *)line;

    if (links->proto == LL128) {
        memcpy(line, data, 56);
        __atomic_store_n((uint64_t *)line + LL128_FLAG, flag, __ATOMIC_RELEASE);
        return;
    }
    memcpy(line, data, 4);
    memcpy(line + 8, data + 4, 4);
    __atomic_store_n(&words[LL_FLAG_1], (uint32_t)flag, __ATOMIC_RELEASE);
    __atomic_store_n(&words[LL_FLAG_2], (uint32_t)flag, __ATOMIC_RELEASE);
}

static bool lines_reserve(struct links *links, int64_t lines)
{
    for (int i = 0; i < links->send_count; i++) {
        struct link_end *end = &links->send[i];
        if (!wait_at_least(links, end->conn->head, STEPS, end->step + 1))
            return false;
        size_announce(end, lines * line_bytes(links));
    }
    return true;
}

static bool lines_receive(struct links *links, struct link_end *end, char *data, int64_t lines)
{
    char *line = slot(links, end);

    for (int64_t k = 0; k < lines; k++, line += line_bytes(links), data += line_data_bytes(links)) {
        unsigned tries = 0;
        while (!line_is_ready(links, line, end->step + 1)) {
            if (given_up(links))
                return false;
            nap(&tries);
            wait_report(links, "a line's flag", tries, (uint64_t)k, end->step + 1);
        }
        line_get(links, line, data);
    }
    return true;
}

static void lines_send(struct links *links, struct link_end *end, const char *data, int64_t lines)
{
    char *line = slot(links, end);

    for (int64_t k = 0; k < lines; k++, line += line_bytes(links), data += line_data_bytes(links))
        line_put(links, line, data, end->step + 1);
    end->step++;
    if (links->proto == LL128 && end->conn->sizes_fifo)
        __atomic_store_n(end->conn->tail, end->step, __ATOMIC_SEQ_CST);
}

static void lines_move(struct links *links, bool receives, bool sends, const char *in, char *out, int64_t n)
{
    int64_t data_bytes = line_data_bytes(links), lines = (n * links->elem_bytes + data_bytes - 1) / data_bytes;
    int64_t room = lines * data_bytes;
    char *pad = malloc((size_t)room * (TREE_ARITY + 1) + 1), *to[1] = {pad};
    char *from[TREE_ARITY] = {pad + room, pad + 2 * room};
    bool going = !sends || lines_reserve(links, lines);

    for (int i = 0; going && receives && i < links->receive_count; i++)
        going = lines_receive(links, &links->receive[i], from[i], lines);
    if (going)
        combine(links, receives ? links->receive_count : 0, from, sends ? 1 : 0, to, in, out, n);
    for (int i = 0; going && receives && i < links->receive_count; i++)
        __atomic_store_n(links->receive[i].conn->head, ++links->receive[i].step, __ATOMIC_SEQ_CST);
    for (int i = 0; going && sends && i < links->send_count; i++)
        lines_send(links, &links->send[i], pad, lines);
    free(pad);
}

void links_move(struct links *links, bool receives, bool sends, const char *in, char *out, int64_t n)
{
    if (links->aborted)
        return;
    if (links->proto == SIMPLE)
        simple_move(links, receives, sends, in, out, n < 0 ? 0 : n);
    else
        lines_move(links, receives, sends, in, out, n < 0 ? 0 : n);
}
