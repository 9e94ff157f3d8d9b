/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sender: waits for the device's tail and the receiver's credit, returns steps by the head. Receiver: gives credit
 * without waiting for its device, eight steps ahead of what it has taken, and announces data by the tail. It soon
 * sleeps when there is nothing to do: the lab has two CPUs. Lanes that share an end ask together for what they can.
 */
#include "proxy/progress.h"

#include <errno.h>
#include <time.h>

enum { SPINS = 20, BUSY_NAP_NS = 50000, IDLE_NAP_NS = 1000000, IDLE_PASSES = 200 };

static uint64_t counter_read(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

static int *request_of(struct carrier *carrier, const struct lane_op *op, uint64_t steps)
{
    return &carrier->requests[steps / op->slice_steps % STEPS];
}

static void operation_begin(struct carrier *carrier, const struct lane_op *op)
{
    carrier->is_active = true;
    carrier->posted = carrier->received = carrier->flushed = carrier->done = 0;
    if (carrier->sends)
        __atomic_store_n(&carrier->lane.region->head, op->base, __ATOMIC_RELEASE);
}

static void operation_end(struct carrier *carrier)
{
    carrier->is_active = false;
    lane_finish(&carrier->lane);
}

static int send_post(struct carrier *carrier, const struct lane_op *op)
{
    struct lane_region *region = carrier->lane.region;
    uint64_t step = op->base + carrier->posted;

    if (carrier->posted == op->steps || carrier->posted - carrier->done >= STEPS ||
        counter_read(&region->tail) < step + op->slice_steps)
        return -EAGAIN;
    int size_bytes = __atomic_load_n(&region->sizes[step % STEPS], __ATOMIC_ACQUIRE);
    const struct net_piece piece = {lane_slot(&carrier->lane, step), (size_t)size_bytes, carrier->tag};
    int error = net_send(carrier->end, &piece, request_of(carrier, op, carrier->posted));
    if (!error)
        carrier->posted += op->slice_steps;
    return error;
}

static int send_complete(struct carrier *carrier, const struct lane_op *op)
{
    size_t size_bytes;

    if (carrier->done == carrier->posted)
        return -EAGAIN;
    int error = net_test(carrier->end, *request_of(carrier, op, carrier->done), &size_bytes);
    if (error)
        return error;
    carrier->done += op->slice_steps;
    __atomic_store_n(&carrier->lane.region->head, op->base + carrier->done, __ATOMIC_RELEASE);
    if (carrier->done == op->steps)
        operation_end(carrier);
    return 0;
}

static bool receive_has_room(const struct carrier *carrier, const struct lane_op *op)
{
    uint64_t head = counter_read(&carrier->lane.region->head), taken = head > op->base ? head - op->base : 0;

    return carrier->posted < op->steps && carrier->posted + op->slice_steps <= taken + STEPS;
}

/* The lanes that share the end of `first` and have room too, behind it. */
static int receivers_find(struct carrier *first, struct carrier **found)
{
    int count = 1;

    found[0] = first;
    for (struct carrier *other = first->progress->carriers; other && count < net_receives(); other = other->next) {
        const struct lane_op *op = other->end == first->end && other != first ? lane_peek(&other->lane) : NULL;
        if (!op)
            continue;
        if (!other->is_active)
            operation_begin(other, op);
        if (receive_has_room(other, op))
            found[count++] = other;
    }
    return count;
}

static int receive_post(struct carrier *carrier, const struct lane_op *op)
{
    struct carrier *together[NET_RECEIVES];
    struct net_piece pieces[NET_RECEIVES];
    int request;

    if (!receive_has_room(carrier, op))
        return -EAGAIN;
    int count = receivers_find(carrier, together);
    for (int i = 0; i < count; i++) {
        const struct carrier *one = together[i];
        op = lane_peek(&one->lane);
        pieces[i] = (struct net_piece){lane_slot(&one->lane, op->base + one->posted),
                                       (size_t)one->lane.step_bytes * op->slice_steps, one->tag};
    }
    int error = net_receive(carrier->end, pieces, count, &request);
    for (int i = 0; !error && i < count; i++) {
        op = lane_peek(&together[i]->lane);
        *request_of(together[i], op, together[i]->posted) = request + i;
        together[i]->posted += op->slice_steps;
    }
    return error;
}

static int flush_begin(struct carrier *carrier, const struct lane_op *op)
{
    int error =
        net_flush(carrier->end, lane_slot(&carrier->lane, op->base + carrier->received), &carrier->flush_request);

    carrier->has_flush = !error;
    return error == -EOPNOTSUPP ? 0 : error;
}

static int receive_complete(struct carrier *carrier, const struct lane_op *op)
{
    size_t size_bytes;

    if (carrier->received == carrier->posted || carrier->has_flush)
        return -EAGAIN;
    int error = net_test(carrier->end, *request_of(carrier, op, carrier->received), &size_bytes);
    if (!error)
        error = flush_begin(carrier, op);
    if (!error)
        carrier->received += op->slice_steps;
    return error;
}

static int receive_announce(struct carrier *carrier, const struct lane_op *op)
{
    size_t size_bytes;

    if (carrier->has_flush) {
        int error = net_test(carrier->end, carrier->flush_request, &size_bytes);
        if (error)
            return error;
        carrier->has_flush = false;
    }
    if (carrier->flushed == carrier->received)
        return -EAGAIN;
    carrier->flushed = carrier->received;
    __atomic_store_n(&carrier->lane.region->tail, op->base + carrier->flushed, __ATOMIC_RELEASE);
    return 0;
}

static int receive_end(struct carrier *carrier, const struct lane_op *op)
{
    if (carrier->flushed < op->steps || counter_read(&carrier->lane.region->head) < op->base + op->steps)
        return -EAGAIN;
    operation_end(carrier);
    return 0;
}

typedef int part_fn(struct carrier *carrier, const struct lane_op *op);

/* Whether something was done; an error of the network other than "not yet" is kept. */
static bool carrier_pass(struct progress *progress, struct carrier *carrier)
{
    static part_fn *const send_parts[] = {send_post, send_complete};
    static part_fn *const receive_parts[] = {receive_post, receive_complete, receive_announce, receive_end};
    part_fn *const *parts = carrier->sends ? send_parts : receive_parts;
    size_t count = carrier->sends ? 2 : 4;
    bool worked = false;

    for (size_t i = 0; i < count; i++) {
        const struct lane_op *op = lane_peek(&carrier->lane);
        if (!op)
            break;
        if (!carrier->is_active)
            operation_begin(carrier, op);
        int error = parts[i](carrier, op), none = 0;
        worked = worked || !error;
        if (error && error != -EAGAIN)
            atomic_compare_exchange_strong(&progress->error, &none, error);
    }
    return worked;
}

static bool progress_pass(struct progress *progress, bool *is_idle)
{
    bool worked = false;

    *is_idle = true;
    pthread_mutex_lock(&progress->lock);
    for (struct carrier *carrier = progress->carriers; carrier && !progress->error; carrier = carrier->next) {
        worked = carrier_pass(progress, carrier) || worked;
        *is_idle = *is_idle && !lane_peek(&carrier->lane);
    }
    pthread_mutex_unlock(&progress->lock);
    return worked;
}

static void *progress_run(void *argument)
{
    struct progress *progress = argument;
    unsigned quiet = 0;
    bool is_idle;

    while (!progress->stop) {
        quiet = progress_pass(progress, &is_idle) ? 0 : quiet + 1;
        if (quiet > SPINS)
            nanosleep(&(struct timespec){.tv_nsec = is_idle && quiet > IDLE_PASSES ? IDLE_NAP_NS : BUSY_NAP_NS}, NULL);
    }
    return NULL;
}

void progress_init(struct progress *progress)
{
    *progress = (struct progress){.is_started = false};
    pthread_mutex_init(&progress->lock, NULL);
}

int progress_start(struct progress *progress)
{
    if (progress->is_started)
        return 0;
    if (pthread_create(&progress->thread, NULL, progress_run, progress))
        return -EAGAIN;
    progress->is_started = true;
    return 0;
}

void progress_add(struct progress *progress, struct carrier *carrier)
{
    pthread_mutex_lock(&progress->lock);
    carrier->progress = progress;
    carrier->next = progress->carriers;
    progress->carriers = carrier;
    pthread_mutex_unlock(&progress->lock);
}

void progress_remove(struct progress *progress, struct carrier *carrier)
{
    pthread_mutex_lock(&progress->lock);
    for (struct carrier **at = &progress->carriers; *at; at = &(*at)->next) {
        if (*at != carrier)
            continue;
        *at = carrier->next;
        break;
    }
    pthread_mutex_unlock(&progress->lock);
}

void progress_stop(struct progress *progress)
{
    progress->stop = true;
    if (progress->is_started)
        pthread_join(progress->thread, NULL);
    progress->is_started = false;
    pthread_mutex_destroy(&progress->lock);
}
