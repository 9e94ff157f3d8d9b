/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc, held against what this process knows of itself. */
#include "host/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

static int find_exe(void *context, pid_t pid, const struct mapping *mapping)
{
    struct mapping *found = context;
    char exe[PATH_MAX] = "";
    assert_int_equal(pid, getpid());
    assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    if (strcmp(exe, mapping->path) != 0)
        return 0;
    *found = *mapping;
    return 1;
}

static void own_mappings(void **state)
{
    (void)state;
    struct mapping mapping;
    struct stat status;
    assert_int_equal(process_each_mapping(getpid(), find_exe, &mapping), 1);
    assert_int_equal(stat("/proc/self/exe", &status), 0);
    assert_int_equal(mapping.file.inode, status.st_ino);
    assert_true((uintptr_t)own_mappings >= mapping.start && (uintptr_t)own_mappings < mapping.end);
}

struct deleted {
    uint64_t start;
    struct mapping mapping;
};

static int find_start(void *context, pid_t pid, const struct mapping *mapping)
{
    (void)pid;
    struct deleted *deleted = context;
    if (mapping->start != deleted->start)
        return 0;
    deleted->mapping = *mapping;
    return 1;
}

/* A file that is deleted while it is mapped, with another one at its path by now. */
static void deleted_file(void **state)
{
    (void)state;
    char path[] = "/tmp/qpscope-process-XXXXXX", text[4] = "";
    if (geteuid() != 0)
        skip(); /* map_files needs rights */
    int descriptor = mkstemp(path);
    assert_int_equal(write(descriptor, "old", 4), 4);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    unlink(path);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    struct deleted deleted = {.start = (uintptr_t)page};
    assert_int_equal(process_each_mapping(getpid(), find_start, &deleted), 1);
    assert_string_equal(deleted.mapping.path, path);
    descriptor = process_open(getpid(), &deleted.mapping);
    assert_true(descriptor >= 0);
    assert_int_equal(read(descriptor, text, 4), 4);
    assert_string_equal(text, "old");
    close(descriptor);
    munmap(page, 4096);
    unlink(path);
}

static void note_self(void *context, pid_t pid)
{
    *(bool *)context |= pid == getpid();
}

static void all_processes(void **state)
{
    (void)state;
    bool found = false;
    assert_int_equal(process_each(note_self, &found), 0);
    assert_true(found);
}

static int fail_visit(void *context, pid_t pid, const struct mapping *mapping)
{
    (void)context, (void)pid, (void)mapping;
    fail();
    return 1;
}

static void gone(void **state)
{
    (void)state;
    uint8_t gid[16];
    assert_true(process_each_mapping(INT_MAX, fail_visit, NULL) < 0);
    assert_int_equal(process_read_gid(getpid(), "no_such_device", 1, 0, gid), -ENOENT);
    assert_int_equal(process_read_gid(getpid(), "../../etc", 1, 0, gid), -ENOENT);
    assert_int_equal(process_read_gid(getpid(), "", 1, 0, gid), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_mappings),
        cmocka_unit_test(deleted_file),
        cmocka_unit_test(all_processes),
        cmocka_unit_test(gone),
    };
    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
