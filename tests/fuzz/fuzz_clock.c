/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a question to the clock server. Checked: an answer repeats its question and names the reference. */
#include "wire/clock.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct clock_answer answer = {.reference_boot = 5, .received_ns = 6};

    if (clock_answer(bytes, length_bytes, &answer) != 0)
        return 0;
    if (length_bytes != sizeof answer.question || memcmp(bytes, &answer.question, length_bytes) != 0 ||
        answer.reference_boot != 5 || answer.received_ns != 6)
        abort();
    return 0;
}
