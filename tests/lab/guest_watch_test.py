#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of guest_watch.py beside a program that stands for QEMU: a console, a monitor that answers, and a process."""

import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
# Answers its monitor until it is ended, or for the seconds that it is told.
MACHINE = r"""
import json, socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
server.settimeout(float(sys.argv[2]))
try:
    channel = server.accept()[0]
except TimeoutError:
    sys.exit(0)
lines = channel.makefile("rw")
print('{"QMP": {}}', file=lines, flush=True)
for line in lines:
    command = json.loads(line)["execute"]
    answer = "CPU#0\nRAX=1 RIP=ffffffff81000000 EFL=00000246 CPL=0 HLT=1" if command == "human-monitor-command" else {}
    print(json.dumps({"event": "RESUME"}), file=lines)
    print(json.dumps({"return": answer}), file=lines, flush=True)
time.sleep(60)
"""


class GuestWatch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = lambda name: os.path.join(self.folder.name, name)
        os.mkfifo(self.at("keys"))
        self.console("SeaBIOS\n")

    def console(self, text):
        with open(self.at("console"), "a") as file:
            file.write(text)

    def start(self, seconds):
        self.machine = subprocess.Popen([sys.executable, "-c", MACHINE, self.at("qmp"), str(seconds)])
        self.addCleanup(self.machine.kill)
        with open(self.at("pid"), "w") as file:
            file.write(str(self.machine.pid))
        command = [os.path.join(HERE, "guest_watch.py"), "--console", self.at("console"), "--qmp", self.at("qmp"), "--keys", self.at("keys"),
                   "--pid-file", self.at("pid"), "--stood", self.at("stood"), "--grace", "4"]
        self.watch = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def end(self):
        """What the watch said, and what it left."""
        said = self.watch.communicate(timeout=40)[1]
        if not os.path.exists(self.at("stood")):
            return said, None
        with open(self.at("stood")) as file:
            return said, file.read()

    def test_a_guest_that_stands_is_told_and_ended(self):
        self.start(60)
        self.console("lab-phase: 5.0 first ranks 300\nlab: first: 1.0 s to 9.0 s\nlab-phase: 9.5 second before 1\n")
        self.console("lab-standing: 7 of 1 D rdma wchan=x stack: a < b (rdma)\n[ 9.9] INFO: task rdma:7 blocked for more\n[ 9.9]  schedule+0x1/0x2\n")
        said, stood = self.end()
        self.assertEqual(stood, "second before\n")
        self.assertEqual(self.machine.wait(timeout=5), -15)
        self.assertIn("job second, phase before (since 9.5 s, limit 1 s)", said)
        self.assertIn("RIP=ffffffff81000000 CPL=0 HLT=1", said)
        self.assertIn("7 of 1 D rdma wchan=x stack: a < b (rdma)", said)
        self.assertIn("INFO: task rdma:7 blocked for more < schedule", said)

    def test_a_cpu_that_is_locked_up_is_not_waited_for(self):
        self.start(60)
        self.console("lab-phase: 5.0 first ranks 300\n[ 40.1] watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [qpscope-host:225]\n")
        time.sleep(3)
        self.assertIsNone(self.watch.poll())
        self.console("[ 66.1] watchdog: BUG: soft lockup - CPU#1 stuck for 48s! [qpscope-host:225]\n[ 66.1] RIP: 0010:one_function+0x1/0x2\n")
        said, stood = self.end()
        self.assertEqual(stood, "first ranks\n")
        self.assertIn("stuck for 48s", said)
        self.assertIn("RIP: 0010:one_function", said)

    def test_a_guest_that_moves_on_when_it_is_asked_goes_on(self):
        self.start(60)
        self.console("lab-phase: 9.5 only before 1\n")
        while "QEMU's threads" not in (line := self.watch.stderr.readline()):
            self.assertTrue(line)
        self.console("lab-standing: late\nlab-phase: 20.0 only ranks 0\n")
        while "moved on" not in (line := self.watch.stderr.readline()):
            self.assertTrue(line)
        self.assertIn("phase ranks of job only", line)
        self.machine.kill()
        self.machine.wait()
        self.assertEqual(self.end(), ("", None))

    def test_a_guest_that_moves_on_is_left_alone(self):
        self.start(10)
        for second in range(4):
            self.console(f"lab-phase: {second}.0 job phase{second} 1\n")
            time.sleep(2)
        self.console("lab-phase: 4.0 - plan 0\n")
        self.machine.wait(timeout=20)
        said, stood = self.end()
        self.assertEqual((said, stood), ("", None))


if __name__ == "__main__":
    unittest.main()
