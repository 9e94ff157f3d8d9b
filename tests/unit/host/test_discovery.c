/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which files get probes: by their symbols, once a file however it is reached, again when a stranger has changed.
 * argv[1]: a library that is libibverbs by its symbols only.
 */
#include "host/library/discovery.h"

#include <errno.h>
#include <fcntl.h>
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

#include "host/counter.h"

static const char *library;
static uint64_t counters[HOST_COUNTERS];
static char directory[] = "/tmp/qpscope-discovery-XXXXXX";
static char attached_path[256];
static size_t attached;
static int attach_result;

static int attach(void *context, const struct library *found, int descriptor, const struct library_places *places,
                  uint64_t mapped_ns)
{
    (void)context, (void)descriptor, (void)mapped_ns;
    assert_int_equal(places->count, 22); /* as test_elf.c says */
    snprintf(attached_path, sizeof attached_path, "%s", found->path);
    attached++;
    return attach_result;
}

static int file_key(void *context, int descriptor, struct file_key *file)
{
    (void)context;
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return -errno;
    *file = (struct file_key){7, 7, status.st_ino}; /* as below an overlay: not the device that processes see */
    return 0;
}

static int setup(void **state)
{
    const struct discovery_options options = {attach, file_key, NULL, NULL, counters};
    memset(counters, 0, sizeof counters);
    attached = 0;
    attach_result = 0;
    attached_path[0] = '\0';
    return discovery_create((struct discovery **)state, &options);
}

static int teardown(void **state)
{
    discovery_destroy((struct discovery **)state);
    return 0;
}

static void copy(const char *from, const char *to)
{
    char command[1024];
    snprintf(command, sizeof command, "mkdir -p \"$(dirname %s/%s)\" && cp %s %s/%s", directory, to, from, directory,
             to);
    assert_int_equal(system(command), 0);
}

static const char *below(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void file_by_name(void **state)
{
    copy(library, "odd.bin");
    assert_int_equal(discovery_look_at_file(*state, below("odd.bin")), 0);
    assert_int_equal(discovery_look_at_file(*state, below("odd.bin")), 0);
    assert_int_equal(attached, 1);
    assert_int_equal(discovery_look_at_file(*state, "/etc/passwd"), -EINVAL);
    assert_int_equal(discovery_look_at_file(*state, "/proc/self/exe"), -EINVAL);
    assert_int_equal(discovery_look_at_file(*state, below("none")), -ENOENT);
    assert_int_equal(counters[COUNT_LIBRARIES], 1);
}

static void folders_of_a_tree(void **state)
{
    copy(library, "tree/usr/lib/x/libplain.so.3.1");
    copy(library, "tree/usr/lib/not-a-shared-object");
    copy(library, "tree/home/libelsewhere.so");
    assert_int_equal(symlink("/usr/lib", below("tree/lib")), 0);
    discovery_scan_root(*state, below("tree"));
    assert_int_equal(attached, 1);
    assert_string_equal(attached_path, "/usr/lib/x/libplain.so.3.1");
}

/* A program of another root has it mapped: this one plays its part, as another process id. */
static struct mapping map(const char *path, uint32_t minor)
{
    struct stat status;
    struct mapping mapping = {.start = 1};
    assert_int_equal(stat(path, &status), 0);
    mapping.file = (struct file_key){1, minor, status.st_ino};
    snprintf(mapping.path, sizeof mapping.path, "%s", path);
    return mapping;
}

static void mapped_under_two_keys(void **state)
{
    copy(library, "mapped.so");
    const struct mapping one = map(below("mapped.so"), 1);
    const struct mapping other = map(below("mapped.so"), 2);
    const pid_t pid = getppid();
    discovery_look_at_mapping(*state, pid, &one, 5);
    discovery_look_at_mapping(*state, pid, &other, 5);
    discovery_look_at_mapping(*state, pid, &other, 5);
    discovery_look_at_mapping(*state, pid, &one, 5);
    assert_int_equal(attached, 1);
    assert_int_equal(counters[COUNT_FILES_SEEN], 2);
    discovery_look_at_mapping(*state, getpid(), &one, 5);
    assert_int_equal(counters[COUNT_FILES_SEEN], 2);
}

static void stranger_that_changes(void **state)
{
    copy("/etc/passwd", "changes");
    const struct mapping mapping = map(below("changes"), 1);
    const pid_t pid = getppid();
    discovery_look_at_mapping(*state, pid, &mapping, 5);
    discovery_look_at_mapping(*state, pid, &mapping, 5);
    assert_int_equal(counters[COUNT_FILES_SEEN], 1);
    assert_int_equal(counters[COUNT_FILES_UNREADABLE], 0); /* no ELF file: a stranger like any other */
    copy(library, "changes");
    discovery_look_at_mapping(*state, pid, &mapping, 5);
    assert_int_equal(counters[COUNT_FILES_SEEN], 2);
    assert_int_equal(attached, 1);
}

static void gone_before_it_is_looked_at(void **state)
{
    copy(library, "gone.so");
    const struct mapping mapping = map(below("gone.so"), 1);
    assert_int_equal(unlink(below("gone.so")), 0);
    discovery_look_at_mapping(*state, getppid(), &mapping, 5);
    assert_int_equal(attached, 0);
    assert_int_equal(counters[COUNT_FILES_UNREADABLE], 1);
}

static void probes_refused(void **state)
{
    char path[256] = "x";
    attach_result = -EIO;
    copy(library, "refused.so");
    assert_int_equal(discovery_look_at_file(*state, below("refused.so")), -ENOSPC);
    assert_int_equal(counters[COUNT_LIBRARIES], 0);
    discovery_path(*state, 1, getpid(), path, sizeof path);
    assert_string_equal(path, "");
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state)
{
    (void)state;
    char command[256];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(file_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(folders_of_a_tree, setup, teardown),
        cmocka_unit_test_setup_teardown(mapped_under_two_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(stranger_that_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(gone_before_it_is_looked_at, setup, teardown),
        cmocka_unit_test_setup_teardown(probes_refused, setup, teardown),
    };
    if (argc != 2)
        return 2;
    library = argv[1];
    return cmocka_run_group_tests_name("discovery", tests, make_directory, remove_directory);
}
