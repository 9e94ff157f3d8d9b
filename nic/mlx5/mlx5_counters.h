/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which counter of an mlx5 device counts which queue pair, and what they say. Counters come in bulks that one command
 * reads; a queue pair has a slot of two counters, what it sends and what it receives. One thread.
 */
#pragma once

#include <stdbool.h>

#include "nic/mlx5/mlx5_device.h"

struct mlx5_counters;

/* `places`: how many queue pairs at most; each is named by its place below that. -errno after logging. */
int mlx5_counters_open(struct mlx5_counters **counters, struct mlx5_device *device, unsigned places);
/* Removes every rule and counter; the device stays open. */
void mlx5_counters_close(struct mlx5_counters **counters);

/*
 * Begins to count a queue pair. -EAGAIN when a counter is free after the next reading, -ENOSPC when the device gives no
 * more counters or rules (logged once), -errno.
 */
int mlx5_counters_add(struct mlx5_counters *counters, unsigned place, uint32_t qpn);
void mlx5_counters_remove(struct mlx5_counters *counters, unsigned place);
bool mlx5_counters_has(const struct mlx5_counters *counters, unsigned place);

/* Reads all counters in use. 0 or the first -errno: what could not be read keeps its last reading. */
int mlx5_counters_read(struct mlx5_counters *counters);

/* What a queue pair did between its last two readings; false when nothing moved. header.source is the caller's. */
bool mlx5_counters_take(struct mlx5_counters *counters, unsigned place, struct record_reading *reading);

/* Queue pairs that are not counted for want of counters or rules. */
uint64_t mlx5_counters_refused(const struct mlx5_counters *counters);
