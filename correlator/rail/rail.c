/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: a port that its host did not tell of has no state, and is in no set but that of those used. */
#include "correlator/rail/rail.h"

#include <string.h>

void rails_fini(struct rails *rails)
{
    array_fini(&rails->changes);
    array_fini(&rails->ports);
    array_fini(&rails->machines);
    array_fini(&rails->ranks);
    array_fini(&rails->hosts);
    array_fini(&rails->uses);
}

static const struct rail_machine *machine_of(const struct rails *rails, const struct rail_host *host)
{
    return &rails->machines.items[host->machine];
}

const struct rail_port *rails_port(const struct rails *rails, const struct rail_host *host, unsigned n)
{
    return &rails->ports.items[machine_of(rails, host)->first_port + n];
}

/* It may have changed as soon as it was last seen otherwise. */
const struct rail_change *rails_state(const struct rails *rails, const struct rail_port *port, uint64_t at_ns)
{
    const struct rail_change *found = NULL;

    for (size_t i = port->first_change; i < port->first_change + port->changes; i++)
        if (found == NULL || rails->changes.items[i].before_ns <= at_ns)
            found = &rails->changes.items[i];
    return found;
}

typedef bool fits(struct hca_list list, const char *device, unsigned port);

/* The host's ports that fit a list of one of its ranks. */
static uint64_t ports_that(const struct rails *rails, const struct rail_host *host, fits *fit)
{
    uint64_t found = 0;

    for (unsigned n = 0; n < machine_of(rails, host)->ports; n++) {
        const struct rail_port *port = rails_port(rails, host, n);
        for (size_t i = host->first_rank; port->changes != 0 && i < host->first_rank + host->ranks; i++) {
            const struct rail_rank *rank = &rails->ranks.items[i];
            if (rank->list_known && fit(rank->list, port->device, port->number))
                found |= 1ULL << n;
        }
    }
    return found;
}

static bool is_whole(const struct rails *rails, const struct rail_host *host)
{
    const struct rail_machine *machine = machine_of(rails, host);
    uint32_t told = 0;

    for (unsigned n = 0; n < machine->ports; n++) {
        const struct rail_port *port = rails_port(rails, host, n);
        size_t last = port->first_change + port->changes;
        told += port->changes != 0 && rails->changes.items[last - 1].state != RDMA_PORT_GONE;
    }
    for (size_t i = host->first_rank; i < host->first_rank + host->ranks; i++)
        if (!rails->ranks.items[i].list_known)
            return false;
    return machine->told != 0 && told == machine->told;
}

void rails_sum_up(const struct rails *rails, struct rail_host *host)
{
    host->allowed = ports_that(rails, host, hca_list_allows);
    host->named = ports_that(rails, host, hca_list_names);
    host->active = host->allowed;
    for (unsigned n = 0; n < machine_of(rails, host)->ports; n++) {
        const struct rail_change *change = rails_state(rails, rails_port(rails, host, n), host->created_ns);
        if (change == NULL || change->state != RDMA_PORT_ACTIVE)
            host->active &= ~(1ULL << n);
    }
    host->is_whole = is_whole(rails, host);
}

size_t rails_uses(const struct rails *rails, const uint8_t *communicator, size_t *first)
{
    size_t low = 0, high = rails->uses.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memcmp(rails->uses.items[middle].communicator, communicator, IDENTITY_BYTES) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    while (low < rails->uses.count && memcmp(rails->uses.items[low].communicator, communicator, IDENTITY_BYTES) == 0)
        low++;
    return low;
}

bool rails_lost(const struct rails *rails, uint64_t from_ns, uint64_t to_ns, struct rail_loss *loss)
{
    const struct rail_change *first = NULL;

    for (size_t i = 0; i < rails->uses.count; i++) {
        const struct rail_use *use = &rails->uses.items[i];
        if (use->port == RAIL_NONE)
            continue;
        const struct rail_port *port = rails_port(rails, &rails->hosts.items[use->host], use->port);
        for (size_t c = port->first_change; c < port->first_change + port->changes; c++) {
            const struct rail_change *change = &rails->changes.items[c];
            if (change->before_ns == 0 || change->state == RDMA_PORT_ACTIVE || change->at_ns <= from_ns ||
                change->at_ns > to_ns || (first != NULL && change->at_ns >= first->at_ns))
                continue;
            first = change;
            *loss = (struct rail_loss){use->rank, port, change};
        }
    }
    return first != NULL;
}
