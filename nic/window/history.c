/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks of messages as wire/message_run.h codes them, each block for itself. Invariants: block numbers only rise,
 * block b lies at b % blocks_count; an entry is never split; every message given up ended no later than given_up_ns.
 */
#include "nic/window/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/window/pages.h"

#define BLOCK_BYTES_MAX 32768u
#define BLOCK_BYTES_MIN 1024u
#define BLOCKS_WANTED   16u /* at least, where the memory allows */
#define BLOCKS_MIN      4u

struct block {
    uint64_t number;
    uint64_t first_ns;
    uint64_t end_ns; /* the first beginning and the last end in it */
    uint32_t bytes_used;
    uint32_t entries_count;
};

struct history {
    struct tallies *tallies;
    struct block *blocks;
    uint8_t *memory;
    uint32_t block_bytes;
    uint32_t blocks_count;
    struct block *present;
    struct message_coder coder; /* of the present block */
    uint64_t given_up_ns;
    uint64_t bytes_stored;
};

static uint8_t *bytes_of(const struct history *history, const struct block *block)
{
    return history->memory + (size_t)(block - history->blocks) * history->block_bytes;
}

static void begin_block(struct history *history, uint64_t number)
{
    struct block *block = &history->blocks[number % history->blocks_count];

    if (block->entries_count != 0) {
        tally_add(history->tallies, TALLY_HISTORY_OVERWRITTEN, block->entries_count);
        if (block->end_ns > history->given_up_ns)
            history->given_up_ns = block->end_ns;
    }
    *block = (struct block){.number = number, .first_ns = UINT64_MAX};
    history->present = block;
    history->coder = (struct message_coder){0};
}

static size_t choose_block_bytes(size_t memory_bytes)
{
    size_t bytes = BLOCK_BYTES_MAX;

    while (bytes > BLOCK_BYTES_MIN && memory_bytes / bytes < BLOCKS_WANTED)
        bytes /= 2;
    return bytes;
}

int history_create(struct history **history, size_t memory_bytes, struct tallies *tallies)
{
    size_t block_bytes = choose_block_bytes(memory_bytes);
    size_t blocks_count = memory_bytes / (block_bytes + sizeof(struct block));

    if (blocks_count < BLOCKS_MIN || blocks_count > UINT32_MAX)
        return -EINVAL;
    struct history *made = calloc(1, sizeof *made);
    if (made == NULL)
        return -ENOMEM;
    made->tallies = tallies;
    made->block_bytes = (uint32_t)block_bytes;
    made->blocks_count = (uint32_t)blocks_count;
    made->blocks = calloc(blocks_count, sizeof *made->blocks);
    made->memory = pages_create(blocks_count * block_bytes);
    if (made->blocks == NULL || made->memory == NULL) {
        history_destroy(&made);
        return -ENOMEM;
    }
    begin_block(made, 0);
    *history = made;
    return 0;
}

void history_destroy(struct history **history)
{
    if (*history == NULL)
        return;
    free((*history)->blocks);
    pages_destroy((*history)->memory, (size_t)(*history)->blocks_count * (*history)->block_bytes);
    free(*history);
    *history = NULL;
}

void history_prepare(struct history *history)
{
    pages_prepare(history->memory, (size_t)history->blocks_count * history->block_bytes);
}

void history_put(struct history *history, const struct record_message *message)
{
    if (history->present->bytes_used + MESSAGE_CODE_BYTES_MAX > history->block_bytes)
        begin_block(history, history->present->number + 1);
    struct block *block = history->present;
    uint8_t *start = bytes_of(history, block) + block->bytes_used;
    uint32_t length = (uint32_t)(message_coder_put(&history->coder, start, message) - start);
    uint64_t end_ns = message->first_ns + message->duration_ns;
    block->bytes_used += length;
    history->bytes_stored += length;
    block->entries_count++;
    block->first_ns = message->first_ns < block->first_ns ? message->first_ns : block->first_ns;
    block->end_ns = end_ns > block->end_ns ? end_ns : block->end_ns;
}

uint64_t history_held_from_ns(const struct history *history)
{
    return history->given_up_ns == 0 ? 0 : history->given_up_ns + 1;
}

uint64_t history_bytes_stored(const struct history *history)
{
    return history->bytes_stored;
}

uint64_t history_bytes_capacity(const struct history *history)
{
    return (uint64_t)history->blocks_count * history->block_bytes;
}

static uint64_t oldest_number(const struct history *history)
{
    uint64_t newest = history->present->number;

    return newest < history->blocks_count ? 0 : newest - history->blocks_count + 1;
}

void history_walk_begin(const struct history *history, struct history_walk *walk, uint64_t from_ns, uint64_t to_ns)
{
    *walk = (struct history_walk){
        .from_ns = from_ns,
        .to_ns = to_ns,
        .block = oldest_number(history),
        .last_block = history->present->number,
        .last_entry = history->present->bytes_used,
    };
}

/* The block in which something is left to read; NULL at the end of the walk. */
static const struct block *walk_settle(const struct history *history, struct history_walk *walk)
{
    for (; walk->block <= walk->last_block; walk->block++, walk->entry = 0) {
        if (walk->block < oldest_number(history)) {
            walk->block = oldest_number(history);
            walk->entry = 0;
        }
        const struct block *block = &history->blocks[walk->block % history->blocks_count];
        uint32_t end = walk->block == walk->last_block ? walk->last_entry : block->bytes_used;
        if (walk->entry == 0)
            walk->coder = (struct message_coder){0};
        if (walk->entry < end && block->first_ns < walk->to_ns && block->end_ns >= walk->from_ns)
            return block;
    }
    return NULL;
}

size_t history_walk_next(const struct history *history, struct history_walk *walk, struct record_message *records,
                         size_t capacity, size_t budget, bool *done)
{
    size_t count = 0;

    *done = false;
    for (; count < capacity && budget > 0; budget--) {
        const struct block *block = walk_settle(history, walk);
        if (block == NULL) {
            *done = true;
            break;
        }
        const uint8_t *bytes = bytes_of(history, block);
        struct record_message *message = &records[count];
        struct cursor cursor;
        cursor_init(&cursor, bytes + walk->entry, block->bytes_used - walk->entry);
        if (!message_coder_take(&walk->coder, &cursor, message))
            abort();
        walk->entry = (uint32_t)(cursor.at - bytes);
        count += message->first_ns < walk->to_ns && walk->coder.end_ns >= walk->from_ns;
    }
    return count;
}
