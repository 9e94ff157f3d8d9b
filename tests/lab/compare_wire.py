#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""compare_wire.py FOLDER FOLDER: what two jobs did on the wire, and where they differ.

Each FOLDER is a job's as run.sh --pcap leaves it. Read are the captures: the frames that a rank's own address sends, at its
own port; and from the truth only which queue pairs are connected with each other. Exit status 0 also when they differ; 1 when a capture cannot be read.
"""

import argparse
import collections
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from truth import Truth  # noqa: E402

CREDIT_BYTES = 64
HEADERS_BYTES = 14 + 20 + 8  # Ethernet, IPv4, UDP
WRITES = {6: "first", 7: "middle", 8: "last", 9: "last with immediate", 10: "only", 11: "only with immediate"}
READ_REQUEST = 12


class Message:
    def __init__(self, at_ns, flow, opcode, length_bytes, immediate):
        self.at_ns, self.flow, self.opcode, self.length_bytes, self.immediate = at_ns, flow, opcode, length_bytes, immediate

    @property
    def kind(self):
        if self.opcode == READ_REQUEST:
            return "read"
        if self.immediate is None and self.length_bytes and self.length_bytes % CREDIT_BYTES == 0 and \
                self.length_bytes <= 8 * CREDIT_BYTES:
            return "credit"
        return "write" if self.immediate is None else "write with immediate"


def frames_of(path):
    """(time, bytes) of each frame of a pcap file with nanosecond stamps."""
    with open(path, "rb") as file:
        magic, = struct.unpack("<I", file.read(24)[:4])
        if magic != 0xA1B23C4D:
            sys.exit(f"compare_wire.py: {path} is no pcap file with nanosecond stamps; make it with run.sh --pcap")
        while len(header := file.read(16)) == 16:
            seconds, nanoseconds, length, _ = struct.unpack("<IIII", header)
            yield seconds * 1_000_000_000 + nanoseconds, file.read(length)


def packets_of(path, address):
    """(time, destination address and QPN, opcode, PSN, what follows the BTH) of what this address sends."""
    for at_ns, frame in frames_of(path):
        if frame[26:30] != address:
            continue
        bth = frame[HEADERS_BYTES:HEADERS_BYTES + 12]
        qpn, psn = int.from_bytes(bth[5:8], "big"), int.from_bytes(bth[9:12], "big")
        yield at_ns, (frame[30:34], qpn), bth[0], psn, frame[HEADERS_BYTES + 12:]


def messages_of(path, rank, address):
    """Whole messages; a PSN that was there before is not counted again."""
    begun, seen = {}, set()
    for at_ns, end, opcode, psn, rest in packets_of(path, address):
        flow = (rank, *end)
        if (opcode not in WRITES and opcode != READ_REQUEST) or (flow, psn) in seen:
            continue
        seen.add((flow, psn))
        if opcode in (6, 10, 11, READ_REQUEST):
            begun[flow] = (at_ns, int.from_bytes(rest[12:16], "big"))
        if opcode in (6, 7) or flow not in begun:
            continue
        at_ns, length_bytes = begun.pop(flow)
        place = {9: 0, 11: 16}.get(opcode)
        yield Message(at_ns, flow, opcode, length_bytes, None if place is None else rest[place:place + 4])


class Capture:
    def __init__(self, folder):
        truth = Truth(folder)
        places = truth.rank_places
        self.name = os.path.basename(os.path.normpath(folder))
        addresses = {rank: bytes(map(int, place["address"].split("."))) for rank, place in places.items()}
        self.rank_of = {address: rank for rank, address in addresses.items()}
        self.messages = sorted((message for rank, address in addresses.items()
                                for message in messages_of(os.path.join(folder, f"far{rank}.pcap"), rank, address)),
                               key=lambda message: message.at_ns)

        self.reverse = {}  # flow -> the flow of the other direction, by the queue pairs' ends
        for queue in truth.queues.values():
            if queue.local_gid and queue.peer_rank is not None:
                near, far = (bytes.fromhex(gid)[12:] for gid in (queue.local_gid, queue.remote_gid))
                self.reverse[queue.rank, far, queue.remote_qpn] = (queue.peer_rank, near, queue.qpn)

    def counts(self, key):
        return collections.Counter(key(message) for message in self.messages)

    def payload_bytes(self):
        """By pair of ranks: what is neither a credit nor a read."""
        totals = collections.Counter()
        for message in self.messages:
            if message.kind.startswith("write"):
                totals[message.flow[0], self.rank_of[message.flow[1]]] += message.length_bytes
        return totals

    def announced(self):
        """What each immediate says of the data before it on its flow, by host and by network byte order."""
        counts, before = collections.Counter(), {}
        for message in self.messages:
            if message.kind == "write":
                before[message.flow] = message.length_bytes
            if message.kind != "write with immediate":
                continue
            length = message.length_bytes or before.pop(message.flow, 0)
            host, wire = (int.from_bytes(message.immediate, order) for order in ("little", "big"))
            counts["its size in host byte order" if host == length else
                   "its size in network byte order" if wire == length else "something else"] += 1
        return counts


def credits_first(capture):
    """How many credits each connection's receiver gave before the first data."""
    given, counts, is_over = collections.Counter(), collections.Counter(), set()
    for message in capture.messages:
        if message.kind == "credit" and message.flow in capture.reverse:
            data_flow = capture.reverse[message.flow]
            given[data_flow] += data_flow not in is_over
        elif message.kind.startswith("write") and message.flow not in is_over:
            is_over.add(message.flow)
            counts[given[message.flow]] += 1
    return counts


def payload_sizes(capture):
    return collections.Counter(message.length_bytes for message in capture.messages if message.kind == "write" or
                               (message.kind == "write with immediate" and message.length_bytes))


TABLES = (
    ("payload bytes from rank to rank", Capture.payload_bytes),
    ("messages by kind", lambda capture: capture.counts(lambda message: message.kind)),
    ("credits by bytes", lambda capture: collections.Counter(m.length_bytes for m in capture.messages if m.kind == "credit")),
    ("messages with data by bytes", payload_sizes),
    ("messages by their last opcode", lambda capture: capture.counts(lambda m: WRITES.get(m.opcode, "read request"))),
    ("immediates: the size of what they announce", Capture.announced),
    ("connections by the number of credits before their first data", credits_first),
    ("flows in use from rank to rank", lambda capture: collections.Counter(
        (flow[0], capture.rank_of[flow[1]]) for flow in {message.flow for message in capture.messages})),
)


def table_print(title, captures, table):
    counts = [table(capture) for capture in captures]
    keys = sorted(set(counts[0]) | set(counts[1]), key=str)
    different = [key for key in keys if counts[0][key] != counts[1][key]]
    totals = " and ".join(str(sum(count.values())) for count in counts)
    print(f"{'differ' if different else 'same  '}  {title}: {totals} in all, {len(keys) - len(different)} of {len(keys)} rows the same")
    for key in different[:16]:
        print(f"          {key}: {counts[0][key]} and {counts[1][key]}")
    if len(different) > 16:
        print(f"          and {len(different) - 16} more rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs=2, metavar="folder")
    captures = [Capture(folder) for folder in parser.parse_args().folders]
    print(f"{captures[0].name} and {captures[1].name}: {len(captures[0].messages)} and {len(captures[1].messages)} messages")
    for title, table in TABLES:
        table_print(title, captures, table)


if __name__ == "__main__":
    main()
