/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What frames tell of clocks. A message that the NIC side sees leave at one machine and come in at another tells that
 * the second clock was not behind the first by more than its way took; one back, the same of the other direction. Both
 * together confine the two clocks' difference to half of the frames' round trip. One thread.
 */
#pragma once

#include "correlator/intake/cluster.h"
#include "correlator/intake/machine.h"

/*
 * Adds an edge for each two machines between which messages were seen at both ends in both directions. The machines of
 * `cluster` have their bands; kin[stream] tells each stream's machine.
 */
void causality_find(struct cluster *cluster, const struct intake *intake, const struct clock_kin *kin);
