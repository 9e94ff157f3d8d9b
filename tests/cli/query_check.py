#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""query_check.py QPSCOPE SCHEMA FIXTURE: qpscope query, qpscope export csv and ndjson, and the views for people, as TAP.

What is expected are the store's own rows read with Python's sqlite3, or follows from fixture.sql by arithmetic.
"""
import csv
import io
import json
import os
import re
import sqlite3
import subprocess

from harness import (COMMAND, FIXTURE, HERE, SCHEMA, STORE, as_json, equal, main, make_store, one_error, rows, run, test,
                     text)


def lines_of(shown):
    return [json.loads(line) for line in shown.splitlines()]


def names(store=STORE):
    return [row["name"] for row in rows("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') "
                                        "AND name NOT GLOB 'sqlite_*' ORDER BY name", store)]


def as_csv(value):
    return "" if value is None else str(value)


@test
def every_table_and_view_is_what_sqlite_reads():
    assert len(names()) > 30, names()
    for name in names():
        expected = rows(f"SELECT * FROM {name}")
        document = as_json("query", f"SELECT * FROM {name}")
        equal(document["rows"], expected)
        equal(lines_of(text("query", "--ndjson", f"SELECT * FROM {name}")), expected)
        shown = text("query", "--csv", f"SELECT * FROM {name}")
        found = list(csv.reader(io.StringIO(shown)))
        equal(found[0], document["columns"])
        for line, row in zip(found[1:], expected, strict=True):
            for field, value in zip(line, row.values(), strict=True):
                assert field == as_csv(value) or float(field) == value, (name, field, value)


@test
def a_table_for_people_is_aligned_and_says_what_is_not_known():
    shown = text("query", "SELECT id, class, rank, device, confidence FROM verdict").splitlines()
    assert re.match(r"^id +class +rank +device +confidence$", shown[0]), shown
    assert re.match(r"^ 1 +gpu late +2 +- +0.95$", shown[1]), shown
    equal(text("query", "SELECT id FROM verdict WHERE id = 9"), "id\n")


@test
def nothing_of_a_table_is_cut():
    sql = "SELECT *, 'a' || hex(zeroblob(80)) AS long FROM slow_steps ORDER BY step"
    expected = rows(sql)
    names = list(expected[0])
    lines = text("query", sql).splitlines()  # no terminal, and nobody says how wide: as wide as it is
    equal((lines[0].split(), len(lines)), (names, 1 + len(expected)))
    assert "…" not in "".join(lines) and all("a" + "0" * 160 in line for line in lines[1:]), lines
    blocks = text("query", sql, env={"COLUMNS": "80"}).rstrip("\n").split("\n\n")  # narrow: a line a column
    equal([[line.split()[0] for line in block.splitlines()] for block in blocks], [names] * len(expected))
    for block, row in zip(blocks, expected):
        assert block.splitlines()[-1] == "long" + " " * (max(map(len, names)) - 2) + row["long"], block
    assert len(text("query", "SELECT * FROM slow_steps LIMIT 0", env={"COLUMNS": "20"}).split()) == len(names) - 1


@test
def csv_quotes_and_tells_nothing_from_an_empty_text():
    odd = "SELECT 'a,b' AS \"x,y\", '' AS e, NULL AS n, 'q\"r' AS q, 'l' || char(10) || 'm' AS l, 0.1 AS r, 1 AS e"
    equal(text("query", "--csv", odd), '"x,y",e,n,q,l,r,e_2\n"a,b","",,"q""r","l\nm",0.1,1\n')
    equal(lines_of(text("query", "--ndjson", odd)),
          [{"x,y": "a,b", "e": "", "n": None, "q": 'q"r', "l": "l\nm", "r": 0.1, "e_2": 1}])


@test
def the_query_comes_from_standard_input_too():
    def ask(sql):
        return subprocess.run([COMMAND, "query", "--store", STORE], input=sql, capture_output=True, timeout=60, check=False)

    equal(ask(b"SELECT count(*) AS n FROM step;\n-- of all\n").stdout, b"n\n3\n")
    for sql, words in ((b"", b"empty"), (b"SELECT 1\0", b"zero byte"), (b" " * (1 << 20), b"mebibyte")):
        done = ask(sql)
        assert done.returncode == 1 and words in done.stderr, (sql[:20], done)


@test
def a_store_is_only_read():
    with open(STORE, "rb") as file:
        before = file.read()
    other = os.path.join(HERE, "other-file")
    for sql in ("DELETE FROM step", "UPDATE step SET id = 9", "DROP TABLE step", "INSERT INTO meta VALUES ('a', 'b')",
                "CREATE TABLE t (a)", "CREATE TEMP TABLE t (a)", f"VACUUM INTO '{other}'", f"ATTACH '{other}' AS o", "COMMIT",
                "PRAGMA user_version = 9", "PRAGMA journal_mode = DELETE", "PRAGMA writable_schema = 1", "REINDEX",
                "UPDATE sqlite_master SET sql = ''", "SELECT load_extension('x')", "WITH a AS (SELECT 1) DELETE FROM step"):
        one_error(run("query", sql, code=1), "the query is ")
        one_error(run("query", "--json", sql, code=1), "the query is ")
    assert not os.path.exists(other)
    with open(STORE, "rb") as file:
        equal(file.read(), before)
    for sql in ("PRAGMA table_info(step)", "PRAGMA user_version", "EXPLAIN SELECT 1", "VALUES (1)",
                "SELECT name FROM pragma_table_info('step')", "WITH a AS (SELECT 1) SELECT * FROM a"):
        assert text("query", sql) != "", sql


@test
def wrong_queries_are_one_clear_line():
    one_error(run("query", "SELECT nix FROM step", code=1), "the query is wrong", "no such column: nix")
    one_error(run("query", "SELECT 1; SELECT 2", code=1), "more than one statement")
    one_error(run("query", " -- nothing", code=1), "empty")
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    one_error(run("query", "--time-limit", "200ms", endless, code=1), "longer than 200 ms", "--time-limit")
    for arguments in (["query", "--json", "--csv", "SELECT 1"], ["query", "SELECT", "1"]):
        assert "--help" in run(*arguments, code=2).stderr


@test
def a_closed_pipe_ends_it_quietly():
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    for option in ("--csv", "--ndjson"):
        done = subprocess.run(["bash", "-c", f"'{COMMAND}' query {option} --store '{STORE}' '{endless}' | head -n 2"],
                              capture_output=True, text=True, timeout=60, check=True)
        equal((done.stderr, len(done.stdout.splitlines())), ("", 2))


@test
def tables_are_exported_as_files():
    for form, read in (("csv", lambda shown: len(list(csv.reader(io.StringIO(shown)))) - 1), ("ndjson", lambda shown: len(lines_of(shown)))):
        folder = os.path.join(HERE, "all-" + form)
        document = as_json("export", form, "-o", folder)
        equal([file["table"] for file in document["files"]], names())
        for file in document["files"]:
            equal(file["file"], os.path.join(folder, f"{file['table']}.{form}"))
            with open(file["file"], encoding="utf-8", newline="") as opened:
                shown = opened.read()
            equal(file["rows"], rows(f"SELECT count(*) AS n FROM {file['table']}")[0]["n"])
            equal(read(shown), file["rows"])
            option = "--" + form
            equal(shown, run("query", option, f"SELECT * FROM {file['table']}").stdout)
            equal(shown, text("export", form, "--table", file["table"]))
    path = os.path.join(HERE, "one.csv")
    equal(text("export", "csv", "-t", "step", "-o", path), f"{path}: 3 rows of step\n")


@test
def what_cannot_be_exported_is_refused():
    one_error(run("export", "csv", "--table", "nix", code=1), "no table or view 'nix'")
    one_error(run("export", "csv", "-t", "step", "-o", "/nowhere/x", code=1), "/nowhere/x")
    one_error(run("export", "csv", "-t", "step", "-o", "/dev/full", code=1), "/dev/full", "No space left")
    one_error(run("export", "csv", "-o", STORE, code=1), STORE, "folder")
    for arguments in (["xml"], ["csv", "-o", "-"], ["csv", "--step", "1"], ["perfetto", "--table", "step"],
                      ["csv", "--json", "--table", "step"], ["csv", "ndjson"]):
        assert "--help" in run("export", *arguments, code=2).stderr, arguments


@test
def the_views_have_the_columns_that_the_documentation_names():
    with open(os.path.join(os.path.dirname(SCHEMA), "../../doc/store.md"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    for view in ("slow_steps", "late_ranks", "flow_windows", "queue_pair_map"):
        line = next(line for line in lines if line.startswith(f"| `{view}` |"))
        equal(re.findall(r"`(\w+)`", line.split("|")[3]), as_json("query", f"SELECT * FROM {view}")["columns"])


@test
def the_picture_has_all_references():
    with open(os.path.join(os.path.dirname(SCHEMA), "../../doc/store.md"), encoding="utf-8") as file:
        page = file.read()
    drawn = re.findall(r"^    (\w+) (\|[|o])--o\{ (\w+) : (\w+)$", page, re.M)
    expected = []
    for row in rows("SELECT m.name, f.\"table\" AS other, f.\"from\" AS field FROM sqlite_schema AS m, pragma_foreign_key_list(m.name) AS f "
                    "WHERE m.type = 'table'"):
        column = rows(f"SELECT \"notnull\" OR pk AS needed FROM pragma_table_info('{row['name']}') WHERE name = '{row['field']}'")[0]
        expected.append((row["other"], "||" if column["needed"] else "|o", row["name"], row["field"]))
    equal(sorted(drawn), sorted(expected))
    assert f"now {as_json('version', store=None)['store_schema']}, rises" in page


@test
def slow_steps_are_those_with_a_verdict_or_longer_than_usual():
    # Of the two training steps 0 is partial, so 1 is what is usual of them; it has the verdict.
    found = rows("SELECT * FROM slow_steps")
    equal(len(found), 1)
    equal({key: found[0][key] for key in ("step", "duration_ms", "usual_ms", "longer_ms", "bound_ms", "verdict", "rank", "size_ms",
                                          "verdicts", "slowest_rank", "late_us", "late_bound_us", "incomplete")},
          {"step": 1, "duration_ms": 151.2, "usual_ms": 151.2, "longer_ms": 0, "bound_ms": 0.025, "verdict": "gpu late", "rank": 2,
           "size_ms": 51.2, "verdicts": 1, "slowest_rank": 2, "late_us": 51200, "late_bound_us": 25, "incomplete": 0})
    # 1000 s + 0.1 s on the reference clock, and 1 700 000 000 s to CLOCK_REALTIME (2023-11-14T22:13:20Z)
    equal(found[0]["started_utc"], "2023-11-14T22:30:00.100Z")
    steps = "".join(f"INSERT INTO step VALUES ({i}, {i}000000000, {i}000000000 + {length}, {length}, 1, 0, 0, 0, NULL, NULL, NULL, "
                    "NULL, 'training');" for i, length in enumerate([100, 100, 102, 104, 100, 103]))
    path = make_store("slower.db", SCHEMA, after=steps)
    # the median of 100 100 100 102 103 104 is 101: 104 is longer than that by 2.97 %, so none
    equal(rows("SELECT step FROM slow_steps", path), [])
    path = make_store("slower2.db", SCHEMA, after=steps + "UPDATE step SET duration_ns = 110 WHERE id = 3;")
    equal(rows("SELECT step, started_utc, usual_ms * 1e6 AS usual_ns, verdict, verdicts FROM slow_steps", path),
          [{"step": 3, "started_utc": None, "usual_ns": 101.0, "verdict": None, "verdicts": 0}])


@test
def late_ranks_are_the_rank_operations_with_their_places():
    expected = rows("SELECT o.step, o.place, r.rank, r.late_ns FROM rank_operation AS r JOIN operation AS o ON o.id = r.operation "
                    "WHERE r.late_ns IS NOT NULL ORDER BY r.late_ns DESC")
    found = rows("SELECT * FROM late_ranks")
    equal([(row["step"], row["place"], row["rank"], row["late_us"] * 1000) for row in found], [tuple(row.values()) for row in expected])
    equal({key: found[0][key] for key in ("step", "rank", "node", "pid", "kind", "communicator", "late_us", "step_cost_us")},
          {"step": 1, "rank": 2, "node": "node-a", "pid": 1002, "kind": "AllReduce", "communicator": 1, "late_us": 51200,
           "step_cost_us": 51100})


@test
def flow_windows_have_rates():
    found = rows("SELECT * FROM flow_windows")
    equal([(row["start_ns"], row["length_us"], row["wire_gbit_per_s"], row["wire_bytes"]) for row in found],
          [(1000012000000, 8, 41.0, 41000), (1000012008000, 8, 20.5, 20500), (1000012032000, 8, 8.2, 8200)])
    equal({key: found[0][key] for key in ("source_rank", "destination_rank", "communicator", "device", "lqpn", "port", "vantage")},
          {"source_rank": 1, "destination_rank": 2, "communicator": 1, "device": "rxe1/1", "lqpn": 18, "port": "far1", "vantage": "tx"})


@test
def the_queue_pair_map_has_both_ends():
    found = {row["queue_pair"]: row for row in rows("SELECT * FROM queue_pair_map")}
    equal(len(found), rows("SELECT count(*) AS n FROM queue_pair")[0]["n"])
    equal({key: found[1][key] for key in ("node", "device", "lqpn", "lqpn_hex", "pid", "comm", "rank", "peer_rank", "rqpn", "peer_node",
                                          "peer_device", "channel", "sent_bytes")},
          {"node": "node-a", "device": "rxe0/1", "lqpn": 17, "lqpn_hex": "0x000011", "pid": 1000, "comm": "train", "rank": 0,
           "peer_rank": 1, "rqpn": 33, "peer_node": "node-a", "peer_device": "rxe1/1", "channel": 1, "sent_bytes": 1048576})
    equal((found[10]["rank"], found[10]["communicator"], found[10]["role"], found[10]["peer_device"]), (None, None, "foreign", None))
    for row in as_json("qps", "--all")["queue_pairs"]:
        mine = next(pair for pair in found.values() if pair["lqpn"] == row["lqpn"] and pair["device"] == f"{row['device']}/{row['port']}")
        equal((mine["rank"], mine["role"], mine["sent_bytes"], mine["pid"]), (row["rank"], row["role"], row["payload_bytes"], row["pid"]))


@test
def versions_are_those_of_the_store():
    document = as_json("version", store=None)
    with sqlite3.connect(STORE) as database:
        equal(document["store_schema"], database.execute("PRAGMA user_version").fetchone()[0])
    assert re.search(rf"^ +schema of the store +version {document['store_schema']}$", text("version", store=None), re.M)


if __name__ == "__main__":
    assert FIXTURE
    main()
