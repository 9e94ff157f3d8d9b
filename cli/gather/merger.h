/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several captures as one. What is in several of them is written once. Two machines that give their agents the same
 * emitter id (clones with one name and machine id) are kept apart: of the later one the ids are changed. One thread.
 */
#pragma once

#include <stdint.h>

#include "cli/gather/tally.h"

struct merger;

struct merger_counts {
    uint64_t written;
    uint64_t duplicates;
    uint64_t contradicting; /* another batch of that emitter, boot and sequence was there: left out */
    uint64_t renamed;       /* emitters whose id was changed */
};

/* -errno after logging. */
int merger_create(struct merger **merger, const char *output);

/*
 * First once for each capture, so that it is known who is in them; then merger_add once for each, with the number of
 * batches that were there: what has come since is not taken, nor is what follows a cut. -errno after logging.
 */
int merger_survey(struct merger *merger, const char *capture, uint64_t *batches);
int merger_add(struct merger *merger, const char *capture, uint64_t batches);

const struct gather_tally *merger_tally(const struct merger *merger);
struct merger_counts merger_counts(const struct merger *merger);

/* Closes the output, which is removed unless it is `whole`. -errno after logging. */
int merger_close(struct merger **merger, bool whole);
