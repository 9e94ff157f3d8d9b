#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""qpscope-host beside programs on a stand-in library, as TAP: test_host.py BUILD. Exit 77 where no probe can be set."""
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

from family import check_family, check_late_family
from host import AFTER_LOSS, FOREIGN, GROUPED, LATE, Host, Tree, check_everything, run_tests

BUILD = sys.argv[1]
HOST = f"{BUILD}/host/qpscope-host"


def started_before(tree):
    """The daemon knows the library's folder before the job starts: nothing is missed, with no wait anywhere."""
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start("full").finish()
    records = host.stop()
    assert records.counters["communicators_late_total"] == 0
    return check_everything(records, program, tree)


def started_after(tree):
    """The job runs, its library loaded, when the daemon starts."""
    program = tree.start("full", wait=True)
    host = Host(HOST)
    program.go()
    program.finish()
    return check_everything(host.stop(), program, tree)


def noticed(tree):
    """A new process maps a library that the daemon has never seen: the probes are there within 100 ms."""
    host = Host(HOST)
    program = tree.start("full", wait=True)
    host.wait_log("probes in " + tree.library)
    host.wait_log("probes in " + tree.verbs)
    program.go()
    program.finish()
    records = host.stop()
    latency_ms = records.counters["attach_latency_max_ns"] / 1e6
    text = check_everything(records, program, tree)
    assert 0 < latency_ms < 100, latency_ms
    return f"{text}; probes set {latency_ms:.1f} ms after the mapping"


def as_old_library(tree):
    """As NCCL 2.13: the ncclComm_t is stored by the job's thread, and a single job has a thread of its own."""
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start("full", STANDIN_OLD="1").finish()
    return check_everything(host.stop(), program, tree)


def race(tree):
    """No wait at all: whatever was missed is said to be, and nothing wrong is claimed."""
    host = Host(HOST)
    program = tree.start("short", "1000").finish()
    records = host.stop()
    if not any(p["pid"] == program.pid for p in records.processes.values()):
        return "the process ended before the probes were set"
    communicators = records.communicators_of(program.pid)
    late = [c for c in communicators if c["flags"] & LATE]
    assert len(late) == records.counters["communicators_late_total"]
    truth = program.all("creator")[0]
    for c in communicators:
        assert c["pointer"] in (truth["communicator"], "0x0") and (c["flags"] & LATE or c["rank"] == 1), c
    for q in records.queue_pairs_of(program.pid).values():
        assert not q["flags"] & FOREIGN and (q["communicator"] != 0) == (not late), q
    calls = records.calls_of(program.pid)
    assert all(bool(c["flags"] & AFTER_LOSS) == bool(late) for c in calls)
    return f"{len(late)} late communicators, {1000 - len(calls)} of 1000 calls missed"


def two_libraries(tree):
    """Two programs at once, each on a copy of its own; the same names inside are told apart."""
    other = Tree(BUILD, "another.so.7")
    try:
        host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs,
                    "--library", other.path + other.library, "--library", other.path + other.verbs)
        programs = [t.start("full", wait=True, STANDIN_FIRST_QPN=qpn) for t, qpn in ((tree, "17"), (other, "1000"))]
        for program in programs:
            program.go()
        for program in programs:
            program.finish()
        records = host.stop()
        return "; ".join(check_everything(records, p, t) for p, t in zip(programs, (tree, other)))
    finally:
        other.remove()


def containers(tree):
    """Two containers of one image: the same file below two overlay file systems, probed once before it was mapped."""
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    programs = [tree.start_in_container("full", STANDIN_FIRST_QPN=qpn) for qpn in ("17", "1000")]
    for program in programs:
        program.go()
    for program in programs:
        program.finish()
    records = host.stop()
    assert not any("they were set" in line for line in host.log), host.log
    return "; ".join(check_everything(records, program, tree) for program in programs)


def late_containers(tree):
    """The same, with the file noticed when the first of them maps it."""
    host = Host(HOST)
    programs = [tree.start_in_container("full", STANDIN_FIRST_QPN=qpn) for qpn in ("17", "1000")]
    host.wait_log("probes in " + tree.verbs)
    time.sleep(0.2)
    for program in programs:
        program.go()
    for program in programs:
        program.finish()
    records = host.stop()
    assert sum("probes in " + tree.library in line for line in host.log) == 1, host.log
    return "; ".join(check_everything(records, program, tree) for program in programs)


CAPTURED, REPLAYED, GRAPH_UNKNOWN = 4, 8, 4


def check_markers(records, program):
    """Each call of the runtime once, with what it was about and how long it took."""
    told = program.all("marker")
    markers = [m for m in records.markers if m["source"] == records.process_of(program.pid)["process"]]
    assert [m["marker"] for m in markers] == [line["marker"] for line in told], markers
    for line, marker in zip(told, markers):
        assert line["before_ns"] <= marker["entered_ns"] <= marker["entered_ns"] + marker["duration_ns"] <= \
            line["after_ns"], (line, marker)
        unknown = line["captured_calls"] < 0
        for key in ("stream", "handle", "made", "result"):
            assert marker[key] == line[key], (key, marker, line)
        assert marker["captured_calls"] == (0 if unknown else line["captured_calls"]), (marker, line)
        assert marker["flags"] == (GRAPH_UNKNOWN if unknown else 0), (marker, line)
        assert line["marker"] not in (3, 4) or marker["duration_ns"] >= 1_000_000, marker
    return [m for m in markers if m["marker"] == 2 and not m["flags"]]


def graphs(tree):
    """Captured calls are told as captured, and each launch of their graph makes them again, numbered as they run."""
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs,
                "--library", tree.path + tree.runtime)
    program = tree.start("graphs", wait=True)
    program.go()
    program.wait_for("made")
    program.go()
    program.wait_for("launched")
    program.go()
    program.finish()
    records = host.stop()
    launches = check_markers(records, program)
    calls = records.calls_of(program.pid)
    captured = [c for c in calls if c["flags"] & CAPTURED]
    assert [(c["count"], c["sequence"], c["flags"] & GROUPED) for c in captured] == \
        [(201, 0, 0), (202, 1, 0), (203, 2, 1), (204, 3, 1), (205, 4, 1)], captured
    replayed = [c for c in calls if c["flags"] & REPLAYED]
    for i, launch in enumerate(launches):
        of = replayed[5 * i:5 * i + 5]
        # 2 collectives a replay and one call after it; before the first the refused capture's and the one after the capture
        assert [(c["count"], c["sequence"]) for c in of] == \
            [(201, 2 + 3 * i), (202, 3 + 3 * i), (203, i), (204, i), (205, i)], of
        assert all(c["entered_ns"] == c["enqueued_ns"] == launch["entered_ns"] and c["result"] == 0 for c in of), of
        assert of[0]["group"] == of[1]["group"] == 0 and len({c["group"] for c in of[2:]}) == 1 and of[2]["group"] > 0
    assert len(replayed) == 15 and len({c["group"] for c in replayed}) == 4 and len(launches) == 3
    plain = [(c["count"], c["sequence"]) for c in calls if not c["flags"] & (CAPTURED | REPLAYED)]
    assert plain == [(200, 0), (206, 1), (210, 4), (210, 7), (210, 10)], plain
    assert records.counters["calls_replayed_total"] == 15 and records.losses == []
    return f"{len(records.markers)} markers, 5 calls captured, replayed 3 times"


def asked_for(tree):
    """Submissions to the GPU and single stays off the CPU are told when asked for: so many, for so long."""
    control = f"ipc://{tree.path}/control"
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs,
                "--library", tree.path + tree.runtime, "--control", control)
    program = tree.start("graphs", wait=True)
    program.go()
    program.wait_for("made")
    program.go()
    program.wait_for("launched")

    def follow(*options):
        subprocess.run([f"{BUILD}/cli/qpscope", "follow", "--control", control, *options], check=True,
                       stdout=subprocess.DEVNULL)

    def wait_for(pattern, number):
        end = time.monotonic() + 30
        while sum(pattern in line for line in list(host.lines)) < number:
            assert time.monotonic() < end, f"never {pattern}"
            time.sleep(0.01)

    follow("--what", "submissions", "--for", "20s", "--hits", "150")
    follow("--what", "delays", "--for", "20s", "--pid", str(program.pid))
    host.wait_log("frequent calls of the GPU's runtime are told")
    program.go()
    wait_for('"followed"', 1)  # 150 of 201 hits: 100 launches at the runtime and as many at the driver, one allocation
    program.finish()
    records = host.stop()
    details = [m for m in records.markers if m["marker"] in (8, 12)]
    assert 150 <= len(details) <= 152 and all(m["marker"] == 8 for m in details), len(details)
    for at, marker in enumerate(details):
        assert marker["stream"] == "0x5003" and marker["handle"] == "0x4711" and marker["duration_ns"] == 0, marker
        assert marker["flags"] == (1 if at % 2 == 0 else 1 | 2), marker  # the driver's within the runtime's
    ends = {r["what"]: r for r in records.records if r["record"] == "followed"}
    assert ends[2]["end"] == 2 and ends[2]["hits"] == 150, ends
    stays = [d for d in records.delays if d["flags"] & 1]
    assert all(d["to_ns"] - d["from_ns"] >= 10000 and d["switches"] == 1 for d in stays), stays
    assert all(abs(d["to_ns"] - d["from_ns"] - d["sleep_ns"] - d["run_queue_ns"] - d["io_wait_ns"]) < 1000 for d in stays)
    return f"{len(details)} submissions, {len(stays)} stays off the CPU"


def held_up(tree):
    """A thread that fights for a CPU, sleeps and sends: how long, and how much; a thread that makes no calls is not told."""
    host = Host(HOST, "--probe-time", "1s", "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start("held-up", wait=True)
    program.go()
    program.wait_for("made")
    host.wait_log("what keeps threads from running is followed")
    program.go()
    program.finish()
    records = host.stop()
    told, = program.all("held_up")
    delays = [d for d in records.delays if d["source"] == records.process_of(program.pid)["process"]]
    assert delays and all(d["role"] & 3 for d in delays), delays
    mine = [d for d in delays if d["tid"] == told["held_up"]]
    assert all(d["role"] == 1 for d in mine) and all(a["to_ns"] <= b["from_ns"] for a, b in zip(mine, mine[1:])), mine

    def total(key, from_key, to_key):
        return sum(d[key] for d in mine if told[from_key] <= d["to_ns"] and d["from_ns"] <= told[to_key])

    # with three others on its CPU it has a quarter of it; other work of the machine only takes more
    waited = total("run_queue_ns", "from_ns", "slept_from_ns")
    assert 500e6 < waited < 1.2 * (told["slept_from_ns"] - told["from_ns"]), (waited, mine)
    slept = total("sleep_ns", "slept_from_ns", "sent_from_ns")
    assert slept >= 490e6, (slept, mine)
    sent = sum(d["tcp_bytes"] for d in mine)
    assert sent == 10000000, (sent, mine)
    for d in mine:
        assert d["sleep_ns"] + d["run_queue_ns"] + d["io_wait_ns"] <= 1.001 * (d["to_ns"] - d["from_ns"]) + 10000, d
    return f"waited {waited / 1e6:.0f} ms for a CPU, slept {slept / 1e6:.0f} ms, sent {sent} bytes"


def lost_events(tree):
    """A small ring, and a daemon that stands still in between: what is lost is counted, placed in time, and marked."""
    host = Host(HOST, "--buffer", "64KiB", "--probe-time", "1s", "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start("short", "100", "5000", "100", wait=True)
    program.go()
    program.wait_for("done")
    time.sleep(0.3)
    host.process.send_signal(signal.SIGSTOP)
    program.go()
    program.wait_for("done")
    host.process.send_signal(signal.SIGCONT)
    time.sleep(0.3)
    program.go()
    program.wait_for("done")
    program.go()
    program.finish()
    records = host.stop()
    lost = records.counters["events_lost_total"]
    calls = records.calls_of(program.pid)
    missed = 5200 - len(calls)
    assert lost in (2 * missed, 2 * missed + 1) and missed > 2000, (lost, missed)  # entry and return
    loss, = records.losses
    assert loss["lost"] == lost and loss["cause"] == 3, loss
    before = [c for c in calls if c["entered_ns"] <= loss["from_ns"]]
    after = [c for c in calls if c["entered_ns"] >= loss["to_ns"]]
    assert len(before) == 5100 - missed and len(after) == 100
    assert [(c["count"], c["sequence"], c["flags"]) for c in before] == [(i, i, 0) for i in range(5100 - missed)]
    assert [(c["count"], c["sequence"], c["flags"]) for c in after] == \
        [(i, i - missed, AFTER_LOSS) for i in range(5100, 5200)]
    communicator, = records.communicators_of(program.pid)
    assert communicator["destroyed_ns"] > 0, communicator
    return f"{missed} of 5200 calls lost in one interval, 100 calls after it marked"


def killed(tree):
    """A killed process: its communicators and queue pairs end with it."""
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start("hang", "1")
    program.wait_for("done")
    program.kill()
    records = host.stop()
    ended_ns = records.process_of(program.pid)["ended_ns"]
    communicator, = records.communicators_of(program.pid)
    queue_pairs = records.queue_pairs_of(program.pid).values()
    assert ended_ns > 0 and communicator["destroyed_ns"] == ended_ns and len(queue_pairs) == 2
    assert all(q["destroyed_ns"] == ended_ns for q in queue_pairs)
    return "communicator and 2 queue pairs ended with it"


def late(tree):
    """The daemon comes when a communicator and its queue pairs are there: known as late, its rank
    from its structure, and nothing wrong is claimed."""
    program = tree.start("late", "10")
    program.wait_for("made")
    host = Host(HOST)
    program.go()
    program.finish()
    records = host.stop()
    communicator, = records.communicators_of(program.pid)
    assert communicator["flags"] == LATE and (communicator["rank"], communicator["ranks_count"]) == (1, 2), communicator
    assert communicator["identity_kind"] == 4 and communicator["hash"] != "0x0" and communicator["cuda_device"] == 3
    assert communicator["pointer"] == program.all("creator")[0]["communicator"] and communicator["destroyed_ns"] > 0
    calls = records.calls_of(program.pid)
    assert len(calls) == 10 and all(c["flags"] == AFTER_LOSS for c in calls)
    assert [c["sequence"] for c in calls] == list(range(10))
    queue_pairs = records.queue_pairs_of(program.pid)
    later = set(program.all("creator")[-1]["qpns"][2:]) | {line["foreign"] for line in program.all("foreign")}
    assert set(queue_pairs) == later and len(later) == 4, queue_pairs
    assert all(q["communicator"] == 0 and q["flags"] == 0 for q in queue_pairs.values()), queue_pairs
    assert records.counters["communicators_late_total"] == 1
    return "communicator known as late, 4 queue pairs without an owner, 10 calls marked"


def family(tree):
    """Children in every way, three deep, in groups, without blocking; grown and shrunk; every way to end."""
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start_family().finish()
    records = host.stop()
    assert records.losses == [] and records.counters["communicator_notes_contradicted_total"] == 0
    assert records.counters["probe_reads_failed_total"] == 0
    return check_family(records, program)


def late_family(tree):
    """The daemon comes when they are all there: rank, ranks and names are read from the library's structures."""
    program = tree.start_family(FAMILY_WAIT="1")
    program.wait_for("made")
    host = Host(HOST)
    program.go()
    program.finish()
    return check_late_family(host.stop(), program)


def started_again(tree):
    """The daemon is killed when all communicators are there, and started again: replayed, both runs are one, and every rank
    has the name that it had; of the grown communicator, whose ranks name it in two ways, the library's hash joins them."""
    first, second, store = (f"{tree.path}/{name}" for name in ("first.capture", "second.capture", "store.db"))
    host = Host(HOST, "--record", first, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start_family(FAMILY_WAIT="1")
    program.wait_for("made")
    time.sleep(1)  # what waits is written
    host.process.kill()
    host.process.wait()
    host = Host(HOST, "--record", second)
    program.go()
    program.finish()
    host.stop()
    replay = subprocess.run([f"{BUILD}/cli/qpscope", "replay", "--store", store, first, second], capture_output=True, text=True)
    assert replay.returncode == 0, replay.stderr
    rows = sqlite3.connect(store).execute("SELECT pointer, communicator, communicator_rank, late, ending FROM member").fetchall()
    members = {pointer: row for pointer, *row in rows}
    lines = program.all("name")
    names = {}
    for line in lines:
        communicator, rank, late, ending = members[line["communicator"]]
        awaited = line["name"] == "later"  # made without blocking: its ncclComm_t had not been used when the daemon was killed
        assert (rank, late) == (line["rank"], int(awaited)) and ending is not None, (line, members[line["communicator"]])
        names.setdefault(line["name"], set()).add(communicator)
    assert len(lines) == 32 and len(members) == 33 and len(rows) == 36, rows  # with those 4 as they were known before
    assert all(len(of) == 1 for of in names.values()) and len(set.union(*names.values())) == len(names) == 12, names
    return f"{len(lines)} members of {len(names)} communicators"


def other_time(tree):
    """In a time namespace 7 s ahead the records keep the probes' clock, which is the job's."""
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs,
                prefix=("unshare", "--time", "--fork", "--monotonic", "7", "--boottime", "7"))
    program = tree.start("full").finish()
    records = host.stop()
    offset_ns, bound_ns = map(int, re.search(r"clock is (-?\d+) ns from this process's, within (\d+) ns",
                                             "".join(host.log)).groups())
    assert abs(offset_ns + 7_000_000_000) <= bound_ns + 1000 < 100_000, (offset_ns, bound_ns)
    return f"{check_everything(records, program, tree)}; offset {offset_ns} ns, bound {bound_ns} ns"


def configured_again(tree):
    """On SIGHUP the configuration is read again: what can be changed is, for the rest a new start is asked for."""
    path, log = f"{tree.path}/host.conf", f"{tree.path}/host.log"

    def write(text):
        with open(path, "w") as file:
            file.write(text)

    def await_said(words, after=0):
        end = time.monotonic() + 120
        while True:
            with open(log) as file:
                said = file.read()[after:]
            if words in said:
                return said
            assert process.poll() is None and time.monotonic() < end, said
            time.sleep(0.05)

    write("probe-time = 2ms\n")
    with open(log, "wb") as file:
        process = subprocess.Popen([HOST, "--config", path, "--library", tree.path + tree.library], stdout=subprocess.DEVNULL, stderr=file)
    await_said("ready")
    write("probe-time = 3ms\nverbose = yes\nbuffer = 8MiB\n")
    process.send_signal(signal.SIGHUP)
    said = await_said("taken over")
    assert "what was changed of buffer needs a new start" in said and "taken over: probe-time, verbose" in said, said
    before = os.stat(log).st_size
    write("probe-time = 3 parsecs\n")
    process.send_signal(signal.SIGHUP)
    assert "'3 parsecs' is not" in await_said("all stays as it was", before)
    process.terminate()
    assert process.wait(timeout=60) == 0
    with open(log) as file:
        assert "things are still followed" in file.read(), "verbose was not taken over"
    return "probe-time and verbose taken over, buffer refused"


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def size_at_rest(pid):
    """Memory in KiB and descriptors: the least of a second, as those of a process that has just ended are given back later."""
    sizes = []
    for _ in range(10):
        time.sleep(0.1)
        sizes.append((resident_kib(pid), len(os.listdir(f"/proc/{pid}/fd"))))
    return tuple(map(min, zip(*sizes)))


def short_lived(tree):
    """500 processes beside a job, 100 of them with a communicator: nothing is left of them."""
    host = Host(HOST, "--library", tree.path + tree.library, "--library", tree.path + tree.verbs)
    program = tree.start("full", wait=True)
    pids = []
    sizes = []
    for i in range(100):
        pids.append(tree.start("short", "3").finish().pid)
        for _ in range(4):
            subprocess.run(["/bin/true"], check=True)
        if i in (20, 99):
            sizes.append(size_at_rest(host.process.pid))
    program.go()
    program.finish()
    records = host.stop()
    check_everything(records, program, tree)
    for pid in pids:
        communicator, = records.communicators_of(pid)
        assert records.process_of(pid)["ended_ns"] >= communicator["destroyed_ns"] > 0
        assert all(q["destroyed_ns"] > 0 for q in records.queue_pairs_of(pid).values())
    assert sum(len(records.calls_of(pid)) for pid in pids) == 300
    assert sizes[1][1] == sizes[0][1] and sizes[1][0] - sizes[0][0] < 512, sizes
    assert any(": 0 things are still followed" in line for line in host.log), host.log
    return f"memory {sizes[0][0]} -> {sizes[1][0]} KiB, descriptors {sizes[0][1]} -> {sizes[1][1]}"


TESTS = [started_before, started_after, noticed, as_old_library, race, two_libraries, containers,
         late_containers, graphs, asked_for, held_up, lost_events, late, family, late_family, started_again, configured_again, other_time, killed,
         short_lived]


sys.exit(run_tests(HOST, BUILD, TESTS, sys.argv[2:]))
