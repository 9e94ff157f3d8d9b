/* SPDX-License-Identifier: BSD-2-Clause */
/* The seam of mlx5 devices: hands each call to its kind. */
#include "nic/mlx5/mlx5_device_private.h"

void mlx5_device_close(struct mlx5_device **device)
{
    if (*device == NULL)
        return;
    (*device)->operations->close(*device);
    *device = NULL;
}

void mlx5_device_abilities(struct mlx5_device *device, struct mlx5_abilities *abilities)
{
    device->operations->abilities(device, abilities);
}

int mlx5_device_make(struct mlx5_device *device, const uint8_t command[MLX5_COMMAND_BYTES],
                     uint8_t answer[MLX5_ANSWER_BYTES], struct mlx5_object **object)
{
    return device->operations->make(device, command, answer, object);
}

void mlx5_device_remove(struct mlx5_device *device, struct mlx5_object *object)
{
    device->operations->remove(device, object);
}

int mlx5_device_make_table(struct mlx5_device *device, const uint8_t command[MLX5_TABLE_COMMAND_BYTES])
{
    return device->operations->make_table(device, command);
}

int mlx5_device_query(struct mlx5_device *device, struct mlx5_object *object, const uint8_t command[MLX5_COMMAND_BYTES],
                      uint8_t *answer, size_t answer_bytes)
{
    return device->operations->query(device, object, command, answer, answer_bytes);
}

const uint8_t *mlx5_device_memory(struct mlx5_device *device, size_t bytes, uint32_t *mkey, uint64_t *address)
{
    return device->operations->memory(device, bytes, mkey, address);
}

int mlx5_device_count(struct mlx5_device *device, enum mlx5_direction direction, const uint8_t match[MLX5_MATCH_BYTES],
                      struct mlx5_object *object, uint32_t offset, struct mlx5_rule **rule)
{
    return device->operations->count(device, direction, match, object, offset, rule);
}

void mlx5_device_uncount(struct mlx5_device *device, struct mlx5_rule *rule)
{
    device->operations->uncount(device, rule);
}
