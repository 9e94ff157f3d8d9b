/* SPDX-License-Identifier: BSD-2-Clause */
/* A send, a receive, or both, as RCCL's device kernel does them on one channel. */
#pragma once

#include "links.h"

/* Called by the channel's thread; the send gets a thread of its own when there is a receive too. */
void p2p_run(const struct place *place);
