/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a pcap or pcapng file. Checked: every packet lies within the bytes, there are no more of them than bytes
 * for their headers, and nothing comes after the end.
 */
#include "nic/source/packet_file.h"

#include <stdlib.h>

#include "wire/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct packet_file *file;
    struct packet packet;
    size_t packets = 0;

    log_init("fuzz_packet_file", LOG_NONE);
    if (packet_file_open_memory(&file, "fuzz", bytes, length_bytes) != 0)
        return 0;
    while (packet_file_next(file, &packet) == 1) {
        struct frame frame;
        if (packet.bytes < bytes || packet.bytes + packet.captured_bytes > bytes + length_bytes)
            abort();
        (void)frame_parse(&frame, packet.layer, packet.bytes, packet.captured_bytes, packet.original_bytes);
        packets++;
    }
    if (packets > length_bytes / 16 || packet_file_next(file, &packet) != 0)
        abort();
    packet_file_close(&file);
    return 0;
}
