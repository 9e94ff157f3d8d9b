/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds functions in an ELF file by name and tells where in the file their code lies, which is how a probe is placed:
 * every address of a name that is exported under several versions. Reads .dynsym and, when that defines none of the
 * names, .symtab. 64-bit little-endian files of this machine's architecture only. The file is outside bytes: whatever
 * it holds, the answer is an error code. One thread an object.
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

/* A function `names[name]` begins at this offset of the file. */
typedef void elf_found(void *context, size_t name, uint64_t file_offset);

/*
 * Calls `found` once for each name and distinct offset. `hint` is one of the names: a table whose strings do not hold
 * it is skipped, so that looking at a stranger costs little. Returns the number of places found, or -EBADMSG, -ENOMEM,
 * -errno.
 */
int elf_find(struct elf *elf, const char *hint, const char *const *names, size_t names_count, elf_found *found,
             void *context);
