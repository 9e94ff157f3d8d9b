/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program tells of itself: its version, start, CPU time, memory and descriptors (own.def). Any thread. */
#pragma once

#include "wire/metric/metric.h"

void own_write(struct metric_writer *writer, const char *program);
