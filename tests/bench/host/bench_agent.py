#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What qpscope-host takes of its machine, as JSON lines: bench_agent.py BUILD [SECONDS].

Idle; beside 8 processes of 1000 data calls a second each; and beside one that calls as fast as it can, where what is
lost must be counted. The stand-in library's calls do nothing, so a call's time is the probe's."""
import json
import os
import re
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bpf"))
from agent import Agent  # noqa: E402
from host import Tree, skip_reason, take_machine  # noqa: E402

HOST = f"{BUILD}/host/qpscope-host"


def counters_of(agent):
    time.sleep(0.3)
    return {name: int(total) for name, total in re.findall(r"debug: (\w+) (\d+)\n", agent.end())}


def measure(tree, name, options, arguments, processes):
    """Returns the row of one case."""
    with tempfile.TemporaryDirectory(prefix="qpscope-bench-") as folder:
        agent = Agent(HOST, folder, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs, *options)
        paced = bool(arguments) and arguments[0] == "pace"
        before_s, from_s = agent.cpu_s(), time.monotonic()
        programs = [tree.start(*arguments) for _ in range(processes)]
        if paced:  # while all of them call: not while they start and end
            time.sleep(1)
            before_s, from_s = agent.cpu_s(), time.monotonic()
        if paced or not programs:
            time.sleep(SECONDS)
        spent_s, wall_s = agent.cpu_s() - before_s, time.monotonic() - from_s
        for program in programs:
            program.finish()
        if not paced and programs:
            spent_s, wall_s = agent.cpu_s() - before_s, time.monotonic() - from_s
        resident_kib = agent.resident_kib()
        counters = counters_of(agent)
        made = sum(line["paced"] for program in programs for line in program.all("paced")) or \
            sum(line["done"] for program in programs for line in program.all("done"))
        missed = made - counters["calls_total"]
        assert missed <= counters["events_lost_total"], (missed, counters)  # nothing is lost silently
        return {"row": "case", "case": name, "calls": made, "calls_a_second": round(made / (SECONDS + 2 if paced else wall_s)),
                "agent_core_percent": round(100 * spent_s / wall_s, 2), "resident_mib": round(resident_kib / 1024, 1),
                "calls_lost": missed, "events_lost": counters["events_lost_total"],
                "back_offs": counters["probe_back_offs_total"]}


def main():
    reason = skip_reason(HOST)
    if reason:
        print(json.dumps({"row": "skip", "reason": reason}))
        return 77
    take_machine()
    tree = Tree(BUILD)
    unbounded = ("--probe-time", "1s")
    cases = [("idle", (), (), 0),
             ("8 ranks, 1000 calls/s each", unbounded, ("pace", "1000", str(SECONDS + 2)), 8),
             ("the same within the budget", (), ("pace", "1000", str(SECONDS + 2)), 8),
             ("1 rank, as fast as it can", unbounded, ("short", str(100000 * SECONDS)), 1)]
    try:
        for case in cases:
            print(json.dumps(measure(tree, *case)), flush=True)
    finally:
        tree.remove()
    return 0


sys.exit(main())
