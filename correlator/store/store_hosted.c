/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of what the hosts did beside the data calls. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "correlator/analysis.h"
#include "correlator/store/store_private.h"

typedef int64_t i64;

static const char *hexadecimal(uint64_t value, char text[20])
{
    snprintf(text, 20, "0x%" PRIx64, value);
    return value == 0 ? NULL : text;
}

static void put_markers(struct store *store, const struct hosted *hosted)
{
    char stream[20], handle[20], made[20];

    for (size_t i = 0; i < hosted->markers.count; i++) {
        const struct marker *marker = &hosted->markers.items[i];
        const struct record_marker *record = &marker->record;
        const char *name = marker_name(record->marker);
        int timed = (record->flags & MARKER_SUBMITTED) == 0;
        if (!limit_has_detail(store_limit(store), marker->entered_ns + record->duration_ns))
            continue;
        store_put(store, STORE_marker, "iisiiksssikk", (i64)i + 1, (i64)marker->process + 1,
                  name == NULL ? "unknown" : name, (i64)record->tid, (i64)marker->entered_ns, timed,
                  (i64)record->duration_ns, hexadecimal(record->stream, stream), hexadecimal(record->handle, handle),
                  hexadecimal(record->made, made), (i64)((record->flags & MARKER_DRIVER) != 0), timed,
                  (i64)record->result, (record->flags & MARKER_GRAPH_UNKNOWN) == 0, (i64)record->captured_calls);
    }
}

static void put_delays(struct store *store, const struct hosted *hosted)
{
    for (size_t i = 0; i < hosted->delays.count; i++) {
        const struct host_delay *delay = &hosted->delays.items[i];
        const struct record_host_delay *record = &delay->record;
        if (!limit_has_detail(store_limit(store), delay->to_ns))
            continue;
        store_put(store, STORE_host_delay, "iiriisiiiiiiiiii", (i64)i + 1, (i64)delay->process + 1, (i64)delay->rank,
                  (i64)record->tid, (i64)((record->flags & HOST_DELAY_ALONE) != 0),
                  (record->role & HOST_DELAY_CALLS) != 0 ? "caller" : "library", (i64)delay->from_ns, (i64)delay->to_ns,
                  (i64)record->sleep_ns, (i64)record->run_queue_ns, (i64)record->run_queue_longest_ns,
                  (i64)record->io_wait_ns, (i64)record->minor_faults, (i64)record->major_faults, (i64)record->tcp_bytes,
                  (i64)record->tcp_retransmissions);
    }
}

static const char *request_name(unsigned opcode)
{
    static const char *const names[] = {"write", "write with immediate", "send",         "send with immediate",
                                        "read",  "compare and swap",     "fetch and add"}; /* enum ibv_wr_opcode */
    return opcode < sizeof names / sizeof names[0] ? names[opcode] : "other";
}

/* -1 of none, and of one that is left out. */
static i64 message_row(const struct store *store, const struct analysis *analysis, int32_t message)
{
    return message >= 0 && limit_has_traffic(store_limit(store), analysis->naming.messages.items[message].last_ns)
               ? (i64)message + 1
               : -1;
}

static void put_posts(struct store *store, const struct analysis *analysis)
{
    const struct posting *posting = &analysis->posting;

    for (size_t i = 0; i < posting->posts.count; i++) {
        const struct posted *post = &posting->posts.items[i];
        const struct record_work *record = &post->record;
        if (!limit_has_detail(store_limit(store), post->posted_ns))
            continue;
        store_put(store, STORE_post, "iiiiiiisinkr", (i64)i + 1, (i64)post->queue_pair + 1, (i64)record->tid,
                  (i64)post->posted_ns, (i64)post->bound_ns, (i64)record->bytes, (i64)record->requests,
                  request_name(record->opcode), (i64)((record->flags & WORK_CUT) != 0), (i64)post->completed_ns,
                  (int)(post->completed_ns != 0), (i64)post->status, message_row(store, analysis, post->message));
    }
}

static const char *follow_name(uint32_t what)
{
    switch (what) {
    case FOLLOW_WORK:
        return "work";
    case FOLLOW_SUBMISSIONS:
        return "submissions";
    case FOLLOW_DELAYS:
        return "delays";
    default:
        return "unknown";
    }
}

static void put_followed(struct store *store, const struct posting *posting)
{
    static const char *const ends[] = {"unknown", "in time", "hits spent", "replaced", "refused"};

    for (size_t i = 0; i < posting->followed.count; i++) {
        const struct followed *followed = &posting->followed.items[i];
        const struct record_followed *record = &followed->record;
        store_put(store, STORE_followed, "iisiiis", (i64)followed->stream + 1, (i64)record->header.source,
                  follow_name(record->what), (i64)followed->from_ns, (i64)followed->to_ns, (i64)record->hits,
                  ends[record->end < sizeof ends / sizeof ends[0] ? record->end : 0]);
    }
}

static const char *transport_name(enum transport_kind kind)
{
    static const char *const names[] = {"none", "rdma", "sockets", "unknown"};
    return names[kind];
}

static const char *text_or_null(const char *field, size_t field_bytes, char text[17])
{
    snprintf(text, 17, "%.*s", (int)strnlen(field, field_bytes), field);
    return text[0] == '\0' ? NULL : text;
}

static void put_rdma_ports(struct store *store, const struct naming *naming)
{
    for (size_t i = 0; i < naming->port_states.count; i++) {
        const struct port_state *state = &naming->port_states.items[i];
        const struct record_rdma_port *record = &state->record;
        char device[17], interface[17], bus[17], root_port[17];
        const char *name = text_or_null(record->device, sizeof record->device, device);
        store_put(store, STORE_rdma_port, "iisisinksssk", (i64)i + 1, (i64)state->stream + 1, name == NULL ? "" : name,
                  (i64)record->number, rdma_port_state_name(record->state), (i64)state->at_ns, state->before_ns,
                  (int)(record->bits_a_second != 0), (i64)record->bits_a_second,
                  text_or_null(record->interface, sizeof record->interface, interface),
                  text_or_null(record->bus, sizeof record->bus, bus),
                  text_or_null(record->root_port, sizeof record->root_port, root_port), (int)(record->numa_node >= 0),
                  (i64)record->numa_node);
    }
}

void store_hosted(struct store *store, const struct analysis *analysis)
{
    const struct hosted *hosted = &analysis->hosted;

    put_markers(store, hosted);
    put_delays(store, hosted);
    put_rdma_ports(store, &analysis->naming);
    put_followed(store, &analysis->posting);
    put_posts(store, analysis);
    for (size_t i = 0; i < analysis->job.transports.count; i++) {
        const struct transport *transport = &analysis->job.transports.items[i];
        if (!limit_has_step(store_limit(store), &analysis->job, transport->step))
            continue;
        store_put(store, STORE_transport, "riiiiiis", store_step(store, transport->step), (i64)transport->rank,
                  (i64)transport->from_ns, (i64)transport->to_ns, (i64)transport->asked_bytes,
                  (i64)transport->rdma_bytes, (i64)transport->tcp_bytes, transport_name(transport->kind));
    }
}
