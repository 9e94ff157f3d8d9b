/* SPDX-License-Identifier: BSD-2-Clause */
/* The node stage's part of rail.h: which ports the hosts told of, and which of the job's queue pairs are on them. */
#pragma once

#include "correlator/naming/naming.h"
#include "correlator/rail/rail.h"

/* Fills `rails`, which must be zeroed. It borrows the texts of naming's facts. */
void rails_find(struct rails *rails, const struct naming *naming, const struct intake *intake,
                const struct timeline *timeline);
