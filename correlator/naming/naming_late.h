/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an agent that was started again has to say of what its earlier boot had described: the same process by pid and
 * start, the same communicator by its ncclComm_t, the same queue pair by device and QPN. Called once by naming_build,
 * when processes, members and queue pairs are in and know of each other.
 */
#pragma once

#include "correlator/naming/naming.h"

/* By index: the entry of an earlier boot that is the same; itself where there is none. The caller frees them. */
struct naming_late {
    int32_t *processes;
    int32_t *members;
    int32_t *queue_pairs;
};

/* Finds them, and puts into the earlier entry what only the later one knows: how it goes on, and its end. */
void naming_late_find(struct naming_late *late, struct naming *naming, const struct intake *intake);
void naming_late_fini(struct naming_late *late);
