/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a run of rank operations. Checked: no more operations than the bytes can hold, and each of them, coded
 * again, comes out as it is.
 */
#include "wire/operation_run.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check_again(struct operation_coder *put, struct operation_coder *take,
                        const struct record_rank_operation *record)
{
    uint8_t again[OPERATION_CODE_BYTES_MAX];
    struct record_rank_operation back;
    struct cursor cursor;

    cursor_init(&cursor, again, (size_t)(operation_coder_put(put, again, record) - again));
    if (!operation_coder_take(take, &cursor, &back) || cursor_left(&cursor) != 0)
        abort();
    if (memcmp(&back, record, sizeof back) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    static struct operation_run run;
    static struct operation_coder put, take;
    struct record_rank_operation_run head;
    struct record_rank_operation record;
    size_t count = 0;

    if (length_bytes < sizeof head)
        return 0;
    operation_coder_init(&run.coder);
    operation_coder_init(&put);
    operation_coder_init(&take);
    memcpy(&head, bytes, sizeof head);
    operation_run_begin(&run, &head, bytes + sizeof head, length_bytes - sizeof head);
    while (operation_run_next(&run, &record) == 1) {
        check_again(&put, &take, &record);
        count++;
    }
    if (count > length_bytes / 5 || count > head.header.source)
        abort();
    return 0;
}
