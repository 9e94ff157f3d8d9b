#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""replay.py INTERFACE CAPTURE [--repeat N] [--pause SECONDS]: sends the frames of a pcap file out of an interface, padded to their original
length, with the spaces that they had. Needs the right to open raw sockets."""
import argparse
import socket
import time

import independent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("interface")
    parser.add_argument("capture")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--speed", type=float, default=1.0)
    arguments = parser.parse_args()
    with open(arguments.capture, "rb") as file:
        packets = list(independent.read_pcap(file.read()))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((arguments.interface, 0))
        sent = 0
        for _ in range(arguments.repeat):
            began = time.monotonic()
            for at_ns, _, data, original in packets:
                due = began + (at_ns - packets[0][0]) / 1e9 / arguments.speed
                if due > time.monotonic():
                    time.sleep(max(0, due - time.monotonic()))
                sent += out.send(data + b"\0" * (original - len(data))) > 0
    print(sent)


main()
