#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""gather_check.py QPSCOPE SCHEMA FIXTURE QPSCOPE-NIC PORTS PCAP...: qpscope record and qpscope merge, as TAP.

What is expected is what qpscope-nic counts in the same file, and what a replay of the separate captures gives. PORTS is yes where
qpscope-nic can watch ports (DPDK): then it watches one whose driver plays a PCAP.
"""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from harness import COMMAND, HERE, as_json, equal, main, one_error, rows, run, test, text

NIC, PORTS, PCAPS = os.path.abspath(sys.argv[4]), sys.argv[5] == "yes", sys.argv[6:]
os.environ["QPSCOPE_RUNTIME_DIRECTORY"] = HERE  # no other agent of this machine is meant
PATH = {"PATH": os.path.dirname(NIC) + ":" + os.environ["PATH"], "QPSCOPE_RUNTIME_DIRECTORY": HERE}


def port_of(pcap):
    return ["--only", "nic", "--port", f"net_pcap0,rx_pcap={pcap}@10.0.0.1", "--nic-option=--eal", "--nic-option=--no-huge",
            "--nic-option=--memory", "--nic-option=32MiB"]


def counted(pcap):
    shown = subprocess.run([NIC, "--file", pcap, "--json"], check=True, capture_output=True, text=True, timeout=60).stdout
    return sorted((row["destination_qpn"], row["data_frames"], row["payload_bytes"]) for row in map(json.loads, shown.splitlines())
                  if row["row"] == "flow")


def captures():
    made = []
    for pcap in PCAPS:
        made.append(os.path.join(HERE, os.path.basename(pcap) + ".capture"))
        subprocess.run([NIC, "--file", pcap, "--record", made[-1]], check=True, stdout=subprocess.DEVNULL, timeout=60)
    return made


def analysed(*files):
    return {key: value for key, value in as_json("replay", *files, store=None).items() if key != "generator"}


@test
def merged_captures_are_the_captures():
    made = captures()
    together = os.path.join(HERE, "all.capture")
    document = as_json("merge", "-o", together, *made, made[0], store=None)
    equal((document["file"], document["damaged"], document["contradicting"], document["renamed"]), (together, 0, 0, 0))
    equal(document["written"] + document["duplicates"], document["batches"])
    assert document["duplicates"] > 0 and document["written"] > 0, document
    equal(len(document["emitters"]), len(made))
    equal(analysed(together), analysed(*made))
    assert "batches written" in text("merge", "--force", "-o", together, *made, store=None)
    equal(analysed(together), analysed(*made))


@test
def of_a_store_the_journal_is_taken():
    made = captures()
    store = os.path.join(HERE, "node.db")
    text("replay", made[0], "--force", store=store)
    together = os.path.join(HERE, "journal.capture")
    one_error(run("merge", "-o", together, store, made[1], store=None, code=1), store + ".journal", "No such file")
    shutil.copy(made[0], store + ".journal")
    text("merge", "-o", together, store, made[1], store=None)
    equal(analysed(together), analysed(*made[:2]))


@test
def what_cannot_be_merged_is_refused():
    made = captures()
    together = os.path.join(HERE, "refused.capture")
    one_error(run("merge", "-o", together, made[0], os.devnull, store=None, code=1), os.devnull, "not a capture")
    one_error(run("merge", "-o", together, made[0], HERE, store=None, code=1), HERE)
    one_error(run("merge", "-o", together, made[0] + ".none", store=None, code=1), made[0] + ".none")
    one_error(run("merge", "-o", "/nowhere/x", made[0], store=None, code=1), "/nowhere/x")
    assert not os.path.exists(together)
    one_error(run("merge", "-f", "-o", made[0], made[0], store=None, code=1), made[0], "one of those")
    one_error(run("merge", "-o", made[1], made[0], store=None, code=1), made[1], "--force")
    for arguments in (["merge", made[0]], ["merge", "-o", together]):
        run(*arguments, store=None, code=2)
    cut = os.path.join(HERE, "cut.capture")  # its last frame is lost
    with open(made[0], "rb") as whole, open(cut, "wb") as file:
        file.write(whole.read()[:-3])
    done = run("merge", "-o", together, cut, made[1], store=None, code=None)
    assert done.returncode == 0 and done.stderr.startswith(f"qpscope: warning: {cut}: the file was cut") and done.stderr.count("\n") == 1, done


@test
def a_port_is_recorded():
    if not PORTS:
        return
    path = os.path.join(HERE, "port.capture")
    done = run("record", *port_of(PCAPS[0]), "--for", "1s", "-o", path, "--json", store=None, code=None,
               env={**PATH, "TMPDIR": HERE})
    equal(done.returncode, 0)
    document = json.loads(done.stdout)
    equal((document["file"], document["damaged"], [emitter["emitter"] for emitter in document["emitters"]]), (path, 0, ["nic"]))
    store = path + ".db"
    text("replay", path, store=store)
    flows = rows("SELECT destination_qpn, data_frames, payload_bytes FROM flow", store)
    equal(sorted(tuple(row.values()) for row in flows), counted(PCAPS[0]))
    clock = rows("SELECT clock_source, clock_samples, ended FROM emitter", store)[0]
    assert clock["clock_source"] == "exchange" and clock["clock_samples"] > 10 and clock["ended"] == 1, clock
    assert not [name for name in os.listdir(HERE) if name.startswith("qpscope-record-")]
    one_error(run("record", *port_of(PCAPS[0]), "-o", path, store=None, code=1, env=PATH), path, "--force")


def outlets():
    return [name for name in os.listdir(HERE) if name.endswith(".outlet")]


@contextlib.contextmanager
def a_running_agent(name):
    """One that plays a file, and has a capture of its own."""
    own = os.path.join(HERE, name)
    line = [NIC, *port_of(PCAPS[0])[2:4], "--eal", "--no-huge", "--memory", "32MiB", "--record", own]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as agent:
        try:
            until = time.monotonic() + 60
            while not outlets():
                assert agent.poll() is None and time.monotonic() < until, "the agent is not there"
                time.sleep(0.1)
            yield agent, own
        finally:
            agent.send_signal(signal.SIGINT)
        equal(agent.wait(timeout=60), 0)


def is_part_of(part, whole):
    """Each batch of `part` is in `whole`, byte by byte."""
    read = as_json("merge", "--force", "-o", os.path.join(HERE, "part.capture"), whole, part, store=None)
    alone = as_json("merge", "--force", "-o", os.path.join(HERE, "part.capture"), part, store=None)
    equal((read["duplicates"], read["contradicting"], alone["duplicates"]), (alone["written"], 0, 0))
    return alone["written"]


@test
def who_runs_is_asked():
    if not PORTS:
        return
    path = os.path.join(HERE, "asked.capture")
    with a_running_agent("own.capture") as (agent, own):
        done = run("record", "--agents", "running", "--for", "1s", "-o", path, "--json", store=None, code=None, env=PATH)
        document = json.loads(done.stdout)
        equal((done.returncode, document["asked"], document["started"], document["missing"]), (0, 1, 0, 0))
        # a second one, by itself: it asks too, and starts nothing though it might
        second = run("record", *port_of(PCAPS[0]), "--for", "1s", "-o", path + "2", store=None, code=None, env=PATH)
        equal(second.returncode, 0)
        assert "runs here and is asked" in second.stderr and "of 1 agents that ran here and 0 started" in second.stdout, second
        equal(agent.poll(), None)
    assert 8 <= is_part_of(path, own) and 8 <= is_part_of(path + "2", own)  # a batch each 50 ms at least
    store = path + ".db"
    text("replay", path, store=store)
    equal(sorted(row["destination_qpn"] for row in rows("SELECT destination_qpn FROM flow", store)), [row[0] for row in counted(PCAPS[0])])
    # it was not heard from its start, which is said, and it has not ended
    equal(rows("SELECT cause, emitter FROM gap WHERE cause = 'batches lost'", store), [{"cause": "batches lost", "emitter": 1}])
    equal(rows("SELECT ended FROM emitter", store), [{"ended": 0}])
    equal(outlets(), [])


@test
def who_ends_while_asked_is_missed():
    if not PORTS:
        return
    path = os.path.join(HERE, "ended.capture")
    with a_running_agent("ending.capture") as (agent, own):
        with subprocess.Popen([COMMAND, "record", "--agents", "running", "--for", "5min", "-o", path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, **PATH}) as child:
            until = time.monotonic() + 60
            while not os.path.exists(path) or os.stat(path).st_size < 500:
                assert time.monotonic() < until, "nothing is recorded"
                time.sleep(0.1)
            agent.send_signal(signal.SIGINT)
            shown, said = child.communicate(timeout=60)
    equal(child.returncode, 1)
    assert "1 of the agents that run here ended" in said and "nic" in shown, (said, shown)
    is_part_of(path, own)
    done = run("record", "--agents", "running", "-o", path + "2", store=None, code=1, env=PATH)
    assert "no agent that runs here can be asked" in done.stderr, done.stderr
    dead = os.path.join(HERE, "nic-dead.outlet")  # as an agent that was killed leaves it
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(dead)
    run("record", "--agents", "running", "-o", path + "2", store=None, code=1, env=PATH)
    equal(outlets(), [])


def reference_of(capture):
    store = capture + ".db"
    text("replay", capture, "--force", store=store)
    return rows("SELECT value FROM meta WHERE key = 'reference_boot'", store)[0]["value"]


@test
def one_clock_for_several_hosts():
    if not PORTS:
        return
    paths = [os.path.join(HERE, f"host{number}.capture") for number in range(3)]
    url = f"ipc://{HERE}/clock"
    words = [["--serve-clock", url, "--for", "5min"], ["--clock", url, "--for", "1s"], ["--for", "1s"]]
    with subprocess.Popen([COMMAND, "record", *port_of(PCAPS[0]), *words[0], "--agents", "own", "-o", paths[0]], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, env={**os.environ, **PATH}) as first:
        try:
            until = time.monotonic() + 60
            while not os.path.exists(os.path.join(HERE, "clock")):
                assert time.monotonic() < until, "nobody answers"
                time.sleep(0.1)
            for path, options in zip(paths[1:], words[1:]):
                done = run("record", *port_of(PCAPS[1]), *options, "--agents", "own", "-o", path, store=None, code=None, env=PATH)
                assert done.returncode == 0, done.stderr
        finally:
            first.send_signal(signal.SIGINT)
        equal(first.wait(timeout=60), 0)
    equal(reference_of(paths[0]), reference_of(paths[1]))
    assert reference_of(paths[0]) != reference_of(paths[2])
    run("record", "--only", "host", "--clock", url, "--serve-clock", url, store=None, code=2)


@test
def an_interrupt_ends_it_in_order():
    if not PORTS:
        return
    path = os.path.join(HERE, "interrupted.capture")
    began = time.monotonic()
    with subprocess.Popen([COMMAND, "record", *port_of(PCAPS[0]), "--for", "5min", "-o", path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env={**os.environ, **PATH}) as child:
        while not os.path.exists(path) or os.stat(path).st_size < 500:
            assert time.monotonic() - began < 60, "nothing is recorded"
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        shown, said = child.communicate(timeout=60)
    equal((child.returncode, "nic" in shown), (0, True))
    store = path + ".db"
    text("replay", path, store=store)
    equal(rows("SELECT ended FROM emitter", store), [{"ended": 1}])


@test
def what_cannot_be_recorded_is_said():
    path = os.path.join(HERE, "not.capture")
    done = run("record", "--only", "nic", "--port", "net_pcap0,iface=no-such-port", "--for", "1s", "-o", path, store=None, code=1, env=PATH)
    assert "qpscope-nic failed" in done.stderr.splitlines()[-1] and "nothing was heard" not in done.stderr, done.stderr
    done = run("record", "--only", "host", "--for", "1s", "-o", path, store=None, code=1, env={"PATH": "/nowhere"})
    equal([line for line in done.stderr.splitlines() if "error" in line],
          ["qpscope: error: cannot run qpscope-host: No such file or directory: install it, or put its folder into PATH"])
    assert not os.path.exists(path)
    for arguments in ([], ["--only", "nic"], ["--source", "psn", "--port", "x"], ["--for", "1ms", "--only", "host"]):
        run("record", *arguments, "-o", path, store=None, code=2)
    done = run("record", "--only", "host", "-o", "/nowhere/x", store=None, code=1, env=PATH)
    # agents of other tests may run beside it, which it says first
    assert done.stdout == "" and "/nowhere/x" in done.stderr.splitlines()[-1], done


if __name__ == "__main__":
    main()
