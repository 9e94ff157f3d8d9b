/* SPDX-License-Identifier: BSD-2-Clause */
/* The arithmetic of RCCL's reductions: sum, product, maximum and minimum for each of its data types. */
#pragma once

#include "rccl_layout.h"

/* to[i] = a[i] op b[i]; `to` may be `a` or `b`. */
void reduce_apply(void *to, const void *a, const void *b, int64_t n, enum dtype type, enum redop redop);
