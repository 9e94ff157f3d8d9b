/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcap_open_live with our buffer (libpcap inside; nowhere else). Immediate mode makes libpcap use the kernel's ring of
 * slots (TPACKET_V2) instead of the ring of blocks. Promiscuous mode ends with the program, however it ends.
 */
#include "nic/source/kernel_ring.h"

#include <pcap/pcap.h>
#include <stdio.h>

static bool wants_promiscuous;

void kernel_ring_set_promiscuous(bool is_promiscuous)
{
    wants_promiscuous = is_promiscuous;
}

pcap_t *pcap_open_live(const char *device, int snapshot_bytes, int promiscuous, int timeout_ms, char *error_text)
{
    pcap_t *pcap = pcap_create(device, error_text);

    (void)snapshot_bytes;
    (void)promiscuous;
    (void)timeout_ms;
    if (pcap == NULL)
        return NULL;
    pcap_set_snaplen(pcap, KERNEL_RING_SNAP_BYTES);
    pcap_set_promisc(pcap, wants_promiscuous);
    pcap_set_immediate_mode(pcap, 1);
    pcap_set_buffer_size(pcap, KERNEL_RING_BYTES);
    if (pcap_activate(pcap) >= 0)
        return pcap;
    snprintf(error_text, PCAP_ERRBUF_SIZE, "%s: %s", device, pcap_geterr(pcap));
    pcap_close(pcap);
    return NULL;
}
