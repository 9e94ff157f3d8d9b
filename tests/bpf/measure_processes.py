#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Thousands of processes started and ended beside a job, a tenth of them with a communicator and queue pairs, as TAP:
nothing is left of them, and the last are followed at the cost of the first. measure_processes.py BUILD [COUNT]"""
import os
import subprocess
import sys
import time

from host import Host, Tree, check_everything, run_tests

BUILD = sys.argv[1]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
BATCHES = 10
ROUND = "i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); chroot {root} /program {library} short 3; {rest} done"


def look(pid):
    """Resident KiB, descriptors, seconds of CPU of the daemon."""
    with open(f"/proc/{pid}/status") as file:
        resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return resident, len(os.listdir(f"/proc/{pid}/fd")), cpu_s


def processes(tree):
    host = Host(f"{BUILD}/host/qpscope-host", "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start("full", wait=True)
    script = ROUND.format(rounds=COUNT // BATCHES // 10, root=tree.path, library=tree.library, rest="/bin/true; " * 9)
    looks = []
    for _ in range(BATCHES):
        begun = time.monotonic()
        before = look(host.process.pid)
        subprocess.run(["sh", "-c", script], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "STANDIN_VERBS": tree.verbs})
        after = look(host.process.pid)
        looks.append((*after[:2], after[2] - before[2], time.monotonic() - begun))
    program.go()
    program.finish()
    records = host.stop()
    check_everything(records, program, tree)
    strangers = [p for p in records.processes.values() if p["pid"] != program.pid]
    assert len(strangers) == COUNT // 10, len(strangers)
    assert all(p["ended_ns"] > 0 for p in strangers), "a process without an end"
    assert all(c["destroyed_ns"] > 0 for c in records.communicators.values()), "a communicator without an end"
    assert all(q["destroyed_ns"] > 0 for q in records.queue_pairs.values()), "a queue pair without an end"
    assert len(records.calls) - len(records.calls_of(program.pid)) == 3 * len(strangers)
    assert any(": 0 things are still followed" in line for line in host.log), host.log
    second, last = looks[1], looks[-1]
    assert last[1] == second[1] and last[0] - second[0] < 1024, looks
    assert last[2] < 2 * second[2] + 0.1, looks
    return (f"{COUNT} processes, {len(strangers)} with communicators; memory {second[0]} -> {last[0]} KiB, descriptors "
            f"{second[1]} -> {last[1]}, CPU of a tenth {second[2]:.2f} -> {last[2]:.2f} s of {second[3]:.1f} -> {last[3]:.1f} s")


sys.exit(run_tests(f"{BUILD}/host/qpscope-host", BUILD, [processes], []))
