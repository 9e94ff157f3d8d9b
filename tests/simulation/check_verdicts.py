#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays a job (arguments of simulate behind --), lets `qpscope replay` judge it and lays every verdict beside the truth:
with --say, steps with the fault have a verdict of that class (whatever its cause) at the rank that it hits, or with it
among the candidates, and nothing else has any; without, nothing has any. Exit status 1 when not."""

import argparse
import contextlib
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile


def play(arguments, words, folder):
    os.makedirs(folder, exist_ok=True)
    simulate = os.path.join(arguments.build, "tests/simulation/simulate")
    subprocess.run([simulate, *words, "--one-file", folder], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "truth.json"), encoding="utf-8") as file:
        return json.load(file)


def judge(arguments, folder):
    path = os.path.join(folder, "store.db")
    command = [os.path.join(arguments.build, "cli/qpscope"), "replay", "--store", path]
    subprocess.run([*command, os.path.join(folder, "all.capture")], check=True, stdout=subprocess.DEVNULL)
    return contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True))


def true_steps(truth, store):
    """Of each step of the store the job's step that ends nearest."""
    ends = [row["end_ns"] for row in truth["rows"]]
    return {
        step: min(range(len(ends)), key=lambda row: abs(ends[row] - end))
        for step, end in store.execute("SELECT id, end_ns FROM step")
    }


def faulty(truth):
    fault = truth["fault"]
    if fault["name"] == "none":
        return set()
    last = fault["first_step"] if fault["name"] in ("gpu-once", "hang") else fault["last_step"]
    return set(range(fault["first_step"], min(last + 1, len(truth["rows"]))))


def compare(truth, store, arguments):
    """What is wrong, in words."""
    step_of, wanted, right, wrong = true_steps(truth, store), faulty(truth), set(), []
    columns = "step, class, rank, peer_rank, size_ns, candidates"
    for step, name, rank, peer, size, named in store.execute(f"SELECT {columns} FROM verdict ORDER BY step").fetchall():
        step = truth["fault"]["first_step"] if name == "hang" else step_of.get(step)
        candidates = [] if named is None else [int(one) for one in named.split(", ")]
        placed = truth["fault"]["rank"] in [rank, *candidates, *([peer] if arguments.either_end else [])]
        placed = placed and len(candidates) <= arguments.candidates
        if arguments.say and name.partition(":")[0] == arguments.say and step in wanted and placed:
            right.add(step)
        else:
            wrong.append(f"step {step}: {name}, rank {rank}, peer {peer}, {size / 1e6:.2f} ms")
    print(f"{len(right)} of {len(wanted)} steps with the fault have their verdict, {len(wrong)} other verdicts")
    if arguments.say and len(right) < arguments.least * len(wanted):
        wrong.append(f"only {len(right)} of {len(wanted)} steps with the fault have their verdict")
    return wrong


def check_words(store):
    """No time in a verdict's words is longer than all that was heard, but for a hang."""
    (span,) = store.execute("SELECT max(end_ns) - min(start_ns) FROM operation").fetchone()
    return [
        f"step {step}: {time} ms, in a job of {span / 1e6:.1f} ms: {words}"
        for step, words in store.execute("SELECT step, evidence FROM verdict WHERE step IS NOT NULL")
        for time in re.findall(r"([0-9.]+) ms", words)
        if float(time) * 1e6 > span
    ]


def durations(truth):
    ends = [row["end_ns"] for row in truth["rows"]]
    return [end - begin for begin, end in zip([truth["rows"][0]["begin_ns"], *ends], ends)]


def compare_costs(truth, store, arguments, folder):
    """What the rank costs the faulty steps beside what they take longer than those of the same job without the fault."""
    words = list(arguments.simulate)
    words[words.index("--fault") + 1] = "none"
    quiet = durations(play(arguments, words, folder))
    here = durations(truth)
    costs = {
        row: cost
        for step, row in true_steps(truth, store).items()
        for (cost,) in store.execute(
            "SELECT cost_ns FROM rank_step WHERE step = ? AND rank = ?", (step, truth["fault"]["rank"])
        )
    }
    steps = sorted(faulty(truth) & set(costs))
    told = statistics.mean(costs[step] for step in steps)
    true = statistics.mean(here[step] - quiet[step] for step in steps)
    print(f"told {told / 1e6:.3f} ms a step, true {true / 1e6:.3f} ms")
    return [] if abs(told - true) <= arguments.cost * true else [f"costs {true} ns a step, told were {told}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="build folder (default: build)")
    parser.add_argument("--say", metavar="CLASS", help="what is to be said of the steps with the fault")
    parser.add_argument("--least", type=float, default=0.9, help="share of them that must have it (default: 0.9)")
    parser.add_argument("--either-end", action="store_true", help="of a link's ends either may be the rank that it hits")
    parser.add_argument("--candidates", type=int, default=8, help="at most so many may be named (default: 8)")
    parser.add_argument("--cost", type=float, metavar="SHARE", help="how far the told cost may be off")
    parser.add_argument("--keep", metavar="FOLDER", help="keep captures, truth and store there")
    parser.add_argument("simulate", nargs="+", help="arguments of simulate")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qpscope-verdicts-") as scratch:
        folder = arguments.keep or scratch
        truth = play(arguments, arguments.simulate, folder)
        with judge(arguments, folder) as store:
            wrong = compare(truth, store, arguments) + check_words(store)
            if arguments.cost is not None:
                wrong += compare_costs(truth, store, arguments, os.path.join(folder, "quiet"))
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
