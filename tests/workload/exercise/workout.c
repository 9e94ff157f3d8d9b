/* SPDX-License-Identifier: BSD-2-Clause */
/* The root is always the communicator's last rank. */
#include "exercise/workout.h"

#include "cuda.h"
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRONG_SHOWN = 2 };

struct workout {
    struct actor *actor;
    struct member *member;
    enum workout_kind kind;
    size_t count;
    float *from, *to;
};

static const char *const names[WORKOUTS] = {
#define WORKOUT(name) #name,
#include "exercise/workout.def"
#undef WORKOUT
};

static int root_of(const struct member *member)
{
    return member->ranks - 1;
}

static float value_of(size_t element, int rank)
{
    return (float)((element * 7 + (size_t)rank * 13) % 1000);
}

static float value_sum(size_t element, int ranks)
{
    float sum = 0;

    for (int rank = 0; rank < ranks; rank++)
        sum += value_of(element, rank);
    return sum;
}

/* What must be in the result, or -1 where the call leaves it alone. */
static float value_expected(const struct workout *workout, size_t element)
{
    const struct member *member = workout->member;
    size_t count = workout->count, part = element / count, rest = element % count;
    int rank = member->rank, ranks = member->ranks, root = root_of(member);

    switch (workout->kind) {
    case WORKOUT_AllReduce:
        return part ? -1 : value_sum(element, ranks);
    case WORKOUT_AllGather:
        return value_of(rest, (int)part);
    case WORKOUT_ReduceScatter:
        return part ? -1 : value_sum(element + (size_t)rank * count, ranks);
    case WORKOUT_Broadcast:
    case WORKOUT_Bcast:
        return part ? -1 : value_of(element, root);
    case WORKOUT_Reduce:
        return part || rank != root ? -1 : value_sum(element, ranks);
    case WORKOUT_AlltoAll:
        return value_of(rest + (size_t)rank * count, (int)part);
    case WORKOUT_Gather:
        return rank == root ? value_of(rest, (int)part) : -1;
    case WORKOUT_Scatter:
        return part ? -1 : value_of(element + (size_t)rank * count, root);
    case WORKOUT_Exchange:
        return part ? -1 : value_of(element, (rank + ranks - 1) % ranks);
    case WORKOUTS:
        break;
    }
    return -1;
}

static ncclResult_t exchange_call(const struct workout *workout)
{
    const struct member *member = workout->member;
    int next = (member->rank + 1) % member->ranks, previous = (member->rank + member->ranks - 1) % member->ranks;
    void *stream = workout->member->stream;

    api.GroupStart();
    api.Send(workout->from, workout->count, ncclFloat32, next, member->comm, stream);
    api.Recv(workout->to, workout->count, ncclFloat32, previous, member->comm, stream);
    return api.GroupEnd();
}

static ncclResult_t workout_call(const struct workout *workout)
{
    const float *from = workout->from;
    float *to = workout->to;
    size_t count = workout->count;
    ncclComm_t comm = workout->member->comm;
    int root = root_of(workout->member);
    void *stream = workout->member->stream;

    switch (workout->kind) {
    case WORKOUT_AllReduce:
        return api.AllReduce(from, to, count, ncclFloat32, ncclSum, comm, stream);
    case WORKOUT_AllGather:
        return api.AllGather(from, to, count, ncclFloat32, comm, stream);
    case WORKOUT_ReduceScatter:
        return api.ReduceScatter(from, to, count, ncclFloat32, ncclSum, comm, stream);
    case WORKOUT_Broadcast:
        return api.Broadcast(from, to, count, ncclFloat32, root, comm, stream);
    case WORKOUT_Bcast:
        return api.Bcast(to, count, ncclFloat32, root, comm, stream);
    case WORKOUT_Reduce:
        return api.Reduce(from, to, count, ncclFloat32, ncclSum, root, comm, stream);
    case WORKOUT_AlltoAll:
        return api.AlltoAll(from, to, count, ncclFloat32, comm, stream);
    case WORKOUT_Gather:
        return api.Gather(from, to, count, ncclFloat32, root, comm, stream);
    case WORKOUT_Scatter:
        return api.Scatter(from, to, count, ncclFloat32, root, comm, stream);
    case WORKOUT_Exchange:
        return exchange_call(workout);
    case WORKOUTS:
        break;
    }
    return ncclInvalidArgument;
}

static void call_note(const struct workout *workout, const char *name, int peer, uint64_t sequence,
                      const uint64_t *times_ns)
{
    const struct member *member = workout->member;
    bool reduces =
        workout->kind == WORKOUT_AllReduce || workout->kind == WORKOUT_ReduceScatter || workout->kind == WORKOUT_Reduce;
    bool has_root =
        workout->kind >= WORKOUT_Broadcast && workout->kind <= WORKOUT_Scatter && workout->kind != WORKOUT_AlltoAll;
    int status = CUDA_CAPTURE_NONE;
    struct truth_line line;

    cudaStreamIsCapturing(workout->member->stream, &status);
    truth_begin(&line, "call");
    truth_signed(&line, "rank", workout->actor->rank);
    truth_text(&line, "name", member->name);
    truth_text(&line, "operation", name);
    truth_pointer(&line, "comm", member->comm);
    truth_pointer(&line, "stream", workout->member->stream);
    truth_number(&line, "sequence", sequence);
    truth_signed(&line, "peer", peer);
    truth_signed(&line, "root", has_root ? root_of(member) : -1);
    truth_number(&line, "count", workout->count);
    truth_text(&line, "type", "float32");
    truth_text(&line, "reduction", reduces ? "sum" : "");
    truth_number(&line, "bytes", workout->count * sizeof(float));
    truth_signed(&line, "captured", status != CUDA_CAPTURE_NONE);
    truth_number(&line, "called_ns", times_ns[0]);
    truth_number(&line, "returned_ns", times_ns[1]);
    truth_put(&line);
}

static void calls_note(const struct workout *workout, const uint64_t *times_ns)
{
    struct member *member = workout->member;
    int next = (member->rank + 1) % member->ranks, previous = (member->rank + member->ranks - 1) % member->ranks;

    if (workout->kind != WORKOUT_Exchange) {
        call_note(workout, names[workout->kind], -1, member->collectives++, times_ns);
        return;
    }
    call_note(workout, "Send", next, member->sends[next]++, times_ns);
    call_note(workout, "Recv", previous, member->receives[previous]++, times_ns);
}

static void buffers_fill(struct workout *workout)
{
    size_t all = workout->count * (size_t)workout->member->ranks;

    cudaMalloc((void **)&workout->from, all * sizeof(float));
    cudaMalloc((void **)&workout->to, all * sizeof(float));
    for (size_t i = 0; i < all; i++) {
        workout->from[i] = value_of(i, workout->member->rank);
        workout->to[i] = -1;
    }
    if (workout->kind == WORKOUT_Bcast && workout->member->rank == root_of(workout->member))
        memcpy(workout->to, workout->from, workout->count * sizeof(float));
}

struct workout *workout_begin(struct actor *actor, struct member *member, enum workout_kind kind, size_t count)
{
    struct workout *workout = calloc(1, sizeof *workout);
    uint64_t times_ns[2];

    *workout = (struct workout){.actor = actor, .member = member, .kind = kind, .count = count};
    buffers_fill(workout);
    times_ns[0] = truth_now_ns();
    api_check(workout_call(workout), names[kind]);
    times_ns[1] = truth_now_ns();
    calls_note(workout, times_ns);
    return workout;
}

void workout_drop(struct workout *workout)
{
    cudaFree(workout->from);
    cudaFree(workout->to);
    free(workout);
}

void workout_end(struct workout *workout)
{
    size_t all = workout->count * (size_t)workout->member->ranks, wrong = 0;

    for (size_t i = 0; i < all; i++) {
        float expected = value_expected(workout, i);
        if (workout->to[i] != expected && wrong++ < WRONG_SHOWN)
            fprintf(stderr, "exercise: rank %d, %s on %s, element %zu: %g instead of %g\n", workout->actor->rank,
                    names[workout->kind], workout->member->name, i, (double)workout->to[i], (double)expected);
    }
    workout->actor->wrong += wrong;
    workout_drop(workout);
}

void workout_run(struct actor *actor, struct member *member, enum workout_kind kind, size_t count)
{
    struct workout *workout = workout_begin(actor, member, kind, count);

    member_await(member);
    cudaStreamSynchronize(member->stream);
    workout_end(workout);
}

void workout_run_all(struct actor *actor, struct member *member, size_t count)
{
    for (int kind = 0; kind < WORKOUTS; kind++)
        workout_run(actor, member, (enum workout_kind)kind, count);
}
