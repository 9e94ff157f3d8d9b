/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Companions: ranks that a rank waited for where no NIC sees it, in operations without a wire (NVLink) since its
 * operation on the wire before. Who of them came late to those shows in none of them alone. Part of the job stage;
 * valid as long as the job does not change. One thread.
 */
#pragma once

#include "correlator/job/job.h"

#define COMPANION_NONE SIZE_MAX

struct companion {
    int32_t rank; /* the job's */
    size_t next;  /* its rank operation that is the first on the wire behind the last one shared, or COMPANION_NONE */
};
typedef ARRAY(struct companion) companion_list;

struct companions;

struct companions *companions_create(const struct job *job);
void companions_destroy(struct companions *companions);

/* Fills the list (empty before; the caller ends it) with those of a rank operation, by rank, its own rank not. */
void companions_find(const struct companions *companions, size_t rank_operation, companion_list *list);
