/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The joins of naming.h, once its tables are filled: communicators out of members, the two ends of connections, flows
 * with the queue pairs at their ends, roles, ranks. Called once by naming_build.
 */
#pragma once

#include "correlator/naming/naming.h"

void naming_join(struct naming *naming);

/* One identity for each communicator whose members named it in different ways, by the library's hash (naming_child.c).
 */
void naming_identify(struct naming *naming);

/*
 * Ranks of the children of a split, where the library did not say: by key, then rank in the parent, once all ranks of
 * the parent are there (naming_child.c). Needs identities joined.
 */
void naming_rank_children(struct naming *naming);

/*
 * Numbers the collectives of members whose earlier calls were missed: as those of another rank of the communicator that
 * were the same and called at the same time. Where none were seen whole, the first that came late gives the numbers,
 * from the highest that was known on. What fits nowhere gets numbers of its own. Needs calls sorted, communicators
 * joined (naming_number.c).
 */
void naming_number(struct naming *naming);

/* Gives queue pairs that were made before anybody looked to their communicators. Needs ends and communicators joined
 * (naming_owner.c). */
void naming_own(struct naming *naming);

/* Takes back what the two ends of a connection say against each other (naming_connection.c). Needs ends and owners
 * joined.
 */
void naming_check_connections(struct naming *naming);

/* Gives children that share their parent's service thread the queue pairs that were made for them (naming_share.c).
 * Needs what was taken back gone. */
void naming_share(struct naming *naming);

/* Says whose data each queue pair sends (naming_origin.c). Needs what was taken back gone. */
void naming_originate(struct naming *naming);

/* The rank that the launcher gave each process; -1 = not told, or not as a number. The caller frees it
 * (naming_launched.c). */
int32_t *naming_launched(const struct naming *naming);

/* Gives every member its job rank (naming_rank.c). Needs the communicators joined. */
void naming_rank(struct naming *naming);
