# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of qpscope-correlator as a process share: checks that are printed as TAP, its store, and the process."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import time

count = failed = 0


def check(name, good, note=""):
    global count, failed
    count, failed = count + 1, failed + (not good)
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good and note:
        print("\n".join(f"#   {line}" for line in str(note).splitlines()[:12]))


def checks_end():
    """Prints the plan; the exit status."""
    print(f"1..{count}")
    return failed != 0


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as database:
        return database.execute(sql).fetchall()


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return True
        except (sqlite3.Error, OSError):
            pass
        time.sleep(0.05)
    return False


class Daemon:
    def __init__(self, log, *command):
        self.log, self.command, self.process = log, command, None

    def said(self):
        return open(self.log).read() if os.path.exists(self.log) else ""

    def start(self):
        before = self.said().count("ready")
        with open(self.log, "a") as out:
            self.process = subprocess.Popen(self.command, stderr=out)
        return wait_for(lambda: self.said().count("ready") > before)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(timeout=60)
