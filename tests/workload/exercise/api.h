/* SPDX-License-Identifier: BSD-2-Clause */
/* The collective library that is exercised, loaded at run time: every function of nccl.def, by its public name. */
#pragma once

#include "nccl/nccl.h"

struct api {
#define NCCL_FUNCTION(result, name, arguments) result(*name) arguments;
#include "nccl/nccl.def"
#undef NCCL_FUNCTION
};

extern struct api api;

/* Both end the process with a message on failure: an exercise cannot go on. */
void api_open(const char *library);
void api_check(ncclResult_t result, const char *what);
