/* SPDX-License-Identifier: BSD-2-Clause */
/* The point-to-point part of match.h: a send or receive is cut into parts, one or more a channel, in slots of any size.
 */
#pragma once

#include "correlator/node/match.h"

enum match match_point(const struct matcher *matcher, const struct work *work, const size_t *at, share_list *shares);
