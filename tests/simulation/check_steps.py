#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays a job (arguments of simulate behind --), lets `qpscope replay` find its steps and compares them with the truth:
each whole step of the job is one step of the store, of the kind that it is, and takes as long. Exit status 1 when not."""

import argparse
import contextlib
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile


def true_steps(truth):
    """(end, duration) of each whole step: from the end of the step before; ranks of a pipeline never begin together."""
    ends = [row["end_ns"] for row in truth["rows"]]
    begins = [truth["rows"][0]["begin_ns"], *ends]
    return [(row, end - begin) for row, begin, end in zip(truth["rows"], begins, ends) if begin and end]


def read_steps(path):
    """The steps, and how many operations were not found whole, though nothing is ever lost here."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        steps = store.execute("SELECT id, start_ns, end_ns, duration_ns, kind FROM step ORDER BY id").fetchall()
        broken = "SELECT count(*) FROM operation WHERE status NOT IN ('complete', 'no wire')"
        verdicts = store.execute("SELECT step, class, rank FROM verdict").fetchall()
        return steps, store.execute(broken).fetchone()[0], verdicts


def kind_of(row, fault):
    """What the job meant the step to be: five of warm-up, a checkpoint behind each tenth one."""
    if fault == "warm-up" and row["step"] < 5:
        return "warm-up"
    if fault == "checkpoint" and row["step"] > 0 and row["step"] % 10 == 0:
        return "checkpoint"
    return "evaluation" if row["evaluation"] else "training"


def compare_turned(truth, found, arguments):
    """What is wrong where a step may be taken to begin anywhere in it: how many there are, and how long they are."""
    steps = true_steps(truth)
    usual = statistics.median(duration for _, duration in steps)
    error = abs(statistics.median(step[3] for step in found or [(0, 0, 0, 0)]) - usual) / usual
    print(f"{len(steps)} steps, {len(found)} found, error of the median duration {error:.2%}")
    wrong = [] if abs(len(steps) - len(found)) <= arguments.skip else ["not as many steps were found"]
    return wrong + ([f"error of the median duration: {error}"] if error > arguments.tolerance else [])


def compare_late(truth, store, found, arguments):
    """What is wrong with the steps that have verdicts of that class: they are to be those with the fault."""
    ends = [row["end_ns"] for row in truth["rows"]]
    step_of = {step[0]: min(range(len(ends)), key=lambda row: abs(ends[row] - step[2])) for step in found}
    said = {step_of[step] for step, name, _ in store if name == arguments.late}
    others = {name for _, name, _ in store if name != arguments.late}
    wanted = set(range(truth["fault"]["first_step"], min(truth["fault"]["last_step"] + 1, len(ends))))
    wrong = [f"{arguments.late} in steps {sorted(said)}, the fault is in {sorted(wanted)}"] if said != wanted else []
    # without hosts a rank is a NIC, in the order of addresses, which in the model is that of the ranks
    ranks, right = {rank for _, _, rank in store}, None if arguments.nobody else truth["fault"]["rank"]
    if ranks != {right}:
        wrong.append(f"said of ranks {ranks}, right is {right}")
    return wrong + [f"said what cannot be seen: {name}" for name in others]


def compare(truth, found, arguments):
    """What is wrong, in words."""
    wrong = []
    errors = []
    steps = true_steps(truth)
    near = min(duration for _, duration in steps) / 4
    for row, duration in steps[arguments.skip :]:
        ending = [step for step in found if abs(step[2] - row["end_ns"]) < near]
        if len(ending) != 1:
            wrong.append(f"step {row['step']}: {len(ending)} steps of the store end in it")
            continue
        kind = kind_of(row, truth["fault"]["name"])
        if ending[0][4] != kind:
            wrong.append(f"step {row['step']} is {kind}, was taken for {ending[0][4]}")
        errors.append(abs(ending[0][3] - duration) / duration)
    if not errors or statistics.median(errors) > arguments.tolerance:
        wrong.append(f"median error of the duration: {statistics.median(errors) if errors else None}")
    print(f"{len(steps)} steps, {len(found)} found, median error {statistics.median(errors or [0]):.2%}, "
          f"largest {max(errors or [0]):.2%}, {len(wrong)} wrong")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="build folder (default: build)")
    parser.add_argument("--skip", type=int, default=1, help="first steps of the job that need not be found (default: 1)")
    parser.add_argument("--tolerance", type=float, default=0.01, help="of the median duration error (default: 0.01)")
    parser.add_argument("--step-on", metavar="OPERATION", help="of qpscope replay")
    parser.add_argument("--turned", action="store_true", help="a step may be taken to begin anywhere in it")
    parser.add_argument("--late", metavar="CLASS", help="the steps with the fault, and no others, have this verdict")
    parser.add_argument("--nobody", action="store_true", help="... which names no rank")
    parser.add_argument("--keep", metavar="FOLDER", help="keep captures, truth and store there")
    parser.add_argument("simulate", nargs="+", help="arguments of simulate")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qpscope-steps-") as scratch:
        folder = arguments.keep or scratch
        os.makedirs(folder, exist_ok=True)
        simulate = os.path.join(arguments.build, "tests/simulation/simulate")
        subprocess.run([simulate, *arguments.simulate, "--one-file", folder], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "truth.json"), encoding="utf-8") as file:
            truth = json.load(file)
        store = os.path.join(folder, "store.db")
        command = [os.path.join(arguments.build, "cli/qpscope"), "replay", "--store", store]
        command += ["--step-on", arguments.step_on] if arguments.step_on else []
        subprocess.run([*command, os.path.join(folder, "all.capture")], check=True, stdout=subprocess.DEVNULL)
        steps, broken, verdicts = read_steps(store)
    wrong = (compare_turned if arguments.turned else compare)(truth, steps, arguments)
    if arguments.late:
        wrong += compare_late(truth, verdicts, steps, arguments)
    if broken > 0:
        wrong.append(f"{broken} operations are not complete")
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
