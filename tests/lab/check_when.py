#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_when.py FOLDER...: what the store names of the jobs of plan_when.sh, by the time at which the agent came, as TAP.

For each job: communicators' members with their rank, queue pairs with owner and peer rank, each right, not named, or wrong
by the truth. Nothing may be named wrongly; an agent that was there before must name all, and one that came during the job
all members (by their calls). Exit status 1 when something is not right.
"""

import argparse
import collections
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from tap import Tap  # noqa: E402
from truth import Truth  # noqa: E402


def rows_of(folder, query):
    path = os.path.join(folder, "qpscope.db")
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute(query).fetchall()


def members_told(folder):
    rows = rows_of(folder, "SELECT p.pid, m.pointer, m.communicator_rank, c.ranks_count FROM member m JOIN process p ON "
                           "p.id = m.process JOIN communicator c ON c.id = m.communicator")
    return {(pid, int(pointer, 16)): (rank, ranks) for pid, pointer, rank, ranks in rows}


def queues_told(folder):
    rows = rows_of(folder, "SELECT q.device, q.qpn, p.pid, m.pointer, m.communicator_rank, n.communicator_rank, q.role FROM "
                           "queue_pair q LEFT JOIN member m ON m.id = q.member LEFT JOIN process p ON p.id = m.process LEFT JOIN "
                           "queue_pair o ON o.id = q.peer LEFT JOIN member n ON n.id = o.member")
    return {(device, qpn): (pid and (pid, int(pointer, 16), rank), peer, role)
            for device, qpn, pid, pointer, rank, peer, role in rows}


def verdict(found, wanted):
    return "not named" if found is None else "right" if found == wanted else "wrong"


def judge_members(truth, told):
    for communicator in truth.communicators.values():
        for world, (rank, pointer, pid) in communicator.members.items():
            found, wanted = told.get((pid, int(str(pointer), 0))), (rank, communicator.ranks)
            yield "member", verdict(found, wanted), f"{communicator.name}, rank {world}: {found}, not {wanted}"


def judge_queues(truth, told):
    for (device, qpn), queue in sorted(truth.queues.items()):
        rank, pointer, pid = queue.communicator.members[queue.rank]
        owner, peer, _ = told.get((device, qpn), (None, None, None))
        carried = "flush queue pair" if queue.is_flush else "unused queue pair" if queue.role == "unused" else "queue pair"
        wanted = (pid, int(str(pointer), 0), rank)
        yield f"{carried}'s owner", verdict(owner, wanted), f"{device} QPN {qpn}: {owner}, not {wanted}"
        if carried != "queue pair" or queue.peer_rank is None:
            continue
        wanted = queue.communicator.members[queue.peer_rank][0]
        yield "queue pair's peer", verdict(peer, wanted), f"{device} QPN {qpn}: peer {peer}, not {wanted}"


def allowed(when, subject, state):
    if state == "right":
        return True
    return state == "not named" and when != "before" and not (when == "during" and subject == "member")


def judge(folder):
    """Counts by subject and state, and what is not allowed."""
    truth, when = Truth(folder), os.path.basename(os.path.normpath(folder)).rsplit("-", 1)[-1]
    counts, findings = collections.defaultdict(collections.Counter), []
    for subject, state, what in [*judge_members(truth, members_told(folder)), *judge_queues(truth, queues_told(folder))]:
        counts[subject][state] += 1
        if not allowed(when, subject, state):
            findings.append(f"{subject} {state}: {what}")
    return counts, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="folder")
    folders = parser.parse_args().folders
    tap = Tap(len(folders))
    for folder in folders:
        counts, findings = judge(folder)
        told = ", ".join(f"{subject} {states['right']} of {sum(states.values())}" for subject, states in counts.items())
        tap.check(f"{os.path.basename(os.path.normpath(folder))}: {told}", findings)
    return tap.status


if __name__ == "__main__":
    sys.exit(main())
