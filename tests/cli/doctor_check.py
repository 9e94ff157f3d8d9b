#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""doctor_check.py QPSCOPE SCHEMA FIXTURE: shows qpscope doctor machines made of files, and prints TAP.

The files are as Linux writes them: proc(5), capabilities(7), kernel_lockdown(7).
"""
import os
import re
import shutil
import time

from harness import HERE, STORE, as_json, equal, main, run, test, text

EVERY_CAPABILITY = 0x1FFFFFFFFFF
RELEASE = "6.1.0-39-amd64"
GOOD = {
    "proc/sys/kernel/osrelease": RELEASE + "\n",
    "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.148-1 (2025-08-26)\n",
    "sys/kernel/debug/sched/preempt": "none (voluntary) full \n",
    "proc/sys/kernel/perf_event_paranoid": "3\n",
    "proc/self/status": f"Name:\tqpscope\nCapEff:\t{EVERY_CAPABILITY:016x}\n",
    "proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax locked memory         8388608   8388608   bytes\n",
    "proc/self/timens_offsets": "monotonic           0         0\nboottime            0         0\n",
    "proc/meminfo": "MemTotal:  1 kB\nHugePages_Total:     128\nHugePages_Free:      100\n",
    "sys/kernel/btf/vmlinux": "x",
    "sys/kernel/security/lockdown": "none [integrity] confidentiality\n",
    "sys/class/infiniband/mlx5_0": "",
    "sys/class/infiniband/mlx5_1": "",
    f"lib/modules/{RELEASE}/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz": "",
    "usr/lib/x86_64-linux-gnu/libibverbs.so.1": "",
    "dev/ptp0": "",
    "proc/100/comm": "python3\n",
    "proc/100/maps": "7f0000000000-7f0000001000 r-xp 00000000 08:01 12  /opt/venv/nvidia/nccl/lib/libnccl.so.2\n",
    "proc/101/comm": "qpscope-nic\n",
    "proc/102/comm": "qpscope-host\n",
    "proc/103/comm": "qpscope-correla\n",
}
made = 0


def machine(changes=None):
    """A folder with the files of GOOD and these changes; None removes one."""
    global made
    made += 1
    root = os.path.join(HERE, f"machine{made}")
    for name, content in {**GOOD, **(changes or {})}.items():
        if content is not None:
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(content)
    return root


def look(changes=None, code=0, options=()):
    root = machine(changes)
    os.utime(STORE)
    document = as_json("doctor", "--root", root, *options, code=code)
    shutil.rmtree(root)
    equal(document["usable"], code == 0)
    return {check["name"]: check for check in document["checks"]}


def capabilities(*missing):
    mask = EVERY_CAPABILITY
    for number in missing:
        mask &= ~(1 << number)
    return {"proc/self/status": f"Name:\tqpscope\nCapEff:\t{mask:016x}\n"}


def status(checks):
    return {name: check["status"] for name, check in checks.items() if check["status"] != "ok"}


@test
def a_good_machine_is_all_right():
    checks = look()
    checks.pop("dpdk")  # as it was built
    checks.pop("disk")  # as it is
    equal(status(checks), {})
    equal(checks["kernel"]["found"], "Linux " + RELEASE)
    equal(checks["lockdown"]["found"], "integrity")
    equal(checks["rdma_devices"]["found"], "mlx5_0, mlx5_1")
    equal(checks["rdma_rxe"]["found"], "can be loaded")
    equal(checks["collective"]["found"], "1 process, such as /opt/venv/nvidia/nccl/lib/libnccl.so.2")
    equal(checks["daemons"]["found"], "nic running, host running, correlator running")
    equal(checks["hugepages"]["found"], "100 free of 128")
    assert all(check["advice"] is None for check in checks.values())


@test
def what_is_needed_and_missing_makes_it_unusable():
    for changes, name in (({"proc/sys/kernel/osrelease": "5.4.0-1-amd64\n"}, "kernel"),
                          ({"sys/kernel/btf/vmlinux": None}, "btf"),
                          ({"sys/kernel/security/lockdown": "none integrity [confidentiality]\n"}, "lockdown"),
                          (capabilities(21, 39), "cap_bpf"), (capabilities(19), "cap_sys_ptrace"),
                          (capabilities(13), "cap_net_raw")):
        checks = look(changes, code=1)
        equal([check for check, state in status(checks).items() if state == "missing"], [name])
        assert checks[name]["advice"], name
    equal(look({"proc/sys/kernel/osrelease": "5.8.0\n"})["kernel"]["status"], "ok")


@test
def sys_admin_stands_for_bpf_and_perfmon():
    checks = look(capabilities(38, 39))
    equal([checks[name]["status"] for name in ("cap_bpf", "cap_perfmon", "perf_event_paranoid")], ["ok"] * 3)
    checks = look(capabilities(21, 38, 39), code=1)
    equal([checks[name]["status"] for name in ("cap_bpf", "cap_perfmon", "perf_event_paranoid")],
          ["missing", "missing", "warning"])


@test
def what_is_only_sometimes_needed_is_a_warning():
    for changes, name in (({"proc/meminfo": "HugePages_Total: 0\nHugePages_Free: 0\n"}, "hugepages"),
                          ({"sys/class/infiniband/mlx5_0": None, "sys/class/infiniband/mlx5_1": None}, "rdma_devices"),
                          ({f"lib/modules/{RELEASE}/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz": None}, "rdma_rxe"),
                          ({"usr/lib/x86_64-linux-gnu/libibverbs.so.1": None}, "verbs"),
                          ({"proc/100/maps": "7f00-7f01 r-xp 0 08:01 12 /usr/lib/libnccl.txt\n"}, "collective"),
                          ({"dev/ptp0": None}, "ptp"),
                          ({"proc/self/timens_offsets": "monotonic 7 5\nboottime 0 0\n"}, "time_namespace"),
                          ({"proc/102/comm": "bash\n"}, "daemons"), (capabilities(14), "memlock")):
        checks = look(changes)
        checks.pop("dpdk")
        checks.pop("disk")
        equal(status(checks), {name: "warning"})
    equal(look({"proc/102/comm": "bash\n"})["daemons"]["found"], "nic running, host not running, correlator running")
    equal(look(capabilities(14))["memlock"]["found"], "at most 8.00 MiB")


@test
def a_kernel_that_preempts_everywhere_is_a_warning_before_6_6():
    debug, line = "sys/kernel/debug/sched/preempt", "proc/cmdline"
    version, release, config = "proc/sys/kernel/version", "proc/sys/kernel/osrelease", f"boot/config-{RELEASE}"
    full = {debug: "none voluntary (full)\n"}
    for changes, expected in (({}, "ok"), (full, "warning"), ({**full, release: "6.6.0\n"}, "ok"),
                              ({**full, version: "#1 SMP Tue Nov 3\n"}, "ok"),  # cannot change its mode
                              ({version: "#1 SMP PREEMPT Tue Nov 3\n"}, "warning"),
                              ({version: "#1 SMP PREEMPT_RT Tue Nov 3\n"}, "warning"),
                              ({debug: None, line: "quiet preempt=none preempt=full\n"}, "warning"),
                              ({debug: None, line: "preempt=full quiet preempt=voluntary\n"}, "ok"),
                              ({debug: None, line: "quiet\n", config: "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT=y\n"}, "warning"),
                              ({debug: None, line: "quiet\n", config: "# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_NONE=y\n"}, "ok")):
        equal((changes, look(changes)["preemption"]["status"]), (changes, expected))
    unknown = look({debug: None, line: "quiet\n"})["preemption"]
    equal((unknown["status"], unknown["found"][:10]), ("warning", "not known:"))


@test
def the_store_is_looked_at():
    assert look()["store"]["found"].startswith(STORE + ", last written ")
    root = machine()
    old = time.time() - 3600
    os.utime(STORE, (old, old))
    for log in ("-wal", "-shm"):
        if os.path.exists(STORE + log):
            os.remove(STORE + log)
    store = {check["name"]: check for check in as_json("doctor", "--root", root)["checks"]}["store"]
    equal((store["status"], bool(re.search(r"last written 36[0-5]\d s ago", store["found"]))), ("warning", True))
    nowhere = os.path.join(HERE, "nowhere", "x.db")
    store = {check["name"]: check for check in as_json("doctor", "--root", root, store=nowhere)["checks"]}
    equal((store["store"]["status"], store["disk"]["status"]), ("warning", store["disk"]["status"]))
    foreign = os.path.join(HERE, "foreign.txt")
    with open(foreign, "w", encoding="utf-8") as file:
        file.write("no store\n" * 100)
    done = run("doctor", "--root", root, store=foreign, code=1)
    assert "not a qpscope store" in done.stderr and "missing  store" in done.stdout, done


@test
def each_stream_of_the_store_is_shown_with_its_source():
    shown = " ".join(text("doctor", "--root", machine()).split())
    assert ("nic far0,far1 on node-a: source dpdk, grain 8.00 us; does not see progress, states; leaves out at its ports: "
            "far1: one queue; it has ended") in shown, shown
    assert "host job on node-a: source probes" in shown, shown
    streams = as_json("doctor", "--root", machine())["streams"]
    equal([(s["emitter"], s["source"], s["grain_ns"], s["missing"], s["left_out"]) for s in streams],
          [("host", "probes", None, None, None), ("nic", "dpdk", 8000, "progress, states", "far1: one queue")])


@test
def one_program_can_be_asked_for():
    without = capabilities(13)
    names = set(look(without, options=("--for", "host")))
    assert {"kernel", "btf", "cap_bpf"} <= names and "cap_net_raw" not in names
    look(without, code=1, options=("--for", "nic"))
    equal(set(look(without, options=("--for", "correlator"))), {"daemons", "store", "disk"})


@test
def the_text_says_what_to_do_within_the_width():
    root = machine({"sys/kernel/btf/vmlinux": None, "dev/ptp0": None})
    done = run("doctor", "--root", root, code=1)
    assert "missing  kernel's BTF" in done.stdout and "CONFIG_DEBUG_INFO_BTF=y" in done.stdout, done.stdout
    assert "warning  PTP clocks" in done.stdout
    assert done.stdout.splitlines()[-1] == "not usable: 1 needed thing is missing", done.stdout
    assert text("doctor", "--root", machine()).splitlines()[-1] == "usable: 0 needed things are missing"
    for width in ("100", "60", "40"):
        shown = run("doctor", "--root", root, code=1, env={"COLUMNS": width}).stdout
        words = [line for line in shown.splitlines() if len(line) > int(width) and " " in line.strip()]
        equal(words, [])


if __name__ == "__main__":
    main()
