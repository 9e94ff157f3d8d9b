/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks of entries of variable length; an entry's time is told from the end of the one before. Invariants: block
 * numbers only rise, block b lies at b % blocks_count; an entry is never split; every message given up ended no later
 * than given_up_ns.
 */
#include "nic/window/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/window/number.h"
#include "nic/window/pages.h"

#define BLOCK_BYTES_MAX 32768u
#define BLOCK_BYTES_MIN 1024u
#define BLOCKS_WANTED   16u /* at least, where the memory allows */
#define BLOCKS_MIN      4u
#define ENTRY_BYTES_MAX 64u
#define HEAD_IMMEDIATE  8u /* the head's low bits are the role */
#define HEAD_PLACE      16u
#define HEAD_FLAGS      32u /* others than IMMEDIATE and PLACED */

struct block {
    uint64_t number;
    uint64_t base_ns; /* the end of the message before its first */
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
    uint64_t last_end_ns;
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
    *block = (struct block){.number = number, .base_ns = history->last_end_ns, .first_ns = UINT64_MAX};
    history->present = block;
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

static uint8_t *put_word(uint8_t *at, uint32_t word)
{
    memcpy(at, &word, sizeof word);
    return at + sizeof word;
}

void history_put(struct history *history, const struct record_message *message)
{
    uint16_t other_flags = message->flags & (uint16_t) ~(MESSAGE_IMMEDIATE | MESSAGE_PLACED);
    bool has_immediate = (message->flags & MESSAGE_IMMEDIATE) != 0, has_place = (message->flags & MESSAGE_PLACED) != 0;

    if (history->present->bytes_used + ENTRY_BYTES_MAX > history->block_bytes)
        begin_block(history, history->present->number + 1);
    struct block *block = history->present;
    uint8_t *start = bytes_of(history, block) + block->bytes_used, *at = start;
    *at++ = (uint8_t)((message->role & 7) | (has_immediate ? HEAD_IMMEDIATE : 0) | (has_place ? HEAD_PLACE : 0) |
                      (other_flags != 0 ? HEAD_FLAGS : 0));
    *at++ = message->opcode;
    at = number_put(at, message->header.source);
    at = number_put(at, number_fold((int64_t)(message->first_ns - history->last_end_ns)));
    at = number_put(at, message->duration_ns);
    at = number_put(at, message->payload_bytes);
    at = number_put(at, message->frames);
    if (has_immediate)
        at = put_word(at, message->immediate);
    if (has_place)
        at = put_word(at, message->place);
    if (other_flags != 0)
        at = number_put(at, other_flags);
    history->last_end_ns = message->first_ns + message->duration_ns;
    block->bytes_used += (uint32_t)(at - start);
    history->bytes_stored += (uint64_t)(at - start);
    block->entries_count++;
    block->first_ns = message->first_ns < block->first_ns ? message->first_ns : block->first_ns;
    block->end_ns = history->last_end_ns > block->end_ns ? history->last_end_ns : block->end_ns;
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
            walk->end_ns = block->base_ns;
        if (walk->entry < end && block->first_ns < walk->to_ns && block->end_ns >= walk->from_ns)
            return block;
    }
    return NULL;
}

static const uint8_t *take_word(const uint8_t *at, uint32_t *word)
{
    memcpy(word, at, sizeof *word);
    return at + sizeof *word;
}

/* Returns where the next one lies; *end_ns is the end of the one before, and then of this one. */
static const uint8_t *take_entry(const uint8_t *at, uint64_t *end_ns, struct record_message *message)
{
    uint64_t numbers[5], flags = 0;
    uint8_t head = *at++;

    *message = (struct record_message){.role = head & 7, .opcode = *at++};
    for (unsigned i = 0; i < 5; i++)
        at = number_take(at, &numbers[i]);
    if ((head & HEAD_IMMEDIATE) != 0)
        at = take_word(at, &message->immediate);
    if ((head & HEAD_PLACE) != 0)
        at = take_word(at, &message->place);
    if ((head & HEAD_FLAGS) != 0)
        at = number_take(at, &flags);
    message->header.source = (uint32_t)numbers[0];
    message->first_ns = *end_ns + (uint64_t)number_unfold(numbers[1]);
    message->duration_ns = (uint32_t)numbers[2];
    message->payload_bytes = (uint32_t)numbers[3];
    message->frames = (uint32_t)numbers[4];
    message->flags = (uint16_t)(flags | ((head & HEAD_IMMEDIATE) != 0 ? MESSAGE_IMMEDIATE : 0) |
                                ((head & HEAD_PLACE) != 0 ? MESSAGE_PLACED : 0));
    *end_ns = message->first_ns + message->duration_ns;
    return at;
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
        walk->entry = (uint32_t)(take_entry(bytes + walk->entry, &walk->end_ns, message) - bytes);
        count += message->first_ns < walk->to_ns && walk->end_ns >= walk->from_ns;
    }
    return count;
}
