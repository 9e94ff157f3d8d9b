/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation is the number of its slot (0: a new one, with communicator, rank and number of ranks), a word that says
 * which fields differ from what is expected, and these fields' differences. Invariant: coders that were given, and gave
 * back, the same operations are equal.
 */
#include "wire/operation_run.h"

#include <errno.h>

#include "wire/number.h"

#define WORD       8u
#define HAS_ZEROS  1u
#define HAS_DEVICE 2u
#define FIRST_BIT  2 /* of the table's fields */

static uint64_t known_of(uint64_t ns, uint64_t otherwise_ns)
{
    return ns != 0 ? ns : otherwise_ns;
}

void operation_coder_init(struct operation_coder *coder)
{
    coder->used = 0;
    coder->next = 0;
}

static int slot_of(const struct operation_coder *coder, const struct record_rank_operation *record)
{
    for (unsigned i = 0; i < coder->used; i++) {
        const struct record_rank_operation *last = &coder->last[i];
        if (last->rank == record->rank && last->ranks_count == record->ranks_count &&
            memcmp(last->communicator, record->communicator, IDENTITY_BYTES) == 0)
            return (int)i;
    }
    return -1;
}

static unsigned open_slot(struct operation_coder *coder, const uint8_t *communicator, int32_t rank, int32_t ranks_count)
{
    unsigned slot = coder->next;

    coder->next = (coder->next + 1) % OPERATION_SLOTS;
    coder->used += coder->used < OPERATION_SLOTS;
    coder->last[slot] = (struct record_rank_operation){.rank = rank, .ranks_count = ranks_count};
    coder->last[slot].sequence--;
    memcpy(coder->last[slot].communicator, communicator, IDENTITY_BYTES);
    coder->zeros[slot] = 0;
    return slot;
}

static uint8_t zeros_of(const struct record_rank_operation *record)
{
    uint8_t zeros = 0;
    unsigned bit = 0;

#define FIELD(type, name, expected)
#define TIME(name, expected) zeros |= (uint8_t)((record->name == 0) << bit++);
#include "wire/operation_field.def"
#undef TIME
#undef FIELD
    return zeros;
}

static uint8_t *put_word(uint8_t *at, uint32_t word)
{
    memcpy(at, &word, sizeof word);
    return at + sizeof word;
}

/* The fields that differ; returns which they are. */
static uint32_t put_fields(uint8_t **at, const struct record_rank_operation *record,
                           const struct record_rank_operation *last)
{
    uint32_t which = 0;
    unsigned bit = FIRST_BIT;
    uint64_t differs;

#define PUT(is_told, name, expected)                                                                                   \
    differs = (is_told) ? (uint64_t)(int64_t)record->name - (uint64_t)(int64_t)(expected) : 0;                         \
    if (differs != 0)                                                                                                  \
        *at = number_put(*at, number_fold((int64_t)differs));                                                          \
    which |= (uint32_t)(differs != 0) << bit++;
#define FIELD(type, name, expected) PUT(true, name, expected)
#define TIME(name, expected)        PUT(record->name != 0, name, expected)
#include "wire/operation_field.def"
#undef TIME
#undef FIELD
#undef PUT
    return which;
}

uint8_t *operation_coder_put(struct operation_coder *coder, uint8_t *at, const struct record_rank_operation *record)
{
    int known = slot_of(coder, record);
    uint8_t zeros = zeros_of(record);

    at = number_put(at, (uint64_t)(known + 1));
    if (known < 0) {
        memcpy(at, record->communicator, IDENTITY_BYTES);
        at = number_put(at + IDENTITY_BYTES, number_fold(record->rank));
        at = number_put(at, number_fold(record->ranks_count));
        known = (int)open_slot(coder, record->communicator, record->rank, record->ranks_count);
    }
    struct record_rank_operation *last = &coder->last[known];
    uint8_t *which_at = at;
    uint32_t which = 0;
    at += sizeof which;
    if (zeros != coder->zeros[known]) {
        which |= HAS_ZEROS;
        *at++ = zeros;
    }
    if (memcmp(record->device, last->device, DEVICE_NAME_BYTES) != 0) {
        which |= HAS_DEVICE;
        memcpy(at, record->device, DEVICE_NAME_BYTES);
        at += DEVICE_NAME_BYTES;
    }
    which |= put_fields(&at, record, last);
    put_word(which_at, which);
    *last = *record;
    coder->zeros[known] = zeros;
    return at;
}

static int take_slot(struct operation_coder *coder, struct cursor *bytes)
{
    uint64_t known = cursor_number(bytes);
    uint8_t communicator[IDENTITY_BYTES];

    if (known > coder->used) {
        bytes->failed = true;
        return 0;
    }
    if (known != 0)
        return (int)known - 1;
    cursor_copy(bytes, communicator, sizeof communicator);
    int64_t rank = number_unfold(cursor_number(bytes));
    int64_t ranks_count = number_unfold(cursor_number(bytes));
    bytes->failed |= rank != (int32_t)rank || ranks_count != (int32_t)ranks_count;
    return bytes->failed ? 0 : (int)open_slot(coder, communicator, (int32_t)rank, (int32_t)ranks_count);
}

static void take_fields(struct cursor *bytes, uint32_t which, uint8_t zeros, struct record_rank_operation *record,
                        const struct record_rank_operation *last)
{
    unsigned bit = FIRST_BIT;
    unsigned time = 0;
    uint64_t value;

#define TAKE(type, is_told, name, expected)                                                                            \
    value = (is_told) ? (uint64_t)(int64_t)(expected) : 0;                                                             \
    if ((which >> bit & 1) != 0)                                                                                       \
        value += (uint64_t)number_unfold(cursor_number(bytes));                                                        \
    record->name = (type)value;                                                                                        \
    bytes->failed |= (uint64_t)(int64_t)record->name != value;                                                         \
    bit++;
#define FIELD(type, name, expected) TAKE(type, true, name, expected)
#define TIME(name, expected)                                                                                           \
    TAKE(uint64_t, (zeros >> time & 1) == 0, name, expected)                                                           \
    time++;
#include "wire/operation_field.def"
#undef TIME
#undef FIELD
#undef TAKE
    bytes->failed |= which >> bit != 0;
}

bool operation_coder_take(struct operation_coder *coder, struct cursor *bytes, struct record_rank_operation *record)
{
    int slot = take_slot(coder, bytes);
    uint32_t which = cursor_le32(bytes);

    if (bytes->failed)
        return false;
    struct record_rank_operation *last = &coder->last[slot];
    *record = (struct record_rank_operation){
        .header = {.kind = RECORD_RANK_OPERATION, .length_bytes = sizeof *record},
        .rank = last->rank,
        .ranks_count = last->ranks_count,
    };
    memcpy(record->communicator, last->communicator, IDENTITY_BYTES);
    memcpy(record->device, last->device, DEVICE_NAME_BYTES);
    uint8_t zeros = (which & HAS_ZEROS) != 0 ? cursor_u8(bytes) : coder->zeros[slot];
    if ((which & HAS_DEVICE) != 0)
        cursor_copy(bytes, record->device, DEVICE_NAME_BYTES);
    take_fields(bytes, which, zeros, record, last);
    if (bytes->failed)
        return false;
    *last = *record;
    coder->zeros[slot] = zeros_of(record);
    return true;
}

void operation_run_begin(struct operation_run *run, const struct record_rank_operation_run *record,
                         const uint8_t *bytes, size_t length_bytes)
{
    cursor_init(&run->bytes, bytes, length_bytes);
    run->left = record->header.source;
}

int operation_run_next(struct operation_run *run, struct record_rank_operation *record)
{
    if (run->left == 0)
        return 0;
    if (!operation_coder_take(&run->coder, &run->bytes, record))
        return -EBADMSG;
    run->left--;
    return run->left != 0 || cursor_left(&run->bytes) < WORD ? 1 : -EBADMSG;
}

size_t operation_run_end(uint8_t *bytes, size_t length_bytes, uint32_t operations_count)
{
    size_t whole = (length_bytes + WORD - 1) / WORD * WORD;
    const struct record_rank_operation_run record = {
        .header = {.kind = RECORD_RANK_OPERATION_RUN, .length_bytes = (uint16_t)whole, .source = operations_count}};

    memset(bytes + length_bytes, 0, whole - length_bytes);
    memcpy(bytes, &record, sizeof record);
    return whole;
}
