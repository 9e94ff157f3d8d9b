#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What really happened in a job of the lab, read from the truth files in its folder.

As a module: Truth(folder) with .communicators, .queues, .operations, .steps, .faults. As a program: truth.py FOLDER
prints a summary and checks that the truth's sources (the job, the stand-in runtime, the tracer, the kernel) agree;
exit status 1 when they do not, 2 for a wrong call. Times are nanoseconds of the guest's CLOCK_MONOTONIC.
"""

import collections
import glob
import json
import os
import re
import statistics
import sys
from dataclasses import dataclass, field


@dataclass
class Communicator:
    """A communicator with its members: world rank -> (rank in it, ncclComm_t, pid)."""

    id: str
    name: str
    ranks: int
    members: dict = field(default_factory=dict)

    def world_rank(self, comm_rank):
        """None when no member says that it has this rank."""
        return next((world for world, member in self.members.items() if member[0] == comm_rank), None)


@dataclass
class Queue:
    """A queue pair of the job. role: data, credit, flush, or unused (nothing was ever posted on it)."""

    device: str
    qpn: int
    pid: int
    tid: int
    rank: int
    communicator: Communicator
    created_ns: int
    states: list = field(default_factory=list)
    local_gid: str = ""
    remote_gid: str = ""
    remote_qpn: int = 0
    peer_rank: int = None
    is_flush: bool = False
    posted: dict = field(default_factory=dict)

    @property
    def payload_bytes(self):
        return self.posted.get("write_bytes", 0) + self.posted.get("write_imm_bytes", 0) if self.role == "data" else 0

    @property
    def role(self):
        announced = self.posted.get("write_imm_posts", 0) + self.posted.get("size_record_posts", 0)
        if self.is_flush:
            return "flush"
        if announced:
            return "data"
        return "credit" if self.posted.get("write_posts", 0) else "unused"


@dataclass
class Operation:
    """One rank's part in an operation: what the job called, and what the stand-in device did of it. peer: rank in the
    communicator, -1 for collectives. sent: payload for each (peer's rank in the communicator, channel)."""

    rank: int
    step: int
    communicator: Communicator
    operation: str
    sequence: int
    peer: int
    root: int
    bytes: int
    called_ns: int
    returned_ns: int
    enqueued_ns: int = None
    begun_ns: int = None
    ended_ns: int = None
    delay_ns: int = 0
    algorithm: str = ""
    protocol: str = ""
    channels: int = 0
    sent: dict = field(default_factory=dict)

    @property
    def sent_bytes(self):
        return sum(self.sent.values())


@dataclass
class Step:
    rank: int
    step: int
    begun_ns: int
    first_enqueue_ns: int
    last_enqueue_ns: int
    ended_ns: int

    @property
    def duration_ns(self):
        return self.ended_ns - self.begun_ns


@dataclass
class Fault:
    fault: str
    rank: int
    step: int
    delay_ns: int
    at_ns: int
    rate_bit_s: int


def gid_of_address(address):
    return "00000000000000000000ffff" + "".join(f"{int(part):02x}" for part in address.split("."))


def lines_of(*path):
    with open(os.path.join(*path)) as file:
        return file.read().splitlines()


def job_txt_read(folder):
    """job.txt: one line of the job's options, then one for each rank and device; a rank's first is taken."""
    lines = [dict(word.split("=", 1) for word in line.split()) for line in lines_of(folder, "job.txt")]
    return lines[0], {int(line["rank"]): line for line in reversed(lines[1:])}


class Truth:
    def __init__(self, folder):
        self.folder = folder
        self.options, self.rank_places = job_txt_read(folder)
        self.lines = collections.defaultdict(list)
        for path in sorted(glob.glob(os.path.join(folder, "truth*.jsonl"))):
            for line in lines_of(path):
                record = json.loads(line)
                self.lines[record["kind"]].append(record)
        self.ranks = int(self.options["ranks"])
        self.clocks = [(line["monotonic_ns"], line["realtime_ns"], line["error_ns"]) for line in self.lines["clock"]]
        self.rank_of_gid = {gid_of_address(place["address"]): rank for rank, place in self.rank_places.items()}
        self.communicators = self._communicators()
        self.queues = self._queues()
        self.operations = self._operations()
        self.steps = [
            Step(*(line[name] for name in Step.__dataclass_fields__)) for line in self.lines["step"]
        ]
        self.faults = [Fault(*(line[name] for name in Fault.__dataclass_fields__)) for line in self.lines["fault"]]
        self.foreign_qpns = self._foreign_qpns()

    def _communicators(self):
        communicators, self.communicator_of = {}, {}
        for line in self.lines["communicator"]:
            communicator = communicators.setdefault(line["id"], Communicator(line["id"], line["name"], line["ranks"]))
            communicator.members[line["rank"]] = (line["comm_rank"], line["comm"], line["pid"])
            self.communicator_of[line["pid"], line["comm"]] = (communicator, line["rank"])
        return communicators

    def _queues(self):
        queues = {}
        for line in self.lines["qp"]:
            communicator = self.communicators.get(line["id"])
            queues[line["device"], line["qpn"]] = Queue(
                line["device"], line["qpn"], line["pid"], line["tid"], line["rank"], communicator, line["at_ns"]
            )
        for line in self.lines["qp_state"]:
            queue = queues[line["device"], line["qpn"]]
            queue.states.append((line["at_ns"], line["state"]))
            if "remote_qpn" in line:
                queue.remote_qpn, queue.is_flush = line["remote_qpn"], bool(line["flush"])
                queue.local_gid, queue.remote_gid = line["local_gid"], line["remote_gid"]
        for line in self.lines["posted"]:
            queues[line["device"], line["qpn"]].posted = line
        by_end = {(queue.local_gid, queue.qpn): queue for queue in queues.values() if queue.local_gid}
        for queue in queues.values():
            other = by_end.get((queue.remote_gid, queue.remote_qpn))
            queue.peer_rank = other.rank if other else None
        return queues

    def _operations(self):
        operations = {}
        for line in self.lines["call"]:
            communicator, _ = self.communicator_of[line["pid"], line["comm"]]
            key = (line["pid"], line["comm"], line["operation"] if line["peer"] >= 0 else "", line["peer"], line["sequence"])
            names = ("operation", "sequence", "peer", "root", "bytes", "called_ns", "returned_ns")
            operations[key] = Operation(line["rank"], line["step"], communicator, *(line[name] for name in names))
        self.unmatched = []
        for line in self.lines["operation"]:
            key = (line["pid"], line["comm"], line["operation"] if line["peer"] >= 0 else "", line["peer"], line["sequence"])
            operation = operations.get(key)
            if not operation or operation.operation != line["operation"] or operation.bytes != line["bytes"]:
                self.unmatched.append(line)
                continue
            for name in ("enqueued_ns", "begun_ns", "ended_ns", "algorithm", "protocol", "channels"):
                setattr(operation, name, line[name])
            operation.delay_ns = line["delay_us"] * 1000
            operation.sent = {(sent["peer"], sent["channel"]): sent["bytes"] for sent in line["sent"]}
        return sorted(operations.values(), key=lambda operation: (operation.rank, operation.called_ns))

    def _foreign_qpns(self):
        """(rank, QPN) of the queue pairs of ib_write_bw beside the job."""
        if not self.options.get("foreign"):
            return set()
        client, server = self.options["foreign"].split(",")
        found = set()
        for name, rank in (("client", client), ("server", server)):
            text = "\n".join(lines_of(self.folder, f"foreign-{name}.log"))
            found |= {(int(rank), int(qpn, 16)) for qpn in re.findall(r"local address: .*QPN (0x[0-9a-f]+)", text)}
        return found

    def step_of(self, rank):
        """Steps of one rank, in order."""
        return sorted((step for step in self.steps if step.rank == rank), key=lambda step: step.step)

    def realtime_ns(self, monotonic_ns):
        """A time of the truth on the guest's CLOCK_REALTIME, as captures have it."""
        near = min(self.clocks, key=lambda clock: abs(clock[0] - monotonic_ns))
        return near[1] + monotonic_ns - near[0]

    def fault_cost_ns(self):
        """How much longer the faulty steps took than those before them (the first aside): difference of the medians."""
        first = int(self.options["first_step"])
        before = [step.duration_ns for step in self.steps if 0 < step.step < first]
        faulty = [step.duration_ns for step in self.steps if step.step >= first]
        return statistics.median(faulty) - statistics.median(before) if before and faulty else None

    def kernel_queues(self):
        """(device, lqpn) -> (rqpn, state) as `rdma resource show qp` gave them while the communicators were there."""
        pattern = re.compile(r"link (\S+)/1 lqpn (\d+) (?:rqpn (\d+) )?type RC state (\S+)")
        found = (pattern.match(line) for line in lines_of(self.folder, "qp.txt"))
        return {(m[1], int(m[2])): (int(m[3] or 0), m[4]) for m in found if m}


def check_communicators(truth):
    for communicator in truth.communicators.values():
        ranks = sorted(member[0] for member in communicator.members.values())
        if ranks != list(range(communicator.ranks)):
            yield f"{communicator.name} has the ranks {ranks}, not 0 to {communicator.ranks - 1}"
    worlds = [communicator for communicator in truth.communicators.values() if communicator.ranks == truth.ranks]
    if truth.ranks > 1 and not worlds:
        yield "no communicator of all ranks"


def check_operations(truth):
    for line in truth.unmatched:
        yield f"the device ran what the job never called: {line}"
    for operation in truth.operations:
        what = f"rank {operation.rank} {operation.communicator.name} {operation.operation} {operation.sequence}"
        if operation.begun_ns is None:
            yield f"{what}: called, but the device never ran it"
        elif not operation.called_ns <= operation.enqueued_ns <= operation.begun_ns <= operation.ended_ns:
            yield f"{what}: its times are out of order"


def check_steps(truth):
    steps = int(truth.options["steps"])
    for rank in range(truth.ranks):
        numbers = [step.step for step in truth.step_of(rank)]
        if numbers != list(range(steps)):
            yield f"rank {rank} has the steps {numbers}, not 0 to {steps - 1}"
    checked = {(line["rank"], line["step"]) for line in truth.lines["check"]}
    expected = {(rank, step) for rank in range(truth.ranks) for step in (0, steps - 1)}
    if truth.ranks > 1 and checked != expected:
        yield f"results were checked for {sorted(checked)}, not for the first and the last step of each rank"
    for line in truth.lines["check"]:
        if line["wrong"] or not line["values"]:
            yield f"rank {line['rank']} step {line['step']}: {line['wrong']} of {line['values']} results were wrong"


def faulty_steps(options):
    """The steps that have the fault, by the job's options."""
    if options["fault"] == "none":
        return []
    last = min(int(options.get("last_step", options["steps"])), int(options["steps"]) - 1)
    return list(range(int(options["first_step"]), last + 1, int(options.get("every", 1))))


def check_faults(truth):
    expected, rank = faulty_steps(truth.options), int(truth.options["rank"])
    hit = range(truth.ranks) if rank == -1 else [rank]
    found = sorted((fault.rank, fault.step) for fault in truth.faults)
    if found != [(rank, step) for rank in hit for step in expected]:
        yield f"faults (rank, step) are {found}, not of {list(hit)} in the steps {expected}"


def check_queues(truth):
    by_end = {(queue.local_gid, queue.qpn): queue for queue in truth.queues.values() if queue.local_gid}
    for queue in truth.queues.values():
        what = f"{queue.device} QPN {queue.qpn}"
        if not queue.communicator:
            yield f"{what}: the tracer knows no communicator for it"
            continue
        if queue.rank not in queue.communicator.members:
            yield f"{what}: of rank {queue.rank}, which is not in {queue.communicator.name}"
        if not queue.local_gid:
            continue
        other = by_end.get((queue.remote_gid, queue.remote_qpn))
        if other and (other.remote_gid, other.remote_qpn) not in (("", 0), (queue.local_gid, queue.qpn)):
            yield f"{what}: its other end is connected elsewhere"
        if other and other.communicator is not queue.communicator:
            yield f"{what}: its ends serve two communicators"
        if not other and queue.role != "unused":
            yield f"{what}: posted on, but its other end is unknown"


def check_kernel(truth):
    kernel = truth.kernel_queues()
    for place, queue in truth.queues.items():
        if place not in kernel:
            yield f"{queue.device} QPN {queue.qpn}: unknown to the kernel"
        elif queue.local_gid and kernel[place][0] != queue.remote_qpn:
            yield f"{queue.device} QPN {queue.qpn}: remote QPN {queue.remote_qpn}, but the kernel says {kernel[place][0]}"


def sent_by_device(truth):
    """Payload by (communicator, rank, peer's world rank), as the stand-in runtime counted it."""
    totals = collections.Counter()
    for operation in truth.operations:
        for (peer, _), sent_bytes in operation.sent.items():
            totals[operation.communicator.id, operation.rank, operation.communicator.world_rank(peer)] += sent_bytes
    return totals


def sent_by_queues(truth):
    """The same, as the tracer saw it posted."""
    totals = collections.Counter()
    for queue in truth.queues.values():
        if queue.role == "data" and queue.communicator:
            totals[queue.communicator.id, queue.rank, queue.peer_rank] += queue.payload_bytes
    return totals


def check_bytes(truth):
    device, queues = sent_by_device(truth), sent_by_queues(truth)
    for key in sorted(set(device) | set(queues), key=str):
        if device[key] != queues[key]:
            name = truth.communicators[key[0]].name if key[0] in truth.communicators else key[0]
            yield f"{name}, rank {key[1]} to {key[2]}: the device sent {device[key]} bytes, posted were {queues[key]}"


CHECKS = (check_communicators, check_operations, check_steps, check_faults)
TRACER_CHECKS = (check_queues, check_kernel, check_bytes)


def summary(truth):
    options = truth.options
    yield "job: " + " ".join(f"{name}={value}" for name, value in options.items())
    for communicator in truth.communicators.values():
        yield f"communicator {communicator.name}: world ranks {sorted(communicator.members)}"
    started_ns = min(clock[0] for clock in truth.clocks)
    ready_ns = max((line["init_ended_ns"] for line in truth.lines["communicator"]), default=started_ns)
    yield f"all communicators ready after {(ready_ns - started_ns) / 1e9:.1f} s"
    roles = collections.Counter(queue.role for queue in truth.queues.values())
    yield f"{len(truth.queues)} queue pairs: " + ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
    yield f"{len(truth.operations)} operations, {sum(sent_by_device(truth).values())} payload bytes"
    for rank in range(truth.ranks):
        steps = [step.duration_ns for step in truth.step_of(rank)]
        if not steps:
            continue
        first = int(options["first_step"]) if options["fault"] != "none" else len(steps)
        before, after = steps[1:first], steps[first:]
        text = ", ".join(
            f"{name} {statistics.median(part) / 1e6:.1f} ms" for name, part in (("steps", before), ("faulty steps", after)) if part
        )
        yield f"rank {rank}: first step {steps[0] / 1e6:.1f} ms, median of the other {text}"
    if truth.faults:
        fault, cost_ns = truth.faults[0], truth.fault_cost_ns()
        cost = f"cost {cost_ns / 1e6:.1f} ms a step" if cost_ns is not None else "cost unknown: no quiet step before"
        rate = f", {fault.rate_bit_s / 1e6:.1f} Mbit/s" if fault.rate_bit_s else ""
        yield (
            f"fault {fault.fault}, rank {fault.rank}, steps {fault.step} on, {fault.delay_ns / 1e6:.0f} ms{rate}: {cost}"
        )
    loss = [f"{name} {value}" for name, value in counters_grown(truth.folder) if value]
    yield "retransmissions and errors: " + (", ".join(loss) or "none")


def counters_grown(folder):
    """Growth of rxe's counters of trouble between the job's start and its end."""
    def read(when):
        lines = (line.strip().rsplit(":", 1) for line in lines_of(folder, f"counters-{when}.txt"))
        return {name: int(value) for name, value in lines}

    before, after = read("before"), read("after")
    quiet = ("sent_pkts", "rcvd_pkts", "rdma_sends", "rdma_recvs", "ack_deferred", "completer_retry_err", "lifespan")
    for name, value in after.items():
        device, counter = name.split("/")[4], name.split("/")[-1]
        if counter not in quiet:
            yield f"{device} {counter}", value - before.get(name, 0)


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    try:
        truth = Truth(arguments[0])
    except (OSError, ValueError, KeyError) as error:
        print(f"truth.py: no whole job of the lab in {arguments[0]}: {error!r}", file=sys.stderr)
        return 1
    for line in summary(truth):
        print(line)
    checks = CHECKS + (TRACER_CHECKS if truth.queues else ())
    problems = [problem for check in checks for problem in check(truth)]
    for problem in problems[:20]:
        print("CONTRADICTION: " + problem)
    print(f"{len(problems)} contradictions" + ("" if truth.queues else " (no tracer: queue pairs not checked)"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
