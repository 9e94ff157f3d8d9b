/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as code, read by all readers: as many values at most as there is room for, and each only once. */
#include "host/layout/machine_code.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check(const struct machine_code_values *values)
{
    if (values->count > MACHINE_CODE_VALUES_MAX)
        abort();
    for (size_t i = 0; i < values->count; i++)
        for (size_t j = 0; j < i; j++)
            if (values->values[i] == values->values[j])
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    static void (*const readers[])(const uint8_t *, size_t, struct machine_code_values *) = {
        machine_code_members_x86,
        machine_code_members_arm64,
        machine_code_constants_x86,
        machine_code_constants_arm64,
    };
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        struct machine_code_values values;
        readers[i](bytes, length_bytes, &values);
        check(&values);
    }
    return 0;
}
