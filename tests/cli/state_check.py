#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""state_check.py QPSCOPE SCHEMA FIXTURE: bare qpscope and qpscope jobs, as TAP.

What is expected follows from fixture.sql by arithmetic.
"""
import os
import re

from harness import COMMAND, FIXTURE, HERE, SCHEMA, STORE, as_json, equal, main, make_store, one_error, run, test, text

WIDE = {"COLUMNS": "200"}


def lines_of(shown):
    return dict(re.match(r"^(\S+(?: \S+)?) {2,}(.*)$", line).groups() for line in shown.splitlines())


HANG = "INSERT INTO verdict VALUES (7, NULL, 'hang', 3, NULL, NULL, NULL, 12, 0, 0, 0.9, 'x', NULL);"


@test
def the_present_state_has_ten_lines():
    shown = text(env=WIDE)
    assert len(shown.splitlines()) <= 10, shown
    lines = lines_of(shown)
    assert re.match(r"^nic (not )?running, host (not )?running, correlator (not )?running$", lines["daemons"]), shown
    assert lines["store"].startswith(STORE + ", "), shown
    equal(lines["job"], "4 ranks in 4 processes on 1 node, 3 communicators, 11 queue pairs; qpscope jobs")
    # training steps of 100 and 151.2 ms
    equal(lines["steps"], "3 seen, usually 126 ms, 1 with a verdict; 9 earlier ones without detail")
    equal(lines["last step"], "step 2 (evaluation): 100 ms ±25.0 us")
    equal(lines["worst"], "gpu late, rank 2 (node-a, pid 1002): 51.2 ms ±25.0 us in step 1, confidence 95 %; 1 step with it")
    equal(lines["lost"], "3 gaps, 1 counter of loss, 1 flow without an owner, 1 rank made before qpscope looked, 1 incomplete "
                         "operation; qpscope steps says more")
    equal(lines["next"], "qpscope why --step 1: the evidence")
    for width in ("80", "160"):
        assert max(map(len, text(env={"COLUMNS": width}).splitlines())) <= int(width)


@test
def the_present_state_in_json_equals_what_others_say():
    document = as_json()
    equal([daemon["name"] for daemon in document["daemons"]], ["nic", "host", "correlator"])
    equal(document["store"]["bytes"], os.stat(STORE).st_size)
    equal(document["jobs"], as_json("jobs")["stores"][0]["jobs"])
    equal(document["steps"], {"steps": 3, "usual_ns": 125_600_000, "steps_with_verdict": 1, "past_steps": 9})
    equal((document["last_step"]["step"], document["last_step"]["late_ns"]), (2, None))
    equal((document["worst_verdict"]["class"], document["worst_verdict"]["rank"], document["worst_verdict"]["size_ns"]),
          ("gpu late", 2, 51_200_000))
    for key in ("gaps", "lost", "loss_counters", "withheld"):
        equal(document[key], as_json("steps")[key])


@test
def without_a_store_it_says_what_to_do():
    shown = text(store=None, env={"QPSCOPE_STORE": os.path.join(HERE, "none"), **WIDE})
    lines = lines_of(shown)
    equal(lines["store"], f"none at {HERE}/none")
    assert "qpscope doctor" in lines["next"] or "--store" in lines["next"], shown
    document = as_json(store=None, env={"QPSCOPE_STORE": os.path.join(HERE, "none")})
    equal(document["store"], None)
    one_error(run(store=HERE, code=1), HERE, "no regular file")
    one_error(run("--json", store=HERE, code=1), HERE, "no regular file")
    empty = lines_of(text(store=make_store("empty.db", SCHEMA), env=WIDE))
    equal((empty["lost"], empty["worst"]), ("nothing", "no verdict: nothing stands out"))
    assert "qpscope-host" in empty["next"], empty
    hang = make_store("hang.db", SCHEMA, FIXTURE, after=HANG)
    lines = lines_of(text(store=hang, env=WIDE))
    equal(lines["worst"], "hang, rank 3 (node-a, pid 1003): an operation was begun and does not end")
    assert lines["next"].startswith("qpscope why: "), lines


@test
def the_worst_is_the_one_that_why_shows():
    more = "".join(f"INSERT INTO verdict VALUES ({10 + step}, {step}, 'host late', 1, NULL, NULL, NULL, {1 + 4 * step}, 60000000, 1, 0.5, "
                   "'x', NULL);" for step in (0, 1))
    path = make_store("worst.db", SCHEMA, FIXTURE, after=more)
    equal(as_json(store=path)["worst_verdict"]["step"], as_json("why", store=path)["step"]["step"])
    equal(as_json(store=path)["worst_verdict"]["step"], 1)
    tie = make_store("tie.db", SCHEMA, FIXTURE, after="UPDATE verdict SET size_ns = 60000000; UPDATE step SET late_ns = 90000000 WHERE id = 2; INSERT INTO "
                     "verdict VALUES (12, 2, 'host late', 1, NULL, NULL, NULL, 9, 60000000, 1, 0.5, 'x', NULL);")
    equal([as_json(store=tie)["worst_verdict"]["step"], as_json("why", store=tie)["step"]["step"], as_json("jobs", store=tie)["stores"][0]["jobs"][0]["verdict_step"]],
          [1, 1, 1])  # step 2 is an evaluation


@test
def a_job_is_what_communicators_connect():
    jobs = as_json("jobs")["stores"][0]["jobs"]
    equal(len(jobs), 1)  # ib_write_bw is in no communicator
    equal({key: jobs[0][key] for key in ("job", "name", "slurm_job", "ranks", "processes", "nodes", "communicators", "started_utc", "ended",
                                         "state", "steps", "usual_ns", "steps_with_verdict", "verdict", "verdict_rank", "verdict_step")},
          {"job": 1, "name": "train", "slurm_job": None, "ranks": 4, "processes": 4, "nodes": 1, "communicators": 3,
           # 991 s on the reference clock, 1 700 000 000 s to CLOCK_REALTIME
           "started_utc": "2023-11-14T22:29:51Z", "ended": False, "state": "running", "steps": 3, "usual_ns": 125_600_000, "steps_with_verdict": 1,
           "verdict": "gpu late", "verdict_rank": 2, "verdict_step": 1})
    assert re.search(r"^ +1 +train +4 +1 +3 +11-14 22:29 +running +3 +125\.600 +1 +gpu late, rank 2$", text("jobs"), re.M), text("jobs")
    apart = make_store("apart.db", SCHEMA, FIXTURE, after="DELETE FROM member WHERE communicator = 1;"
                       "UPDATE process SET ended_ns = 1 WHERE id > 2;")
    two = as_json("jobs", store=apart)["stores"][0]["jobs"]
    equal([(job["job"], job["ranks"], job["communicators"], job["ended"], job["verdict"]) for job in two],
          [(1, 2, 1, False, None), (2, 2, 1, True, None)])
    ways = [("UPDATE process SET ended_ns = 1", "ended"), ("UPDATE member SET destroyed_ns = 1", "ended"),
            ("UPDATE member SET destroyed_ns = 1 WHERE communicator = 1", "running"), ("UPDATE emitter SET ended = 1", "recording ended"),
            (HANG, "hangs"), (HANG + "UPDATE emitter SET ended = 1", "hangs"), (HANG + "UPDATE process SET ended_ns = 1", "ended")]
    for index, (change, state) in enumerate(ways):
        job = as_json("jobs", store=make_store(f"state_{index}.db", SCHEMA, FIXTURE, after=change + ";"))["stores"][0]["jobs"][0]
        equal((job["state"], job["ended"]), (state, state == "ended"))
    slurm = make_store("slurm.db", SCHEMA, FIXTURE, after="DELETE FROM member WHERE communicator = 1;"
                       "INSERT INTO process_fact SELECT id, 'slurm_job', 0, '4711', 4 FROM process WHERE id < 5;")
    equal([(job["name"], job["slurm_job"], job["ranks"]) for job in as_json("jobs", store=slurm)["stores"][0]["jobs"]],
          [("slurm 4711", "4711", 4)])


@test
def jobs_of_several_stores():
    empty = make_store("no_job.db", SCHEMA)
    stores = as_json("jobs", STORE, empty, store=None)["stores"]
    equal([(one["store"], len(one["jobs"])) for one in stores], [(STORE, 1), (empty, 0)])
    shown = text("jobs", STORE, empty, store=None)
    assert f"{STORE}:" in shown and "no job yet" in shown, shown
    done = run("jobs", STORE, empty + ".none", store=None, code=1)
    assert "gpu late" in done.stdout and "there is no store" in done.stderr, done
    run("jobs", STORE, code=2)


if __name__ == "__main__":
    main()
