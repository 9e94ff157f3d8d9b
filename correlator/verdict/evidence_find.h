/* SPDX-License-Identifier: BSD-2-Clause */
/* The node stage's part of evidence.h: which flows and ports are whose, what is seen there, and what they counted. */
#pragma once

#include "correlator/detail/counted.h"
#include "correlator/verdict/evidence.h"

/* Fills `evidence`, which must be zeroed. */
void evidence_find(struct evidence *evidence, const struct naming *naming, const struct counted *counted,
                   const struct intake *intake);

/* What of a port's traffic its stream sees: the source's fields, without those that need what the port leaves out. */
uint32_t evidence_port_fields(const struct counted *counted, const struct port *port);
