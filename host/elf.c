/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of ELF files to file offsets. Source: the System V ABI's ELF chapters (headers, sections, symbol table).
 * Invariant: every length that the file states is checked against the file's size before anything is allocated or read.
 */
#include "host/elf.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/cursor.h"

#define SEGMENTS_MAX    16   /* executable ones; real files have one or two */
#define HEADERS_MAX     4096 /* program or section headers */
#define TABLE_BYTES_MAX (512u << 20)
#define PLACES_MAX      512

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

struct segment {
    uint64_t address;
    uint64_t offset;
    uint64_t length_bytes; /* in the file */
};

struct table {
    uint64_t offset;
    uint64_t length_bytes;
};

struct symbol_table {
    struct table symbols;
    struct table strings;
};

enum { DYNAMIC, STATIC, TABLES };

struct elf {
    int descriptor;
    uint64_t file_bytes;
    struct segment segments[SEGMENTS_MAX];
    size_t segments_count;
    struct symbol_table tables[TABLES]; /* length 0 = has none */
};

struct header {
    uint64_t segments_offset;
    uint64_t sections_offset;
    uint16_t segment_bytes;
    uint16_t segments_count;
    uint16_t section_bytes;
    uint16_t sections_count;
};

/* The bytes [offset, offset + length) of the file in fresh memory, which the caller frees. */
static int elf_read(const struct elf *elf, uint64_t offset, uint64_t length_bytes, uint8_t **bytes)
{
    if (length_bytes == 0 || length_bytes > TABLE_BYTES_MAX || offset > elf->file_bytes ||
        length_bytes > elf->file_bytes - offset)
        return -EBADMSG;
    uint8_t *into = malloc(length_bytes);
    if (into == NULL)
        return -ENOMEM;
    for (uint64_t done = 0; done < length_bytes;) {
        const ssize_t got = pread(elf->descriptor, into + done, length_bytes - done, (off_t)(offset + done));
        if (got <= 0) {
            const int error = got == 0 ? -EBADMSG : -errno;
            free(into);
            return error;
        }
        done += (uint64_t)got;
    }
    *bytes = into;
    return 0;
}

static int elf_read_header(const struct elf *elf, struct header *header)
{
    uint8_t *bytes;
    if (elf->file_bytes < sizeof(Elf64_Ehdr) || elf_read(elf, 0, sizeof(Elf64_Ehdr), &bytes) != 0)
        return -ENOEXEC;
    struct cursor cursor;
    cursor_init(&cursor, bytes, sizeof(Elf64_Ehdr));
    const uint8_t *identity = cursor_take(&cursor, EI_NIDENT);
    const bool ours =
        memcmp(identity, ELFMAG, SELFMAG) == 0 && identity[EI_CLASS] == ELFCLASS64 && identity[EI_DATA] == ELFDATA2LSB;
    cursor_skip(&cursor, 2); /* e_type */
    const uint16_t machine = cursor_le16(&cursor);
    cursor_skip(&cursor, 4 + 8); /* e_version, e_entry */
    header->segments_offset = cursor_le64(&cursor);
    header->sections_offset = cursor_le64(&cursor);
    cursor_skip(&cursor, 4 + 2); /* e_flags, e_ehsize */
    header->segment_bytes = cursor_le16(&cursor);
    header->segments_count = cursor_le16(&cursor);
    header->section_bytes = cursor_le16(&cursor);
    header->sections_count = cursor_le16(&cursor);
    free(bytes);
    return ours && machine == MACHINE ? 0 : -ENOEXEC;
}

static void elf_add_segment(struct elf *elf, struct cursor *cursor)
{
    const uint32_t type = cursor_le32(cursor);
    const uint32_t flags = cursor_le32(cursor);
    struct segment segment;
    segment.offset = cursor_le64(cursor);
    segment.address = cursor_le64(cursor);
    cursor_skip(cursor, 8); /* p_paddr */
    segment.length_bytes = cursor_le64(cursor);
    if (type == PT_LOAD && (flags & PF_X) != 0 && elf->segments_count < SEGMENTS_MAX)
        elf->segments[elf->segments_count++] = segment;
}

static int elf_read_segments(struct elf *elf, const struct header *header)
{
    if (header->segment_bytes < sizeof(Elf64_Phdr) || header->segments_count > HEADERS_MAX)
        return -EBADMSG;
    uint8_t *bytes;
    const uint64_t length_bytes = (uint64_t)header->segment_bytes * header->segments_count;
    const int error = elf_read(elf, header->segments_offset, length_bytes, &bytes);
    if (error != 0)
        return error;
    for (size_t i = 0; i < header->segments_count; i++) {
        struct cursor cursor;
        cursor_init(&cursor, bytes + i * header->segment_bytes, header->segment_bytes);
        elf_add_segment(elf, &cursor);
    }
    free(bytes);
    return 0;
}

struct section {
    uint32_t type;
    uint32_t link;
    struct table table;
};

static void elf_read_section(const uint8_t *bytes, const struct header *header, size_t index, struct section *section)
{
    struct cursor cursor;
    cursor_init(&cursor, bytes + index * header->section_bytes, header->section_bytes);
    cursor_skip(&cursor, 4); /* sh_name */
    section->type = cursor_le32(&cursor);
    cursor_skip(&cursor, 8 + 8); /* sh_flags, sh_addr */
    section->table.offset = cursor_le64(&cursor);
    section->table.length_bytes = cursor_le64(&cursor);
    section->link = cursor_le32(&cursor);
}

static int elf_read_sections(struct elf *elf, const struct header *header)
{
    if (header->sections_count == 0)
        return 0;
    if (header->section_bytes < sizeof(Elf64_Shdr) || header->sections_count > HEADERS_MAX)
        return -EBADMSG;
    uint8_t *bytes;
    const uint64_t length_bytes = (uint64_t)header->section_bytes * header->sections_count;
    int error = elf_read(elf, header->sections_offset, length_bytes, &bytes);
    if (error != 0)
        return error;
    for (size_t i = 0; i < header->sections_count && error == 0; i++) {
        struct section section;
        struct section strings;
        elf_read_section(bytes, header, i, &section);
        if (section.type != SHT_DYNSYM && section.type != SHT_SYMTAB)
            continue;
        if (section.link >= header->sections_count) {
            error = -EBADMSG;
            break;
        }
        elf_read_section(bytes, header, section.link, &strings);
        elf->tables[section.type == SHT_DYNSYM ? DYNAMIC : STATIC] = (struct symbol_table){
            .symbols = section.table,
            .strings = strings.table,
        };
    }
    free(bytes);
    return error;
}

int elf_open(struct elf **elf, int descriptor)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -ENOEXEC;
    struct elf *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return -ENOMEM;
    fresh->descriptor = descriptor;
    fresh->file_bytes = (uint64_t)status.st_size;
    struct header header = {0};
    int error = elf_read_header(fresh, &header);
    if (error == 0)
        error = elf_read_segments(fresh, &header);
    if (error == 0)
        error = elf_read_sections(fresh, &header);
    if (error != 0) {
        free(fresh);
        return error;
    }
    *elf = fresh;
    return 0;
}

void elf_close(struct elf **elf)
{
    free(*elf);
    *elf = NULL;
}

static bool elf_place(const struct elf *elf, uint64_t address, uint64_t *file_offset)
{
    for (size_t i = 0; i < elf->segments_count; i++) {
        const struct segment *segment = &elf->segments[i];
        if (address >= segment->address && address - segment->address < segment->length_bytes) {
            *file_offset = address - segment->address + segment->offset;
            return *file_offset < elf->file_bytes;
        }
    }
    return false;
}

struct search {
    const struct elf *elf;
    const char *const *names;
    size_t names_count;
    elf_found *found;
    void *context;
    struct {
        size_t name;
        uint64_t offset;
    } places[PLACES_MAX];
    size_t places_count;
};

static void search_add(struct search *search, size_t name, uint64_t offset)
{
    for (size_t i = 0; i < search->places_count; i++)
        if (search->places[i].name == name && search->places[i].offset == offset)
            return;
    if (search->places_count == PLACES_MAX)
        return;
    search->places[search->places_count].name = name;
    search->places[search->places_count++].offset = offset;
    search->found(search->context, name, offset);
}

/* One Elf64_Sym. `strings` ends in a NUL (search_table sees to it). */
static void search_symbol(struct search *search, struct cursor *symbol, const char *strings, uint64_t strings_bytes)
{
    const uint32_t name = cursor_le32(symbol);
    const uint8_t info = cursor_u8(symbol);
    cursor_skip(symbol, 1); /* st_other */
    const uint16_t section = cursor_le16(symbol);
    const uint64_t address = cursor_le64(symbol);
    cursor_skip(symbol, 8); /* st_size */
    if (ELF64_ST_TYPE(info) != STT_FUNC || section == SHN_UNDEF || name >= strings_bytes)
        return;
    for (size_t i = 0; i < search->names_count; i++) {
        uint64_t offset;
        if (strcmp(strings + name, search->names[i]) == 0 && elf_place(search->elf, address, &offset))
            search_add(search, i, offset);
    }
}

static int search_symbols(struct search *search, const struct symbol_table *table, const char *strings)
{
    uint8_t *symbols;
    const int error = elf_read(search->elf, table->symbols.offset, table->symbols.length_bytes, &symbols);
    if (error != 0)
        return error;
    struct cursor cursor;
    cursor_init(&cursor, symbols, table->symbols.length_bytes);
    while (cursor_left(&cursor) >= sizeof(Elf64_Sym))
        search_symbol(search, &cursor, strings, table->strings.length_bytes);
    free(symbols);
    return 0;
}

static int search_table(struct search *search, const struct symbol_table *table, const char *hint)
{
    if (table->symbols.length_bytes == 0)
        return 0;
    uint8_t *strings;
    int error = elf_read(search->elf, table->strings.offset, table->strings.length_bytes, &strings);
    if (error != 0)
        return error;
    const bool terminated = strings[table->strings.length_bytes - 1] == '\0';
    if (!terminated)
        error = -EBADMSG;
    else if (memmem(strings, table->strings.length_bytes, hint, strlen(hint) + 1) != NULL)
        error = search_symbols(search, table, (const char *)strings);
    free(strings);
    return error;
}

int elf_find(struct elf *elf, const char *hint, const char *const *names, size_t names_count, elf_found *found,
             void *context)
{
    struct search search = {
        .elf = elf,
        .names = names,
        .names_count = names_count,
        .found = found,
        .context = context,
    };
    for (size_t i = 0; i < TABLES && search.places_count == 0; i++) {
        const int error = search_table(&search, &elf->tables[i], hint);
        if (error != 0)
            return error;
    }
    return (int)search.places_count;
}
