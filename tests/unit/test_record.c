/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layouts, number by number, as doc/records.md states them: peers of other versions and readers of other people
 * rely on them. A change here is a change of the format.
 */
#include "wire/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"

struct kind {
    const char *name;
    uint16_t number;
    size_t bytes;
};

static const struct kind kinds[] = {
    {"hello", 1, 168},
    {"heartbeat", 2, 24},
    {"clock_pair", 3, 40},
    {"clock_sample", 4, 48},
    {"counter", 5, 64},
    {"loss", 6, 40},
    {"port", 16, 64},
    {"flow", 17, 88},
    {"message", 18, 40},
    {"window", 19, 40},
    {"flow_total", 20, 192},
    {"trigger", 21, 80},
    {"trigger_end", 22, 56},
    {"traffic_source", 23, 56},
    {"endpoint", 24, 88},
    {"reading", 25, 96},
    {"port_counter", 26, 40},
    {"coarse_window", 27, 48},
    {"pin", 28, 48},
    {"message_run", 29, 8},
    {"process", 32, 144},
    {"communicator", 33, 112},
    {"queue_pair", 34, 176},
    {"call", 35, 64},
    {"process_fact", 36, 184},
    {"marker", 37, 64},
    {"host_delay", 38, 88},
    {"work", 39, 40},
    {"follow", 41, 32},
    {"followed", 42, 40},
    {"failure", 40, 160},
    {"reference", 43, 16},
    {"rdma_port", 44, 112},
    {"rank_operation", 48, 224},
    {"rank_operation_run", 49, 8},
};

struct field {
    const char *name;
    size_t offset;
    size_t expected_offset;
    size_t bytes;
    size_t expected_bytes;
};

#define MEMBER(structure, member, at, size)                                                                            \
    {                                                                                                                  \
#structure "." #member, offsetof(struct structure, member), at, sizeof(((struct structure *)NULL)->member),    \
            size                                                                                                       \
    }
#define FIELD(kind, member, at, size) MEMBER(record_##kind, member, at, size)

static const struct field fields[] = {
    MEMBER(batch_header, magic, 0, 4),
    MEMBER(batch_header, version, 4, 2),
    MEMBER(batch_header, emitter_kind, 6, 2),
    MEMBER(batch_header, emitter_id, 8, 8),
    MEMBER(batch_header, boot_id, 16, 8),
    MEMBER(batch_header, sequence, 24, 8),
    MEMBER(batch_header, sent_ns, 32, 8),
    MEMBER(batch_header, records_count, 40, 4),
    MEMBER(batch_header, records_bytes, 44, 4),
    MEMBER(record_header, kind, 0, 2),
    MEMBER(record_header, length_bytes, 2, 2),
    MEMBER(record_header, source, 4, 4),
    FIELD(hello, started_ns, 8, 8),
    FIELD(hello, pid, 16, 4),
    FIELD(hello, window_ns, 20, 4),
    FIELD(hello, kernel_boot, 24, 16),
    FIELD(hello, host, 40, 64),
    FIELD(hello, version, 104, 32),
    FIELD(hello, instance, 136, 32),
    FIELD(clock_sample, reference_boot, 8, 8),
    FIELD(clock_sample, sent_ns, 16, 8),
    FIELD(clock_sample, received_ns, 24, 8),
    FIELD(clock_sample, replied_ns, 32, 8),
    FIELD(clock_sample, returned_ns, 40, 8),
    FIELD(loss, from_ns, 8, 8),
    FIELD(loss, to_ns, 16, 8),
    FIELD(loss, lost, 24, 8),
    FIELD(loss, cause, 32, 4),
    FIELD(loss, reserved, 36, 4),
    FIELD(flow, flow, 8, 4),
    FIELD(flow, generation, 12, 4),
    FIELD(flow, source, 16, 16),
    FIELD(flow, destination, 32, 16),
    FIELD(flow, destination_qpn, 48, 4),
    FIELD(flow, udp_source_port, 52, 2),
    FIELD(flow, vantage, 54, 1),
    FIELD(flow, dscp, 55, 1),
    FIELD(flow, port, 56, 4),
    FIELD(flow, vlans, 60, 4),
    FIELD(flow, first_ns, 64, 8),
    FIELD(flow, tunnel, 72, 4),
    FIELD(flow, mirror_address, 76, 4),
    FIELD(flow, mirror_session, 80, 2),
    FIELD(flow, tunnel_kind, 82, 1),
    FIELD(flow, mirror_kind, 83, 1),
    FIELD(window, index, 8, 8),
    FIELD(window, first_offset_ns, 16, 4),
    FIELD(window, last_offset_ns, 20, 4),
    FIELD(window, frames, 24, 4),
    FIELD(window, wire_bytes, 28, 4),
    FIELD(window, payload_bytes, 32, 4),
    FIELD(window, retransmitted_frames, 36, 2),
    FIELD(window, marked_frames, 38, 2),
    FIELD(flow_total, at_ns, 8, 8),
    FIELD(flow_total, data_frames, 16, 8),
    FIELD(flow_total, wire_bytes, 24, 8),
    FIELD(flow_total, payload_bytes, 32, 8),
    FIELD(flow_total, messages, 40, 8),
    FIELD(flow_total, acks, 48, 4),
    FIELD(flow_total, naks, 52, 4),
    FIELD(flow_total, rnr_naks, 56, 4),
    FIELD(flow_total, cnps, 60, 4),
    FIELD(flow_total, marked_frames, 64, 4),
    FIELD(flow_total, repeated_frames, 68, 4),
    FIELD(flow_total, late_frames, 72, 4),
    FIELD(flow_total, retransmitted_frames, 76, 4),
    FIELD(flow_total, retransmitted_bytes, 80, 8),
    FIELD(flow_total, last_ns, 88, 8),
    FIELD(flow_total, covered_psns, 96, 8),
    FIELD(flow_total, rnr_wait_ns, 104, 8),
    FIELD(flow_total, pair, 112, 4),
    FIELD(flow_total, source_qpn, 116, 4),
    FIELD(flow_total, got_acks, 120, 4),
    FIELD(flow_total, got_naks, 124, 24),
    FIELD(flow_total, got_rnr_naks, 148, 4),
    FIELD(flow_total, got_cnps, 152, 4),
    FIELD(flow_total, rnr_last_ns, 156, 4),
    FIELD(flow_total, late_unknown_frames, 160, 4),
    FIELD(flow_total, duplicate_frames, 164, 4),
    FIELD(flow_total, timeouts, 168, 4),
    FIELD(flow_total, pauses, 172, 4),
    FIELD(flow_total, source_port_changes, 176, 4),
    FIELD(flow_total, codepoints, 180, 1),
    FIELD(flow_total, paired_by, 181, 1),
    FIELD(flow_total, dscp, 182, 1),
    FIELD(flow_total, reserved, 183, 1),
    FIELD(flow_total, reordered_frames, 184, 4),
    FIELD(flow_total, timeout_us, 188, 4),
    FIELD(queue_pair, queue_pair, 8, 4),
    FIELD(queue_pair, process, 12, 4),
    FIELD(queue_pair, communicator, 16, 4),
    FIELD(queue_pair, qpn, 20, 4),
    FIELD(queue_pair, remote_qpn, 24, 4),
    FIELD(queue_pair, flags, 28, 4),
    FIELD(queue_pair, address, 32, 16),
    FIELD(queue_pair, remote_address, 48, 16),
    FIELD(queue_pair, device, 64, 16),
    FIELD(queue_pair, port, 80, 1),
    FIELD(queue_pair, state, 81, 1),
    FIELD(queue_pair, type, 82, 1),
    FIELD(queue_pair, traffic_class, 83, 1),
    FIELD(queue_pair, creator_tid, 84, 4),
    FIELD(queue_pair, connection, 88, 8),
    FIELD(queue_pair, created_ns, 96, 8),
    FIELD(queue_pair, ready_ns, 104, 8),
    FIELD(queue_pair, destroyed_ns, 112, 8),
    FIELD(queue_pair, context, 120, 8),
    FIELD(queue_pair, error_ns, 128, 8),
    FIELD(queue_pair, attributes, 136, 4),
    FIELD(queue_pair, generation, 140, 4),
    FIELD(queue_pair, access_flags, 144, 4),
    FIELD(queue_pair, max_send_requests, 148, 4),
    FIELD(queue_pair, max_receive_requests, 152, 4),
    FIELD(queue_pair, path_mtu_bytes, 156, 2),
    FIELD(queue_pair, service_level, 158, 1),
    FIELD(queue_pair, timeout, 159, 1),
    FIELD(queue_pair, retry_count, 160, 1),
    FIELD(queue_pair, rnr_retry, 161, 1),
    FIELD(queue_pair, min_rnr_timer, 162, 1),
    FIELD(queue_pair, side, 163, 1),
    FIELD(queue_pair, origin_rank, 164, 4),
    FIELD(queue_pair, far_rank, 168, 4),
    FIELD(queue_pair, channel, 172, 4),
    FIELD(rank_operation, communicator, 8, 16),
    FIELD(rank_operation, sequence, 24, 8),
    FIELD(rank_operation, rank, 32, 4),
    FIELD(rank_operation, ranks_count, 36, 4),
    FIELD(rank_operation, peer, 40, 4),
    FIELD(rank_operation, operation, 44, 1),
    FIELD(rank_operation, datatype, 45, 1),
    FIELD(rank_operation, flags, 46, 2),
    FIELD(rank_operation, buffer_bytes, 48, 8),
    FIELD(rank_operation, expected_bytes, 56, 8),
    FIELD(rank_operation, observed_bytes, 64, 8),
    FIELD(rank_operation, enqueued_ns, 72, 8),
    FIELD(rank_operation, host_ready_ns, 80, 8),
    FIELD(rank_operation, gpu_ready_ns, 88, 8),
    FIELD(rank_operation, first_data_ns, 96, 8),
    FIELD(rank_operation, last_data_ns, 104, 8),
    FIELD(rank_operation, active_ns, 112, 8),
    FIELD(rank_operation, bound_ns, 120, 8),
    FIELD(rank_operation, retransmitted_frames, 128, 4),
    FIELD(rank_operation, marked_frames, 132, 4),
    FIELD(rank_operation, end_ns, 136, 8),
    FIELD(rank_operation, held_ns, 144, 8),
    FIELD(rank_operation, group, 152, 8),
    FIELD(rank_operation, received_bytes, 160, 8),
    FIELD(rank_operation, received_ns, 168, 8),
    FIELD(rank_operation, receive_active_ns, 176, 8),
    FIELD(rank_operation, next, 184, 4),
    FIELD(rank_operation, previous, 188, 4),
    FIELD(rank_operation, device, 192, 16),
    FIELD(rank_operation, algorithm, 208, 1),
    FIELD(rank_operation, reserved, 209, 7),
    FIELD(rank_operation, frames_bound_ns, 216, 8),
    FIELD(heartbeat, at_ns, 8, 8),
    FIELD(heartbeat, flags, 16, 4),
    FIELD(heartbeat, reserved, 20, 4),
    FIELD(clock_pair, monotonic_ns, 8, 8),
    FIELD(clock_pair, realtime_ns, 16, 8),
    FIELD(clock_pair, tai_ns, 24, 8),
    FIELD(clock_pair, bound_ns, 32, 8),
    FIELD(counter, at_ns, 8, 8),
    FIELD(counter, total, 16, 8),
    FIELD(counter, name, 24, 40),
    FIELD(port, port, 8, 4),
    FIELD(port, flags, 12, 4),
    FIELD(port, name, 16, 32),
    FIELD(port, address, 48, 16),
    FIELD(message, first_ns, 8, 8),
    FIELD(message, duration_ns, 16, 4),
    FIELD(message, payload_bytes, 20, 4),
    FIELD(message, frames, 24, 4),
    FIELD(message, immediate, 28, 4),
    FIELD(message, place, 32, 4),
    FIELD(message, role, 36, 1),
    FIELD(message, opcode, 37, 1),
    FIELD(message, flags, 38, 2),
    FIELD(trigger, from_ns, 8, 8),
    FIELD(trigger, to_ns, 16, 8),
    FIELD(trigger, flow, 24, 4),
    FIELD(trigger, tier, 28, 4),
    FIELD(trigger, rank, 32, 4),
    FIELD(trigger, limit, 36, 4),
    FIELD(trigger, more_flows, 40, 32),
    FIELD(trigger, boot_id, 72, 8),
    FIELD(trigger_end, from_ns, 8, 8),
    FIELD(trigger_end, to_ns, 16, 8),
    FIELD(trigger_end, windows, 24, 8),
    FIELD(trigger_end, left_out, 32, 8),
    FIELD(trigger_end, flows, 40, 4),
    FIELD(trigger_end, flows_left_out, 44, 4),
    FIELD(trigger_end, tier, 48, 4),
    FIELD(trigger_end, flags, 52, 4),
    FIELD(pin, from_ns, 8, 8),
    FIELD(pin, to_ns, 16, 8),
    FIELD(pin, cause, 24, 4),
    FIELD(pin, reserved, 28, 4),
    FIELD(pin, usual_ns, 32, 8),
    FIELD(pin, found_ns, 40, 8),
    FIELD(coarse_window, index, 8, 8),
    FIELD(coarse_window, window_ns, 16, 4),
    FIELD(coarse_window, first_offset_ns, 20, 4),
    FIELD(coarse_window, last_offset_ns, 24, 4),
    FIELD(coarse_window, frames, 28, 4),
    FIELD(coarse_window, wire_bytes, 32, 4),
    FIELD(coarse_window, payload_bytes, 36, 4),
    FIELD(coarse_window, retransmitted_frames, 40, 4),
    FIELD(coarse_window, marked_frames, 44, 4),
    FIELD(traffic_source, kind, 8, 4),
    FIELD(traffic_source, fields, 12, 4),
    FIELD(traffic_source, grain_ns, 16, 8),
    FIELD(traffic_source, at_ns, 24, 8),
    FIELD(traffic_source, name, 32, 16),
    FIELD(traffic_source, stamp_bound_ns, 48, 8),
    FIELD(endpoint, endpoint, 8, 4),
    FIELD(endpoint, generation, 12, 4),
    FIELD(endpoint, address, 16, 16),
    FIELD(endpoint, remote_address, 32, 16),
    FIELD(endpoint, qpn, 48, 4),
    FIELD(endpoint, remote_qpn, 52, 4),
    FIELD(endpoint, port, 56, 4),
    FIELD(endpoint, path_mtu_bytes, 60, 4),
    FIELD(endpoint, state, 64, 1),
    FIELD(endpoint, type, 65, 1),
    FIELD(endpoint, reserved, 66, 2),
    FIELD(endpoint, pid, 68, 4),
    FIELD(endpoint, first_ns, 72, 8),
    FIELD(endpoint, gone_ns, 80, 8),
    FIELD(reading, from_ns, 8, 8),
    FIELD(reading, to_ns, 16, 8),
    FIELD(reading, from_bound_ns, 24, 4),
    FIELD(reading, to_bound_ns, 28, 4),
    FIELD(reading, fields, 32, 4),
    FIELD(reading, flags, 36, 4),
    FIELD(reading, sent_packets, 40, 8),
    FIELD(reading, sent_bytes_least, 48, 8),
    FIELD(reading, sent_bytes_most, 56, 8),
    FIELD(reading, received_packets, 64, 8),
    FIELD(reading, received_bytes_least, 72, 8),
    FIELD(reading, received_bytes_most, 80, 8),
    FIELD(reading, acknowledged_packets, 88, 4),
    FIELD(reading, unacknowledged_packets, 92, 4),
    FIELD(port_counter, metric, 8, 2),
    FIELD(port_counter, priority, 10, 1),
    FIELD(port_counter, reserved, 11, 1),
    FIELD(port_counter, flags, 12, 4),
    FIELD(port_counter, from_ns, 16, 8),
    FIELD(port_counter, to_ns, 24, 8),
    FIELD(port_counter, value, 32, 8),
    FIELD(process, process, 8, 4),
    FIELD(process, pid, 12, 4),
    FIELD(process, started_ns, 16, 8),
    FIELD(process, ended_ns, 24, 8),
    FIELD(process, command, 32, 16),
    FIELD(process, library, 48, 96),
    FIELD(rdma_port, at_ns, 8, 8),
    FIELD(rdma_port, before_ns, 16, 8),
    FIELD(rdma_port, bits_a_second, 24, 8),
    FIELD(rdma_port, device, 32, 16),
    FIELD(rdma_port, interface, 48, 16),
    FIELD(rdma_port, bus, 64, 16),
    FIELD(rdma_port, root_port, 80, 16),
    FIELD(rdma_port, numa_node, 96, 4),
    FIELD(rdma_port, ports_count, 100, 4),
    FIELD(rdma_port, number, 104, 1),
    FIELD(rdma_port, state, 105, 1),
    FIELD(rdma_port, link_layer, 106, 1),
    FIELD(rdma_port, reserved, 107, 5),
    FIELD(process_fact, process, 8, 4),
    FIELD(process_fact, fact, 12, 2),
    FIELD(process_fact, index, 14, 2),
    FIELD(process_fact, text_bytes, 16, 4),
    FIELD(process_fact, reserved, 20, 4),
    FIELD(process_fact, text, 24, 160),
    FIELD(communicator, communicator, 8, 4),
    FIELD(communicator, process, 12, 4),
    FIELD(communicator, pointer, 16, 8),
    FIELD(communicator, identity, 24, 16),
    FIELD(communicator, ranks_count, 40, 4),
    FIELD(communicator, rank, 44, 4),
    FIELD(communicator, parent, 48, 4),
    FIELD(communicator, color, 52, 4),
    FIELD(communicator, key, 56, 4),
    FIELD(communicator, flags, 60, 4),
    FIELD(communicator, created_ns, 64, 8),
    FIELD(communicator, ready_ns, 72, 8),
    FIELD(communicator, destroyed_ns, 80, 8),
    FIELD(communicator, hash, 88, 8),
    FIELD(communicator, cuda_device, 96, 4),
    FIELD(communicator, child, 100, 4),
    FIELD(communicator, creator, 104, 1),
    FIELD(communicator, ending, 105, 1),
    FIELD(communicator, identity_kind, 106, 1),
    FIELD(communicator, reserved, 107, 1),
    FIELD(communicator, library_version, 108, 4),
    FIELD(call, sequence, 8, 4),
    FIELD(call, returned_after_ns, 12, 4),
    FIELD(call, count, 16, 8),
    FIELD(call, entered_ns, 24, 8),
    FIELD(call, enqueued_ns, 32, 8),
    FIELD(call, stream, 40, 8),
    FIELD(call, peer, 48, 4),
    FIELD(call, tid, 52, 4),
    FIELD(call, group, 56, 4),
    FIELD(call, operation, 60, 1),
    FIELD(call, datatype, 61, 1),
    FIELD(call, reduction, 62, 1),
    FIELD(call, flags, 63, 1),
    FIELD(failure, at_ns, 8, 8),
    FIELD(failure, communicator, 16, 4),
    FIELD(failure, queue_pair, 20, 4),
    FIELD(failure, cause, 24, 4),
    FIELD(failure, result, 28, 4),
    FIELD(failure, tid, 32, 4),
    FIELD(failure, text, 40, 120),
    FIELD(marker, entered_ns, 8, 8),
    FIELD(marker, duration_ns, 16, 8),
    FIELD(marker, stream, 24, 8),
    FIELD(marker, handle, 32, 8),
    FIELD(marker, made, 40, 8),
    FIELD(marker, tid, 48, 4),
    FIELD(marker, result, 52, 4),
    FIELD(marker, captured_calls, 56, 4),
    FIELD(marker, marker, 60, 2),
    FIELD(marker, flags, 62, 2),
    FIELD(host_delay, from_ns, 8, 8),
    FIELD(host_delay, to_ns, 16, 8),
    FIELD(host_delay, sleep_ns, 24, 8),
    FIELD(host_delay, run_queue_ns, 32, 8),
    FIELD(host_delay, io_wait_ns, 40, 8),
    FIELD(host_delay, tcp_bytes, 48, 8),
    FIELD(host_delay, run_queue_longest_ns, 56, 4),
    FIELD(host_delay, switches, 60, 4),
    FIELD(host_delay, minor_faults, 64, 4),
    FIELD(host_delay, major_faults, 68, 4),
    FIELD(host_delay, tcp_retransmissions, 72, 4),
    FIELD(host_delay, tid, 76, 4),
    FIELD(host_delay, communicator, 80, 4),
    FIELD(host_delay, role, 84, 2),
    FIELD(host_delay, flags, 86, 2),
    FIELD(work, at_ns, 8, 8),
    FIELD(work, request, 16, 8),
    FIELD(work, bytes, 24, 4),
    FIELD(work, requests, 28, 2),
    FIELD(work, what, 30, 1),
    FIELD(work, opcode, 31, 1),
    FIELD(work, status, 32, 1),
    FIELD(work, flags, 33, 1),
    FIELD(work, tid, 36, 4),
    FIELD(follow, duration_ns, 8, 8),
    FIELD(follow, hits_max, 16, 8),
    FIELD(follow, what, 24, 4),
    FIELD(follow, pid, 28, 4),
    FIELD(followed, from_ns, 8, 8),
    FIELD(followed, to_ns, 16, 8),
    FIELD(followed, hits, 24, 8),
    FIELD(followed, what, 32, 4),
    FIELD(followed, end, 36, 4),
};

static void kinds_have_their_numbers_and_sizes(void **state)
{
    size_t known = 0;

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_string_equal(record_kind_name(kinds[i].number), kinds[i].name);
        assert_int_equal(record_kind_bytes(kinds[i].number), kinds[i].bytes);
    }
    for (unsigned number = 0; number <= UINT16_MAX; number++)
        known += record_kind_name((uint16_t)number) != NULL;
    assert_int_equal(known, sizeof kinds / sizeof kinds[0]);
    assert_null(record_kind_name(0));
    assert_int_equal(record_kind_bytes(0), 0);
    assert_int_equal(record_kind_bytes(999), 0);
}

static void fields_are_where_the_page_says(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct batch_header), 48);
    assert_int_equal(sizeof(struct record_header), 8);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].offset != fields[i].expected_offset || fields[i].bytes != fields[i].expected_bytes)
            fail_msg("%s: offset %zu (%zu expected), %zu bytes (%zu expected)", fields[i].name, fields[i].offset,
                     fields[i].expected_offset, fields[i].bytes, fields[i].expected_bytes);
}

/* A batch of one heartbeat, byte by byte. */
static void a_batch_is_these_bytes(void **state)
{
    static const uint8_t expected[72] = {
        'Q',  'P',  'S',  'B',  1,    0,    1,    0, /* magic, version, emitter_kind */
        7,    0,    0,    0,    0,    0,    0,    0, /* emitter_id */
        11,   0,    0,    0,    0,    0,    0,    0, /* boot_id */
        0x34, 0x12, 0,    0,    0,    0,    0,    0, /* sequence */
        0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 1, /* sent_ns */
        1,    0,    0,    0,    24,   0,    0,    0, /* records_count, records_bytes */
        2,    0,    24,   0,    0,    0,    0,    0, /* kind, length_bytes, source */
        0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 1, /* at_ns */
        0,    0,    0,    0,    0,    0,    0,    0, /* flags, reserved */
    };
    uint8_t bytes[SCRATCH_BATCH_BYTES];

    (void)state;
    assert_int_equal(scratch_batch(0x1234, 0x0123456789abcdef, bytes), sizeof expected);
    assert_memory_equal(bytes, expected, sizeof expected);
}

/* The numbers of nccl.h (NCCL 2.24): ncclInt8 0 to ncclFloat8e5m2 11. */
static void data_types_have_nccls_sizes(void **state)
{
    static const uint32_t sizes[12] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

    (void)state;
    for (uint8_t type = 0; type < 12; type++)
        assert_int_equal(datatype_bytes(type), sizes[type]);
    assert_int_equal(datatype_bytes(12), 0);
    assert_int_equal(datatype_bytes(255), 0);
}

static void operations_have_names(void **state)
{
    (void)state;
    assert_string_equal(operation_name(OPERATION_ALL_REDUCE), "AllReduce");
    assert_string_equal(operation_name(7), "Recv");
    assert_string_equal(operation_name(0), "Unknown");
    assert_string_equal(operation_name(255), "Unknown");
}

/* What a source without frames does not see is not in its set: the numbers and bits of doc/records.md. */
static void sources_say_what_they_fill(void **state)
{
    (void)state;
    assert_string_equal(traffic_source_name(2), "dpdk");
    assert_string_equal(traffic_source_name(4), "psn");
    assert_null(traffic_source_name(0));
    assert_int_equal(traffic_source_fields(1), 0xbe7);
    assert_int_equal(traffic_source_fields(2), 0xbe7);
    assert_int_equal(traffic_source_fields(3), 0x003);
    assert_int_equal(traffic_source_fields(4), 0x418);
    assert_int_equal(traffic_source_fields(5), 0x005);
    assert_int_equal(traffic_source_fields(99), 0);
    assert_string_equal(source_field_name(6), "messages");
    assert_null(source_field_name(31));
    assert_string_equal(port_metric_name(4), "pause_received_ns");
    assert_int_equal(port_metric_kind(4), PORT_METRIC_DURATION);
    assert_int_equal(port_metric_kind(33), PORT_METRIC_STATE);
    assert_null(port_metric_name(0));
    assert_int_equal(port_metric_kind(9999), 0);
}

static void facts_have_names(void **state)
{
    (void)state;
    assert_string_equal(process_fact_name(PROCESS_FACT_POD), "pod");
    assert_string_equal(process_fact_name(1), "pid");
    assert_string_equal(rdma_port_state_name(1), "down"); /* as sysfs numbers it */
    assert_string_equal(rdma_port_state_name(4), "active");
    assert_string_equal(rdma_port_state_name(200), "unknown");
    assert_string_equal(process_fact_name(32), "RANK");
    assert_null(process_fact_name(0));
    assert_null(process_fact_name(65535));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_their_numbers_and_sizes),
        cmocka_unit_test(fields_are_where_the_page_says),
        cmocka_unit_test(a_batch_is_these_bytes),
        cmocka_unit_test(data_types_have_nccls_sizes),
        cmocka_unit_test(operations_have_names),
        cmocka_unit_test(sources_say_what_they_fill),
        cmocka_unit_test(facts_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
