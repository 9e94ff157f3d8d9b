/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owners of queue pairs that were there before anybody looked, where the processes at both ends share several
 * communicators: by what they carried. A connection is given to a communicator only when
 * - what it carried can be read, slot by slot and to the byte, as that communicator's calls at both ends (decoding.h),
 * - and as no other's that the two processes share, or all operations of that other one would not come out whole with
 *   all connections that can be read so,
 * - and all operations of its own come out whole with what is given to it: all or none of it is given.
 *
 * Nothing is known by this of queue pairs that carried nothing since, of connections with several queue pairs, of
 * communicators some of whose channels pass over no network, where two communicators do the same, of processes with
 * several ranks of a communicator, and of jobs with more than a thousand such connections.
 */
#pragma once

#include "correlator/node/lane.h"

/* Call it once, between naming_build and node_run. */
void adoption_run(struct naming *naming, const struct lane_losses *losses);
