/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: a host is short of rails only if something is known of it that says why: a port that is down, missing, or
 * left out; or if others like it, or itself before, used one that it does not. A host whose ranks have a rail each is
 * not short because of one more, unless that lies as near to their GPUs as theirs do.
 */
#include "correlator/rail/shortage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USED_PART    20 /* of what a host carries: a port with less is not one of its rails */
#define SPREAD_LEAST 2  /* connections of a rank: fewer cannot be spread */
#define ALIKE_OTHERS 2  /* hosts that use a rail, before another is short for nothing else than not using it */

struct part { /* a host in a view */
    int32_t host;
    uint64_t used;
    uint64_t bytes;
    uint64_t most_bytes; /* on one port */
    unsigned rails;
    size_t ranks;         /* that take part */
    uint32_t connections; /* on the port with the most */
    uint64_t down;        /* of those that it may use */
    uint64_t usable;      /* and that are active, and no slower than what it uses */
    uint64_t named;
    bool is_whole;
};

struct census { /* of hosts with so many ranks that take part: how many have how many rails, and could have */
    size_t ranks;
    size_t hosts;
    size_t used[RAILS_MAX + 1];
    size_t usable[RAILS_MAX + 1];
};

typedef struct part_list {
    struct part *items;
    size_t count;
    size_t capacity;
    struct census census; /* that was asked for last: hosts are mostly alike */
    unsigned most_rails;
    bool are_whole;
} part_list;

static unsigned count(uint64_t ports)
{
    return (unsigned)__builtin_popcountll(ports);
}

static const struct rail_host *host_of(const struct shortage_view *view, const struct part *part)
{
    return &view->rails->hosts.items[part->host];
}

static const struct rail_port *port_of(const struct shortage_view *view, const struct part *part, unsigned n)
{
    return rails_port(view->rails, host_of(view, part), n);
}

/* ---- parts ---- */

static void find_used(const struct shortage_view *view, size_t first, size_t end, struct part *part)
{
    uint64_t bytes[RAILS_MAX] = {0};
    uint32_t connections[RAILS_MAX] = {0};

    for (size_t i = first; i < end; i++) {
        const struct rail_use *use = view->uses[i];
        part->ranks += i == first || use->rank != view->uses[i - 1]->rank;
        if (use->port == RAIL_NONE)
            continue;
        bytes[use->port] += use->bytes;
        connections[use->port] += use->connections;
        part->bytes += use->bytes;
        part->used |= use->is_unseen ? 1ULL << use->port : 0;
    }
    for (unsigned n = 0; n < RAILS_MAX; n++) {
        if (bytes[n] != 0 && bytes[n] >= part->bytes / USED_PART)
            part->used |= 1ULL << n;
        part->most_bytes = bytes[n] > part->most_bytes ? bytes[n] : part->most_bytes;
        part->connections = connections[n] > part->connections ? connections[n] : part->connections;
    }
    part->rails = count(part->used);
}

/* Those that are no slower than what is used. */
static uint64_t as_fast(const struct shortage_view *view, const struct part *part, uint64_t ports)
{
    uint64_t slowest = UINT64_MAX;

    for (unsigned n = 0; n < RAILS_MAX; n++)
        if ((part->used >> n & 1) != 0 && port_of(view, part, n)->bits_a_second < slowest)
            slowest = port_of(view, part, n)->bits_a_second;
    for (unsigned n = 0; n < RAILS_MAX; n++)
        if ((ports >> n & 1) != 0 && port_of(view, part, n)->bits_a_second < slowest)
            ports &= ~(1ULL << n);
    return ports;
}

static void find_parts(const struct shortage_view *view, part_list *parts)
{
    parts->are_whole = true;
    for (size_t first = 0, end; first < view->count; first = end) {
        for (end = first; end < view->count && view->uses[end]->host == view->uses[first]->host;)
            end++;
        if (view->uses[first]->host < 0)
            continue;
        struct part *part = array_add(parts);
        part->host = view->uses[first]->host;
        find_used(view, first, end, part);
        const struct rail_host *host = host_of(view, part);
        part->is_whole = host->is_whole;
        part->down = host->allowed & ~host->active & ~part->used;
        part->usable = as_fast(view, part, host->active);
        part->named = host->named;
        parts->most_rails = part->rails > parts->most_rails ? part->rails : parts->most_rails;
        parts->are_whole &= part->is_whole;
    }
}

/* ---- what is missing ---- */

/* The port that lacks what was found wrong with it, the first of several. */
static void miss_port(const struct shortage_view *view, const struct part *part, uint64_t ports,
                      enum shortage_reason reason, struct shortage *shortage)
{
    unsigned n = (unsigned)__builtin_ctzll(ports);
    const struct rail_port *port = port_of(view, part, n);

    shortage->missing = (int)n;
    shortage->reason = reason;
    snprintf(shortage->device, sizeof shortage->device, "%s/%u", port->device, port->number);
    const struct rail_change *change = rails_state(view->rails, port, host_of(view, part)->created_ns);
    shortage->down_ns = reason == SHORTAGE_DOWN && change != NULL && change->before_ns != 0 ? change->at_ns : 0;
}

static void miss_device(const char *device, struct shortage *shortage)
{
    shortage->missing = -1;
    shortage->reason = SHORTAGE_ABSENT;
    snprintf(shortage->device, sizeof shortage->device, "%.16s", device);
}

static int find_by_name(const struct shortage_view *view, const struct part *part, const struct rail_port *like)
{
    const struct rail_machine *machine = &view->rails->machines.items[host_of(view, part)->machine];

    for (unsigned n = 0; n < machine->ports; n++) {
        const struct rail_port *port = port_of(view, part, n);
        if (port->number == like->number && strcmp(port->device, like->device) == 0)
            return (int)n;
    }
    return -1;
}

/* What is wrong with a port of the host that others have and use; false: nothing that is known. */
static bool blame_like(const struct shortage_view *view, const struct part *part, const struct rail_port *like,
                       struct shortage *shortage)
{
    int n = find_by_name(view, part, like);
    uint64_t port = n < 0 ? 0 : 1ULL << n;

    if ((port & part->used) != 0)
        return false;
    if (n < 0 && part->is_whole)
        miss_device(like->device, shortage);
    else if ((port & part->down) != 0)
        miss_port(view, part, port, SHORTAGE_DOWN, shortage);
    else if (n >= 0 && part->is_whole && (port & host_of(view, part)->allowed) == 0)
        miss_port(view, part, port, SHORTAGE_LIST, shortage);
    else if ((port & part->usable) != 0)
        miss_port(view, part, port, SHORTAGE_UNUSED, shortage);
    else
        return false;
    return true;
}

/* Another host, with as many ranks that take part, whose queue pairs are known. */
static bool is_like(const struct part *part, const struct part *other)
{
    return other != part && other->rails != 0 && part->ranks == other->ranks;
}

static void count_hosts(part_list *parts, size_t ranks)
{
    struct census *census = &parts->census;

    if (census->hosts != 0 && census->ranks == ranks)
        return;
    *census = (struct census){.ranks = ranks};
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->items[i];
        if (part->rails == 0 || part->ranks != ranks)
            continue;
        census->hosts++;
        census->used[part->rails]++;
        census->usable[count(part->usable)]++;
    }
}

/* Of how many ports most others like it say so; 0: there are none. The host itself has some rails. */
static unsigned usual_count(part_list *parts, const struct part *part, bool of_usable, size_t *others)
{
    size_t most = 0;
    unsigned usual = 0, own = of_usable ? count(part->usable) : part->rails;

    count_hosts(parts, part->ranks);
    *others = parts->census.hosts - 1;
    for (unsigned rails = 0; rails <= RAILS_MAX; rails++) {
        size_t hosts = (of_usable ? parts->census.usable : parts->census.used)[rails] - (rails == own);
        if (hosts <= most)
            continue;
        most = hosts;
        usual = rails;
    }
    return most * 2 > *others ? usual : 0;
}

/* What is wrong with the host itself, where devices have names of their own on each: false: nothing that is known. */
static bool blame_itself(const struct shortage_view *view, const struct part *part, struct shortage *shortage)
{
    uint64_t down = part->down;
    uint64_t left_out = ~host_of(view, part)->allowed;
    uint64_t active = 0;

    if (down != 0) {
        miss_port(view, part, down, SHORTAGE_DOWN, shortage);
        return true;
    }
    for (unsigned n = 0; n < view->rails->machines.items[host_of(view, part)->machine].ports; n++) {
        const struct rail_port *port = port_of(view, part, n);
        active |= (left_out >> n & 1) != 0 && port->changes != 0 ? 1ULL << n : 0;
    }
    shortage->missing = -1;
    shortage->device[0] = '\0';
    shortage->reason = SHORTAGE_LIST;
    return part->is_whole && as_fast(view, part, active) != 0;
}

/* Devices of other machines can be told to be the same ones by their names only; those of one machine are others. */
static bool is_comparable(const struct shortage_view *view, const struct part *part, const struct part *other)
{
    if (host_of(view, part)->machine == host_of(view, other)->machine)
        return false;
    for (unsigned n = 0; n < RAILS_MAX; n++)
        if ((other->used >> n & 1) != 0 && find_by_name(view, part, port_of(view, other, n)) >= 0)
            return true;
    return false;
}

/* A port that another host like it uses, or could, and it does not for a reason that is known. */
static bool blame_by_others(const struct shortage_view *view, const part_list *parts, const struct part *part,
                            struct shortage *shortage)
{
    bool is_compared = false;

    for (size_t i = 0; i < parts->count; i++) {
        const struct part *other = &parts->items[i];
        uint64_t theirs = shortage->measure == SHORTAGE_BY_USE ? other->used : other->usable;
        if (!is_like(part, other) || count(theirs) != shortage->wanted || !is_comparable(view, part, other))
            continue;
        is_compared = true;
        for (unsigned n = 0; n < RAILS_MAX; n++)
            if ((theirs >> n & 1) != 0 && blame_like(view, part, port_of(view, other, n), shortage))
                return true;
    }
    return !is_compared && blame_itself(view, part, shortage);
}

/* ---- whether it would be used ---- */

static bool is_near(const struct rail_port *a, const struct rail_port *b)
{
    return strcmp(a->root_port, b->root_port) == 0;
}

/* Of a host's ports one that is not used, and as near to GPUs as one that is. */
static bool has_near(const struct shortage_view *view, const struct part *part, uint64_t spare)
{
    for (unsigned n = 0; n < RAILS_MAX; n++)
        for (unsigned used = 0; (spare >> n & 1) != 0 && used < RAILS_MAX; used++)
            if ((part->used >> used & 1) != 0 && is_near(port_of(view, part, n), port_of(view, part, used)))
                return true;
    return false;
}

/* A rank for each rail has what it needs, if there is none beside it. */
static bool would_use(const struct shortage_view *view, const struct part *part, uint64_t spare)
{
    return part->rails < part->ranks ||
           (part->connections >= SPREAD_LEAST && has_near(view, part, spare & ~part->used));
}

static bool others_would_use(const struct shortage_view *view, const part_list *parts, const struct part *part,
                             unsigned usual)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *other = &parts->items[i];
        if (!is_like(part, other) || count(other->usable) != usual)
            continue;
        bool is_meant = view->spreads || (other->usable & ~other->named) == 0;
        if (other->rails < other->ranks || (is_meant && would_use(view, other, other->usable)))
            return true;
    }
    return false;
}

/* ---- by which measure ---- */

/* Its own host says what is wrong; else it may be another kind of machine than the other one. */
static bool is_told(const struct shortage *shortage)
{
    return shortage->reason == SHORTAGE_DOWN || shortage->reason == SHORTAGE_LIST;
}

/* Others like it use more. */
static bool is_short_by_use(const struct shortage_view *view, part_list *parts, const struct part *part,
                            struct shortage *shortage)
{
    size_t others;
    unsigned usual = usual_count(parts, part, false, &others);

    if (usual <= part->rails || part->connections < SPREAD_LEAST)
        return false;
    shortage->measure = SHORTAGE_BY_USE;
    shortage->wanted = usual;
    return blame_by_others(view, parts, part, shortage) && (is_told(shortage) || others >= ALIKE_OTHERS);
}

/* All use as few as it could at most, and most could use more. */
static bool is_short_by_others(const struct shortage_view *view, part_list *parts, const struct part *part,
                               struct shortage *shortage)
{
    size_t others;

    if (!parts->are_whole || parts->most_rails > part->rails || part->usable != part->used)
        return false;
    unsigned usual = usual_count(parts, part, true, &others);
    if (usual <= part->rails || !others_would_use(view, parts, part, usual))
        return false;
    shortage->measure = SHORTAGE_BY_OTHERS;
    shortage->wanted = usual;
    return blame_by_others(view, parts, part, shortage) && (is_told(shortage) || others >= ALIKE_OTHERS);
}

/* A device that NCCL_IB_HCA asks for by its whole name, and that the machine does not have. */
static bool find_absent(const struct shortage_view *view, const struct part *part, struct shortage *shortage)
{
    const struct rail_host *host = host_of(view, part);
    char name[DEVICE_NAME_BYTES + 1];

    for (size_t i = host->first_rank; i < host->first_rank + host->ranks; i++) {
        const struct rail_rank *rank = &view->rails->ranks.items[i];
        for (size_t n = 0; rank->list_known && hca_list_name(rank->list, n, name, sizeof name); n++) {
            bool is_there = false;
            for (unsigned p = 0; p < view->rails->machines.items[host->machine].ports; p++)
                is_there |= strcmp(port_of(view, part, p)->device, name) == 0;
            if (is_there)
                continue;
            miss_device(name, shortage);
            return true;
        }
    }
    return false;
}

/* It uses all that it could, and was told to use more. */
static bool is_short_by_name(const struct shortage_view *view, const struct part *part, struct shortage *shortage)
{
    uint64_t down = part->down & part->named;

    if (!part->is_whole || part->usable != part->used)
        return false;
    shortage->measure = SHORTAGE_BY_NAME;
    shortage->wanted = part->rails + (down != 0 ? count(down) : 1);
    if (down != 0 && would_use(view, part, down)) {
        miss_port(view, part, down, SHORTAGE_DOWN, shortage);
        return true;
    }
    return part->rails < part->ranks && find_absent(view, part, shortage);
}

/* ---- whom it hits ---- */

/* At which place among its host's ranks the one is that has most on a port of that name, elsewhere; -1: nobody. */
static int place_of_user(const struct shortage_view *view, const struct part *short_one, const char *device)
{
    uint64_t most = 0;
    int place = -1;

    for (size_t i = 0; i < view->count; i++) {
        const struct rail_use *use = view->uses[i];
        if (use->port == RAIL_NONE || use->host == short_one->host || use->bytes <= most)
            continue;
        const struct rail_host *host = &view->rails->hosts.items[use->host];
        const struct rail_port *port = rails_port(view->rails, host, use->port);
        size_t length = strlen(port->device);
        if (host->ranks != host_of(view, short_one)->ranks || strncmp(device, port->device, length) != 0 ||
            (device[length] != '\0' && device[length] != '/'))
            continue;
        for (size_t r = 0; r < host->ranks; r++)
            if (view->rails->ranks.items[host->first_rank + r].rank == use->rank)
                place = (int)r;
        most = use->bytes;
    }
    return place;
}

static void complete(const struct shortage_view *view, const part_list *parts, const struct part *part,
                     struct shortage *shortage)
{
    const struct rail_host *host = host_of(view, part);
    int place = host->ranks < 2 ? 0 : place_of_user(view, part, shortage->device);

    shortage->host = part->host;
    shortage->rank = view->rails->ranks.items[host->first_rank + (size_t)(place < 0 ? 0 : place)].rank;
    shortage->used = part->rails;
    shortage->used_ports = part->used;
    shortage->most_part = part->bytes == 0 ? 1 : (double)part->most_bytes / (double)part->bytes;
    shortage->of_all = parts->count > 1;
    for (size_t i = 0; i < parts->count; i++)
        shortage->of_all &= parts->items[i].rails <= part->rails;
}

bool shortage_spreads(const struct shortage_view *view)
{
    part_list parts = {0};
    bool spreads = false;

    find_parts(view, &parts);
    for (size_t i = 0; i < parts.count; i++)
        spreads |= parts.items[i].rails > parts.items[i].ranks;
    array_fini(&parts);
    return spreads;
}

bool shortage_find(const struct shortage_view *view, struct shortage *shortage)
{
    part_list parts = {0};
    bool found = false;

    find_parts(view, &parts);
    for (size_t i = 0; i < parts.count && !found; i++) {
        const struct part *part = &parts.items[i];
        memset(shortage, 0, sizeof *shortage);
        found = part->rails != 0 &&
                (is_short_by_use(view, &parts, part, shortage) || is_short_by_others(view, &parts, part, shortage) ||
                 is_short_by_name(view, part, shortage));
        if (found)
            complete(view, &parts, part, shortage);
    }
    array_fini(&parts);
    return found;
}

bool shortage_since(const struct shortage_view *before, const struct shortage_view *now, struct shortage *shortage)
{
    part_list old = {0}, new = {0};
    bool found = false;

    find_parts(before, &old);
    find_parts(now, &new);
    for (size_t i = 0; i < new.count && !found &&old.count == new.count; i++) {
        const struct part *was = &old.items[i], *is = &new.items[i];
        if (was->host != is->host)
            break;
        uint64_t lost = was->used & ~is->used;
        if (is->rails == 0 || is->rails >= was->rails || is->connections < SPREAD_LEAST || lost == 0)
            continue;
        found = true;
        memset(shortage, 0, sizeof *shortage);
        shortage->measure = SHORTAGE_BY_PAST;
        shortage->wanted = was->rails;
        miss_port(now, is, lost, SHORTAGE_ABANDONED, shortage);
        complete(now, &new, is, shortage);
    }
    array_fini(&old);
    array_fini(&new);
    return found;
}
