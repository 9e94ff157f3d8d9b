#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""daemon_check.py CORRELATOR SEND_JOB QPSCOPE: qpscope-correlator as it is run, killed, run again and ended. Prints TAP."""

import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

correlator, send_job, qpscope = sys.argv[1:]
count = failed = 0


def check(name, good, note=""):
    global count, failed
    count, failed = count + 1, failed + (not good)
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    if not good and note:
        print("\n".join(f"#   {line}" for line in str(note).splitlines()[:8]))


def rows(path, sql):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return database.execute(sql).fetchall()


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return True
        except sqlite3.Error:
            pass
        time.sleep(0.1)
    return False


def dump(path):
    tables = [name for name, in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return [(table, rows(path, f"SELECT * FROM {table} ORDER BY rowid")) for table in tables]


def main():
    with tempfile.TemporaryDirectory() as folder:
        intake, store, log = f"ipc://{folder}/intake", f"{folder}/qpscope.db", f"{folder}/log"
        command = [correlator, "--intake", intake, "--clock", f"ipc://{folder}/clock", "--store", store, "-v"]

        def start():
            with open(log, "a") as out:
                started = subprocess.Popen(command, stderr=out)
            lines = open(log).read().count("ready")
            check("says when it is ready", wait_for(lambda: open(log).read().count("ready") > lines or lines), open(log).read())
            return started

        def send(first, last):
            return int(subprocess.run([send_job, intake, first, last], stdout=subprocess.PIPE, check=True).stdout)

        daemon = start()
        sent_bytes = send("0", "60")
        check("steps are in the store while it runs", wait_for(lambda: rows(store, "SELECT count(*) FROM step")[0][0] >= 5))
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        daemon = start()
        check("what it had heard comes back from the journal", wait_for(lambda: "journal" in open(log).read()), open(log).read())
        send("60", "100")
        daemon.send_signal(signal.SIGTERM)
        check("ends in order on SIGTERM", daemon.wait(timeout=30) == 0)
        check("all steps", rows(store, "SELECT count(*) FROM step") == [(12,)], rows(store, "SELECT * FROM step"))
        check("every byte", rows(store, "SELECT sum(observed_bytes) FROM rank_operation WHERE status = 'complete'") == [(sent_bytes,)])
        check("no gap: nothing was lost by the kill", rows(store, "SELECT * FROM gap") == [], rows(store, "SELECT * FROM gap"))
        check("the verdicts", set(rows(store, "SELECT class, rank FROM verdict")) == {("gpu late", 2)})
        check("a step and a verdict were said", "step 11:" in open(log).read() and "gpu late" in open(log).read(), open(log).read())
        again = f"{folder}/again.db"
        subprocess.run([qpscope, "replay", "--store", again, store + ".journal"], stdout=subprocess.DEVNULL, check=True)
        check("the journal replays to the same rows", dump(store) == dump(again))
        with open(f"{folder}/theirs.db", "w") as out:
            out.write("no database, and too long to be an empty one" * 40)
        refused = subprocess.run([*command[:6], f"{folder}/theirs.db"], capture_output=True, text=True, timeout=30)
        check("a file of somebody else is refused", refused.returncode == 1 and "theirs.db" in refused.stderr, refused.stderr)
        usage = subprocess.run([correlator, "--intake", intake], capture_output=True, text=True, timeout=30)
        check("what is missing is named", usage.returncode == 2 and "--store" in usage.stderr, usage.stderr)
    print(f"1..{count}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
