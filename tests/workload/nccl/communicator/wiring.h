/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects a communicator's channels, through the services of the ranks at both ends. All ranks that are concerned do
 * the same at the same time. Errors: -errno.
 */
#pragma once

#include "communicator/communicator.h"

/* The rings of all channels, and the trees where they are wanted, once. */
int wiring_connect_rings(struct ncclComm *comm);

/* What is not connected yet of these: [peer] true when this rank will send there, or receive from there. */
int wiring_connect_peers(struct ncclComm *comm, const bool *sends, const bool *receives);
/* All ranks with all, for one-sided calls. */
int wiring_connect_mesh(struct ncclComm *comm);
void wiring_close(struct ncclComm *comm);
