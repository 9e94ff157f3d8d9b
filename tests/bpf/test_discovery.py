#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Libraries wherever they lie, and who the processes are, as TAP: test_discovery.py BUILD."""
import os
import subprocess
import sys

from host import Host, Tree, check_everything, run_tests

BUILD = sys.argv[1]
HOST = f"{BUILD}/host/qpscope-host"


def whole_job(tree, host, **environment):
    """A program that does everything once the daemon has noticed its libraries."""
    program = tree.start("full", wait=True, **environment)
    host.wait_log("probes in " + tree.library)
    host.wait_log("probes in " + tree.verbs)
    program.go()
    program.finish()
    return program


def deleted(tree):
    """The job's libraries are gone from the disk when the daemon comes: they are read through the mappings."""
    program = tree.start("full", wait=True)
    os.unlink(tree.path + tree.library)
    os.unlink(tree.path + tree.verbs)
    host = Host(HOST)
    host.wait_log("probes in " + tree.library)
    program.go()
    program.finish()
    return check_everything(host.stop(), program, tree)


def replaced(tree):
    """Another file lies at the library's path by now, as after an upgrade: the one that is mapped is probed."""
    program = tree.start("full", wait=True)
    for path in (tree.library, tree.verbs):
        os.unlink(tree.path + path)
        with open(tree.path + path, "w") as file:
            file.write("another file\n")
    host = Host(HOST)
    host.wait_log("probes in " + tree.library)
    program.go()
    program.finish()
    return check_everything(host.stop(), program, tree)


def stripped(tree):
    """All that is left of the symbols is what the dynamic linker needs; two jobs, one on a library of full symbols."""
    other = Tree(BUILD, "another.so.2")
    try:
        for path in (tree.library, tree.verbs):
            subprocess.run(["strip", "--strip-all", tree.path + path], check=True)
        host = Host(HOST)
        programs = [whole_job(tree, host), whole_job(other, host, STANDIN_FIRST_QPN="1000")]
        records = host.stop()
        return "; ".join(check_everything(records, p, t) for p, t in zip(programs, (tree, other)))
    finally:
        other.remove()


def linked(tree):
    """The library is linked into the program, which exports none of it: its functions are in .symtab only."""
    tree.add(f"{BUILD}/tests/bpf/bpf_test_linked", "/program")
    tree.library = "/program"
    host = Host(HOST)
    program = whole_job(tree, host)
    return check_everything(host.stop(), program, tree)


def identity(tree):
    """Who a process in namespaces of its own is."""
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start_in_container("short", "3", RANK="5", LOCAL_RANK="1", WORLD_SIZE="16", MASTER_ADDR="node-7",
                                      MASTER_PORT="29500", NCCL_DEBUG="WARN", NCCL_IB_HCA="=mlx5_0:1," + "x" * 200,
                                      SLURM_JOB_ID="4711", SLURM_STEP_ID="2")
    program.go()
    host.wait_record("process_fact")  # while it lives: of one that ended at once nothing could be read any more
    program.go()
    program.finish()
    records = host.stop()
    facts = records.facts_of(program.pid)
    expected = {("pid", 0): "1", ("user", 0): "0", ("host_name", 0): "inside", ("RANK", 0): "5", ("LOCAL_RANK", 0): "1",
                ("WORLD_SIZE", 0): "16", ("MASTER_ADDR", 0): "node-7", ("MASTER_PORT", 0): "29500",
                ("slurm_job", 0): "4711", ("slurm_step", 0): "2",
                ("command_line", 0): f"/program {tree.library} short 3"}
    for key, value in expected.items():
        assert facts.get(key) == value, (key, value, facts)
    variables = {text.split("=")[0]: text for (fact, _), text in facts.items() if fact == "nccl_variable"}
    assert variables["NCCL_DEBUG"] == "NCCL_DEBUG=WARN", variables
    assert variables["NCCL_IB_HCA"] == ("NCCL_IB_HCA==mlx5_0:1," + "x" * 200)[:160], variables
    cut, = [r for r in records.records if r["record"] == "process_fact" and r["text"] == variables["NCCL_IB_HCA"]]
    assert cut["text_bytes"] == len("NCCL_IB_HCA==mlx5_0:1,") + 200, cut
    return f"{len(facts)} facts"


sys.exit(run_tests(HOST, BUILD, [deleted, replaced, stripped, linked, identity], sys.argv[2:]))
