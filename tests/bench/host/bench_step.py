#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What qpscope-host makes of a job's steps, as JSON lines: bench_step.py BUILD [QUADS [SECONDS [RANKS CALLS COMPUTE_US]]].

RANKS (2 or 1) run all the time; a step is CALLS (20) times COMPUTE_US (1000) of computing, a data call and, with two
ranks, a meeting. The agent comes and goes: blocks of SECONDS without it, with, with, without. A block counts as the
median of its steps, and as the tenth part of them that was disturbed least, which is what counts on a busy machine; the
effect is the mean over the quads, with its 95 % interval: half of that is the smallest effect that the runs could have
shown. Both for the steps' time and for the processor's time that rank 0 took for one."""
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
QUADS = int(sys.argv[2]) if len(sys.argv) > 2 else 20
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 4
RANKS, CALLS, COMPUTE_US = sys.argv[4:7] if len(sys.argv) > 6 else ("2", "20", "1000")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bpf"))
from agent import START_S, Agent  # noqa: E402
from host import Tree, skip_reason, take_machine  # noqa: E402

HOST = f"{BUILD}/host/qpscope-host"
SETTLE_S = 0.5  # of an agent that is ready
# Student's t, two-sided 95 %, by degrees of freedom
T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 12: 2.18, 15: 2.13, 20: 2.09, 30: 2.04}


def student(freedom):
    return next((T[n] for n in sorted(T, reverse=True) if n <= freedom), 12.71)


def run_blocks(tree, folder):
    """Returns the blocks: (agent or not, from, to) in ns; the agent's share of a core in each; what all told of calls and
    gave up."""
    blocks, shares, told = [], [], {"calls": 0, "back_offs": 0}
    for letter in "ABBA" * QUADS:
        agent = Agent(HOST, folder, "--root", tree.path) if letter == "B" else None
        time.sleep(SETTLE_S if agent else 0)
        from_s, spent_s = time.monotonic(), agent.cpu_s() if agent else 0
        time.sleep(SECONDS)
        blocks.append((letter, int(from_s * 1e9), int(time.monotonic() * 1e9)))
        if agent:
            shares.append((agent.cpu_s() - spent_s) / (time.monotonic() - from_s))
            log = agent.end()
            told["calls"] += int(re.search(r"debug: calls_total (\d+)\n", log).group(1))
            told["back_offs"] += log.count("no longer told")
    return blocks, shares, told


def steps_within(steps, start, end):
    return [s for s in steps if s["at_ns"] - s["step_ns"] >= start and s["at_ns"] <= end]


def part_of(values, part):
    assert values, "no step ended within a block"
    return sorted(values)[int(len(values) * part)]


def effect(blocks, steps, key, part):
    """Of each quad, how much longer with than without."""
    values = [part_of([s[key] for s in steps_within(steps, start, end)], part) for _, start, end in blocks]
    quads = [values[i:i + 4] for i in range(0, len(values), 4)]
    parts = [(b1 + b2) / (a1 + a2) - 1 for a1, b1, b2, a2 in quads]
    mean = statistics.mean(parts)
    half = student(len(parts) - 1) * statistics.stdev(parts) / math.sqrt(len(parts)) if len(parts) > 1 else math.inf
    without = statistics.median([m for (letter, _, _), m in zip(blocks, values) if letter == "A"])
    return {"row": "effect", "of": key, "part": part, "without_ms": round(without / 1e6, 4), "effect_percent": round(100 * mean, 3),
            "half_interval_percent": round(100 * half, 3) if half < math.inf else None,
            "median_effect_percent": round(100 * statistics.median(parts), 3)}


def main():
    reason = skip_reason(HOST)
    if reason:
        print(json.dumps({"row": "skip", "reason": reason}))
        return 77
    take_machine()
    tree = Tree(BUILD)
    seconds = int(QUADS * (4 * SECONDS + 2 * START_S)) + 60
    job = subprocess.Popen([f"{BUILD}/tests/bench/host/bench_step", tree.path + tree.library, str(seconds), RANKS, CALLS, COMPUTE_US],
                           stdout=open(tree.path + "/steps", "w"),
                           env={**os.environ, "STANDIN_VERBS": tree.path + tree.verbs})
    try:
        with tempfile.TemporaryDirectory(prefix="qpscope-bench-") as folder:
            time.sleep(2)
            blocks, shares, told = run_blocks(tree, folder)
    finally:
        job.terminate()
        job.wait()
        steps = [json.loads(line) for line in open(tree.path + "/steps") if line.endswith("}\n")]
        tree.remove()
    print(json.dumps({"row": "header", "generator": "bench_step", "quads": QUADS, "block_s": SECONDS, "ranks": int(RANKS),
                      "calls": int(CALLS), "compute_us": int(COMPUTE_US), "steps": len(steps),
                      "load": os.getloadavg()[0]}))
    for key in ("step_ns", "cpu_ns"):
        for part in (0.1, 0.5):
            print(json.dumps(effect(blocks, steps, key, part)))
    print(json.dumps({"row": "agent", "core_percent": round(100 * statistics.median(shares), 2), **told}))
    made = sum(int(RANKS) * int(CALLS) * len(steps_within(steps, start, end)) for letter, start, end in blocks if letter == "B")
    assert told["calls"] >= made > 0, (told, made)
    return 0


sys.exit(main())
