/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which two queue pairs are connected: read from the management datagrams of the connection manager (a request names
 * the asker's queue pair, the reply to it the other's), or told by the host side, as of NCCL, which does not use the
 * connection manager. Only the last ones are remembered. Fixed memory, nothing allocates after create. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/frame/frame.h"
#include "wire/record.h"

#define SET_UP_QPN       1 /* of the general service interface, on every port */
#define SET_UP_MAD_BYTES 256u

struct set_ups;

int set_ups_create(struct set_ups **set_ups);
void set_ups_destroy(struct set_ups **set_ups);
size_t set_ups_bytes(void);

/* A datagram to SET_UP_QPN and its payload. True when a connection is known by it that was not before. */
bool set_ups_note(struct set_ups *set_ups, const struct frame *frame, const void *mad, size_t length_bytes);

/*
 * The host side's word on a queue pair: whom it is connected to, or that it is gone. True when a connection is known by
 * it that was not before.
 */
bool set_ups_tell(struct set_ups *set_ups, const struct record_queue_pair *pair);

/*
 * The key of the flow in the other direction of the connection that this one is of; returns by what it is known,
 * PAIRED_NOT when it is not.
 */
enum paired_by set_ups_reverse(const struct set_ups *set_ups, const struct flow_key *key, struct flow_key *reverse);
