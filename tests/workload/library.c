/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills the table of the collective library's functions with dlopen and dlsym. */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

struct library library;

static void *library_handle;

static void *function_find(const char *name)
{
    void *function = dlsym(library_handle, name);

    if (!function) {
        fprintf(stderr, "train: the collective library has no %s: %s\n", name, dlerror());
        _exit(1);
    }
    return function;
}

void library_open(const char *name)
{
    library_handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!library_handle) {
        fprintf(stderr, "train: cannot load the collective library: %s\n", dlerror());
        _exit(1);
    }
#define FUNCTION(name, arguments) library.name = (int(*) arguments)function_find("nccl" #name);
#include "library.def"
#undef FUNCTION
}

void library_check(int result, const char *what)
{
    if (!result)
        return;
    fprintf(stderr, "train[%d]: %s failed with result %d\n", getpid(), what, result);
    _exit(1);
}
