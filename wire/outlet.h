/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An outlet: a socket at which programs of this machine hear a running agent's stream beside its link (qpscope record).
 * Who may connect is who runs as the agent's user, or root: the socket's mode says so. Nothing can be said to an agent
 * there. A listener that does not take a batch loses it; its numbers show that. One thread a side.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTLET_LISTENERS_MAX 4
#define OUTLET_SUFFIX        ".outlet"
#define OUTLET_PATH_BYTES    108 /* as a socket's address has room for */

struct outlet;

/*
 * Makes FOLDER/NAME-BOOT.outlet, in the folder that QPSCOPE_RUNTIME_DIRECTORY names, else RUNTIME_DIRECTORY
 * (systemd's), else /run/qpscope (root) or XDG_RUNTIME_DIR/qpscope; one that is missing is made. -errno after logging.
 */
int outlet_open(struct outlet **outlet, const char *name, uint64_t boot_id);

/* Takes in who waits to be heard; true when somebody came. Never waits, as all that follow. */
bool outlet_accept(struct outlet *outlet);

/* Whether somebody listens. */
bool outlet_is_heard(const struct outlet *outlet);

/*
 * Hands one batch to each listener. Returns how many did not take it. *caught_up is set when one that had lost batches
 * takes them again: it may lack what later records refer to.
 */
unsigned outlet_send(struct outlet *outlet, const void *bytes, size_t length_bytes, bool *caught_up);

/* What was sent can still be read. A no-op on NULL. */
void outlet_close(struct outlet **outlet);

/*
 * The listener's side. The number-th folder in which outlets are looked for, from 0; false when there are no more. A
 * connected descriptor (each recv(2) of it is one batch, 0 its end), or -errno: -ECONNREFUSED of a dead agent's, which
 * is removed.
 */
bool outlet_folder(char folder[OUTLET_PATH_BYTES], unsigned number);
int outlet_connect(const char *path);
