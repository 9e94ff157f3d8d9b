/* SPDX-License-Identifier: BSD-2-Clause */
/* capture_rows CAPTURE: the NIC side's records of a capture file, one JSON object a record; what the live test reads.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "wire/batch.h"
#include "wire/capture.h"
#include "wire/log.h"

static void print_address(const char *name, const uint8_t *address)
{
    char text[INET6_ADDRSTRLEN];

    inet_ntop(AF_INET6, address, text, sizeof text);
    printf(",\"%s\":\"%s\"", name, text);
}

static void print_flow(const struct record_flow *r)
{
    printf("{\"row\":\"flow\",\"flow\":%u,\"generation\":%u,\"destination_qpn\":%u,\"vantage\":%u,\"port\":%u", r->flow,
           r->generation, r->destination_qpn, r->vantage, r->port);
    printf(",\"vlans\":%u,\"tunnel\":%u,\"tunnel_kind\":%u,\"first_ns\":%" PRIu64, r->vlans, r->tunnel, r->tunnel_kind,
           r->first_ns);
    print_address("source", r->source);
    print_address("destination", r->destination);
}

static void print_message(const struct record_message *r)
{
    printf("{\"row\":\"message\",\"flow\":%u,\"first_ns\":%" PRIu64 ",\"duration_ns\":%u,\"payload_bytes\":%u",
           r->header.source, r->first_ns, r->duration_ns, r->payload_bytes);
    printf(",\"frames\":%u,\"immediate\":%u,\"place\":%u,\"role\":%u,\"opcode\":%u,\"flags\":%u", r->frames,
           r->immediate, r->place, r->role, r->opcode, r->flags);
}

static void print_window(const struct record_window *r)
{
    printf("{\"row\":\"window\",\"flow\":%u,\"index\":%" PRIu64 ",\"first_offset_ns\":%u,\"last_offset_ns\":%u",
           r->header.source, r->index, r->first_offset_ns, r->last_offset_ns);
    printf(",\"frames\":%u,\"wire_bytes\":%u,\"payload_bytes\":%u,\"retransmitted_frames\":%u,\"marked_frames\":%u",
           r->frames, r->wire_bytes, r->payload_bytes, r->retransmitted_frames, r->marked_frames);
}

static void print_total(const struct record_flow_total *r)
{
    printf("{\"row\":\"total\",\"flow\":%u,\"at_ns\":%" PRIu64 ",\"data_frames\":%" PRIu64 ",\"wire_bytes\":%" PRIu64
           ",\"payload_bytes\":%" PRIu64 ",\"messages\":%" PRIu64,
           r->header.source, r->at_ns, r->data_frames, r->wire_bytes, r->payload_bytes, r->messages);
    printf(",\"acks\":%u,\"naks\":%u,\"rnr_naks\":%u,\"cnps\":%u,\"marked_frames\":%u,\"repeated_frames\":%u", r->acks,
           r->naks, r->rnr_naks, r->cnps, r->marked_frames, r->repeated_frames);
    printf(",\"late_frames\":%u,\"retransmitted_frames\":%u,\"retransmitted_bytes\":%" PRIu64, r->late_frames,
           r->retransmitted_frames, r->retransmitted_bytes);
    printf(",\"covered_psns\":%" PRIu64
           ",\"late_unknown_frames\":%u,\"duplicate_frames\":%u,\"timeouts\":%u,\"timeout_us\":%u",
           r->covered_psns, r->late_unknown_frames, r->duplicate_frames, r->timeouts, r->timeout_us);
    printf(",\"pauses\":%u,\"reordered_frames\":%u,\"source_port_changes\":%u,\"codepoints\":%u,\"pair\":%u,\"source_"
           "qpn\":%u",
           r->pauses, r->reordered_frames, r->source_port_changes, r->codepoints, r->pair, r->source_qpn);
    printf(",\"paired_by\":%u", r->paired_by);
    printf(",\"got_acks\":%u,\"got_naks\":[%u,%u,%u,%u,%u,%u],\"got_rnr_naks\":%u,\"got_cnps\":%u", r->got_acks,
           r->got_naks[0], r->got_naks[1], r->got_naks[2], r->got_naks[3], r->got_naks[4], r->got_naks[5],
           r->got_rnr_naks, r->got_cnps);
    printf(",\"rnr_wait_ns\":%" PRIu64 ",\"rnr_last_ns\":%u", r->rnr_wait_ns, r->rnr_last_ns);
}

static void print_trigger_end(const struct record_trigger_end *r)
{
    printf("{\"row\":\"trigger_end\",\"number\":%u,\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64 ",\"windows\":%" PRIu64,
           r->header.source, r->from_ns, r->to_ns, r->windows);
    printf(",\"left_out\":%" PRIu64 ",\"flows\":%u,\"flows_left_out\":%u,\"tier\":%u,\"flags\":%u", r->left_out,
           r->flows, r->flows_left_out, r->tier, r->flags);
}

static void print_coarse_window(const struct record_coarse_window *r)
{
    printf("{\"row\":\"coarse_window\",\"flow\":%u,\"index\":%" PRIu64 ",\"window_ns\":%u,\"first_offset_ns\":%u",
           r->header.source, r->index, r->window_ns, r->first_offset_ns);
    printf(",\"last_offset_ns\":%u,\"frames\":%u,\"wire_bytes\":%u,\"payload_bytes\":%u", r->last_offset_ns, r->frames,
           r->wire_bytes, r->payload_bytes);
    printf(",\"retransmitted_frames\":%u,\"marked_frames\":%u", r->retransmitted_frames, r->marked_frames);
}

static void print_pin(const struct record_pin *r)
{
    printf("{\"row\":\"pin\",\"flow\":%u,\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64 ",\"cause\":%u", r->header.source,
           r->from_ns, r->to_ns, r->cause);
    printf(",\"usual_ns\":%" PRIu64 ",\"found_ns\":%" PRIu64, r->usual_ns, r->found_ns);
}

static void print_source(const struct record_traffic_source *r)
{
    printf("{\"row\":\"traffic_source\",\"kind\":%u,\"fields\":%u,\"grain_ns\":%" PRIu64 ",\"name\":\"%.16s\"", r->kind,
           r->fields, r->grain_ns, r->name);
    printf(",\"stamp_bound_ns\":%" PRIu64, r->stamp_bound_ns);
}

static void print_endpoint(const struct record_endpoint *r)
{
    printf("{\"row\":\"endpoint\",\"endpoint\":%u,\"generation\":%u,\"qpn\":%u,\"remote_qpn\":%u,\"port\":%u",
           r->endpoint, r->generation, r->qpn, r->remote_qpn, r->port);
    printf(",\"path_mtu_bytes\":%u,\"state\":%u,\"type\":%u,\"pid\":%u,\"first_ns\":%" PRIu64 ",\"gone_ns\":%" PRIu64,
           r->path_mtu_bytes, r->state, r->type, r->pid, r->first_ns, r->gone_ns);
    print_address("address", r->address);
    print_address("remote_address", r->remote_address);
}

static void print_reading(const struct record_reading *r)
{
    printf("{\"row\":\"reading\",\"endpoint\":%u,\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64
           ",\"from_bound_ns\":%u,\"to_bound_ns\":%u,\"fields\":%u,\"flags\":%u,\"sent_packets\":%" PRIu64,
           r->header.source, r->from_ns, r->to_ns, r->from_bound_ns, r->to_bound_ns, r->fields, r->flags,
           r->sent_packets);
    printf(",\"sent_bytes_least\":%" PRIu64 ",\"sent_bytes_most\":%" PRIu64 ",\"received_packets\":%" PRIu64
           ",\"received_bytes_least\":%" PRIu64 ",\"received_bytes_most\":%" PRIu64
           ",\"acknowledged_packets\":%u,\"unacknowledged_packets\":%u",
           r->sent_bytes_least, r->sent_bytes_most, r->received_packets, r->received_bytes_least,
           r->received_bytes_most, r->acknowledged_packets, r->unacknowledged_packets);
}

static void print_port_counter(const struct record_port_counter *r)
{
    const char *name = port_metric_name(r->metric);

    printf("{\"row\":\"port_counter\",\"port\":%u,\"metric\":\"%s\",\"priority\":%u,\"flags\":%u,\"from_ns\":%" PRIu64
           ",\"to_ns\":%" PRIu64 ",\"value\":%" PRIu64,
           r->header.source, name == NULL ? "unknown" : name, r->priority, r->flags, r->from_ns, r->to_ns, r->value);
}

static void print_other(const union record *r)
{
    switch (r->header.kind) {
    case RECORD_COUNTER:
        printf("{\"row\":\"counter\",\"name\":\"%.40s\",\"total\":%" PRIu64, r->counter.name, r->counter.total);
        break;
    case RECORD_LOSS:
        printf("{\"row\":\"loss\",\"port\":%u,\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64 ",\"lost\":%" PRIu64
               ",\"cause\":%u",
               r->header.source, r->loss.from_ns, r->loss.to_ns, r->loss.lost, r->loss.cause);
        break;
    case RECORD_HEARTBEAT:
        printf("{\"row\":\"heartbeat\",\"at_ns\":%" PRIu64 ",\"flags\":%u", r->heartbeat.at_ns, r->heartbeat.flags);
        break;
    case RECORD_CLOCK_PAIR:
        printf("{\"row\":\"clock_pair\",\"monotonic_ns\":%" PRIu64 ",\"realtime_ns\":%" PRIu64 ",\"bound_ns\":%" PRIu64,
               r->clock_pair.monotonic_ns, r->clock_pair.realtime_ns, r->clock_pair.bound_ns);
        break;
    case RECORD_PORT:
        printf("{\"row\":\"port\",\"port\":%u,\"name\":\"%.32s\"", r->port.port, r->port.name);
        print_address("address", r->port.address);
        break;
    default:
        printf("{\"row\":\"%s\"", record_kind_name(r->header.kind));
    }
}

static void print_record(const union record *record, const struct batch_header *batch)
{
    switch (record->header.kind) {
    case RECORD_FLOW:
        print_flow(&record->flow);
        break;
    case RECORD_MESSAGE:
        print_message(&record->message);
        break;
    case RECORD_WINDOW:
        print_window(&record->window);
        break;
    case RECORD_FLOW_TOTAL:
        print_total(&record->flow_total);
        break;
    case RECORD_TRIGGER_END:
        print_trigger_end(&record->trigger_end);
        break;
    case RECORD_COARSE_WINDOW:
        print_coarse_window(&record->coarse_window);
        break;
    case RECORD_PIN:
        print_pin(&record->pin);
        break;
    case RECORD_TRAFFIC_SOURCE:
        print_source(&record->traffic_source);
        break;
    case RECORD_ENDPOINT:
        print_endpoint(&record->endpoint);
        break;
    case RECORD_READING:
        print_reading(&record->reading);
        break;
    case RECORD_PORT_COUNTER:
        print_port_counter(&record->port_counter);
        break;
    default:
        print_other(record);
    }
    printf(",\"sent_ns\":%" PRIu64 ",\"sequence\":%" PRIu64 "}\n", batch->sent_ns, batch->sequence);
}

int main(int argc, char **argv)
{
    struct capture_reader *reader;
    const void *bytes;
    size_t length_bytes;
    int result;

    log_init("capture_rows", LOG_INFO);
    if (argc != 2 || capture_reader_open(&reader, argv[1]) != 0)
        return 2;
    while ((result = capture_read(reader, &bytes, &length_bytes)) == 1) {
        struct batch batch;
        union record record;
        uint64_t unknown_count = 0;
        if (batch_read(&batch, bytes, length_bytes) != 0)
            return 1;
        while (batch_next(&batch, &record, &unknown_count) == 1)
            print_record(&record, &batch.header);
    }
    capture_reader_close(&reader);
    return result == 0 ? 0 : 1;
}
