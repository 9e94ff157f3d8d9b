/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided calls: every rank puts into the next one's window. */
#include "exercise/scenario.h"
#include "exercise/workout.h"

#include "cuda.h"
#include "truth.h"

enum { COUNT = 50000, OFFSET = 100, PUTS = 3 };

struct window {
    float *memory;
    ncclWindow_t handle;
};

static void call_note(const struct actor *actor, const struct member *member, const char *operation, int peer,
                      uint64_t count, uint64_t called_ns)
{
    struct truth_line line;

    truth_begin(&line, "call");
    truth_signed(&line, "rank", actor->rank);
    truth_text(&line, "name", member->name);
    truth_text(&line, "operation", operation);
    truth_pointer(&line, "comm", member->comm);
    truth_pointer(&line, "stream", actor->stream);
    truth_signed(&line, "peer", peer);
    truth_number(&line, "count", count);
    truth_number(&line, "bytes", count * sizeof(float));
    truth_number(&line, "called_ns", called_ns);
    truth_number(&line, "returned_ns", truth_now_ns());
    truth_put(&line);
}

static void round_run(struct actor *actor, struct member *world, const struct window *to, const float *from)
{
    int next = (world->rank + 1) % world->ranks, previous = (world->rank + world->ranks - 1) % world->ranks;
    ncclWaitSignalDesc_t wait = {.opCnt = 2, .peer = previous};
    uint64_t called_ns = truth_now_ns();

    api_check(api.PutSignal(from, COUNT, ncclFloat32, next, to->handle, OFFSET * sizeof(float), 0, 0, 0, world->comm,
                            actor->stream),
              "ncclPutSignal");
    call_note(actor, world, "PutSignal", next, COUNT, called_ns);
    called_ns = truth_now_ns();
    api_check(api.Signal(next, 0, 0, 0, world->comm, actor->stream), "ncclSignal");
    call_note(actor, world, "Signal", next, 0, called_ns);
    called_ns = truth_now_ns();
    api_check(api.WaitSignal(1, &wait, world->comm, actor->stream), "ncclWaitSignal");
    call_note(actor, world, "WaitSignal", previous, 0, called_ns);
    cudaStreamSynchronize(actor->stream);
}

static void window_check(struct actor *actor, const struct member *world, const struct window *window)
{
    float wanted = (float)((world->rank + world->ranks - 1) % world->ranks + 1);

    for (int i = 0; i < COUNT; i++)
        actor->wrong += window->memory[OFFSET + i] != wanted;
    for (int i = 0; i < OFFSET; i++)
        actor->wrong += window->memory[i] != 0;
}

void scenario_put(struct actor *actor)
{
    struct member world;
    struct window window;
    float *from;

    member_init_world(actor, &world, "world", MODE_INLINE);
    member_ready(actor, &world);
    cudaMalloc((void **)&from, COUNT * sizeof *from);
    for (int i = 0; i < COUNT; i++)
        from[i] = (float)(world.rank + 1);
    api_check(api.MemAlloc((void **)&window.memory, (COUNT + OFFSET) * sizeof(float)), "ncclMemAlloc");
    api_check(api.CommWindowRegister(world.comm, window.memory, (COUNT + OFFSET) * sizeof(float), &window.handle, 1),
              "ncclCommWindowRegister");
    for (int i = 0; i < PUTS; i++)
        round_run(actor, &world, &window, from);
    window_check(actor, &world, &window);
    actor_meet(actor, "done");
    api_check(api.CommWindowDeregister(world.comm, window.handle), "ncclCommWindowDeregister");
    api_check(api.MemFree(window.memory), "ncclMemFree");
    cudaFree(from);
    member_destroy(actor, &world);
}
