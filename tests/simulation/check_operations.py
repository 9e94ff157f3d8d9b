#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays a job (arguments of simulate behind --), lets `qpscope replay` cut its operations and compares each one of each
rank with the truth: the same kinds in the same order on each communicator, the same bytes sent over the NIC, first and
last data at the same time, none incomplete or of an unknown algorithm. Exit status 1 when not."""

import argparse
import collections
import contextlib
import csv
import os
import sqlite3
import subprocess
import sys
import tempfile

KINDS = {1: "AllReduce", 2: "AllGather", 3: "ReduceScatter", 4: "Broadcast", 5: "Reduce", 6: "SendRecv"}
QUERY = """
SELECT communicator.identity, rank_operation.rank, operation.kind, rank_operation.observed_bytes,
       rank_operation.first_data_ns, rank_operation.last_data_ns, rank_operation.status, operation.algorithm
FROM rank_operation JOIN operation ON operation.id = rank_operation.operation
JOIN communicator ON communicator.id = operation.communicator
ORDER BY operation.id
"""
Operation = collections.namedtuple("Operation", "kind sent first last status algorithm", defaults=["", ""])


def read_truth(path):
    """{(communicator, rank): operations in order of their enqueue}"""
    found = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            found[row["communicator"], int(row["rank"])].append(
                Operation(KINDS[int(row["kind"])], *(int(row[name]) for name in ("sent_bytes", "first_ns", "last_ns"))))
    return found


def read_store(path):
    found = collections.defaultdict(list)
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        for identity, rank, *rest in store.execute(QUERY):
            found[identity[:16], rank].append(Operation(*rest))
    return found


def differences(truth, found, tolerance_ns):
    """What is wrong with one operation."""
    if found.kind != truth.kind:
        yield f"is {truth.kind}, was taken for {found.kind}"
    if found.status not in ("complete", "no wire"):
        yield f"{truth.kind} is {found.status}"
    if found.sent != truth.sent:
        yield f"{truth.kind} sent {truth.sent} bytes, {found.sent} were found"
    for name, then, seen in (("first", truth.first, found.first), ("last", truth.last, found.last)):
        if abs((seen or 0) - then) > tolerance_ns:
            yield f"{truth.kind}: its {name} data is off by {(seen or 0) - then} ns"


def compare(truth, found, arguments):
    wrong = []
    count = sent = 0
    for key in sorted(set(truth) | set(found)):
        theirs, ours = truth[key], found[key]
        count += len(theirs)
        sent += sum(operation.sent > 0 for operation in theirs)
        if len(theirs) != len(ours):
            wrong.append(f"rank {key[1]} of {key[0]}: {len(theirs)} operations, {len(ours)} found")
        for number, pair in enumerate(zip(theirs, ours)):
            wrong += [f"rank {key[1]} of {key[0]}, operation {number}: {text}"
                      for text in differences(*pair, arguments.tolerance_us * 1000)]
    print(f"{count} operations of ranks, {sent} of them on the wire, {len(wrong)} differences")
    if sent < arguments.at_least:
        wrong.append(f"only {sent} of the operations were on the wire")
    algorithms = {operation.algorithm for operations in found.values() for operation in operations}
    if arguments.algorithm and arguments.algorithm not in algorithms:
        wrong.append(f"no operation was a {arguments.algorithm}: {sorted(algorithms)}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="build folder (default: build)")
    parser.add_argument("--at-least", type=int, default=1, help="so many operations sent something (default: 1)")
    parser.add_argument("--tolerance-us", type=int, default=20, help="of times, which cross clocks (default: 20)")
    parser.add_argument("--algorithm", help="some operation's must be this one")
    parser.add_argument("--keep", metavar="FOLDER", help="keep captures, truth and store there")
    parser.add_argument("simulate", nargs="+", help="arguments of simulate")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qpscope-operations-") as scratch:
        folder = arguments.keep or scratch
        os.makedirs(folder, exist_ok=True)
        simulate = os.path.join(arguments.build, "tests/simulation/simulate")
        subprocess.run([simulate, *arguments.simulate, "--one-file", "--operations", folder], check=True,
                       stdout=subprocess.DEVNULL)
        store = os.path.join(folder, "store.db")
        subprocess.run([os.path.join(arguments.build, "cli/qpscope"), "replay", "--store", store,
                        os.path.join(folder, "all.capture")], check=True, stdout=subprocess.DEVNULL)
        wrong = compare(read_truth(os.path.join(folder, "operations.tsv")), read_store(store), arguments)
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
