#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""truth.py must accept a truth that agrees with itself, and name each thing that does not. The job here is written by
hand: two ranks, one communicator, one AllReduce of 1000 bytes a step in two steps, one connection each way."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

import truth

ID = "0200aaaa7f000001" + "00" * 120
GIDS = [truth.gid_of_address("10.0.0.10"), truth.gid_of_address("10.0.0.17")]
JOB = """name=job ranks=2 steps=2 fault=host rank=1 delay_ms=50 first_step=1 seed=1 channels=1 two_in_one=0 gdr=0 foreign=
rank=0 device=rxe0 address=10.0.0.10 near=ve0 far=fa0
rank=1 device=rxe1 address=10.0.0.17 near=ve1 far=fa1
"""


def operation_lines(rank, step):
    at = 1000 * step + 10 * rank
    common = {"pid": 100 + rank, "comm": f"0x{rank}", "operation": "AllReduce", "sequence": step, "peer": -1, "root": -1}
    call = {"kind": "call", "rank": rank, "step": step, "bytes": 1000, "called_ns": at, "returned_ns": at + 2, **common}
    ran = {"kind": "operation", "bytes": 1000, "enqueued_ns": at + 1, "begun_ns": at + 3, "ended_ns": at + 9, **common}
    ran |= {"algorithm": "Ring", "protocol": "Simple", "channels": 1, "delay_us": 0}
    ran["sent"] = [{"channel": 0, "peer": 1 - rank, "bytes": 1000, "pieces": 1}]
    times = {"begun_ns": at, "first_enqueue_ns": at, "last_enqueue_ns": at + 2, "ended_ns": at + 100 + 50 * step}
    return [
        call,
        ran,
        {"kind": "step", "rank": rank, "step": step, **times},
        {"kind": "check", "rank": rank, "step": step, "operation": 0, "values": 250, "wrong": 0},
    ]


def queue_lines(rank, qpn, remote_qpn, write_bytes, announced):
    place = {"device": f"rxe{rank}", "qpn": qpn, "pid": 100 + rank, "tid": 100 + rank, "at_ns": 1}
    ends = {"local_gid": GIDS[rank], "remote_gid": GIDS[1 - rank], "remote_qpn": remote_qpn, "flush": 0}
    posted = {"write_posts": 2, "write_bytes": write_bytes, "write_imm_posts": 0, "write_imm_bytes": 0}
    return [
        {"kind": "qp", "rank": rank, "id": ID, **place},
        {"kind": "qp_state", "state": 2, **ends, **place},
        {"kind": "posted", "size_record_posts": announced, "size_record_bytes": 0, **posted, **place},
    ]


def rank_lines(rank):
    lines = [{"kind": "clock", "monotonic_ns": 500, "realtime_ns": 1500, "error_ns": 1}]
    lines += [{"kind": "communicator", "rank": rank, "name": "world0", "comm": f"0x{rank}", "comm_rank": rank, "ranks": 2}]
    lines[1] |= {"pid": 100 + rank, "id": ID, "init_ended_ns": 900}
    for step in range(2):
        lines += operation_lines(rank, step)
    lines += queue_lines(rank, 17, 18, 2000, 2) + queue_lines(rank, 18, 17, 128, 0)
    if rank == 1:
        lines += [{"kind": "fault", "fault": "host", "rank": 1, "step": 1, "delay_ns": 50, "at_ns": 1, "rate_bit_s": 0}]
    return lines


def problems_of(change=lambda lines: None):
    """The contradictions that truth.py finds in the job after `change` was made to rank 0's lines."""
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(2):
            lines = rank_lines(rank)
            if rank == 0:
                change(lines)
            with open(os.path.join(folder, f"truth{rank}.jsonl"), "w") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        with open(os.path.join(folder, "job.txt"), "w") as file:
            file.write(JOB)
        with open(os.path.join(folder, "qp.txt"), "w") as file:
            for rank in range(2):
                for local, remote in ((17, 18), (18, 17)):
                    file.write(f"link rxe{rank}/1 lqpn {local} rqpn {remote} type RC state RTS rq-psn 0 pid 1 comm train\n")
        for when in ("before", "after"):
            with open(os.path.join(folder, f"counters-{when}.txt"), "w") as file:
                file.write("/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts:7\n")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = truth.main([folder])
        found = [line for line in output.getvalue().splitlines() if line.startswith("CONTRADICTION")]
        assert status == bool(found), output.getvalue()
        return found


def change(kind, **values):
    def apply(lines):
        next(line for line in lines if line["kind"] == kind).update(values)

    return apply


def leave_out(kind):
    def apply(lines):
        lines.remove(next(line for line in lines if line["kind"] == kind))

    return apply


class TruthTest(unittest.TestCase):
    def test_agreeing_truth(self):
        self.assertEqual(problems_of(), [])

    def test_contradictions(self):
        cases = {
            "the device sent 1990 bytes, posted were 2000": change(
                "operation", sent=[{"channel": 0, "peer": 1, "bytes": 990, "pieces": 1}]
            ),
            "the device sent 2000 bytes, posted were 1999": change("posted", write_bytes=1999),
            "called, but the device never ran it": leave_out("operation"),
            "the device ran what the job never called": leave_out("call"),
            "its times are out of order": change("operation", begun_ns=0),
            "rank 0 has the steps [1], not 0 to 1": leave_out("step"),
            "3 of 250 results were wrong": change("check", wrong=3),
            "results were checked for": leave_out("check"),
            "the tracer knows no communicator for it": change("qp", id=""),
            "its other end is connected elsewhere": change("qp_state", remote_qpn=17),
            "remote QPN 17, but the kernel says 18": change("qp_state", remote_qpn=17),
            "world0 has the ranks [1, 1], not 0 to 1": change("communicator", comm_rank=1),
        }
        for expected, damage in cases.items():
            with self.subTest(expected):
                found = problems_of(damage)
                self.assertTrue(any(expected in problem for problem in found), found)

    def test_realtime(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "job.txt"), "w") as file:
                file.write(JOB)
            with open(os.path.join(folder, "truth0.jsonl"), "w") as file:
                file.writelines(json.dumps(line) + "\n" for line in rank_lines(0))
            self.assertEqual(truth.Truth(folder).realtime_ns(700), 1700)


if __name__ == "__main__":
    sys.exit(unittest.main())
