#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_metrics.py FOLDER: what each daemon told of a job of the lab over HTTP (DAEMON.metrics) is what the store says of it: the
agents were asked when the job had ended, the correlator when it knew that the agents had. The agents' figures are exact. The correlator's were entered
while the job ran, each once: one step or operation may be told otherwise by what came later on a slow machine. Prints TAP."""

import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from check_job import Store  # noqa: E402
from tap import Tap  # noqa: E402

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Page:
    def __init__(self, folder, daemon):
        with open(os.path.join(folder, f"{daemon}.metrics"), encoding="utf-8", newline="") as file:
            head, _, body = file.read().partition("\r\n\r\n")
        self.status = head.split("\r\n")[0]
        found = (SAMPLE.match(line) for line in body.splitlines())
        self.samples = [(match[1], dict(LABEL.findall(match[2] or "")), float(match[3])) for match in found if match]

    def by(self, name, label=None):
        """Sums of the samples of that name, by a label."""
        sums = collections.Counter()
        for sample, labels, value in self.samples:
            if sample == name:
                sums[labels[label] if label else ""] += value
        return dict(sums)


def differing(found, expected, allowed=0, share=0):
    return [f"{key or 'all'}: {found.get(key, 0):.0f}, by the store {expected.get(key, 0)}"
            for key in sorted(found.keys() | expected.keys(), key=str)
            if abs(found.get(key, 0) - expected.get(key, 0)) > allowed + share * expected.get(key, 0)]


def main():
    folder, tap = sys.argv[1], Tap()
    store = Store(os.path.join(folder, "qpscope.db"))
    correlator, nic, host = (Page(folder, daemon) for daemon in ("correlator", "nic", "host"))

    def stored(sql):
        return {row[0]: row[1] for row in store.rows(sql)}

    tap.check("each daemon answered", [page.status for page in (correlator, nic, host) if " 200 " not in page.status or not page.samples])
    ended = correlator.by("qpscope_agent_ended", "agent")
    tap.check("the correlator had heard all", [f"{agent}: {value}" for agent, value in ended.items() if value != 1] if ended else ["no agent"])
    steps = stored("SELECT '', count(*) FROM step")
    tap.check("steps", differing(correlator.by("qpscope_step_duration_seconds_count"), steps, allowed=1), f"{steps['']} steps")
    tap.check("operations by kind", differing(correlator.by("qpscope_operations_total", "operation"),
                                              stored("SELECT kind, count(*) FROM operation GROUP BY kind"), allowed=1))
    tap.check("bytes by communicator", differing(
        correlator.by("qpscope_operation_wire_payload_bytes_total", "communicator"),
        stored("SELECT substr(communicator.identity, 1, 8), sum(observed_bytes) FROM rank_operation JOIN operation ON "
               "operation.id = rank_operation.operation JOIN communicator ON communicator.id = operation.communicator GROUP BY 1"), share=0.02))
    told, verdicts = correlator.by("qpscope_verdicts_total", "class"), stored("SELECT class, count(*) FROM verdict WHERE step IS NOT NULL GROUP BY class")
    # One whose class another analysis changed counts once in each.
    tap.check("verdicts by class", [f"{name}: {told.get(name, 0):.0f}, by the store {count}" for name, count in verdicts.items()
                                    if told.get(name, 0) < count - 1], str(verdicts))
    tap.check("bytes that ports sent", differing(nic.by("qpscope_nic_sent_payload_bytes_total"),
                                                 stored("SELECT '', sum(payload_bytes) FROM flow WHERE vantage = 'tx'")))
    tap.check("calls that hosts saw", differing(host.by("qpscope_host_calls_total"), stored("SELECT '', count(*) FROM call")))
    print(f"1..{tap.count}")
    return tap.status


if __name__ == "__main__":
    sys.exit(main())
