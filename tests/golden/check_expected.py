#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_expected.py QPSCOPE-NIC: its counts of every file in frames/ against expected.tsv and made.tsv, column by column, what it
says about files that are broken, and that make_frames.py makes the files that it is said to have made."""
import collections
import csv
import filecmp
import os
import subprocess
import sys
import tempfile

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
# Exit code 0 and one line that says this.
WARNED = {"72_link_types.pcapng": "link type 147 is not read", "73_link_types_be.pcapng": "link type 147 is not read"}
COUNTERS = {
    "06_snap50_cut_in_bth.pcap": {"frames_cut_total": 9},
    "26_udp4791_not_roce.pcap": {"frames_bad_length_total": 2, "frames_unknown_opcode_total": 1},
}
OPTIONS = {"80_icrc.pcap": ["--verify-icrc"]}
RETRANSMITTED = {"08_gobackn.pcap": (3, 3 * 4096), "09_timeout_full_retx.pcap": (8, 8 * 4096), "12_rnr.pcap": (1, 4096)}


def compare_flows(expected, flows):
    has_tunnel = "tunnel" in expected[0]
    found = {(row["destination_qpn"], row["tunnel"] if has_tunnel else None): row for row in flows}
    wanted = {(int(row["dst_qpn"], 16), row.get("tunnel")): row for row in expected if row["dst_qpn"] != "-"}
    if set(found) != set(wanted) or len(flows) != len(found):
        yield f"destination QPNs and tunnels {set(found) - set(wanted)} too many, {set(wanted) - set(found)} missing"
        return
    for flow, row in wanted.items():
        for column, key in COLUMNS.items():
            if found[flow][key] != int(row[column]):
                yield f"{flow}: {key} is {found[flow][key]}, not {row[column]}"


def compare_counters(wanted, counters):
    for counter, total in wanted.items():
        if counters[counter] != total:
            yield f"{counter} is {counters[counter]}, not {total}"


def compare(name, expected, program):
    code, rows, errors = tap.run_nic(program, "--file", os.path.join(HERE, name), *OPTIONS.get(name, []))
    yield from compare_flows(expected, rows["flow"])
    if code != (1 if name in BROKEN else 0):
        yield f"exit code {code}"
    lines = errors.strip().splitlines()
    if name in BROKEN and (len(lines) != 1 or BROKEN[name] not in lines[0]):
        yield f"instead of one clear line: {errors!r}"
    if name in WARNED and (len(lines) != 1 or WARNED[name] not in lines[0]):
        yield f"instead of one warning: {errors!r}"
    if name not in BROKEN and name not in WARNED and lines:
        yield f"unexpected: {errors!r}"
    wanted = dict(item.split("=") for item in (expected[0].get("counters") or "").split())
    wanted = {counter: int(total) for counter, total in wanted.items()}
    for summary in rows["summary"]:
        yield from compare_counters({**wanted, **COUNTERS.get(name, {})}, summary["counters"])
    if name in RETRANSMITTED:
        row = next(row for row in rows["flow"] if row["destination_qpn"] == 0x240)
        if (row["retransmitted_frames"], row["retransmitted_bytes"]) != RETRANSMITTED[name]:
            yield f"retransmitted {row['retransmitted_frames']} frames, {row['retransmitted_bytes']} bytes"


def real_frames(program):
    """Over IPv6 and over IPv4, five each, from both sides: writes of 333 bytes and sends of 1201; and from one side five READs of
    2050 bytes and five atomics. Each is one frame and has one answer."""
    _, rows, _ = tap.run_nic(program, "--file", os.path.join(HERE, "81_rxe.pcap"), "--verify-icrc")
    found = {name: sum(row[name] for row in rows["flow"]) for name in ("data_frames", "payload_bytes", "acks")}
    wanted = {"data_frames": 2 * (10 + 10 + 5 + 5 + 5), "payload_bytes": 2 * (10 * 333 + 10 * 1201 + 5 * 2050), "acks": 2 * 25}
    yield from (f"{name} is {found[name]}, not {total}" for name, total in wanted.items() if found[name] != total)
    yield from compare_counters({"frames_roce_total": 120, "frames_bad_icrc_total": 0, "frames_icrc_unverified_total": 0},
                                rows["summary"][0]["counters"])


def make_again():
    with tempfile.TemporaryDirectory(prefix="qpscope-frames-") as folder:
        subprocess.run([sys.executable, os.path.join(HERE, "..", "make_frames.py"), folder], check=True)
        yield from (f"{name} differs" for name in sorted(os.listdir(folder))
                    if not filecmp.cmp(os.path.join(folder, name), os.path.join(HERE, name), shallow=False))


def verify_icrcs(program, made):
    for name in made:
        counters = tap.run_nic(program, "--file", os.path.join(HERE, name), "--verify-icrc")[1]["summary"][0]["counters"]
        yield from (f"{name}: {counter}" for counter, total in counters.items() if counter == "frames_bad_icrc_total" and total)


def main():
    expected = collections.defaultdict(list)
    for name in ("expected.tsv", "made.tsv"):
        with open(os.path.join(HERE, name)) as table:
            for row in csv.DictReader(table, delimiter="\t"):
                expected[row["file"]].append(row)
    for name in sorted(expected):
        tap.check(name, list(compare(name, expected[name], sys.argv[1])))
    tap.check("each ICRC that is right is found so", list(verify_icrcs(
        sys.argv[1], [name for name in expected if "tunnel" in expected[name][0] and name not in OPTIONS])))
    tap.check("81_rxe.pcap, with the ICRCs of soft-RoCE", list(real_frames(sys.argv[1])))
    tap.check("make_frames.py makes these files", list(make_again()))
    code, rows, errors = tap.run_nic(sys.argv[1], "--file", "/nonexistent.pcap")
    tap.check("a file that is not there", [] if code == 1 and errors.count("\n") == 1 and not rows["flow"] else [errors])
    return tap.finish()


sys.exit(main())
