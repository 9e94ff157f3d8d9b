/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of mlx5's commands, rules and contexts, by the table in mlx5_field.def. Knows no device and no library.
 * Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

#define MLX5_ALLOC_FLOW_COUNTER 0x939
#define MLX5_QUERY_FLOW_COUNTER 0x93b
#define MLX5_CREATE_FLOW_TABLE  0x930

#define MLX5_COMMAND_BYTES       32 /* enough for the three above but CREATE_FLOW_TABLE */
#define MLX5_TABLE_COMMAND_BYTES 64
#define MLX5_ANSWER_BYTES        16
#define MLX5_COUNTER_BYTES       16
#define MLX5_MATCH_BYTES         128
#define MLX5_CONTEXT_BYTES       232 /* as far as we read it; in full it is 256 */
#define MLX5_BULK_LOG            9   /* 512 counters, 256 queue pairs: an answer of 8 KiB */
#define MLX5_MATCH_MISCELLANEOUS 2   /* match_criteria_enable */

enum mlx5_field {
#define MLX5_FIELD(layout, name, bit, bits) MLX5_##layout##_##name,
#include "nic/mlx5/mlx5_field.def"
#undef MLX5_FIELD
    MLX5_FIELDS_COUNT,
};

/* The field's bytes must lie within the buffer: its sizes are those above. */
void mlx5_put(uint8_t *bytes, enum mlx5_field field, uint64_t value);
uint64_t mlx5_get(const uint8_t *bytes, enum mlx5_field field);

/* One counter (log_size 0), or a bulk of 2^log_size that are read together. Bulks below 128 have no encoding of their
 * own on older firmware: it takes multiples of 128 as one bit each. */
void mlx5_encode_alloc(uint8_t command[MLX5_COMMAND_BYTES], unsigned log_size);

struct mlx5_query {
    uint32_t counter_id;
    uint32_t counters;
    bool to_memory; /* at mkey and address; else in the answer */
    uint32_t mkey;
    uint64_t address;
};
void mlx5_encode_query(uint8_t command[MLX5_COMMAND_BYTES], const struct mlx5_query *query);

/* Whose packets rules see: this function's (RDMA domains), or another's, by its vport (RDMA transport domains). */
struct mlx5_domain {
    bool is_transport;
    uint16_t vport;
};

/* A table with no rule in it, for received packets: what comes to it goes on as if it had never come. */
void mlx5_encode_table(uint8_t command[MLX5_TABLE_COMMAND_BYTES], const struct mlx5_domain *domain);

enum mlx5_direction { MLX5_SENT, MLX5_RECEIVED, MLX5_DIRECTIONS };

/* What the rule of a queue pair matches, and the mask that goes with it. */
void mlx5_encode_match(uint8_t match[MLX5_MATCH_BYTES], enum mlx5_direction direction, uint32_t qpn);
void mlx5_encode_match_mask(uint8_t mask[MLX5_MATCH_BYTES], enum mlx5_direction direction);

struct mlx5_traffic {
    uint64_t packets;
    uint64_t octets;
};
void mlx5_decode_counter(const uint8_t counter[MLX5_COUNTER_BYTES], struct mlx5_traffic *traffic);

struct mlx5_context {
    uint32_t remote_qpn;
    uint32_t mtu_bytes; /* 0 = none of RoCE's */
    uint8_t remote_address[ADDRESS_BYTES];
    uint32_t next_send_psn;
    uint32_t last_acked_psn;
    uint32_t next_receive_psn;
    uint32_t sent_messages; /* 24 bits, as all of them */
    uint32_t received_messages;
};

/*
 * Finds a queue pair's context in what the kernel dumped of it. Where in a dump's segment it begins is not documented,
 * so it is taken only where it agrees with the remote QPN that the kernel itself tells. 0, -EBADMSG when the dump's
 * lengths contradict each other, -ENOENT when nothing in it agrees.
 */
int mlx5_find_context(const uint8_t *dump, size_t dump_bytes, uint32_t qpn, uint32_t remote_qpn,
                      struct mlx5_context *context);
