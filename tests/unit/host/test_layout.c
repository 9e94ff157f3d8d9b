/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a library keeps rank, ranks and device, held against what its own functions return of memory that has a number
 * there. argv[1]: the stand-in library; argv[2]: one that is none.
 */
#include "host/layout/layout.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MEMORY_BYTES (4 << 20)

static const char *library, *stranger;

static int find(const char *path, struct layout *layout)
{
    const int descriptor = open(path, O_RDONLY);
    assert_true(descriptor >= 0);
    const int error = layout_find(descriptor, layout);
    close(descriptor);
    return error;
}

static int ask(void *handle, const char *function, void *communicator)
{
    int (*call)(void *, int *) = (int (*)(void *, int *))dlsym(handle, function);
    int value = -1;
    assert_non_null(call);
    assert_int_equal(call(communicator, &value), 0);
    return value;
}

static void put(uint8_t *memory, uint32_t offset, int value)
{
    assert_true(offset + sizeof value <= MEMORY_BYTES);
    memcpy(memory + offset, &value, sizeof value);
}

static void as_the_library_itself_reads(void **state)
{
    (void)state;
    struct layout layout = {0};
    assert_int_equal(find(library, &layout), 0);
    uint8_t *memory = calloc(1, MEMORY_BYTES);
    put(memory, layout.rank_bytes, 42);
    put(memory, layout.rank_bytes + 4, 43);
    put(memory, layout.rank_bytes + 8, 44);
    void *handle = dlopen(library, RTLD_NOW);
    assert_non_null(handle);
    assert_int_equal(ask(handle, "ncclCommUserRank", memory), 42);
    assert_int_equal(ask(handle, "ncclCommCount", memory), 43);
    assert_int_equal(ask(handle, "ncclCommCuDevice", memory), 44);
    int (*version)(int *) = (int (*)(int *))dlsym(handle, "ncclGetVersion");
    int number = 0;
    assert_int_equal(version(&number), 0);
    assert_int_equal(layout.version, number);
    assert_true(layout.has_hash);
    free(memory);
}

static void not_of_a_stranger(void **state)
{
    (void)state;
    struct layout layout = {0};
    assert_int_equal(find(stranger, &layout), -ENOENT);
    assert_int_equal(find("/proc/self/cmdline", &layout), -ENOEXEC);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    library = argv[1];
    stranger = argv[2];
    setenv("STANDIN_VERBS", stranger, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_library_itself_reads),
        cmocka_unit_test(not_of_a_stranger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
