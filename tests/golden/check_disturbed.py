#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_disturbed.py QPSCOPE-NIC [SEEDS]: frames of a real job as a bad network would have made them (lost and sent again after a
NAK, sent twice, overtaken), by seed; qpscope-nic's flows, windows and messages against independent.py's of the same file."""
import os
import random
import struct
import sys
import tempfile

import check_independent
import independent
import tap

FRAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frames", "rccl_two_ranks.pcap")
OPCODE, QPN, PSN = 42, slice(47, 50), slice(51, 54)
DATA = range(0x06, 0x0C)


def number(frame, field):
    return int.from_bytes(frame[field], "big")


def make_nak(frame, answers):
    """A NAK for the frame: an acknowledgement of the other direction with another PSN and syndrome."""
    for answer in answers:
        if answer[26:30] == frame[30:34] and answer[OPCODE] == 0x11:
            return answer[:51] + frame[PSN] + b"\x60\0\0\0" + answer[58:]
    return None


def go_back(flow_frames, lost_at, chance):
    """What a sender sends from the lost frame on, when it hears of it some frames later."""
    heard = min(len(flow_frames), lost_at + 1 + chance.randrange(1, 6))
    return flow_frames[lost_at + 1:heard], flow_frames[lost_at:heard], heard


def disturb(frames, chance):
    """Frames in the order of a sender's port or of one downstream of the loss, chosen by chance for each loss."""
    answers = [frame for frame, _ in frames if frame[OPCODE] == 0x11]
    flows, out = {}, []
    for frame, original in frames:
        flows.setdefault((frame[26:34], frame[QPN]), []).append((frame, original))
    for key, flow in flows.items():
        at = 0
        while at < len(flow):
            frame, original = flow[at]
            nak = make_nak(frame, answers)
            if frame[OPCODE] in DATA and nak is not None and chance.random() < 0.03:
                before, again, heard = go_back(flow, at, chance)
                if chance.random() < 0.5:
                    out.append((frame, original))  # the port saw it, it was lost later
                out += before
                if before:
                    out.append((nak, 62))
                out += again
                at = heard
                continue
            out.append((frame, original))
            if chance.random() < 0.01:
                out.append((frame, original))
            if chance.random() < 0.01 and len(out) > 1 and out[-2][0][26:34] == frame[26:34]:
                out[-1], out[-2] = out[-2], out[-1]
            at += 1
    return out


def write(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for index, (frame, original) in enumerate(frames):
            at_ns = 1_000_000_000 + index * 3700
            file.write(struct.pack("<IIII", at_ns // 10**9, at_ns % 10**9, len(frame), original) + frame)


def main():
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    with open(FRAMES, "rb") as file:
        frames = [(data, original) for _, _, data, original in independent.read_pcap(file.read())]
    with tempfile.TemporaryDirectory(prefix="qpscope-disturbed-") as folder:
        for seed in range(1, seeds + 1):
            path = os.path.join(folder, f"{seed}.pcap")
            write(path, disturb(frames, random.Random(seed)))
            flows = independent.analyse(path)[0].values()
            resent = sum(flow["retransmitted_frames"] for flow in flows)
            late = sum(flow["late_frames"] for flow in flows)
            findings = list(check_independent.compare(sys.argv[1], path, 8000))
            if not resent or not late:
                findings.append(f"{resent} frames sent again, {late} late: nothing was disturbed")
            tap.check(f"seed {seed}: {resent} frames sent again, {late} late", findings)
    return tap.finish()


sys.exit(main())
