/* SPDX-License-Identifier: BSD-2-Clause */
/* What the probes need of the kernel and of this process's rights. Logs a line for each thing, with what to do. */
#pragma once

/* The probes could not be set: what is missing for them. Returns how many things there are. */
int rights_explain(void);

/* They could: what is missing for the rest, and what is not seen without it. Returns how many things there are. */
int rights_warn(void);
