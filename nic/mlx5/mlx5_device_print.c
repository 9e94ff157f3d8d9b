/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that only says what it is given, so that people can see what would be asked of theirs; every command
 * succeeds and counts nothing. Invariant: prints each call's bytes as they would go out.
 */
#include "nic/mlx5/mlx5_device_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_COUNTER 0x10000u
#define EXAMPLE_VPORT 1

struct mlx5_object {
    unsigned number;
};

struct mlx5_rule {
    unsigned number;
};

struct print_device {
    struct mlx5_device device;
    FILE *to;
    char name[64];
    unsigned port;
    unsigned objects;
    unsigned rules;
    uint8_t *memory;
};

static void print_bytes(FILE *to, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%s%02x", i % 4 == 0 ? " " : "", bytes[i]);
    fputc('\n', to);
}

static void close_print(struct mlx5_device *device)
{
    struct print_device *self = (struct print_device *)device;

    free(self->memory);
    free(self);
}

static void list_abilities(struct mlx5_device *device, struct mlx5_abilities *abilities)
{
    const struct print_device *self = (struct print_device *)device;

    *abilities = (struct mlx5_abilities){.domain = {.is_transport = self->port != 1, .vport = EXAMPLE_VPORT},
                                         .counts = {true, true},
                                         .has_offsets = true,
                                         .has_memory = true,
                                         .bulk_log_max = MLX5_BULK_LOG};
}

static int make_print(struct mlx5_device *device, const uint8_t *command, uint8_t *answer, struct mlx5_object **object)
{
    struct print_device *self = (struct print_device *)device;
    struct mlx5_object *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->number = self->objects++;
    memset(answer, 0, MLX5_ANSWER_BYTES);
    mlx5_put(answer, MLX5_ALLOC_FLOW_COUNTER_ANSWER_COUNTER_ID, FIRST_COUNTER + (made->number << MLX5_BULK_LOG));
    fprintf(self->to, "%s: ALLOC_FLOW_COUNTER (a bulk of %llu):", self->name,
            128ull * mlx5_get(command, MLX5_ALLOC_FLOW_COUNTER_BULK));
    print_bytes(self->to, command, MLX5_COMMAND_BYTES);
    *object = made;
    return 0;
}

static void remove_print(struct mlx5_device *device, struct mlx5_object *object)
{
    struct print_device *self = (struct print_device *)device;

    fprintf(self->to, "%s: remove the bulk\n", self->name);
    free(object);
}

static int table_print(struct mlx5_device *device, const uint8_t *command)
{
    struct print_device *self = (struct print_device *)device;

    fprintf(self->to, "%s: CREATE_FLOW_TABLE (where received packets go on", self->name);
    if (mlx5_get(command, MLX5_CREATE_FLOW_TABLE_OTHER_VPORT) != 0)
        fprintf(self->to, "; of vport %llu, as an example",
                (unsigned long long)mlx5_get(command, MLX5_CREATE_FLOW_TABLE_VPORT_NUMBER));
    fprintf(self->to, "):");
    print_bytes(self->to, command, MLX5_TABLE_COMMAND_BYTES);
    return 0;
}

static int query_print(struct mlx5_device *device, struct mlx5_object *object, const uint8_t *command, uint8_t *answer,
                       size_t answer_bytes)
{
    struct print_device *self = (struct print_device *)device;

    (void)object;
    memset(answer, 0, answer_bytes);
    fprintf(self->to, "%s: QUERY_FLOW_COUNTER (%llu counters from %llu on, %s):", self->name,
            (unsigned long long)mlx5_get(command, MLX5_QUERY_FLOW_COUNTER_COUNTERS),
            (unsigned long long)mlx5_get(command, MLX5_QUERY_FLOW_COUNTER_COUNTER_ID),
            mlx5_get(command, MLX5_QUERY_FLOW_COUNTER_DUMP_TO_MEMORY) != 0 ? "dumped to memory" : "in the answer");
    print_bytes(self->to, command, MLX5_COMMAND_BYTES);
    return 0;
}

static const uint8_t *memory_print(struct mlx5_device *device, size_t bytes, uint32_t *mkey, uint64_t *address)
{
    struct print_device *self = (struct print_device *)device;

    *mkey = 0;
    *address = 0;
    if (self->memory == NULL)
        self->memory = calloc(1, bytes);
    return self->memory;
}

static int count_print(struct mlx5_device *device, enum mlx5_direction direction, const uint8_t *match,
                       struct mlx5_object *object, uint32_t offset, struct mlx5_rule **rule)
{
    struct print_device *self = (struct print_device *)device;
    uint8_t mask[MLX5_MATCH_BYTES];
    bool is_sent = direction == MLX5_SENT;
    struct mlx5_rule *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->number = self->rules++;
    mlx5_encode_match_mask(mask, direction);
    fprintf(self->to, "%s: rule in RDMA_%s%s: %s 0x%06llx, count in counter %u of bulk %u%s\n", self->name,
            self->port == 1 ? "" : "TRANSPORT_", is_sent ? "TX" : "RX", is_sent ? "source_sqn" : "bth_dst_qp",
            (unsigned long long)mlx5_get(match, is_sent ? MLX5_MATCH_SOURCE_SQN : MLX5_MATCH_BTH_DESTINATION_QP),
            offset, object->number, is_sent ? "" : ", go on in the table");
    fprintf(self->to, "%s:   match", self->name);
    print_bytes(self->to, match, MLX5_MATCH_BYTES);
    fprintf(self->to, "%s:   mask ", self->name);
    print_bytes(self->to, mask, MLX5_MATCH_BYTES);
    *rule = made;
    return 0;
}

static void uncount_print(struct mlx5_device *device, struct mlx5_rule *rule)
{
    struct print_device *self = (struct print_device *)device;

    fprintf(self->to, "%s: remove rule %u\n", self->name, rule->number);
    free(rule);
}

static const struct mlx5_device_operations operations = {
    .close = close_print,
    .abilities = list_abilities,
    .make = make_print,
    .remove = remove_print,
    .make_table = table_print,
    .query = query_print,
    .memory = memory_print,
    .count = count_print,
    .uncount = uncount_print,
};

int mlx5_device_open_print(struct mlx5_device **device, const char *name, unsigned port, FILE *to)
{
    struct print_device *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->device.operations = &operations;
    made->to = to;
    made->port = port;
    snprintf(made->name, sizeof made->name, "%s", name);
    *device = &made->device;
    return 0;
}
