# SPDX-License-Identifier: BSD-2-Clause
"""Runs qpscope-host --json and programs beside it, and compares what the one says with what the others did."""
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

LATE, GROUPED, AFTER_LOSS, FLUSH, FOREIGN = 1, 1, 2, 1, 2


class Host:
    """A running qpscope-host; its records by kind, its diagnostics as lines."""

    def __init__(self, binary, *options, prefix=(), setup=None, await_log="ready", environment=None):
        """The probes' time is not bounded, so that nothing is left out for its sake, unless an option says so."""
        self.log = []
        self.lines = []
        self.came_ns = []  # when each line came
        bound = () if "--probe-time" in options else ("--probe-time", "1s")
        self.process = subprocess.Popen([*prefix, binary, "--json", "--verbose", *bound, *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, bufsize=1, preexec_fn=setup,
                                        env={**os.environ, **(environment or {})})
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                        for pair in ((self.process.stderr, self.log), (self.process.stdout, self.lines))]
        for reader in self.readers:
            reader.start()
        self.wait_log(await_log, 120)

    def _read(self, stream, lines):
        for line in stream:
            if lines is self.lines:
                self.came_ns.append(time.monotonic_ns())
            lines.append(line)

    def wait_log(self, pattern, limit_s=30):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if any(re.search(pattern, line) for line in list(self.log)):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.005)
        raise AssertionError(f"qpscope-host never said '{pattern}':\n" + "".join(self.log))

    def wait_record(self, kind, limit_s=30):
        """Until a record of this kind has been told."""
        end = time.monotonic() + limit_s
        while not any(f'"record":"{kind}"' in line.replace(" ", "") for line in list(self.lines)):
            assert time.monotonic() < end, f"qpscope-host told no {kind}"
            time.sleep(0.005)

    def _children(self):
        """Where the daemon is the child of a prefix."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [int(pid) for pid in file.read().split()]

    def stop(self):
        time.sleep(0.15)  # events that wait are taken every 50 ms
        for pid in self._children() or [self.process.pid]:
            os.kill(pid, signal.SIGTERM)
        code = self.process.wait(timeout=60)
        for reader in self.readers:
            reader.join()
        assert code == 0, f"qpscope-host ended with {code}:\n" + "".join(self.log)
        return Records([json.loads(line) for line in self.lines])


class Records:
    def __init__(self, records):
        self.records = records
        self.processes = self._latest("process", "process")
        self.communicators = self._latest("communicator", "communicator")
        self.queue_pairs = self._latest("queue_pair", "queue_pair")
        self.calls = [r for r in records if r["record"] == "call"]
        self.markers = [r for r in records if r["record"] == "marker"]
        self.delays = [r for r in records if r["record"] == "host_delay"]
        self.losses = [r for r in records if r["record"] == "loss"]
        self.counters = {r["name"]: r["total"] for r in records if r["record"] == "counter"}
        self.history = [r for r in records if r["record"] == "communicator"]

    def _latest(self, kind, key):
        return {r[key]: r for r in self.records if r["record"] == kind}

    def process_of(self, pid):
        return next(p for p in self.processes.values() if p["pid"] == pid)

    def facts_of(self, pid):
        number = self.process_of(pid)["process"]
        return {(r["fact"], r["index"]): r["text"] for r in self.records
                if r["record"] == "process_fact" and r["process"] == number}

    def queue_pairs_of(self, pid):
        number = self.process_of(pid)["process"]
        return {q["qpn"]: q for q in self.queue_pairs.values() if q["process"] == number}

    def calls_of(self, pid):
        numbers = {c["communicator"] for c in self.communicators_of(pid)}
        return [call for call in self.calls if call["source"] in numbers]

    def communicators_of(self, pid):
        number = self.process_of(pid)["process"]
        return [c for c in self.communicators.values() if c["process"] == number]


class Tree:
    """A root of its own for a program: its files, and what they need, under names that say nothing."""

    def __init__(self, build, library_name="libsomething-odd.so"):
        self.path = tempfile.mkdtemp(prefix="qpscope-bpf-")
        self.library = "/deep/below/" + library_name
        self.verbs = "/elsewhere/odd.bin"
        self.add(f"{build}/tests/bpf/libsomething-odd.so", self.library)
        self.add(f"{build}/tests/bpf/libodd-verbs.so", self.verbs)
        self.runtime = "/elsewhere/runtime.bin"
        self.add(f"{build}/tests/bpf/libodd-runtime.so", self.runtime)
        self.add(f"{build}/tests/bpf/bpf_test_program", "/program")
        self.add(f"{build}/tests/bpf/bpf_test_family", "/family")
        for needed in self._needed(f"{build}/tests/bpf/bpf_test_program"):
            self.add(needed, needed)
        gids = self.path + "/sys/class/infiniband/standin0/ports/1/gids"
        os.makedirs(gids)
        with open(gids + "/2", "w") as file:
            file.write("0000:0000:0000:0000:0000:ffff:0a01:0203\n")

    def add(self, source, target):
        os.makedirs(os.path.dirname(self.path + target), exist_ok=True)
        shutil.copy(source, self.path + target)

    @staticmethod
    def _needed(program):
        text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        return re.findall(r"(/\S+) \(0x", text)

    def start(self, *arguments, wait=False, **environment):
        variables = {"STANDIN_VERBS": self.verbs, "STANDIN_RUNTIME": self.runtime, **({"PROGRAM_WAIT": "1"} if wait else {}), **environment}
        return Program(["chroot", self.path, "/program", self.library, *arguments], variables)

    def start_family(self, **environment):
        return Program(["chroot", self.path, "/family", self.library], {"STANDIN_VERBS": self.verbs, **environment})

    def start_in_container(self, *arguments, **environment):
        """Below an overlay file system, in a mount and a pid namespace of its own, as from an image."""
        place = f"{self.path}/container{len(os.listdir(self.path))}"
        os.mkdir(place)
        layers = f"lowerdir={self.path},upperdir={place}/upper,workdir={place}/work"
        script = (f"mount -t tmpfs none {place} && mkdir {place}/upper {place}/work {place}/root && "
                  f"mount -t overlay none -o {layers} {place}/root && exec chroot {place}/root /program \"$@\"")
        program = Program(["unshare", "--mount", "--pid", "--uts", "--fork", "sh", "-c", "hostname inside; " + script, "sh",
                           self.library, *arguments], {"STANDIN_VERBS": self.verbs, "PROGRAM_WAIT": "1", **environment})
        with open(f"/proc/{program.process.pid}/task/{program.process.pid}/children") as file:
            program.pid = int(file.read().split()[0])
        return program

    def remove(self):
        shutil.rmtree(self.path)


class Program:
    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env={**os.environ, **environment})
        self.said = []
        self.wait_for("loaded")
        self.pid = self.said[-1]["loaded"]

    def wait_for(self, key):
        for line in self.process.stdout:
            self.said.append(json.loads(line))
            if key in self.said[-1]:
                return
        raise AssertionError(f"the program ended before it said '{key}'")

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finish(self):
        self.said += [json.loads(line) for line in self.process.stdout]
        code = self.process.wait()
        assert code == 0, f"the program ended with {code}"
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def all(self, key):
        return [line for line in self.said if key in line]


def identity(data):
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def check_communicators(records, program):
    """Every communicator once, with its identity, rank, size, life, and exactly its service thread's queue pairs."""
    told = program.all("creator")
    by_pointer = {}
    for communicator in records.communicators_of(program.pid):
        by_pointer.setdefault(communicator["pointer"], []).append(communicator)
    queue_pairs = records.queue_pairs_of(program.pid)
    destroyed = {line["destroyed"] for line in program.all("destroyed")}
    ended_ns = records.process_of(program.pid)["ended_ns"]
    for line in told:
        found = by_pointer.get(line["communicator"], [])
        assert len(found) == 1, f"{line['creator']} {line['communicator']}: {len(found)} records"
        record = found[0]
        if line["id"]:
            assert record["identity"] == identity(bytes.fromhex(line["id"])), record
        assert (record["rank"], record["ranks_count"]) == (line["rank"], line["ranks_count"]), (record, line)
        assert record["flags"] == 0 and 0 < record["created_ns"] < record["ready_ns"] < record["destroyed_ns"], record
        assert (record["destroyed_ns"] < ended_ns) == (line["communicator"] in destroyed), record
        owned = {qpn for qpn, q in queue_pairs.items() if q["communicator"] == record["communicator"]}
        assert owned == set(line["qpns"]), f"{line['creator']} rank {line['rank']}: {owned}, not {line['qpns']}"
        for qpn in owned:
            q = queue_pairs[qpn]
            assert q["flags"] == 0 and q["state"] == 3 and q["device"] == "standin0", q
            assert q["connection"] == line["communicator"] and q["type"] == 2 and q["port"] == 1, q
    return len(told)


def check_children(records, program):
    by_pointer = {c["pointer"]: c for c in records.communicators_of(program.pid) if c["pointer"] != "0x0"}
    seen = set()
    for line in program.all("child"):
        child, parent = by_pointer[line["child"]], by_pointer[line["parent"]]
        name = bytes.fromhex(parent["identity"]) + line["number"].to_bytes(4, "little") + line["color"].to_bytes(4, "little")
        assert child["identity"] == identity(name), child
        assert child["parent"] == parent["communicator"] and child["color"] == line["color"] and child["key"] == line["key"]
        seen.add(child["identity"])
    assert len(seen) == 3
    everybody = [c for c in by_pointer.values() if c["pointer"] in
                 {line["communicator"] for line in program.all("creator") if line["creator"] == "init_all"}]
    assert len(everybody) == 3 and len({c["identity"] for c in everybody}) == 1, everybody


def check_queue_pairs(records, program):
    """Foreign ones are called foreign, once each; one connected to itself is a flush queue pair, nothing else is."""
    queue_pairs = records.queue_pairs_of(program.pid)
    owned = {qpn for line in program.all("creator") for qpn in line["qpns"]}
    foreign = {line["foreign"] for line in program.all("foreign")}
    connections = {line["connection"]: line for line in program.all("connection")}
    past = {line["past"]: line for line in program.all("past")}
    assert set(queue_pairs) == owned | foreign | set(connections) | set(past), \
        sorted(set(queue_pairs) ^ (owned | foreign | set(connections) | set(past)))
    assert len(queue_pairs) == len([q for q in records.queue_pairs.values()
                                    if q["process"] == records.process_of(program.pid)["process"]])
    for qpn in foreign:
        q = queue_pairs[qpn]
        assert (q["flags"], q["communicator"], q["state"], q["device"]) == (FOREIGN, 0, 3, "standin0"), q
    for qpn, line in connections.items():
        q = queue_pairs[qpn]
        assert q["flags"] == (FLUSH if line["flush"] else 0) | FOREIGN and q["state"] == 2, q
        assert q["remote_qpn"] == qpn and q["address"] == "::ffff:10.1.2.3" and q["traffic_class"] == 104, q
        assert q["remote_address"] == ("::ffff:10.1.2.3" if line["flush"] else "::ffff:10.1.2.4"), q
        assert q["connection"] == "0xc0" and 0 < q["created_ns"] < q["destroyed_ns"], q


WALK = {"access_flags": 6, "path_mtu_bytes": 2048, "service_level": 3, "timeout": 20, "retry_count": 6, "rnr_retry": 7,
        "min_rnr_timer": 12, "max_send_requests": 256, "max_receive_requests": 3, "flags": FOREIGN, "device": "standin0",
        "generation": 1, "attributes": 0x8fa9}


def check_past(records, program):
    """Made and changed past the public entries: seen once, with all that they were told; a private entry that has
    changed is not believed."""
    queue_pairs = records.queue_pairs_of(program.pid)
    for line in program.all("past"):
        q = queue_pairs[line["past"]]
        assert {key: q[key] for key in WALK} == WALK, (q, WALK)
        assert q["connection"] == line["queue"], (q, line)
        for key in ("type", "state", "context"):
            assert q[key] == line[key], (key, q, line)
        assert (q["error_ns"] != 0) == (line["state"] == 6) and q["created_ns"] < q["ready_ns"], q
    assert len(program.all("past")) == 3
    assert records.counters["queue_pairs_implausible_total"] > 0


SEND, RECV, PUT_SIGNAL, SIGNAL, WAIT_SIGNAL = 6, 7, 11, 12, 13


ASYNC_ERROR, ABORTED, ENDED, WARNING = 3, 4, 2, 6


def check_failures(records, program):
    """An error that a communicator shows and an abort, once each; every warning; and that the process ended while the
    queue pairs of the other communicators were in RTS: nothing else."""
    process = records.process_of(program.pid)["process"]
    failures = [r for r in records.records if r["record"] == "failure" and r["source"] == process]
    truth, = program.all("failed")
    numbers = {c["pointer"]: c["communicator"] for c in records.communicators_of(program.pid)}
    shown, = [f for f in failures if f["cause"] == ASYNC_ERROR]
    assert (shown["communicator"], shown["result"]) == (numbers[truth["failed"]], 3), shown
    aborted, = [f for f in failures if f["cause"] == ABORTED]
    assert aborted["communicator"] == numbers[truth["aborted"]], aborted
    warnings = [f for f in failures if f["cause"] == WARNING]
    assert len(warnings) == truth["warnings"], warnings
    assert all(f["text"] == "NET/IB: Got completion with status=%d" for f in warnings), warnings
    ended = [f for f in failures if f["cause"] == ENDED]
    gone = {line["destroyed"] for line in program.all("destroyed")}
    left = {numbers[line["communicator"]] for line in program.all("creator") if line["communicator"] not in gone}
    assert sorted(f["communicator"] for f in ended) == sorted(left), (ended, left)
    assert len(failures) == 2 + len(warnings) + len(ended), failures


def expected_calls(program):
    """The program's calls with the numbers that they must have: by communicator, or by pair and direction."""
    numbers = {}
    for line in program.all("call"):
        kind = SIGNAL if line["call"] == PUT_SIGNAL else line["call"]  # both signal
        key = (line["communicator"], kind, line["peer"]) if kind in (SEND, RECV, SIGNAL, WAIT_SIGNAL) else \
            (line["communicator"], 0)
        numbers.setdefault(key, 0)
        yield {**line, "sequence": numbers[key]}
        numbers[key] += line["count"] if kind == WAIT_SIGNAL else 1


def check_return(call, returned, result):
    """It returned when its line says, or its group's, in at most a probe's time."""
    at_ns = call["entered_ns"] + call["returned_after_ns"]
    assert returned["before_ns"] <= call["entered_ns"] + call["returned_after_ns"] <= returned["after_ns"], (at_ns, call)
    assert call["result"] == result, (call, result)


def check_calls(records, program):
    pointers = {c["communicator"]: c["pointer"] for c in records.communicators_of(program.pid)}
    calls = [c for c in records.calls if c["source"] in pointers]
    groups = {line["group"]: line for line in program.all("group") if "call" not in line}
    numbers = {}
    expected = list(expected_calls(program))
    assert len(calls) == len(expected), f"{len(calls)} calls, not {len(expected)}"
    for line in expected:
        found = [c for c in calls if pointers[c["source"]] == line["communicator"] and c["peer"] == line["peer"] and
                 line["before_ns"] <= c["entered_ns"] <= line["after_ns"]]
        assert len(found) == 1, (line, found)
        call = found[0]
        for key in ("count", "datatype", "reduction", "peer", "stream", "sequence"):
            assert call[key] == line[key], (key, call, line)
        assert call["operation"] == line["call"], (call, line)
        if line["group"] == 0:
            assert call["flags"] == 0 and call["group"] == 0 and call["enqueued_ns"] == call["entered_ns"], call
            check_return(call, line, line["result"])
            continue
        group = groups[line["group"]]
        assert call["flags"] == GROUPED and group["before_ns"] <= call["enqueued_ns"] <= group["after_ns"], (call, group)
        check_return(call, group, 0)
        numbers.setdefault(line["group"], set()).add(call["group"])
    assert all(len(n) == 1 and 0 not in n for n in numbers.values()) and len(set.union(*numbers.values())) == len(numbers)
    return len(expected)


def check_everything(records, program, tree):
    process = records.process_of(program.pid)
    assert process["library"] == tree.library and process["command"] == "program", process
    assert 0 < process["started_ns"] < process["ended_ns"], process
    communicators = check_communicators(records, program)
    check_children(records, program)
    check_queue_pairs(records, program)
    check_past(records, program)
    check_failures(records, program)
    calls = check_calls(records, program)
    assert records.losses == [] and records.counters["probe_reads_failed_total"] == 0
    return f"{communicators} communicators, {len(records.queue_pairs_of(program.pid))} queue pairs, {calls} calls"


def take_machine():
    """The probes see every process of the machine: waits until no other run of these tests is under way."""
    lock = os.open("/tmp/qpscope-bpf-tests.lock", os.O_CREAT | os.O_RDWR, 0o666)
    fcntl.flock(lock, fcntl.LOCK_EX)


def skip_reason(binary):
    """Why no probe can be set here; None where it can."""
    if os.geteuid() != 0:
        return "setting probes needs root"
    result = subprocess.run([binary, "--buffer", "1MiB", "--check"], capture_output=True, text=True)
    return None if result.returncode == 0 else "no probe can be set here: " + result.stderr.strip().replace("\n", "; ")


def run_tests(binary, build, tests, wanted):
    """Runs each with a tree of its own, as TAP. Returns the exit code."""
    reason = skip_reason(binary)
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 77
    take_machine()
    failed = 0
    tests = [t for t in tests if not wanted or t.__name__ in wanted]
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        tree = Tree(build)
        try:
            text = test(tree)
            print(f"ok {number} - {test.__name__}: {text}", flush=True)
        except Exception as error:  # every failure is a line of TAP
            failed += 1
            print(f"not ok {number} - {test.__name__}: {type(error).__name__}: {error}".replace("\n", "\n# "), flush=True)
        finally:
            tree.remove()
    return 1 if failed else 0
