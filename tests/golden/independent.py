#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""independent.py CAPTURE [WINDOW-NS]: flows, windows and messages of a pcap or pcapng file, as rows of JSON.

Written from the InfiniBand and pcap specifications and from what doc/man/qpscope-nic.8 promises, apart from the C code and by other means:
everything is read into memory, packet numbers are unwrapped, and messages are cut afterwards from the frames in the order
of their numbers. It is slow, simple, and what qpscope-nic is compared with."""
import collections
import ipaddress
import json
import struct
import sys

Frame = collections.namedtuple(
    "Frame", "key time order wire payload opcode psn marked syndrome address rkey length immediate sport")

HEADERS = {  # extension headers and their sizes, by opcode within RC, UC and XRC
    "reth": {0x06, 0x0A, 0x0B, 0x0C},
    "aeth": {0x0D, 0x0F, 0x10, 0x11, 0x12},
    "atomic": {0x13, 0x14},
    "atomicack": {0x12},
    "immediate": {0x03, 0x05, 0x09, 0x0B},
    "invalidate": {0x16, 0x17},
}
SIZES = {"reth": 16, "aeth": 4, "atomic": 28, "atomicack": 8, "immediate": 4, "invalidate": 4}
FIRST, MIDDLE = {0x00, 0x06, 0x0D}, {0x01, 0x07, 0x0E}
LAST = {0x02, 0x03, 0x08, 0x09, 0x0F, 0x16}
ANSWERS = {0x11, 0x12, 0x81}
RESPONSES = {0x0D, 0x0E, 0x0F, 0x10}
WRITES = {0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B}
KNOWN = (set(range(0x18)) - {0x15})


def read_pcap(data):
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    scale = 1 if data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d") else 1000
    link = struct.unpack(order + "I", data[20:24])[0]
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, captured, original = struct.unpack(order + "IIII", data[at:at + 16])
        if at + 16 + captured > len(data):
            break
        yield seconds * 10**9 + fraction * scale, link, data[at + 16:at + 16 + captured], original
        at += 16 + captured


def read_pcapng(data):
    at, interfaces, order = 0, [], "<"
    while at + 12 <= len(data):
        if data[at:at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        kind, size = struct.unpack(order + "II", data[at:at + 8])
        body = data[at + 8:at + size - 4]
        if at + size > len(data):
            break
        at += size
        if kind == 1:
            units, option = 10**6, 8
            while option + 4 <= len(body):
                code, length = struct.unpack(order + "HH", body[option:option + 4])
                if code == 9:
                    exponent = body[option + 4]
                    units = 2**(exponent & 127) if exponent & 128 else 10**exponent
                option += 4 + (length + 3) // 4 * 4
            interfaces.append((struct.unpack(order + "H", body[:2])[0], units))
        elif kind == 6:
            interface, high, low, captured, original = struct.unpack(order + "IIIII", body[:20])
            link, units = interfaces[interface]
            yield (high << 32 | low) * 10**9 // units, link, body[20:20 + captured], original
        elif kind == 3:
            original = struct.unpack(order + "I", body[:4])[0]
            yield None, interfaces[0][0], body[4:4 + original], original


def network(link, data):
    """EtherType, tunnel and where the network layer begins."""
    if link == 101:
        return {4: 0x0800, 6: 0x86DD}.get(data[0] >> 4), 0, 0
    at, tags = (16 if link == 113 else 14), []
    ethertype = int.from_bytes(data[at - 2:at], "big")
    while ethertype in (0x8100, 0x88A8, 0x9100) and len(tags) < 4:
        tags.append(int.from_bytes(data[at:at + 2], "big") & 0xFFF)
        ethertype = int.from_bytes(data[at + 2:at + 4], "big")
        at += 4
    tunnel = sum(tag << 12 * i for i, tag in enumerate(tags[:2]))
    return ethertype, tunnel, at


def transport(ethertype, data, at):
    """(source, destination, traffic class, UDP source port, where the BTH begins, bytes from there to the ICRC's end)."""
    if ethertype == 0x0800:
        if data[at + 9] != 17:
            return None
        begin = at + (data[at] & 15) * 4
        ends = tuple(ipaddress.ip_address(b"\0" * 10 + b"\xff\xff" + data[i:i + 4]) for i in (at + 12, at + 16))
        traffic_class = data[at + 1]
    else:
        ends = tuple(ipaddress.ip_address(data[i:i + 16]) for i in (at + 8, at + 24))
        traffic_class = (data[at] << 4 | data[at + 1] >> 4) & 255
        following, begin = data[at + 6], at + 40
        if ethertype == 0x8915:
            return *ends, traffic_class, 0, begin, int.from_bytes(data[at + 4:at + 6], "big")
        while following in (0, 43, 60):
            following, begin = data[begin], begin + 8 + data[begin + 1] * 8
        if following != 17:
            return None
    sport, dport, length = struct.unpack(">HHH", data[begin:begin + 6])
    return (*ends, traffic_class, sport, begin + 8, length - 8) if dport == 4791 else None


def parse(time, order, link, data, original):
    ethertype, tunnel, at = network(link, data)
    if ethertype not in (0x0800, 0x86DD, 0x8915):
        return None
    found = transport(ethertype, data, at)
    if found is None or len(data) < found[4] + 12 or found[5] < 16:
        return None
    source, destination, traffic_class, sport, begin, length = found
    opcode = data[begin]
    if opcode != 0x81 and opcode not in KNOWN:
        return None
    at, pad, fields = begin + 12, data[begin + 1] >> 4 & 3, {}
    for name in ("reth", "atomic", "aeth", "atomicack", "immediate", "invalidate"):
        if opcode in HEADERS[name]:
            fields[name] = data[at:at + SIZES[name]] if at + SIZES[name] <= len(data) else None
            at += SIZES[name]
    payload = 0 if opcode == 0x81 else length - (at - begin) - pad - 4
    reth = struct.unpack(">QII", fields["reth"]) if fields.get("reth") else (None, None, None)
    immediate = int.from_bytes(fields["immediate"], "big") if fields.get("immediate") else None
    key = (source, destination, int.from_bytes(data[begin + 5:begin + 8], "big"), tunnel)
    return Frame(key, time, order, original, payload, opcode, int.from_bytes(data[begin + 9:begin + 12], "big"),
                 traffic_class & 3 == 3, fields["aeth"][0] if fields.get("aeth") else None, *reth, immediate, sport)


def read_frames(path, resolution_ns=1):
    with open(path, "rb") as file:
        data = file.read()
    packets = read_pcapng(data) if data[:4] == b"\x0a\x0d\x0d\x0a" else read_pcap(data)
    last = {}
    for order, (time, *packet) in enumerate(packets):
        frame = parse(time, order, *packet)
        if frame is None:
            continue
        time = (time or 0) // resolution_ns * resolution_ns
        if frame.opcode not in ANSWERS:  # time does not run backwards from a flow's data frame to the next
            time = last[frame.key] = max(last.get(frame.key, 0), time)
        yield frame._replace(time=time)


class Stream:
    """The requests, or the READ responses, of one flow: which frame is new, late or repeated."""

    def __init__(self):
        self.seen, self.highest, self.new, self.repeats, self.asked = set(), None, [], [], None

    def unwrap(self, psn):
        if self.highest is None:
            return psn + (1 << 24)
        return self.highest + ((psn - self.highest + (1 << 23)) % (1 << 24) - (1 << 23))

    def add(self, frame):
        number = self.unwrap(frame.psn)
        place = "repeated" if number in self.seen else "late" if self.highest and number < self.highest else "next"
        explained = place == "late" and self.asked is not None and self.asked[0] <= number <= self.asked[1]
        if place == "repeated":
            self.repeats.append((number, frame.order))
        else:
            self.seen.add(number)
            self.new.append((number, frame))
        self.highest = number if place == "next" else self.highest
        return place, place == "repeated" or explained

    def nak(self, psn):
        if self.highest is not None:
            number = self.unwrap(psn)
            if number < self.highest and number not in self.seen:
                self.asked = (number, self.highest)


def role(key, kind, whole, frames, payload, immediate, length):
    loop = key[0] == key[1]
    if kind in WRITES:
        if immediate is not None:
            swapped = int.from_bytes(immediate.to_bytes(4, "big"), "little")
            sizes = 8 <= payload <= 32 and payload % 4 == 0 and payload not in (immediate, swapped)
            return "size" if sizes else "data"
        if whole and frames == 1 and 0 < payload <= 512 and payload % 64 == 0:
            return "credit"
        return "data" if payload else "other"
    if (kind == 0x0C and loop and length == 1) or (kind in RESPONSES and loop and payload == 1):
        return "flush"
    return "other"


def message(key, part, repeats):
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
        "opcode": frames[-1].opcode, "immediate": immediate or 0, "place": (address or 0) & 0xFFFFFFFF,
        "role": role(key, frames[0].opcode, whole, len(frames), payload, immediate, frames[0].length),
        "flags": [name for name, is_set in flags if is_set],
    }


def messages(key, stream):
    part = []
    for number, frame in sorted(stream.new, key=lambda entry: entry[0]):
        alone = frame.opcode not in FIRST | MIDDLE | LAST
        if part and (alone or frame.opcode in FIRST):
            yield message(key, part, stream.repeats)
            part = []
        part.append((number, frame))
        if alone or frame.opcode in LAST:
            yield message(key, part, stream.repeats)
            part = []
    if part:
        yield message(key, part, stream.repeats)


def analyse(path, window_ns=8000, resolution_ns=1, shift_ns=0):
    """{key: totals}, {(key, window): counts}, [(key, message)]; times are cut to whole resolution_ns first.
    Windows are those of a clock that is shift_ns behind the capture's."""
    flows = collections.defaultdict(collections.Counter)
    windows = collections.defaultdict(dict)
    streams = collections.defaultdict(lambda: (Stream(), Stream()))
    for frame in read_frames(path, resolution_ns):
        total = flows[frame.key]
        total["marked_frames"] += frame.marked
        if frame.opcode in (0x11, 0x12):
            kind = {0: "acks", 1: "rnr_naks", 3: "naks"}[frame.syndrome >> 5]
            total[kind] += 1
            if frame.syndrome & 0x7F == 0x60:
                for key, (requests, _) in streams.items():
                    if key[:2] == (frame.key[1], frame.key[0]) and key[3] == frame.key[3]:
                        requests.nak(frame.psn)
            continue
        if frame.opcode == 0x81:
            total["cnps"] += 1
            continue
        place, resent = streams[frame.key][frame.opcode in RESPONSES].add(frame)
        total["data_frames"] += 1
        total["wire_bytes"] += frame.wire
        total["payload_bytes"] += frame.payload
        total["repeated_frames"] += place == "repeated"
        total["late_frames"] += place == "late"
        total["retransmitted_frames"] += resent
        total["retransmitted_bytes"] += resent * frame.payload
        index, offset = divmod(frame.time - shift_ns, window_ns)
        window = windows[frame.key, index]
        window.setdefault("first_offset_ns", offset)
        window["last_offset_ns"] = offset
        for name, amount in (("frames", 1), ("wire_bytes", frame.wire), ("payload_bytes", frame.payload)):
            window[name] = window.get(name, 0) + amount * (place != "repeated")
        window["retransmitted_frames"] = window.get("retransmitted_frames", 0) + resent
        window["marked_frames"] = window.get("marked_frames", 0) + frame.marked
    ended = [(key, found) for key, both in streams.items() for stream in both for found in messages(key, stream)]
    for key, _ in ended:
        flows[key]["messages"] += 1
    return flows, windows, ended


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
