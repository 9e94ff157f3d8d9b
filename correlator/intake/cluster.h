/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks that frames tie to each other. Each machine's clock has a band against the reference; where frames between two
 * machines are seen at both ends, an edge tells how far their bands disagree. A cluster is laid onto the clock of one
 * of its machines, its root, along the paths that add up to the narrowest bound. Its edges are the caller's to add; all
 * times in nanoseconds. One thread.
 */
#pragma once

#include "correlator/intake/band.h"

#define CLUSTER_NONE SIZE_MAX

struct cluster_point { /* of a machine's clock */
    uint64_t at_ns;
    uint64_t ns;
    uint64_t bound_ns;
    uint64_t among_ns;
};

struct cluster_machine {
    bool known;                         /* it has a band, or is the reference itself */
    struct band band;                   /* reference minus the machine's clock; empty: it is the reference itself */
    uint64_t worst_ns;                  /* its largest bound */
    bool is_root;                       /* of a cluster of more than itself */
    size_t root;                        /* of its cluster: itself when it is alone */
    size_t parent;                      /* the next one on the way to the root, CLUSTER_NONE at the root */
    size_t edge;                        /* to the parent */
    ARRAY(struct cluster_point) points; /* the way to the root in one piece, when no clock on it was set */
};

struct cluster_edge {
    size_t from;
    size_t to;
    struct band band; /* the clock of `to` minus that of `from`, over the latter */
    uint64_t weight_ns;
    uint64_t first_ns; /* when frames were seen, in the clock of `from` */
    uint64_t last_ns;
    bool contradicted; /* exchanges allow no such distance */
};

struct cluster {
    ARRAY(struct cluster_machine) machines;
    ARRAY(struct cluster_edge) edges;
    size_t contradictions; /* edges that exchanges contradict, or that contradict themselves, which are left out */
};

void cluster_fini(struct cluster *cluster);

/* Chooses roots and paths. */
void cluster_lay(struct cluster *cluster);

struct cluster_time {
    uint64_t ns;
    uint64_t bound_ns;
    uint64_t among_ns;
};

/* A time of a machine's own clock, by its exchanges alone, and with what frames tell. */
struct cluster_time cluster_map_plain(const struct cluster *cluster, size_t machine, uint64_t machine_ns);
struct cluster_time cluster_map(const struct cluster *cluster, size_t machine, uint64_t machine_ns);
