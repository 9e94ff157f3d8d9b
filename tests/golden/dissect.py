# SPDX-License-Identifier: BSD-2-Clause
"""Capture files and the headers within, read for independent.py by other means than the C code's: all of a file is in memory, headers
are peeled off by functions that call each other, and what is too short raises. Written from the specifications and from what
doc/man/qpscope-nic.8 promises."""
import collections
import ipaddress
import struct

Packet = collections.namedtuple("Packet", "time link data original")
# What is known of a frame by the time its BTH is met.
Way = collections.namedtuple("Way", "mirror tunnel vlans ends dscp ecn start stop limit partial")

KNOWN = {0x00: set(range(0x18)) - {0x15} | {0x1C, 0x1D}, 0x20: set(range(0x0C)), 0x40: set(range(0x16)) | {0x1C},
         0x60: {4, 5}, 0xA0: set(range(0x18)) - {0x15}}
ANSWERING = {0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12}  # from the responder: no DETH, no XRCETH
EXTENSIONS = [  # name, bytes, which of opcodes 0x00 to 0x1f have it; in the order on the wire
    ("flush", 4, {0x1C}),
    ("reth", 16, {0x06, 0x0A, 0x0B, 0x0C, 0x1C, 0x1D}),
    ("atomic", 28, {0x13, 0x14}),
    ("aeth", 4, {0x0D, 0x0F, 0x10, 0x11, 0x12}),
    ("atomicack", 8, {0x12}),
    ("immediate", 4, {0x03, 0x05, 0x09, 0x0B}),
    ("invalidate", 4, {0x16, 0x17}),
]
NO_PAYLOAD = {0x0C, 0x11, 0x12, 0x13, 0x14, 0x15, 0x1C}
GOES_ON = {0x00, 0x01, 0x06, 0x07, 0x0D, 0x0E}


class LeftOut(Exception):
    """The frame is not counted in any flow."""


# ---- files ----

def without(frame, original, fcs):
    """(frame, original length) without a frame check sequence."""
    original = max(original, len(frame)) - fcs
    return frame[:max(0, original)], original


def read_pcap(data):
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    scale = 1 if data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d") else 1000
    link = struct.unpack(order + "I", data[20:24])[0]
    fcs = (link >> 28) * 2 if link >> 26 & 1 else 0
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, captured, original = struct.unpack(order + "IIII", data[at:at + 16])
        if at + 16 + captured > len(data):
            break
        yield Packet(seconds * 10**9 + fraction * scale, link & 0xFFFF, *without(data[at + 16:at + 16 + captured], original, fcs))
        at += 16 + captured


def options(body, order):
    at = 0
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        if code == 0:
            return
        yield code, body[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def read_interface(body, order):
    link, _, snap = struct.unpack_from(order + "HHI", body)
    units, offset, fcs = 10**6, 0, 0
    for code, value in options(body[8:], order):
        if code == 9:
            units = 2**(value[0] & 127) if value[0] & 128 else 10**value[0]
        if code == 14:
            offset = struct.unpack(order + "q", value)[0]
        if code == 13:
            fcs = value[0]
    return link, units, offset, snap, fcs


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
            interfaces.append(read_interface(body, order))
        elif kind in (2, 6):
            interface, high, low, captured, original = struct.unpack(order + ("HxxIIII" if kind == 2 else "IIIII"), body[:20])
            link, units, offset, _, fcs = interfaces[interface]
            yield Packet((high << 32 | low) * 10**9 // units + offset * 10**9, link,
                         *without(body[20:20 + captured], original, fcs))
        elif kind == 3:
            link, _, _, snap, fcs = interfaces[0]
            original = struct.unpack(order + "I", body[:4])[0]
            yield Packet(None, link, *without(body[4:4 + (min(original, snap) if snap else original)], original, fcs))


def read_packets(data):
    return read_pcapng(data) if data[:4] == b"\x0a\x0d\x0d\x0a" else read_pcap(data)


# ---- headers; each returns (way, where the BTH begins, bytes from there to the ICRC's end, UDP source port) ----

def field(form, data, at):
    return struct.unpack_from(">" + form, data, at)


def typed(ethertype, data, at, way):
    vlans = []
    while ethertype in (0x8100, 0x88A8, 0x9100) and len(vlans) < 4:
        tag, ethertype = field("HH", data, at)
        vlans.append(tag & 0xFFF)
        at += 4
    way = way._replace(vlans=tuple(vlans[:2]))
    if ethertype in (0x8847, 0x8848):
        return mpls(data, at, way)
    if ethertype == 0x8915:
        return grh(data, at, way)
    if ethertype in (0x0800, 0x86DD):
        return internet({0x0800: 4, 0x86DD: 6}[ethertype], data, at, way)
    raise LeftOut("no RoCE")


def ethernet(data, at, way):
    return typed(*field("H", data, at + 12), data, at + 14, way)


def entered(way, tunnel):
    if way.tunnel:
        raise LeftOut("too deep")
    return way._replace(tunnel=tunnel)


def mpls(data, at, way):
    for depth in range(16):
        label, = field("I", data, at + 4 * depth)
        if label & 0x100:
            break
    else:
        raise LeftOut("too deep")
    at += 4 * (depth + 1)
    way = entered(way, f"mpls:{label >> 12}")
    if data[at] >> 4 in (4, 6):
        return internet(data[at] >> 4, data, at, way)
    return ethernet(data, at + 4 if field("H", data, at) == (0,) else at, way)  # a control word begins with 16 zeros


def internet(version, data, at, way):
    if data[at] >> 4 != version:
        raise LeftOut("no IP")
    fragment, more = 0, 0
    if version == 4:
        begin = at + (data[at] & 15) * 4
        stop = at + field("H", data, at + 2)[0]
        protocol, traffic = data[at + 9], data[at + 1]
        fragment, more = field("H", data, at + 6)[0] & 0x1FFF, field("H", data, at + 6)[0] >> 13 & 1
        ends = [ipaddress.ip_address(b"\0" * 10 + b"\xff\xff" + data[i:i + 4]) for i in (at + 12, at + 16)]
    else:
        begin, stop = at + 40, at + 40 + field("H", data, at + 4)[0]
        protocol, traffic = data[at + 6], field("H", data, at)[0] >> 4 & 0xFF
        ends = [ipaddress.ip_address(data[i:i + 16]) for i in (at + 8, at + 24)]
        while protocol in (0, 43, 44, 51, 60) and not fragment:
            size = {44: 8, 51: data[begin + 1] * 4 + 8}.get(protocol, data[begin + 1] * 8 + 8)
            if protocol == 44:
                fragment, more = field("H", data, begin + 2)[0] >> 3, data[begin + 3] & 1
            protocol, begin = data[begin], begin + size
    if protocol not in (17, 47) or fragment:
        raise LeftOut("no UDP, or not the beginning of it")
    way = way._replace(ends=tuple(ends), dscp=traffic >> 2, ecn=3 if way.ecn == 3 else traffic & 3,
                       stop=stop if way.stop is None else way.stop, partial=way.partial or bool(more),
                       limit=None if more else stop if way.limit is None else min(stop, way.limit))
    data = data[:stop]
    return gre(data, begin, way) if protocol == 47 else udp(data, begin, way)


def udp(data, at, way):
    sport, dport, length, _ = field("HHHH", data, at)
    if dport in (4789, 8472):
        flags, vni = field("B3xI", data, at + 8)
        if not flags & 8:
            raise LeftOut("no VXLAN")
        return ethernet(data, at + 16, entered(way, f"vxlan:{vni >> 8}"))
    if dport != 4791 or length < 8 or (way.limit is not None and at + length > way.limit):
        raise LeftOut("no RoCE")
    return way, at + 8, length - 8, sport


def gre(data, at, way):
    flags, kind = field("HH", data, at)
    if flags & 0x4007:
        raise LeftOut("no GRE that is known")
    at += 4 + 4 * bool(flags & 0x8000)
    key = f"gre:{field('I', data, at)[0]}" if flags & 0x2000 else "gre"
    at += 4 * bool(flags & 0x2000) + 4 * bool(flags & 0x1000)
    if kind in (0x0800, 0x86DD):
        return internet({0x0800: 4, 0x86DD: 6}[kind], data, at, entered(way, key))
    if kind in (0x8847, 0x8848):
        return mpls(data, at, entered(way, key))
    if kind == 0x6558:
        return ethernet(data, at, entered(way, key))
    if kind in (0x88BE, 0x22EB):
        return erspan(kind, flags, data, at, way)
    raise LeftOut("no RoCE")


def erspan(kind, flags, data, at, way):
    address, truncated, name = way.ends[0].ipv4_mapped, False, "erspan1"
    if way.mirror or address is None:
        raise LeftOut("too deep")
    mirror = str(address)
    if kind == 0x22EB or flags & 0x1000:
        word, = field("H", data, at + 2)
        name = "erspan3" if kind == 0x22EB else "erspan2"
        if data[at] >> 4 != (2 if kind == 0x22EB else 1):
            raise LeftOut("no ERSPAN")
        mirror, truncated = f"{mirror}/{word & 0x3FF}", bool(word & 0x400)
        at += 8 if name == "erspan2" else 20 if data[at + 11] & 1 else 12
    known = way.limit is not None and not truncated
    return ethernet(data, at, way._replace(mirror=f"{name}:{mirror}", ecn=0, start=at,
                                           stop=way.limit if known else None, limit=way.limit if known else None))


def grh(data, at, way):
    length, protocol = field("HB", data, at + 4)
    if data[at] >> 4 != 6 or protocol != 0x1B or (way.limit is not None and at + 40 + length > way.limit):
        raise LeftOut("no RoCE v1")
    ends = tuple(ipaddress.ip_address(data[i:i + 16]) for i in (at + 8, at + 24))
    way = way._replace(ends=ends, ecn=3 if way.ecn == 3 else 0, dscp=field("H", data, at)[0] >> 6 & 63,
                       stop=at + 40 + length if way.stop is None else way.stop)
    return way, at + 40, length, 0


def infiniband(data, at, way):
    following, destination, words, source = field("xBHHH", data, at)
    size = (words & 0x7FF) * 4
    if following & 3 < 2 or at + size > way.limit:
        raise LeftOut("no IBA transport")
    way = way._replace(ends=tuple(ipaddress.ip_address(b"\0" * 14 + lid.to_bytes(2, "big")) for lid in (source, destination)),
                       start=at, stop=at + size, limit=at + size)
    way, at, length, sport = grh(data, at + 8, way) if following & 3 == 3 else (way, at + 8, size - 8, 0)
    return way._replace(ecn=3 if data[at + 4] & 0x80 else 0), at, length, sport


def erf(data, way):
    if data[8] & 127 != 21:
        raise LeftOut("no InfiniBand")
    at, more = 16, data[8] & 128
    while more:
        more, at = data[at] & 128, at + 8
    return infiniband(data, at, way._replace(limit=at + field("H", data, 14)[0]))


def find_bth(packet):
    """The same four, for a packet of a file."""
    link, data = packet.link, packet.data
    way = Way("", "", (), None, 0, 0, 0, packet.original, max(packet.original, len(data)), False)
    if link == 1:
        return ethernet(data, 0, way)
    if link in (12, 14, 101, 228, 229):
        return internet(6 if data[0] >> 4 == 6 else 4, data, 0, way)
    if link == 113:
        return typed(*field("H", data, 14), data, 16, way)
    if link == 276:
        return typed(*field("H", data, 0), data, 20, way)
    if link == 197:
        return erf(data, way)
    if link == 247:
        return infiniband(data, 0, way)
    raise LeftOut("a link type that is not read")


def tunnel_text(way):
    vlans = way.vlans if any(way.vlans) else ()
    vlan = "vlan:" + ".".join(str(vlan) for vlan in vlans) if vlans else ""
    return " ".join(part for part in (way.mirror, way.tunnel, vlan) if part)


def either_way(tunnel):
    """What both directions of a connection have in common: all but an MPLS label, which the receiving side chooses."""
    return " ".join("mpls" if part.startswith("mpls:") else part for part in tunnel.split(" "))


# ---- the BTH ----

def extensions(opcode, data, at):
    """({name: bytes, or None where they were cut away}, bytes of all of them)."""
    base, code, begin, fields = opcode & 0xE0, opcode & 0x1F, at, {}
    at += 4 if base == 0x40 else 0
    if code not in ANSWERING:
        at += {0x40: 8, 0x60: 8, 0xA0: 4}.get(base, 0)
    for name, size, codes in EXTENSIONS:
        if code in codes:
            fields[name] = data[at:at + size] if at + size <= len(data) else None
            at += size
    return fields, at - begin


def payload_of(opcode, length, header, pad):
    payload, code = length - header - pad - 4, opcode & 0x1F
    if length % 4 or payload < 0:
        raise LeftOut("lengths contradict")
    if opcode & 0xFE == 0x80:
        return 0
    if code in NO_PAYLOAD and payload + pad or code in GOES_ON and (pad or not payload) or code == 0x1D and payload != 8:
        raise LeftOut("lengths contradict")
    return payload


def transport(data, at, length):
    """(opcode, QPN, PSN, fields, payload bytes) of a BTH."""
    if length < 16:
        raise LeftOut("too short")
    opcode, flags, qpn, psn = field("BBxxII", data, at)
    if flags & 15 or (opcode & 0xFE != 0x80 and opcode & 0x1F not in KNOWN.get(opcode & 0xE0, set())):
        raise LeftOut("no such transport")
    fields, size = ({}, 0) if opcode & 0xFE == 0x80 else extensions(opcode, data, at + 12)
    payload = payload_of(opcode, length, 12 + size, flags >> 4 & 3)
    if opcode & 0x1F in (0x11, 0x12) and fields and (fields["aeth"] is None or fields["aeth"][0] >> 5 not in (0, 1, 3)):
        raise LeftOut("no acknowledgement that is known")
    return opcode, qpn & 0xFFFFFF, psn & 0xFFFFFF, fields, payload
