/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of counter.def: one array of the program's main thread. */
#pragma once

#include <stdint.h>

#include "wire/counter.h"

enum host_counter {
#define COUNTER(name, text, help) COUNT_##name,
#include "host/counter.def"
#undef COUNTER
    HOST_COUNTERS
};
