#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_frames.py BUILD FOLDER: what qpscope-nic saw live on each rank's port, against a tcpdump of the same port taken
at the same time (run.sh --pcap) and read by tests/golden/independent.py. Prints TAP.

Contents and order must be equal, message by message. Times may differ by what the two readers' stamps differ: each
packet socket gets its own reading of the kernel's clock."""

import collections
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "golden")]
import independent  # noqa: E402
from check_job import Tap  # noqa: E402
from truth import Truth  # noqa: E402

CONTENT = ("payload_bytes", "frames", "opcode", "immediate", "place")
TOTALS = ("data_frames", "wire_bytes", "payload_bytes", "messages", "acks", "naks", "rnr_naks", "cnps", "marked_frames",
          "repeated_frames", "retransmitted_frames")
STAMP_NS = 2_000_000  # two stamps of one frame: under emulation a socket's turn can come a millisecond later


def live_rows(build, folder):
    """(messages, last totals, windows) of the capture file, each by (port, source, destination, destination QPN)."""
    program = os.path.join(build, "tests", "golden", "capture_rows")
    lines = subprocess.run([program, os.path.join(folder, "nic.capture")], check=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in lines.stdout.splitlines()]
    keys = {}
    for row in rows:
        if row["row"] == "flow":
            ends = (row[end].removeprefix("::ffff:") for end in ("source", "destination"))
            keys[row["flow"]] = (row["port"], *ends, row["destination_qpn"])
    messages, totals, windows = collections.defaultdict(list), {}, collections.defaultdict(list)
    for row in rows:
        if row["row"] == "message":
            messages[keys[row["flow"]]].append(row)
        elif row["row"] == "total":
            totals[keys[row["flow"]]] = row
        elif row["row"] == "window":
            windows[keys[row["flow"]]].append(row)
    return messages, totals, windows


def text_key(port, key):
    named = independent.text_key(key)
    return (port, named["source"], named["destination"], named["destination_qpn"])


def content(message):
    return tuple(message[name] for name in CONTENT)


def compare_messages(mine, theirs):
    for key in mine.keys() | theirs.keys():
        ours, others = [content(m) for m in mine.get(key, [])], [content(m) for m in theirs.get(key, [])]
        if ours != others:
            at = next((i for i, pair in enumerate(zip(ours, others)) if pair[0] != pair[1]), min(len(ours), len(others)))
            yield f"{key}: {len(ours)} and {len(others)} messages, first difference at {at}: {ours[at:at + 1]} and {others[at:at + 1]}"


def compare_totals(mine, theirs):
    for key in mine.keys() | theirs.keys():
        ours, others = mine.get(key, {}), theirs.get(key, {})
        wrong = {name: (ours.get(name, 0), others.get(name, 0)) for name in TOTALS if ours.get(name, 0) != others.get(name, 0)}
        if wrong:
            yield f"{key}: {wrong}"


def check_port(tap, truth, live, port):
    path = os.path.join(truth.folder, f"far{port - 1}.pcap")
    flows, _, ended = independent.analyse(path)
    theirs = collections.defaultdict(list)
    for key, message in ended:
        theirs[text_key(port, key)].append(message)
    mine = {key: rows for key, rows in live[0].items() if key[0] == port}
    count = sum(map(len, theirs.values()))
    name = f"port of rank {port - 1}"
    tap.check(f"{name}: every message as tcpdump has it", compare_messages(mine, theirs) if count else ["no messages"], f"{count} messages")
    totals = {text_key(port, key): total for key, total in flows.items()}
    tap.check(f"{name}: every flow's totals", compare_totals({k: t for k, t in live[1].items() if k[0] == port}, totals), f"{len(totals)} flows")
    pairs = [pair for key in theirs for pair in zip(mine.get(key, []), theirs[key])]
    base = statistics.median(ours["first_ns"] - other["first_ns"] for ours, other in pairs) if pairs else 0
    apart = sorted(abs(ours["first_ns"] - other["first_ns"] - base) for ours, other in pairs)
    lengths = sorted(abs(ours["duration_ns"] - other["duration_ns"]) for ours, other in pairs)
    far = [f"{value / 1000:.0f} us" for value in apart[int(len(apart) * 0.99):] if value > STAMP_NS]
    note = f"median {apart[len(apart) // 2] / 1000:.1f} us, worst {apart[-1] / 1000:.0f} us; lengths {lengths[len(lengths) // 2] / 1000:.1f} us" if apart else ""
    tap.check(f"{name}: 99 of 100 edges at the time that tcpdump has", far[:1] if apart else ["none"], note)


def check_windows(tap, truth, live, window_ns=8000):
    """Windows that a trigger brought: as many frames in each stretch as tcpdump has there, give or take the stamps."""
    wrong, count = [], 0
    for port in range(1, truth.ranks + 1):
        theirs = collections.defaultdict(list)
        for frame in independent.read_frames(os.path.join(truth.folder, f"far{port - 1}.pcap")):
            theirs[text_key(port, frame.key)].append(frame.time)
        offset = None
        for key, rows in live[2].items():
            if key[0] != port:
                continue
            count += len(rows)
            if offset is None and live[0].get(key):
                offset = theirs[key][0] - live[0][key][0]["first_ns"]
            begin, end = rows[0]["index"] * window_ns + (offset or 0), (rows[-1]["index"] + 1) * window_ns + (offset or 0)
            least = sum(begin + STAMP_NS <= time < end - STAMP_NS for time in theirs[key])
            most = sum(begin - STAMP_NS <= time < end + STAMP_NS for time in theirs[key])
            seen = sum(row["frames"] + row["retransmitted_frames"] for row in rows)
            if not least <= seen <= most:
                wrong.append(f"{key}: {seen} frames in the windows, {least} to {most} by tcpdump")
    tap.check("windows that were asked for hold tcpdump's frames", wrong if count else ["no window came"], f"{count} windows")


def main():
    build, folder = sys.argv[1:3]
    truth, tap = Truth(folder), Tap()
    live = live_rows(build, folder)
    for port in range(1, truth.ranks + 1):
        check_port(tap, truth, live, port)
    if truth.options["fault"] != "none":
        check_windows(tap, truth, live)
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
