/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant of what is found: there is exactly one place such that all three functions read side by side, rank, number
 * of ranks, device. Source: so it is in NCCL 2.13 to 2.30 and in RCCL 5.4; that the hash lies before them from 2.18 on
 * was computed from the headers of 31 versions.
 */
#include "host/layout/layout.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/layout/machine_code.h"
#include "host/library/elf.h"

#define CODE_BYTES        2048
#define VERSION_WITH_HASH 21801
#define VERSION_LEAST     2000
#define VERSION_MOST      99999

enum function { USER_RANK, COUNT, DEVICE, VERSION, FUNCTIONS };

static const char *const names[FUNCTIONS] = {
    [USER_RANK] = "ncclCommUserRank",
    [COUNT] = "ncclCommCount",
    [DEVICE] = "ncclCommCuDevice",
    [VERSION] = "ncclGetVersion",
};

#if defined(__aarch64__)
#define MEMBERS   machine_code_members_arm64
#define CONSTANTS machine_code_constants_arm64
#else
#define MEMBERS   machine_code_members_x86
#define CONSTANTS machine_code_constants_x86
#endif

struct places {
    uint64_t offsets[FUNCTIONS]; /* in the file; 0 = none */
};

static void note_place(void *context, size_t group, size_t name, uint64_t file_offset)
{
    (void)group;
    struct places *places = context;
    if (places->offsets[name] == 0)
        places->offsets[name] = file_offset;
}

static int find_places(int descriptor, struct places *places)
{
    const struct elf_group group = {names[USER_RANK], names, FUNCTIONS};
    struct elf *elf;
    int error = elf_open(&elf, descriptor);
    if (error != 0)
        return error;
    error = elf_find(elf, &group, 1, note_place, places);
    elf_close(&elf);
    return error < 0 ? error : 0;
}

typedef void read_code(const uint8_t *code, size_t code_bytes, struct machine_code_values *values);

/* A function that ends before that is followed by others, whose values come along. */
static void read_function(int descriptor, uint64_t offset, read_code *read, struct machine_code_values *values)
{
    uint8_t code[CODE_BYTES];
    const ssize_t code_bytes = offset == 0 ? 0 : pread(descriptor, code, sizeof code, (off_t)offset);
    values->count = 0;
    if (code_bytes > 0)
        read(code, (size_t)code_bytes, values);
}

static bool contains(const struct machine_code_values *values, uint32_t value)
{
    for (size_t i = 0; i < values->count; i++)
        if (values->values[i] == value)
            return true;
    return false;
}

/* The only place at which the three lie side by side; 0 = none, or several. */
static uint32_t side_by_side(const struct machine_code_values members[FUNCTIONS])
{
    uint32_t found = 0;
    for (size_t i = 0; i < members[USER_RANK].count; i++) {
        const uint32_t rank = members[USER_RANK].values[i];
        if (rank < 8 || !contains(&members[COUNT], rank + 4) || !contains(&members[DEVICE], rank + 8))
            continue;
        if (found != 0)
            return 0;
        found = rank;
    }
    return found;
}

static uint32_t version_of(const struct machine_code_values *constants)
{
    for (size_t i = 0; i < constants->count; i++)
        if (constants->values[i] >= VERSION_LEAST && constants->values[i] <= VERSION_MOST)
            return constants->values[i];
    return 0;
}

int layout_find(int descriptor, struct layout *layout)
{
    struct places places = {0};
    struct machine_code_values members[FUNCTIONS], constants;
    const int error = find_places(descriptor, &places);
    if (error != 0)
        return error;
    for (enum function i = USER_RANK; i <= DEVICE; i++)
        read_function(descriptor, places.offsets[i], MEMBERS, &members[i]);
    read_function(descriptor, places.offsets[VERSION], CONSTANTS, &constants);
    const uint32_t rank_bytes = side_by_side(members);
    if (rank_bytes == 0)
        return -ENOENT;
    layout->rank_bytes = rank_bytes;
    layout->version = version_of(&constants);
    layout->has_hash = layout->version >= VERSION_WITH_HASH;
    return 0;
}
