#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the command share: running it, reading what it prints, and TAP.

A test program is called with QPSCOPE SCHEMA FIXTURE: the command, correlator/store/schema.sql, and rows made by hand.
"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

COMMAND, SCHEMA, FIXTURE = map(os.path.abspath, sys.argv[1:4])
HERE = tempfile.mkdtemp(prefix="qpscope-cli-")
STORE = os.path.join(HERE, "fixture.db")
tests = []


def test(function):
    tests.append(function)
    return function


def make_store(name, *scripts, after=""):
    path = os.path.join(HERE, name)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA synchronous = OFF")
        for script in scripts:
            with open(script, encoding="utf-8") as file:
                database.executescript(file.read())
        database.executescript(after)
    database.close()
    return path


def run(*arguments, store=STORE, code=0, env=None, **options):
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    environment.update(env or {})
    line = [COMMAND, *arguments] + (["--store", store] if store else [])
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=60, check=False, **options)
    assert code is None or done.returncode == code, f"{arguments} ended with {done.returncode}: {done.stdout}{done.stderr}"
    if code == 0:
        assert done.stderr == "", done.stderr
    return done


def text(*arguments, **options):
    return run(*arguments, **options).stdout


def as_json(*arguments, **options):
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    document = json.loads(run(*arguments, "--json", **options).stdout, parse_constant=refuse)
    assert document["schema_version"] == 1
    assert document["generator"].startswith("qpscope ")
    return document


def rows(sql, store=STORE):
    database = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    found = [dict(row) for row in database.execute(sql)]
    database.close()
    return found


def one_error(done, *words):
    """One line on stderr that holds the words, and nothing on stdout."""
    assert done.stdout == "", done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0], (word, lines[0])


def equal(found, expected):
    assert found == expected, f"\nfound    {found}\nexpected {expected}"


def main():
    make_store("fixture.db", SCHEMA, FIXTURE)
    print(f"1..{len(tests)}")
    failed = 0
    for number, function in enumerate(tests, 1):
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Exception as error:  # a test that breaks has failed
            failed += 1
            print(f"not ok {number} - {name}")
            print("\n".join("# " + line for line in f"{type(error).__name__}: {error}".splitlines()), flush=True)
    shutil.rmtree(HERE, ignore_errors=True)
    sys.exit(failed > 0)
