# SPDX-License-Identifier: BSD-2-Clause
"""Plays a case, lets qpscope judge it, and lays what it says beside the truth."""

import contextlib
import dataclasses
import json
import math
import os
import sqlite3
import statistics
import subprocess
import tempfile

from cases import CLASSES, ON_LINKS, is_right_class


@dataclasses.dataclass
class Outcome:
    """What came of a case. said: (class, place is right, in a faulty step) of each thing that was said, once each."""

    case: str
    shape: str
    fault: str
    size: str
    ranks: int = 0
    steps: int = 0
    steps_seen: int = 0
    operations: int = 0
    incomplete: int = 0
    cost_ns: float = 0  # median by which the fault lengthens a step
    share: float = 0  # of an undisturbed step
    said: list = dataclasses.field(default_factory=list)
    right_steps: int = 0  # faulty steps with a right verdict
    size_error: float = None  # of the right verdicts' sizes against the cost, median
    delay_steps: int = None  # from the first faulty step to the first right verdict
    false_steps: int = 0  # steps with a verdict that is wrong
    error: str = ""

    @property
    def found(self):
        return self.right_steps > 0


def simulate(program, case, view, folder):
    command = [program, *case.arguments, "--seed", str(case.seed), "--one-file", *view, folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "truth.json"), encoding="utf-8") as file:
        return json.load(file)


def durations(truth):
    """From the end of the step before to its own: ranks of a pipeline never begin together."""
    ends = [row["end_ns"] for row in truth["rows"]]
    begins = [truth["rows"][0]["begin_ns"], *ends]
    return [end - begin if begin and end else None for begin, end in zip(begins, ends)]


def without_fault(program, case, folder):
    """The same job, chance and all, without the fault: what it costs is the difference, step by step."""
    words = list(case.arguments)
    words[words.index("--fault") + 1] = "none"
    undisturbed = dataclasses.replace(case, arguments=tuple(words))
    return durations(simulate(program, undisturbed, ["--no-host", "--sight", "sender"], folder))


def costs(program, case, truth, folder):
    """(median cost in ns, its share of an undisturbed step) over the faulty steps."""
    quiet = without_fault(program, case, folder)
    here = durations(truth)
    steps = [i for i in range(case.first_step, min(case.last_step + 1, len(here))) if here[i] and quiet[i]]
    if not steps:
        return 0, 0
    return statistics.median(here[i] - quiet[i] for i in steps), statistics.median(
        (here[i] - quiet[i]) / quiet[i] for i in steps
    )


def read_store(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        verdicts = store.execute(
            "SELECT coalesce(step.start_ns, operation.start_ns), coalesce(step.end_ns, operation.end_ns), class, rank, "
            "candidates, peer_rank, verdict.size_ns FROM verdict LEFT JOIN step ON step.id = verdict.step JOIN operation ON "
            "operation.id = verdict.operation"
        ).fetchall()
        seen = store.execute("SELECT count(*) FROM step").fetchone()[0]
        operations = store.execute("SELECT count(*), coalesce(sum(status = 'incomplete'), 0) FROM operation").fetchone()
    return verdicts, seen, operations


def true_step(truth, start_ns, end_ns):
    """The step with which the interval has most in common; what hangs has no end."""
    best, most = None, 0
    for row in truth["rows"]:
        if row["begin_ns"] == 0:  # never begun
            continue
        row_end_ns = row["end_ns"] or math.inf  # a step that hangs does not end
        common = min(end_ns or math.inf, row_end_ns) - max(start_ns, row["begin_ns"])
        if common > most:
            best, most = row["step"], common
    return best


def may_be(truth, candidates):
    """Whether they are no more than those that cannot be told from the struck rank: the GPUs of its node."""
    gpus = truth["ranks"] // truth["nodes"]
    struck = truth["fault"]["rank"]
    return struck in candidates and all(rank // gpus == struck // gpus for rank in candidates)


def is_right_place(truth, fault, rank, candidates, peer):
    struck = truth["fault"]["rank"]
    if candidates:
        return fault not in ON_LINKS and may_be(truth, candidates)
    if fault in ("loss", "receiver"):  # either direction's frames: both ends are candidates
        return struck in (rank, peer)
    if fault in ON_LINKS:
        return rank == struck and peer is not None
    return rank == struck and peer is None


def weigh(case, truth, verdicts, outcome):
    said, sizes, right, wrong = {}, [], set(), set()
    for start, end, kind, rank, candidates, peer, size in verdicts:
        step = true_step(truth, start, end)
        several = tuple(int(word) for word in candidates.split(",")) if candidates else ()
        in_time = step is not None and case.first_step <= step <= case.last_step and case.fault in CLASSES
        placed = in_time and is_right_place(truth, case.fault, rank, several, peer)
        key = (kind, rank, several, peer, placed, in_time)
        said[key] = said.get(key, 0) + 1
        if placed and is_right_class(case.fault, kind):
            right.add(step)
            sizes.append(size)
        else:
            wrong.add(step)
    outcome.said = [
        {
            "class": kind,
            "rank": rank,
            "candidates": several,
            "peer": peer,
            "placed": placed,
            "in_time": in_time,
            "steps": count,
        }
        for (kind, rank, several, peer, placed, in_time), count in said.items()
    ]
    outcome.right_steps, outcome.false_steps = len(right), len(wrong)
    if right:
        outcome.delay_steps = min(right) - case.first_step
    if right and outcome.cost_ns > 0:
        outcome.size_error = (statistics.median(sizes) - outcome.cost_ns) / outcome.cost_ns


def judge(case, programs, view=()):
    outcome = Outcome(case.name, case.shape, case.fault, case.size)
    with tempfile.TemporaryDirectory(prefix="qpscope-verdicts-") as folder:
        try:
            if case.fault in CLASSES and case.fault != "hang":
                quiet = os.path.join(folder, "quiet")
                os.mkdir(quiet)
            truth = simulate(programs["simulate"], case, view, folder)
            if case.fault in CLASSES and case.fault != "hang":
                outcome.cost_ns, outcome.share = costs(programs["simulate"], case, truth, quiet)
            store = os.path.join(folder, "store.db")
            command = [programs["qpscope"], "replay", "--store", store, os.path.join(folder, "all.capture")]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except subprocess.CalledProcessError as error:
            outcome.error = f"{error.cmd[0]}: {(error.stderr or b'').decode(errors='replace')[-200:]}"
            return outcome
        verdicts, outcome.steps_seen, (outcome.operations, outcome.incomplete) = read_store(store)
    outcome.ranks, outcome.steps = truth["ranks"], len(truth["rows"])
    weigh(case, truth, verdicts, outcome)
    return outcome
