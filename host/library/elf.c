/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of ELF files to file offsets. Source: the System V ABI's ELF chapters (headers, sections, symbol table).
 * Invariant: every length that the file states is checked against the file's size before anything is allocated or read.
 */
#include "host/library/elf.h"

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
#define MATCHES_MAX     1024

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

static int read_bytes(int descriptor, uint64_t offset, uint8_t *into, uint64_t length_bytes)
{
    for (uint64_t done = 0; done < length_bytes;) {
        const ssize_t got = pread(descriptor, into + done, length_bytes - done, (off_t)(offset + done));
        if (got <= 0)
            return got == 0 ? -EBADMSG : -errno;
        done += (uint64_t)got;
    }
    return 0;
}

/* The bytes [offset, offset + length) of the file in fresh memory, which the caller frees. */
static int elf_read(const struct elf *elf, uint64_t offset, uint64_t length_bytes, uint8_t **bytes)
{
    if (length_bytes == 0 || length_bytes > TABLE_BYTES_MAX || offset > elf->file_bytes ||
        length_bytes > elf->file_bytes - offset)
        return -EBADMSG;
    uint8_t *into = malloc(length_bytes);
    if (into == NULL)
        return -ENOMEM;
    const int error = read_bytes(elf->descriptor, offset, into, length_bytes);
    if (error != 0) {
        free(into);
        return error;
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

#define PIECE_BYTES (2730 * sizeof(Elf64_Sym)) /* about 64 KiB, of whole symbols */

/* A wanted name in the table's strings; where strings share their tails it may begin within another. */
struct match {
    uint64_t string; /* offset in the table's strings */
    size_t group;
    size_t name;
};

struct search {
    const struct elf *elf;
    const struct elf_group *groups;
    size_t groups_count;
    elf_found *found;
    void *context;
    bool wanted[ELF_GROUPS_MAX]; /* the table that is searched may define it */
    size_t group_places[ELF_GROUPS_MAX];
    struct match matches[MATCHES_MAX]; /* in the order of `string` when symbols are looked at */
    size_t matches_count;
    struct {
        size_t group;
        size_t name;
        uint64_t offset;
    } places[PLACES_MAX];
    size_t places_count;
    uint8_t piece[PIECE_BYTES + ELF_NAME_BYTES];
};

/* Part of a table of strings, `begins_bytes` long, with the beginning of the next part behind it. */
struct piece {
    const char *bytes;
    size_t length_bytes;
    size_t begins_bytes;
    uint64_t offset; /* of the part in the table */
};

typedef void piece_visit(struct search *search, const struct piece *piece);

static int read_piece(struct search *search, const struct table *table, uint64_t at, size_t length_bytes)
{
    const struct elf *elf = search->elf;
    if (table->length_bytes > TABLE_BYTES_MAX || table->offset > elf->file_bytes ||
        table->length_bytes > elf->file_bytes - table->offset)
        return -EBADMSG;
    return read_bytes(elf->descriptor, table->offset + at, search->piece, length_bytes);
}

static int each_piece(struct search *search, const struct table *table, piece_visit *visit)
{
    for (uint64_t at = 0; at < table->length_bytes; at += PIECE_BYTES) {
        const uint64_t left = table->length_bytes - at;
        const size_t length_bytes = left < sizeof search->piece ? left : sizeof search->piece;
        const int error = read_piece(search, table, at, length_bytes);
        if (error != 0)
            return error;
        const struct piece piece = {
            .bytes = (const char *)search->piece,
            .length_bytes = length_bytes,
            .begins_bytes = length_bytes < PIECE_BYTES ? length_bytes : PIECE_BYTES,
            .offset = at,
        };
        visit(search, &piece);
    }
    return 0;
}

static void find_hints(struct search *search, const struct piece *piece)
{
    for (size_t i = 0; i < search->groups_count; i++) {
        const char *hint = search->groups[i].hint;
        if (search->group_places[i] == 0 && !search->wanted[i])
            search->wanted[i] = memmem(piece->bytes, piece->length_bytes, hint, strlen(hint) + 1) != NULL;
    }
}

static void match_names(struct search *search, size_t group, const char *at, const struct piece *piece)
{
    const struct elf_group *wanted = &search->groups[group];
    const size_t left = piece->length_bytes - (size_t)(at - piece->bytes);
    for (size_t i = 0; i < wanted->names_count && search->matches_count < MATCHES_MAX; i++) {
        const size_t length = strlen(wanted->names[i]) + 1;
        if (length <= left && memcmp(at, wanted->names[i], length) == 0)
            search->matches[search->matches_count++] = (struct match){
                .string = piece->offset + (size_t)(at - piece->bytes),
                .group = group,
                .name = i,
            };
    }
}

/* What all names of a group begin with: one search for it finds them all. */
static size_t common_length(const struct elf_group *group)
{
    size_t length = strlen(group->hint);
    for (size_t i = 0; i < group->names_count; i++) {
        size_t same = 0;
        while (same < length && group->names[i][same] == group->hint[same])
            same++;
        length = same;
    }
    return length;
}

static void find_names(struct search *search, const struct piece *piece)
{
    const char *end = piece->bytes + piece->begins_bytes;
    for (size_t i = 0; i < search->groups_count; i++) {
        const size_t length = common_length(&search->groups[i]);
        const char *at = piece->bytes;
        while (search->wanted[i] && at < end) {
            at = memmem(at, piece->length_bytes - (size_t)(at - piece->bytes), search->groups[i].hint, length);
            if (at == NULL || at >= end)
                break;
            match_names(search, i, at, piece);
            at++;
        }
    }
}

static void search_add(struct search *search, const struct match *match, uint64_t offset)
{
    for (size_t i = 0; i < search->places_count; i++)
        if (search->places[i].group == match->group && search->places[i].name == match->name &&
            search->places[i].offset == offset)
            return;
    if (search->places_count == PLACES_MAX)
        return;
    search->places[search->places_count].group = match->group;
    search->places[search->places_count].name = match->name;
    search->places[search->places_count++].offset = offset;
    search->group_places[match->group]++;
    search->found(search->context, match->group, match->name, offset);
}

static int compare_matches(const void *left, const void *right)
{
    const struct match *a = left;
    const struct match *b = right;
    return a->string < b->string ? -1 : a->string > b->string;
}

static void search_symbol(struct search *search, struct cursor *symbol)
{
    const struct match wanted = {.string = cursor_le32(symbol)};
    const uint8_t info = cursor_u8(symbol);
    cursor_skip(symbol, 1); /* st_other */
    const uint16_t section = cursor_le16(symbol);
    const uint64_t address = cursor_le64(symbol);
    cursor_skip(symbol, 8); /* st_size */
    uint64_t offset;
    if (ELF64_ST_TYPE(info) != STT_FUNC || section == SHN_UNDEF)
        return;
    const struct match *end = search->matches + search->matches_count;
    const struct match *match =
        bsearch(&wanted, search->matches, search->matches_count, sizeof wanted, compare_matches);
    if (match == NULL || !elf_place(search->elf, address, &offset))
        return;
    while (match > search->matches && match[-1].string == wanted.string)
        match--;
    for (; match < end && match->string == wanted.string; match++)
        search_add(search, match, offset);
}

static void search_symbols(struct search *search, const struct piece *piece)
{
    struct cursor cursor;
    cursor_init(&cursor, piece->bytes, piece->begins_bytes);
    while (cursor_left(&cursor) >= sizeof(Elf64_Sym))
        search_symbol(search, &cursor);
}

static int search_table(struct search *search, const struct symbol_table *table)
{
    search->matches_count = 0;
    memset(search->wanted, 0, sizeof search->wanted);
    if (table->symbols.length_bytes == 0)
        return 0;
    int error = each_piece(search, &table->strings, find_hints);
    if (error == 0 && memchr(search->wanted, true, sizeof search->wanted) != NULL)
        error = each_piece(search, &table->strings, find_names);
    if (error != 0 || search->matches_count == 0)
        return error;
    qsort(search->matches, search->matches_count, sizeof search->matches[0], compare_matches);
    return each_piece(search, &table->symbols, search_symbols);
}

int elf_find(struct elf *elf, const struct elf_group *groups, size_t groups_count, elf_found *found, void *context)
{
    struct search *search = calloc(1, sizeof *search);
    if (search == NULL)
        return -ENOMEM;
    search->elf = elf;
    search->groups = groups;
    search->groups_count = groups_count;
    search->found = found;
    search->context = context;
    int result = 0;
    for (size_t i = 0; i < TABLES && result == 0; i++)
        result = search_table(search, &elf->tables[i]);
    if (result == 0)
        result = (int)search->places_count;
    free(search);
    return result;
}
