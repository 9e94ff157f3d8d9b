#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""stage_check.py CORRELATOR SEND_JOB QPSCOPE: a node stage and a job stage as processes of their own, against one that is both; each is killed
and started again while a job runs. Prints TAP."""

import signal
import subprocess
import sys
import tempfile
import time

from harness import Daemon, check, checks_end, rows, wait_for

correlator, send_job, qpscope = sys.argv[1:]


def daemon(folder, name, *options):
    return Daemon(f"{folder}/{name}.log", correlator, "-v", "--share", "50", *options)


def send(url, first, last):
    return subprocess.run([send_job, url, str(first), str(last)], stdout=subprocess.DEVNULL).returncode == 0


ANSWERS = {
    "steps": "SELECT duration_ns, id, kind, operations, incomplete FROM step",
    "verdicts": "SELECT size_ns, step, class, rank FROM verdict ORDER BY step, id",
    "operations": "SELECT count(*), sum(observed_bytes), sum(status = 'complete') FROM rank_operation",
    "ranks": "SELECT rank, count(*) FROM rank_operation GROUP BY rank",
}


def same(name, got, expected):
    """Durations may differ by what the clocks allow: what moved less is not told again."""
    if name not in ("steps", "verdicts"):
        return got == expected
    return len(got) == len(expected) and all(a[1:] == b[1:] and abs(a[0] - b[0]) < 100000 for a, b in zip(got, expected))


def answers(path):
    return {name: rows(path, sql) for name, sql in ANSWERS.items()}


def both_in_one(folder):
    intake, store = f"ipc://{folder}/one", f"{folder}/one.db"
    one = daemon(folder, "one", "--intake", intake, "--clock", f"ipc://{folder}/one-clock", "--store", store)
    one.start()
    send(intake, 0, 100)
    one.stop()
    return answers(store)


def main():
    with tempfile.TemporaryDirectory() as folder:
        expected = both_in_one(folder)
        check("one process judges the job", len(expected["steps"]) == 12 and expected["verdicts"], expected)
        up, down, store = f"ipc://{folder}/up", f"ipc://{folder}/down", f"{folder}/job.db"
        job = daemon(folder, "job", "--stage", "job", "--intake", up, "--clock", f"ipc://{folder}/clock", "--store", store)
        node = daemon(folder, "node", "--stage", "node", "--intake", down, "--link", up, "--journal", f"{folder}/node.journal")
        check("a node stage starts before its job stage", node.start(), node.said())
        send(down, 0, 30)
        time.sleep(1)
        check("the job stage starts", job.start(), job.said())
        check("and hears what was there before it", wait_for(lambda: rows(store, "SELECT count(*) FROM step")[0][0] >= 2), job.said())
        send(down, 30, 50)
        job.stop(signal.SIGKILL)
        send(down, 50, 60)
        job.start()
        node.stop(signal.SIGKILL)
        node.start()
        send(down, 60, 100)
        check("all steps come, with both killed in between", wait_for(lambda: rows(store, "SELECT count(*) FROM step")[0][0] == 12), job.said())
        check("the node stage ends in order", node.stop() == 0, node.said())
        time.sleep(1)
        check("the job stage ends in order", job.stop() == 0, job.said())
        got = answers(store)
        for name in ANSWERS:
            check(f"the same {name} as in one process", same(name, got[name], expected[name]), f"{got[name]}\n{expected[name]}")
        subprocess.run([qpscope, "replay", "--store", f"{folder}/again.db", store + ".journal"], stdout=subprocess.DEVNULL, check=True)
        check("the job stage's journal replays to the same", answers(f"{folder}/again.db") == got)
        check("messages and calls stay at the node", rows(store, "SELECT (SELECT count(*) FROM message) + (SELECT count(*) FROM call)") == [(0,)])
        check("no batch was lost", rows(store, "SELECT * FROM gap WHERE cause = 'batches lost'") == [], rows(store, "SELECT * FROM gap"))
        for options, word in ((["--stage", "node", "--intake", down], "--link"), (["--link", up, "--intake", down, "--clock", up, "--store", store], "--stage"),
                              (["--stage", "node", "--link", up, "--intake", down, "--store", store], "--store")):
            refused = subprocess.run([correlator, *options], capture_output=True, text=True, timeout=30)
            check(f"wrong use is refused: {' '.join(options[:2])}", refused.returncode == 2 and word in refused.stderr, refused.stderr)
    return checks_end()


if __name__ == "__main__":
    sys.exit(main())
