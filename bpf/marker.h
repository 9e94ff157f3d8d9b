/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The symbols of marker_symbol.def by number: what tells the programs at which of them they run. */
#pragma once

enum marker_kind {
#define MARKER(name, number, text) MARKER_##name = (number),
#include "wire/marker.def"
#undef MARKER
};

enum marker_symbol {
#define MARKED(kind, symbol, marker, stream, handle, made) SYMBOL_##symbol,
#define TIMED                                              MARKED
#define SUBMITTED                                          MARKED
#include "bpf/marker_symbol.def"
#undef MARKED
#undef TIMED
#undef SUBMITTED
    MARKER_SYMBOLS
};
