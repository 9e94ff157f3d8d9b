#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""kinds.py plan [NAME...]: a plan for run.sh, with hook_qpscope.sh and hook_kinds.sh: a job on RCCL for each kind of fault.
kinds.py check FOLDER [NAME...]: what qpscope said of each, as TAP, and at the end a table for doc/results.md.

A kind is right when more than half of its faulty steps have a verdict of a right class at the right place and verdicts of no other
rank or link outnumber those; what else was said stands in the table. The jobs are few and emulated: sizes are judged by matrix.py.
"""

import argparse
import collections
import os
import sqlite3
import sys
from dataclasses import dataclass, field

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from truth import Truth  # noqa: E402

HOST, STEPS = ("host late", "host late: blocked"), 12
SHAPE = "qdisc {} dev fa1 root handle 1: tbf rate {} burst 20480 limit 4m"
# Marks where more than a few frames wait, which none do before the link gets slow.
MARK = "qdisc add dev fa1 parent 1:1 handle 10: red limit 4000000 min 12000 max 36000 avpkt 4100 burst 6 bandwidth 11mbit probability 1 ecn"
# They show what kept a thread from running, which is taken off under emulation unless it may take long.
LONG_PROBES = "QPSCOPE_HOST_OPTIONS='--probe-time 1s'"


@dataclass
class Kind:
    """A fault, and what is right to be said of it: classes at a rank, or of links that touch it (is_link). No class: nothing."""

    name: str
    options: str
    classes: tuple = ()
    rank: int = 1
    is_link: bool = False
    first: int = 4
    last: int = STEPS - 1
    variables: str = ""
    evidence: str = ""  # a count that has to stand beside most of the right verdicts
    told_once: bool = False  # the fault ends the job, or is in all of it: one verdict is enough
    steps: set = field(init=False)

    def __post_init__(self):
        self.steps = set(range(self.first, self.last + 1))


def wire(name, command, classes, variables="", options=""):
    return Kind(name, f'--fault wire --rank 1 --command "{command}" {options}', classes, is_link=True, variables=variables)


def both_ways(verb, rate, burst):
    """What rank 1's first device sends, and what comes to it."""
    return ";".join(f"qdisc {verb} dev {port} root handle 1: tbf rate {rate} burst {burst} limit 16m" for port in ("ve1", "fa1"))


KINDS = (
    Kind("sleep", "--fault host --rank 1 --delay 120", HOST),
    Kind("gpu", "--fault gpu --rank 2 --delay 120", ("gpu late",), rank=2),
    Kind("gpu-once", "--fault gpu --rank 3 --delay 700 --first-step 6 --last-step 6", ("gpu late",), rank=3, first=6, last=6),
    Kind("rate", "--fault link --rank 1 --delay 150", ("network slow",), is_link=True),
    wire("lossy", "qdisc replace dev fa1 root netem limit 10000 loss 3%", ("network lossy",), "KIND_TIMEOUT=16"),
    wire("latency", "qdisc replace dev fa1 root netem limit 10000 delay 150ms", ("network slow",)),
    wire("bursts", "qdisc replace dev fa1 root netem limit 10000 slot 100ms 300ms", ("network slow",)),
    wire("congestion", SHAPE.format("change", "11mbit"), ("congested",), f"KIND_CLASS=2 KIND_QUEUE='{SHAPE.format('add', '50gbit').replace('20480', '4mb')};{MARK}'"),
    # One of a rank's two devices, and all that passes it.
    wire("device", both_ways("change", "8mbit", 20480), ("network slow", "nic late"), f"KIND_QUEUE='{both_ways('add', '50gbit', '4mb')}'",
         "--ranks 3 --rails 2"),
    Kind("cpu", "--fault cpu --rank 0 --delay 700", ("host late: no cpu",), rank=0, variables=LONG_PROBES),
    Kind("io", "--fault io --rank 2 --delay 700", ("host late: block i/o",), rank=2, variables=LONG_PROBES),
    Kind("pages", "--fault pages --rank 3 --delay 700", ("host late: page faults",), rank=3, variables=LONG_PROBES, evidence="major_faults"),
    Kind("tcp", "--fault tcp --rank 1 --delay 700", ("host late: blocked",), variables=LONG_PROBES, evidence="tcp_retransmissions"),
    # The emulated GPU is threads of the process, and stops with it.
    Kind("stop", "--fault none", (*HOST, "host late: waited for gpu", "gpu late"), rank=2, first=6, last=7, variables="KIND_STOP='2 5 1.5'", told_once=True),
    Kind("hang", "--fault hang --rank 2 --first-step 6", ("hang",), rank=2, first=6, variables="KIND_END='2 20'", told_once=True),
    Kind("death", "--fault death --rank 1 --first-step 6", ("hang",), first=6, variables="KIND_END='1 20'", told_once=True),
    Kind("sockets", "--fault none --net Socket --no-tracer", ("fallback to sockets",), rank=None, first=1),
    # Of rank 1's two devices one is down when the job begins, or is not in its list: all ranks then go over one.
    Kind("port-down", "--fault none --ranks 3 --rails 2", ("fallback to one rail",), first=1, variables="KIND_DOWN=ve4"),
    Kind("one-rail", "--fault none --ranks 3 --rails 2 --one-rail 1", ("fallback to one rail",), first=1),
    Kind("port-lost", "--fault none --ranks 3 --rails 2", ("hang",), first=6, variables="KIND_LOSE='ve4 1 5 30' KIND_TIMEOUT=16", told_once=True),
    Kind("everybody", "--fault gpu --rank -1 --delay 150", rank=None),
    Kind("checkpoint", "--fault host --rank -1 --delay 900 --every 3 --first-step 2", rank=None, first=2),
)
VARIABLES = "KIND_DOWN KIND_LOSE KIND_TIMEOUT KIND_CLASS KIND_STOP KIND_END KIND_QUEUE QPSCOPE_HOST_OPTIONS"


def print_plan(kinds):
    for seed, kind in enumerate(kinds, 41):
        print(f"unset {VARIABLES}")
        if kind.variables:
            print(f"export {kind.variables}")
        print(f"job_run {kind.name} {kind.options} --steps {STEPS} --seed {seed} --limit 150")


def fits(kind, row):
    """Whether the verdict is of the kind's place."""
    if kind.is_link:
        return kind.rank in (row["rank"], row["peer_rank"])
    return kind.rank is None or row["rank"] == kind.rank


def rows_of(path, query, *values):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    return database.execute(query, values).fetchall()


def verdicts_of(path, kind):
    """All, and those that have the count beside them that the kind wants."""
    told = {row["verdict"] for row in rows_of(path, "SELECT verdict FROM verdict_evidence WHERE metric = ? AND amount > 0", kind.evidence)}
    rows = rows_of(path, "SELECT * FROM verdict ORDER BY id")
    return rows, [row for row in rows if not kind.evidence or row["id"] in told]


def place_of(row):
    if row["device"]:
        return f"{row['rank']} to {row['peer_rank']}"
    return "all" if row["rank"] is None else f"rank {row['rank']}"


def other_verdicts(rows):
    counts = collections.Counter(f"{row['class']} ({place_of(row)})" for row in rows)
    return ", ".join(f"{what} x{count}" for what, count in counts.most_common()) or "nothing"


@dataclass
class Judgement:
    kind: Kind
    right: list
    others: list

    @property
    def steps_right(self):
        return {row["step"] for row in self.right}

    @property
    def is_right(self):
        if not self.kind.classes:
            return not self.others
        wanted = 1 if self.kind.told_once else len(self.kind.steps) // 2 + 1
        return len(self.steps_right) >= wanted and len(self.right) >= len(self.others)

    def row(self):
        wanted = "/".join(self.kind.classes) or "nothing"
        found = "" if not self.kind.classes else f"{len(self.steps_right)} of {1 if self.kind.told_once else len(self.kind.steps)}"
        return f"| {self.kind.name} | {wanted} | {found} | {other_verdicts(self.others)} |"


def judge(folder, kind):
    rows, told = verdicts_of(os.path.join(folder, kind.name, "qpscope.db"), kind)
    right = [row for row in told if row["class"] in kind.classes and fits(kind, row) and (row["step"] is None or row["step"] in kind.steps)]
    return Judgement(kind, right, [row for row in rows if row not in right])


def fault_was_made(folder, kind):
    """What the job itself says: else a kind without a verdict would be right for nothing."""
    truth = Truth(os.path.join(folder, kind.name))
    return bool(truth.faults) or "--fault none" in kind.options


def check(folder, kinds):
    failed, table = 0, []
    for number, kind in enumerate(kinds, 1):
        judged = judge(folder, kind)
        good = judged.is_right and fault_was_made(folder, kind)
        failed += not good
        table.append(judged.row())
        print(f"{'ok' if good else 'not ok'} {number} - {kind.name}: {'/'.join(kind.classes) or 'nothing'}; else {other_verdicts(judged.others)}")
    print(f"1..{len(kinds)}")
    print("# | fault | right | steps with it | what else was said |\n# |---|---|---|---|")
    for line in table:
        print(f"# {line}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("plan", "check"))
    parser.add_argument("names", nargs="*", help="check: first the folder; then kinds (all)")
    options = parser.parse_args()
    folder = options.names.pop(0) if options.do == "check" and options.names else None
    kinds = [kind for kind in KINDS if not options.names or kind.name in options.names]
    if not kinds or (options.do == "check" and folder is None):
        parser.error(f"kinds are {', '.join(kind.name for kind in KINDS)}; check wants a folder first")
    return check(folder, kinds) if options.do == "check" else print_plan(kinds)


if __name__ == "__main__":
    sys.exit(main())
