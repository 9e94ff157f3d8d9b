#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_tshark.py QPSCOPE-NIC: its data frames and payload bytes of every file in frames/ against tshark's dissection."""
import collections
import os
import shutil
import subprocess
import sys

import tap

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frames")
FIELDS = ["infiniband.bth.destqp", "infiniband.bth.opcode", "infiniband.bth.padcnt", "udp.length", "data.len",
          "frame.len", "frame.cap_len"]
# Files whose frames tshark cannot be asked about: cut before the BTH's end, or no RoCE.
OTHER = {"06_snap50_cut_in_bth.pcap", "26_udp4791_not_roce.pcap", "31_zero.pcap", "32_short_hdr.pcap"}
NOT_DATA = {0x11, 0x12, 0x81}
RETH = {0x06, 0x0A, 0x0B, 0x0C}
IMMEDIATE = {0x03, 0x05, 0x09, 0x0B}


def payload(opcode, pad, udp_length, data_length, is_cut):
    """tshark's own count of the payload where all of the frame is there, else what its lengths leave over."""
    if not is_cut:
        return int(data_length or 0) - pad
    return int(udp_length) - 8 - 12 - 4 - pad - (16 if opcode in RETH else 0) - (4 if opcode in IMMEDIATE else 0)


def ask_tshark(path):
    command = ["tshark", "-r", path, "--disable-protocol", "tftp", "-T", "fields"]
    for field in FIELDS:
        command += ["-e", field]
    totals = collections.Counter()
    for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
        qpn, opcode, pad, udp_length, data_length, length, captured = line.split("\t")
        if not qpn:
            continue
        totals[int(qpn, 16), "all"] += 1
        if int(opcode) in NOT_DATA:
            continue
        totals[int(qpn, 16), "frames"] += 1
        totals[int(qpn, 16), "bytes"] += payload(int(opcode), int(pad), udp_length, data_length, length != captured)
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


def main():
    if shutil.which("tshark") is None:
        tap.skip("tshark", "tshark is not installed (package tshark)")
        return tap.finish()
    for name in sorted(set(os.listdir(HERE)) - OTHER):
        if not name.endswith((".pcap", ".pcapng")):
            continue
        path = os.path.join(HERE, name)
        theirs, ours = ask_tshark(path), ask_nic(sys.argv[1], path)
        tap.check(name, [f"{key}: tshark {theirs[key]}, qpscope-nic {ours[key]}" for key in sorted(theirs | ours)
                         if theirs[key] != ours[key]])
    return tap.finish()


sys.exit(main())
