#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_pair.py FOLDER: holds the clocks of pair.sh's store against the truth, as TAP.

The truth is the machine's own clock beside each guest's (witness.jsonl): between two of its instants a guest's clock showed a
time. So what a guest's clock shows confines the machine's time, and that confines the other guest's. The store says the
same from its own: an agent's CLOCK_REALTIME (clock_pair.realtime_ns) at a time of the correlator's CLOCK_MONOTONIC (at_ns),
within at_bound_ns; among NIC sides that frames tie, within at_frames_bound_ns, also before and after there were frames.
"""

import argparse
import bisect
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from tap import Tap  # noqa: E402


FAR_NS = 15_000_000_000
SHARP_NS = 20_000  # readings that took longer are left out, when enough are sharper: the guest was kept from its processor


class Witness:
    """Between which two instants of the machine a guest's clock showed a time. Between readings it runs evenly, and for some
    seconds before the first and after the last as between those two: nobody slews it."""

    def __init__(self, readings, clock):
        sharp = [reading for reading in readings if reading["after_ns"] - reading["before_ns"] <= SHARP_NS]
        readings = sharp if len(sharp) * 4 >= len(readings) else readings
        self.shown = [reading[clock] for reading in readings]
        self.before = [reading["before_ns"] for reading in readings]
        self.after = [reading["after_ns"] for reading in readings]

    def at(self, shown_ns):
        """(earliest, latest), or None far from the readings."""
        if len(self.shown) < 2 or not self.shown[0] - FAR_NS < shown_ns < self.shown[-1] + FAR_NS:
            return None
        right = bisect.bisect_right(self.shown, shown_ns)
        left, right = (right - 1, right) if 0 < right < len(self.shown) else (0, len(self.shown) - 1)
        share = (shown_ns - self.shown[left]) / (self.shown[right] - self.shown[left])
        return tuple(round(ends[left] + share * (ends[right] - ends[left])) for ends in (self.before, self.after))


def witnesses(folder):
    with open(os.path.join(folder, "witness.jsonl")) as file:
        readings = [json.loads(line) for line in file if line.endswith("\n")]
    of = {name: [reading for reading in readings if reading["guest"] == name] for name in "ab"}
    reference = Witness(of["a"], "monotonic_ns")
    return reference, {name: Witness(of[name], "realtime_ns") for name in "ab"}, of


def rows(store, query):
    store.row_factory = sqlite3.Row
    return store.execute(query).fetchall()


def errors(pairs, reference, realtime):
    """Of each pair: (what the store says is late by, at least, at most) against the truth, in ns; and how many lie outside it."""
    found, outside = [], 0
    for pair in pairs:
        said, true = reference.at(pair["at_ns"]), realtime.at(pair["realtime_ns"])
        if said is None or true is None:
            outside += 1
            continue
        found.append((pair, said[0] - true[1], said[1] - true[0]))
    return found, outside


def distance(least, most):
    """How far the interval is from 0."""
    return max(least, -most, 0)


def us(nanoseconds):
    return f"{nanoseconds / 1000:.1f} us"


def check_emitter(tap, emitter, guest, pairs, reference, realtime):
    found, outside = errors(pairs, reference, realtime)
    wrong = [f"at {pair['at_ns']}: off by {us(distance(least, most))} at least, the bound is {us(pair['at_bound_ns'])}"
             for pair, least, most in found if distance(least, most) > pair["at_bound_ns"] + pair["bound_ns"]]
    if len(found) < 4:
        wrong.append(f"only {len(found)} pairs lie among the witness's readings, {outside} outside")
    middle = [abs(least + most) / 2 for _, least, most in found]
    width = [(most - least) / 2 for _, least, most in found]
    tap.check(f"{emitter['kind']} in guest {guest}: its clock is where the store says, within its bound", wrong,
              f"{len(found)} pairs; bound {us(emitter['clock_bound_ns'])}; off by {us(max(middle, default=0))} at most, known to "
              f"{us(max(width, default=0))}; offset {emitter['clock_offset_ns'] / 1e9:.3f} s, drift {emitter['clock_drift_ppb']} ppb")
    return found


def between(found, at_ns):
    """What lies between two findings, for a time between them, and the wider bound of the two: a clock is mapped by lines. None
    outside of all."""
    times = [pair["at_ns"] for pair, _, _ in found]
    right = bisect.bisect_right(times, at_ns)
    if not 0 < right < len(times):
        return None
    (first, *ends), (last, *later) = found[right - 1], found[right]
    share = (at_ns - first["at_ns"]) / (last["at_ns"] - first["at_ns"])
    middle = [begun + share * (ended - begun) for begun, ended in zip(ends, later)]
    return (*middle, max(first["at_frames_bound_ns"], last["at_frames_bound_ns"]) + max(first["bound_ns"], last["bound_ns"]))


def check_tied(tap, nics, found):
    """The two NIC sides beside each other, which is what a lateness between them rests on."""
    largest = [nic["clock_frames_bound_ns"] for nic in nics]
    if None in largest or len(largest) != 2 or min(len(found[0]), len(found[1])) < 4:
        tap.check("frames at both ends tie the two NIC sides", [f"bounds are {largest}, pairs {len(found[0])} and {len(found[1])}"])
        return
    wrong, offs = [], []
    for pair, least_b, most_b in found[1]:
        other = between(found[0], pair["at_ns"])
        if other is None:
            continue
        least_a, most_a, bound_a = other
        off, bound = distance(least_b - most_a, most_b - least_a), bound_a + pair["at_frames_bound_ns"] + pair["bound_ns"]
        offs.append(abs(least_b - most_a + most_b - least_a) / 2)
        if off > bound:
            wrong.append(f"at {pair['at_ns']}: off by {us(off)} at least, the bound is {us(bound)}")
    if len(offs) < 3:
        wrong.append(f"only {len(offs)} pairs of the second lie between the first one's")
    tap.check("frames at both ends tie the two NIC sides, and their bound holds too", wrong,
              f"{len(offs)} pairs; bound {us(max(largest))} while there are frames; off by {us(max(offs, default=0))} at most")


def check_fault(tap, store):
    said = rows(store, "SELECT step, rank FROM verdict WHERE class = 'gpu late' AND step >= 6")
    right = [row for row in said if row["rank"] == 1]
    steps = rows(store, "SELECT count(*) AS n FROM step WHERE id >= 6")[0]["n"]
    missing = [] if len(right) * 2 > steps and len(right) == len(said) else [f"{len(right)} of {len(said)} verdicts are rank 1's, {steps} steps"]
    tap.check("the late GPU is found, in the guest where it is", missing, f"{len(right)} of {steps} steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    folder = parser.parse_args().folder
    store = sqlite3.connect(f"file:{folder}/a/pair/qpscope.db?mode=ro", uri=True)
    reference, realtime, readings = witnesses(folder)
    emitters = rows(store, "SELECT * FROM emitter WHERE kind IN ('nic', 'host') ORDER BY kind, id")
    hosts = {emitter["host"] for emitter in emitters}
    tap = Tap()
    tap.check("agents of two kernels were heard, each with exchanges of its own", [] if len(emitters) == 4 and hosts == {"guest-a", "guest-b"} and
              all(emitter["clock_source"] == "exchange" for emitter in emitters) else [dict(emitter) for emitter in emitters])
    found = {}
    for emitter in emitters:
        guest = emitter["host"].removeprefix("guest-")
        pairs = rows(store, f"SELECT * FROM clock_pair WHERE emitter = {emitter['id']} ORDER BY at_ns")
        found[emitter["kind"], guest] = check_emitter(tap, emitter, guest, pairs, reference, realtime[guest])
    check_tied(tap, [emitter for emitter in emitters if emitter["kind"] == "nic"], [found["nic", "a"], found["nic", "b"]])
    check_fault(tap, store)
    counts = [f"{len(of)} readings, {sum(reading['after_ns'] - reading['before_ns'] <= SHARP_NS for reading in of)} of them to {us(SHARP_NS / 2)}"
              for of in readings.values()]
    print(f"# witness: {' and '.join(counts)}")
    print(f"1..{tap.count}")
    return tap.status


if __name__ == "__main__":
    sys.exit(main())
