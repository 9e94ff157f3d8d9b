/* SPDX-License-Identifier: BSD-2-Clause */
/* What text goes onto: how wide it is, and whether it may be coloured. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TERMINAL_WIDTH_DEFAULT 100

struct terminal {
    size_t width;    /* columns: COLUMNS, else the terminal's, else 100 */
    bool is_assumed; /* that 100: neither COLUMNS nor a terminal says it */
    bool colour;     /* a terminal, and NO_COLOR is not set */
};

void terminal_init(struct terminal *terminal, int descriptor);

/* Whether $TERM is one that can be drawn on in place. */
bool terminal_can_draw(void);
