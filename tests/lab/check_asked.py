#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_asked.py FOLDER: while the job ran, the correlator asked the NIC side for the windows of steps that it had judged
(a trigger on the control link, windows back on the intake). Each such step must have all windows of every flow: their
payload is that of the flow's messages, which came by themselves. Prints TAP."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from check_job import Store  # noqa: E402
from tap import Tap  # noqa: E402

WINDOWS = "SELECT flow, SUM(payload_bytes) AS bytes FROM traffic_window WHERE start_ns + length_ns > ? AND start_ns < ? GROUP BY flow"
MESSAGES = "SELECT flow, SUM(payload_bytes) AS bytes FROM message WHERE {} GROUP BY flow"
WITHIN, TOUCHING = "first_ns >= ? AND last_ns <= ?", "last_ns >= ? AND first_ns <= ?"


def sums(store, query, step, slack_ns):
    return {row["flow"]: row["bytes"] for row in store.rows(query, step["start_ns"] - slack_ns, step["end_ns"] + slack_ns)}


def compare(store, step, window_ns):
    """At least the messages that lie within the step, at most those that touch it: both but for a window at the edges."""
    windows = sums(store, WINDOWS, step, 0)
    least = sums(store, MESSAGES.format(WITHIN), step, -window_ns)
    most = sums(store, MESSAGES.format(TOUCHING), step, window_ns)
    for flow in most.keys() | windows.keys():
        if not least.get(flow, 0) <= windows.get(flow, 0) <= most.get(flow, 0):
            yield f"step {step['id']}, flow {flow}: {windows.get(flow, 0)} bytes in windows, {least.get(flow, 0)} to {most.get(flow, 0)} in messages"


def main():
    store, tap = Store(os.path.join(sys.argv[1], "qpscope.db")), Tap()
    window_ns = store.rows("SELECT MAX(window_ns) AS ns FROM emitter WHERE kind = 'nic'")[0]["ns"]
    judged = store.rows("SELECT * FROM step WHERE id IN (SELECT step FROM verdict)")
    # A step is asked for with a quarter of it before and after, so one that was not asked for has windows of its neighbours'.
    asked = [step for step in judged if sums(store, WINDOWS, step, -(step["end_ns"] - step["start_ns"]) * 9 // 20)]
    whole = [step for step in asked if next(compare(store, step, window_ns), None) is None]
    tap.check("windows of judged steps were asked for while the job ran", [] if asked else [f"none of {len(judged)}"],
              f"{len(asked)} of {len(judged)} judged steps")
    tap.check("they are whole", [] if len(whole) == len(asked) else [finding for step in asked for finding in compare(store, step, window_ns)])
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
