#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""merge_check.py QPSCOPE SCHEMA FIXTURE: qpscope merge --rows, as TAP.

The stores are fixture.sql and what SQL makes another job of it; what is expected of the merged one follows from both by arithmetic.
"""
import os
import sqlite3

from harness import FIXTURE, HERE, SCHEMA, as_json, equal, main, make_store, one_error, run, test, text

# The same things in another job: its communicators, agents, clock (500 s later by CLOCK_REALTIME) are others.
OTHER = """UPDATE communicator SET identity = 'd' || substr(identity, 2);
UPDATE emitter SET boot_id = '00000000000000c' || id;
UPDATE verdict SET candidates = '1, 2' WHERE id = 1;
UPDATE meta SET value = 'bb' WHERE key = 'reference_boot';
UPDATE meta SET value = '1700000500000000000' WHERE key = 'realtime_minus_reference_ns';
"""
PAIR = "INSERT INTO clock_pair VALUES (2, 999000000000, 1700000999000000000, 1700000999000000000, {}, {}, NULL);"
NOT_COPIED = ("meta", "source", "source_rows")
names = iter(range(1000))


def first(after=""):
    return make_store(f"first{next(names)}.db", SCHEMA, FIXTURE, after=PAIR.format(40, 2) + after)


def other(after=""):
    return make_store(f"other{next(names)}.db", SCHEMA, FIXTURE, after=OTHER + PAIR.format(30, 8) + after)


def output():
    return os.path.join(HERE, f"merged{next(names)}.db")


def ask(path, sql):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def tables(path):
    return [name for name, in ask(path, "SELECT name FROM sqlite_schema WHERE type = 'table'") if name not in NOT_COPIED]


def merge(*stores):
    path = output()
    return path, as_json("merge", "--rows", "-o", path, *stores, store=None)["sources"]


@test
def two_jobs_become_one_store():
    one, two = first(), other()
    path, sources = merge(one, two)
    count = "SELECT count(*) FROM {}"
    for table in tables(path):
        equal((table, ask(path, count.format(table))), (table, [(sum(ask(store, count.format(table))[0][0] for store in (one, two)),)]))
    total = sum(ask(one, count.format(table))[0][0] for table in tables(path))
    equal([(source["file"], source["rows"], source["first_rank"], source["earlier_than"]) for source in sources],
          [(one, total, 0, None), (two, total, 4, None)])
    equal((sources[1]["tie"], sources[1]["shift_ns"], sources[1]["bound_ns"]), ("realtime", 500000000000, 40 + 2 + 30 + 8))
    equal(ask(path, "PRAGMA foreign_key_check"), [])
    equal(ask(path, "PRAGMA integrity_check"), [("ok",)])
    equal(ask(path, "SELECT value FROM meta WHERE key = 'ranks_count'"), [("8",)])


@test
def what_a_row_refers_to_is_of_its_own_source():
    path, _ = merge(first(), other())
    whose = ("(SELECT source FROM source_rows WHERE source_rows.name = '{}' AND {} BETWEEN source_rows.first_row AND source_rows.last_row)")
    looked_at = 0
    for table in tables(path):
        for _, _, parent, column, target, *_ in ask(path, f"PRAGMA foreign_key_list({table})"):
            if target != "id" or ask(path, f"SELECT count(*) FROM source_rows WHERE name = '{table}'") == [(0,)]:
                continue
            mine, theirs = whose.format(table, f"{table}.rowid"), whose.format(parent, f'{table}."{column}"')
            found = ask(path, f'SELECT count(*), sum({mine} IS {theirs}) FROM {table} WHERE "{column}" IS NOT NULL')[0]
            equal((table, column, found[0]), (table, column, found[1] or 0))
            looked_at += found[0]
    assert looked_at > 100, looked_at
    # a verdict's rows of evidence are in the table that it names
    for source, first_row, last_row in ask(path, "SELECT source, first_row, last_row FROM verdict_evidence"):
        equal(ask(path, f"SELECT count(*) FROM {source} WHERE rowid IN ({first_row}, {last_row})"), [(len({first_row, last_row}),)])


@test
def ranks_in_words_are_moved_and_nothing_else():
    words = ("ranks 0, 1 and 2 are alike, rank 3, 5 ms later, to ranks 1.5; missing: none; no buffer was seen to be offered by: 2, 3 and 4 more; "
             "4 of 4 ranks asked, 12.0 ms later")
    path, _ = merge(first(), other(f"UPDATE verdict SET evidence = '{words}' WHERE class = 'gpu late';"))
    equal(ask(path, "SELECT evidence FROM verdict WHERE class = 'gpu late' ORDER BY id DESC LIMIT 1"),
          [("ranks 4, 5 and 6 are alike, rank 7, 5 ms later, to ranks 1.5; missing: none; no buffer was seen to be offered by: 6, 7 and 4 more; "
            "4 of 4 ranks asked, 12.0 ms later",)])


@test
def the_readers_show_each_job_as_it_was():
    one, two = first(), other()
    path, _ = merge(one, two)
    shift_ns, before = 500000000000, 4
    alone, together = (as_json("steps", store=store)["steps"] for store in (two, path))
    moved = together[3:]
    equal(len(together), 6)
    for old, new in zip(alone, moved):
        equal((new["start_ns"], new["duration_ns"], new["late_ns"]), (old["start_ns"] + shift_ns, old["duration_ns"], old["late_ns"]))
        equal(new["slowest_rank"], None if old["slowest_rank"] is None else old["slowest_rank"] + before)
    assert moved[0]["step"] > together[2]["step"] + 3, moved  # no run of verdicts goes on from one job to the next
    late = as_json("why", "--step", str(moved[1]["step"]), store=path)
    shown = text("why", "--step", str(moved[1]["step"]), store=path)
    assert "rank 6 held credit from" in shown and "rank 2 held" not in shown, shown
    equal(as_json("why", "--step", "1", store=path)["verdicts"], as_json("why", "--step", "1", store=one)["verdicts"])
    assert late["verdicts"], late
    equal(ask(path, "SELECT rank, candidates FROM verdict WHERE class = 'gpu late' ORDER BY id"), [(2, None), (6, "5, 6")])
    jobs = as_json("jobs", store=path)["stores"][0]["jobs"]
    equal([(job["ranks"], job["steps"]) for job in jobs], [(4, 3), (4, 3)])
    # what is usual is so in the job: each has one slow step
    equal(ask(path, "SELECT count(*), max(usual_ms) - min(usual_ms) FROM slow_steps WHERE verdict IS NOT NULL"), [(2, 0)])
    text("report", "-o", path + ".html", store=path)
    with open(path + ".html", encoding="utf-8") as page:
        assert "rank 6 held credit from" in page.read()


@test
def usual_is_what_is_so_in_the_own_job():
    slow = "UPDATE step SET duration_ns = duration_ns * 10;"
    path, _ = merge(first(), other(slow))
    found = ask(path, "SELECT usual_ms FROM slow_steps ORDER BY step")
    alone = [ask(store, "SELECT usual_ms FROM slow_steps ORDER BY step") for store in (first(), other(slow))]
    equal(found, alone[0] + alone[1])


@test
def clocks_are_tied_by_what_is_best():
    # both heard the agent b2: 0 and +3 s from it to the two references, within 5 us and 7 us, 2 parts in 10^9 apart over no time
    shared = "UPDATE emitter SET boot_id = '00000000000000b2', clock_offset_ns = 3000000000, clock_bound_ns = 7000, " \
             "started_ns = started_ns + 3000000000, last_ns = last_ns + 3000000000 WHERE id = 2;"
    _, sources = merge(first(), other(shared))
    equal((sources[1]["tie"], sources[1]["shift_ns"], sources[1]["bound_ns"]), ("agent", -3000000000, 5000 + 7000))
    _, sources = merge(first(), other("UPDATE meta SET value = '00000000000000aa' WHERE key = 'reference_boot';"
                              "UPDATE past_step SET start_ns = start_ns + 1; UPDATE past_summary SET start_ns = start_ns + 1;"
                              "UPDATE past_verdict SET step_start_ns = step_start_ns + 1;"))
    equal((sources[1]["tie"], sources[1]["shift_ns"], sources[1]["bound_ns"]), ("one clock", 0, 0))
    for missing in ("DELETE FROM meta WHERE key = 'realtime_minus_reference_ns';", "DELETE FROM clock_pair;"):
        path = output()
        one_error(run("merge", "--rows", "-o", path, first(), other(missing), store=None, code=1), "cannot be compared")
        assert not os.path.exists(path)


@test
def stores_of_one_job_are_not_joined():
    half = first("UPDATE meta SET value = 'cc' WHERE key = 'reference_boot';")
    path = output()
    one_error(run("merge", "--rows", "-o", path, first(), half, store=None, code=1), half, "of one job", "qpscope replay")
    assert not os.path.exists(path)
    earlier, later = first(), first("UPDATE emitter SET last_ns = last_ns + 1000000000;")
    for order in ((earlier, later), (later, earlier)):
        path, sources = merge(*order, other())
        equal([source["earlier_than"] for source in sources], [later if store == earlier else None for store in order] + [None])
        equal(ask(path, "SELECT count(*) FROM step"), [(6,)])
    path, sources = merge(earlier, earlier)
    equal((ask(path, "SELECT count(*) FROM step"), sources[1]["rows"]), ([(3,)], 0))
    assert "left out: an earlier state" in text("merge", "--rows", "-o", output(), earlier, later, store=None)


@test
def what_cannot_be_merged_is_refused():
    path, good = output(), first()
    stale = make_store("stale.db", SCHEMA, FIXTURE, after="PRAGMA user_version = 3;")
    cut = other()
    with open(cut, "rb") as whole:
        content = whole.read()
    with open(cut, "wb") as file:
        file.write(content[:len(content) // 2])
    torn = other("DELETE FROM communicator WHERE id = 2;")  # harness: references are not enforced
    merged, _ = merge(first(), other())
    alien = os.path.join(HERE, "alien.db")
    with sqlite3.connect(alien) as database:
        database.execute("CREATE TABLE t (a)")
    for store, words in ((stale, ("schema version 3", "qpscope replay")), (cut, (cut,)), (torn, ("refer to what is not there",)),
                         (merged, ("merged store itself",)), (alien, ("not a qpscope store",)), (SCHEMA, ("no store",)),
                         (os.path.join(HERE, "none.db"), ("no store",))):
        one_error(run("merge", "--rows", "-o", path, good, store, store=None, code=1), *words)
        equal([name for name in os.listdir(HERE) if name.startswith(os.path.basename(path))], [])
    one_error(run("merge", "--rows", "-o", good, good, other(), store=None, code=1), "one of those")
    one_error(run("merge", "--rows", "-o", merged, good, other(), store=None, code=1), "--force")
    equal(as_json("merge", "--rows", "--force", "-o", merged, good, other(), store=None)["file"], merged)


if __name__ == "__main__":
    main()
