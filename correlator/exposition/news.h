/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a run of the analysis changed what people look at. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct job;

struct news {
    uint64_t seen; /* begins as 0 */
};

/* True when steps or verdicts are others than at the last call; heartbeats alone change nothing. */
bool news_take(struct news *news, const struct job *job);
