/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC at a RoCE or InfiniBand packet's end: whether it is the one that its bytes give. Any thread, once
 * made.
 */
#pragma once

#include "nic/frame/encapsulation.h"
#include "nic/tally.h"

struct icrc;

int icrc_create(struct icrc **icrc); /* -ENOMEM */
void icrc_destroy(struct icrc **icrc);

/*
 * Of a frame that was walked to its BTH: TALLY_FRAMES_ROCE when the ICRC is right, TALLY_FRAMES_BAD_ICRC when not,
 * TALLY_FRAMES_ICRC_UNVERIFIED when bytes are missing, or the network header has options, for which no rule is given.
 */
enum tally icrc_check(const struct icrc *icrc, const struct encapsulation *walk);
