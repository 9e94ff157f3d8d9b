#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make_capture.py FILE FRAMES: a pcap (nanoseconds, 128 bytes a frame kept) of RDMA writes of 128 frames of 4096 bytes; 2000 flows take turns."""
import struct
import sys

FLOWS, MESSAGE, PAYLOAD, FRAME_NS = 2000, 128, 4096, 41


def frame(number):
    flow, psn = number % FLOWS, number // FLOWS
    within = psn % MESSAGE
    opcode = 0x06 if within == 0 else 0x08 if within == MESSAGE - 1 else 0x07
    extension = struct.pack(">QII", psn << 12, 7, MESSAGE * PAYLOAD) if within == 0 else b""
    udp_bytes = 8 + 12 + len(extension) + PAYLOAD + 4
    ethernet = bytes.fromhex("020000000001020000000002") + struct.pack(">H", 0x0800)
    ip = struct.pack(">BBHHHBBHII", 0x45, 0x68, udp_bytes + 20, 0, 0x4000, 64, 17, 0, 0x0a000000 + flow % 8, 0x0a010000 + flow % 64)
    udp = struct.pack(">HHHH", 0xc000, 4791, udp_bytes, 0)
    bth = struct.pack(">BBHII", opcode, 0, 0xffff, flow, psn & 0xffffff)
    head = ethernet + ip + udp + bth + extension
    return head + bytes(128 - len(head)), 14 + 20 + udp_bytes


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 128, 1))
        for number in range(count):
            kept, length = frame(number)
            at_ns = 1700000000000000000 + number * FRAME_NS
            file.write(struct.pack("<IIII", at_ns // 1000000000, at_ns % 1000000000, len(kept), length) + kept)


if __name__ == "__main__":
    main()
