/* SPDX-License-Identifier: BSD-2-Clause */
/* The seam of traffic sources: hands each call to its kind. */
#include "nic/source_private.h"

void source_close(struct source **source)
{
    if (*source == NULL)
        return;
    (*source)->operations->close(*source);
    *source = NULL;
}

int source_receive(struct source *source, struct source_frame frames[SOURCE_BURST_FRAMES])
{
    return source->operations->receive(source, frames);
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
