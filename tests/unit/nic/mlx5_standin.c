/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nic/mlx5_standin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nic/mlx5/mlx5_device_private.h"

#define COUNTERS_MAX 8192
#define RULES_MAX    2048
#define MEMORY_BYTES (1u << 16)
#define FIRST_ID     0x1000u
#define MKEY         0x1234u
#define STARTS_AT    77u /* counters need not begin at zero */

struct mlx5_object {
    uint32_t first; /* index of its first counter */
    uint32_t count;
};

struct mlx5_rule {
    bool is_used;
    enum mlx5_direction direction;
    uint32_t qpn;
    uint32_t counter;
};

struct standin {
    struct mlx5_device device;
    struct standin_limits limits;
    uint64_t packets[COUNTERS_MAX];
    uint64_t octets[COUNTERS_MAX];
    uint32_t next; /* counters are numbered upwards, and numbers not used again */
    struct mlx5_rule rules[RULES_MAX];
    struct standin_tally tally;
    uint8_t *memory;
    bool has_table;
};

/* Bit 0 is the highest of byte 0. */
static uint64_t bits(const uint8_t *bytes, unsigned first, unsigned count)
{
    uint64_t value = 0;

    while (count-- > 0) {
        value = value * 2 + ((bytes[first >> 3] & (0x80 >> (first & 7))) != 0);
        first++;
    }
    return value;
}

static void put_be(uint8_t *bytes, uint64_t value, unsigned count)
{
    while (count-- > 0) {
        bytes[count] = (uint8_t)value;
        value >>= 8;
    }
}

static int wrong(struct standin *self, const char *what)
{
    if (self->tally.wrong == NULL)
        self->tally.wrong = what;
    return -EINVAL;
}

static void close_standin(struct mlx5_device *device)
{
    free(((struct standin *)device)->memory);
    free(device);
}

static void list_abilities(struct mlx5_device *device, struct mlx5_abilities *abilities)
{
    const struct standin_limits *limits = &((struct standin *)device)->limits;

    *abilities = (struct mlx5_abilities){.domain = {.is_transport = limits->is_transport, .vport = limits->vport},
                                         .counts = {true, limits->has_received},
                                         .has_offsets = limits->has_offsets,
                                         .has_memory = true,
                                         .bulk_log_max = 9};
}

/* alloc_flow_counter_in: opcode 0x939 in bits 0 to 15; bulk_log_size 5 bits at 0x73; bulk, 8 bits at 0x78, one a 128.
 */
static int make_counters(struct mlx5_device *device, const uint8_t *command, uint8_t *answer,
                         struct mlx5_object **object)
{
    struct standin *self = (struct standin *)device;
    uint64_t log_size = bits(command, 0x73, 5), bulk = bits(command, 0x78, 8);
    uint32_t count = bulk != 0 ? 128u * (uint32_t)bulk : 1u << log_size;

    if (bits(command, 0, 16) != 0x939 || bits(command, 0x30, 16) != 0)
        return wrong(self, "not ALLOC_FLOW_COUNTER");
    if ((bulk != 0 && log_size != 0) || (bulk & (bulk - 1)) != 0)
        return wrong(self, "a bulk of two sizes");
    if (count > 1u << self->limits.bulk_log_most)
        return -EINVAL;
    if (self->tally.counters + count > self->limits.counters || self->next + count > COUNTERS_MAX)
        return -ENOSPC;
    struct mlx5_object *made = calloc(1, sizeof *made);
    *made = (struct mlx5_object){.first = self->next, .count = count};
    for (uint32_t i = 0; i < count; i++)
        self->packets[self->next + i] = self->octets[self->next + i] = STARTS_AT;
    self->next += count;
    self->tally.counters += count;
    memset(answer, 0, 16);
    put_be(answer + 8, FIRST_ID + made->first, 4); /* flow_counter_id: 32 bits at 0x40 */
    *object = made;
    return 0;
}

static void remove_counters(struct mlx5_device *device, struct mlx5_object *object)
{
    struct standin *self = (struct standin *)device;

    for (unsigned i = 0; i < RULES_MAX; i++)
        if (self->rules[i].is_used && self->rules[i].counter >= object->first &&
            self->rules[i].counter < object->first + object->count)
            wrong(self, "a counter was removed before its rules");
    self->tally.counters -= object->count;
    free(object);
}

/*
 * create_flow_table_in: opcode 0x930; other_vport 1 bit at 0x40, vport_number 16 bits at 0x50; table_type 8 bits at
 * 0x80 (RDMA_RX is 7, RDMA_TRANSPORT_RX 13).
 */
static int make_table(struct mlx5_device *device, const uint8_t *command)
{
    struct standin *self = (struct standin *)device;

    if (bits(command, 0, 16) != 0x930 || bits(command, 0x80, 8) != (self->limits.is_transport ? 13 : 7))
        return wrong(self, "not a table of the domain's received packets");
    if (bits(command, 0x40, 1) != self->limits.is_transport ||
        bits(command, 0x50, 16) != (self->limits.is_transport ? self->limits.vport : 0))
        return wrong(self, "a table of another function than the rules");
    if (!self->limits.has_table)
        return -EOPNOTSUPP;
    self->has_table = true;
    return 0;
}

/*
 * query_flow_counter_in: opcode 0x93b; mkey 0x60, address 0x80 (64), clear 0xc0, dump_to_memory 0xc1, num_of_counters
 * 30 bits at 0xc2, flow_counter_id 0xe0. Each counter: packets, octets, 64 bits each; in the answer they begin at 0x80.
 */
static int query_counters(struct mlx5_device *device, struct mlx5_object *object, const uint8_t *command,
                          uint8_t *answer, size_t answer_bytes)
{
    struct standin *self = (struct standin *)device;
    uint32_t count = (uint32_t)bits(command, 0xc2, 30), id = (uint32_t)bits(command, 0xe0, 32);
    bool to_memory = bits(command, 0xc1, 1) != 0;
    uint8_t *into = to_memory ? self->memory : answer + 16;
    const struct timespec pause = {.tv_nsec = (long)self->limits.query_ms * 1000000};

    if (bits(command, 0, 16) != 0x93b || bits(command, 0xc0, 1) != 0)
        return wrong(self, "not QUERY_FLOW_COUNTER, or one that clears");
    if (id != FIRST_ID + object->first || count > object->count || count == 0)
        return wrong(self, "a query beyond its object");
    if (count > 1 && (count % 4 != 0 || id % 4 != 0))
        self->tally.unaligned++;
    self->tally.queries++;
    if (to_memory && !self->limits.has_memory)
        return -EOPNOTSUPP;
    if (to_memory && (bits(command, 0x60, 32) != MKEY || bits(command, 0x80, 64) != (uintptr_t)self->memory))
        return wrong(self, "a dump to memory that is not registered");
    if (!to_memory && answer_bytes < 16 + (size_t)count * 16)
        return wrong(self, "an answer that is too short");
    self->tally.dumps += to_memory;
    nanosleep(&pause, NULL);
    for (uint32_t i = 0; i < count; i++) {
        put_be(into + i * 16, self->packets[object->first + i], 8);
        put_be(into + i * 16 + 8, self->octets[object->first + i], 8);
    }
    return 0;
}

static const uint8_t *register_memory(struct mlx5_device *device, size_t bytes, uint32_t *mkey, uint64_t *address)
{
    struct standin *self = (struct standin *)device;

    if (self->memory != NULL || bytes > MEMORY_BYTES)
        return NULL;
    self->memory = calloc(1, MEMORY_BYTES);
    *mkey = MKEY;
    *address = (uintptr_t)self->memory;
    return self->memory;
}

/* fte_match_param: misc_parameters after 0x200 bits; in them source_sqn 24 bits at 0x8, bth_dst_qp 24 bits at 0x148. */
static int add_rule(struct mlx5_device *device, enum mlx5_direction direction, const uint8_t *match,
                    struct mlx5_object *object, uint32_t offset, struct mlx5_rule **rule)
{
    struct standin *self = (struct standin *)device;
    uint32_t sqn = (uint32_t)bits(match, 0x208, 24), destination = (uint32_t)bits(match, 0x348, 24);

    if ((sqn != 0) == (destination != 0) || (sqn != 0) != (direction == MLX5_SENT))
        return wrong(self, "a rule that matches the wrong field");
    if (offset >= object->count || (offset != 0 && !self->limits.has_offsets))
        return wrong(self, "a counter that is not in its object");
    if (direction == MLX5_RECEIVED && !self->has_table)
        return wrong(self, "a received packet that goes nowhere");
    if (self->tally.rules >= self->limits.rules)
        return -ENOSPC;
    for (unsigned i = 0; i < RULES_MAX; i++) {
        if (self->rules[i].is_used)
            continue;
        self->rules[i] = (struct mlx5_rule){true, direction, sqn + destination, object->first + offset};
        *rule = &self->rules[i];
        self->tally.rules++;
        return 0;
    }
    return -ENOSPC;
}

static void remove_rule(struct mlx5_device *device, struct mlx5_rule *rule)
{
    rule->is_used = false;
    ((struct standin *)device)->tally.rules--;
}

static const struct mlx5_device_operations operations = {
    .close = close_standin,
    .abilities = list_abilities,
    .make = make_counters,
    .remove = remove_counters,
    .make_table = make_table,
    .query = query_counters,
    .memory = register_memory,
    .count = add_rule,
    .uncount = remove_rule,
};

struct mlx5_device *standin_open(const struct standin_limits *limits)
{
    struct standin *made = calloc(1, sizeof *made);

    made->device.operations = &operations;
    made->limits = *limits;
    return &made->device;
}

void standin_pass(struct mlx5_device *device, enum mlx5_direction direction, uint32_t qpn, uint64_t packets,
                  uint64_t octets)
{
    struct standin *self = (struct standin *)device;

    for (unsigned i = 0; i < RULES_MAX; i++) {
        if (!self->rules[i].is_used || self->rules[i].direction != direction || self->rules[i].qpn != qpn)
            continue;
        self->packets[self->rules[i].counter] += packets;
        self->octets[self->rules[i].counter] += octets;
    }
}

void standin_reset(struct mlx5_device *device)
{
    struct standin *self = (struct standin *)device;

    memset(self->packets, 0, sizeof self->packets);
    memset(self->octets, 0, sizeof self->octets);
}

void standin_tally(const struct mlx5_device *device, struct standin_tally *tally)
{
    *tally = ((const struct standin *)device)->tally;
}
