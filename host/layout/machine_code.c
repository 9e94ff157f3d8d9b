/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both architectures share: the set of values. Sources of the encodings: Intel 64 manual, volume 2 (MOV), and
 * Arm's Architecture Reference Manual, A64 (LDR, STR, ADD, MOVZ, MOVK).
 */
#include "host/layout/machine_code_private.h"

void machine_code_add(struct machine_code_values *values, uint32_t value)
{
    for (size_t i = 0; i < values->count; i++)
        if (values->values[i] == value)
            return;
    if (values->count < MACHINE_CODE_VALUES_MAX)
        values->values[values->count++] = value;
}
