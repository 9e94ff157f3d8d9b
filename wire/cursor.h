/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounds-checked reader of outside bytes. After the first read beyond the end every further read yields 0 (or NULL),
 * and `failed` stays set: check it once at the end. It does not own the bytes. No allocation, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

static inline void cursor_init(struct cursor *cursor, const void *bytes, size_t length_bytes)
{
    cursor->at = bytes;
    cursor->end = cursor->at + length_bytes;
    cursor->failed = false;
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* The next `length_bytes` bytes, or NULL when fewer are left; then nothing is left. */
static inline const uint8_t *cursor_take(struct cursor *cursor, size_t length_bytes)
{
    if (cursor_left(cursor) < length_bytes) {
        cursor->failed = true;
        cursor->at = cursor->end;
        return NULL;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += length_bytes;
    return bytes;
}

static inline bool cursor_skip(struct cursor *cursor, size_t length_bytes)
{
    return cursor_take(cursor, length_bytes) != NULL;
}

static inline bool cursor_copy(struct cursor *cursor, void *into, size_t length_bytes)
{
    const uint8_t *bytes = cursor_take(cursor, length_bytes);
    if (bytes == NULL) {
        memset(into, 0, length_bytes);
        return false;
    }
    memcpy(into, bytes, length_bytes);
    return true;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
    const uint8_t *b = cursor_take(cursor, 1);
    return b == NULL ? 0 : b[0];
}

static inline uint16_t cursor_be16(struct cursor *cursor)
{
    const uint8_t *b = cursor_take(cursor, 2);
    return b == NULL ? 0 : (uint16_t)(b[0] << 8 | b[1]);
}

static inline uint32_t cursor_be24(struct cursor *cursor)
{
    const uint8_t *b = cursor_take(cursor, 3);
    return b == NULL ? 0 : (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline uint32_t cursor_be32(struct cursor *cursor)
{
    const uint8_t *b = cursor_take(cursor, 4);
    return b == NULL ? 0 : (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static inline uint64_t cursor_be64(struct cursor *cursor)
{
    uint64_t high = cursor_be32(cursor);
    return high << 32 | cursor_be32(cursor);
}

static inline uint16_t cursor_le16(struct cursor *cursor)
{
    const uint8_t *b = cursor_take(cursor, 2);
    return b == NULL ? 0 : (uint16_t)(b[1] << 8 | b[0]);
}

static inline uint32_t cursor_le32(struct cursor *cursor)
{
    const uint8_t *b = cursor_take(cursor, 4);
    return b == NULL ? 0 : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

static inline uint64_t cursor_le64(struct cursor *cursor)
{
    uint64_t low = cursor_le32(cursor);
    return (uint64_t)cursor_le32(cursor) << 32 | low;
}
