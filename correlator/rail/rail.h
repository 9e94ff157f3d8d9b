/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rails: the ports of each machine's RDMA devices, which of them the job's ranks may use, and which of them carried
 * what. A host is what the library takes for one machine: ranks of one machine with the same NCCL_HOSTID. Made by the
 * node stage (rail_find.h); the job stage judges it (verdict_rail.c).
 *
 * Times in the reference clock; indices are -1 = none. Of each machine at most RAILS_MAX ports are told apart, those
 * behind are left out, and counted as if they were never there. One thread.
 */
#pragma once

#include "correlator/array.h"
#include "correlator/rail/hca_list.h"
#include "wire/record.h"

#define RAILS_MAX 64
#define RAIL_NONE UINT8_MAX /* the use of a rank that takes part, whatever it sends */

struct rail_change { /* of a port's state */
    uint64_t at_ns;
    uint64_t before_ns; /* it was otherwise then; 0 = it is the first that is known */
    uint8_t state;      /* enum rdma_port_state */
    int32_t row;        /* in the table that the store keeps of them */
};

struct rail_port { /* those of a machine lie together */
    int32_t machine;
    char device[DEVICE_NAME_BYTES + 1];
    uint8_t number;
    uint64_t bits_a_second; /* 0 = not known */
    char root_port[17];     /* empty: it is behind none, or that is not known */
    size_t first_change;    /* of none: the host did not tell of it */
    size_t changes;
};

struct rail_machine {
    size_t first_port;
    size_t ports;
    uint32_t told; /* how many ports it says that it has; 0 = it did not say */
};

struct rail_rank {
    int32_t rank;
    int32_t host;
    bool list_known;
    struct hca_list list;
};

struct rail_host {
    int32_t machine;
    uint64_t name; /* of NCCL_HOSTID */
    size_t first_rank;
    size_t ranks;
    uint64_t created_ns; /* the first of its communicators was made */
    uint64_t allowed;    /* bits by port: one of its ranks may use it */
    uint64_t active;     /* of these, those that were when the first communicator was made */
    uint64_t named;      /* of these, those that NCCL_IB_HCA asks for by their whole names */
    bool is_whole;       /* all of its ports are told of, and of each rank it is known which it may use */
    char machine_name[33];
};

struct rail_use { /* by communicator, host, rank, port */
    uint8_t communicator[IDENTITY_BYTES];
    int32_t rank;
    int32_t host;
    uint8_t port;         /* of the machine's, or RAIL_NONE: each rank has that one, too */
    bool is_unseen;       /* it has a queue pair that may carry something: of that nothing was seen */
    uint64_t bytes;       /* both ways */
    uint32_t connections; /* that sent data */
};

struct rails {
    ARRAY(struct rail_change) changes;
    ARRAY(struct rail_port) ports;
    ARRAY(struct rail_machine) machines;
    ARRAY(struct rail_rank) ranks; /* by host, rank */
    ARRAY(struct rail_host) hosts;
    ARRAY(struct rail_use) uses;
};

void rails_fini(struct rails *rails);

/* The n-th port of a host's machine. */
const struct rail_port *rails_port(const struct rails *rails, const struct rail_host *host, unsigned n);

/* What held at a time, or NULL where that is not known: of a time before the first look, what was seen then. */
const struct rail_change *rails_state(const struct rails *rails, const struct rail_port *port, uint64_t at_ns);

/* Fills what follows from a host's ports and lists: allowed, active, named, is_whole. */
void rails_sum_up(const struct rails *rails, struct rail_host *host);

/* The uses of a communicator: [*first, the result). */
size_t rails_uses(const struct rails *rails, const uint8_t *communicator, size_t *first);

struct rail_loss {
    int32_t rank; /* who used the port, the first of several */
    const struct rail_port *port;
    const struct rail_change *change;
};

/* The first port that a rank uses and that is no longer active from some time within (from_ns, to_ns] on. */
bool rails_lost(const struct rails *rails, uint64_t from_ns, uint64_t to_ns, struct rail_loss *loss);
