/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the table pattern.def. Values are small whole numbers, so sums of floats are exact in any order. */
#include "pattern.h"

#include "hip.h"
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, EXCHANGE };
enum { PAIR = -1, CALLS_MAX = 64, WRONG_SHOWN = 3 };

struct operation {
    enum kind kind;
    int world; /* or PAIR */
    int units;
    int compute_percent;
    size_t count; /* floats as passed to the library */
    struct communicator *communicator;
    float *input, *output;
};

static const struct operation table[] = {
#define OPERATION(kind, world, units, compute_percent) {kind, world, units, compute_percent, 0, NULL, NULL, NULL},
#include "pattern.def"
#undef OPERATION
};

enum { OPERATIONS = sizeof table / sizeof table[0] };

struct pattern {
    int length;
    struct operation operations[OPERATIONS];
    int calls_count;
    struct call calls[CALLS_MAX];
};

static size_t input_count(const struct operation *operation)
{
    return operation->count * (operation->kind == REDUCE_SCATTER ? (size_t)operation->communicator->ranks : 1);
}

static size_t output_count(const struct operation *operation)
{
    return operation->count * (operation->kind == ALL_GATHER ? (size_t)operation->communicator->ranks : 1);
}

struct pattern *pattern_create(const struct job *job, struct communicators *communicators)
{
    struct pattern *pattern = calloc(1, sizeof *pattern);

    for (int i = 0; i < OPERATIONS; i++) {
        struct operation *operation = &pattern->operations[pattern->length];
        *operation = table[i];
        operation->communicator =
            table[i].world == PAIR ? &communicators->pair : &communicators->worlds[table[i].world % job->worlds];
        if (operation->communicator->ranks < 2)
            continue;
        operation->count = (size_t)(table[i].units * job->elements);
        library_check(hipMalloc((void **)&operation->input, input_count(operation) * sizeof(float)), "hipMalloc");
        library_check(hipMalloc((void **)&operation->output, output_count(operation) * sizeof(float)), "hipMalloc");
        pattern->length++;
    }
    return pattern;
}

void pattern_destroy(struct pattern *pattern)
{
    for (int i = 0; i < pattern->length; i++) {
        hipFree(pattern->operations[i].input);
        hipFree(pattern->operations[i].output);
    }
    free(pattern);
}

int pattern_length(const struct pattern *pattern)
{
    return pattern->length;
}

int pattern_compute_percent(const struct pattern *pattern, int index)
{
    return pattern->operations[index].compute_percent;
}

static int next_rank(const struct communicator *communicator)
{
    return (communicator->rank + 1) % communicator->ranks;
}

static int previous_rank(const struct communicator *communicator)
{
    return (communicator->rank + communicator->ranks - 1) % communicator->ranks;
}

static struct call *call_new(struct pattern *pattern, const struct operation *operation, const char *name)
{
    struct call *call = &pattern->calls[pattern->calls_count++ % CALLS_MAX];

    *call = (struct call){name, operation->communicator, 0, -1, -1, operation->count, truth_now_ns(), 0};
    return call;
}

static void exchange_enqueue(struct pattern *pattern, struct operation *operation, void *stream)
{
    struct communicator *communicator = operation->communicator;
    int next = next_rank(communicator), previous = previous_rank(communicator);
    struct call *send = call_new(pattern, operation, "Send"), *receive = call_new(pattern, operation, "Recv");

    send->peer = next;
    send->sequence = communicator->sends[next]++;
    receive->peer = previous;
    receive->sequence = communicator->receives[previous]++;
    library_check(library.GroupStart(), "ncclGroupStart");
    library_check(library.Send(operation->input, operation->count, LIBRARY_FLOAT, next, communicator->handle, stream),
                  "ncclSend");
    library_check(
        library.Recv(operation->output, operation->count, LIBRARY_FLOAT, previous, communicator->handle, stream),
        "ncclRecv");
    send->called_ns = receive->called_ns = truth_now_ns();
    library_check(library.GroupEnd(), "ncclGroupEnd");
    send->returned_ns = receive->returned_ns = truth_now_ns();
}

static int collective_start(const struct operation *operation, void *stream)
{
    const float *input = operation->input;
    float *output = operation->output;
    size_t count = operation->count;
    void *handle = operation->communicator->handle;

    switch (operation->kind) {
    case ALL_REDUCE:
        return library.AllReduce(input, output, count, LIBRARY_FLOAT, LIBRARY_SUM, handle, stream);
    case ALL_GATHER:
        return library.AllGather(input, output, count, LIBRARY_FLOAT, handle, stream);
    case REDUCE_SCATTER:
        return library.ReduceScatter(input, output, count, LIBRARY_FLOAT, LIBRARY_SUM, handle, stream);
    default:
        return library.Broadcast(input, output, count, LIBRARY_FLOAT, 0, handle, stream);
    }
}

void pattern_enqueue(struct pattern *pattern, int index, void *stream)
{
    static const char *const names[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast"};
    struct operation *operation = &pattern->operations[index];

    if (operation->kind == EXCHANGE) {
        exchange_enqueue(pattern, operation, stream);
        return;
    }
    struct call *call = call_new(pattern, operation, names[operation->kind]);
    call->root = operation->kind == BROADCAST ? 0 : -1;
    call->sequence = operation->communicator->collectives++;
    library_check(collective_start(operation, stream), names[operation->kind]);
    call->returned_ns = truth_now_ns();
}

void pattern_note(struct pattern *pattern, int64_t step)
{
    struct truth_line line;

    for (int i = 0; i < pattern->calls_count; i++) {
        const struct call *call = &pattern->calls[i];
        truth_begin(&line, "call");
        truth_signed(&line, "rank", call->communicator->world_rank);
        truth_signed(&line, "step", step);
        truth_text(&line, "operation", call->operation);
        truth_pointer(&line, "comm", call->communicator->handle);
        truth_number(&line, "sequence", call->sequence);
        truth_signed(&line, "peer", call->peer);
        truth_signed(&line, "root", call->root);
        truth_number(&line, "bytes", call->count * sizeof(float));
        truth_number(&line, "called_ns", call->called_ns);
        truth_number(&line, "returned_ns", call->returned_ns);
        truth_put(&line);
    }
    pattern->calls_count = 0;
}

static float value_of(size_t element, int rank, int64_t step)
{
    return (float)((element * 7 + (size_t)rank * 13 + (size_t)step) % 1000);
}

static float value_sum(size_t element, int ranks, int64_t step)
{
    float sum = 0;

    for (int rank = 0; rank < ranks; rank++)
        sum += value_of(element, rank, step);
    return sum;
}

static float value_expected(const struct operation *operation, size_t element, int64_t step)
{
    const struct communicator *communicator = operation->communicator;

    switch (operation->kind) {
    case ALL_REDUCE:
        return value_sum(element, communicator->ranks, step);
    case ALL_GATHER:
        return value_of(element % operation->count, (int)(element / operation->count), step);
    case REDUCE_SCATTER:
        return value_sum(element + (size_t)communicator->rank * operation->count, communicator->ranks, step);
    case BROADCAST:
        return value_of(element, 0, step);
    case EXCHANGE:
        return value_of(element, previous_rank(communicator), step);
    }
    return -1;
}

void pattern_fill(struct pattern *pattern, int64_t step)
{
    for (int i = 0; i < pattern->length; i++) {
        struct operation *operation = &pattern->operations[i];
        for (size_t element = 0; element < input_count(operation); element++)
            operation->input[element] = value_of(element, operation->communicator->rank, step);
        for (size_t element = 0; element < output_count(operation); element++)
            operation->output[element] = -1;
    }
}

static uint64_t operation_check(const struct operation *operation, int index, int64_t step)
{
    uint64_t wrong = 0;

    for (size_t element = 0; element < output_count(operation); element++) {
        float expected = value_expected(operation, element, step), found = operation->output[element];
        if (found != expected && wrong++ < WRONG_SHOWN)
            fprintf(stderr, "train: rank %d, operation %d, element %zu: %g instead of %g\n",
                    operation->communicator->world_rank, index, element, (double)found, (double)expected);
    }
    return wrong;
}

uint64_t pattern_check(const struct pattern *pattern, int64_t step)
{
    struct truth_line line;
    uint64_t wrong_all = 0;

    for (int i = 0; i < pattern->length; i++) {
        uint64_t wrong = operation_check(&pattern->operations[i], i, step);
        truth_begin(&line, "check");
        truth_signed(&line, "rank", pattern->operations[i].communicator->world_rank);
        truth_signed(&line, "step", step);
        truth_signed(&line, "operation", i);
        truth_number(&line, "values", output_count(&pattern->operations[i]));
        truth_number(&line, "wrong", wrong);
        truth_put(&line);
        wrong_all += wrong;
    }
    return wrong_all;
}

static uint64_t operation_sent_bytes(const struct operation *operation)
{
    uint64_t bytes = operation->count * sizeof(float), ranks = (uint64_t)operation->communicator->ranks;

    switch (operation->kind) {
    case ALL_REDUCE:
        return 2 * (ranks - 1) * bytes / ranks;
    case ALL_GATHER:
    case REDUCE_SCATTER:
        return (ranks - 1) * bytes;
    default:
        return bytes;
    }
}

uint64_t pattern_sent_bytes(const struct pattern *pattern)
{
    uint64_t sum = 0;

    for (int i = 0; i < pattern->length; i++)
        sum += operation_sent_bytes(&pattern->operations[i]);
    return sum;
}
