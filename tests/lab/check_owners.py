#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_owners.py FOLDER: compares what qpscope-host said about a job of the lab with the job's own truth, as TAP.

FOLDER is a job's folder as run.sh leaves it, with a hook that ran `qpscope-host --json` into host.json. Every queue pair
with its communicator, owner and peer; foreign and flush queue pairs; every communicator and call. Exit status 1 when
something is not right.
"""

import argparse
import collections
import hashlib
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from tap import Tap  # noqa: E402
from truth import Truth  # noqa: E402

FLUSH, FOREIGN, PXN, SHARED, LATE, AFTER_LOSS = 1, 2, 4, 8, 1, 2
OPERATIONS = {1: "AllReduce", 2: "AllGather", 3: "ReduceScatter", 4: "Broadcast", 5: "Reduce", 6: "Send", 7: "Recv"}


class Host:
    """The last word of qpscope-host on everything that it named."""

    def __init__(self, folder):
        path = os.path.join(folder, "host.json")
        records = [json.loads(line) for line in open(path) if line.startswith("{")]
        self.store = os.path.join(folder, "qpscope.db")
        self.processes = self._last(records, "process")
        self.communicators = self._last(records, "communicator")
        self.queue_pairs = self._last(records, "queue_pair")
        # one that has not returned for a while comes again when it has
        self.calls = list({
            (record["source"], record["operation"], record["peer"], record["sequence"], record["entered_ns"]): record
            for record in records if record["record"] == "call"
        }.values())
        self.losses = [record for record in records if record["record"] == "loss"]
        self.counters = {record["name"]: record["total"] for record in records if record["record"] == "counter"}
        self.member = {
            (self.processes[c["process"]]["pid"], int(c["pointer"], 16)): c for c in self.communicators.values()
        }
        self.by_end = collections.defaultdict(list)
        for queue_pair in self.queue_pairs.values():
            self.by_end[queue_pair["address"], queue_pair["qpn"]].append(queue_pair)

    @staticmethod
    def _last(records, kind):
        return {record[kind]: record for record in records if record["record"] == kind}

    def pid(self, record):
        return self.processes[record["process"]]["pid"]

    def at(self, device, qpn, created_ns):
        """The queue pair with this number whose making was nearest to a time (numbers are used again)."""
        found = [q for q in self.queue_pairs.values() if (q["device"], q["qpn"]) == (device, qpn)]
        return min(found, key=lambda q: abs(q["created_ns"] - created_ns), default=None)

    def peer(self, queue_pair):
        """The queue pair at the other end, as far as the two ends' records agree on each other."""
        for other in self.by_end[queue_pair["remote_address"], queue_pair["remote_qpn"]]:
            if other["created_ns"] < (queue_pair["destroyed_ns"] or 1 << 64) and \
                    queue_pair["created_ns"] < (other["destroyed_ns"] or 1 << 64):
                return other
        return None


def check_communicators(truth, host):
    identities = collections.defaultdict(set)
    for communicator in truth.communicators.values():
        expected = hashlib.blake2b(bytes.fromhex(communicator.id), digest_size=16).hexdigest()
        for world, (comm_rank, pointer, pid) in communicator.members.items():
            what = f"{communicator.name}, rank {world}"
            record = host.member.get((pid, int(str(pointer), 0)))
            if record is None:
                yield f"{what}: not seen"
                continue
            identities[record["identity"]].add(communicator.id)
            if record["identity"] != expected:
                yield f"{what}: identity {record['identity']}, not {expected}"
            if (record["rank"], record["ranks_count"]) != (comm_rank, communicator.ranks):
                yield f"{what}: rank {record['rank']} of {record['ranks_count']}, not {comm_rank} of {communicator.ranks}"
            if record["flags"] or not record["ready_ns"]:
                yield f"{what}: flags {record['flags']}, ready {record['ready_ns']}"
    members = sum(len(communicator.members) for communicator in truth.communicators.values())
    if len(host.communicators) != members:
        yield f"{len(host.communicators)} communicators of ranks, not {members}"
    yield from (f"identity {identity} stands for {len(ids)} communicators" for identity, ids in identities.items() if len(ids) > 1)


def check_owner(truth, host, queue, record):
    communicator = host.communicators.get(record["communicator"])
    _, pointer, pid = queue.communicator.members[queue.rank]
    if communicator is None:
        yield "has no communicator"
    elif (host.pid(communicator), int(communicator["pointer"], 16)) != (pid, int(str(pointer), 0)):
        yield f"is given to {communicator['pointer']}, rank {communicator['rank']}, not to {queue.communicator.name}"
    if host.pid(record) != queue.pid or record["creator_tid"] != queue.tid:
        yield f"made by {host.pid(record)}/{record['creator_tid']}, not {queue.pid}/{queue.tid}"
    if record["flags"] & ~SHARED != (FLUSH if queue.is_flush else 0):
        yield f"flags {record['flags']}, but {'a' if queue.is_flush else 'no'} flush queue pair"
    if queue.local_gid and record["remote_qpn"] != queue.remote_qpn:
        yield f"remote QPN {record['remote_qpn']}, not {queue.remote_qpn}"


def check_peer(truth, host, queue, record):
    if not queue.local_gid or queue.peer_rank is None:
        return
    other = host.peer(record)
    communicator = other and host.communicators.get(other["communicator"])
    if not communicator:
        yield "its other end is not known"
    elif queue.communicator.world_rank(communicator["rank"]) != queue.peer_rank:
        yield f"peer {communicator['rank']}, not world rank {queue.peer_rank}"
    elif communicator["identity"] != host.communicators[record["communicator"]]["identity"]:
        yield "its other end is of another communicator"


def check_queues(truth, host):
    for (device, qpn), queue in sorted(truth.queues.items()):
        record = host.at(device, qpn, queue.created_ns)
        if record is None:
            yield f"{device} QPN {qpn}: not seen"
            continue
        for check in (check_owner, check_peer):
            for finding in check(truth, host, queue, record):
                yield f"{device} QPN {qpn} of rank {queue.rank}: {finding}"


def check_connections(truth, host):
    """What the store tells of connections by the proxies' set-up messages: ranks as the job's, where they are known."""
    told = collections.defaultdict(list)
    for row in sqlite3.connect(f"file:{host.store}?mode=ro", uri=True).execute("SELECT q.device, q.qpn, q.created_ns, s.side, s.channel, s.origin_rank, s.far_rank, s.pxn FROM "
                                  "queue_pair q JOIN queue_pair_setting s ON s.queue_pair = q.id WHERE s.channel IS NOT NULL"):
        told[row[0], row[1]].append(row)
    host.told = sum(map(len, told.values()))
    for (device, qpn), queue in sorted(truth.queues.items()):
        if queue.is_flush or len(told[device, qpn]) != 1:
            continue
        *_, side, channel, origin_rank, far_rank, pxn = told[device, qpn][0]
        if (origin_rank, far_rank, pxn) != (queue.rank, queue.peer_rank if queue.peer_rank is not None else far_rank, 0):
            yield f"{device} QPN {qpn} of rank {queue.rank} to {queue.peer_rank}: {side}, channel {channel}, {origin_rank} to {far_rank}, pxn {pxn}"


def check_strangers(truth, host):
    """Queue pairs that are none of the job's."""
    known = {(queue.pid, qpn, device) for (device, qpn), queue in truth.queues.items()}
    strangers = [q for q in host.queue_pairs.values() if (host.pid(q), q["qpn"], q["device"]) not in known]
    for stranger in strangers:
        if stranger["communicator"] or not stranger["flags"] & FOREIGN:
            yield f"{stranger['device']} QPN {stranger['qpn']} of {host.processes[stranger['process']]['command']} is claimed"
    devices = {rank: place["device"] for rank, place in truth.rank_places.items()}
    seen = {(q["device"], q["qpn"]) for q in strangers if q["flags"] & FOREIGN}
    yield from (f"foreign QPN {qpn} of rank {rank}'s device not seen"
                for rank, qpn in sorted(truth.foreign_qpns) if (devices[rank], qpn) not in seen)
    if truth.options.get("foreign") and len(truth.foreign_qpns) < 2:
        yield "the foreign job left no queue pairs"


def check_calls(truth, host):
    calls = collections.defaultdict(list)
    for call in host.calls:
        communicator = host.communicators[call["source"]]
        to_peer = call["operation"] in (6, 7)
        key = (host.pid(communicator), int(communicator["pointer"], 16), call["operation"] if to_peer else 0,
               call["peer"] if to_peer else -1, call["sequence"])
        calls[key].append(call)
    for operation in truth.operations:
        _, pointer, pid = operation.communicator.members[operation.rank]
        number = next(number for number, name in OPERATIONS.items() if name == operation.operation)
        to_peer = number in (6, 7)
        key = (pid, int(str(pointer), 0), number if to_peer else 0, operation.peer if to_peer else -1, operation.sequence)
        what = f"rank {operation.rank} {operation.communicator.name} {operation.operation} {operation.sequence}"
        found = calls.pop(key, [])
        if len(found) != 1:
            yield f"{what}: {len(found)} calls seen"
            continue
        call, = found
        if call["operation"] != number or call["flags"] & AFTER_LOSS:
            yield f"{what}: seen as {call['operation']}, flags {call['flags']}"
        # What the job notes is the call that gives it to the library: of sends and receives their ncclGroupEnd.
        if not operation.called_ns <= call["enqueued_ns"] <= operation.returned_ns:
            yield f"{what}: enqueued at {call['enqueued_ns']}, not within {operation.called_ns} to {operation.returned_ns}"
        if call["entered_ns"] > call["enqueued_ns"] or (not to_peer and call["entered_ns"] != call["enqueued_ns"]):
            yield f"{what}: entered at {call['entered_ns']}, enqueued at {call['enqueued_ns']}"
        if operation.enqueued_ns and call["enqueued_ns"] > operation.enqueued_ns:
            yield f"{what}: enqueued at {call['enqueued_ns']}, but the device had it at {operation.enqueued_ns}"
    yield from (f"{len(extra)} calls seen that the job did not make: {key}" for key, extra in calls.items())


def check_complete(truth, host):
    names = ("events_lost_total", "communicators_late_total", "probe_reads_failed_total", "gids_unreadable_total",
             "probes_failed_total")
    yield from (f"{name} is {host.counters[name]}" for name in names if host.counters[name])
    yield from (f"loss: {loss}" for loss in host.losses)


CHECKS = (("communicators", check_communicators), ("queue pairs: communicator, owner, peer", check_queues),
          ("connections: side, channel, ranks", check_connections),
          ("foreign queue pairs are not claimed", check_strangers), ("calls", check_calls),
          ("nothing was missed", check_complete))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    folder = parser.parse_args().folder
    truth, host, tap = Truth(folder), Host(folder), Tap(len(CHECKS))
    for name, check in CHECKS:
        findings = list(check(truth, host))
        note = f"{len(truth.queues)} queue pairs, {len(truth.operations)} operations" if check is check_queues else ""
        if check is check_connections:
            note = f"{host.told} of {len(host.queue_pairs)} with a channel"
        tap.check(name, findings, note)
    return tap.status


if __name__ == "__main__":
    sys.exit(main())
