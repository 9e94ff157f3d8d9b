/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: NCCL's documentation of NCCL_IB_HCA; ncclIbInit and parseStringList of NCCL 2.18 to 2.30, which split alike.
 * Invariant: an entry without a name is none.
 */
#include "correlator/rail/hca_list.h"

#include <ctype.h>
#include <string.h>

#include "wire/cursor.h"

#define PORT_ANY (-1)

struct entry {
    const char *name;
    size_t bytes;
    int port;
};

struct reading {
    struct cursor cursor;
    bool excludes;
    bool is_exact;
};

static bool take_if(struct cursor *cursor, char wanted)
{
    return cursor_left(cursor) > 0 && *cursor->at == (uint8_t)wanted && cursor_skip(cursor, 1);
}

static struct reading begin(struct hca_list list)
{
    struct reading reading = {.excludes = false};

    cursor_init(&reading.cursor, list.text == NULL ? "" : list.text, list.text == NULL ? 0 : list.bytes);
    reading.excludes = take_if(&reading.cursor, '^');
    reading.is_exact = take_if(&reading.cursor, '=');
    return reading;
}

static int port_of(const char *text, size_t bytes)
{
    int port = bytes == 0 ? PORT_ANY : 0;

    for (size_t i = 0; i < bytes && i < 4 && isdigit((unsigned char)text[i]); i++)
        port = 10 * port + (text[i] - '0');
    return port;
}

static bool next(struct reading *reading, struct entry *entry)
{
    struct cursor *cursor = &reading->cursor;

    while (cursor_left(cursor) > 0) {
        const uint8_t *comma = memchr(cursor->at, ',', cursor_left(cursor));
        size_t bytes = comma == NULL ? cursor_left(cursor) : (size_t)(comma - cursor->at);
        const char *text = (const char *)cursor_take(cursor, bytes);
        if (comma != NULL)
            cursor_skip(cursor, 1);
        const char *colon = bytes == 0 ? NULL : memchr(text, ':', bytes);
        size_t name_bytes = colon == NULL ? bytes : (size_t)(colon - text);
        if (name_bytes == 0)
            continue;
        *entry = (struct entry){text, name_bytes, PORT_ANY};
        if (colon != NULL)
            entry->port = port_of(colon + 1, bytes - name_bytes - 1);
        return true;
    }
    return false;
}

static bool fits(const struct entry *entry, bool is_exact, const char *device, unsigned port)
{
    size_t bytes = strlen(device);

    return (entry->port == PORT_ANY || entry->port == (int)port) && entry->bytes <= bytes &&
           (!is_exact || entry->bytes == bytes) && memcmp(entry->name, device, entry->bytes) == 0;
}

bool hca_list_allows(struct hca_list list, const char *device, unsigned port)
{
    struct reading reading = begin(list);
    struct entry entry;
    bool is_empty = true;

    while (next(&reading, &entry)) {
        is_empty = false;
        if (fits(&entry, reading.is_exact, device, port))
            return !reading.excludes;
    }
    return is_empty || reading.excludes;
}

bool hca_list_names(struct hca_list list, const char *device, unsigned port)
{
    struct reading reading = begin(list);
    struct entry entry;

    while (!reading.excludes && next(&reading, &entry))
        if (fits(&entry, true, device, port))
            return true;
    return false;
}

bool hca_list_name(struct hca_list list, size_t n, char *device, size_t device_bytes)
{
    struct reading reading = begin(list);
    struct entry entry;

    while (!reading.excludes && reading.is_exact && next(&reading, &entry)) {
        if (n-- > 0)
            continue;
        size_t bytes = entry.bytes < device_bytes ? entry.bytes : device_bytes - 1;
        memcpy(device, entry.name, bytes);
        device[bytes] = '\0';
        return true;
    }
    return false;
}
