#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""endurance_check.py CORRELATOR SEND_JOB [KILLS]: qpscope-correlator killed at random moments, read while it writes, on a full disk.
Prints TAP. KILLS: how often it is killed (8)."""

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from harness import Daemon, check, checks_end, rows, wait_for

correlator, send_job = sys.argv[1:3]
kills = int(sys.argv[3]) if len(sys.argv) > 3 else 8


class Correlator(Daemon):
    def __init__(self, folder, sockets):
        self.intake, self.store = f"ipc://{sockets}/intake", f"{folder}/qpscope.db"
        super().__init__(f"{sockets}/log", correlator, "--intake", self.intake, "--clock", f"ipc://{sockets}/clock", "--store", self.store,
                         "-v", "--share", "50")

    def send(self, first, last):
        return subprocess.run([send_job, self.intake, str(first), str(last)], stdout=subprocess.DEVNULL).returncode == 0


class Reader(threading.Thread):
    """Reads the store again and again; each answer must be of one whole analysis."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.done, self.read, self.wrong = path, False, 0, []

    def run(self):
        while not self.done:
            try:
                with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=5)) as database:
                    database.execute("BEGIN")
                    steps, placed = database.execute(
                        "SELECT (SELECT count(*) FROM step), (SELECT coalesce(max(step) + 1, 0) FROM operation)").fetchone()
                    lost, = database.execute("SELECT count(*) FROM rank_operation WHERE operation NOT IN (SELECT id FROM operation)").fetchone()
                    self.read += 1
                    if steps != placed or lost:
                        self.wrong.append((steps, placed, lost))
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error) and "unable to open" not in str(error):
                    self.wrong.append(str(error))
            time.sleep(0.01)


def whole_job(folder):
    """What an undisturbed run has: batches of each emitter, and steps."""
    daemon = Correlator(folder, folder)
    daemon.start()
    daemon.send(0, 100)
    daemon.stop()
    return dict(rows(daemon.store, "SELECT kind, batches FROM emitter")), rows(daemon.store, "SELECT count(*) FROM step")[0][0]


def kill_again_and_again(folder, batches, steps):
    chance = random.Random(kills)
    daemon = Correlator(folder, folder)
    daemon.start()
    reader = Reader(daemon.store)
    reader.start()
    shares = [100 * i // (kills + 1) for i in range(kills + 2)]
    for first, last in zip(shares[:-2], shares[1:-1]):
        sender = threading.Thread(target=daemon.send, args=(first, last))
        sender.start()
        time.sleep(chance.uniform(0, 0.25))
        daemon.stop(signal.SIGKILL)
        daemon.start()
        sender.join()
    daemon.send(shares[-2], 100)
    reader.done = True
    reader.join()
    check(f"killed {kills} times, it ends in order", daemon.stop() == 0, daemon.said())
    check("the store is sound", rows(daemon.store, "PRAGMA integrity_check") == [("ok",)])
    check("readers saw whole analyses only", reader.read > 10 and not reader.wrong, f"{reader.read} {reader.wrong[:5]}")
    heard = dict(rows(daemon.store, "SELECT kind, batches FROM emitter"))
    lost = dict(rows(daemon.store, "SELECT kind, sum(lost) FROM gap JOIN emitter ON emitter.id = emitter WHERE cause = 'batches lost' GROUP BY kind"))
    told = {kind: heard.get(kind, 0) + lost.get(kind, 0) for kind in batches}
    check("each batch was heard, or is told to be lost", told == batches, f"{heard} {lost} {batches}")
    check("a kill loses what was on its way only", sum(lost.values()) <= kills * 4, lost)
    found, = rows(daemon.store, "SELECT count(*) FROM step")[0]
    check("the steps are there", abs(found - steps) <= kills, f"{found} of {steps}")
    print(f"# {kills} kills, {sum(lost.values())} of {sum(batches.values())} batches lost, {reader.read} reads")


def fill_the_disk(folder, steps):
    """The store and its journal on a file system that is too small for them, and grows later."""
    small = f"{folder}/small"
    os.mkdir(small)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", small], stderr=subprocess.DEVNULL).returncode != 0:
        check("a full disk # SKIP needs the right to mount", True)
        return
    try:
        daemon = Correlator(small, folder)
        check("it starts on a small disk", daemon.start(), daemon.said())
        daemon.send(0, 90)
        check("a full disk is said, with the store's name",
              wait_for(lambda: "qpscope.db" in daemon.said() and "full" in daemon.said().lower()), daemon.said())
        check("it goes on judging", wait_for(lambda: "gpu late" in daemon.said()), daemon.said())
        check("it lives", daemon.process.poll() is None)
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        daemon.send(90, 100)
        check("it stores again once there is room", wait_for(lambda: rows(daemon.store, "SELECT count(*) FROM step")[0][0] == steps), daemon.said())
        check("and says so", "writes again" in daemon.said(), daemon.said())
        check("it ends in order after a full disk", daemon.stop() == 0, daemon.said())
    finally:
        if daemon.process.poll() is None:
            daemon.stop(signal.SIGKILL)
        subprocess.run(["umount", "-l", small])


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("whole", "killed", "full"):
            os.mkdir(f"{folder}/{name}")
        batches, steps = whole_job(f"{folder}/whole")
        check("the undisturbed job", steps == 12 and len(batches) == 2, f"{batches} {steps}")
        kill_again_and_again(f"{folder}/killed", batches, steps)
        fill_the_disk(f"{folder}/full", steps)
    return checks_end()


if __name__ == "__main__":
    sys.exit(main())
