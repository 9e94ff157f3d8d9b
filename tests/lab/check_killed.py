#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_killed.py FOLDER: a job whose watchers were killed with SIGKILL at random instants (hook_qpscope.sh,
QPSCOPE_KILLS): the job is untouched, the other daemons went on, and the gaps that the store shows are the ones that were
made, neither more nor fewer. Prints TAP."""

import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from check_job import Store, Tap  # noqa: E402
from truth import Truth  # noqa: E402

SECOND = 1_000_000_000
# A heartbeat comes every 100 ms, and records wait up to 50 ms in a batch; the rest is the guest's own slowness.
SLACK_NS = 400_000_000
# A gap begins where the correlator last heard the daemon vouch for having seen everything. Beside a job that spins on both
# CPUs either may be many seconds behind, and what was on its way dies with the daemon; to come up again (libraries,
# ports, probes) takes tens of seconds.
BEHIND_NS = 25 * SECOND
START_NS = 40 * SECOND


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
    begins = killed_ns[0] - BEHIND_NS <= gap["from_ns"] <= killed_ns[1] + SLACK_NS
    return begins and started_ns - SLACK_NS <= gap["to_ns"] <= started_ns + START_NS


def check_gaps(tap, store, kills, kind):
    mine = [(killed, started) for daemon, killed, started in kills if daemon == kind]
    gaps = gaps_of(store, kind)
    unseen = (f"killed at {killed[0] / SECOND:.2f} s" for killed, started in mine if not any(covers(gap, killed, started) for gap in gaps))
    tap.check(f"each kill of {kind} shows as a gap", unseen if mine else ["never killed"], f"{len(mine)} kills")
    unfounded = (
        f"{gap['cause']} from {gap['from_ns'] / SECOND:.2f} s to {gap['to_ns'] / SECOND:.2f} s"
        for gap in gaps
        if not any(covers(gap, killed, started) for killed, started in mine)
    )
    tap.check(f"no other gap of {kind}", unfounded)


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


def main():
    folder = sys.argv[1]
    truth, store, tap = Truth(folder), Store(os.path.join(folder, "qpscope.db")), Tap()
    kills = list(read_kills(folder))
    check_job_untouched(tap, truth, folder)
    check_gaps(tap, store, kills, "nic")
    check_gaps(tap, store, kills, "host")
    last = max(step.ended_ns for step in truth.steps)
    ends = store.rows("SELECT kind, MAX(last_ns) AS last_ns FROM emitter GROUP BY kind")
    silent = (f"{row['kind']} was last heard at {row['last_ns'] / SECOND:.2f} s" for row in ends if row["last_ns"] < last - SLACK_NS)
    tap.check("each daemon is heard again after the last kill", silent)
    lost = store.rows("SELECT COUNT(*) AS n FROM rank_operation WHERE status = 'complete'")[0]["n"]
    tap.check("operations outside the gaps are still complete", [] if lost else ["none"], f"{lost} rank operations")
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
