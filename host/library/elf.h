/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds functions in an ELF file by name and tells where in the file their code lies, which is how a probe is placed:
 * every address of a name that is exported under several versions. 64-bit little-endian files of this machine's
 * architecture only. The file is outside bytes: whatever it holds, the answer is an error code. One thread an object.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct elf;

/*
 * Reads the headers of the file behind `descriptor`, which stays the caller's and must stay open. -ENOEXEC: not an ELF
 * file of this machine; -EBADMSG: a damaged one; else -errno. Nothing is logged: most files that are looked at are none
 * of ours.
 */
int elf_open(struct elf **elf, int descriptor);
void elf_close(struct elf **elf);

/* Functions that are looked for together: a table whose strings do not hold `hint`, one of the names, has none. */
struct elf_group {
    const char *hint;
    const char *const *names; /* shorter than ELF_NAME_BYTES each */
    size_t names_count;
};
#define ELF_NAME_BYTES 64
#define ELF_GROUPS_MAX 16

/* A function `groups[group].names[name]` begins at this offset of the file. */
typedef void elf_found(void *context, size_t group, size_t name, uint64_t file_offset);

/*
 * Calls `found` once for each name and distinct offset. Of each group .dynsym is searched and, when it defines none of
 * it, .symtab. Tables are read piece by piece: looking at a stranger costs little, and looking at a large file no
 * memory. At most ELF_GROUPS_MAX groups. Returns the number of places found, or -EBADMSG, -ENOMEM, -errno.
 */
int elf_find(struct elf *elf, const struct elf_group *groups, size_t groups_count, elf_found *found, void *context);
