/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The buffer between the kernel and DPDK's net_pcap driver. The driver opens an interface by pcap_open_live, which
 * gives a buffer of 2 MiB in 8 blocks, each of them closed after some milliseconds however empty it is: a reader that
 * is kept from its processor for 30 ms loses frames. This program has a pcap_open_live of its own, which the driver
 * finds before libpcap's: a buffer of KERNEL_RING_BYTES with one slot a frame, of which no more than the first
 * KERNEL_RING_SNAP_BYTES are kept, so that it holds some 90 000 frames of any length; and the interface is put
 * into promiscuous mode only when that was asked for.
 */
#pragma once

#include <stdbool.h>

#define KERNEL_RING_BYTES      (32 * 1024 * 1024)
#define KERNEL_RING_SNAP_BYTES 256u /* the headers of every encapsulation, and some of the payload */

/* For interfaces that are opened after it; at first they are not. One thread. */
void kernel_ring_set_promiscuous(bool is_promiscuous);
