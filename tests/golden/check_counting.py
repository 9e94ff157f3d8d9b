#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_counting.py QPSCOPE-NIC: what --source mlx5 --dry-run says a device would be given, against numbers put together here from
the documented bit offsets; and that wrong usage, and a machine without RDMA devices, get one clear line."""
import re
import subprocess
import sys

import tap

NIC = sys.argv[1]
QPN = 0x123


def run(*arguments):
    done = subprocess.run([NIC, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def words(size_bits, **fields):
    """Fields as (first bit, bits, value), bit 0 the highest, as the hexadecimal words that are printed."""
    number = 0
    for first, bits, value in fields.values():
        assert value < 1 << bits
        number |= value << (size_bits - first - bits)
    text = f"{number:0{size_bits // 4}x}"
    return " ".join(text[i:i + 8] for i in range(0, len(text), 8))


def opcode(value):
    return (0, 16, value)


def check_dry_run():
    code, shown, said = run("--source", "mlx5", "--dry-run", "--device", "mlx5_7")
    if "built without mlx5" in said:
        tap.skip("the rules and commands of --dry-run", "built without mlx5")
        return
    first = re.search(r"QUERY_FLOW_COUNTER \(512 counters from (\d+) on", shown)
    counter = int(first[1]) if first else 0
    expected = {
        "a table for received packets": words(512, opcode=opcode(0x930), table_type=(0x80, 8, 7), level=(0xC8, 8, 64)),
        "a bulk of 512 counters": words(256, opcode=opcode(0x939), bulk=(0x78, 8, 4)),
        "a query of the bulk": words(256, opcode=opcode(0x93B), dump=(0xC1, 1, 1), number=(0xC2, 30, 512), id=(0xE0, 32, counter)),
        "a query of the two in use": words(256, opcode=opcode(0x93B), dump=(0xC1, 1, 1), number=(0xC2, 30, 4), id=(0xE0, 32, counter)),
        "what is sent": words(1024, source_sqn=(0x208, 24, QPN)),
        "the mask of what is sent": words(1024, source_sqn=(0x208, 24, 0xFFFFFF)),
        "what is received": words(1024, bth_dst_qp=(0x348, 24, QPN)),
        "the mask of what is received": words(1024, bth_dst_qp=(0x348, 24, 0xFFFFFF)),
    }
    lines = shown.splitlines()
    findings = [f"{name}: {text} is not printed" for name, text in expected.items() if not any(line.endswith(text) for line in lines)]
    if code != 0:
        findings.append(f"exit code {code}: {said}")
    if not all(line.startswith("mlx5_7: ") for line in lines):
        findings.append("a line does not begin with the device's name")
    removed = sum("remove rule" in line for line in lines)
    if removed != 2 or "remove the bulk" not in lines[-1]:
        findings.append("what was made is not removed")
    tap.check("--dry-run prints the rules and commands, bit for bit", findings)


def check_transport():
    """Another function's port, the second: its own domains, a table of type 13 of the function's vport (1, as an example); all else alike."""
    code, shown, said = run("--source", "mlx5", "--dry-run", "--device", "mlx5_7/2")
    if "built without mlx5" in said:
        tap.skip("another function's port", "built without mlx5")
        return
    table = words(512, opcode=opcode(0x930), other_vport=(0x40, 1, 1), vport=(0x50, 16, 1), table_type=(0x80, 8, 13), level=(0xC8, 8, 64))
    wanted = [table, "rule in RDMA_TRANSPORT_TX: source_sqn 0x000123", "rule in RDMA_TRANSPORT_RX: bth_dst_qp 0x000123",
              words(1024, source_sqn=(0x208, 24, QPN)), words(1024, bth_dst_qp=(0x348, 24, QPN))]
    findings = [f"{text} is not printed" for text in wanted if text not in shown]
    tap.check("--dry-run of another function's port: the RDMA transport domains", findings + ([] if code == 0 else [f"exit code {code}: {said}"]))


def check_usage():
    findings = []
    for arguments in (["--source", "psn", "--file", "x"], ["--source", "psn", "--dry-run"], ["--source", "mlx5", "--windows"],
                      ["--source", "dpdk", "--file", "x"], ["--file", "x", "--device", "mlx5_0"], ["--source", "nothing"],
                      ["--file", "x", "--duration", "1s"], ["--source", "psn", "--control", "ipc:///tmp/x"]):
        code, shown, said = run(*arguments)
        if code != 2 or shown or "help" not in said:
            findings.append(f"{' '.join(arguments)}: exit code {code}, '{said.strip()}'")
    tap.check("wrong usage gets exit code 2 and a pointer to --help", findings)


def check_no_device():
    findings = []
    for kind in ("psn", "mlx5"):
        code, _, said = run("--source", kind, "--device", "no_such0", "--duration", "1s")
        if code != 1 or len(said.splitlines()) != 1 or not re.search("no_such0|RDMA|built without", said):
            findings.append(f"{kind}: exit code {code}, '{said.strip()}'")
    tap.check("a device that is not there gets exit code 1 and one clear line", findings)


check_dry_run()
check_transport()
check_usage()
check_no_device()
sys.exit(tap.finish())
