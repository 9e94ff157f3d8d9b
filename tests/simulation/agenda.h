/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is to happen, in the order of its time; what is due at the same time happens in the order in which it was put
 * down. One thread. Times: nanoseconds of the true clock, which nobody in the model can read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct agenda;

typedef void agenda_act(void *subject, uint64_t argument);

struct agenda *agenda_create(void);
void agenda_destroy(struct agenda *agenda);

/* Not before now: what is past happens now. */
void agenda_add(struct agenda *agenda, uint64_t at_ns, agenda_act *act, void *subject, uint64_t argument);

/* Lets the next thing happen; false when there is none. */
bool agenda_step(struct agenda *agenda);

uint64_t agenda_now_ns(const struct agenda *agenda);
uint64_t agenda_happened(const struct agenda *agenda);
