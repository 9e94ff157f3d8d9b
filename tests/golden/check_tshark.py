#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_tshark.py QPSCOPE-NIC: its data frames and payload bytes of every file in frames/ against tshark's dissection."""
import collections
import concurrent.futures
import os
import shutil
import subprocess
import sys

import tap

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frames")
FIELDS = ["infiniband.bth.destqp", "infiniband.bth.opcode", "infiniband.bth.padcnt", "udp.length", "data.len",
          "frame.len", "frame.cap_len", "erspan.truncated"]
# What tshark does not find by itself: VXLAN on Linux's own port, and what an MPLS label stands for.
DECODE_AS = ["udp.port==8472,vxlan", "mpls.label==19,pwethcw", "mpls.label==20,pwethnocw", "mpls.label==21,pwethcw"]
# Files that tshark cannot be asked about: cut before the BTH's end; no RoCE, or none that we count and tshark does; a link
# type that tshark 4.0 does not read.
OTHER = {"06_snap50_cut_in_bth.pcap", "26_udp4791_not_roce.pcap", "31_zero.pcap", "32_short_hdr.pcap", "59_too_deep.pcap",
         "69_impossible.pcap", "71_infiniband.pcap"}
# Extension headers that tshark 4.0 does not take off the payload rightly: RDETH (it begins 8 bytes late), XRCETH, and those
# of opcodes that it does not know. There only frames are compared.
BYTES_UNKNOWN = {"64_opcodes_rd.pcap", "66_opcodes_xrc.pcap"}
OPCODES_UNKNOWN = {0x1C, 0x1D}
NOT_DATA = {0x11, 0x12, 0x51, 0x52, 0x80, 0x81, 0xB1, 0xB2}
RETH = {0x06, 0x0A, 0x0B, 0x0C}
IMMEDIATE = {0x03, 0x05, 0x09, 0x0B}


def payload(opcode, pad, udp_length, data_length, is_cut):
    """tshark's own count of the payload where all of the frame is there, else what its lengths leave over."""
    if not is_cut:
        return int(data_length or 0) - pad
    return int(udp_length) - 8 - 12 - 4 - pad - (16 if opcode in RETH else 0) - (4 if opcode in IMMEDIATE else 0)


def ask_tshark(path):
    command = ["tshark", "-r", path, "--disable-protocol", "tftp", "-T", "fields", "-E", "occurrence=l"]
    for rule in DECODE_AS:
        command += ["-d", rule]
    for field in FIELDS:
        command += ["-e", field]
    totals, has_bytes = collections.Counter(), os.path.basename(path) not in BYTES_UNKNOWN
    for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
        qpn, opcode, pad, udp_length, data_length, length, captured, truncated = line.split("\t")
        if not qpn:
            continue
        totals[int(qpn, 16), "all"] += 1
        if int(opcode) in NOT_DATA:
            continue
        totals[int(qpn, 16), "frames"] += 1
        if has_bytes and int(opcode) not in OPCODES_UNKNOWN:
            totals[int(qpn, 16), "bytes"] += payload(int(opcode), int(pad), udp_length, data_length,
                                                     length != captured or truncated == "1")
    return totals


def ask_nic(program, path):
    totals = collections.Counter()
    for row in tap.run_nic(program, "--file", path)[1]["flow"]:
        qpn = row["destination_qpn"]
        answers = row["acks"] + row["naks"] + row["rnr_naks"] + row["cnps"]
        totals[qpn, "all"] += row["data_frames"] + answers
        totals[qpn, "frames"] += row["data_frames"]
        totals[qpn, "bytes"] += row["payload_bytes"]
    return totals


def compare(name):
    path = os.path.join(HERE, name)
    theirs, ours = ask_tshark(path), ask_nic(sys.argv[1], path)
    wanted = {key: ours[key] for key in ours if key[1] != "bytes" or key in theirs}
    if not sum(theirs.values()) and sum(ours.values()):
        return [f"tshark finds nothing, qpscope-nic {ours}"]
    return [f"{key}: tshark {theirs[key]}, qpscope-nic {ours[key]}" for key in sorted(set(theirs) | set(wanted))
            if theirs[key] != ours[key]]


def main():
    if shutil.which("tshark") is None:
        tap.skip("tshark", "tshark is not installed (package tshark)")
        return tap.finish()
    names = [name for name in sorted(set(os.listdir(HERE)) - OTHER) if name.endswith((".pcap", ".pcapng"))]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for name, findings in zip(names, pool.map(compare, names)):
            tap.check(name, findings)
    return tap.finish()


sys.exit(main())
