/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether what a communicator, or several together, carry goes over fewer rails than it should, and why. What it should
 * is never a machine's number of devices, of which some may be meant for something else, or be far from the GPUs that
 * take part; it is what others do or could, what the job itself did before, or what NCCL_IB_HCA asks for by name.
 * One thread.
 */
#pragma once

#include <stdbool.h>

#include "correlator/rail/rail.h"

enum shortage_reason {
    SHORTAGE_DOWN,      /* the port is there, and was not active when the ranks looked for their devices */
    SHORTAGE_LIST,      /* NCCL_IB_HCA leaves it out, or leaves more of them out than others' does */
    SHORTAGE_ABSENT,    /* others have it; or it is asked for by name */
    SHORTAGE_UNUSED,    /* active, allowed, and used by others: why it is not used is not known */
    SHORTAGE_ABANDONED, /* an earlier communicator of the same ranks used it */
};

enum shortage_measure {                     /* where the number of rails that there should be comes from */
                        SHORTAGE_BY_USE,    /* other hosts use so many */
                        SHORTAGE_BY_OTHERS, /* most others could use so many, and all use no more than this one */
                        SHORTAGE_BY_NAME,   /* NCCL_IB_HCA asks for so many */
                        SHORTAGE_BY_PAST,
};

struct shortage {
    int32_t host;
    int32_t rank; /* who would use the rail: of several ranks of the host, by who uses it elsewhere; else the first */
    bool of_all;  /* all hosts are as short of rails */
    unsigned used;
    unsigned wanted;
    uint64_t used_ports;
    double most_part;                   /* of all that the host carries, on the port with the most */
    int missing;                        /* the port; -1 = none, or none in particular */
    char device[DEVICE_NAME_BYTES + 5]; /* that is missing, as "mlx5_1/1"; empty: not known which */
    enum shortage_reason reason;
    enum shortage_measure measure;
    uint64_t down_ns; /* SHORTAGE_DOWN: when it was seen so first; 0 = from the beginning on */
};

struct shortage_view { /* what is looked at together */
    const struct rails *rails;
    const struct rail_use *const *uses; /* by host */
    size_t count;
    bool spreads; /* somewhere in the job ranks have more than a rail each: one that is as near would be used */
};

/* Whether in this view a host uses more rails than it has ranks. */
bool shortage_spreads(const struct shortage_view *view);

/* False: there is none, or it is not known. */
bool shortage_find(const struct shortage_view *view, struct shortage *shortage);

/* Of the uses of a later communicator whether it goes over fewer rails than an earlier one of the same hosts. */
bool shortage_since(const struct shortage_view *before, const struct shortage_view *now, struct shortage *shortage);
