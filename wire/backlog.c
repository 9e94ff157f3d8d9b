/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of bytes. Each message is a size_t length and its bytes, padded to 8, in one piece; a message that does not
 * fit before the ring's end goes to its start, and the place where the ring ends for this round is kept in wrap_at.
 * Invariant: with count > 0 the messages are [head, tail) when head < tail, else [head, wrap_at) and then [0, tail).
 */
#include "wire/backlog.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct backlog {
    uint8_t *bytes;
    size_t capacity_bytes;
    size_t head;
    size_t tail;
    size_t wrap_at;
    size_t count;
};

static size_t slot_bytes(size_t length_bytes)
{
    return (sizeof(size_t) + length_bytes + 7) / 8 * 8;
}

int backlog_create(struct backlog **backlog, size_t capacity_bytes)
{
    struct backlog *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->bytes = malloc(capacity_bytes);
    if (made->bytes == NULL) {
        free(made);
        return -ENOMEM;
    }
    made->capacity_bytes = capacity_bytes;
    *backlog = made;
    return 0;
}

void backlog_destroy(struct backlog **backlog)
{
    if (*backlog == NULL)
        return;
    free((*backlog)->bytes);
    free(*backlog);
    *backlog = NULL;
}

/* Where a slot would go, or SIZE_MAX. */
static size_t find_place(const struct backlog *backlog, size_t slot)
{
    if (backlog->count == 0)
        return slot <= backlog->capacity_bytes ? 0 : SIZE_MAX;
    if (backlog->head < backlog->tail) {
        if (slot <= backlog->capacity_bytes - backlog->tail)
            return backlog->tail;
        return slot <= backlog->head ? 0 : SIZE_MAX;
    }
    return slot <= backlog->head - backlog->tail ? backlog->tail : SIZE_MAX;
}

bool backlog_has_room(const struct backlog *backlog, size_t length_bytes)
{
    return length_bytes <= backlog->capacity_bytes && find_place(backlog, slot_bytes(length_bytes)) != SIZE_MAX;
}

int backlog_put(struct backlog *backlog, const void *bytes, size_t length_bytes)
{
    if (!backlog_has_room(backlog, length_bytes))
        return -ENOBUFS;
    size_t slot = slot_bytes(length_bytes);
    size_t place = find_place(backlog, slot);
    if (backlog->count == 0)
        backlog->head = 0;
    else if (place == 0)
        backlog->wrap_at = backlog->tail;
    memcpy(backlog->bytes + place, &length_bytes, sizeof length_bytes);
    memcpy(backlog->bytes + place + sizeof length_bytes, bytes, length_bytes);
    backlog->tail = place + slot;
    backlog->count++;
    return 0;
}

bool backlog_front(const struct backlog *backlog, const void **bytes, size_t *length_bytes)
{
    if (backlog->count == 0)
        return false;
    memcpy(length_bytes, backlog->bytes + backlog->head, sizeof *length_bytes);
    *bytes = backlog->bytes + backlog->head + sizeof *length_bytes;
    return true;
}

void backlog_pop(struct backlog *backlog)
{
    size_t length_bytes;

    memcpy(&length_bytes, backlog->bytes + backlog->head, sizeof length_bytes);
    bool is_wrapped = backlog->head >= backlog->tail;
    backlog->head += slot_bytes(length_bytes);
    if (is_wrapped && backlog->head == backlog->wrap_at)
        backlog->head = 0;
    backlog->count--;
}

size_t backlog_count(const struct backlog *backlog)
{
    return backlog->count;
}
