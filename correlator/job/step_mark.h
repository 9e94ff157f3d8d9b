/* SPDX-License-Identifier: BSD-2-Clause */
/* The operation that a person says each step ends with: KIND or KIND:BYTES, as in AllReduce:4096. Pure, any thread. */
#pragma once

#include <stdint.h>

struct step_mark {
    uint8_t kind;   /* enum operation_kind; 0: none was named */
    uint64_t bytes; /* of the call's buffer; 0: any */
};

/* -EINVAL after logging. */
int step_mark_read(struct step_mark *mark, const char *text);
