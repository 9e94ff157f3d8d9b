#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How much is missed of a program that maps a library which nobody has mapped before and calls it at once:
measure_race.py BUILD [ROUNDS]. By hand; doc/results.md has what came of it."""
import re
import statistics
import sys

from host import AFTER_LOSS, LATE, Host, Tree, take_machine

BUILD = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 50
CALLS = 100000


def run(host):
    """One program on a copy of its own; its pid."""
    tree = Tree(BUILD)
    try:
        return tree.start("short", str(CALLS)).finish().pid
    finally:
        tree.remove()


def spread(values):
    values = sorted(values)
    return f"median {statistics.median(values):.1f}, nine of ten within {values[len(values) * 9 // 10]:.1f}, most {values[-1]:.1f}"


def main():
    take_machine()
    host = Host(f"{BUILD}/host/qpscope-host")
    pids = [run(host) for _ in range(ROUNDS)]
    records = host.stop()
    seen = {p["pid"]: p for p in records.processes.values()}
    latencies_ms = [int(us) / 1000 for us in re.findall(r"they were set (\d+) us after", "".join(host.log))]
    whole = late = unseen = 0
    missed = []
    for pid in pids:
        if pid not in seen:
            unseen += 1
            continue
        communicators = records.communicators_of(pid)
        calls = records.calls_of(pid)
        is_late = any(c["flags"] & LATE for c in communicators)
        late += is_late
        whole += not is_late and len(calls) == CALLS
        missed.append(CALLS - len(calls))
        assert not is_late or all(c["flags"] & AFTER_LOSS for c in calls)
    print(f"{ROUNDS} programs, each a library of its own, {CALLS} calls at once after dlopen")
    print(f"from mapping to probes, ms: {spread(latencies_ms)} ({len(latencies_ms)} libraries)")
    print(f"communicator seen made: {whole} whole, {late} late, {unseen} ended before any probe was set")
    print(f"calls missed of those seen: {spread(missed)}; lost in the ring: {records.counters['events_lost_total']}")


main()
