/* SPDX-License-Identifier: BSD-2-Clause */
/* libibverbs, loaded at run time with symbol versions as NCCL does it. The functions are those of the verbs manual. */
#pragma once

#include <infiniband/verbs.h>

enum { VERBS_DEVICES_MAX = 16, VERBS_PORT = 1 };

struct verbs {
#define VERB(result, name, arguments) result(*name) arguments;
#include "net/verbs.def"
#undef VERB
};

extern struct verbs verbs;

struct verbs_device {
    const char *name;
    struct ibv_context *context;
    struct ibv_pd *pd;
    int gid_index;
    enum ibv_mtu mtu;
};

extern struct verbs_device verbs_devices[VERBS_DEVICES_MAX];

/* Opens the devices that NCCL_IB_HCA allows and whose port is active. Their number, or -errno. */
int verbs_open(void);
