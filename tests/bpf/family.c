/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communicators and their children, made in every way, by four ranks that are threads of this process; what each rank
 * was given is printed, one JSON object a line. The library's file is an argument.
 *
 *   family LIBRARY
 *
 * With PROGRAM_WAIT set it waits for a line on stdin when the library is loaded; with FAMILY_WAIT set again when all
 * communicators are there.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bpf/standin.h"

#define RANKS 4

#define FUNCTIONS(each)                                                                                                \
    each(ncclCommInitRank) each(ncclCommSplit) each(ncclCommShrink) each(ncclCommGrow) each(ncclCommDestroy)           \
        each(ncclCommAbort) each(ncclCommFinalize) each(ncclCommRevoke) each(ncclGroupStart) each(ncclGroupEnd)        \
            each(ncclAllReduce) each(ncclCommUserRank) each(ncclCommCount) each(standin_wait)                          \
                each(standin_queue_pairs) each(standin_hash)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
} lib;

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static void load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
#define LOAD(name) lib.name = (__typeof__(name) *)dlsym(handle, #name);
    FUNCTIONS(LOAD)
}

struct family {
    int rank;
    comm_t world, half, half_again, alone, whole, three, later, shrunk, grown;
};

static void tell(const char *name, const char *parent, comm_t comm, int world_rank)
{
    uint32_t qpns[STANDIN_QUEUE_PAIRS_MAX];
    int ranks, rank;
    if (comm == NULL)
        return;
    lib.ncclCommUserRank(comm, &rank);
    lib.ncclCommCount(comm, &ranks);
    const int count = lib.standin_queue_pairs(comm, qpns);
    pthread_mutex_lock(&output);
    printf("{\"name\":\"%s\",\"parent\":\"%s\",\"world_rank\":%d,\"communicator\":\"%p\",\"ranks_count\":%d,"
           "\"rank\":%d,\"hash\":\"0x%llx\",\"qpns\":[",
           name, parent, world_rank, (void *)comm, ranks, rank, (unsigned long long)lib.standin_hash(comm));
    for (int i = 0; i < count; i++)
        printf("%s%u", i == 0 ? "" : ",", qpns[i]);
    printf("]}\n");
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

/* Three deep: halves in reverse order, the same again, and one rank of each alone while the other takes no part. */
static void split_three_deep(struct family *self)
{
    int rank;
    lib.ncclCommSplit(self->world, self->rank % 2, -self->rank, &self->half, NULL);
    lib.ncclCommSplit(self->half, 5, 0, &self->half_again, NULL);
    lib.ncclCommUserRank(self->half_again, &rank);
    lib.ncclCommSplit(self->half_again, rank == 0 ? 1 : -1, 0, &self->alone, NULL);
}

static void split_in_group(struct family *self)
{
    lib.ncclGroupStart();
    lib.ncclCommSplit(self->world, 0, self->rank, &self->whole, NULL);
    lib.ncclCommSplit(self->world, self->rank < 3 ? 8 : -1, 0, &self->three, NULL);
    lib.ncclGroupEnd();
}

/* The communicator is there when the library has made it, some time after the call. */
static void split_without_blocking(struct family *self)
{
    struct configuration config = {.size = sizeof config, .blocking = 0};
    lib.ncclCommSplit(self->world, 2, 0, &self->later, &config);
    while (__atomic_load_n(&self->later, __ATOMIC_ACQUIRE) == NULL)
        usleep(1000);
    lib.standin_wait(self->later);
}

static void shrink_and_grow(struct family *self)
{
    struct unique_id id = {"of a grown communicator"};
    int excluded[] = {1};
    if (self->rank == 1) {
        lib.ncclCommGrow(NULL, RANKS, &id, RANKS - 1, &self->grown, NULL);
        return;
    }
    lib.ncclCommShrink(self->world, excluded, 1, &self->shrunk, NULL, 0);
    lib.ncclCommGrow(self->shrunk, RANKS, self->rank == 0 ? &id : NULL, -1, &self->grown, NULL);
}

static void tell_all(const struct family *self)
{
    tell("world", "", self->world, self->rank);
    tell(self->rank % 2 == 0 ? "even" : "odd", "world", self->half, self->rank);
    tell(self->rank % 2 == 0 ? "even again" : "odd again", "half", self->half_again, self->rank);
    tell(self->rank % 2 == 0 ? "even alone" : "odd alone", "half again", self->alone, self->rank);
    tell("whole", "world", self->whole, self->rank);
    tell("three", "world", self->three, self->rank);
    tell("later", "world", self->later, self->rank);
    tell("shrunk", "world", self->shrunk, self->rank);
    tell("grown", "shrunk", self->grown, self->rank);
}

static void call_all(const struct family *self)
{
    const comm_t all[] = {self->world, self->half,  self->half_again, self->alone, self->whole,
                          self->three, self->later, self->shrunk,     self->grown};
    char buffer[8];
    for (size_t i = 0; i < 2 * sizeof all / sizeof all[0]; i++) {
        const comm_t comm = all[i % (sizeof all / sizeof all[0])];
        if (comm != NULL)
            lib.ncclAllReduce(buffer, buffer, 1, 7, 0, comm, NULL);
    }
}

static void end_some(struct family *self)
{
    lib.ncclCommRevoke(self->whole, 0);
    if (self->three != NULL) {
        lib.ncclCommFinalize(self->three);
        lib.ncclCommDestroy(self->three);
    }
    lib.ncclCommAbort(self->later);
}

static void wait_to_go(const char *variable, const char *said)
{
    printf("{\"%s\":%d}\n", said, getpid());
    fflush(stdout);
    if (getenv(variable) != NULL && getchar() == EOF)
        exit(3);
}

static void *be_a_rank(void *argument)
{
    struct family *self = argument;
    const struct unique_id id = {"of the world"};
    lib.ncclCommInitRank(&self->world, RANKS, id, self->rank);
    split_three_deep(self);
    split_in_group(self);
    split_without_blocking(self);
    shrink_and_grow(self);
    tell_all(self);
    if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD)
        wait_to_go("FAMILY_WAIT", "made");
    pthread_barrier_wait(&together);
    call_all(self);
    end_some(self);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[RANKS];
    struct family ranks[RANKS] = {0};
    if (argc != 2)
        return 2;
    setenv("STANDIN_MEET", "1", 1);
    load(argv[1]);
    wait_to_go("PROGRAM_WAIT", "loaded");
    pthread_barrier_init(&together, NULL, RANKS);
    for (int i = 0; i < RANKS; i++) {
        ranks[i].rank = i;
        pthread_create(&threads[i], NULL, be_a_rank, &ranks[i]);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
