#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""top_check.py QPSCOPE SCHEMA FIXTURE: qpscope top in a terminal (tmux), in lines and as NDJSON, and qpscope steps --follow, as TAP.

What is expected follows from fixture.sql by arithmetic, or is what this test adds to a store while it is watched.
"""
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

from harness import COMMAND, FIXTURE, HERE, SCHEMA, STORE, as_json, equal, main, make_store, one_error, rows, run, test, text

PATIENCE_S = 30


class Terminal:
    """A terminal of tmux in which one command runs."""

    def __init__(self, command, columns=100, lines=30, **env):
        self.socket = os.path.join(HERE, f"tmux-{time.monotonic_ns()}")
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm", **env}
        environment["ASAN_OPTIONS"] = "detect_leaks=0"  # its leak check never ends in a terminal that is gone
        shell = f"{command}; echo ended=$?; sleep 100"
        subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, "new-session", "-d", "-x", str(columns), "-y", str(lines), shell],
                       check=True, env=environment, timeout=60)

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, *arguments], check=True, capture_output=True, text=True, timeout=60).stdout

    def shown(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def until(self, pattern, absent=False):
        """Waits until the screen has it (or no more has); returns the screen."""
        end = time.monotonic() + PATIENCE_S
        while True:
            shown = self.shown()
            if (re.search(pattern, shown, re.M) is not None) != absent:
                return shown
            assert time.monotonic() < end, f"{'still' if absent else 'never'} seen: {pattern}\n{shown}"
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=60, check=False)


def top(store, *options):
    return f"'{COMMAND}' top --store '{store}' --interval 100ms {' '.join(options)}"


def add_step(store, number, verdict=True):
    """One that begins where the fixture's last one ends, and its late rank."""
    begin = 1000351200000 + (number - 3) * 100000000
    with sqlite3.connect(store) as database:
        database.execute("INSERT INTO step VALUES (?, ?, ?, 130000000, 25000, 4, 0, 0, 1, 30000000, 25000, 9, 'training')",
                         (number, begin, begin + 100000000))
        database.execute("INSERT INTO rank_step VALUES (?, 1, ?, ?, 130000000, 30000000, 29000000)", (number, begin, begin + 100000000))
        if verdict:
            database.execute("INSERT INTO verdict VALUES (?, ?, 'host late', 1, NULL, NULL, NULL, 9, 30000000, 25000, 0.8, 'x', NULL)",
                             (number, number))
    database.close()


@test
def a_terminal_shows_steps_ranks_flows_and_loss():
    with Terminal(top(STORE)) as terminal:
        shown = terminal.until("q quit")
        # 151.2 of the usual 125.6 ms
        for pattern in (r"^qpscope top +/\S+/fixture\.db, written ", r"^steps +3 seen, usually 126 ms, 1 with a verdict",
                        r"^lost +3 gaps, 1 counter of loss", r"^steps, newest first$",
                        r"^ +1 +151\.200 ±0\.025 +120\.38 +2 +node-a, pid 1002 +51200 ±25 +gpu late, rank 2$", r"^ +2 +100\.000 ±0\.025 +79\.62 +- +- +- +\(evaluation\)$",
                        r"^ranks over the last 20 steps, costliest first$",
                        # 51.1 of 351.2 ms
                        r"^ +2 +node-a, pid 1002 +1 +51200 +51200 +51\.100 +14\.55 +gpu late$", r"^flows at the end of what was seen"):
            assert re.search(pattern, shown, re.M), (pattern, shown)
        terminal.keys("q")
        shown = terminal.until("ended=")
        assert "ended=0" in shown and "newest first" not in shown, shown


@test
def keys_do_what_the_help_says():
    named = re.search(r"^Keys: (.*)$", text("top", "--help", store=None), re.M).group(1)
    with Terminal(top(STORE), columns=120) as terminal:
        terminal.until("q quit, ")
        terminal.keys("?")
        terminal.until(re.escape(named))
        terminal.keys("?")
        terminal.until("q quit, ")
        terminal.keys("Tab")
        shown = terminal.until("^ranks over", absent=True)
        assert "newest first" in shown and "flows at" not in shown, shown
        terminal.keys("Down")
        shown = terminal.until(r"^ +2 +100\.000", absent=True)
        assert re.search(r"^ +1 +151\.200", shown, re.M), shown
        terminal.keys("Up")
        terminal.until(r"^ +2 +100\.000")
        terminal.keys("Tab")
        terminal.until("^ranks over")
        terminal.keys("Tab")
        shown = terminal.until("^flows at")
        assert "ranks over" not in shown, shown
        terminal.keys("Tab")
        terminal.until("^ranks over")
        terminal.keys("Tab", "Tab", "Tab", "Space")  # at once: each counts
        shown = terminal.until(r"\(held still\)")
        assert "flows at" in shown and "ranks over" not in shown, shown
        terminal.keys("Tab")
        terminal.until("^ranks over")
        terminal.keys("Space")
        terminal.until(r"\(held still\)", absent=True)
        terminal.keys("q")
        terminal.until("ended=0")


@test
def a_step_appears_as_it_ends_unless_held():
    store = make_store("live.db", SCHEMA, FIXTURE)
    with Terminal(top(store)) as terminal:
        terminal.until("q quit")
        add_step(store, 3)
        terminal.until(r"^ +3 +130\.000 ±0\.025 +\d+\.\d\d +1 +node-a, pid 1001 +30000 ±25 +host late, rank 1$")
        terminal.keys("Space")
        terminal.until("held still")
        add_step(store, 4)
        time.sleep(1)
        assert "host late, rank 1" in terminal.shown() and not re.search(r"^ +4 +130", terminal.shown(), re.M)
        terminal.keys("Space")
        terminal.until(r"^ +4 +130\.000")


@test
def it_fits_every_size_and_follows_it():
    for columns, lines in ((80, 24), (160, 50), (40, 8)):
        with Terminal(top(STORE), columns=columns, lines=lines) as terminal:
            shown = terminal.until("^qpscope top")
            assert max(map(len, shown.splitlines())) <= columns
    with Terminal(top(STORE), columns=100, lines=40) as terminal:
        terminal.until("^flows at")
        terminal.tmux("resize-window", "-x", "60", "-y", "12")
        terminal.until("^flows at", absent=True)
        terminal.tmux("resize-window", "-x", "100", "-y", "40")
        terminal.until("^flows at")


@test
def the_terminal_comes_back_after_a_signal_or_an_error():
    store = make_store("gone.db", SCHEMA, FIXTURE)
    for number in (signal.SIGTERM, signal.SIGINT):
        with Terminal(f"(exec {top(store)})") as terminal:
            terminal.until("q quit")
            shell = int(terminal.tmux("display-message", "-p", "#{pane_pid}"))
            with open(f"/proc/{shell}/task/{shell}/children", encoding="ascii") as file:
                os.kill(int(file.read().split()[0]), number)
            shown = terminal.until("ended=")
            assert "ended=0" in shown and "newest first" not in shown, shown
            terminal.keys("w")
            terminal.until(r"ended=0\n(.*\n)*w")  # what is typed is seen again
    with Terminal(top(store)) as terminal:
        terminal.until("q quit")
        os.rename(store, store + ".moved")
        shown = terminal.until("ended=")
        assert "ended=1" in shown and "there is no store at" in shown, shown


@test
def lines_without_a_terminal():
    shown = text("top", "--for", "1ns", "--interval", "100ms")
    assert "\033" not in shown and "gpu late, rank 2" in shown and "q quit" not in shown, shown
    twice = text("top", "--for", "3s", "--interval", "100ms")
    assert twice.count("qpscope top") >= 2, twice
    one_error(run("top", store=STORE + ".none", code=1), "there is no store")
    run("top", "--interval", "1ms", code=2)


def objects(shown):
    return [json.loads(line) for line in shown.splitlines()]


@test
def ndjson_has_each_step_once():
    looks = objects(text("top", "--json", "--for", "3s", "--interval", "100ms"))
    assert len(looks) >= 2
    for look in looks:
        assert look["schema_version"] == 1 and look["generator"].startswith("qpscope ")
    equal([step["step"] for look in looks for step in look["steps"]], [0, 1, 2])
    equal([step["step"] for step in looks[0]["steps"]], [0, 1])  # the newest one is held back for one look
    share = looks[0]["ranks"][0].pop("cost_share")
    assert abs(share - 100 * 51.1 / 351.2) < 1e-9, share
    equal(looks[0]["ranks"][0], {"rank": 2, "node": "node-a", "on": "node-a, pid 1002", "times_latest": 1, "mean_late_ns": 51200000, "largest_late_ns": 51200000,
                                 "cost_ns": 51100000, "verdict": "gpu late"})
    flow = next(flow for flow in looks[0]["flows"] if flow["rank"] == 0)
    # of flow 1, within the last second that any flow was seen: all that it sent at 1000.012 to 1000.340 s
    expected = rows("SELECT sum(payload_bytes) * 8.0 AS bits FROM message WHERE flow = 1 AND role = 'data'")[0]["bits"]
    equal((flow["bits_per_second"], flow["over_ns"], flow["lqpn"], flow["device"]), (expected, 10**9, 17, "rxe0/1"))
    equal(looks[0]["lost"], as_json("steps")["lost"])


@test
def steps_are_followed():
    store = make_store("followed.db", SCHEMA, FIXTURE)
    follower = subprocess.Popen([COMMAND, "steps", "--follow", "--json", "--interval", "100ms", "--store", store], stdout=subprocess.PIPE,
                                text=True)
    try:
        first = [json.loads(follower.stdout.readline()) for _ in range(3)]
        equal([step["step"] for step in first], [0, 1, 2])
        row = as_json("steps", store=store)["steps"][1]
        equal(first[1], {"schema_version": 1, "generator": first[1]["generator"], **row})
        add_step(store, 3)
        equal(json.loads(follower.stdout.readline())["step"], 3)
    finally:
        follower.kill()
        follower.wait(timeout=60)
    lines = text("steps", "--follow", "--for", "3s", "--interval", "100ms").splitlines()
    equal(lines, ["step 0: 100 ms ±25.0 us; the latest was rank 3 (node-a, pid 1003), by 200 us ±25.0 us",
                  "step 1: 151 ms ±25.0 us; the latest was rank 2 (node-a, pid 1002), by 51.2 ms ±25.0 us; gpu late, rank 2", "step 2: 100 ms ±25.0 us; (evaluation)"])


if __name__ == "__main__":
    main()
