/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols to file offsets, held against what the dynamic linker makes of the same file: the address that it gives, less
 * the mapping's start, plus the mapping's offset. argv[1]: a library with a function under two versions.
 */
#include "host/library/elf.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/library/library.h"

static const char *library;

struct found {
    size_t name[16];
    uint64_t offset[16];
    size_t count;
};

static void note(void *context, size_t group, size_t name, uint64_t file_offset)
{
    struct found *found = context;
    assert_int_equal(group, 0);
    assert_true(found->count < 16);
    found->name[found->count] = name;
    found->offset[found->count++] = file_offset;
}

/* Where in its file the code at an address of this process lies. */
static uint64_t loaded_offset(const void *address)
{
    char line[4096];
    uint64_t start, end, offset, result = UINT64_MAX;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) == 3 &&
            (uintptr_t)address >= start && (uintptr_t)address < end)
            result = (uintptr_t)address - start + offset;
    fclose(maps);
    return result;
}

static int find(int descriptor, const char *hint, const char *const *names, size_t count, struct found *found)
{
    struct elf *elf = NULL;
    const struct elf_group group = {hint, names, count};
    found->count = 0;
    int result = elf_open(&elf, descriptor);
    if (result == 0)
        result = elf_find(elf, &group, 1, note, found);
    elf_close(&elf);
    return result;
}

static bool has(const struct found *found, size_t name, uint64_t offset)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->name[i] == name && found->offset[i] == offset)
            return true;
    return false;
}

static void both_versions(void **state)
{
    (void)state;
    static const char *const names[] = {"ibv_modify_qp", "ibv_create_qp", "no_such_function"};
    struct found found;
    void *handle = dlopen(library, RTLD_NOW);
    const int descriptor = open(library, O_RDONLY);
    assert_int_equal(find(descriptor, "ibv_create_qp", names, 3, &found), 4);
    for (size_t name = 0; name < 2; name++) {
        const uint64_t old = loaded_offset(dlvsym(handle, names[name], "IBVERBS_1.0"));
        const uint64_t new = loaded_offset(dlvsym(handle, names[name], "IBVERBS_1.1"));
        assert_int_not_equal(old, new);
        assert_true(has(&found, name, old) && has(&found, name, new));
    }
    close(descriptor);
    dlclose(handle);
}

/* The library uses calloc, whose name is in its table: that is no definition. */
static void undefined_is_not_found(void **state)
{
    (void)state;
    static const char *const names[] = {"calloc"};
    struct found found;
    const int descriptor = open(library, O_RDONLY);
    assert_int_equal(find(descriptor, "calloc", names, 1, &found), 0);
    close(descriptor);
}

int bpf_test_only_in_symtab(int value);
__attribute__((noinline, visibility("hidden"))) int bpf_test_only_in_symtab(int value)
{
    return value + 1;
}

/* As of a library that is linked into a program: the function is in .symtab only. */
static void own_program(void **state)
{
    (void)state;
    static const char *const names[] = {"bpf_test_only_in_symtab"};
    struct found found;
    const int descriptor = open("/proc/self/exe", O_RDONLY);
    assert_int_equal(find(descriptor, names[0], names, 1, &found), 1);
    assert_int_equal(found.offset[0], loaded_offset((const void *)(uintptr_t)bpf_test_only_in_symtab));
    close(descriptor);
}

static void kinds_of_library(void **state)
{
    (void)state;
    struct library_places places;
    const int descriptor = open(library, O_RDONLY);
    assert_int_equal(library_find(descriptor, &places), 0);
    close(descriptor);
    assert_true(places.kinds[LIBRARY_VERBS] && !places.kinds[LIBRARY_COLLECTIVE]);
    assert_int_equal(places.count, 22); /* entry and return of 3 functions of 2 versions, and of 5 commands of one */
    for (size_t i = 0; i < places.count; i++) {
        assert_int_equal(probe_specs[places.places[i].spec].kind, LIBRARY_VERBS);
        assert_true(i == 0 || places.places[i - 1].spec <= places.places[i].spec);
    }
}

static int memory_file(const void *bytes, size_t length_bytes)
{
    const int descriptor = memfd_create("elf", MFD_CLOEXEC);
    assert_int_equal(write(descriptor, bytes, length_bytes), length_bytes);
    return descriptor;
}

static int open_bytes(const void *bytes, size_t length_bytes)
{
    struct library_places places;
    const int descriptor = memory_file(bytes, length_bytes);
    const int result = library_find(descriptor, &places);
    close(descriptor);
    return result;
}

static void not_elf(void **state)
{
    (void)state;
    static const char script[] = "#!/bin/sh\nexit 0\n";
    assert_int_equal(open_bytes(script, sizeof script), -ENOEXEC);
    assert_int_equal(open_bytes("", 0), -ENOEXEC);
    assert_int_equal(open_bytes("\177ELF", 4), -ENOEXEC);
    const int directory = open("/", O_RDONLY);
    struct library_places places;
    assert_int_equal(library_find(directory, &places), -ENOEXEC);
    close(directory);
}

static uint8_t *read_library(size_t *length_bytes)
{
    struct stat status;
    const int descriptor = open(library, O_RDONLY);
    fstat(descriptor, &status);
    uint8_t *bytes = malloc((size_t)status.st_size);
    assert_int_equal(read(descriptor, bytes, (size_t)status.st_size), status.st_size);
    close(descriptor);
    *length_bytes = (size_t)status.st_size;
    return bytes;
}

/* Its section headers come last: a file that was cut anywhere has lost them. */
static void cut_anywhere(void **state)
{
    (void)state;
    size_t length_bytes;
    uint8_t *bytes = read_library(&length_bytes);
    assert_int_equal(open_bytes(bytes, length_bytes), 0);
    for (size_t length = 0; length < length_bytes; length += 1 + length / 16)
        assert_int_equal(open_bytes(bytes, length), length < 64 ? -ENOEXEC : -EBADMSG);
    free(bytes);
}

static void wrong_machine_and_class(void **state)
{
    (void)state;
    size_t length_bytes;
    uint8_t *bytes = read_library(&length_bytes);
    bytes[18] ^= 0x55; /* e_machine */
    assert_int_equal(open_bytes(bytes, length_bytes), -ENOEXEC);
    bytes[18] ^= 0x55;
    bytes[4] = 1; /* ELFCLASS32 */
    assert_int_equal(open_bytes(bytes, length_bytes), -ENOEXEC);
    free(bytes);
}

static void offsets_beyond_the_file(void **state)
{
    (void)state;
    static const size_t fields[] = {0x20, 0x28}; /* e_phoff, e_shoff */
    size_t length_bytes;
    uint8_t *bytes = read_library(&length_bytes);
    for (size_t i = 0; i < 2; i++) {
        uint64_t saved;
        memcpy(&saved, bytes + fields[i], 8);
        memset(bytes + fields[i], 0xff, 8);
        assert_int_equal(open_bytes(bytes, length_bytes), -EBADMSG);
        memcpy(bytes + fields[i], &saved, 8);
    }
    assert_int_equal(open_bytes(bytes, length_bytes), 0);
    free(bytes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_versions),
        cmocka_unit_test(undefined_is_not_found),
        cmocka_unit_test(own_program),
        cmocka_unit_test(kinds_of_library),
        cmocka_unit_test(not_elf),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(wrong_machine_and_class),
        cmocka_unit_test(offsets_beyond_the_file),
    };
    if (argc != 2)
        return 2;
    library = argv[1];
    return cmocka_run_group_tests_name("elf", tests, NULL, NULL);
}
