#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_disturbed.py QPSCOPE-NIC [SEEDS]: frames of a real job as a bad network would have made them (lost and sent again after a
NAK or a time-out, sent twice, overtaken, marked, refused), by seed; qpscope-nic's flows, windows and messages against independent.py's of the same file."""
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


def make_nak(frame, answers, syndrome=0x60):
    """A NAK for the frame: an acknowledgement of the other direction, with the frame's PSN, another syndrome, and the queue
    pair at the other end (in this job each has 17 at one end and 18 at the other)."""
    for answer in answers:
        if answer[26:30] == frame[30:34] and answer[OPCODE] == 0x11:
            qpn = (35 - number(frame, QPN)).to_bytes(3, "big")
            return answer[:47] + qpn + answer[50:51] + frame[PSN] + bytes([syndrome, 0, 0, 0]) + answer[58:]
    return None


def make_notification(answer):
    """A congestion notification: 12 bytes of BTH, 16 that are reserved, 4 of ICRC."""
    return answer[:16] + b"\0\x3c" + answer[18:38] + b"\0\x28" + answer[40:42] + b"\x81" + answer[43:54] + bytes(20)


def go_back(flow_frames, lost_at, chance):
    """What a sender sends from the lost frame on, when it hears of it some frames later."""
    heard = min(len(flow_frames), lost_at + 1 + chance.randrange(1, 6))
    return flow_frames[lost_at + 1:heard], flow_frames[lost_at:heard], heard


def disturb(frames, chance):
    """Frames in the order of a sender's port or of one downstream of the loss, chosen by chance for each loss."""
    answers = [frame for frame, _ in frames if frame[OPCODE] == 0x11]
    flows, out = {}, []  # out: place in the capture, frame, length
    for place, (frame, original) in enumerate(frames):
        flows.setdefault((frame[26:34], frame[QPN]), []).append((place, frame, original))
    for flow in flows.values():
        at = 0
        while at < len(flow):
            place, frame, original = flow[at]
            nak = make_nak(frame, answers)
            if frame[OPCODE] in DATA and nak is not None and chance.random() < 0.03:
                before, again, heard = go_back(flow, at, chance)
                if chance.random() < 0.5:
                    out.append((place, frame, original))  # the port saw it, it was lost later
                out += before
                place = before[-1][0] if before else place
                if before:
                    out.append((place, nak, 62))
                out += [(place, *rest) for _, *rest in again]
                at = heard
                continue
            out.append((place, frame, original))
            if chance.random() < 0.01:
                out.append((place, frame, original))
            if chance.random() < 0.01 and len(out) > 1 and out[-2][1][26:34] == frame[26:34]:
                out[-1], out[-2] = (out[-1][0], *out[-2][1:]), (out[-1][0], *out[-1][1:])
            at += 1
    out.sort(key=lambda entry: entry[0])
    return [(frame, original) for _, frame, original in out]


def trouble(frames, chance):
    """(frame, length, time since the one before): marks, other source ports, answers of every kind, time-outs."""
    answers, past = [frame for frame, _ in frames if frame[OPCODE] == 0x11], {}
    for frame, original in frames:
        again, pause = [], 3700
        if frame[OPCODE] in DATA:
            lot = chance.random()
            kept = past.setdefault((frame[26:34], frame[QPN]), [])
            if lot < 0.02:
                frame = frame[:15] + bytes([frame[15] | 3]) + frame[16:]
            elif lot < 0.025:
                frame = frame[:34] + bytes([0xC0 | chance.randrange(64), chance.randrange(256)]) + frame[36:]
            elif lot < 0.03:
                again, pause = kept[-chance.randrange(1, 5):], chance.choice((400_000, 3_000_000, 70_000_000))
            elif lot < 0.05:
                syndrome = chance.choice((0x20, 0x60, 0x00)) + chance.randrange(32)
                yield make_nak(frame, answers, syndrome), 62, 3700
                again = kept[-1:] if syndrome >> 5 == 1 else []
            elif lot < 0.055:
                yield make_notification(make_nak(frame, answers)), 74, 3700
            kept.append((frame, original))
        for entry in again:
            yield *entry, pause
            pause = 3700
        yield frame, original, pause


def write(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        at_ns = 1_000_000_000
        for frame, original, pause_ns in frames:
            at_ns += pause_ns
            file.write(struct.pack("<IIII", at_ns // 10**9, at_ns % 10**9, len(frame), original) + frame)


def main():
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    with open(FRAMES, "rb") as file:
        frames = [(data, original) for _, _, data, original in independent.read_pcap(file.read())]
    with tempfile.TemporaryDirectory(prefix="qpscope-disturbed-") as folder:
        for seed in range(1, seeds + 1):
            path = os.path.join(folder, f"{seed}.pcap")
            chance = random.Random(seed)
            write(path, trouble(disturb(frames, chance), chance))
            flows = independent.analyse(path)[0].values()
            resent = sum(flow["retransmitted_frames"] for flow in flows)
            late = sum(flow["late_frames"] for flow in flows)
            findings = list(check_independent.compare(sys.argv[1], path, 8000))
            if not resent or not late:
                findings.append(f"{resent} frames sent again, {late} late: nothing was disturbed")
            findings += [f"no {name}" for name in ("marked_frames", "cnps", "rnr_naks", "source_port_changes", "timeouts")
                         if not sum(flow[name] for flow in flows)]
            tap.check(f"seed {seed}: {resent} frames sent again, {late} late", findings)
    return tap.finish()


sys.exit(main())
