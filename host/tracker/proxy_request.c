/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source: struct setupReq of NCCL 2.13 (32 bytes), 2.15 to 2.29 (36: needFlush came in before the channel) and 2.30
 * (40: one more at its end); RCCL's has a pointer behind it (40 or, from 2.18 on, 48). Numbers that no rank, channel or
 * flag can be make it none.
 */
#include "host/tracker/proxy_request.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/cursor.h"

#define RANKS_MAX       (1 << 22)
#define CHANNELS_MAX    1024
#define CONNECTIONS_MAX 8

struct form {
    size_t request_bytes;
    bool split;
    size_t between_bytes; /* the network's device, GPU-direct, from 2.15 on flush */
};

static const struct form forms[] = {
    {32, false, 8}, {36, false, 12}, {36, true, 12}, {40, true, 12}, /* NCCL 2.13, 2.14; 2.15; 2.17; 2.30 */
    {40, false, 8}, {48, true, 12}, /* RCCL of 2.13; later: with a pointer at the end */
};

static const struct form *form_of(size_t request_bytes, bool split)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].request_bytes == request_bytes && forms[i].split == split)
            return &forms[i];
    return NULL;
}

static int32_t cursor_number(struct cursor *cursor)
{
    int32_t number;
    cursor_copy(cursor, &number, sizeof number);
    return number;
}

static bool is_within(int32_t number, int32_t end)
{
    return number >= 0 && number < end;
}

int proxy_request_decode(const void *bytes, size_t bytes_count, size_t request_bytes, bool split,
                         struct proxy_request *request)
{
    const struct form *form = form_of(request_bytes, split);
    struct cursor cursor;
    if (form == NULL)
        return -EPROTONOSUPPORT;
    if (bytes_count < request_bytes)
        return -EBADMSG;
    cursor_init(&cursor, bytes, bytes_count);
    const int32_t origin = cursor_number(&cursor);
    const int32_t local = cursor_number(&cursor);
    const int32_t far = cursor_number(&cursor);
    const int32_t shared = cursor_number(&cursor);
    cursor_skip(&cursor, form->between_bytes);
    const int32_t channel = cursor_number(&cursor);
    const int32_t connection = cursor_number(&cursor);
    if (cursor.failed || !is_within(origin, RANKS_MAX) || !is_within(local, RANKS_MAX) || !is_within(far, RANKS_MAX) ||
        !is_within(shared, 2) || !is_within(channel, CHANNELS_MAX) || !is_within(connection, CONNECTIONS_MAX))
        return -EBADMSG;
    *request = (struct proxy_request){origin, far, channel, shared != 0};
    return 0;
}

int proxy_address_decode(const void *bytes, size_t bytes_count, struct proxy_address *address)
{
    struct cursor cursor;
    struct proxy_address found = {0};
    cursor_init(&cursor, bytes, bytes_count);
    cursor_copy(&cursor, &found.family, sizeof found.family);
    cursor_copy(&cursor, &found.port, sizeof found.port);
    if (found.family == AF_INET) {
        cursor_copy(&cursor, found.address, 4);
    } else if (found.family == AF_INET6) {
        cursor_skip(&cursor, 4); /* flow information */
        cursor_copy(&cursor, found.address, sizeof found.address);
    } else {
        return -EBADMSG;
    }
    if (cursor.failed || found.port == 0)
        return -EBADMSG;
    *address = found;
    return 0;
}
