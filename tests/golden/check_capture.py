#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_capture.py CAPTURE-ROWS NIC-CAPTURE [--part-of-windows] PORT=PCAP...: what qpscope-nic recorded live of each port
(totals, every message with its times; and every window, where the capture file holds the answer to a request for all of
them: ask_windows; with the option those that it holds) against what independent.py makes of a tcpdump of the same port.
Frames that tcpdump saw before qpscope-nic was ready, or after it ended, must not be in the files. The two clocks (tcpdump: CLOCK_REALTIME, qpscope-nic:
CLOCK_MONOTONIC) must differ by the same time in every message of a port (each port reads the two for itself)."""
import collections
import ipaddress
import json
import subprocess
import sys

import independent
import tap

ROLES = {1: "data", 2: "credit", 3: "size", 4: "flush", 5: "other"}
STAMP_NS = 1000  # qpscope-nic gets the kernel's stamp from DPDK in microseconds
FLAGS = {1: "immediate", 2: "incomplete", 4: "retransmitted", 8: "merged", 16: "placed"}
TOTALS = ("data_frames", "wire_bytes", "payload_bytes", "messages", "acks", "naks", "rnr_naks", "cnps", "marked_frames",
          "repeated_frames", "late_frames", "retransmitted_frames", "retransmitted_bytes", "covered_psns",
          "late_unknown_frames", "reordered_frames", "duplicate_frames", "timeouts", "source_port_changes", "codepoints")
OF_TIME = ("timeouts", "late_unknown_frames", "retransmitted_frames", "retransmitted_bytes")  # rest on the times of frames
TX = 1


def read_rows(program, path):
    """Rows by port: the last totals and the messages of each flow, and what was lost."""
    done = subprocess.run([program, path], capture_output=True, text=True, check=True)
    flows, totals, messages, losses = {}, {}, collections.defaultdict(list), []
    windows, answered = collections.defaultdict(list), 0
    for row in map(json.loads, done.stdout.splitlines()):
        if row["row"] == "flow":
            flows[row["flow"]] = row
        elif row["row"] == "total":
            totals[row["flow"]] = row
        elif row["row"] == "message":
            messages[row["flow"]].append(row)
        elif row["row"] == "window":
            windows[row["flow"]].append(row)
        elif row["row"] == "trigger_end":
            answered += 1
        elif row["row"] == "loss":
            losses.append(row)
    return flows, totals, messages, losses, windows if answered else None


def key_of(flow):
    return (flow["source"].replace("::ffff:", ""), flow["destination"].replace("::ffff:", ""), flow["destination_qpn"],
            f"vlan:{flow['vlans']}" if flow["vlans"] else "")


def compare_totals(key, ours, theirs, names=TOTALS):
    for name in names:
        if ours.get(name, 0) != theirs.get(name, 0):
            yield f"{key}: {name} is {ours.get(name, 0)}, independent.py says {theirs.get(name, 0)}"


def compare_messages(key, ours, theirs, offsets):
    if len(ours) != len(theirs):
        yield f"{key}: {len(ours)} messages, independent.py has {len(theirs)}"
    ours = sorted(ours, key=lambda row: (row["first_ns"], row["duration_ns"], row["place"]))
    theirs = sorted(theirs, key=lambda row: (row["first_ns"], row["duration_ns"], row["place"]))
    for mine, other in zip(ours, theirs):
        mine["role"] = ROLES[mine["role"]]
        mine["flags"] = [name for bit, name in FLAGS.items() if mine["flags"] & bit]
        offsets[other["first_ns"] - mine["first_ns"]] += 1
        for name in ("duration_ns", "role", "opcode", "frames", "payload_bytes", "flags", "immediate", "place"):
            if mine[name] != other[name]:
                yield f"{key}: a message's {name} is {mine[name]}, independent.py says {other[name]}: {mine} {other}"


def address_of(port, flows):
    """The port's own address: where the flows that it calls its own begin."""
    own = (flow["source"] for flow in flows.values() if (flow["port"], flow["vantage"]) == (port, TX))
    return next(map(ipaddress.ip_address, own), None)


def compare_port(port, path, rows, offsets):
    flows, totals, messages, losses, _ = rows
    theirs, _, ended = independent.analyse(path, resolution_ns=STAMP_NS, address=address_of(port, flows))
    by_key = collections.defaultdict(list)
    for key, message in ended:
        by_key[key].append(message)
    wanted = {tuple(independent.text_key(key).values()): key for key in theirs}
    found = {key_of(flow): number for number, flow in flows.items() if flow["port"] == port}
    if set(found) != set(wanted):
        yield f"flows {sorted(set(found) - set(wanted))} too many, {sorted(set(wanted) - set(found))} missing"
    for key in set(found) & set(wanted):
        yield from compare_totals(key, totals.get(found[key], {}), theirs[wanted[key]])
        yield from compare_messages(key, messages[found[key]], by_key[wanted[key]], offsets)
    yield from (f"lost: {loss}" for loss in losses if loss["port"] == port)


def compare_windows(port, path, rows, shift_ns, part=False):
    flows, windows = rows[0], rows[4]
    theirs = independent.analyse(path, resolution_ns=STAMP_NS, shift_ns=shift_ns, address=address_of(port, flows))[1]
    theirs = {(tuple(independent.text_key(key).values()), index): window for (key, index), window in theirs.items()}
    ours = {(key_of(flow), row["index"]): row for number, flow in flows.items() if flow["port"] == port
            for row in windows[number]}
    if not set(ours) <= set(theirs) or (not part and len(ours) < len(theirs)):
        yield f"{len(set(ours) - set(theirs))} windows too many, {len(set(theirs) - set(ours))} missing"
    for key in set(ours) & set(theirs):
        for name, value in theirs[key].items():
            if ours[key][name] != value:
                yield f"{key}: {name} is {ours[key][name]}, independent.py says {value}"


def main():
    # Where nobody asked for all windows, some steps' may be there all the same: the correlator asks for those with a verdict.
    part, arguments = sys.argv[3] == "--part-of-windows", [a for a in sys.argv[3:] if not a.startswith("--")]
    rows, relations = read_rows(sys.argv[1], sys.argv[2]), {}
    for argument in arguments:
        port, path = argument.split("=", 1)
        offsets = relations[port] = collections.Counter()
        tap.check(f"port {port}: flows, frames, bytes and messages equal", list(compare_port(int(port), path, rows, offsets))[:10])
    wrong = [f"port {port}: {len(offsets)} relations: {offsets.most_common(4)}" for port, offsets in relations.items() if len(offsets) > 1]
    known = [next(iter(offsets)) for offsets in relations.values() if offsets]
    if known and max(known) - min(known) >= STAMP_NS:
        wrong.append(f"between ports: {known}")
    tap.check("one clock relation for all messages", wrong)
    for argument in arguments if rows[4] is not None else []:
        port, path = argument.split("=", 1)
        tap.check(f"port {port}: each of {sum(map(len, rows[4].values()))} windows equal",
                  list(compare_windows(int(port), path, rows, next(iter(relations[port]), 0), part))[:10])
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
