/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encoding and decoding by bit offsets. Invariant: a field is written and read bit for bit where mlx5_field.def says,
 * whatever its width; no struct is laid over foreign bytes.
 */
#include "nic/mlx5/mlx5_layout.h"

#include <errno.h>
#include <string.h>

#include "wire/cursor.h"

#define BULK_UNIT_LOG      7  /* 128 counters */
#define BULK_LOG_MAX       14 /* the highest that has a bit: 2^7 units */
#define TABLE_LEVEL        64
#define TABLE_RDMA_RX      0x7
#define TABLE_TRANSPORT_RX 0xd
#define SEGMENT_HEAD_BYTES 16 /* header, reserved, two indices */
#define QUERY_ANSWER_BYTES 24 /* before the context in QUERY_QP's answer */

static const struct {
    uint16_t bit;
    uint8_t bits;
} fields[] = {
#define MLX5_FIELD(layout, name, bit, bits) {bit, bits},
#include "nic/mlx5/mlx5_field.def"
#undef MLX5_FIELD
};

void mlx5_put(uint8_t *bytes, enum mlx5_field field, uint64_t value)
{
    for (unsigned i = 0; i < fields[field].bits; i++) {
        unsigned bit = fields[field].bit + fields[field].bits - 1u - i;
        uint8_t mask = (uint8_t)(0x80u >> (bit % 8));
        bytes[bit / 8] = (uint8_t)((value >> i & 1) != 0 ? bytes[bit / 8] | mask : bytes[bit / 8] & ~mask);
    }
}

uint64_t mlx5_get(const uint8_t *bytes, enum mlx5_field field)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < fields[field].bits; i++) {
        unsigned bit = fields[field].bit + i;
        value = value << 1 | (bytes[bit / 8] >> (7 - bit % 8) & 1u);
    }
    return value;
}

void mlx5_encode_alloc(uint8_t command[MLX5_COMMAND_BYTES], unsigned log_size)
{
    memset(command, 0, MLX5_COMMAND_BYTES);
    mlx5_put(command, MLX5_COMMAND_OPCODE, MLX5_ALLOC_FLOW_COUNTER);
    if (log_size >= BULK_UNIT_LOG && log_size <= BULK_LOG_MAX)
        mlx5_put(command, MLX5_ALLOC_FLOW_COUNTER_BULK, 1u << (log_size - BULK_UNIT_LOG));
    else
        mlx5_put(command, MLX5_ALLOC_FLOW_COUNTER_BULK_LOG_SIZE, log_size);
}

void mlx5_encode_query(uint8_t command[MLX5_COMMAND_BYTES], const struct mlx5_query *query)
{
    memset(command, 0, MLX5_COMMAND_BYTES);
    mlx5_put(command, MLX5_COMMAND_OPCODE, MLX5_QUERY_FLOW_COUNTER);
    mlx5_put(command, MLX5_QUERY_FLOW_COUNTER_COUNTER_ID, query->counter_id);
    mlx5_put(command, MLX5_QUERY_FLOW_COUNTER_COUNTERS, query->counters);
    if (!query->to_memory)
        return;
    mlx5_put(command, MLX5_QUERY_FLOW_COUNTER_DUMP_TO_MEMORY, 1);
    mlx5_put(command, MLX5_QUERY_FLOW_COUNTER_MKEY, query->mkey);
    mlx5_put(command, MLX5_QUERY_FLOW_COUNTER_ADDRESS, query->address);
}

void mlx5_encode_table(uint8_t command[MLX5_TABLE_COMMAND_BYTES], const struct mlx5_domain *domain)
{
    memset(command, 0, MLX5_TABLE_COMMAND_BYTES);
    mlx5_put(command, MLX5_COMMAND_OPCODE, MLX5_CREATE_FLOW_TABLE);
    mlx5_put(command, MLX5_CREATE_FLOW_TABLE_TABLE_TYPE, domain->is_transport ? TABLE_TRANSPORT_RX : TABLE_RDMA_RX);
    mlx5_put(command, MLX5_CREATE_FLOW_TABLE_OTHER_VPORT, domain->is_transport);
    mlx5_put(command, MLX5_CREATE_FLOW_TABLE_VPORT_NUMBER, domain->is_transport ? domain->vport : 0);
    mlx5_put(command, MLX5_CREATE_FLOW_TABLE_LEVEL, TABLE_LEVEL);
}

void mlx5_encode_match(uint8_t match[MLX5_MATCH_BYTES], enum mlx5_direction direction, uint32_t qpn)
{
    memset(match, 0, MLX5_MATCH_BYTES);
    mlx5_put(match, direction == MLX5_SENT ? MLX5_MATCH_SOURCE_SQN : MLX5_MATCH_BTH_DESTINATION_QP, qpn);
}

void mlx5_encode_match_mask(uint8_t mask[MLX5_MATCH_BYTES], enum mlx5_direction direction)
{
    mlx5_encode_match(mask, direction, 0xffffff);
}

void mlx5_decode_counter(const uint8_t counter[MLX5_COUNTER_BYTES], struct mlx5_traffic *traffic)
{
    traffic->packets = mlx5_get(counter, MLX5_TRAFFIC_COUNTER_PACKETS);
    traffic->octets = mlx5_get(counter, MLX5_TRAFFIC_COUNTER_OCTETS);
}

static void put_be64(uint8_t *bytes, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        bytes[i] = (uint8_t)value;
}

static void decode_context(const uint8_t *bytes, struct mlx5_context *context)
{
    unsigned mtu = (unsigned)mlx5_get(bytes, MLX5_CONTEXT_MTU);

    context->remote_qpn = (uint32_t)mlx5_get(bytes, MLX5_CONTEXT_REMOTE_QPN);
    context->mtu_bytes = mtu >= 1 && mtu <= 5 ? 128u << mtu : 0;
    put_be64(context->remote_address, mlx5_get(bytes, MLX5_CONTEXT_REMOTE_GID_HIGH));
    put_be64(context->remote_address + 8, mlx5_get(bytes, MLX5_CONTEXT_REMOTE_GID_LOW));
    context->next_send_psn = (uint32_t)mlx5_get(bytes, MLX5_CONTEXT_NEXT_SEND_PSN);
    context->last_acked_psn = (uint32_t)mlx5_get(bytes, MLX5_CONTEXT_LAST_ACKED_PSN);
    context->next_receive_psn = (uint32_t)mlx5_get(bytes, MLX5_CONTEXT_NEXT_RECEIVE_PSN);
    context->sent_messages = (uint32_t)mlx5_get(bytes, MLX5_CONTEXT_SENT_MESSAGES);
    context->received_messages = (uint32_t)mlx5_get(bytes, MLX5_CONTEXT_RECEIVED_MESSAGES);
}

/* A segment's payload is the context, or QUERY_QP's answer with the context in it. */
static bool find_in_segment(const uint8_t *payload, size_t bytes, uint32_t remote_qpn, struct mlx5_context *context)
{
    static const size_t starts[] = {QUERY_ANSWER_BYTES, 0};

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (bytes < starts[i] + MLX5_CONTEXT_BYTES ||
            mlx5_get(payload + starts[i], MLX5_CONTEXT_REMOTE_QPN) != remote_qpn)
            continue;
        decode_context(payload + starts[i], context);
        return true;
    }
    return false;
}

int mlx5_find_context(const uint8_t *dump, size_t dump_bytes, uint32_t qpn, uint32_t remote_qpn,
                      struct mlx5_context *context)
{
    struct cursor cursor;

    if (remote_qpn == 0)
        return -ENOENT;
    cursor_init(&cursor, dump, dump_bytes);
    while (cursor_left(&cursor) >= 4) {
        size_t bytes = 4 * (size_t)mlx5_get(cursor.at, MLX5_SEGMENT_WORDS);
        const uint8_t *segment = bytes < 4 ? NULL : cursor_take(&cursor, bytes);
        if (segment == NULL)
            return -EBADMSG;
        if (bytes > SEGMENT_HEAD_BYTES && mlx5_get(segment, MLX5_SEGMENT_INDEX) == qpn &&
            find_in_segment(segment + SEGMENT_HEAD_BYTES, bytes - SEGMENT_HEAD_BYTES, remote_qpn, context))
            return 0;
    }
    return -ENOENT;
}
