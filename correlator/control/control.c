/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: a batch is numbered once, over all links. */
#include "correlator/control/control.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/array.h"
#include "wire/clock.h"
#include "wire/link.h"
#include "wire/record.h"

struct controls {
    struct link *links[OPTION_LIST_MAX];
    size_t count;
    uint64_t boot_id;
    uint64_t sequence;
    uint8_t batch[sizeof(struct batch_header) + CONTROL_RECORDS_BYTES];
};

int controls_open(struct controls **result, const struct option_list *urls, const char *key_file, uint64_t boot_id)
{
    struct controls *controls = array_zeroed(sizeof *controls);
    int error = 0;

    controls->boot_id = boot_id;
    for (size_t i = 0; i < urls->count && error == 0; i++) {
        const struct link_options options = {
            .role = LINK_SEND, .url = urls->values[i], .key_file = key_file, .boot_id = boot_id};
        error = link_open(&controls->links[i], &options);
        controls->count += error == 0;
    }
    if (error != 0)
        controls_close(&controls);
    else
        *result = controls;
    return error;
}

size_t controls_count(const struct controls *controls)
{
    return controls->count;
}

bool controls_send(struct controls *controls, size_t control, const void *records, size_t records_bytes,
                   uint32_t records_count)
{
    const struct batch_header header = {.magic = BATCH_MAGIC,
                                        .version = BATCH_VERSION,
                                        .emitter_kind = EMITTER_COMMAND,
                                        .boot_id = controls->boot_id,
                                        .sequence = controls->sequence++,
                                        .sent_ns = clock_now_ns(),
                                        .records_count = records_count,
                                        .records_bytes = (uint32_t)records_bytes};

    memcpy(controls->batch, &header, sizeof header);
    memcpy(controls->batch + sizeof header, records, records_bytes);
    return link_send(controls->links[control], controls->batch, sizeof header + records_bytes) == 0;
}

uint64_t controls_connections(const struct controls *controls, size_t control)
{
    struct link_counts counts;

    link_counts(controls->links[control], &counts);
    return counts.connections;
}

void controls_close(struct controls **controls)
{
    if (*controls == NULL)
        return;
    for (size_t i = 0; i < (*controls)->count; i++)
        link_close(&(*controls)->links[i], 0);
    free(*controls);
    *controls = NULL;
}
