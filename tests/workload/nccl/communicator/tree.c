/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the first tree a rank's level is that of its lowest bit set: leaves are odd, rank 0 is the root with one child.
 * The second is the first in reverse where the number of ranks is even, and shifted by one where it is odd.
 */
#include "communicator/tree.h"

#include <stdlib.h>
#include <strings.h>

enum { NONE = -1 };

static int highest_bit_below(int ranks)
{
    int bit = 1;

    while (2 * bit < ranks)
        bit *= 2;
    return bit;
}

static int parent_of(int rank, int ranks)
{
    int bit = rank & -rank, above = (rank & ~bit) | 2 * bit;

    return rank == 0 ? NONE : above < ranks ? above : rank & ~bit;
}

/* The child above the rank, whose level shrinks until it is one of the ranks. */
static int upper_child(int rank, int ranks)
{
    int bit = rank == 0 ? highest_bit_below(ranks) : (rank & -rank) / 2;

    while (bit > 0 && rank + bit >= ranks)
        bit /= 2;
    return bit > 0 ? rank + bit : NONE;
}

static int lower_child(int rank)
{
    int bit = rank & -rank;

    return bit > 1 ? rank - bit / 2 : NONE;
}

static struct tree first_tree(int rank, int ranks)
{
    struct tree tree = {.depth = tree_depth(ranks), .up = parent_of(rank, ranks), .down = {NONE, NONE, NONE}};
    int below[] = {lower_child(rank), upper_child(rank, ranks)}, count = 0;

    for (int i = 0; i < 2; i++)
        if (below[i] != NONE)
            tree.down[count++] = below[i];
    return tree;
}

static int mapped(int rank, int ranks, int by)
{
    return ranks % 2 ? (rank + by + ranks) % ranks : ranks - 1 - rank;
}

struct tree tree_of(int rank, int ranks, bool is_second)
{
    if (!is_second)
        return first_tree(rank, ranks);
    struct tree tree = first_tree(mapped(rank, ranks, -1), ranks);
    int *all[] = {&tree.up, &tree.down[0], &tree.down[1]};
    for (int i = 0; i < 3; i++)
        if (*all[i] != NONE)
            *all[i] = mapped(*all[i], ranks, 1);
    return tree;
}

bool tree_is_wanted(void)
{
    const char *wanted = getenv("NCCL_ALGO");

    return wanted && !strcasecmp(wanted, "Tree");
}

int tree_depth(int ranks)
{
    int depth = 1;

    for (; (1 << depth) < ranks; depth++)
        ;
    return depth;
}
