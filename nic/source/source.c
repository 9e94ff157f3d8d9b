/* SPDX-License-Identifier: BSD-2-Clause */
/* The seam of traffic sources: hands each call to its kind. */
#include "nic/source/source_private.h"

#include <stdio.h>

void source_close(struct source **source)
{
    if (*source == NULL)
        return;
    (*source)->operations->close(*source);
    *source = NULL;
}

int source_receive(struct source *source, struct source_frame frames[SOURCE_BURST_FRAMES])
{
    return source->operations->receive == NULL ? 0 : source->operations->receive(source, frames);
}

size_t source_ports(const struct source *source, struct record_port *ports, size_t capacity)
{
    return source->operations->ports(source, ports, capacity);
}

uint64_t source_covered_ns(const struct source *source)
{
    return source->operations->covered_ns(source);
}

bool source_take_loss(struct source *source, struct source_loss *loss)
{
    return source->operations->take_loss != NULL && source->operations->take_loss(source, loss);
}

void source_rest(struct source *source, size_t received)
{
    if (source->operations->rest != NULL)
        source->operations->rest(source, received);
}

void source_describe(const struct source *source, struct record_traffic_source *description)
{
    enum traffic_source kind = source->operations->kind;

    *description = (struct record_traffic_source){.kind = kind, .fields = traffic_source_fields(kind)};
    snprintf(description->name, sizeof description->name, "%s", traffic_source_name(kind));
    if (source->operations->describe != NULL)
        source->operations->describe(source, description);
}

size_t source_counts(struct source *source, struct source_count *counts, size_t capacity)
{
    return source->operations->counts == NULL ? 0 : source->operations->counts(source, counts, capacity);
}

void source_repeat(struct source *source)
{
    if (source->operations->repeat != NULL)
        source->operations->repeat(source);
}

uint64_t source_refused(const struct source *source)
{
    return source->operations->refused == NULL ? 0 : source->operations->refused(source);
}

void source_tell(struct source *source, const struct record_queue_pair *pair, bool is_here)
{
    if (source->operations->tell != NULL)
        source->operations->tell(source, pair, is_here);
}

void source_statistics(struct source *source, uint32_t port, source_statistic visit, void *context)
{
    if (source->operations->statistics != NULL)
        source->operations->statistics(source, port, visit, context);
}
