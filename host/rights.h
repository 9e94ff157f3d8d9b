/* SPDX-License-Identifier: BSD-2-Clause */
/* What the probes need of the kernel and of this process's rights. */
#pragma once

/* Logs each thing that is missing, one line each, with what to do about it. Returns how many there are. */
int rights_explain(void);
