# SPDX-License-Identifier: BSD-2-Clause
"""An agent to be measured: qpscope-host with a capture and a log in a folder of its own."""
import os
import subprocess
import time

START_S = 60  # at most


class Agent:
    def __init__(self, host, folder, *options):
        self.log_path = f"{folder}/log"
        self.process = subprocess.Popen([host, "--record", f"{folder}/host.cap", "--verbose", *options],
                                        stderr=open(self.log_path, "w"))
        deadline = time.monotonic() + START_S
        while "ready" not in self.log() and time.monotonic() < deadline:
            time.sleep(0.05)

    def log(self):
        with open(self.log_path) as file:
            return file.read()

    def cpu_s(self):
        tasks = f"/proc/{self.process.pid}/task"
        return sum(int(open(f"{tasks}/{tid}/schedstat").read().split()[0]) for tid in os.listdir(tasks)) / 1e9

    def resident_kib(self):
        return next(int(line.split()[1]) for line in open(f"/proc/{self.process.pid}/status") if line.startswith("VmRSS"))

    def end(self):
        """Its whole log."""
        self.process.terminate()
        self.process.wait()
        return self.log()
