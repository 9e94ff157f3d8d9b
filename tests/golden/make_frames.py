#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make_frames.py FOLDER: writes the captures 50 to 80 of frames/ and made.tsv, which says what is in them.

Each kind of header that RoCE travels in, built from the specifications and apart from both readers. What is expected is noted where
a frame is made, from the arguments it is made of. ICRCs are right unless noted (zlib's CRC over masked headers)."""
import collections
import os
import struct
import sys
import zlib

A, B = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
A6, B6 = b"\xfd" + bytes(14) + b"\x01", b"\xfd" + bytes(14) + b"\x02"
COLUMNS = ("data_frames", "payload_bytes", "acks", "naks", "rnr_naks", "cnps", "ce_marked", "repeated_psn", "late_first_seen")
SIZES = {"rdeth": 4, "deth": 8, "xrceth": 4, "feth": 4, "reth": 16, "atomiceth": 28, "aeth": 4, "atomicacketh": 8, "immdt": 4, "ieth": 4}
# By the low five bits, as RC has them: name of the operation's extension headers. Written from table 38 of the specification.
OPERATIONS = {
    0x00: "", 0x01: "", 0x02: "", 0x03: "immdt", 0x04: "", 0x05: "immdt", 0x06: "reth", 0x07: "", 0x08: "", 0x09: "immdt",
    0x0A: "reth", 0x0B: "reth immdt", 0x0C: "reth", 0x0D: "aeth", 0x0E: "", 0x0F: "aeth", 0x10: "aeth", 0x11: "aeth",
    0x12: "aeth atomicacketh", 0x13: "atomiceth", 0x14: "atomiceth", 0x15: "", 0x16: "ieth", 0x17: "ieth", 0x1C: "feth reth",
    0x1D: "reth",
}
WITHOUT_PAYLOAD = {0x0C, 0x11, 0x12, 0x13, 0x14, 0x15, 0x1C}


class Maker:
    """The files' expectations: counts by (file, QPN, tunnel), counters by file."""

    def __init__(self, folder):
        self.folder, self.counts, self.counters = folder, collections.defaultdict(collections.Counter), {}

    def expect(self, name, qpn, tunnel="", **counts):
        self.counts[name, qpn, tunnel].update(counts)

    def write(self, name, data, **counters):
        self.counters[name] = counters
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def write_table(self):
        with open(os.path.join(self.folder, "made.tsv"), "w") as table:
            print("file", "dst_qpn", "tunnel", *COLUMNS, "counters", sep="\t", file=table)
            for name in sorted(self.counters):
                said = " ".join(f"{counter}={total}" for counter, total in self.counters[name].items())
                rows = sorted(key[1:] for key in self.counts if key[0] == name)
                for qpn, tunnel in rows or [(None, "")]:
                    counts = self.counts[name, qpn, tunnel]
                    print(name, "-" if qpn is None else hex(qpn), tunnel, *(counts[column] for column in COLUMNS), said,
                          sep="\t", file=table)


# ---- headers ----

def ethernet(kind, inside, tags=()):
    """`tags`: (EtherType, VLAN id) from the outside in."""
    out = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01"
    for ethertype, vlan in tags:
        out += struct.pack(">HH", ethertype, 0x6000 | vlan)
    return out + struct.pack(">H", kind) + inside


def ipv4(inside, source=A, destination=B, protocol=17, traffic=0x68, flags=0x4000, options=b"", ttl=64, total=None):
    size = 20 + len(options)
    head = struct.pack(">BBHHHBBH4s4s", 0x40 | size // 4, traffic, size + len(inside) if total is None else total, 0x1234, flags,
                       ttl, protocol, 0, source, destination) + options
    words = sum(struct.unpack(f">{size // 2}H", head))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    return head[:10] + struct.pack(">H", ~words & 0xFFFF) + head[12:] + inside


def ipv6(inside, source=A6, destination=B6, following=17, traffic=0x68, hops=64, headers=b""):
    return struct.pack(">IHBB", 6 << 28 | traffic << 20 | 0x54321, len(headers) + len(inside), following, hops) + source + \
        destination + headers + inside


def udp(inside, destination=4791, source=0xC123, length=None):
    return struct.pack(">HHHH", source, destination, 8 + len(inside) if length is None else length, 0) + inside


def names(opcode):
    base, operation = opcode & 0xE0, opcode & 0x1F
    responder = 0x0D <= operation <= 0x12
    before = {0x40: ["rdeth"] if responder else ["rdeth", "deth"], 0x60: ["deth"], 0xA0: [] if responder else ["xrceth"]}
    return before.get(base, []) + OPERATIONS[operation].split()


def extension(name, syndrome, payload):
    if name == "reth":
        return struct.pack(">QII", 0x7F0011223344, 0x1234, payload)
    if name == "aeth":
        return struct.pack(">I", syndrome << 24 | 7)
    if name == "immdt":
        return struct.pack(">I", 0xABCD)
    return bytes(range(1, SIZES[name] + 1))


def transport(opcode, qpn, psn=100, payload=0, syndrome=0x1F, version=0, pad=None, congestion=0, ask=None):
    """BTH to the end of the pad."""
    pad = -payload % 4 if pad is None else pad
    heads = b"" if opcode & 0xFE == 0x80 else b"".join(extension(name, syndrome, ask or payload) for name in names(opcode))
    return struct.pack(">BBHBBHI", opcode, pad << 4 | version, 0xFFFF, congestion, qpn >> 16, qpn & 0xFFFF, psn) + heads + \
        bytes(i * 7 & 0xFF for i in range(payload)) + bytes(pad)


def masked(packet, size, network):
    """The headers up to the BTH's end as the ICRC takes them; `network` 4, 6 (also a GRH) or 0."""
    packet = bytearray(packet)
    if network == 4:
        packet[1] = packet[8] = packet[10] = packet[11] = 0xFF
    elif network == 6:
        packet[0] |= 0x0F
        packet[1:4] = b"\xff\xff\xff"
        packet[7] = 0xFF
    packet[size + 4] = 0xFF
    return packet


def with_icrc(head, bth, network, is_udp=True, before=b"\xff" * 8):
    """`head` (an IP header and UDP's, or a GRH) and what follows it, with the ICRC behind."""
    packet = masked(head + bth, len(head), network)
    if is_udp:
        packet[len(head) - 2:len(head)] = b"\xff\xff"
    return head + bth + struct.pack("<I", zlib.crc32(before + bytes(packet)))


def roce4(bth, **ip):
    whole = ipv4(udp(bth + bytes(4)), **ip)
    return with_icrc(whole[:28], bth, 4)


def roce6(bth, **ip):
    whole = ipv6(udp(bth + bytes(4)), **ip)
    return with_icrc(whole[:48], bth, 6)


def roce1(bth):
    whole = ipv6(bth + bytes(4), following=0x1B)
    return with_icrc(whole[:40], bth, 6, is_udp=False)


def infiniband(bth, has_grh=False, lids=(5, 9)):
    """LRH to VCRC."""
    grh = ipv6(bth + bytes(4), following=0x1B)[:40] if has_grh else b""
    lrh = struct.pack(">BBHHH", 0x30, 3 if has_grh else 2, lids[1], (8 + len(grh) + len(bth) + 4) // 4, lids[0])
    variant = bytes([lrh[0] | 0xF0]) + lrh[1:]
    return lrh + with_icrc(grh, bth, 6 if has_grh else 0, is_udp=False, before=variant) + b"\xbe\xef"


def write_only(size=64, qpn=0x240, psn=100, **more):
    return transport(0x0A, qpn, psn, size, **more)


def vxlan(vni, frame, port=4789, outer=ipv4, **ip):
    return outer(udp(struct.pack(">II", 0x08000000, vni << 8) + frame, destination=port, source=0xD000), **ip)


def gre(kind, inside, key=None, sequence=None, checksum=False):
    flags = 0x2000 * (key is not None) | 0x1000 * (sequence is not None) | 0x8000 * checksum
    head = struct.pack(">HH", flags, kind) + (b"\x12\x34\0\0" if checksum else b"")
    for number in (key, sequence):
        head += b"" if number is None else struct.pack(">I", number)
    return head + inside


def erspan2(session, frame, truncated=False):
    return gre(0x88BE, struct.pack(">HHI", 0x1000 | 7, 0x0800 | 0x400 * truncated | session, 9) + frame, sequence=5)


def erspan3(session, frame, sub=b""):
    return gre(0x22EB, struct.pack(">HHIHH", 0x2000 | 7, session, 123456, 0, 0x8000 | bool(sub)) + sub + frame, sequence=6)


def mpls(labels, inside):
    return b"".join(struct.pack(">I", label << 12 | (i == len(labels) - 1) << 8 | 63) for i, label in enumerate(labels)) + inside


# ---- files ----

def pcap(frames, link=1, snap=None, order="<", nanoseconds=True):
    """`frames`: bytes, or (bytes, original length)."""
    out = struct.pack(order + "IHHiIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, 262144, link)
    for i, frame in enumerate(frames):
        data, original = frame if isinstance(frame, tuple) else (frame, len(frame))
        data = data if snap is None else data[:snap]
        out += struct.pack(order + "IIII", 1000, i * 1000, len(data), original) + data
    return out


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def section(order):
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order, link, *options, snap=0):
    """`options`: (code, bytes)."""
    body = struct.pack(order + "HHI", link, 0, snap)
    for code, value in options:
        body += struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)
    return block(order, 1, body + (bytes(4) if options else b""))


def enhanced(order, number, units, frame):
    return block(order, 6, struct.pack(order + "IIIII", number, units >> 32, units & 0xFFFFFFFF, len(frame), len(frame)) + frame)


def obsolete(order, number, units, frame):
    return block(order, 2, struct.pack(order + "HHIIII", number, 0xFFFF, units >> 32, units & 0xFFFFFFFF, len(frame), len(frame)) +
                 frame)


def simple(order, frame, snap=None):
    return block(order, 3, struct.pack(order + "I", len(frame)) + frame[:snap])


# ---- what is made ----

def make_tags(maker):
    name, tags = "50_four_tags.pcap", [(0x88A8, 1), (0x8100, 2), (0x9100, 3), (0x8100, 4)]
    packet = roce4(write_only())
    frames = [ethernet(0x0800, packet, tags)]
    maker.expect(name, 0x240, "vlan:1.2", data_frames=1, payload_bytes=64)
    maker.write(name, pcap(frames), frames_roce_total=1)
    name, frames = "51_vlans_apart.pcap", []
    for psn, tags in enumerate(([], [(0x8100, 10)], [(0x8100, 20)], [(0x88A8, 10), (0x8100, 20)], [(0x8100, 0)])):
        frames.append(ethernet(0x0800, roce4(write_only(psn=psn)), tags))
    maker.expect(name, 0x240, "", data_frames=2, payload_bytes=128)  # a priority tag, id 0, is none
    for tunnel in ("vlan:10", "vlan:20", "vlan:10.20"):
        maker.expect(name, 0x240, tunnel, data_frames=1, payload_bytes=64)
    maker.write(name, pcap(frames), frames_roce_total=5, flows_total=4)


def make_internet(maker):
    name, frames = "52_fragments.pcap", []
    whole = udp(write_only(4096) + b"\xde\xad\xbe\xef")
    frames.append(ethernet(0x0800, ipv4(whole[:1480], flags=0x2000)))
    frames.append(ethernet(0x0800, ipv4(whole[1480:2960], flags=0x2000 | 185)))
    frames.append(ethernet(0x0800, ipv4(whole[2960:], flags=370)))
    frames.append(ethernet(0x0800, ipv4(whole[:16], flags=0x2000)))  # too small a fragment for the BTH
    for offset, more in ((0, 1), (1480, 0)):
        head = struct.pack(">BBHI", 17, 0, offset | more, 77)
        part = udp(write_only(2048, qpn=0x241) + bytes(4))[offset:][:1480]
        frames.append(ethernet(0x86DD, ipv6(part, following=44, headers=head)))
    atomic = struct.pack(">BBHI", 17, 0, 0, 78)
    frames.append(ethernet(0x86DD, ipv6(udp(write_only(64, qpn=0x241, psn=101) + bytes(4)), following=44, headers=atomic)))
    maker.expect(name, 0x240, data_frames=1, payload_bytes=4096)
    maker.expect(name, 0x241, data_frames=2, payload_bytes=2048 + 64)
    maker.write(name, pcap(frames), frames_first_fragment_total=2, frames_fragment_total=4, frames_roce_total=1)

    name, frames = "53_ipv6_headers.pcap", []
    chains = [[(0, 8)], [(0, 16), (43, 24)], [(60, 8), (44, 8)], [(51, 24)], [(0, 8), (43, 8), (44, 8), (51, 24), (60, 8)]]
    for psn, chain in enumerate(chains):
        headers = b""
        for i, (kind, size) in enumerate(chain):
            following = chain[i + 1][0] if i + 1 < len(chain) else 17
            length = {44: 0, 51: size // 4 - 2}.get(kind, size // 8 - 1)
            padding = b"\x01" + bytes([size - 4]) + bytes(size - 4) if kind in (0, 60) else bytes(size - 2)
            headers += bytes([following, length]) + padding
        frames.append(ethernet(0x86DD, ipv6(udp(write_only(psn=psn) + bytes(4)), following=chain[0][0], headers=headers)))
    frames.append(ethernet(0x86DD, ipv6(udp(write_only(psn=9) + bytes(4)), following=59)))
    maker.expect(name, 0x240, data_frames=5, payload_bytes=320)
    maker.write(name, pcap(frames), frames_roce_total=5, frames_not_roce_total=1)

    name = "54_roce_v1_tagged.pcap"
    frames = [ethernet(0x8915, roce1(write_only(3)), [(0x88A8, 30), (0x8100, 31)])]
    maker.expect(name, 0x240, "vlan:30.31", data_frames=1, payload_bytes=3)
    maker.write(name, pcap(frames), frames_roce_total=1)


def make_tunnels(maker):
    name, frames, expect = "55_vxlan.pcap", [], maker.expect
    inside = [ethernet(0x0800, roce4(write_only(psn=psn))) for psn in range(4)]
    frames.append(ethernet(0x0800, vxlan(5001, inside[0])))
    frames.append(ethernet(0x0800, vxlan(5002, inside[0])))
    frames.append(ethernet(0x0800, vxlan(5001, inside[1], port=8472), [(0x8100, 99)]))
    frames.append(ethernet(0x86DD, vxlan(5001, inside[2], outer=ipv6, traffic=3)))  # marked outside
    frames.append(ethernet(0x0800, vxlan(5001, ethernet(0x86DD, roce6(write_only()), [(0x8100, 7)]))))
    expect(name, 0x240, "vxlan:5001", data_frames=3, payload_bytes=192, ce_marked=1)
    expect(name, 0x240, "vxlan:5002", data_frames=1, payload_bytes=64)
    expect(name, 0x240, "vxlan:5001 vlan:7", data_frames=1, payload_bytes=64)
    maker.write(name, pcap(frames), frames_roce_total=5, flows_total=3)

    name, packet = "56_gre.pcap", roce4(write_only())
    cases = [("gre", gre(0x0800, packet)), ("gre:7", gre(0x0800, packet, key=7)), ("gre:0", gre(0x0800, packet, key=0)),
             ("gre:4294967295", gre(0x0800, packet, key=2**32 - 1, sequence=1, checksum=True)),
             ("gre:8", gre(0x86DD, roce6(write_only()), key=8)), ("gre:9 vlan:3", gre(0x6558, ethernet(0x0800, packet, [(0x8100, 3)]), key=9))]
    frames = [ethernet(0x0800, ipv4(inside, protocol=47)) for _, inside in cases]
    frames.append(ethernet(0x86DD, ipv6(gre(0x0800, roce4(write_only(psn=101))), following=47)))
    for tunnel, _ in cases:
        expect(name, 0x240, tunnel, data_frames=1, payload_bytes=64)
    expect(name, 0x240, "gre", data_frames=1, payload_bytes=64)
    maker.write(name, pcap(frames), frames_roce_total=7, flows_total=6)

    name = "57_mpls.pcap"
    cases = [("mpls:16", [16], packet), ("mpls:1048575", [17, 18, 1048575], roce6(write_only())),
             ("mpls:19", [16, 19], bytes(4) + ethernet(0x0800, packet)), ("mpls:20", [20], ethernet(0x86DD, roce6(write_only()))),
             ("mpls:21 vlan:40", [21], bytes(4) + ethernet(0x0800, packet, [(0x8100, 40)]))]
    frames = [ethernet(0x8847, mpls(labels, inside)) for _, labels, inside in cases]
    frames.append(ethernet(0x8848, mpls([16], packet), [(0x8100, 50)]))
    for tunnel in [tunnel for tunnel, _, _ in cases] + ["mpls:16 vlan:50"]:
        expect(name, 0x240, tunnel, data_frames=1, payload_bytes=64)
    for psn in range(500, 506):  # each direction has a label of its own, and they are one connection all the same
        frames.append(ethernet(0x8847, mpls([23], roce4(write_only(psn=psn, qpn=0x242)))))
        frames.append(ethernet(0x8847, mpls([24], roce4(transport(0x11, 0x243, psn=psn), source=B, destination=A))))
    expect(name, 0x242, "mpls:23", data_frames=6, payload_bytes=6 * 64)
    expect(name, 0x243, "mpls:24", acks=6)
    maker.write(name, pcap(frames), frames_roce_total=18, flows_total=8, pairs_total=1)


def make_mirrors(maker):
    name, expect = "58_erspan.pcap", maker.expect
    frame, switch = ethernet(0x0800, roce4(write_only(256))), [bytes([10, 9, 0, 1]), bytes([10, 9, 0, 2])]
    short = ethernet(0x0800, roce4(write_only(4096)))[:128]
    cases = [("erspan1:10.9.0.1", gre(0x88BE, frame), 0, 256), ("erspan1:10.9.0.2", gre(0x88BE, frame), 1, 256),
             ("erspan2:10.9.0.1/5", erspan2(5, frame), 0, 256), ("erspan2:10.9.0.1/1023", erspan2(1023, frame), 0, 256),
             ("erspan2:10.9.0.2/5", erspan2(5, frame), 1, 256), ("erspan3:10.9.0.1/5", erspan3(5, frame), 0, 256),
             ("erspan3:10.9.0.1/6", erspan3(6, frame, b"\x04" + bytes(7)), 0, 256),
             ("erspan2:10.9.0.1/7", erspan2(7, short, truncated=True), 0, 4096),
             ("erspan2:10.9.0.1/5 vxlan:5001", erspan2(5, ethernet(0x0800, vxlan(5001, frame))), 0, 256),
             ("erspan3:10.9.0.1/5 vlan:8", erspan3(5, ethernet(0x0800, roce4(write_only(256)), [(0x8100, 8)])), 0, 256)]
    frames = [ethernet(0x0800, ipv4(inside, source=switch[who], protocol=47, traffic=3), [(0x8100, 777)]) for _, inside, who, _ in cases]
    for tunnel, _, _, payload in cases:
        expect(name, 0x240, tunnel, data_frames=1, payload_bytes=payload)
    maker.write(name, pcap(frames), frames_roce_total=len(cases), flows_total=len(cases))

    name, frame = "59_too_deep.pcap", ethernet(0x0800, roce4(write_only()))
    deep = [vxlan(1, ethernet(0x0800, vxlan(2, frame))), ipv4(erspan2(1, ethernet(0x0800, ipv4(erspan2(2, frame), protocol=47))), protocol=47),
            ipv4(gre(0x8847, mpls([16], roce4(write_only()))), protocol=47), ipv4(gre(0x0800, vxlan(3, frame)), protocol=47)]
    frames = [ethernet(0x0800, packet) for packet in deep] + [ethernet(0x8847, mpls(range(16, 40), roce4(write_only())))]
    frames.append(ethernet(0x0800, roce4(write_only()), [(0x8100, vlan) for vlan in range(1, 6)]))
    maker.write(name, pcap(frames), frames_too_deep_total=5, frames_not_roce_total=1)


def make_cuts(maker):
    name = "60_snap_in_tunnels.pcap"
    bth = write_only(2048)
    inside = ethernet(0x0800, roce4(bth))
    cases = [("", inside), ("vlan:1.2", ethernet(0x0800, roce4(bth), [(0x88A8, 1), (0x8100, 2)])), ("vxlan:5", ethernet(0x0800, vxlan(5, inside))),
             ("erspan2:10.0.0.1/5", ethernet(0x0800, ipv4(erspan2(5, inside), protocol=47))), ("gre", ethernet(0x0800, ipv4(gre(0x0800, roce4(bth)), protocol=47))),
             ("mpls:16", ethernet(0x8847, mpls([16], roce4(bth))))]
    for tunnel, _ in cases:
        maker.expect(name, 0x240, tunnel, data_frames=1, payload_bytes=2048)
    frames = [(frame[:128], len(frame)) for _, frame in cases] + [(frame[:100], len(frame)) for tunnel, frame in cases if tunnel[:2] in ("vx", "er")]
    maker.write(name, pcap(frames), frames_roce_total=6, frames_cut_total=2)
    name = "61_jumbo.pcap"
    frames = [ethernet(0x0800, roce4(transport(opcode, 0x240, psn, size, ask=3 * 8192 + 5)))
              for psn, (opcode, size) in enumerate(((0x06, 8192), (0x07, 8192), (0x07, 8192), (0x08, 5)))]
    maker.expect(name, 0x240, data_frames=4, payload_bytes=3 * 8192 + 5)
    maker.write(name, pcap([(frame[:96], len(frame)) for frame in frames]), frames_roce_total=4)


def make_opcodes(maker):
    bases = (("rc", 0x00, [*range(0x15), 0x16, 0x17, 0x1C, 0x1D]), ("uc", 0x20, range(0x0C)), ("rd", 0x40, [*range(0x16), 0x1C]),
             ("ud", 0x60, (4, 5)), ("xrc", 0xA0, [*range(0x15), 0x16, 0x17]), ("cnp", 0x80, (0, 1)))
    for i, (text, base, operations) in enumerate(bases):
        name, frames = f"{62 + i}_opcodes_{text}.pcap", []
        for operation in operations:
            opcode, qpn = base | operation, 0x1000 + (base | operation)
            goes_on = operation in (0x00, 0x01, 0x06, 0x07, 0x0D, 0x0E)
            size = 0 if operation in WITHOUT_PAYLOAD else 8 if operation == 0x1D else 1024 if goes_on else 61 + operation % 4
            if base == 0x80:
                frames.append(ethernet(0x0800, roce4(transport(opcode, qpn, payload=16))))
                maker.expect(name, qpn, cnps=1)
                continue
            frames.append(ethernet(0x0800, roce4(transport(opcode, qpn, payload=size))))
            if operation in (0x11, 0x12):
                maker.expect(name, qpn, acks=1)
            else:
                maker.expect(name, qpn, data_frames=1, payload_bytes=size)
        maker.write(name, pcap(frames), frames_roce_total=len(frames))
    name = "68_read_back.pcap"
    frames = [ethernet(0x0800, roce4(transport(0x0C, 0x240, 100, ask=9000)))]
    for psn, (opcode, size) in enumerate(((0x0D, 4096), (0x0E, 4096), (0x0F, 808))):
        frames.append(ethernet(0x0800, roce4(transport(opcode, 0x241, 100 + psn, size), source=B, destination=A)))
    maker.expect(name, 0x240, data_frames=1)
    maker.expect(name, 0x241, data_frames=3, payload_bytes=9000)
    maker.write(name, pcap(frames), frames_roce_total=4)


def make_impossible(maker):
    name = "69_impossible.pcap"
    opcodes = [0x15, 0x18, 0x1E, 0x2C, 0x56, 0x60, 0x66, 0x82, 0xB5, 0xC0, 0xFF]
    frames = [ethernet(0x0800, roce4(bytes([opcode]) + write_only()[1:])) for opcode in opcodes]
    lengths = [transport(0x11, 1, payload=4), transport(0x06, 1, payload=0), transport(0x07, 1, payload=4095),
               write_only(61, pad=0), transport(0x1D, 1, payload=12), write_only(0)[:20], transport(0x0C, 1, payload=64)]
    frames += [ethernet(0x0800, roce4(bth)) for bth in lengths]
    frames.append(ethernet(0x0800, ipv4(udp(write_only(64) + bytes(4), length=400))))  # longer than IP says
    frames.append(ethernet(0x0800, ipv4(udp(write_only(64) + bytes(4), length=400), total=500)))  # and than there is
    frames.append(ethernet(0x0800, roce4(write_only(version=1))))
    frames += [ethernet(0x0800, roce4(transport(0x11, 1, syndrome=syndrome))) for syndrome in (0x40, 0x80, 0xE0)]
    maker.write(name, pcap(frames), frames_unknown_opcode_total=len(opcodes), frames_bad_length_total=len(lengths) + 2,
                frames_bad_version_total=1, frames_unknown_syndrome_total=3)


def make_infiniband(maker):
    packets = [infiniband(write_only(1024)), infiniband(write_only(33, psn=101)), infiniband(transport(0x11, 0x241), lids=(9, 5)),
               infiniband(transport(0x80, 0x241, payload=16), lids=(9, 5)), infiniband(transport(0x64, 0x300, payload=256), has_grh=True),
               infiniband(write_only(64, psn=102, congestion=0x80))]
    for name, link in (("70_infiniband_erf.pcap", 197), ("71_infiniband.pcap", 247)):
        maker.expect(name, 0x240, data_frames=3, payload_bytes=1024 + 33 + 64, ce_marked=1)
        maker.expect(name, 0x241, acks=1, cnps=1)
        maker.expect(name, 0x300, data_frames=1, payload_bytes=256)
        if link == 197:
            records = [struct.pack("<Q", i << 32) + struct.pack(">BBHHH", 21 | 0x80 * (i == 1), 4, 16 + 8 * (i == 1) + len(packet), 0, len(packet)) +
                       bytes(8 * (i == 1)) + packet for i, packet in enumerate(packets)]
            records.append(struct.pack("<Q", 9 << 32) + struct.pack(">BBHHH", 2, 4, 18 + 60, 0, 64) + bytes(62))
            maker.write(name, pcap(records, link), frames_roce_total=6, frames_link_type_total=1)
        else:
            maker.write(name, pcap(packets, link), frames_roce_total=6)


def make_files(maker):
    packet = [roce4(write_only(psn=psn)) for psn in range(20)]
    frame = [ethernet(0x0800, one) for one in packet]
    sll = [bytes([0, 0, 0, 1, 0, 6]) + b"\x02\0\0\0\0\x01\0\0" + struct.pack(">H", 0x0800) + one for one in packet]
    sll2 = [struct.pack(">HHIHBB", 0x0800, 0, 1, 1, 0, 6) + b"\x02\0\0\0\0\x01\0\0" + one for one in packet]
    links = (1, 12, 14, 101, 228, 113, 276, 1, 147, 229)
    for order, name in (("<", "72_link_types.pcapng"), (">", "73_link_types_be.pcapng")):
        shapes = [frame[0], packet[1], packet[2], packet[3], packet[4], sll[5], sll2[6], frame[7], b"whatever", roce6(write_only(qpn=0x241))]
        data = section(order) + b"".join(interface(order, link) for link in links)
        data += b"".join(enhanced(order, i, 10**6 * i, shape) for i, shape in enumerate(shapes))
        maker.expect(name, 0x240, data_frames=8, payload_bytes=8 * 64)
        maker.expect(name, 0x241, data_frames=1, payload_bytes=64)
        maker.write(name, data, frames_roce_total=9, frames_link_type_total=1)
    for i, link in enumerate((12, 14, 228)):
        name = f"74_raw_ip_{link}.pcap"
        maker.expect(name, 0x240, data_frames=2, payload_bytes=128)
        maker.write(name, pcap(packet[:2], link, order="<>"[i % 2]), frames_roce_total=2)
    name = "75_sll2.pcap"
    maker.expect(name, 0x240, data_frames=2, payload_bytes=128)
    maker.write(name, pcap(sll2[:2], 276, nanoseconds=False), frames_roce_total=2)

    name, data, psn = "76_times.pcapng", b"", 0
    for order in "<>":  # each frame 1 s after the one before, however the file counts
        data += section(order)
        resolutions = [bytes([value]) for value in (0, 3, 6, 9, 12, 0x80, 0x8A, 0x94, 0x9E)]
        for i, resolution in enumerate(resolutions):
            data += interface(order, 1, (9, resolution), (14, struct.pack(order + "q", 100)), (2, b"eth\0"))
            units = 2**(resolution[0] & 127) if resolution[0] & 128 else 10**resolution[0]
            data += (obsolete if i == 2 else enhanced)(order, i, (psn + 1) * units, frame[psn])
            psn += 1
    maker.expect(name, 0x240, data_frames=18, payload_bytes=18 * 64)
    maker.write(name, data, frames_roce_total=18, frames_time_backwards_total=0)
    name = "77_simple_snapped.pcapng"
    maker.expect(name, 0x240, data_frames=2, payload_bytes=128)
    maker.write(name, section("<") + interface("<", 1, snap=80) + simple("<", frame[0], 80) + simple("<", frame[1], 80), frames_roce_total=2)
    name = "78_fcs.pcapng"
    trailed = [one + b"\x11\x22\x33\x44" for one in frame]
    maker.expect(name, 0x240, data_frames=2, payload_bytes=128)
    maker.write(name, section("<") + interface("<", 1, (13, b"\x04")) + enhanced("<", 0, 1, trailed[0]) + enhanced("<", 0, 2, trailed[1]),
                frames_roce_total=2)
    name = "79_fcs.pcap"
    maker.expect(name, 0x240, data_frames=2, payload_bytes=128)
    maker.write(name, pcap(trailed[:2], 1 | 1 << 26 | 2 << 28), frames_roce_total=2)


def make_icrc(maker):
    """Expected with --verify-icrc. The last bit but the ICRC's own four bytes is wrong in the bad ones."""
    name, frames = "80_icrc.pcap", []
    bth = [transport(0x0A, 0x241 if psn in (1, 2) else 0x240, psn, 700 + psn) for psn in range(7)]
    right = [ethernet(0x0800, roce4(bth[0])), ethernet(0x86DD, roce6(bth[1])), ethernet(0x8915, roce1(bth[2])),
             ethernet(0x0800, vxlan(9, ethernet(0x86DD, roce6(bth[3]))))]
    for psn, frame in enumerate(right):
        frames += [frame, frame[:-5] + bytes([frame[-5] ^ 1]) + frame[-4:]]
    passed = bytearray(ethernet(0x0800, roce4(bth[4])))  # routed, marked, and with other checksums: still right
    passed[15], passed[22], passed[24:26], passed[40:42] = 0xFF, 3, b"\x12\x34", b"\x56\x78"
    frames += [bytes(passed), (ethernet(0x0800, roce4(bth[5]))[:128], 14 + 20 + 8 + 12 + 16 + 708 + 4)]
    frames.append(ethernet(0x0800, ipv4(udp(bth[6] + bytes(4)), options=b"\x01\x01\x01\x00")))
    for qpn, tunnel, psns in ((0x240, "", (0, 4, 5, 6)), (0x241, "", (1, 2)), (0x240, "vxlan:9", (3,))):
        maker.expect(name, qpn, tunnel, data_frames=len(psns), payload_bytes=sum(700 + psn for psn in psns),
                     ce_marked=sum(psn == 4 for psn in psns))
    maker.write(name, pcap(frames), frames_roce_total=5, frames_bad_icrc_total=4, frames_icrc_unverified_total=2)


def main():
    maker = Maker(sys.argv[1])
    for make in (make_tags, make_internet, make_tunnels, make_mirrors, make_cuts, make_opcodes, make_impossible, make_infiniband,
                 make_files, make_icrc):
        make(maker)
    maker.write_table()


if __name__ == "__main__":
    main()
