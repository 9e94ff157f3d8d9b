#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""guest_watch.py --console FILE --qmp SOCKET --keys FIFO --pid-file FILE --stood FILE

Ends a guest that stands still, outside it: reads the phases that the guest says on its console ("lab-phase: UPTIME JOB PHASE
LIMIT_S", watch.sh) and, when one outlives its limit or the kernel says that
a CPU is locked up, prints what QEMU knows of the virtual CPUs and what the guest's kernel says
when it is asked by SysRq over the serial line, writes JOB and PHASE to the --stood file, and ends QEMU; unless the guest moved on
meanwhile, which is said. Ends when QEMU does.
"""

import argparse
import json
import os
import re
import signal
import socket
import sys
import time

BOOT_LIMIT_S, SHOWN = 120, 40
LOCKUP_S = 40  # what the kernel calls a lockup at 20 s may be a machine that gave the guest no processor
PHASE = re.compile(r"lab-phase: ([\d.]+) (\S+) (\S+) (\d+)")
LOCKUP = re.compile(r"soft lockup - CPU#\d+ stuck for (\d+)s")
REGISTERS = re.compile(r"CPU#\d+|RIP=\w+|EFL=\w+ \[[^]]*\]|CPL=\d|HLT=\d")
# Of what the guest and its kernel say: what stands, where, and the calls that led there.
TELLING = re.compile(r"lab-standing: .*|(?:INFO|BUG|rcu|watchdog|unregister_netdevice|WARNING)[: ].*|task:\S+ +state:.*|RIP: 0010.*|NMI backtrace.*")
CALL = re.compile(r"^(?:\[[ .\d]*\])?\s+([\w.]+)\+0x")


class Qmp:
    """QEMU's monitor; every answer is waited for 3 s at most, and none at all is an answer too."""

    def __init__(self, path):
        self.channel = socket.socket(socket.AF_UNIX)
        self.channel.settimeout(3)
        self.channel.connect(path)
        self.lines = self.channel.makefile("r")
        self.lines.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.channel.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = json.loads(self.lines.readline())
            if "return" in answer or "error" in answer:
                return answer.get("return", answer.get("error"))

    def monitor(self, line):
        return self.ask("human-monitor-command", **{"command-line": line})


def telling(said):
    """What of these lines tells something, the calls behind the line that they belong to."""
    told = []
    for line in said.splitlines():
        found, call = TELLING.search(line), CALL.search(line)
        if found:
            told.append(found.group())
        elif call and told:
            told[-1] += f" < {call.group(1)}"
    return told


class Watch:
    def __init__(self, options):
        self.options = options
        self.read, self.rest, self.phase_at, self.seen = 0, "", 0, False
        self.uptime, self.job, self.phase, self.limit_s, self.spent_s = "0", "-", "boot", BOOT_LIMIT_S, 0.0
        self.locked = False

    def look(self):
        """Reads what the console has said since, and takes up the last phase of it."""
        with open(self.options.console, "rb") as console:
            console.seek(self.read)
            new = console.read()
        self.read += len(new)
        text = self.rest + new.decode("latin-1")
        begun = self.read - len(text)
        self.rest = text[text.rfind("\n") + 1:]
        for found in PHASE.finditer(text[:len(text) - len(self.rest)]):
            self.uptime, self.job, self.phase, self.limit_s, self.spent_s = *found.group(1, 2, 3), int(found.group(4)), 0.0
            self.phase_at = begun + found.end()
        self.locked |= any(int(found.group(1)) >= LOCKUP_S for found in LOCKUP.finditer(text))

    def pid(self):
        try:
            with open(self.options.pid_file) as file:
                pid = int(file.read())
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError):
            return None

    def wait(self):
        """True when the guest stands still, false when it has ended. A machine that stands still itself is not counted."""
        last = time.monotonic()
        while True:
            time.sleep(1)
            now = time.monotonic()
            self.spent_s += min(now - last, 3)
            last = now
            if self.pid() is None:
                if self.seen or self.spent_s > BOOT_LIMIT_S:
                    return False
                continue
            self.seen = True
            self.look()
            if self.locked or self.limit_s and self.spent_s > self.limit_s + self.options.grace:
                return True

    def say(self, line):
        print(f"lab: standing: {line}", file=sys.stderr, flush=True)

    def thread_times(self, pid):
        """CPU time of QEMU's threads in clock ticks, by name and id."""
        times = {}
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat") as file:
                name, fields = file.read().split(" (", 1)[1].rsplit(") ", 1)
            fields = fields.split()
            times[f"{name}-{thread}"] = int(fields[11]) + int(fields[12])
        return times

    def tell_machine(self, pid):
        before = self.thread_times(pid)
        time.sleep(2)
        after = self.thread_times(pid)
        busy = {name: round((ticks - before.get(name, 0)) / 2) for name, ticks in after.items()}
        self.say("QEMU's threads, per cent of a CPU: " + ", ".join(f"{name} {share}" for name, share in busy.items() if share or "CPU" in name))
        try:
            qmp = Qmp(self.options.qmp)
            for _ in range(2):
                self.say(" ".join(REGISTERS.findall(qmp.monitor("info registers -a"))))
            for line in ("info lapic", "info pic", "info status"):
                print(qmp.monitor(line), file=self.archive)
            self.tell_kernel(qmp)
        except (OSError, ValueError) as error:
            self.say(f"QEMU's monitor does not answer: {error}")

    def tell_kernel(self, qmp):
        """A break and a letter on the serial line is SysRq: 8 all messages, w what is blocked, l what runs, t everything."""
        keys = os.open(self.options.keys, os.O_RDWR | os.O_NONBLOCK)
        for letter in b"8wl":
            qmp.ask("chardev-send-break", id="console")
            time.sleep(0.3)
            os.write(keys, bytes([letter]))
            time.sleep(2)

    def tell(self, pid):
        """True when it still stands after it was asked."""
        phase_at = self.phase_at
        self.say(f"job {self.job}, phase {self.phase} (since {self.uptime} s, limit {self.limit_s} s)")
        with open(self.options.stood + ".txt", "a") as self.archive:
            self.tell_machine(pid)
        with open(self.options.console, encoding="latin-1", newline="") as console:
            said = console.read()[phase_at:]
        for line in telling(said)[:SHOWN]:
            self.say(line.removeprefix("lab-standing: ")[:300])
        self.look()
        if self.phase_at != phase_at:
            self.say(f"it moved on when it was asked, to phase {self.phase} of job {self.job}: left alone")
        return self.phase_at == phase_at

    def end(self, pid):
        with open(self.options.stood, "w") as file:
            print(self.job, self.phase, file=file)
        os.kill(pid, signal.SIGTERM)
        time.sleep(3)
        if self.pid() == pid:
            os.kill(pid, signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("console", "qmp", "keys", "pid-file", "stood"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--grace", type=float, default=12, help="seconds that a phase gets beyond its limit: the guest tells of it first (12)")
    watch = Watch(parser.parse_args())
    while watch.wait():
        pid = watch.pid()
        if watch.tell(pid):
            watch.end(pid)
            break


if __name__ == "__main__":
    main()
