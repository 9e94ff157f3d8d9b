#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_killed.py FOLDER: a job whose watchers were killed with SIGKILL at random instants (hook_qpscope.sh,
QPSCOPE_KILLS): the job is untouched, the other daemons went on, and the gaps that the store shows are the ones that were
made, neither more nor fewer. Prints TAP."""

import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from check_job import Store  # noqa: E402
from tap import Tap  # noqa: E402
from truth import Truth  # noqa: E402

SECOND = 1_000_000_000
# A heartbeat comes every 100 ms, and records wait up to 50 ms in a batch; the rest is the guest's own slowness.
SLACK_NS = 400_000_000
# To come up again (libraries, ports, probes) takes tens of seconds beside a job that spins on both CPUs, and more on a busy machine.
START_NS = 120 * SECOND


def read_kills(folder):
    """(daemon, (before, after the kill), started again), times in ns, of each."""
    for line in open(os.path.join(folder, "kills.txt")):
        daemon, *times = line.split()
        before, after, started = (int(float(time) * SECOND) for time in times)
        yield daemon, (before, after), started


def gaps_of(store, kind):
    query = "SELECT gap.* FROM gap JOIN emitter ON emitter.id = gap.emitter WHERE emitter.kind = ? AND cause IN ('silent', 'restarted')"
    return store.rows(query, kind)


def covers(gap, killed_ns, started_ns):
    return gap["from_ns"] <= killed_ns[1] + SLACK_NS and started_ns - SLACK_NS <= gap["to_ns"] <= started_ns + START_NS


def check_gaps(tap, store, kills, kind, job_ended_ns):
    """What was missed after the job's end is of no matter: a daemon's last word may find its link full on a busy machine."""
    mine = [(killed, started) for daemon, killed, started in kills if daemon == kind]
    gaps = gaps_of(store, kind)
    unseen = (f"killed at {killed[0] / SECOND:.2f} s" for killed, started in mine if not any(covers(gap, killed, started) for gap in gaps))
    tap.check(f"each kill of {kind} shows as a gap", unseen if mine else ["never killed"], f"{len(mine)} kills")
    unfounded = (
        f"{gap['cause']} from {gap['from_ns'] / SECOND:.2f} s to {gap['to_ns'] / SECOND:.2f} s"
        for gap in gaps
        if gap["from_ns"] < job_ended_ns and not any(covers(gap, killed, started) for killed, started in mine)
    )
    tap.check(f"no other gap of {kind}", unfounded)


SEEN = {
    "nic": "SELECT COUNT(*) AS n FROM message JOIN flow ON flow.id = message.flow WHERE flow.emitter = ? AND message.first_ns > ? AND message.last_ns < ?",
    "host": "SELECT COUNT(*) AS n FROM call JOIN member ON member.id = call.member JOIN process ON process.id = member.process "
    "WHERE process.emitter = ? AND entered_ns > ? AND entered_ns < ?",
}


def check_nothing_seen(tap, store, kind):
    """A gap begins where the daemon last vouched for having sent all. What was on its way then dies with it, seconds of it
    where the correlator is behind; but nothing that did come may be called unseen."""
    gaps = gaps_of(store, kind)
    seen = (
        f"{count} of them from {gap['from_ns'] / SECOND:.2f} s to {gap['to_ns'] / SECOND:.2f} s"
        for gap in gaps
        if (count := store.rows(SEEN[kind], gap["emitter"], gap["from_ns"] + SLACK_NS, gap["to_ns"] - SLACK_NS)[0]["n"])
    )
    tap.check(f"what a gap of {kind} calls unseen is not in the store", seen if gaps else ["no gap"])


def check_job_untouched(tap, truth, folder):
    bad = [f"{line['rank']}: {line['wrong']} wrong" for line in truth.lines["check"] if line["wrong"]]
    ended = {path: open(path, errors="replace").read() for path in glob.glob(os.path.join(folder, "rank*.log"))}
    harmless = "Could not find real path of rxe"  # soft-RoCE has no PCI device behind it
    bad += [
        f"{os.path.basename(path)}: {line}"
        for path, text in ended.items()
        for line in text.splitlines()
        if ("WARN" in line or "failed" in line) and harmless not in line
    ]
    tap.check("the job is untouched: all sums right, no warning", bad)


def check_names(tap, store):
    """A host side that was started again goes on with what its earlier run had described: every rank once, under the name
    that it had, and steps are told on."""
    twice = store.rows(
        "SELECT communicator, communicator_rank, COUNT(*) AS n FROM member GROUP BY communicator, communicator_rank HAVING n > 1 OR communicator_rank IS NULL"
    )
    late = store.rows("SELECT pointer FROM member WHERE late = 1")
    partial = store.rows("SELECT id, ranks_seen, ranks_count FROM communicator WHERE ranks_seen <> ranks_count")
    bad = [f"rank {row['communicator_rank']} of communicator {row['communicator']} is there {row['n']} times" for row in twice]
    bad += [f"{row['pointer']} has no name" for row in late]
    bad += [f"{row['ranks_seen']} of {row['ranks_count']} ranks of communicator {row['id']}" for row in partial]
    tap.check("every rank has the name that it had", bad)
    again_ns = max(gap["to_ns"] for gap in gaps_of(store, "host"))
    told = store.rows(
        "SELECT operation.ranks_seen AS n, ranks_count AS ranks FROM operation JOIN communicator ON communicator.id = communicator "
        "WHERE start_ns > ? AND kind <> 'SendRecv'",
        again_ns + SLACK_NS,
    )
    whole = sum(row["n"] == row["ranks"] for row in told)
    tap.check("calls of all ranks are matched again", [] if whole > 0.9 * len(told) > 0 else [f"{whole} of {len(told)}"], f"{whole} of {len(told)} operations")
    steps = store.rows("SELECT COUNT(*) AS n FROM step WHERE start_ns > ?", again_ns)[0]["n"]
    tap.check("steps are told on", [] if steps >= 3 else [f"{steps} steps"], f"{steps} steps")


def main():
    folder = sys.argv[1]
    truth, store, tap = Truth(folder), Store(os.path.join(folder, "qpscope.db")), Tap()
    kills = list(read_kills(folder))
    check_job_untouched(tap, truth, folder)
    last = max(step.ended_ns for step in truth.steps)
    check_gaps(tap, store, kills, "nic", last)
    check_gaps(tap, store, kills, "host", last)
    check_nothing_seen(tap, store, "nic")
    check_nothing_seen(tap, store, "host")
    ends = store.rows("SELECT kind, MAX(last_ns) AS last_ns FROM emitter GROUP BY kind")
    silent = (f"{row['kind']} was last heard at {row['last_ns'] / SECOND:.2f} s" for row in ends if row["last_ns"] < last - SLACK_NS)
    tap.check("each daemon is heard again after the last kill", silent)
    if all(daemon != "correlator" for daemon, *_ in kills):
        check_names(tap, store)
    lost = store.rows("SELECT COUNT(*) AS n FROM rank_operation WHERE status = 'complete'")[0]["n"]
    tap.check("operations outside the gaps are still complete", [] if lost else ["none"], f"{lost} rank operations")
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
