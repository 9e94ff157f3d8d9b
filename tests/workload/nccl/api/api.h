/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a public function is exported: as ncclNAME, weak, and as pncclNAME, global, at the same address; as NCCL does for
 * profilers.
 */
#pragma once

#include "nccl.h"

#define NCCL_API(result, name, ...)                                                                                    \
    __attribute__((visibility("default"), alias("nccl" #name))) result pnccl##name(__VA_ARGS__);                       \
    __attribute__((visibility("default"), weak)) result nccl##name(__VA_ARGS__);                                       \
    result nccl##name(__VA_ARGS__)
