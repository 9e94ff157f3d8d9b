#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What qpscope-host takes of its machine, as JSON lines: bench_agent.py BUILD [SECONDS].

Idle; beside 8 processes of 1000 data calls a second each; and beside one that calls as fast as it can, where what is
lost must be counted. The stand-in library's calls do nothing, so a call's time is the probe's."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bpf"))
from host import Tree, skip_reason, take_machine  # noqa: E402

HOST = f"{BUILD}/host/qpscope-host"


class Agent:
    def __init__(self, tree, folder, *options):
        self.capture = f"{folder}/host.cap"
        self.log = f"{folder}/log"
        self.process = subprocess.Popen([HOST, "--record", self.capture, "--library", tree.path + tree.library,
                                         "--library", tree.path + tree.verbs, "--verbose", *options],
                                        stderr=open(self.log, "w"))
        while "ready" not in open(self.log).read():
            time.sleep(0.05)

    def cpu_s(self):
        tasks = f"/proc/{self.process.pid}/task"
        return sum(int(open(f"{tasks}/{tid}/schedstat").read().split()[0]) for tid in os.listdir(tasks)) / 1e9

    def resident_kib(self):
        return next(int(line.split()[1]) for line in open(f"/proc/{self.process.pid}/status") if line.startswith("VmRSS"))

    def counters(self):
        time.sleep(0.3)
        self.process.terminate()
        self.process.wait()
        return {name: int(total) for name, total in re.findall(r"debug: (\w+) (\d+)\n", open(self.log).read())}


def measure(tree, name, options, arguments, processes):
    """Returns the row of one case."""
    with tempfile.TemporaryDirectory(prefix="qpscope-bench-") as folder:
        agent = Agent(tree, folder, *options)
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
        counters = agent.counters()
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
