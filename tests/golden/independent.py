#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""independent.py CAPTURE [WINDOW-NS]: flows, windows and messages of a pcap or pcapng file, as rows of JSON.

Written from the InfiniBand and pcap specifications and from what doc/man/qpscope-nic.8 promises, apart from the C code and by other means:
everything is read into memory, packet numbers are unwrapped, and messages are cut afterwards from the frames in the order
of their numbers. It is slow, simple, and what qpscope-nic is compared with."""
import collections
import json
import struct
import sys

import dissect
from dissect import either_way, read_pcap

Frame = collections.namedtuple(
    "Frame", "key time order wire payload opcode psn ecn syndrome address rkey length immediate sport dscp number")

FIRST, MIDDLE = {0x00, 0x06, 0x0D}, {0x01, 0x07, 0x0E}
LAST = {0x02, 0x03, 0x08, 0x09, 0x0F, 0x16}
ANSWERS = {0x11, 0x12, 0x81}
RESPONSES = {0x0D, 0x0E, 0x0F, 0x10}
BEGINNINGS = {0x0D, 0x10}  # of those that bear the PSN of the request
WRITES = {0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B}
DATAGRAM = {0x40, 0x60}  # RD and UD: not one sender's numbers


def parse(order, packet):
    """A Frame, or None when it is left out. Its opcode is that of RC with the same meaning."""
    try:
        way, at, length, sport = dissect.find_bth(packet)
        number, qpn, psn, fields, payload = dissect.transport(packet.data, at, length)
    except (dissect.LeftOut, struct.error, IndexError):
        return None
    reth = struct.unpack(">QII", fields["reth"]) if fields.get("reth") else (None, None, None)
    immediate = int.from_bytes(fields["immediate"], "big") if fields.get("immediate") else None
    opcode = 0x81 if number & 0xFE == 0x80 else number & 0x1F
    return Frame((*way.ends, qpn, dissect.tunnel_text(way)), packet.time, order, way.stop - way.start, payload, opcode, psn,
                 way.ecn, fields["aeth"][0] if fields.get("aeth") else None, *reth, immediate, sport, way.dscp, number)


def read_frames(path, resolution_ns=1):
    with open(path, "rb") as file:
        data = file.read()
    last = {}
    for order, packet in enumerate(dissect.read_packets(data)):
        frame = parse(order, packet)
        if frame is None:
            continue
        time = (packet.time or 0) // resolution_ns * resolution_ns
        if frame.opcode not in ANSWERS:  # time does not run backwards from a flow's data frame to the next
            time = last[frame.key] = max(last.get(frame.key, 0), time)
        yield frame._replace(time=time)


class Stream:
    """The requests, or the READ responses, of one flow: which frame is new, late or repeated, and why it came again."""

    def __init__(self):
        self.seen, self.highest, self.new, self.repeats = set(), None, [], []
        self.asked, self.likely = range(0), range(0)
        self.count, self.came_late = collections.Counter(), set()

    def unwrap(self, psn):
        if self.highest is None:
            return psn + (1 << 24)
        return self.highest + ((psn - self.highest + (1 << 23)) % (1 << 24) - (1 << 23))

    def number(self, frame):
        return 1 + (self.highest or 0) if frame.number & 0xE0 in DATAGRAM else self.unwrap(frame.psn)

    def place(self, frame):
        number = self.number(frame)
        if number in self.seen:
            return "repeated"
        return "late" if self.highest and number < self.highest else "next"

    def add(self, frame, pause, usual, at_sender, answered):
        """(place, whether it was sent again)"""
        number, place = self.number(frame), self.place(frame)
        paused = pause >= 10**6 and pause // 8 >= usual  # a time-out's: no less than the shortest, many times what is usual
        resent = False
        if place == "next":
            self.count["pauses"] += paused and frame.opcode in MIDDLE | LAST
        elif paused:
            self.count["timeouts"] += 1
            self.ask(frame.psn)
        if place != "next" and number in self.asked:  # what was on its way when the NAK was sent comes again too
            self.asked = range(self.asked.start, self.highest + 1)
        if place == "repeated":
            explained = number in self.asked or number in self.likely
            resent = explained or pause >= 10**6 or number != self.highest or at_sender or not answered
            self.count["duplicate_frames"] += not resent
            if resent and number in self.came_late:
                self.came_late.remove(number)
                self.count.update(reordered_frames=1, retransmitted_frames=-1, retransmitted_bytes=-frame.payload)
            if not explained and resent:
                self.count["timeouts"] += pause >= 10**6
                self.likely = range(number, self.highest + 1)
            self.repeats.append((number, frame.order))
        else:
            if place == "late":
                resent = number in self.asked
                self.count["late_unknown_frames"] += not resent
                if resent and number < self.asked.start + 64:
                    self.came_late.add(number)
            self.seen.add(number)
            self.new.append((number, frame))
        self.highest = number if place == "next" else self.highest
        return place, resent

    def has(self, psn):
        """Whether the number was seen (True), is missing (False), or neither (None)."""
        number = self.highest and self.unwrap(psn)
        return None if not number or not self.highest - 4096 < number <= self.highest else number in self.seen

    def ask(self, psn, sure=True):
        if self.highest is not None:
            asked = range(self.unwrap(psn), self.highest + 1)
            if sure:
                self.asked, self.came_late = asked, set()
            else:
                self.likely = asked


def find_pairs(frames):
    """{key: key of the other direction}, and {key: all keys that it might be}. After the fact: acknowledgements, and the
    beginnings of READ responses, are for what the pair has sent by then (all but a few, where frames were not captured);
    who has only one candidate left takes it from the others."""
    sent, answers = collections.defaultdict(dict), collections.defaultdict(list)
    for frame in frames:
        if frame.opcode in (0x11, 0x12):
            if frame.syndrome >> 5 == 0:
                answers[frame.key].append((frame.order, frame.psn))
            sent[frame.key]
        elif frame.opcode in RESPONSES:
            if frame.opcode in BEGINNINGS:
                answers[frame.key].append((frame.order, frame.psn))
            sent[frame.key]
        elif frame.opcode != 0x81:
            sent[frame.key].setdefault(frame.psn, frame.order)

    def share_wrong(key, other):
        """Of the acknowledgements after the other's first frame, the share that are for what it had not sent."""
        orders = sent[other]
        begun = min(orders.values(), default=1 << 60)
        judged = [orders.get(psn, 1 << 60) >= order for order, psn in answers[key] if order > begun]
        return sum(judged) / len(judged) if judged else float(not orders)

    possible = {}
    for key in answers:
        wrong = {other: share_wrong(key, other) for other in sent if other[:2] == (key[1], key[0]) and
                 either_way(other[3]) == either_way(key[3])}
        possible[key] = {other for other, share in wrong.items() if share <= 1 / 8}
    left, pairs = {key: set(others) for key, others in possible.items()}, {}
    while found := next(((key, *others) for key, others in left.items() if len(others) == 1), None):
        key, other = found
        pairs[key], pairs[other] = other, key
        for others in left.values():
            others -= {key, other}
        left.pop(key)
        left.pop(other, None)
    return pairs, possible


class Past:
    """What a direction has carried: data and credits do not share one, and credits go into one small ring of memory."""

    def __init__(self):
        self.data, self.ring = False, set()

    def is_credit(self, place):
        ring = self.ring | {place}
        if self.data or max(ring) - min(ring) >= 256 * 1024:
            return False
        self.ring = {min(ring), max(ring)}
        return True


def role(key, kind, whole, frames, payload, immediate, length, place, past):
    loop = key[0] == key[1]
    if kind in WRITES:
        if immediate is not None:
            swapped = int.from_bytes(immediate.to_bytes(4, "big"), "little")
            sizes = 8 <= payload <= 32 and payload % 4 == 0 and payload not in (immediate, swapped)
            past.data |= not sizes
            return "size" if sizes else "data"
        if whole and frames == 1 and 0 < payload <= 512 and payload % 64 == 0 and past.is_credit(place):
            return "credit"
        return "data" if payload else "other"
    if (kind == 0x0C and loop and length == 1) or (kind in RESPONSES and loop and payload == 1):
        return "flush"
    return "other"


def message(key, part, repeats, past):
    """One message from its frames in the order of their numbers."""
    frames = [frame for _, frame in part]
    begins, ends = frames[0].opcode not in MIDDLE | LAST, frames[-1].opcode not in FIRST | MIDDLE
    ended = ends and part[-1][0] - part[0][0] + 1 == len(part)
    whole = begins and ended
    payload = sum(frame.payload for frame in frames)
    immediate = next((frame.immediate for frame in frames if frame.immediate is not None), None)
    address = next((frame.address for frame in frames if frame.address is not None), None)
    over = max(frame.order for frame in frames) if ended else float("inf")
    resent = any(part[0][0] <= number <= part[-1][0] and order < over for number, order in repeats)
    times = [frame.time for frame in frames]
    flags = [("immediate", immediate is not None), ("incomplete", not whole), ("retransmitted", resent),
             ("placed", address is not None)]
    return {
        "first_ns": min(times), "duration_ns": max(times) - min(times), "frames": len(frames), "payload_bytes": payload,
        "opcode": frames[-1].number, "immediate": immediate or 0, "place": (address or 0) & 0xFFFFFFFF,
        "role": role(key, frames[0].opcode, whole, len(frames), payload, immediate, frames[0].length,
                     (address or 0) & 0xFFFFFFFF, past),
        "flags": [name for name, is_set in flags if is_set],
    }


def messages(key, stream):
    part, past = [], Past()
    for number, frame in sorted(stream.new, key=lambda entry: entry[0]):
        alone = frame.opcode not in FIRST | MIDDLE | LAST
        if part and (alone or frame.opcode in FIRST):
            yield message(key, part, stream.repeats, past)
            part = []
        part.append((number, frame))
        if alone or frame.opcode in LAST:
            yield message(key, part, stream.repeats, past)
            part = []
    if part:
        yield message(key, part, stream.repeats, past)


RNR_WAITS_MS = (655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84,
                5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52)
NAKS = ("sequence_error", "invalid_request", "remote_access_error", "remote_operational_error", "invalid_rd_request")


class Analysis:
    """All of one capture, frame by frame. `address`: of the port where it was made, None in the middle of the network."""

    def __init__(self, frames, address=None):
        frames = list(frames)
        self.flows = collections.defaultdict(collections.Counter)
        self.streams = collections.defaultdict(lambda: (Stream(), Stream()))
        self.pairs, self.possible = find_pairs(frames)
        self.address, self.answered, self.first, self.before, self.reads = address, set(), {}, {}, {}
        self.looks, self.windows = {}, []
        for frame in frames:
            self.first.setdefault(frame.key, frame.time)
            self.flows[frame.key]["marked_frames"] += frame.ecn == 3
            (self.answer if frame.opcode in ANSWERS else self.data)(frame)
        for key, both in self.streams.items():
            for stream in both:
                self.flows[key].update(stream.count)
        for key, other in self.pairs.items():
            carried = self.flows[other]
            self.flows[key].update({"got_" + name: carried[name] for name in ("acks", "rnr_naks", "cnps")})
            self.flows[key].update({"got_" + name: carried["carried_" + name] for name in
                                    ["naks_" + code for code in (*NAKS, "reserved")]})
            self.flows[key]["rnr_wait_ns"] = carried["carried_wait_ns"]

    def reverse(self, key):
        return [other for other in list(self.streams) if other[:2] == (key[1], key[0]) and either_way(other[3]) == either_way(key[3])]

    def answer(self, frame):
        total = self.flows[frame.key]
        self.answered.add((frame.key[1], frame.key[0], either_way(frame.key[3])))
        if frame.opcode == 0x81:
            total["cnps"] += 1
            return
        kind, value = frame.syndrome >> 5, frame.syndrome & 31
        total[{0: "acks", 1: "rnr_naks", 3: "naks"}[kind]] += 1
        if kind == 1:
            total["carried_wait_ns"] += round(RNR_WAITS_MS[value] * 10**6)
        elif kind == 3:
            total["carried_naks_" + (NAKS[value] if value < len(NAKS) else "reserved")] += 1
        if kind == 1 or (kind == 3 and value == 0):
            self.ask(frame)

    def ask(self, nak):
        """Who is told to send again: the pair; else the only flow that lacks it, else the only one that has it."""
        if nak.key in self.pairs:
            self.streams[self.pairs[nak.key]][0].ask(nak.psn)
            return
        states = {other: self.streams[other][0].has(nak.psn) for other in self.reverse(nak.key) if other not in self.pairs}
        for state in (False, True):
            meant = [other for other, has in states.items() if has is state]
            if len(meant) == 1:
                self.streams[meant[0]][0].ask(nak.psn)
            if meant:
                break
        for other, has in states.items():
            if has is not None:
                self.streams[other][0].ask(nak.psn, False)

    def rest(self, frame):
        """The pause before this data frame, and the flow's mean distance of data frames so far."""
        frames = self.flows[frame.key]["data_frames"]
        if not frames:
            return 0, 0
        return frame.time - self.before[frame.key], (self.before[frame.key] - self.first[frame.key]) // frames

    def read(self, frame, place):
        """A READ request that comes again, or asks for a part of the one before: its responses come again too."""
        number, begin, size = self.reads.get(frame.key, (0, 0, 0))
        requests = self.streams[frame.key][0]
        if place == "next":
            self.reads[frame.key] = (requests.unwrap(frame.psn), frame.address, frame.length)
            return
        if place == "late" and requests.unwrap(frame.psn) >= number and begin <= frame.address < begin + size:
            requests.ask(frame.psn)
        if frame.key in self.pairs:
            self.streams[self.pairs[frame.key]][1].ask(frame.psn)

    def data(self, frame):
        total, stream = self.flows[frame.key], self.streams[frame.key][frame.opcode in RESPONSES]
        place, source = stream.place(frame), frame.key[0]
        if frame.opcode == 0x0C:
            self.read(frame, place)
        place, resent = stream.add(frame, *self.rest(frame), source == self.address,
                                   (frame.key[0], frame.key[1], either_way(frame.key[3])) in self.answered)
        total["data_frames"] += 1
        total["wire_bytes"] += frame.wire
        total["payload_bytes"] += frame.payload
        total["covered_psns"] += place != "repeated"
        total["repeated_frames"] += place == "repeated"
        total["late_frames"] += place == "late"
        total["retransmitted_frames"] += resent
        total["retransmitted_bytes"] += resent * frame.payload
        total["codepoints"] |= 1 << frame.ecn
        total["source_port_changes"] += self.looks.get(frame.key, frame.sport) != frame.sport
        self.looks[frame.key], self.before[frame.key] = frame.sport, frame.time
        self.windows.append((frame, place, resent))


def count_windows(seen, window_ns, shift_ns):
    windows = collections.defaultdict(dict)
    for frame, place, resent in seen:
        index, offset = divmod(frame.time - shift_ns, window_ns)
        window = windows[frame.key, index]
        window.setdefault("first_offset_ns", offset)
        window["last_offset_ns"] = offset
        for name, amount in (("frames", 1), ("wire_bytes", frame.wire), ("payload_bytes", frame.payload)):
            window[name] = window.get(name, 0) + amount * (place != "repeated")
        window["retransmitted_frames"] = window.get("retransmitted_frames", 0) + resent
        window["marked_frames"] = window.get("marked_frames", 0) + (frame.ecn == 3)
    return windows


def analyse_all(path, resolution_ns=1, address=None):
    """What is known of each flow, with its pair; [(key, message)]"""
    found = Analysis(read_frames(path, resolution_ns), address)
    ended = [(key, one) for key, both in found.streams.items() for stream in both for one in messages(key, stream)]
    for key, _ in ended:
        found.flows[key]["messages"] += 1
    return found, ended


def analyse(path, window_ns=8000, resolution_ns=1, shift_ns=0, address=None):
    """{key: totals}, {(key, window): counts}, [(key, message)]; times are cut to whole resolution_ns first.
    Windows are those of a clock that is shift_ns behind the capture's."""
    found, ended = analyse_all(path, resolution_ns, address)
    return found.flows, count_windows(found.windows, window_ns, shift_ns), ended


def text_key(key):
    def text(address):
        return str(address.ipv4_mapped or address)
    return {"source": text(key[0]), "destination": text(key[1]), "destination_qpn": key[2], "tunnel": key[3]}


def main():
    flows, windows, ended = analyse(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8000)
    for key, total in flows.items():
        print(json.dumps({"row": "flow", **text_key(key), **total}))
    for (key, index), window in windows.items():
        print(json.dumps({"row": "window", **text_key(key), "index": index, **window}))
    for key, found in ended:
        print(json.dumps({"row": "message", **text_key(key), **found}))


if __name__ == "__main__":
    main()
