#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_ucx.py FOLDER: what qpscope-host said of queue pairs that UCX made (plan_ucx.sh), as TAP.

The truth is the kernel's own list of queue pairs, read again and again while the programs ran: every RC and UD queue pair of
Open MPI's and of ucx_perftest's processes must have been seen with its process, foreign, and without a communicator. Exit
status 1 when something is not right."""
import json
import os
import sys

FOREIGN = 2
TYPES = {"RC": 2, "UD": 4}
PROGRAMS = ("mpi_pair", "ucx_perftest")


def listed(folder):
    """(device, QPN) of each queue pair that the kernel listed for one of the programs, with its type."""
    found = {}
    with open(os.path.join(folder, "kernel.jsonl")) as file:
        for line in file:
            for pair in json.loads(line):
                if pair.get("comm") in PROGRAMS and pair["type"] in TYPES:
                    found[pair["ifname"], pair["lqpn"], pair["comm"]] = TYPES[pair["type"]]
    return found


def seen(folder):
    processes, queue_pairs = {}, {}
    with open(os.path.join(folder, "host.json")) as file:
        for record in map(json.loads, file):
            if record["record"] == "process":
                processes[record["process"]] = record
            elif record["record"] == "queue_pair":
                queue_pairs[record["queue_pair"]] = record
    return [(processes[pair["process"]]["command"], pair) for pair in queue_pairs.values()]


def findings(folder):
    pairs = {(pair["device"], pair["qpn"], command): pair for command, pair in seen(folder)}
    for key, kind in sorted(listed(folder).items()):
        pair = pairs.get(key)
        if pair is None:
            yield f"{key[2]}'s queue pair {key[1]} of {key[0]}: not seen"
        elif (pair["type"], pair["communicator"], pair["flags"] & FOREIGN) != (kind, 0, FOREIGN):
            yield f"{key}: type {pair['type']}, communicator {pair['communicator']}, flags {pair['flags']}"


def main():
    folder = sys.argv[1]
    pairs = seen(folder)
    wrong = list(findings(folder))
    strange = [pair for command, pair in pairs if command in PROGRAMS and pair["communicator"]]
    checks = (("queue pairs of UCX were listed by the kernel", [] if listed(folder) else ["none"]),
              (f"all {len(listed(folder))} of them were seen, foreign", wrong),
              (f"none of {len(pairs)} was given to a communicator", [str(pair) for pair in strange]))
    print(f"1..{len(checks)}")
    for number, (name, found) in enumerate(checks, 1):
        print(f"{'not ok' if found else 'ok'} {number} - {name}")
        for finding in found[:8]:
            print(f"#   {finding}")
    return 1 if any(found for _, found in checks) else 0


if __name__ == "__main__":
    sys.exit(main())
