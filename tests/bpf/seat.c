/* SPDX-License-Identifier: BSD-2-Clause */
/* Seats are never given back: a test makes few children. */
#include "tests/bpf/seat.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#define SEATS_MAX 4096

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct seat seats[SEATS_MAX];
static int count;

static bool beside(const struct seat *a, const struct seat *b)
{
    return a->parent == b->parent && a->child == b->child;
}

static int taken(const struct seat *seat)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        found += beside(&seats[i], seat);
    return found;
}

static bool before(const struct seat *a, const struct seat *b)
{
    return a->key != b->key ? a->key < b->key : a->rank < b->rank;
}

void seat_take(const struct seat *seat, int expected, int *ranks, int *rank)
{
    pthread_mutex_lock(&mutex);
    if (count == SEATS_MAX)
        _exit(4);
    seats[count++] = *seat;
    pthread_cond_broadcast(&changed);
    while (taken(seat) < expected)
        pthread_cond_wait(&changed, &mutex);
    *ranks = 0;
    *rank = 0;
    for (int i = 0; i < count; i++) {
        if (!beside(&seats[i], seat) || seats[i].color != seat->color)
            continue;
        *ranks += 1;
        *rank += before(&seats[i], seat);
    }
    pthread_mutex_unlock(&mutex);
}
