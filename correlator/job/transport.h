/* SPDX-License-Identifier: BSD-2-Clause */
/* By which way each rank's data went, over all and step by step. Part of the job stage. */
#pragma once

#include "correlator/job/job.h"

/* Fills the job's transports; needs its steps. Without what hosts told there are none. */
void transport_find(struct job *job);
