#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures verdicts: plays jobs with known faults (tests/simulation), lets `qpscope replay` judge each, and makes the
confusion matrix of it. `--set judging` is what is reported; tune on `--set tuning` only. Exit status 1 when a run
failed, or when `--demand` is given and not met; 2 for a wrong call."""

import argparse
import dataclasses
import json
import multiprocessing
import os
import random
import sys
import time

import cases
import judge
import score

VIEWS = {
    "both": (),
    "sender": ("--sight", "sender"),
    "receiver": ("--sight", "receiver"),
    "counters": ("--sight", "counters"),
    "no-host": ("--no-host",),
}


def chosen(arguments):
    shapes = set(arguments.shape.split(",")) if arguments.shape else None
    faults = set(arguments.fault.split(",")) if arguments.fault else None
    found = list(cases.faulty_cases(arguments.set, arguments.seeds, shapes, faults))
    found = found[:: arguments.every]
    if not faults or "none" in faults:
        found += list(cases.quiet_cases(arguments.set, arguments.quiet_steps, shapes=shapes))
    return found


def judge_one(work):
    return judge.judge(*work)


def judge_all(arguments):
    programs = {name: os.path.join(arguments.build, path) for name, path in PROGRAMS.items()}
    work = [(case, programs, VIEWS[arguments.view]) for case in chosen(arguments)]
    random.Random(1).shuffle(work)  # a run that is cut short has seen a fair part
    until = time.monotonic() + arguments.seconds if arguments.seconds else None
    with multiprocessing.Pool(arguments.jobs) as pool:
        for number, outcome in enumerate(pool.imap(judge_one, work)):
            if arguments.verbose:
                print(f"{number + 1}/{len(work)} {tell(outcome)}", file=sys.stderr)
            yield outcome
            if until and time.monotonic() > until:
                break


PROGRAMS = {"simulate": "tests/simulation/simulate", "qpscope": "cli/qpscope"}


def place_of(said):
    if said["candidates"]:
        return "one of " + ", ".join(map(str, said["candidates"]))
    return f"{said['rank']}" + ("" if said["peer"] is None else f"->{said['peer']}")


def tell(outcome):
    said = ", ".join(
        f"{s['class']} {place_of(s)} x{s['steps']}"
        + ("" if s["placed"] else " (wrong)")
        for s in outcome.said
    )
    steps = f"{outcome.steps_seen}/{outcome.steps} steps, {outcome.incomplete}/{outcome.operations} incomplete"
    error = "" if outcome.size_error is None else f", size {outcome.size_error:+.0%}"
    return f"{outcome.case}: costs {outcome.cost_ns / 1e3:.0f} us ({outcome.share:.1%}); {steps}{error}; {said or '-'} {outcome.error}"


def meets(result, demand):
    """demand: precision,recall,false alarms in 10 000 steps"""
    precision, recall, alarms = (float(word) for word in demand.split(","))
    found = [result["precision"]["share"] or 0, result["recall_above_3_percent"]["share"] or 0]
    return found[0] >= precision and found[1] >= recall and (result["false_alarms_10000_steps"] or 0) <= alarms


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="build folder (default: build)")
    parser.add_argument("--set", choices=("tuning", "judging"), default="tuning")
    parser.add_argument("--view", choices=VIEWS, default="both", help="what is seen of the jobs")
    parser.add_argument("--shape", help="only these shapes, separated by commas")
    parser.add_argument("--fault", help="only these faults, separated by commas; none: jobs without one")
    parser.add_argument("--seeds", type=int, default=1, help="cases of each shape, fault and size")
    parser.add_argument("--every", type=int, default=1, help="only each n-th faulty case")
    parser.add_argument("--quiet-steps", type=int, default=1000, help="steps of jobs without a fault")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=int, help="end after this time, with what has been judged by then")
    parser.add_argument("--json", metavar="FILE", help="write summary and outcomes there")
    parser.add_argument("--demand", metavar="P,R,A", help="precision, recall above 3 %% of a step, false alarms: fail when missed")
    parser.add_argument("--verbose", action="store_true", help="a line a case on stderr")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    outcomes = list(judge_all(arguments))
    result = score.summary(outcomes)
    score.print_summary(result)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"summary": result, "outcomes": [dataclasses.asdict(o) for o in outcomes]}, file, indent=1)
    if result["failed"]:
        return 1
    return 1 if arguments.demand and not meets(result, arguments.demand) else 0


if __name__ == "__main__":
    sys.exit(main())
