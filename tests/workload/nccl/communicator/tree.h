/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NCCL's double binary tree between nodes (Sanders, Speck, Traeff: Two-tree algorithms, 2009): the two halves of the
 * channels use two trees, and who is an inner node of one is a leaf of the other.
 */
#pragma once

#include "communicator/communicator.h"

/* This rank's place in the tree of a channel. */
struct tree tree_of(int rank, int ranks, bool is_second);

/* Whether all-reduce goes over trees: NCCL_ALGO=Tree. */
bool tree_is_wanted(void);
int tree_depth(int ranks);
