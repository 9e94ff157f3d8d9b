#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_job.py FOLDER: compares what qpscope stored about a job of the lab with the job's own truth, as TAP.

FOLDER is a job's folder as run.sh leaves it, with hook_qpscope.sh: truth*.jsonl and qpscope.db. The reference clock of
the store is the guest's CLOCK_MONOTONIC, which is the truth's clock too. Exit status 1 when something is not right.
--store FILE judges another store (a replay's).

Owners, calls, bytes and the number of steps are facts: each must be right. Durations, sizes and natural lateness vary on an
emulated machine, so that a single job can fall outside of a threshold that many jobs keep: with --collect FILE what was
found of these is one line of JSON there, to be judged over all jobs (matrix.py), instead of a check of this job.
"""

import argparse
import collections
import hashlib
import json
import os
import sqlite3
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from tap import Tap  # noqa: E402
from truth import Truth  # noqa: E402

# Nine of ten steps within the first, all within the second: the emulated device notices an end some milliseconds after
# the wire has shown it, and now and then many.
STEP_TOLERANCE, STEP_TOLERANCE_MOST = 0.01, 0.05
SIZE_TOLERANCE_NS = 5_000_000  # of the median over jobs (matrix.py); one job's is allowed three times that
# What a slow link costs is known from the steps' own durations only, which vary by about that much.
LINK_TOLERANCE, LINK_COST_LEAST_NS = 0.25, 40_000_000
# A late host with its cause, or without where the probes that show it were taken off (they are, on a slow machine).
CLASSES_OF_FAULT = {"host": ("host late", "host late: blocked"), "gpu": ("gpu late",), "link": ("network slow",),
                    "cpu": ("host late", "host late: no cpu")}
MS = 1_000_000


class JobTap(Tap):
    """With `collecting` what varies is left to be judged over all jobs."""

    def __init__(self, collecting):
        super().__init__()
        self.collecting = collecting


class Store:
    def __init__(self, path):
        self.database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.database.row_factory = sqlite3.Row

    def rows(self, query, *values):
        return self.database.execute(query, values).fetchall()

    def calls(self):
        """(pid, pointer, kind if point to point, peer, sequence) -> row with rank_operation and its bytes."""
        query = """SELECT call.*, process.pid, member.pointer, rank_operation.observed_bytes, rank_operation.status
                   FROM call JOIN member ON member.id = call.member JOIN process ON process.id = member.process
                   LEFT JOIN rank_operation ON rank_operation.id = call.rank_operation"""
        found = {}
        for row in self.rows(query):
            to_peer = row["kind"] in ("Send", "Recv")
            key = (row["pid"], int(row["pointer"], 16), row["kind"] if to_peer else "", row["peer"] if to_peer else -1)
            found[(*key, row["sequence"])] = row
        return found


def call_key(operation):
    _, pointer, pid = operation.communicator.members[operation.rank]
    kind = operation.operation if operation.peer >= 0 else ""
    return pid, int(pointer, 16), kind, operation.peer, operation.sequence


def check_calls(tap, truth, calls):
    keys = {call_key(operation): operation for operation in truth.operations}
    missing = (f"rank {keys[key].rank} {keys[key].operation} {key}" for key in keys.keys() - calls.keys())
    tap.check("every call of the job was seen", missing, f"{len(keys)} calls")
    tap.check("no call was seen that the job did not make", map(str, calls.keys() - keys.keys()))
    wrong = (
        f"rank {operation.rank} {operation.operation} {operation.sequence}: seen as {calls[key]['kind']}"
        for key, operation in keys.items()
        if key in calls and calls[key]["kind"] != operation.operation
    )
    tap.check("every call has its kind", wrong)


def bytes_of_operations(truth, calls):
    """rank_operation -> (payload that the truth says was sent, row of one of its calls, one of the operations)."""
    sent = collections.defaultdict(int)
    example = {}
    for operation in truth.operations:
        row = calls.get(call_key(operation))
        if row is not None and row["rank_operation"] is not None:
            sent[row["rank_operation"]] += operation.sent_bytes
            example[row["rank_operation"]] = (row, operation)
    return {key: (sent[key], *example[key]) for key in sent}


def check_bytes(tap, truth, store, calls):
    """An operation that a shown loss touched may be incomplete; it must say so. Any other has the truth's bytes."""
    lost = bool(store.rows("SELECT id FROM gap"))
    operations = bytes_of_operations(truth, calls)
    unjoined = (
        f"rank {operation.rank} step {operation.step} {operation.operation} {operation.sequence} has no rank_operation"
        for operation in truth.operations
        if (row := calls.get(call_key(operation))) is not None and row["rank_operation"] is None
    )
    tap.check("every call belongs to an operation", unjoined)
    wrong = (
        f"rank {operation.rank} step {operation.step} {operation.communicator.name} {operation.operation} "
        f"{operation.sequence}: {row['observed_bytes']} bytes seen, {sent} sent, status {row['status']}"
        for sent, row, operation in operations.values()
        if row["observed_bytes"] != sent and not (lost and row["status"] == "incomplete")
    )
    tap.check("payload of every operation equals the truth", wrong, f"{len(operations)} rank operations")
    vague = [row["status"] for _, row, _ in operations.values() if row["status"] not in ("complete", "no wire")]
    note = f"{len(operations) - len(vague)} of {len(operations)}{', with a loss that is shown' if lost else ''}"
    tap.check("99 of 100 operations are called complete", vague if len(vague) * 100 > len(operations) and not lost else [], note)


def check_queue_pairs(tap, truth, store):
    query = """SELECT queue_pair.*, communicator.identity FROM queue_pair LEFT JOIN member ON member.id = queue_pair.member
               LEFT JOIN communicator ON communicator.id = member.communicator"""
    found = {(row["device"], row["qpn"]): row for row in store.rows(query)}
    wrong, foreign = [], []
    for (device, qpn), queue in truth.queues.items():
        row = found.get((device, qpn))
        identity = hashlib.blake2b(bytes.fromhex(queue.communicator.id), digest_size=16).hexdigest()
        peer = None if queue.is_flush else queue.peer_rank
        if row is None:
            wrong.append(f"{device} QPN {qpn} of rank {queue.rank} is not in the store")
        elif (row["identity"], row["rank"]) != (identity, queue.rank) or (peer is not None and row["peer_rank"] != peer):
            wrong.append(f"{device} QPN {qpn}: rank {row['rank']} to {row['peer_rank']}, not {queue.rank} to {peer}")
        elif queue.is_flush != (row["role"] == "flush"):
            wrong.append(f"{device} QPN {qpn}: role {row['role']}")
    for (device, qpn), row in found.items():
        if (device, qpn) not in truth.queues and row["member"] is not None:
            foreign.append(f"{device} QPN {qpn} is claimed for rank {row['rank']}")
    tap.check("every queue pair in the store: communicator, owner, peer", wrong, f"{len(truth.queues)} queue pairs")
    tap.check("no foreign queue pair is claimed", foreign, f"{len(truth.foreign_qpns)} foreign")


def truth_step_ends(truth):
    """rank -> step -> when the device ended the last operation of the step."""
    ends = collections.defaultdict(lambda: collections.defaultdict(int))
    for operation in truth.operations:
        if operation.ended_ns:
            step_ends = ends[operation.rank]
            step_ends[operation.step] = max(step_ends[operation.step], operation.ended_ns)
    return ends


def truth_durations(truth):
    """step -> median over ranks of the time from the end of the step before; step 0 has none."""
    ends = truth_step_ends(truth)
    return {
        step: statistics.median(ends[rank][step] - ends[rank][step - 1] for rank in ends)
        for step in range(1, int(truth.options["steps"]))
    }


def check_steps(tap, truth, store, found):
    steps = store.rows("SELECT * FROM step ORDER BY id")
    expected = int(truth.options["steps"])
    tap.check("number of steps", [f"{len(steps)} found, {expected} made"] if len(steps) != expected else [], f"{expected}")
    errors = {
        step["id"]: step["duration_ns"] / duration - 1
        for step in steps
        if not step["partial"] and (duration := truth_durations(truth).get(step["id"]))
    }
    far = [f"step {step}: {error:+.2%}" for step, error in errors.items() if abs(error) > STEP_TOLERANCE]
    most = max(map(abs, errors.values()), default=1)
    wrong = far if len(far) * 10 > len(errors) + 9 or most > STEP_TOLERANCE_MOST else []
    note = f"{len(errors) - len(far)} of {len(errors)}, worst {most:.2%}"
    found["durations"] = list(errors.values())
    if not tap.collecting:
        tap.check("step durations within 1 %", wrong if errors else ["no step to compare"], note)


def truth_lateness(truth):
    """(step, rank) -> the largest natural or injected lateness that the truth log shows, host or device."""
    by_operation = collections.defaultdict(list)
    for operation in truth.operations:
        if operation.begun_ns:
            key = (operation.step, operation.communicator.id, operation.operation if operation.peer >= 0 else "")
            by_operation[(*key, operation.sequence)].append(operation)
    late = collections.defaultdict(int)
    for (step, *_), operations in by_operation.items():
        for operation in operations:
            others = [other for other in operations if other is not operation]
            for time in ("called_ns", "begun_ns"):
                if others:
                    median = statistics.median(getattr(other, time) for other in others)
                    late[step, operation.rank] = max(late[step, operation.rank], getattr(operation, time) - median)
    return late


def natural_ms(truth):
    """How late ranks without a fault are in a step: its latest one, in the median step."""
    late, faulty = truth_lateness(truth), {int(truth.options["rank"])} if truth.options["fault"] != "none" else set()
    ranks = [rank for rank in truth.rank_places if rank not in faulty]
    return statistics.median(max(late[step, rank] for rank in ranks) for step in range(1, int(truth.options["steps"]))) / MS


def expected_size_ns(truth, fault):
    """What the fault cost: the injected delay; for a link what the steps' own durations say."""
    if fault != "link":
        return truth.faults[0].delay_ns
    durations, faulty = truth_durations(truth), {entry.step for entry in truth.faults}
    first = min(faulty)
    before = [value for step, value in durations.items() if 1 < step < first]
    after = [value for step, value in durations.items() if step > first]
    return statistics.median(after) - statistics.median(before)


def faulty_steps(truth):
    """A link stays slow from its first step on, though the job notes its fault only once."""
    first = min(entry.step for entry in truth.faults)
    if truth.options["fault"] == "link":
        return range(first, int(truth.options["steps"]))
    return sorted(entry.step for entry in truth.faults)


def check_faulty_steps(tap, truth, verdicts, found):
    """Every step with the fault has the right verdict. Returns the ids of these verdicts."""
    fault, rank = truth.options["fault"], int(truth.options["rank"])
    device = truth.rank_places[rank]["device"] + "/"
    right = {
        step: [
            row
            for row in verdicts[step]
            if row["class"] in CLASSES_OF_FAULT[fault]
            and row["rank"] == rank
            and (fault != "link" or (row["device"] or "").startswith(device))
        ]
        for step in faulty_steps(truth)
    }
    missing = [f"step {step}: {[(row['class'], row['rank']) for row in verdicts[step]]}" for step in right if not right[step]]
    size = expected_size_ns(truth, fault)
    errors = [sum(row["size_ns"] for row in rows) - size for rows in right.values() if rows]
    found |= {"fault": fault, "rank": rank, "size_ms": size / MS, "steps": len(right), "found": len(right) - len(missing)}
    found["errors_ms"] = [round(error / MS, 3) for error in errors]
    found["natural_ms"] = round(natural_ms(truth), 3)
    if fault == "link" and size < LINK_COST_LEAST_NS:
        found["errors_ms"] = []
    if not tap.collecting:
        tap.check(f"{fault} fault of rank {rank}: class and place in every step", missing, f"{len(right)} steps")
        check_size(tap, fault, size, errors)
    return {row["id"] for rows in right.values() for row in rows}


def check_size(tap, fault, size, errors):
    if fault == "link" and size < LINK_COST_LEAST_NS:
        tap.check("size of the fault", [], f"the truth shows no cost that could be compared: {size / MS:.1f} ms a step")
        return
    median = statistics.median(map(abs, errors)) if errors else float("inf")
    note = f"median error {median / MS:.2f} ms of {size / MS:.1f} ms"
    allowed = size * LINK_TOLERANCE if fault == "link" else 3 * SIZE_TOLERANCE_NS
    tap.check("size of the fault", [note] if median > allowed else [], note)


def is_foreign(truth, row):
    """A link is slow for the traffic that the plan put beside the job, which the truth log does not time."""
    ranks = {int(rank) for rank in truth.options.get("foreign", "").split(",") if rank}
    return bool(row["device"]) and bool(ranks & {row["rank"], row["peer_rank"]})


def check_verdicts(tap, truth, store, found):
    verdicts = collections.defaultdict(list)
    for row in store.rows("SELECT * FROM verdict ORDER BY id"):
        verdicts[row["step"]].append(row)
    expected = set()
    if truth.options["fault"] != "none":
        expected = check_faulty_steps(tap, truth, verdicts, found)
    late = truth_lateness(truth)
    unfounded = [
        f"step {row['step']}: {row['class']}, rank {row['rank']}, {row['size_ns'] / MS:.1f} ms; "
        f"the truth has {late[row['step'], row['rank']] / MS:.1f} ms"
        for rows in verdicts.values()
        for row in rows
        if row["id"] not in expected
        and not is_foreign(truth, row)
        and abs(late[row["step"], row["rank"]] - row["size_ns"]) > max(SIZE_TOLERANCE_NS, row["size_ns"] // 3)
    ]
    found["unfounded"] = unfounded
    if not tap.collecting:
        tap.check("no other verdict, but for lateness that the truth shows too", unfounded)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--store")
    parser.add_argument("--collect", metavar="FILE")
    options = parser.parse_args()
    truth, tap = Truth(options.folder), JobTap(bool(options.collect))
    store = Store(options.store or os.path.join(options.folder, "qpscope.db"))
    found = {"job": os.path.basename(os.path.normpath(options.folder)), "job_steps": int(truth.options["steps"])}
    found["lost"] = bool(store.rows("SELECT id FROM gap"))
    calls = store.calls()
    check_queue_pairs(tap, truth, store)
    check_calls(tap, truth, calls)
    check_bytes(tap, truth, store, calls)
    check_steps(tap, truth, store, found)
    check_verdicts(tap, truth, store, found)
    if options.collect:
        with open(options.collect, "a") as out:
            print(json.dumps(found), file=out)
    print(f"1..{tap.count}")
    return tap.status


if __name__ == "__main__":
    sys.exit(main())
