/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios of the CUDA runtime: graphs, and calls whose number is noted. */
#include "exercise/scenario.h"
#include "exercise/workout.h"

#include "cuda.h"
#include "truth.h"

enum { COUNT = 5000, REPLAYS = 3, KERNELS = 50, SYNCS = 5 };

static void cuda_note(const struct actor *actor, const char *call, int count, uint64_t begun_ns)
{
    struct truth_line line;

    truth_begin(&line, "cuda");
    truth_signed(&line, "rank", actor->rank);
    truth_text(&line, "call", call);
    truth_signed(&line, "count", count);
    truth_number(&line, "begun_ns", begun_ns);
    truth_number(&line, "ended_ns", truth_now_ns());
    truth_put(&line);
}

static void *graph_capture(struct actor *actor, struct member *world, struct workout **workouts)
{
    void *graph, *executable;
    uint64_t begun_ns = truth_now_ns();

    cudaStreamBeginCapture(actor->stream, 0);
    workouts[0] = workout_begin(actor, world, WORKOUT_AllReduce, COUNT);
    workouts[1] = workout_begin(actor, world, WORKOUT_Exchange, COUNT);
    cudaStreamEndCapture(actor->stream, &graph);
    cuda_note(actor, "cudaStreamBeginCapture", 1, begun_ns);
    begun_ns = truth_now_ns();
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    cuda_note(actor, "cudaGraphInstantiate", 1, begun_ns);
    return executable;
}

void scenario_graph(struct actor *actor)
{
    struct member world;
    struct workout *workouts[2];

    member_init_world(actor, &world, "world", MODE_INLINE);
    member_ready(actor, &world);
    workout_run(actor, &world, WORKOUT_AllReduce, COUNT);
    workout_run(actor, &world, WORKOUT_Exchange, COUNT);
    void *executable = graph_capture(actor, &world, workouts);
    for (int i = 0; i < REPLAYS; i++) {
        uint64_t begun_ns = truth_now_ns();
        cudaGraphLaunch(executable, actor->stream);
        cudaStreamSynchronize(actor->stream);
        cuda_note(actor, "cudaGraphLaunch", 1, begun_ns);
    }
    cudaGraphExecDestroy(executable);
    workout_end(workouts[0]);
    workout_end(workouts[1]);
    workout_run(actor, &world, WORKOUT_AllReduce, COUNT);
    actor_meet(actor, "done");
    member_destroy(actor, &world);
}

static void kernel_run_nothing(void *argument)
{
    (void)argument;
}

static void kernels_launch(struct actor *actor)
{
    struct cuda_dim3 one = {1, 1, 1};
    uint64_t begun_ns = truth_now_ns();

    for (int i = 0; i < KERNELS; i++)
        cudaLaunchKernel((const void *)kernel_run_nothing, one, one, NULL, 0, actor->stream);
    cuda_note(actor, "cudaLaunchKernel", KERNELS, begun_ns);
}

static void memory_use(struct actor *actor)
{
    uint64_t begun_ns = truth_now_ns();
    void *memory;

    for (int i = 0; i < SYNCS; i++) {
        cudaMalloc(&memory, COUNT);
        cudaMemcpyAsync(memory, memory, COUNT, 0, actor->stream);
        cudaStreamSynchronize(actor->stream);
        cudaFree(memory);
    }
    cuda_note(actor, "cudaMalloc", SYNCS, begun_ns);
    cuda_note(actor, "cudaMemcpyAsync", SYNCS, begun_ns);
    cuda_note(actor, "cudaStreamSynchronize", SYNCS, begun_ns);
    cuda_note(actor, "cudaFree", SYNCS, begun_ns);
}

static void events_use(struct actor *actor)
{
    uint64_t begun_ns = truth_now_ns();
    void *event;

    cudaEventCreate(&event);
    for (int i = 0; i < SYNCS; i++) {
        cudaEventRecord(event, actor->stream);
        cudaEventSynchronize(event);
    }
    cudaEventDestroy(event);
    cudaDeviceSynchronize();
    cuda_note(actor, "cudaEventRecord", SYNCS, begun_ns);
    cuda_note(actor, "cudaEventSynchronize", SYNCS, begun_ns);
    cuda_note(actor, "cudaDeviceSynchronize", 1, begun_ns);
}

void scenario_cuda(struct actor *actor)
{
    kernels_launch(actor);
    memory_use(actor);
    events_use(actor);
}
