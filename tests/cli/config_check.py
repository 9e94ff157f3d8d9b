#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""config_check.py QPSCOPE SCHEMA FIXTURE PORTS PCAP PROGRAM...: the daemons' configuration files, and qpscope check-config, as TAP.

What a file does is compared with what the same words do on the command line. PORTS is yes where qpscope-nic can watch ports.
"""
import json
import os
import signal
import subprocess
import sys
import time

from harness import HERE, as_json, equal, main, run, test

PORTS, PCAP = sys.argv[4] == "yes", os.path.abspath(sys.argv[5])
PROGRAMS = {os.path.basename(path): os.path.abspath(path) for path in sys.argv[6:]}
NIC = PROGRAMS["qpscope-nic"]
PATH = {"PATH": ":".join(map(os.path.dirname, PROGRAMS.values())) + ":" + os.environ["PATH"]}


def write(name, text):
    path = os.path.join(HERE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def nic(*arguments, code=0):
    done = subprocess.run([NIC, *arguments], capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, code)
    return done


@test
def a_file_is_as_good_as_the_command_line():
    path = write("a/qpscope-nic.conf", f"# what to read\n\n  file = {PCAP}  \n; how\njson=yes\nwindows = yes\nwindow = 16us\npromiscuous = no\n")
    expected = nic("--file", PCAP, "--json", "--windows", "--window", "16us").stdout
    assert expected != nic("--file", PCAP, "--json", "--windows").stdout
    equal(nic("--config", path).stdout, expected)
    equal(nic(f"--config={path}").stdout, expected)
    # the command line overrides it, wherever it stands
    expected = nic("--file", PCAP, "--json", "--windows", "--window", "32us").stdout
    equal(nic("--window", "32us", "--config", path).stdout, expected)
    equal(nic("--config", path, "--window", "32us").stdout, expected)


@test
def sections_and_drop_ins():
    path = write("b/all.conf", f"[qpscope-host]\nbuffer = 8MiB\n[qpscope-nic]\nfile = {PCAP}\njson = yes\nwindow = 16us\n[qpscope-correlator]\nshare = 20\n")
    write("b/all.conf.d/20-windows.conf", "[qpscope-nic]\nwindows = yes\n")
    write("b/all.conf.d/10-other.conf", "[qpscope-nic]\nwindow = 64us\n")
    write("b/all.conf.d/30-not-read", "nonsense\n")
    equal(nic("--config", path).stdout, nic("--file", PCAP, "--json", "--windows", "--window", "64us").stdout)
    equal({row["program"]: row["outcome"] for row in as_json("check-config", path, store=None, env=PATH)["files"]},
          {"qpscope-nic": "fine", "qpscope-host": "fine" if "qpscope-host" in PROGRAMS else "not checked", "qpscope-correlator": "fine"})


WRONG = {
    "prot = x": "unknown key 'prot': is 'port' meant?",
    "zzzzzzzzzzzz = x": "unknown key 'zzzzzzzzzzzz': qpscope-nic --help lists them",
    "window = 8 parsecs": "'8 parsecs' is not a whole number with its unit",
    "window = 8us\nwindow = 9us": "window is given twice",
    "promiscuous = true": "'true' is neither yes nor no",
    "source = frames": "'frames' is none of: auto, dpdk, file",
    "queues = 0": "out of range",
    "port": "'port' is no 'key = value'",
    "[nic]": "is no program of qpscope",
    "[qpscope-nic": "does not end",
}


@test
def what_is_wrong_is_said_with_its_line():
    for lines, words in WRONG.items():
        path = write("c/qpscope-nic.conf", "# first line\nmemory = 64MiB\n" + lines + "\n")
        line = 2 + lines.count("\n") + 1
        done = run("check-config", path, store=None, code=1, env=PATH)
        assert f"{path}:{line}: " in done.stderr and words in done.stderr, (lines, done.stderr)
        equal(done.stdout, f"{path} for qpscope-nic: wrong\n")
        done = nic("--config", path, "--file", PCAP, code=2)
        assert f"{path}:{line}: " in done.stderr and done.stdout == "", done


@test
def all_lines_are_looked_at():
    path = write("d/qpscope-nic.conf", "\n".join(WRONG) + "\n")
    said = run("check-config", path, store=None, code=1, env=PATH).stderr
    for words in WRONG.values():
        assert words in said, (words, said)


@test
def files_that_cannot_be_read():
    done = run("check-config", os.path.join(HERE, "none.conf"), HERE, store=None, code=1, env=PATH)
    assert "No such file" in done.stderr and "Is a directory" in done.stderr, done.stderr
    big = write("e/qpscope-nic.conf", "# " + "x" * (1 << 20))
    assert "at most a mebibyte" in run("check-config", big, store=None, code=1, env=PATH).stderr
    with open(big, "wb") as file:
        file.write(b"window = 8us\0")
    assert "it is no text" in run("check-config", big, store=None, code=1, env=PATH).stderr
    assert "--config needs a value" in nic("--config", code=2).stderr
    document = run("check-config", "--json", write("f/qpscope-nic.conf", ""), store=None, code=1, env={"PATH": "/nowhere"})
    equal(json.loads(document.stdout)["files"][0]["outcome"], "not checked")


class Daemon:
    """One that runs with a configuration, and what it says."""

    def __init__(self, program, path, *arguments):
        self.said = os.path.join(HERE, f"{os.path.basename(path)}.log")
        with open(self.said, "wb") as file:
            self.child = subprocess.Popen([PROGRAMS[program], "--config", path, *arguments], stdout=subprocess.DEVNULL, stderr=file,
                                          env={**os.environ, "QPSCOPE_RUNTIME_DIRECTORY": HERE})

    def __enter__(self):
        self.await_said("ready")
        return self

    def await_said(self, words, after=0):
        until = time.monotonic() + 60
        while True:
            with open(self.said, encoding="utf-8") as file:
                said = file.read()[after:]
            if words in said:
                return said
            assert self.child.poll() is None and time.monotonic() < until, f"{words} is not in: {said}"
            time.sleep(0.05)

    def reload(self, words):
        """What it says to SIGHUP, which has the words in it."""
        before = os.stat(self.said).st_size
        self.child.send_signal(signal.SIGHUP)
        return self.await_said(words, before)

    def __exit__(self, *_):
        self.child.send_signal(signal.SIGTERM)
        equal(self.child.wait(timeout=60), 0)


def changed(daemon, path, text, words):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return daemon.reload(words)


@test
def sighup_changes_what_can_be_changed_of_the_correlator():
    store = os.path.join(HERE, "reload.db")
    base = f"intake = ipc://{HERE}/ri\nclock = ipc://{HERE}/rc\nstore = {store}\n"
    path = write("r/correlator.conf", base + "share = 10\n")
    with Daemon("qpscope-correlator", path, "--spreads", "7") as daemon:
        assert "nothing of it has changed" in daemon.reload("read again")
        said = changed(daemon, path, base + "share = 20\nleast = 50\nverbose = yes\nstore-size = 64MiB\n", "taken over")
        assert "taken over: store-size, share, least, verbose" in said and "analysis of" not in said.split("taken over")[0], said
        daemon.await_said("analysis of")  # which only verbose says, and is made anew
        # the command line still stands above the file; one line for all that needs a new start
        said = changed(daemon, path, base + "share = 20\nspreads = 9\nleast = 50\nverbose = yes\nstore-size = 64MiB\nmemory = 2GiB\nhttp = 9\n", "new start")
        assert "what was changed of http, memory needs a new start: it stays as it was" in said and "taken" not in said, said
        assert said.count("\n") == 1, said
        for wrong, words in (("share = 900\n", "out of range"), ("shar = 1\n", "is 'share' meant"), ("store-size = 1MiB\n", "4MiB or more")):
            said = changed(daemon, path, base + "least = 60\n" + wrong, "all stays as it was")
            assert words in said and "taken" not in said, said
        os.unlink(path)
        daemon.reload("all stays as it was")
        assert "taken over: share, least, verbose" in changed(daemon, path, base + "store-size = 64MiB\n", "taken over")


@test
def sighup_changes_what_can_be_changed_of_the_nic_side():
    if not PORTS:
        return
    base = f"port = net_pcap0,rx_pcap={PCAP}@10.0.0.1\neal = --no-huge\nmemory = 32MiB\nrecord = {HERE}/reload.capture\n"
    path = write("r/nic.conf", base)
    with Daemon("qpscope-nic", path) as daemon:
        said = changed(daemon, path, base + "message-rate = 1MiB\nwindow = 16us\nport = net_pcap1\n", "taken over")
        assert "of port, window needs a new start" in said and "taken over: message-rate" in said, said
        said = changed(daemon, path, base + "message-rate = 1MiB\nfile = x\n", "all stays as it was")
        assert "either --port" in said, said
    # without a configuration it ends a program, as it does any other
    with subprocess.Popen([NIC, "--port", f"net_pcap0,rx_pcap={PCAP}@10.0.0.1", "--eal=--no-huge", "--memory=32MiB", "--record", f"{HERE}/hup.capture"],
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**os.environ, "QPSCOPE_RUNTIME_DIRECTORY": HERE}) as child:
        while b"ready" not in child.stderr.readline():
            assert child.poll() is None
        child.send_signal(signal.SIGHUP)
        try:
            equal(child.wait(timeout=60), -signal.SIGHUP)
        finally:
            child.kill()


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # else, started by nohup, what is started here ignores it
    main()
