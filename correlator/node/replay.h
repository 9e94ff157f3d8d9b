/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executions of graphs that no call tells: a rank's calls were captured once, and what its connections carry afterwards
 * is those calls, in their order, over and over. They become calls of the rank (call.is_inferred) as often as all of
 * them are found to the byte, before and between calls that were told. When they were asked for is not known: their
 * time is that of the first credit or data that was seen of the first of them.
 *
 * Not for sends and receives, nor where hosts tell what a graph's launch runs. What passes over NVLink alone is not
 * seen to be run. Several graphs are taken for one, which holds the calls of all of them as they were captured. One
 * thread.
 */
#pragma once

#include "correlator/node/lane.h"

/* Call it once, between naming_build and node_run. `channels`: of each communicator (lane_channels). */
void replay_find(struct naming *naming, const struct lane_losses *losses, const unsigned *channels);
