/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job of which no host tells anything, from its traffic alone. Flows are a job's where transfers end with an
 * immediate, as the library's do; others (storage) are nobody's. NICs whose flows lead to each other are one job: its
 * members are their addresses, in order of address, with a process each that is named by it. Operations are bursts of
 * its data: what lies between two times at which none of its flows sends, for longer than the pauses within bursts are.
 * Where a rank is late, a burst stands still in its middle; what belongs together is told by volume: bursts that add up
 * to what others carry are one.
 *
 * When anything was asked for, credit and readiness are not told: only bytes and edges. One thread.
 */
#pragma once

#include "correlator/node/node.h"

/* Call it instead of node_run, after naming_build, where there is no host side at all. */
void traffic_run(rank_operation_records *records, struct naming *naming);
