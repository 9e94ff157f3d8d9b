/* SPDX-License-Identifier: BSD-2-Clause */
/* Emitters of batches, told by their boot, which is random. What comes from outside is read by wire/batch.h only. */
#include "cli/gather/tally.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/form/text.h"
#include "wire/batch.h"
#include "wire/log.h"

static const char *kind_name(uint16_t kind)
{
    static const char *const names[] = {"unknown", "nic", "host", "node", "command"};
    return names[kind < sizeof(names) / sizeof(names[0]) ? kind : 0];
}

static struct gather_emitter *find(const struct gather_tally *tally, uint64_t boot_id)
{
    for (size_t i = tally->emitters_count; i > 0; i--) {
        if (tally->emitters[i - 1].boot_id == boot_id) {
            return &tally->emitters[i - 1];
        }
    }
    return NULL;
}

const struct gather_emitter *gather_tally_find(const struct gather_tally *tally, uint64_t boot_id)
{
    return find(tally, boot_id);
}

static struct gather_emitter *find_or_add(struct gather_tally *tally, const struct batch_header *header)
{
    struct gather_emitter *found = find(tally, header->boot_id);
    if (found != NULL) {
        return found;
    }
    if (tally->emitters_count == tally->emitters_capacity) {
        size_t capacity = tally->emitters_capacity == 0 ? 16 : 2 * tally->emitters_capacity;
        struct gather_emitter *more = realloc(tally->emitters, capacity * sizeof(*more));
        if (more == NULL) {
            log_error("out of memory for %zu emitters", capacity);
            return NULL;
        }
        tally->emitters = more;
        tally->emitters_capacity = capacity;
    }
    found = &tally->emitters[tally->emitters_count++];
    *found = (struct gather_emitter){
        .emitter_id = header->emitter_id, .boot_id = header->boot_id, .kind = header->emitter_kind};
    return found;
}

static void take_hello(struct gather_emitter *emitter, const struct record_hello *hello)
{
    emitter->said_hello = true;
    memcpy(emitter->kernel_boot, hello->kernel_boot, sizeof(emitter->kernel_boot));
    snprintf(emitter->host, sizeof(emitter->host), "%.*s", (int)sizeof(hello->host), hello->host);
    snprintf(emitter->instance, sizeof(emitter->instance), "%.*s", (int)sizeof(hello->instance), hello->instance);
}

int gather_tally_add(struct gather_tally *tally, const void *bytes, size_t length_bytes)
{
    struct batch batch;
    union record record;
    uint64_t unknown_count = 0;
    int result = batch_read(&batch, bytes, length_bytes);
    if (result != 0) {
        tally->damaged++;
        return result;
    }
    struct gather_emitter *emitter = find_or_add(tally, &batch.header);
    if (emitter == NULL) {
        return -ENOMEM;
    }
    emitter->batches++;
    tally->batches++;
    tally->bytes += length_bytes;
    while ((result = batch_next(&batch, &record, &unknown_count)) == 1) {
        emitter->records++;
        if (record.header.kind == RECORD_HELLO) {
            take_hello(emitter, &record.hello);
        }
    }
    emitter->records += unknown_count;
    tally->damaged += result < 0;
    return result;
}

void gather_tally_print(const struct gather_tally *tally, struct json *json)
{
    if (json != NULL) {
        json_array_begin(json, "emitters");
    }
    for (size_t i = 0; i < tally->emitters_count; i++) {
        const struct gather_emitter *emitter = &tally->emitters[i];
        if (json == NULL) {
            printf("  %-8s%s on %s: %" PRIu64 " batches, %" PRIu64 " records\n", kind_name(emitter->kind),
                   emitter->said_hello ? emitter->instance : "(its hello is missing)",
                   emitter->said_hello ? emitter->host : "an unknown host", emitter->batches, emitter->records);
            continue;
        }
        json_object_begin(json, NULL);
        json_text(json, "emitter", kind_name(emitter->kind));
        json_text(json, "instance", emitter->said_hello ? emitter->instance : NULL);
        json_text(json, "host", emitter->said_hello ? emitter->host : NULL);
        json_integer(json, "batches", (int64_t)emitter->batches);
        json_integer(json, "records", (int64_t)emitter->records);
        json_object_end(json);
    }
    if (json != NULL) {
        json_array_end(json);
        json_integer(json, "batches", (int64_t)tally->batches);
        json_integer(json, "bytes", (int64_t)tally->bytes);
        json_integer(json, "damaged", (int64_t)tally->damaged);
    }
}

void gather_tally_fini(struct gather_tally *tally)
{
    free(tally->emitters);
    *tally = (struct gather_tally){0};
}
