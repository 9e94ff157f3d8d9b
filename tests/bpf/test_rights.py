#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What qpscope-host says and still does where rights are missing, as TAP: test_rights.py BUILD."""
import ctypes
import os
import re
import shutil
import struct
import subprocess
import sys

from host import Host, check_everything, run_tests

BUILD = sys.argv[1]
HOST = f"{BUILD}/host/qpscope-host"
SYSTEM_CALLS = {"x86_64": (298, 321), "aarch64": (241, 280)}[os.uname().machine]  # perf_event_open, bpf
PERF_EVENT_OPEN, BPF = SYSTEM_CALLS


def as_nobody(*capabilities):
    """A prefix that runs a program as another user with just these."""
    listed = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", f"--inh-caps={listed}",
            f"--ambient-caps={listed}", f"--bounding-set={listed}"]


def forbid(*numbers):
    """A function for a child: these system calls fail with EPERM from now on, as a container's profile makes them."""
    code = [(0x20, 0, 0, 0)]  # load the number
    for i, number in enumerate(numbers):
        code.append((0x15, len(numbers) - i, 0, number))  # jump to the refusal
    code += [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050001)]  # allow; errno 1
    program = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)

    def apply():
        assert buffer is not None and libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
        assert libc.prctl(22, 2, ctypes.c_char_p(header)) == 0  # seccomp, filter

    return apply


def refused(command, **options):
    """What it says when it ends with a failure."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    assert result.returncode == 1 and result.stdout == "", result
    assert "cannot load the probes" in result.stderr, result.stderr
    return result.stderr


def lent_host(tree):
    """The program where another user can run it."""
    shutil.copy(HOST, tree.path + "/qpscope-host")
    os.chmod(tree.path, 0o755)
    return tree.path + "/qpscope-host"


def capabilities(tree):
    """Each capability that is missing is named, with what it is for; the others are not."""
    host = lent_host(tree)
    everything = ("bpf", "perfmon", "sys_ptrace", "checkpoint_restore")
    for missing in ("bpf", "perfmon"):
        text = refused([*as_nobody(*(name for name in everything if name != missing)), host])
        named = re.findall(r"(?:error|warning): missing (CAP_\w+), to ", text)
        assert named == [f"CAP_{missing.upper()}"], text
        assert ("perf_event_paranoid" in text) == (missing == "perfmon"), text
    text = refused([*as_nobody(), host])
    named = re.findall(r"(?:error|warning): missing (CAP_\w+), to ", text)
    assert named == ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_CHECKPOINT_RESTORE"], text
    return "4 named, alone and together"


def less_is_seen(tree):
    """With the two capabilities that probes need, a job is followed whose library is named; the rest is said."""
    host = Host(lent_host(tree), "--library", tree.path + tree.library, "--library", tree.path + tree.verbs,
                prefix=as_nobody("bpf", "perfmon"))
    program = tree.start("short", "10").finish()
    records = host.stop()
    assert len(records.calls_of(program.pid)) == 10, records.records
    named = re.findall(r"warning: missing (CAP_\w+), to ", "".join(host.log))
    assert named == ["CAP_SYS_PTRACE", "CAP_CHECKPOINT_RESTORE"], host.log
    return "10 calls, 2 capabilities named"


def no_perf_events(tree):
    """A filter forbids perf_event_open: mappings are not told of, and a new library is found by looking."""
    host = Host(HOST, setup=forbid(PERF_EVENT_OPEN))
    assert any("seccomp" in line and "perf_event_open" in line for line in host.log), host.log
    program = tree.start("full", wait=True)
    host.wait_log("probes in " + tree.library)
    host.wait_log("probes in " + tree.verbs)
    program.go()
    program.finish()
    return check_everything(host.stop(), program, tree)


def no_bpf(tree):
    """A filter forbids bpf, as container runtimes' own do."""
    del tree
    text = refused([HOST], preexec_fn=forbid(BPF))
    assert "a seccomp filter is set" in text and "missing CAP" not in text, text
    return "named"


def user_namespace(tree):
    """Root of a user namespace has every capability, and none that counts."""
    del tree
    text = refused(["unshare", "--user", "--map-root-user", HOST])
    assert "user namespace" in text and "missing CAP" not in text, text
    return "named"


def no_btf(tree):
    """A kernel without BTF: here one whose /sys is hidden."""
    del tree
    text = refused(["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /sys && exec {HOST}"])
    assert "missing /sys/kernel/btf/vmlinux: the kernel has no BTF" in text and "missing CAP" not in text, text
    return "named"


def wrong_use(tree):
    """A file that is no library, and an option that is none."""
    del tree
    wrong = subprocess.run([HOST, "--library", "/etc/passwd"], capture_output=True, text=True, timeout=120)
    assert wrong.returncode == 1 and "/etc/passwd" in wrong.stderr and "ncclCommInitRank" in wrong.stderr, wrong
    assert subprocess.run([HOST, "--nonsense"], capture_output=True).returncode == 2
    return "exit codes 1 and 2"


def detach(tree):
    """One command ends every agent, and says so; a second one finds none. In a pid namespace: no other agent is ended."""
    script = f"""
        {HOST} --library {tree.path}{tree.library} 2> {tree.path}/log1 & first=$!
        {HOST} --library {tree.path}{tree.library} 2> {tree.path}/log2 & second=$!
        until grep -q ready {tree.path}/log1 && grep -q ready {tree.path}/log2; do sleep 0.1; done
        {HOST} --detach || exit 3
        wait $first && wait $second || exit 4
        echo $first $second
        {HOST} --detach || exit 5
        """
    result = subprocess.run(["unshare", "--pid", "--mount-proc", "--fork", "sh", "-c", script], capture_output=True,
                            text=True, timeout=120)
    assert result.returncode == 0, result
    *ended, pids, none = result.stdout.splitlines()
    assert sorted(ended) == sorted(f"process {pid} ended, and its probes with it" for pid in pids.split()), result
    assert len(ended) == 2 and none.startswith("no qpscope-host runs"), result
    return "2 ended"


TESTS = [capabilities, less_is_seen, no_perf_events, no_bpf, user_namespace, no_btf, wrong_use, detach]
sys.exit(run_tests(HOST, BUILD, TESTS, sys.argv[2:]))
