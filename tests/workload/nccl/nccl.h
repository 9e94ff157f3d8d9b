/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public ABI of NCCL 2.30, as far as the stand-in has it: numbers, layouts and functions are those that a program
 * built for the real library uses. Any thread may call; a communicator is used by one thread at a time, but for
 * ncclCommAbort and ncclCommGetAsyncError.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { NCCL_VERSION_NUMBER = 23007, NCCL_ID_BYTES = 128, NCCL_UNDEFINED = INT32_MIN, NCCL_SPLIT_NOCOLOR = -1 };
enum { NCCL_SHRINK_ABORT = 1 };

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow *ncclWindow_t;
typedef void *cudaStream_t;

typedef struct {
    char internal[NCCL_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInvalidArgument,
    ncclInvalidUsage,
    ncclRemoteError,
    ncclInProgress,
    ncclNumResults
} ncclResult_t;

typedef enum { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg } ncclRedOp_t;

typedef enum {
    ncclInt8,
    ncclUint8,
    ncclInt32,
    ncclUint32,
    ncclInt64,
    ncclUint64,
    ncclFloat16,
    ncclFloat32,
    ncclFloat64,
    ncclBfloat16
} ncclDataType_t;

typedef struct {
    size_t size;
    unsigned int magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare, trafficClass;
    const char *commName;
    int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                                        \
    {                                                                                                                  \
        .size = sizeof(ncclConfig_t), .magic = 0xcafebeef, .version = NCCL_VERSION_NUMBER, .blocking = NCCL_UNDEFINED, \
        .cgaClusterSize = NCCL_UNDEFINED, .minCTAs = NCCL_UNDEFINED, .maxCTAs = NCCL_UNDEFINED,                        \
        .splitShare = NCCL_UNDEFINED, .trafficClass = NCCL_UNDEFINED, .collnetEnable = NCCL_UNDEFINED,                 \
        .CTAPolicy = NCCL_UNDEFINED, .shrinkShare = NCCL_UNDEFINED, .nvlsCTAs = NCCL_UNDEFINED,                        \
        .nChannelsPerNetPeer = NCCL_UNDEFINED, .nvlinkCentricSched = NCCL_UNDEFINED                                    \
    }

typedef struct {
    int opCnt, peer, sigIdx, ctx;
} ncclWaitSignalDesc_t;

#define NCCL_FUNCTION(result, name, arguments)                                                                         \
    result nccl##name arguments;                                                                                       \
    result pnccl##name arguments;
#include "nccl.def"
#undef NCCL_FUNCTION
