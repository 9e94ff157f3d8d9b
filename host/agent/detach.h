/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One command that takes all of qpscope's probes off the machine. A probe lives as long as its agent: nothing is
 * pinned, so an agent that was killed has left none, and stopping those that run is all there is to do.
 */
#pragma once

/*
 * Ends every other qpscope-host of the machine and waits until it is gone; says on stdout what it found. 0, or -errno,
 * logged, when one could not be ended.
 */
int detach_all(void);
