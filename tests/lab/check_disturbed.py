#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_disturbed.py CAPTURE-ROWS FOLDER...: jobs of the lab on a bad network (plan_disturbed.sh), as TAP.

Each frame passes its sender's far end, then the queue discipline of its receiver's far end, then that far end. What
independent.py makes of the two captures is laid beside the discipline's own counters, the job's truth and qpscope's
store. (That qpscope-nic says of each port what independent.py says, check_capture.py checks.) A job's name begins with
what was done to its network. Exit status 1 when something is not right.
"""

import ipaddress
import json
import os
import sys
from collections import Counter, defaultdict

here = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [here, os.path.join(os.path.dirname(here), "golden")]
import check_capture  # noqa: E402
import independent  # noqa: E402
from check_job import Store, bytes_of_operations, check_calls  # noqa: E402
from tap import Tap  # noqa: E402
from truth import Truth  # noqa: E402

RATE_BYTES, BURST_BYTES, INTERVAL_NS = 40_000_000 // 8, 20480 + 2 * 4300, 10_000_000
ECT0, CE = 1 << 2, 1 << 3


def mapped(text):
    return ipaddress.ip_address(b"\0" * 10 + b"\xff\xff" + ipaddress.ip_address(text).packed)


class Network:
    """The job's captures, each flow as its sender's and as its receiver's port show it, and the disciplines' counters."""

    def __init__(self, folder, places):
        self.at, self.frames, self.address = {}, {}, {}
        for rank, place in places.items():
            self.address[rank] = mapped(place["address"])
            path = os.path.join(folder, f"far{rank}.pcap")
            self.frames[rank] = list(independent.read_frames(path))
            self.at[rank] = independent.analyse_all(path, address=self.address[rank])[0]
        self.rank_of = {address: rank for rank, address in self.address.items()}
        with open(os.path.join(folder, "qdisc.json")) as file:
            self.disciplines = {(entry["dev"], entry["kind"]): entry for entry in json.load(file)}

    def to(self, rank, where):
        """Frames for this rank, as its own port shows them ("rx"), or the senders' ports ("tx")."""
        own = self.address[rank]
        ports = [rank] if where == "rx" else [other for other in self.at if other != rank]
        return [frame for port in ports for frame in self.frames[port] if frame.key[1] == own]

    def both(self):
        """(key, totals at the sender's port, totals at the receiver's) of each flow."""
        for key in {key for found in self.at.values() for key in found.flows}:
            if key[0] in self.rank_of and key[1] in self.rank_of:
                yield key, self.at[self.rank_of[key[0]]].flows[key], self.at[self.rank_of[key[1]]].flows[key]

    def sum(self, name):
        """At the senders' ports, and at the receivers'."""
        pairs = [(sent[name], got[name]) for _, sent, got in self.both()]
        return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)

    def counter(self, rank, kind, name):
        return self.disciplines[f"fa{rank}", kind][name]


def check_frames(tap, network, kind):
    """The discipline let through what the receiver's port shows, and lost the rest of what the senders' ports show."""
    findings, sums = [], Counter()
    for rank in network.at:
        if (f"fa{rank}", kind) not in network.disciplines:
            continue
        sent, got = len(network.to(rank, "tx")), len(network.to(rank, "rx"))
        drops, passed = network.counter(rank, kind, "drops"), network.counter(rank, kind, "packets")
        sums.update(drops=drops, more=max(0, got - sent))
        if passed != got or (kind == "netem" and sent - drops > got) or (sent - drops != got and got <= sent):
            findings.append(f"to rank {rank}: {sent} sent, {drops} dropped, {passed} passed, {got} arrived")
    tap.check("frames at both ports and the discipline's counters", findings, f"{sums['drops']} dropped, {sums['more']} doubled")
    return sums


def check_progress(tap, network):
    wrong = [f"{independent.text_key(key)}: {sent[name]} {name} sent, {got[name]} arrived" for key, sent, got in network.both()
             for name in ("covered_psns",) if sent[name] != got[name]]
    tap.check("all that was sent arrived in the end", wrong, f"{network.sum('covered_psns')[0]} PSNs")
    late = network.sum("late_frames")[0]
    tap.check("in order at the senders' ports, no duplicates there", [f"{late} late"] if late else [],
              f"{network.sum('retransmitted_frames')[0]} sent again")


def check_loss(tap, network, sums):
    (sent, got), (again, _) = network.sum("data_frames"), network.sum("repeated_frames")
    findings = [] if sums["drops"] > 0 else ["nothing was dropped"]
    if not again >= sent - got > 0:
        findings.append(f"{sent - got} data frames lost, {again} sent again")
    tap.check("what was lost was sent again", findings, f"{sent - got} data frames lost, {again} sent again")
    late, unknown = network.sum("late_frames")[1], network.sum("late_unknown_frames")[1]
    tap.check("downstream, a NAK or a pause explains nine of ten late frames",
              [f"{unknown} of {late} unknown"] if unknown * 10 > late + 10 else [], f"{late} late, {unknown} unknown")
    doubled = network.sum("duplicate_frames")[1]
    tap.check("nothing is called doubled", [f"{doubled} frames"] if doubled > 2 + again // 50 else [])


def check_reorder(tap, network, sums):
    sent, got = network.sum("data_frames")
    late, reordered, unknown = (network.sum(name)[1] for name in ("late_frames", "reordered_frames", "late_unknown_frames"))
    findings = [] if sent == got and not sums["drops"] else [f"{sent} data frames sent, {got} arrived"]
    if not reordered + unknown > 0:
        findings.append("nothing was reordered")
    resent = network.sum("retransmitted_frames")
    if abs(resent[0] - resent[1]) > 2 + late // 4:
        findings.append(f"{resent[0]} sent again at the senders' ports, {resent[1]} at the receivers'")
    tap.check("reordering is told from retransmission", findings,
              f"{late} late: {reordered} overtaken, {unknown} unknown; sent again {resent[0]}, seen downstream {resent[1]}")


def check_duplicates(tap, network, sums):
    (sent, got), again = network.sum("data_frames"), network.sum("retransmitted_frames")[0]
    doubled = network.sum("duplicate_frames")[1]
    findings = [] if sums["more"] > 0 and got > sent else ["nothing was doubled"]
    if abs(got - sent - doubled) > (0 if again == 0 else (got - sent) // 5):
        findings.append(f"{got - sent} data frames more arrived than were sent; {doubled} are called doubled")
    tap.check("data frames doubled on the way are called so", findings, f"{doubled} of {got - sent}; {again} sent again")


def check_rate(tap, network, folder):
    """No 10 ms of what arrives hold more than the rate allows, and what was sent did: the limit was felt."""
    def most(frames):
        bins = Counter()
        for frame in frames:
            bins[frame.time // INTERVAL_NS] += frame.wire
        return max(bins.values())
    allowed = (RATE_BYTES * INTERVAL_NS // 10**9 + BURST_BYTES) * 5 // 4  # stamps of an emulated machine
    got, sent = (max(most(network.to(rank, where)) for rank in network.at) for where in ("rx", "tx"))
    findings = [f"{got} bytes arrived in 10 ms; the rate allows {allowed}"] if got > allowed else []
    if sent <= allowed:
        findings.append(f"no more than {sent} bytes were sent in 10 ms: the rate limited nothing")
    tap.check("the rate limit shows downstream", findings, f"at most {got} bytes in 10 ms, {sent} at the senders' ports")


def check_marks(tap, network, folder):
    wrong = []
    for rank in network.at:
        marked, seen = network.counter(rank, "red", "marked"), sum(frame.ecn == 3 for frame in network.to(rank, "rx"))
        if marked != seen or not marked:
            wrong.append(f"rank {rank}: the discipline marked {marked}, {seen} arrived marked")
    sent, got = network.sum("marked_frames")
    tap.check("marks equal the discipline's", wrong + ([f"{sent} marked at the senders' ports"] if sent else []), f"{got} marked")
    wrong = [f"{independent.text_key(key)}: {sent['codepoints']}, {got['codepoints']}" for key, sent, got in network.both()
             if sent["data_frames"] and (sent["codepoints"] != ECT0 or bool(got["codepoints"] & CE) < bool(got["marked_frames"] and not got["acks"]))]
    tap.check("ECT at the senders' ports, CE where marks are", wrong)


def check_lossy(tap, network, store):
    """Only what goes to rank 1 is lost: data to it, and answers to what it sends. So it is at each link that is blamed."""
    verdicts = store.rows("SELECT step, class, rank, peer_rank FROM verdict")
    steps, = store.rows("SELECT count(*) AS count FROM step")
    lossy = [row for row in verdicts if row["class"] == "network lossy"]
    found = {row["step"] for row in lossy}
    tap.check("every second step has a lossy link", [f"{len(found)} of {steps['count']}"] if len(found) * 2 < steps["count"] else [],
              f"{len(found)} of {steps['count']} steps")
    wrong = [f"step {row['step']}: {row['class']}, rank {row['rank']} to {row['peer_rank']}" for row in verdicts
             if row["class"] != "network lossy" or 1 not in (row["rank"], row["peer_rank"])]
    tap.check("no verdict but on links of the rank that loses frames", wrong if len(wrong) * 10 > len(verdicts) else [],
              f"{len(verdicts)} verdicts")


def check_pairs(tap, truth, flows, totals):
    """The two directions that qpscope-nic put together by itself, against the job's queue pairs."""
    ends = {(ipaddress.ip_address(bytes.fromhex(queue.local_gid)), queue.qpn): queue.remote_qpn for queue in truth.queues.values() if queue.local_gid}
    wrong, known = [], [number for number in flows if number in totals and totals[number]["data_frames"]]
    for number in known:
        flow, qpn = flows[number], totals[number]["source_qpn"]
        if qpn and ends.get((ipaddress.ip_address(flow["source"]), qpn)) != flow["destination_qpn"]:
            wrong.append(f"flow {number} to QPN {flow['destination_qpn']}: source QPN {qpn}")
    paired = sum(totals[number]["source_qpn"] != 0 for number in known)
    if paired * 10 < len(known) * 9:
        wrong.append(f"only {paired} of {len(known)} flows are paired")
    tap.check("both directions of a connection are paired", wrong, f"{paired} of {len(known)}")


def check_payload(tap, truth, calls, is_lossy):
    """Every payload byte once, whatever was sent again. That a slot's end was lost and came late may make it vague."""
    operations = bytes_of_operations(truth, calls)
    wrong = [f"rank {operation.rank} step {operation.step} {operation.operation} {operation.sequence}: {row['observed_bytes']} "
             f"bytes seen, {sent} sent" for sent, row, operation in operations.values() if row["observed_bytes"] != sent]
    if len(operations) == 0 or len(operations) != len({row["rank_operation"] for row in calls.values()}):
        wrong.append(f"{len(operations)} operations")
    tap.check("payload of every operation equals the truth", wrong, f"{len(operations)} rank operations")
    vague = [row["status"] for _, row, _ in operations.values() if row["status"] not in ("complete", "no wire")]
    allowed = len(operations) // 4 if is_lossy else 0
    tap.check("three of four operations are called complete" if is_lossy else "all operations are called complete",
              vague if len(vague) > allowed else [], f"{len(operations) - len(vague)} of {len(operations)}")


def check_job(tap, folder, rows_program):
    truth, store = Truth(folder), Store(os.path.join(folder, "qpscope.db"))
    network, kind = Network(folder, truth.rank_places), os.path.basename(os.path.normpath(folder)).split("-")[0]
    sums = check_frames(tap, network, {"rate": "tbf", "marks": "red"}.get(kind, "netem"))
    check_progress(tap, network)
    {"loss": check_loss, "lossy": check_loss, "reorder": check_reorder, "duplicate": check_duplicates, "rate": check_rate, "marks": check_marks}[kind](
        tap, network, sums)
    if kind == "lossy":
        check_lossy(tap, network, store)
    flows, totals, *_ = check_capture.read_rows(rows_program, os.path.join(folder, "nic.capture"))
    check_pairs(tap, truth, flows, totals)
    calls = store.calls()
    check_calls(tap, truth, calls)
    check_payload(tap, truth, calls, kind in ("loss", "lossy", "reorder"))


def main():
    tap = Tap()
    for folder in sys.argv[2:]:
        check_job(tap, folder, sys.argv[1])
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
