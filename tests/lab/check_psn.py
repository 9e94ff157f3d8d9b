#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_psn.py FOLDER: what qpscope-nic read out of the queue pairs' contexts and the devices' counters beside a job (run.sh
--pcap --hook hook_psn.sh) is what was there: the queue pairs that the tracer and `rdma resource show qp` saw, the sequence
numbers that the frames at each rank's far end have, and the kernel's own counters. Prints TAP."""
import collections
import json
import os
import re
import sys

here = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [here, os.path.join(here, "..", "golden")]
import independent  # noqa: E402
from tap import Tap  # noqa: E402

REQUESTS = set(range(0x0D)) | {0x13, 0x14, 0x16, 0x17}


def read_rows(path):
    rows = collections.defaultdict(list)
    for line in open(path):
        row = json.loads(line)
        rows[row["row"]].append(row)
    return rows


def read_job(path):
    """Devices by port number (rank + 1), and their addresses."""
    found = re.findall(r"rank=(\d+) device=(\S+) address=(\S+)", open(path).read())
    return {int(rank) + 1: device for rank, device, _ in found}, {device: address for _, device, address in found}


def listed(path):
    """(device, lqpn, rqpn) of `rdma resource show qp`, connected ones of type RC."""
    pattern = re.compile(r"link (\S+)/1 lqpn (\d+) (?:rqpn (\d+) )?type RC")
    matches = filter(None, map(pattern.match, open(path)))
    return {(m[1], int(m[2]), int(m[3] or 0)) for m in matches}


def created(folder):
    rows = (json.loads(line) for name in os.listdir(folder) if name.startswith("truth") for line in open(os.path.join(folder, name)))
    return collections.Counter((row["device"], row["qpn"]) for row in rows if row["kind"] == "qp")


def sent_by_frames(folder, rank):
    """(source, destination QPN) -> how many sequence numbers the requests that left the rank's far end used."""
    used = collections.defaultdict(set)
    for frame in independent.read_frames(os.path.join(folder, f"far{rank}.pcap")):
        if frame.opcode in REQUESTS:
            used[text(frame.key[0]), frame.key[2]].add(frame.psn)
    return {key: len(psns) for key, psns in used.items()}


def text(address):
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def compare_progress(folder, rows, devices, addresses):
    """Per endpoint; the last round before a queue pair's end may miss what came after it, and nothing else may differ."""
    sent = collections.Counter()
    for row in rows["reading"]:
        sent[row["endpoint"]] += row["sent_packets"]
    endpoints = {row["endpoint"]: row for row in rows["endpoint"]}
    wrong, total, seen = [], 0, 0
    frames = {device: sent_by_frames(folder, port - 1) for port, device in devices.items()}
    for number, endpoint in endpoints.items():
        device = devices[endpoint["port"]]
        if endpoint["type"] != "RC" or endpoint["remote_qpn"] == 0:
            continue
        expected = frames[device].get((addresses[device], endpoint["remote_qpn"]), 0)
        total, seen = total + expected, seen + sent[number]
        if sent[number] > expected or (expected > 0 and sent[number] == 0):
            wrong.append(f"{device} QPN {endpoint['qpn']}: {sent[number]} sequence numbers, the frames have {expected}")
    if total == 0 or seen < 0.98 * total:
        wrong.append(f"{seen} sequence numbers in all, the frames have {total}")
    return wrong


def compare_intervals(rows):
    last = {}
    for row in rows["reading"]:
        if row["from_ns"] >= row["to_ns"] or row["from_bound_ns"] + row["to_bound_ns"] > row["to_ns"] - row["from_ns"]:
            yield f"a reading of endpoint {row['endpoint']} from {row['from_ns']} to {row['to_ns']}"
        if last.get(row["endpoint"], 0) > row["to_ns"]:
            yield f"endpoint {row['endpoint']} goes back in time"
        last[row["endpoint"]] = row["to_ns"]


def compare_counters(folder, rows, devices):
    def read(name):
        pattern = re.compile(r"(\S+?)/ports/1/hw_counters/(\S+?):(\d+)")
        return {(m[1], m[2]): int(m[3]) for m in map(pattern.match, open(os.path.join(folder, name))) if m}

    before, after = read("hardware-before.txt"), read("hardware-after.txt")
    names = {"sent_pkts": "sent_packets", "rcvd_pkts": "received_packets", "rcvd_seq_err": "sequence_naks_received_total",
             "rcvd_rnr_err": "rnr_naks_received_total", "out_of_seq_request": "out_of_sequence_packets",
             "completer_retry_err": "retries_total", "duplicate_request": "duplicate_requests_packets"}
    told = {(devices[row["port"]], row["metric"]): row["value"] for row in rows["port_counter"]}
    for (device, name), value in after.items():
        expected = value - before[device, name]
        if name in names and told.get((device, names[name]), 0) != expected:
            yield f"{device}: {names[name]} {told.get((device, names[name]), 0)}, rxe counted {expected}"
    for port, device in devices.items():
        if told.get((device, "link_state")) != 4:
            yield f"{device}: link_state {told.get((device, 'link_state'))}, not 4 (active)"


def main():
    folder, tap = sys.argv[1], Tap()
    rows = read_rows(os.path.join(folder, "psn.json"))
    devices, addresses = read_job(os.path.join(folder, "job.txt"))
    endpoints = {(devices[row["port"]], row["qpn"], row["remote_qpn"]) for row in rows["endpoint"] if row["type"] == "RC"}
    missing = [f"{pair} is not listed" for pair in sorted(listed(os.path.join(folder, "qp.txt")) - endpoints)]
    tap.check("every queue pair of `rdma resource show qp` is an endpoint, with its other end", missing)
    numbers = {row["endpoint"]: (devices[row["port"]], row["qpn"]) for row in rows["endpoint"] if row["type"] == "RC"}
    differ = collections.Counter(numbers.values())
    differ.subtract(created(folder))
    tap.check("the endpoints are the queue pairs that the tracer saw made", [f"{k}: {v:+d}" for k, v in differ.items() if v])
    tap.check("sequence numbers move as the frames' do", compare_progress(folder, rows, devices, addresses))
    tap.check("every reading has the interval between two looks", list(compare_intervals(rows)))
    tap.check("the ports' counters rise as rxe's own", list(compare_counters(folder, rows, devices)))
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
