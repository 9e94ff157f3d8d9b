#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_exercise.py FOLDER...: compares what qpscope-host said about exercised scenarios with their truth, as TAP.

FOLDER is a job's folder as run.sh --exercise leaves it, with a hook that ran `qpscope-host --json` into host.json. Of
several jobs beside one agent, the last folder has its word on all.
Communicators that the host side met late have no creator; --prompt allows none. Exit status 1 when something is not right.
"""

import argparse
import bisect
import collections
import glob
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from tap import Tap  # noqa: E402

FLUSH, FOREIGN, PXN, SHARED = 1, 2, 4, 8
END_NS = 1_000_000_000  # how long after the truth's word for it an end may last
LATE = 1  # of communicators: the host side came after their making
CREATORS = {"CommInitRank": 1, "CommInitRankConfig": 2, "CommInitRankScalable": 3, "CommInitAll": 4, "CommSplit": 5,
            "CommShrink": 6, "CommGrow": 7}
ENDINGS = {"CommDestroy": 1, "CommAbort": 2, "killed": 3}
NO_PART = 5
SIDES = {"send": 1, "receive": 2}
COUNTED = {"AllReduce": 1, "AllGather": 2, "ReduceScatter": 3, "Broadcast": 4, "Reduce": 5, "Send": 6, "Recv": 7}
CAPTURED, REPLAYED = 4, 8


def records_of(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.startswith("{")]


class Truth:
    """The scenarios' own words: members by (pid, comm), in the order in which they were made."""

    def __init__(self, folders):
        lines = [line for folder in folders for path in sorted(glob.glob(os.path.join(folder, "truth*.jsonl")))
                 for line in records_of(path)]
        self.lines = collections.defaultdict(list)
        for line in lines:
            self.lines[line["kind"]].append(line)
        self.begun = collections.defaultdict(list)  # pid -> (time, scenario)
        for line in self.lines["scenario"]:
            self.begun[line["pid"]].append((line["at_ns"], line["scenario"]))
        self.joined = collections.defaultdict(set)  # ranks that share the queue pair with the one that asked for it first
        for line in self.lines["connection_joined"]:
            self.joined[line["device"], line["qpn"], line["created_ns"]].add(line["tp_rank"])
        self.members = self.lines["communicator"]
        for member in self.members:
            member["whole_name"] = (self.scenario(member["pid"], member["init_begun_ns"]), member["name"])
            member["ending"], member["ended_ns"] = self._ending(member)

    def scenario(self, pid, at_ns):
        place = bisect.bisect(self.begun[pid], (at_ns, "~")) - 1
        return self.begun[pid][place][1]

    def origins(self, connection):
        """The ranks whose data a sender's queue pair carries."""
        return {connection["tp_rank"]} | self.joined[connection["device"], connection["qpn"], connection["created_ns"]]

    def _ending(self, member):
        ends = [end for end in self.lines["communicator_end"] + self.lines["failure"]
                if (end["pid"], end["comm"]) == (member["pid"], member["comm"]) and end["at_ns"] > member["init_ended_ns"]
                and end.get("how", end.get("what")) in ENDINGS]
        first = min(ends, key=lambda end: end["at_ns"], default=None)
        return (ENDINGS[first.get("how", first.get("what"))], first["at_ns"]) if first else (0, 1 << 63)

    def member_at(self, pid, comm, at_ns):
        """Who had this ncclComm_t at a time; connections are made before the membership is noted."""
        found = [m for m in self.members if (m["pid"], m["comm"]) == (pid, comm) and m["init_begun_ns"] <= at_ns]
        return max(found, key=lambda m: m["init_begun_ns"], default=None)


class Host:
    """The last word of qpscope-host on everything that it named."""

    def __init__(self, folder):
        records = records_of(os.path.join(folder, "host.json"))
        self.processes, self.communicators, self.queue_pairs = (
            {record[kind]: record for record in records if record["record"] == kind}
            for kind in ("process", "communicator", "queue_pair"))
        calls = {}
        for record in records:
            if record["record"] == "call":
                key = (record["source"], record["operation"], record["peer"], record["sequence"], record["flags"] & 12)
                calls[key] = record
        self.calls = list(calls.values())
        self.losses = [record for record in records if record["record"] == "loss"]

    def pid(self, record):
        return self.processes[record["process"]]["pid"]

    def member(self, truth_member):
        """The communicator that was made within the time in which the truth says so, or seen late within its life."""
        found = [c for c in self.communicators.values()
                 if self.pid(c) == truth_member["pid"] and int(c["pointer"], 16) == int(truth_member["comm"], 16)
                 and self._fits(c, truth_member)]
        return found[0] if len(found) == 1 else None

    @staticmethod
    def _fits(record, truth_member):
        if not record["flags"] & LATE:
            return truth_member["init_begun_ns"] <= record["created_ns"] <= truth_member["init_ended_ns"]
        ends_ns = record["destroyed_ns"] or truth_member["init_ended_ns"]
        return truth_member["init_begun_ns"] <= ends_ns <= truth_member["ended_ns"] + END_NS

    def queue_pair(self, connection):
        found = [q for q in self.queue_pairs.values()
                 if (q["device"], q["qpn"]) == (connection["device"], connection["qpn"])]
        return min(found, key=lambda q: abs(q["created_ns"] - connection["created_ns"]), default=None)


def check_members(truth, host):
    for member in truth.members:
        what = f"{member['whole_name']}, rank {member['rank']}"
        record = host.member(member)
        if record is None:
            yield f"{what}: not seen"
            continue
        creator = 0 if record["flags"] & LATE else CREATORS[member["creator"]]
        wanted = (member["comm_rank"], member["ranks"], creator, member["device"], member["ending"])
        found = tuple(record[name] for name in ("rank", "ranks_count", "creator", "cuda_device", "ending"))
        if wanted != found:
            yield f"{what}: rank, ranks, creator, device, ending are {found}, not {wanted}"
    parts = [c for c in host.communicators.values() if c["ending"] != NO_PART]
    if len(parts) != len(truth.members):
        yield f"{len(parts)} communicators of ranks, not {len(truth.members)}"


def check_identities(truth, host):
    by_name, by_identity, hashes = (collections.defaultdict(set) for _ in range(3))
    for member in truth.members:
        record = host.member(member)
        if record is None:
            continue
        hashes[member["whole_name"]].add(record["hash"])
        if member["creator"] == "CommGrow" or record["flags"] & LATE:
            continue  # these have identities of another kind than the other ranks: they are joined by the hash
        by_name[member["whole_name"]].add(record["identity"])
        by_identity[record["identity"]].add((member["whole_name"], member["pid"] if member["creator"] == "CommInitAll" else 0))
    yield from (f"{name} has the hashes {found}" for name, found in hashes.items() if len(found) != 1)
    yield from (f"{name} has {len(found)} identities" for name, found in by_name.items() if len(found) != 1)
    yield from (f"identity {identity} stands for {sorted(found)}" for identity, found in by_identity.items() if len(found) != 1)


def owner_findings(truth, host, connection, record):
    member = truth.member_at(connection["pid"], connection["comm"], connection["created_ns"])
    communicator, seen = host.communicators.get(record["communicator"]), host.member(member)
    if communicator is None:
        if not seen or not seen["flags"] & LATE:
            yield "has no communicator"
    elif not connection["shared"] and seen is not communicator:
        yield f"is given to {communicator['pointer']}, not to {member['whole_name']}"
    if host.pid(record) != connection["pid"]:
        yield f"made by {host.pid(record)}, not {connection['pid']}"
    if record["remote_qpn"] != connection["remote_qpn"]:
        yield f"remote QPN {record['remote_qpn']}, not {connection['remote_qpn']}"
    is_flush, is_pxn = connection["role"] == "flush", connection["tp_rank"] != connection["owner_rank"]
    if bool(record["flags"] & FLUSH) != is_flush or record["flags"] & FOREIGN:
        yield f"flags {record['flags']}, but its role is {connection['role']}"
    joined = truth.origins(connection) - {connection["tp_rank"]}
    if joined and not record["flags"] & SHARED and record["communicator"]:
        yield f"flags {record['flags']}, but it is shared with {sorted(joined)}"
    if not connection["shared"] and not joined and bool(record["flags"] & PXN) != is_pxn:
        yield f"flags {record['flags']}, but it is {'' if is_pxn else 'not '}for another rank"


def proxy_findings(connection, record):
    """What the proxy's own messages tell."""
    if connection["role"] == "flush":
        return
    wanted = (SIDES[connection["role"]], connection["channel"], connection["tp_peer"])
    found = tuple(record[name] for name in ("side", "channel", "far_rank"))
    if wanted != found:
        yield f"side, channel, far rank are {found}, not {wanted}"
    if record["origin_rank"] != connection["tp_rank"]:
        yield f"origin rank {record['origin_rank']}, not {connection['tp_rank']}"


def check_queue_pairs(truth, host):
    for connection in truth.lines["connection"]:
        record = host.queue_pair(connection)
        what = f"{connection['device']} QPN {connection['qpn']} ({truth.scenario(connection['pid'], connection['at_ns'])})"
        if record is None:
            yield f"{what}: not seen"
            continue
        proxy = proxy_findings(connection, record) if record["communicator"] else ()
        for finding in [*owner_findings(truth, host, connection, record), *proxy]:
            yield f"{what}: {finding}"


def check_calls(truth, host):
    """How often each operation was called on each communicator, by itself and within a capture."""
    wanted, found = collections.Counter(), collections.Counter()
    for call in truth.lines["call"]:
        member = truth.member_at(call["pid"], call["comm"], call["called_ns"])
        operation = "Broadcast" if call["operation"] == "Bcast" else call["operation"]
        if operation in COUNTED:
            wanted[host_key(host, member), COUNTED[operation], bool(call.get("captured"))] += 1
    for call in host.calls:
        if call["operation"] in COUNTED.values() and not call["flags"] & REPLAYED:
            found[call["source"], call["operation"], bool(call["flags"] & CAPTURED)] += 1
    for key in sorted(set(wanted) | set(found), key=str):
        if wanted[key] != found[key]:
            yield f"communicator, operation, captured {key}: {found[key]} calls, not {wanted[key]}"


def check_size_records(truth, folder):
    """What the NIC side took for size records, by the queue pair that sent them: only in a folder with a store."""
    ends = {(end["device"], end["qpn"], end["created_ns"]): end.get("size_records", 0) for end in truth.lines["connection_end"]}
    wanted = {connection_flow(connection): ends.get((connection["device"], connection["qpn"], connection["created_ns"]), 0)
              for connection in truth.lines["connection"]}
    rows = sqlite3.connect(f"file:{os.path.join(folder, 'qpscope.db')}?mode=ro", uri=True).execute(
        "SELECT f.source, f.destination, f.destination_qpn, sum(m.role = 'size') FROM message m JOIN flow f ON f.id = m.flow "
        "WHERE f.vantage = 'tx' GROUP BY 1, 2, 3")
    found = {row[:3]: row[3] for row in rows}
    for flow in sorted(set(wanted) | set(found)):
        if wanted.get(flow, 0) != found.get(flow, 0):
            yield f"{flow}: {found.get(flow, 0)} size records, not {wanted.get(flow, 0)}"
    if not sum(wanted.values()):
        yield "none was sent"


def connection_flow(connection):
    """As the wire shows it: source and destination address, QPN."""
    source, destination = (".".join(map(str, bytes.fromhex(connection[gid])[12:])) for gid in ("local_gid", "remote_gid"))
    return source, destination, connection["remote_qpn"]


def host_key(host, member):
    record = host.member(member)
    return record["communicator"] if record else None


def check_prompt(truth, host):
    late = [c for c in host.communicators.values() if c["flags"] & LATE]
    yield from (f"communicator {c['communicator']} of process {host.pid(c)} was met late" for c in late)


def check_losses(truth, host):
    yield from (f"loss: {loss}" for loss in host.losses)


CHECKS = (("communicators", check_members), ("identities", check_identities), ("queue pairs", check_queue_pairs),
          ("calls", check_calls), ("nothing was lost", check_losses))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="folder")
    parser.add_argument("--prompt", action="store_true", help="no communicator may have been met late")
    parser.add_argument("--size-records", action="store_true", help="compare size records with the last folder's store; there must be some")
    options = parser.parse_args()
    truth, host = Truth(options.folders), Host(options.folders[-1])
    checks = CHECKS + ((("no communicator was met late", check_prompt),) if options.prompt else ())
    if options.size_records:
        checks += (("size records", lambda truth, _: check_size_records(truth, options.folders[-1])),)
    tap = Tap(len(checks), shown=12)
    for name, check in checks:
        tap.check(name, check(truth, host), f"{len(truth.members)} members, {len(truth.lines['connection'])} queue pairs, "
                                            f"{len(truth.lines['call'])} calls")
    return tap.status


if __name__ == "__main__":
    sys.exit(main())
