/* SPDX-License-Identifier: BSD-2-Clause */
/* The lab's tc(8), which waits behind a FIFO: nothing is forked here. When it cannot be told, the program ends. */
#pragma once

#include "job.h"

void tc_tell(const struct job *job, const char *command);
