/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few foreign calls that counting in an mlx5 device takes, and nothing that decides anything: commands and rules
 * come as bytes (mlx5_layout.h), what comes back goes back as bytes. Kinds: a device through rdma-core, and one that
 * only prints. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "nic/mlx5/mlx5_layout.h"

struct mlx5_device;
struct mlx5_object; /* a counter, or a bulk of them */
struct mlx5_rule;

/* What the device and the libraries can do; a line was logged for each that is missing. */
struct mlx5_abilities {
    struct mlx5_domain domain;    /* in which rules are made */
    bool counts[MLX5_DIRECTIONS]; /* rules on what is sent, on what is received */
    bool has_offsets;             /* a rule can name a counter within a bulk */
    bool has_memory;              /* counters can be dumped to memory of ours */
    unsigned bulk_log_max;        /* the largest bulk worth trying, as a power of two */
};

/*
 * -errno after logging. `name` is the RDMA device; its ports beyond the first are those of other functions where it
 * owns the e-switch: their packets are seen in the RDMA transport domains, and nowhere else (in this function's own
 * domains the same number is another queue pair).
 */
int mlx5_device_open(struct mlx5_device **device, const char *name, unsigned port);
int mlx5_device_open_print(struct mlx5_device **device, const char *name, unsigned port, FILE *to);
void mlx5_device_close(struct mlx5_device **device);

void mlx5_device_abilities(struct mlx5_device *device, struct mlx5_abilities *abilities);

/* Makes what the command says. -errno, not logged. */
int mlx5_device_make(struct mlx5_device *device, const uint8_t command[MLX5_COMMAND_BYTES],
                     uint8_t answer[MLX5_ANSWER_BYTES], struct mlx5_object **object);
void mlx5_device_remove(struct mlx5_device *device, struct mlx5_object *object);

/* Where received packets go on after they were counted; made once. -errno, not logged. */
int mlx5_device_make_table(struct mlx5_device *device, const uint8_t command[MLX5_TABLE_COMMAND_BYTES]);

/* A command on an object; the answer as long as the device writes it. */
int mlx5_device_query(struct mlx5_device *device, struct mlx5_object *object, const uint8_t command[MLX5_COMMAND_BYTES],
                      uint8_t *answer, size_t answer_bytes);

/* Memory that the device may write to, kept until the device is closed; NULL when there can be none. */
const uint8_t *mlx5_device_memory(struct mlx5_device *device, size_t bytes, uint32_t *mkey, uint64_t *address);

/* Counts what matches with the object's counter number `offset`; packets go on as before. -errno, not logged. */
int mlx5_device_count(struct mlx5_device *device, enum mlx5_direction direction, const uint8_t match[MLX5_MATCH_BYTES],
                      struct mlx5_object *object, uint32_t offset, struct mlx5_rule **rule);
void mlx5_device_uncount(struct mlx5_device *device, struct mlx5_rule *rule);
