#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_expected.py QPSCOPE-NIC: its counts of every file in frames/ against expected.tsv, column by column, and what it
says about files that are broken."""
import collections
import csv
import os
import sys

import tap

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frames")
COLUMNS = {
    "data_frames": "data_frames",
    "payload_bytes": "payload_bytes",
    "acks": "acks",
    "naks": "naks",
    "rnr_naks": "rnr_naks",
    "cnps": "cnps",
    "ce_marked": "marked_frames",
    "repeated_psn": "repeated_frames",
    "late_first_seen": "late_frames",
}
# Exit code 1 and one line that says this.
BROKEN = {
    "29_cut_mid_record.pcap": "cut at byte",
    "31_zero.pcap": "is empty",
    "32_short_hdr.pcap": "cut at byte",
    "45_ng_truncated.pcapng": "cut at byte",
}
COUNTERS = {
    "06_snap50_cut_in_bth.pcap": {"frames_cut_total": 9},
    "26_udp4791_not_roce.pcap": {"frames_bad_length_total": 2, "frames_unknown_opcode_total": 1},
}
RETRANSMITTED = {"08_gobackn.pcap": (3, 3 * 4096), "09_timeout_full_retx.pcap": (8, 8 * 4096), "12_rnr.pcap": (1, 4096)}


def compare_flows(expected, flows):
    found = {row["destination_qpn"]: row for row in flows}
    wanted = {int(row["dst_qpn"], 16): row for row in expected if row["dst_qpn"] != "-"}
    if set(found) != set(wanted) or len(flows) != len(found):
        yield f"destination QPNs {sorted(found)} instead of {sorted(wanted)}"
        return
    for qpn, row in wanted.items():
        for column, key in COLUMNS.items():
            if found[qpn][key] != int(row[column]):
                yield f"QPN {qpn:#x}: {key} is {found[qpn][key]}, not {row[column]}"


def compare(name, expected, program):
    code, rows, errors = tap.run_nic(program, "--file", os.path.join(HERE, name))
    yield from compare_flows(expected, rows["flow"])
    if code != (1 if name in BROKEN else 0):
        yield f"exit code {code}"
    lines = errors.strip().splitlines()
    if name in BROKEN and (len(lines) != 1 or BROKEN[name] not in lines[0]):
        yield f"instead of one clear line: {errors!r}"
    if name not in BROKEN and lines:
        yield f"unexpected: {errors!r}"
    for counter, total in COUNTERS.get(name, {}).items():
        if rows["summary"][0]["counters"][counter] != total:
            yield f"{counter} is {rows['summary'][0]['counters'][counter]}, not {total}"
    if name in RETRANSMITTED:
        row = next(row for row in rows["flow"] if row["destination_qpn"] == 0x240)
        if (row["retransmitted_frames"], row["retransmitted_bytes"]) != RETRANSMITTED[name]:
            yield f"retransmitted {row['retransmitted_frames']} frames, {row['retransmitted_bytes']} bytes"


def main():
    expected = collections.defaultdict(list)
    with open(os.path.join(HERE, "expected.tsv")) as table:
        for row in csv.DictReader(table, delimiter="\t"):
            expected[row["file"]].append(row)
    for name in sorted(expected):
        tap.check(name, list(compare(name, expected[name], sys.argv[1])))
    code, rows, errors = tap.run_nic(sys.argv[1], "--file", "/nonexistent.pcap")
    tap.check("a file that is not there", [] if code == 1 and errors.count("\n") == 1 and not rows["flow"] else [errors])
    return tap.finish()


sys.exit(main())
