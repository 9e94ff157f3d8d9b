#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""matrix.py DIR: sums up what matrix.sh judged, as a table for doc/results.md. matrix.py --tap DIR: one check, as TAP:
the median error of the sizes of all host and GPU faults is below 5 ms."""

import collections
import json
import os
import re
import statistics
import sys

CHECKS = {
    "every call of the job was seen": "calls",
    "payload of every operation equals the truth": "bytes",
    "number of steps": "steps",
    "step durations within 1 %": "durations",
    "no other verdict, but for lateness that the truth shows too": "no false verdict",
}


def read_judged(path):
    """check -> [passed, all] over the jobs."""
    found = collections.defaultdict(lambda: [0, 0])
    for line in open(path):
        match = re.match(r"(ok|not ok) \d+ - (.*?)(?: \(.*\))?$", line.strip())
        name = match and CHECKS.get(match[2])
        if name:
            found[name][0] += match[1] == "ok"
            found[name][1] += 1
    return found


def check_sizes(faults):
    errors = [abs(error) for fault in ("host", "gpu") for entry in faults[fault] for error in entry["errors_ms"]]
    median = statistics.median(errors) if errors else float("inf")
    print(f"{'ok' if median < 5 else 'not ok'} 1 - median error of the size of host and GPU faults ({median:.2f} ms, {len(errors)} steps)")
    return 0 if median < 5 else 1


def main():
    folder = sys.argv[-1]
    faults = collections.defaultdict(list)
    for line in open(os.path.join(folder, "size-errors.jsonl")):
        entry = json.loads(line)
        faults[entry["fault"]].append(entry)
    if sys.argv[1] == "--tap":
        return check_sizes(faults)
    print("| fault | jobs | right in every step | steps with the right verdict | median error of the size | 90th percentile |")
    print("|---|---|---|---|---|---|")
    for fault, entries in sorted(faults.items()):
        errors = sorted(abs(error) for entry in entries for error in entry["errors_ms"])
        steps, found = sum(entry["steps"] for entry in entries), sum(entry["found"] for entry in entries)
        whole = sum(entry["steps"] == entry["found"] for entry in entries)
        middle = f"{statistics.median(errors):.1f} ms" if errors else "-"
        high = f"{errors[int(len(errors) * 0.9)]:.1f} ms" if errors else "-"
        print(f"| {fault} | {len(entries)} | {whole} | {found} of {steps} | {middle} | {high} |")
    print("\n| check | jobs that passed |\n|---|---|")
    for name, (passed, count) in read_judged(os.path.join(folder, "judged.txt")).items():
        print(f"| {name} | {passed} of {count} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
