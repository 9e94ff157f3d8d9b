/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of several stores, of as many jobs, in one (doc/store.md, "Several jobs in one store"). What a row refers
 * to, its job's ranks and its times are rewritten; everything stays its source's own. Stores of one job are not joined,
 * since steps and verdicts follow from all that is known of a job together. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum store_tie {                  /* how a store's times were brought onto the first one's clock */
                 STORE_TIE_FIRST, /* it is the first one */
                 STORE_TIE_CLOCK, /* they are of one clock */
                 STORE_TIE_AGENT, /* by an agent that both heard */
                 STORE_TIE_REALTIME,
};

struct store_source {
    const char *path;
    enum store_tie tie;
    int64_t shift_ns;   /* was added to its times */
    int64_t bound_ns;   /* error of that; with STORE_TIE_REALTIME beside what the machines' CLOCK_REALTIMEs differ by */
    int64_t first_rank; /* was added to its ranks */
    int64_t rows;
    const char *later; /* it is an earlier state of this one, and was left out; NULL: it was not */
};

/*
 * Makes the store `output`, which must not exist, and fills sources[0 .. count), whose paths the caller has set.
 * -EINVAL, -EPROTO (another schema), -EBADMSG (damaged), -EEXIST (of one job), -ENODATA (no clock in common) or another
 * -errno after logging; nothing is left then.
 */
int store_merge(const char *output, struct store_source *sources, size_t count);

/* first, one clock, agent, realtime. */
const char *store_tie_name(enum store_tie tie);
