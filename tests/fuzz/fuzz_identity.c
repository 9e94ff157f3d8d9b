/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as what /proc shows of a process, FILE NUL FILE NUL FILE: its control group, a GPU, its environment.
 * Whatever is told of them lies in them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/identity/cgroup.h"
#include "host/identity/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check_part(const void *bytes, size_t length_bytes, struct text part)
{
    const char *begin = bytes;
    if (part.length != 0 && (part.at < begin || part.at + part.length > begin + length_bytes))
        abort();
}

static void check_cgroup(const void *bytes, size_t length_bytes)
{
    struct cgroup cgroup;
    cgroup_parse(bytes, length_bytes, &cgroup);
    const struct text parts[] = {cgroup.path, cgroup.container, cgroup.slurm_job, cgroup.slurm_step};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        check_part(bytes, length_bytes, parts[i]);
    if (cgroup.container.length != 0 && cgroup.container.length != 64)
        abort();
    const size_t pod = strnlen(cgroup.pod, sizeof cgroup.pod);
    if (pod != 0 && pod != 32 && pod != 36)
        abort();
}

static void note(void *context, enum process_fact fact, unsigned index, struct text text)
{
    (void)context;
    if (process_fact_name((uint16_t)fact) == NULL || index > IDENTITY_VARIABLES_MAX || text.length == 0)
        abort();
}

static char root[] = "/tmp/qpscope-fuzz-identity-XXXXXX";

static void remove_root(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    if (system(command) != 0)
        perror(command);
}

static void make_root(void)
{
    static const char *const folders[] = {"proc",
                                          "proc/1",
                                          "proc/driver",
                                          "proc/driver/nvidia",
                                          "proc/driver/nvidia/gpus",
                                          "proc/driver/nvidia/gpus/0000:3b:00.0"};
    if (mkdtemp(root) == NULL)
        abort();
    atexit(remove_root);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        if (mkdir(path, 0700) != 0)
            abort();
    }
}

static void write_file(const char *name, struct text text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(text.at, 1, text.length, file) != text.length || fclose(file) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    static bool made;
    struct cursor cursor;
    if (length_bytes == 0)
        return 0;
    if (!made)
        make_root();
    made = true;
    cursor_init(&cursor, bytes, length_bytes);
    const struct text cgroup = text_take(&cursor, '\0');
    check_cgroup(cgroup.at, cgroup.length);
    write_file("proc/1/cgroup", cgroup);
    write_file("proc/driver/nvidia/gpus/0000:3b:00.0/information", text_take(&cursor, '\0'));
    write_file("proc/1/environ", (struct text){(const char *)cursor.at, cursor_left(&cursor)});
    identity_read(root, 1, note, NULL);
    return 0;
}
