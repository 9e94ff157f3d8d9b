/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids are only ever added, and counted after they are there, so readers need no lock. */
#include "mark.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { IDS_MAX = 256 };

static unsigned char ids[IDS_MAX][MARK_ID_BYTES];
static atomic_int ids_count;
static pthread_mutex_t ids_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct mark current = {MARK_NONE, MARK_NONE};

static int id_find(const void *id)
{
    for (int i = 0; i < ids_count; i++)
        if (!memcmp(ids[i], id, MARK_ID_BYTES))
            return i;
    return MARK_NONE;
}

static void id_add(const void *id)
{
    if (ids_count == IDS_MAX) {
        fprintf(stderr, "tracer: more than %d communicators\n", IDS_MAX);
        return;
    }
    memcpy(ids[ids_count], id, MARK_ID_BYTES);
    ids_count++;
}

void mark_expect(const void *id, size_t length_bytes)
{
    if (length_bytes != MARK_ID_BYTES)
        return;
    pthread_mutex_lock(&ids_lock);
    if (id_find(id) == MARK_NONE)
        id_add(id);
    pthread_mutex_unlock(&ids_lock);
}

static int address_matches(const void *id, const struct sockaddr *address)
{
    struct sockaddr_in mine, theirs;

    memcpy(&mine, id, sizeof mine);
    memcpy(&theirs, address, sizeof theirs);
    return mine.sin_family == theirs.sin_family && mine.sin_port == theirs.sin_port &&
           mine.sin_addr.s_addr == theirs.sin_addr.s_addr;
}

void mark_connect(const struct sockaddr *address)
{
    if (address->sa_family != AF_INET)
        return;
    for (int i = 0; i < ids_count; i++)
        if (address_matches(ids[i], address))
            current.communicator = i;
}

struct mark mark_get(void)
{
    return current;
}

void mark_set(struct mark mark)
{
    current = mark;
}

const void *mark_id(struct mark mark)
{
    return mark.communicator == MARK_NONE ? NULL : ids[mark.communicator];
}
