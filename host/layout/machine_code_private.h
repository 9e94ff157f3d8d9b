/* SPDX-License-Identifier: BSD-2-Clause */
/* What the readers of the architectures share. */
#pragma once

#include "host/layout/machine_code.h"

#include "wire/cursor.h"

/* Keeps each value once, as far as there is room. */
void machine_code_add(struct machine_code_values *values, uint32_t value);
