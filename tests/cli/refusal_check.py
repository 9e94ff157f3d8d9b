#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""refusal_check.py QPSCOPE SCHEMA FIXTURE: what qpscope says of what it cannot do, as TAP.

One line an error that says what, where, and what to do; exit code 1 where it could not be done, 2 where it was asked wrongly.
"""
import os
import subprocess

from harness import COMMAND, FIXTURE, HERE, SCHEMA, STORE, equal, main, make_store, one_error, rows, run, test, text

READERS = (["jobs"], ["steps"], ["steps", "--json"], ["why"], ["timeline"], ["qps"], ["report", "-o", "-"], ["export", "perfetto", "-o", "-"],
           ["export", "csv", "-t", "step"], ["query", "SELECT * FROM step"], ["query", "--csv", "SELECT 1"], ["top", "--for", "1ms"],
           ["top", "--json", "--for", "1ms"], [])


def into_full(*arguments):
    with open("/dev/full", "w", encoding="utf-8") as full:
        return subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)


@test
def a_full_disk_is_said_once_with_what_to_do():
    for arguments in [[*reader, "--store", STORE] for reader in READERS] + [["--help"], ["steps", "--help"], ["completion", "bash"], ["version"]]:
        done = into_full(*arguments)
        equal((arguments, done.returncode, done.stderr),
              (arguments, 1, "qpscope: error: cannot write to standard output: No space left on device: make room there, or write elsewhere\n"))
    for arguments in (["report"], ["export", "perfetto"], ["export", "csv", "-t", "step"]):
        one_error(run(*arguments, "-o", "/dev/full", code=1), "cannot write /dev/full: No space left on device: make room")
        one_error(run(*arguments, "-o", "/nowhere/x", code=1), "cannot write /nowhere/x: No such file or directory: make the folder")
        one_error(run(*arguments, "-o", HERE, code=1), f"cannot write {HERE}: Is a directory: name a file")
        one_error(run(*arguments, "-o", "", code=1), "cannot write a file without a name")


@test
def a_store_of_a_newer_schema_needs_a_newer_qpscope():
    newer = make_store("newer.db", SCHEMA, after="PRAGMA user_version = 77;")
    for arguments, store in ((["steps"], newer), (["merge", "--rows", "-o", os.path.join(HERE, "all.db"), newer], None)):
        one_error(run(*arguments, store=store, code=1), newer, "schema version 77", "use the qpscope that came with the correlator")
    assert not os.path.exists(os.path.join(HERE, "all.db"))


@test
def a_path_is_a_path_whatever_is_in_it():
    folder = os.path.join(HERE, "100% a?b#c")
    os.mkdir(folder)
    strange = make_store("100% a?b#c/f.db", SCHEMA, FIXTURE)
    merged = os.path.join(HERE, "merged.db")
    for path in ("/" + STORE, strange, "/" + strange):
        equal(text("steps", store=path), text("steps"))
        text("merge", "--rows", "--force", "-o", merged, path, store=None)
        equal(rows("SELECT count(*) AS steps FROM step", merged), rows("SELECT count(*) AS steps FROM step"))


@test
def what_fails_leaves_what_was_there():
    kept = make_store("kept.db", SCHEMA, FIXTURE)
    bad = make_store("bad.db", SCHEMA, after="PRAGMA user_version = 77;")
    one_error(run("merge", "--rows", "--force", "-o", kept, STORE, bad, store=None, code=1), bad)
    equal(text("steps", store=kept), text("steps"))
    equal([name for name in os.listdir(HERE) if name.startswith("kept.db")], ["kept.db"])


@test
def what_is_asked_wrongly_is_a_usage_error():
    for arguments, words in ((["export", "perfetto", "--add", "x"], "HOST=FILE"), (["export", "perfetto", "--add", "=x"], "HOST=FILE"),
                             (["export", "perfetto", "--add", "x="], "HOST=FILE"), (["qps", "-c", "ab"], "'ab' is neither a number"),
                             (["qps", "-c", "abc"], "'abc'"), (["qps", "-c", "wxyz"], "'wxyz'"), (["qps", "-c", "-1"], "'-1'"),
                             (["qps", "-c", ""], "''"), (["qps", "-r", "nan"], "'nan'"), (["qps", "-r", "99999999999999999999"], "is not so small a number as there can be"),
                             (["why", "-n", "1e3"], "'1e3'"), (["export", "perfetto", "--size", "1"], "at least 4KiB"),
                             (["export", "perfetto", "--size", "99999999999999999999"], "is too big a number"),
                             (["query", "-t", "inf", "SELECT 1"], "'inf'"), (["query", "-t", "99999999999999999999s", "SELECT 1"], "too big")):
        done = run(*arguments, code=2)
        equal((done.stdout, len(done.stderr.splitlines())), ("", 2))
        assert words in done.stderr and "18446744073709551615" not in done.stderr, done.stderr
    for arguments in (["qps", "-c", "2"], ["qps", "-c", "c1aa"], ["qps", "-c", "ffff"]):
        text(*arguments)


@test
def a_pipe_is_not_waited_for():
    pipe = os.path.join(HERE, "pipe")
    os.mkfifo(pipe)
    for arguments in (["replay", pipe], ["merge", "-o", pipe + ".out", pipe]):
        one_error(run(*arguments, store=None, code=1), f"{pipe} is a pipe: a capture is read from a file")
    one_error(run("merge", "--rows", "-o", pipe + ".out", pipe, store=None, code=1), pipe, "no store")
    one_error(run("steps", store=pipe, code=1), pipe, "no regular file")


@test
def a_time_limit_may_be_longer_than_time():
    for limit in ("0s", "18446744073709551615ns"):
        text("query", "--time-limit", limit, "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT max(i) FROM n")


@test
def help_of_one_is_its_help():
    equal(text("help", "qps", store=None), text("qps", "--help", store=None))
    equal(text("help", store=None), text("--help", store=None))
    assert "no subcommand 'qp'" in run("help", "qp", store=None, code=2).stderr


@test
def who_asks_a_dead_agent_is_told_so_once():
    for url in (f"ipc://{HERE}/nobody", "tcp://127.0.0.1:1"):
        one_error(run("follow", "--control", url, store=None, code=1), "nobody takes the request at " + url, "is qpscope-host running")


if __name__ == "__main__":
    main()
