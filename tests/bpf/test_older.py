#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A kernel that sets probes one by one and takes its time (older.c), as TAP: test_older.py BUILD. Whatever waits to be
set or taken away, the daemon goes on: events are told at once, requests are heard."""
import json
import re
import subprocess
import sys
import time

from host import Host, check_everything, run_tests

BUILD = sys.argv[1]
HOST = f"{BUILD}/host/qpscope-host"
OLDER = f"{BUILD}/tests/bpf/libolder.so"
SECOND = 1_000_000_000
IN_TIME = 1
# Events are taken every 50 ms; this machine may be busy.
AT_ONCE_NS = SECOND


def start(tree, *options, set_ms=0, **more):
    libraries = (tree.library, tree.verbs, tree.runtime)
    named = [word for library in libraries for word in ("--library", tree.path + library)]
    return Host(HOST, "--root", tree.path, *named, *options,
                environment={"LD_PRELOAD": OLDER, "OLDER_SET_MS": str(set_ms), "ASAN_OPTIONS": "verify_asan_link_order=0"}, **more)


def lateness_ns(host, records):
    """How long after each call its record came, the worst."""
    came = dict(zip(host.lines, host.came_ns))
    return max(came[line] - json.loads(line)["entered_ns"] for line in host.lines if '"record":"call"' in line)


def set_slowly(tree):
    """More than a hundred places, 60 ms each and more. What names a job is there first; a job that runs meanwhile is told
    of as it calls, and a request is heard and done before all are set."""
    control = f"ipc://{tree.path}/control"
    began = time.monotonic()
    host = start(tree, "--control", control, set_ms=60, await_log="a hit of a probe costs")
    program = tree.start("short", *["1"] * 200, wait=True)
    program.go()
    calls = 0

    def call_until(condition, limit_s):
        nonlocal calls
        end = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < end, "".join(host.log)
            program.wait_for("done")
            calls += 1
            time.sleep(0.2)
            program.go()

    call_until(lambda: any('"record":"call"' in line for line in list(host.lines)), 30)
    assert not any("ready" in line for line in host.log), "all were set before a call was told"
    asked = time.monotonic_ns()
    subprocess.run([f"{BUILD}/cli/qpscope", "follow", "--control", control, "--what", "delays", "--for", "300ms"],
                   check=True, stdout=subprocess.DEVNULL)
    call_until(lambda: any('"record":"followed"' in line for line in list(host.lines)), 10)
    assert not any("ready" in line for line in host.log), "all were set before a request was done"
    call_until(lambda: any("ready: all probes are set" in line for line in list(host.log)), 60)
    ready = time.monotonic()
    program.kill()
    second = tree.start("full").finish()  # and then all is as it is elsewhere
    records = host.stop()
    told_s = float(re.search(r"all probes are set, ([\d.]+) s after", "".join(host.log))[1])
    assert abs(told_s - (ready - began)) < 2 and told_s > 6, (told_s, ready - began)
    followed, = [r for r in records.records if r["record"] == "followed"]
    assert followed["end"] == IN_TIME and 0 < followed["from_ns"] - asked < AT_ONCE_NS, (followed, asked)
    late = lateness_ns(host, records)
    assert late < AT_ONCE_NS, late
    return f"{check_everything(records, second, tree)}; set after {told_s:.1f} s, calls told {late / 1e6:.0f} ms late at most"


def taken_away_slowly(tree):
    """A budget that nothing can keep to: all that can be given up is, and while it is taken away no event waits or is lost."""
    host = start(tree, "--probe-time", "1us")
    program = tree.start("pace", "200", "6").finish()
    told, = program.all("paced")
    records = host.stop()
    log = "".join(host.log)
    assert len(re.findall("no longer told: ", log)) == 3, log
    calls = records.calls_of(program.pid)
    assert len(calls) == told["paced"] and records.counters["events_lost_total"] == 0, (len(calls), told)
    assert records.counters["probe_back_offs_total"] == 3
    late = lateness_ns(host, records)
    assert late < AT_ONCE_NS, late
    returned = [call["returned_after_ns"] != 0 for call in sorted(calls, key=lambda call: call["entered_ns"])]
    assert returned[0] and not returned[-1], "returns were told after they had been given up, or never"
    return f"{len(calls)} calls told {late / 1e6:.0f} ms late at most, the returns of {sum(returned)}"



sys.exit(run_tests(HOST, BUILD, [set_slowly, taken_away_slowly], sys.argv[2:]))
