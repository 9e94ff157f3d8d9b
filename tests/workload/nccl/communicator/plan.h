/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group's tasks on one communicator, cut into works for the device and operations for the proxies, as RCCL cuts them:
 * a ring for each channel with protocol Simple, sends and receives in chunks of 128 KiB.
 */
#pragma once

#include "communicator/communicator.h"

/* Takes the tasks. The connections must be there. Launches the kernel on the tasks' stream, then gives the operations
 * to the proxies; under capture both become part of the graph. */
ncclResult_t plan_launch(struct ncclComm *comm);
