/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a batch. Checked: records are of known kinds, a batch that ended well was used up to its last byte, and
 * where it has no run of messages there are as many records as the header says.
 */
#include "wire/batch.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct batch batch;
    union record record;
    uint64_t unknown = 0, known = 0;
    bool runs = false;
    int result;

    if (batch_read(&batch, bytes, length_bytes) != 0)
        return 0;
    while ((result = batch_next(&batch, &record, &unknown)) == 1) {
        if (record_kind_name(record.header.kind) == NULL ||
            record.header.length_bytes < record_kind_bytes(record.header.kind))
            abort();
        known++;
        runs |= batch.run.bytes.at != NULL;
    }
    if (result == 0 && batch.records.at != bytes + length_bytes)
        abort();
    if (result == 0 && !runs && batch.run.bytes.at == NULL && known + unknown != batch.header.records_count)
        abort();
    return 0;
}
