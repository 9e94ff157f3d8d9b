/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a batch. Checked: records are of known kinds and at most as many as the header says, and a batch that
 * ended well was used up to its last byte.
 */
#include "wire/batch.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct batch batch;
    union record record;
    uint64_t unknown = 0, known = 0;
    int result;

    if (batch_read(&batch, bytes, length_bytes) != 0)
        return 0;
    while ((result = batch_next(&batch, &record, &unknown)) == 1) {
        if (record_kind_name(record.header.kind) == NULL ||
            record.header.length_bytes < record_kind_bytes(record.header.kind))
            abort();
        known++;
    }
    if (result == 0 && (known + unknown != batch.header.records_count || batch.records.at != bytes + length_bytes))
        abort();
    return 0;
}
