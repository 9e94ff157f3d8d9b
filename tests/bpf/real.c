/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls a real libnccl's ways to make a communicator, without a GPU: they fail, but their probes have read what was
 * passed. Prints what was passed, one JSON object a line.
 *
 *   real LIBRARY
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bpf/standin.h"

struct passed {
    const char *creator;
    struct unique_id id;
    int ranks;
    int rank;
    int result;
};

static void tell(const struct passed *passed)
{
    printf("{\"creator\":\"%s\",\"pid\":%d,\"ranks_count\":%d,\"rank\":%d,\"result\":%d,\"id\":\"", passed->creator,
           getpid(), passed->ranks, passed->rank, passed->result);
    for (size_t i = 0; i < sizeof passed->id.bytes; i++)
        printf("%02x", (unsigned char)passed->id.bytes[i]);
    printf("\"}\n");
}

int main(int argc, char **argv)
{
    void *handle = argc < 2 ? NULL : dlopen(argv[1], RTLD_NOW);
    if (handle == NULL)
        return 3;
    printf("{\"loaded\":%d}\n", getpid());
    int (*get_id)(struct unique_id *) = (int (*)(struct unique_id *))dlsym(handle, "ncclGetUniqueId");
    __typeof__(ncclCommInitRank) *init = (__typeof__(init))dlsym(handle, "ncclCommInitRank");
    __typeof__(ncclCommInitRankConfig) *configured = (__typeof__(configured))dlsym(handle, "ncclCommInitRankConfig");
    __typeof__(ncclCommInitRankScalable) *scalable = (__typeof__(scalable))dlsym(handle, "ncclCommInitRankScalable");
    __typeof__(ncclBcast) *bcast = (__typeof__(bcast))dlsym(handle, "ncclBcast");
    struct passed passed[3] = {{.creator = "init_rank", .ranks = 5, .rank = 3},
                               {.creator = "init_rank_config", .ranks = 70000, .rank = 65537},
                               {.creator = "init_rank_scalable", .ranks = 9, .rank = 8}};
    for (int i = 0; i < 3; i++)
        if (get_id(&passed[i].id) != 0)
            return 4;
    comm_t comm = NULL;
    passed[0].result = init(&comm, passed[0].ranks, passed[0].id, passed[0].rank);
    passed[1].result = configured(&comm, passed[1].ranks, passed[1].id, passed[1].rank, NULL);
    passed[2].result = scalable(&comm, passed[2].ranks, passed[2].rank, 1, &passed[2].id, NULL);
    for (int i = 0; i < 3; i++)
        tell(&passed[i]);
    char buffer[8];
    printf("{\"bcast\":%d}\n", bcast(buffer, 1, 0, 0, NULL, NULL));
    fflush(stdout);
    _exit(0); /* the library's own end needs a GPU's driver */
}
