/* SPDX-License-Identifier: BSD-2-Clause */
/* The header by which whoever asks for metrics chooses a format. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/metric/metric.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *accept = malloc(length + 1);

    if (accept == NULL)
        return 0;
    memcpy(accept, bytes, length);
    accept[length] = '\0';
    metric_accepts_openmetrics(accept);
    free(accept);
    return 0;
}
