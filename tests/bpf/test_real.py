#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""qpscope-host beside a real libnccl.so.2, which needs no GPU to be called, as TAP: test_real.py BUILD."""
import glob
import json
import os
import re
import subprocess
import sys

from host import Host, identity, skip_reason, take_machine

BUILD = sys.argv[1]
# Where the rank lies in ncclComm, computed by compiling each version's headers; a build of a vendor may differ.
RANK_BYTES = {
    21801: 9176, 21803: 9176, 21805: 9176, 21806: 9432, 21901: 9176, 21903: 9432, 21904: 9432, 22003: 10456, 22005: 10456,
    22105: 13536, 22203: 213584, 22304: 246952, 22403: 246952, 22501: 492712, 22602: 492728, 22603: 492728, 22605: 492728,
    22606: 492728, 22703: 1066168, 22705: 1066168, 22706: 1066168, 22707: 1066168, 22803: 1066184, 22807: 1066192,
    22809: 1066192, 22902: 1066712, 22903: 1066712, 22907: 1181400, 23003: 1181408, 23004: 1181408, 23007: 1181424,
}
PLACES = ["/usr/local/cuda*/lib*/libnccl.so.2", "/usr/lib/*/libnccl.so.2", "/usr/local/lib/libnccl.so.2"]


def library():
    places = [os.environ["QPSCOPE_NCCL"]] if "QPSCOPE_NCCL" in os.environ else sum(map(glob.glob, PLACES), [])
    return os.path.realpath(places[0]) if places and os.path.exists(places[0]) else None


def check(path):
    host = Host(f"{BUILD}/host/qpscope-host", "--library", path)
    environment = {**os.environ, "NCCL_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "WARN"}
    output = subprocess.run([f"{BUILD}/tests/bpf/bpf_test_real", path], capture_output=True, text=True, env=environment,
                            timeout=120)
    assert output.returncode == 0, output
    said = [json.loads(line) for line in output.stdout.splitlines() if line.startswith("{")]
    records = host.stop()
    pid = said[0]["loaded"]
    passed = [line for line in said if "creator" in line]
    assert len(passed) == 3 and len({line["id"] for line in passed}) == 3
    assert records.process_of(pid)["library"] == path, records.process_of(pid)
    communicators = sorted(records.communicators_of(pid), key=lambda c: c["created_ns"])
    assert len(communicators) == 3, communicators
    for line, record in zip(passed, communicators):
        assert record["identity"] == identity(bytes.fromhex(line["id"])), (record, line)
        assert (record["ranks_count"], record["rank"]) == (line["ranks_count"], line["rank"]), (record, line)
        assert line["result"] != 0 and record["ready_ns"] == 0 < record["destroyed_ns"], (record, line)
    # ncclBcast runs ncclBroadcast: one call, and its communicator, NULL, is no communicator.
    assert records.counters["calls_total"] == 1 == records.counters["calls_invalid_total"], records.counters
    assert records.counters["probes_failed_total"] == 0 == records.counters["probe_reads_failed_total"]
    layout = re.search(r"version (\d+), rank at (\d+) of a communicator, hash before it", "".join(host.log))
    version, rank_bytes = map(int, layout.groups())
    assert RANK_BYTES.get(version, rank_bytes) == rank_bytes, (version, rank_bytes)
    return f"{path}: version {version}, rank at {rank_bytes} as its code reads it; ranks, rank and the id's 128 bytes as passed to 3 calls"


def main():
    path = library()
    reason = skip_reason(f"{BUILD}/host/qpscope-host") or (None if path else "no libnccl.so.2; set QPSCOPE_NCCL")
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 77
    take_machine()
    print("1..1")
    try:
        print(f"ok 1 - real_library: {check(path)}")
        return 0
    except Exception as error:  # every failure is a line of TAP
        print(f"not ok 1 - real_library: {type(error).__name__}: {error}".replace("\n", "\n# "))
        return 1


sys.exit(main())
