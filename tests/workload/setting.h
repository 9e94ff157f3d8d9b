/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings and messages of the stand-in libraries: both go through the environment, as in the library they stand for.
 */
#pragma once

/* The whole number in an environment variable, or `otherwise` when it is not set. */
int setting_read(const char *name, int otherwise);

/* A message on stderr, shown when STANDIN_LOG is at least `level`. */
void setting_say(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
