/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups. */
#include "api/api.h"

#include "communicator/group.h"

NCCL_API(ncclResult_t, GroupStart, void)
{
    group_open();
    return ncclSuccess;
}

NCCL_API(ncclResult_t, GroupEnd, void)
{
    return group_close();
}

/* Ends a group whose calls are not to be made. */
NCCL_API(ncclResult_t, GroupSimulateEnd, void *info)
{
    (void)info;
    return group_abandon();
}
