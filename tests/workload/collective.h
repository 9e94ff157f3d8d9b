/* SPDX-License-Identifier: BSD-2-Clause */
/* A collective as RCCL's device kernel does it on one channel: ring for all five, tree for all-reduce. */
#pragma once

#include "links.h"

/* Called by the channel's thread. */
void collective_run(const struct place *place);
