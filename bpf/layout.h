/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The offsets of layout.def by name: OFFSET_ibv_qp_qp_num and so on, in bytes. */
#pragma once

enum layout_offset {
#define LAYOUT(structure, member, offset) OFFSET_##structure##_##member = (offset),
#include "bpf/layout.def"
#undef LAYOUT
};
