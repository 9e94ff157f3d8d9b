/* SPDX-License-Identifier: BSD-2-Clause */
/* For the kinds of device only: each embeds a struct mlx5_device as its first member. */
#pragma once

#include "nic/mlx5/mlx5_device.h"

struct mlx5_device_operations {
    void (*close)(struct mlx5_device *device);
    void (*abilities)(struct mlx5_device *device, struct mlx5_abilities *abilities);
    int (*make)(struct mlx5_device *device, const uint8_t *command, uint8_t *answer, struct mlx5_object **object);
    void (*remove)(struct mlx5_device *device, struct mlx5_object *object);
    int (*make_table)(struct mlx5_device *device, const uint8_t *command);
    int (*query)(struct mlx5_device *device, struct mlx5_object *object, const uint8_t *command, uint8_t *answer,
                 size_t answer_bytes);
    const uint8_t *(*memory)(struct mlx5_device *device, size_t bytes, uint32_t *mkey, uint64_t *address);
    int (*count)(struct mlx5_device *device, enum mlx5_direction direction, const uint8_t *match,
                 struct mlx5_object *object, uint32_t offset, struct mlx5_rule **rule);
    void (*uncount)(struct mlx5_device *device, struct mlx5_rule *rule);
};

struct mlx5_device {
    const struct mlx5_device_operations *operations;
};
