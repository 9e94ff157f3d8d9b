/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is usual of each rank at a place, by its own past: the median of its waits in steps that nothing holds back, if
 * there are some of them, else in all. Pure but for the arrays. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "correlator/array.h"

struct own_wait {
    int32_t rank;
    bool is_quiet; /* in a step that nothing holds back */
    int64_t took_ns;
};
typedef ARRAY(struct own_wait) own_wait_list;

struct own_usual {
    int32_t rank;
    int64_t usual_ns;
};
typedef ARRAY(struct own_usual) own_usual_list;

/* Fills `usuals`, by rank; sorts the waits by rank. */
void own_usual_find(own_usual_list *usuals, own_wait_list *waits);

/* Of a rank that had waits. */
int64_t own_usual_of(const own_usual_list *usuals, int32_t rank);
