/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NCCL's own warnings, through a function that has the name (in .symtab, not exported), level and arguments of the real
 * library's ncclDebugLog, so that what listens there hears them. They go to stderr. Any thread.
 */
#pragma once

enum { WARNING_LEVEL = 2, WARNING_NET = 0x10 };

void warning_log(int level, unsigned long subsystems, const char *function, int line, const char *format,
                 ...) __asm__("_Z12ncclDebugLog17ncclDebugLogLevelmPKciS1_z") __attribute__((format(printf, 5, 6)));
