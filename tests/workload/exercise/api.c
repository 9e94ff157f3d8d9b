/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills the table with dlopen and dlsym. */
#include "exercise/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

struct api api;

static void *function_find(void *handle, const char *name)
{
    void *function = dlsym(handle, name);

    if (!function) {
        fprintf(stderr, "exercise: the library has no %s: %s\n", name, dlerror());
        _exit(1);
    }
    return function;
}

void api_open(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);

    if (!handle) {
        fprintf(stderr, "exercise: cannot load the collective library: %s\n", dlerror());
        _exit(1);
    }
#define NCCL_FUNCTION(result, name, arguments) api.name = (result(*) arguments)function_find(handle, "nccl" #name);
#include "nccl/nccl.def"
#undef NCCL_FUNCTION
}

void api_check(ncclResult_t result, const char *what)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return;
    fprintf(stderr, "exercise[%d]: %s failed with result %d\n", getpid(), what, (int)result);
    _exit(1);
}
