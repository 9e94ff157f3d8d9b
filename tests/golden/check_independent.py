#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_independent.py QPSCOPE-NIC [CAPTURE...]: its flows, windows and messages, each value of each, against what
independent.py makes of the same file. Without CAPTURE: of every whole file in frames/, at three window lengths."""
import collections
import os
import sys

import independent
import tap

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frames")
# Not whole, or cut before the BTH's end: check_expected.py says what is right there.
OTHER = {"06_snap50_cut_in_bth.pcap", "31_zero.pcap", "32_short_hdr.pcap"}
KEY = ("source", "destination", "destination_qpn", "tunnel")
TOTALS = ("data_frames", "wire_bytes", "payload_bytes", "messages", "acks", "naks", "rnr_naks", "cnps", "marked_frames",
          "repeated_frames", "late_frames", "retransmitted_frames", "retransmitted_bytes", "covered_psns",
          "late_unknown_frames", "reordered_frames", "duplicate_frames", "timeouts", "pauses", "source_port_changes", "codepoints")
GOT = ("got_acks", "got_rnr_naks", "got_cnps", "rnr_wait_ns", *("got_naks_" + code for code in (*independent.NAKS, "reserved")))
WINDOW = ("index", "first_offset_ns", "last_offset_ns", "frames", "wire_bytes", "payload_bytes", "retransmitted_frames",
          "marked_frames")
MESSAGE = ("first_ns", "duration_ns", "role", "opcode", "frames", "payload_bytes", "flags", "immediate", "place")


def bag(rows, columns):
    """How often each row is there, by its key and the columns."""
    def value(row, name):
        found = row.get(name, 0)
        return tuple(found) if isinstance(found, list) else found
    return collections.Counter(tuple(value(row, name) for name in KEY + columns) for row in rows)


def differences(what, ours, theirs, columns):
    ours, theirs = bag(ours, columns), bag(theirs, columns)
    for row in list((ours - theirs).elements())[:3]:
        yield f"{what} only qpscope-nic has: {dict(zip(KEY + columns, row))}"
    for row in list((theirs - ours).elements())[:3]:
        yield f"{what} only independent.py has: {dict(zip(KEY + columns, row))}"


def compare_pairs(ours, found):
    """What qpscope-nic paired must be possible, and where there is only one possibility, it; with the counts of that one."""
    keys = {row["flow"]: tuple(row[name] for name in KEY) for row in ours}
    text = {key: tuple(independent.text_key(key).values()) for key in found.flows}
    back = {value: key for key, value in text.items()}
    for row in ours:
        if not row["pair"]:
            continue
        key, other = back[keys[row["flow"]]], back[keys[row["pair"]]]
        if found.pairs.get(key, other) != other or not (other in found.possible.get(key, ()) or key in found.possible.get(other, ())):
            yield f"{text[key]} is paired with {text[other]}, not {text.get(found.pairs.get(key))}"
        elif row["source_qpn"] != other[2]:
            yield f"{text[key]}: source QPN {row['source_qpn']}"
        elif key in found.pairs:
            wrong = [f"{name} {row[name]}, not {found.flows[key][name]}" for name in GOT if row[name] != found.flows[key][name]]
            if wrong:
                yield f"{text[key]}: {', '.join(wrong)}"


def compare(program, path, window_ns):
    found, ended = independent.analyse_all(path)
    flows, windows = found.flows, independent.count_windows(found.windows, window_ns, 0)
    key = independent.text_key
    window = ("--window", f"{window_ns}ns")
    ours = tap.run_nic(program, "--file", path, *window)[1]
    detail = tap.run_nic(program, "--file", path, *window, "--windows", "--messages")[1]
    if not flows and not ours["flow"]:
        return
    yield from differences("flow", ours["flow"], [{**key(k), **t} for k, t in flows.items()], TOTALS)
    yield from compare_pairs(ours["flow"], found)
    yield from differences("window", detail["window"],
                           [{**key(k), "index": index, **w} for (k, index), w in windows.items()], WINDOW)
    yield from differences("message", detail["message"], [{**key(k), **m} for k, m in ended], MESSAGE)


def main():
    program, paths = sys.argv[1], sys.argv[2:]
    if not paths:
        paths = [os.path.join(HERE, name) for name in sorted(set(os.listdir(HERE)) - OTHER)
                 if name.endswith((".pcap", ".pcapng"))]
    for path in paths:
        for window_ns in (1000, 8000, 1000000) if os.path.basename(path) < "5" else (8000,):
            tap.check(f"{os.path.basename(path)} in windows of {window_ns} ns", list(compare(program, path, window_ns)))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
