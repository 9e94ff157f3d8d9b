#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""command_check.py QPSCOPE SCHEMA FIXTURE: runs qpscope on stores made by hand and prints TAP.

What is expected follows from fixture.sql by arithmetic, or from the store's own rows read with Python's sqlite3.
"""
import json
import os
import pty
import re
import shutil
import sqlite3
import subprocess
import tarfile

import perfetto_check
from harness import (COMMAND, FIXTURE, HERE, SCHEMA, STORE, as_json, equal, main, make_store, one_error, rows, run, test,
                     text)


@test
def steps_json_equals_the_rows():
    document = as_json("steps")
    for shown, row in zip(document["steps"], rows("SELECT * FROM step ORDER BY id"), strict=True):
        equal(shown["step"], row.pop("id"))
        row["partial"] = bool(row["partial"])
        equal({key: shown[key] for key in row}, row)
    equal([step["verdict"] for step in document["steps"]], [None, "gpu late", None])
    equal(document["steps"][1]["duration_ns"], 100_000_000 + 51_200_000)
    equal(document["past"], {"steps": 9, "with_verdict": 2, "start_ns": 999_100_000_000, "end_ns": 1_000_000_000_000})
    equal(len(document["gaps"]), 3)
    equal(document["lost"], {"gaps": 3, "unattributed_flows": 1, "unattributed_bytes": 65536, "late_members": 1,
                             "incomplete_operations": 1, "clocks_unknown": 0, "clocks_contradicted": None, "clock_cuts": 0, "verdicts_withheld": None})
    equal(document["loss_counters"], [{"emitter": "host", "instance": "job", "port": 0, "name": "calls_missed_total",
                                       "total": 3}])
    assert STORE not in json.dumps(document) and HERE not in json.dumps(document)


@test
def steps_text_shows_durations_lateness_and_loss():
    lines = text("steps").splitlines()
    assert re.match(r"^ +1 +22:30:00\.100 +151\.200 ±0\.025 +4 +0 +2 +51200 ±25 +gpu late, rank 2$", lines[2]), lines[2]
    assert re.match(r"^ +2 +22:30:00\.251 +100\.000 ±0\.025 +4 +1 +- +- +\(evaluation\)$", lines[3]), lines[3]
    wide = text("steps", env={"COLUMNS": "160"}).splitlines()[2]
    assert re.match(r"^ +1 +22:30:00\.100 +151\.200 ±0\.025 +4 +0 +2 +node-a, pid 1002 +51200 ±25 +0: AllReduce +gpu late, rank 2$", wide), wide
    footer = "\n".join(lines[4:])
    for words in ("steps up to 0 are partial", "9 earlier steps, 2 of them with a verdict, are kept without their detail", "ring full: 12 events", "batches lost: 5 batches, 2 gaps of 150 ms",
                  "1 flow is unattributed: 64.0 KiB", "1 operation is incomplete", "calls_missed_total 3",
                  "1 communicator rank was made before"):
        assert words in footer, (words, footer)


@test
def long_lines_fit_the_width():
    for arguments in (["steps"], ["why"], ["why", "--step", "2"], ["timeline"], ["qps"], ["qps", "--all"]):
        for width in (None, 100, 60, 40):
            shown = text(*arguments, env={"COLUMNS": str(width)} if width else None)
            widest = max(shown.splitlines(), key=len)
            assert len(widest) <= (width or 100), (arguments, width, widest)
    narrow = text("steps", env={"COLUMNS": "40"})
    assert "columns left out" in narrow, narrow


@test
def why_names_the_worst_step_and_its_rank():
    shown = text("why")
    flat = " ".join(shown.split())
    for words in ("step 1 took 151 ms ±25.0 us",
                  "gpu late: rank 2 (node-a, pid 1002), 51.2 ms ±25.0 us, in operation 0 of the step (AllReduce on communicator 1), "
                  "confidence 95 %", "evidence: rank 2 held credit", "AllReduce of 1.00 MiB",
                  "had rank 2 added no more than is usual, the step would have taken 100 ms: 51.1 ms (34 %) less"):
        assert words in flat, (words, shown)
    assert re.search(r"^gpu late +rank 2 +node-a, pid 1002 +1 of 3 +51\.200 +51\.200$", shown, re.M), shown
    # rank 2: enqueued 0.2 ms after rank 0, credit 1 ms later, data 51.1 + 1 ms after that
    assert re.search(r"^ +2 +node-a, pid 1002 +0\.200 +1\.200 +53\.300 +(53\.300 +)?81\.200 +51\.200 +gpu +complete$", shown, re.M)
    assert re.search(r"^ +1 +node-a, pid 1001 +0\.100 +1\.100 +≤2\.100 ", shown, re.M), shown
    # of its parts of 63.5, 27.7, 0.7 and 59.3 ms one is below a hundredth of the step
    assert re.search(r"^ +0\.000 +63\.500 +rank 2, on its way to AllReduce \(operation 0\)$", shown, re.M), shown
    assert re.search(r"^ +63\.500 +27\.700 +AllReduce \(operation 0\) under way, last at rank 3$", shown, re.M), shown
    assert not re.search(r"^ +91\.200 ", shown, re.M), shown


@test
def why_json_equals_the_rows():
    document = as_json("why")
    equal(document["step"]["step"], 1)
    equal(document["operation"]["operation"], 5)
    equal(document["summary"], [{"class": "gpu late", "rank": 2, "candidates": None, "peer_rank": None, "device": None, "steps": 1,
                                 "steps_total": 3, "median_ns": 51200000, "largest_ns": 51200000}])
    for shown, row in zip(document["ranks"], rows("SELECT * FROM rank_operation WHERE operation = 5 ORDER BY rank"),
                          strict=True):
        row["gpu_ready_known"] = bool(row["gpu_ready_known"])
        equal((shown.pop("host"), shown.pop("gpu")), ("node-a", "0"))
        equal(shown, {key: row[key] for key in shown})
    verdict = rows("SELECT * FROM verdict")[0]
    equal({key: document["verdicts"][0][key] for key in ("class", "rank", "size_ns", "bound_ns", "evidence")},
          {key: verdict[key] for key in ("class", "rank", "size_ns", "bound_ns", "evidence")})
    equal(document["gaps"], [])
    equal(document["costs"][0], {"rank": 2, "cost_ns": 51100000})
    equal(document["critical_path"], rows("SELECT place, part, rank, operation, from_ns, to_ns FROM critical_path ORDER BY place"))


@test
def a_rank_is_named_by_its_gpu_where_that_tells_it_apart():
    def names(change):
        path = make_store("gpus.db", SCHEMA, FIXTURE, after=change)
        found = re.findall(r"^ +\d +node-a, (.*?)  ", text("why", store=path), re.M)
        os.remove(path)
        return found

    equal(names(""), [f"pid 100{rank}" for rank in range(4)])  # each counts its own from 0
    equal(names("UPDATE member SET cuda_device = rank;"), [f"GPU {rank}" for rank in range(4)])
    equal(names("UPDATE member SET cuda_device = NULL WHERE rank = 3; UPDATE member SET cuda_device = rank WHERE rank < 3;"), ["GPU 0", "GPU 1", "GPU 2", "pid 1003"])
    addresses = ", ".join(f"({process}, 'cuda_device', 0, '0000:{address}', 12)" for process, address in ((1, "3f:00.0"), (2, "40:00.0"), (3, "40:00.0")))
    equal(names(f"INSERT INTO process_fact VALUES {addresses};"), ["GPU 3f:00.0", "pid 1001", "pid 1002", "GPU 0"])  # two share one


@test
def why_without_a_verdict_says_so():
    shown = text("why", "--step", "0")
    assert "no verdict: the latest was rank 3 (node-a, pid 1003), by 200 us ±25.0 us" in shown, shown
    assert "something of it may have been cut out of the memory" in " ".join(shown.split()) and "clocks' error" not in shown
    vague = make_store("vague.db", SCHEMA, FIXTURE, after="UPDATE step SET late_bound_ns = 300000 WHERE id = 0;")
    shown = " ".join(text("why", "--step", "0", store=vague).split())
    assert "by 200 us ±300 us, which is no more than what the clocks' error can make" in shown, shown
    unknown = make_store("unknown.db", SCHEMA, FIXTURE, after="UPDATE step SET late_bound_ns = NULL WHERE id = 0;")
    assert "by 200 us; its error bound is not known" in text("why", "--step", "0", store=unknown)
    shown = text("why", "--step", "2")
    assert "no verdict: no rank's lateness is known" in shown, shown
    assert "lost during this step:" in shown and "12 events" in shown, shown
    equal(as_json("why", "--step", "2")["verdicts"], [])
    equal(as_json("why", "--step", "2")["operation"], None)


@test
def several_candidates_are_all_named():
    more = "".join(f"INSERT INTO verdict VALUES ({10 + step}, {step}, 'gpu late', NULL, '0, 1', NULL, NULL, {1 + 4 * step}, "
                   f"90000000, 1, 0.5, 'x', NULL);" for step in range(3))
    path = make_store("candidates.db", SCHEMA, FIXTURE, after=more)
    equal(as_json("why", store=path)["summary"][0],
          {"class": "gpu late", "rank": None, "candidates": "0, 1", "peer_rank": None, "device": None, "steps": 3,
           "steps_total": 3, "median_ns": 90_000_000, "largest_ns": 90_000_000})
    assert re.search(r"^gpu late +one of ranks 0, 1 +- +3 of 3 ", text("why", store=path), re.M)
    equal(as_json("steps", store=path)["verdicts"][0]["candidates"], "0, 1")
    assert "gpu late, one of ranks 0, 1" in text("steps", store=path)


@test
def why_shows_medians_over_steps():
    more = "".join(
        f"INSERT INTO verdict VALUES ({10 + step}, {step}, 'network slow', 1, NULL, 2, 'rxe1/1', {1 + 4 * step}, {size}, 1, "
        f"0.5, 'x', NULL);" for step, size in ((0, 70_000_000), (1, 10_000_000), (2, 40_000_000)))
    path = make_store("median.db", SCHEMA, FIXTURE, after=more)
    equal(as_json("why", store=path)["summary"][0],
          {"class": "network slow", "rank": 1, "candidates": None, "peer_rank": 2, "device": "rxe1/1", "steps": 3, "steps_total": 3,
           "median_ns": 40_000_000, "largest_ns": 70_000_000})
    shown = text("why", store=path)
    assert re.search(r"^network slow +link rank 1 to rank 2 \(rxe1/1\) +3 of 3 +40\.000 +70\.000$", shown, re.M), shown
    assert "network slow: link rank 1 (node-a, pid 1001) to rank 2 (node-a, pid 1002), rxe1/1, 70.0 ms ±1 ns, in operation 0" in " ".join(shown.split()), shown
    assert "step 0 took" in shown


@test
def why_shows_what_was_counted_beside_the_gap():
    # Pause of 30 ms in a transfer of 50 ms, and 4 frames sent again where 0.5 would be usual.
    more = """INSERT INTO verdict VALUES (2, 0, 'pausing', 1, NULL, 2, 'rxe1/1', 1, 40000000, 1, 0.5, 'x', NULL);
        INSERT INTO port_counter VALUES (7, 2, 'pause_received_ns', 3, 1000000000000, 1000050000000, 30000000, 30000000, 0);
        INSERT INTO flow_event VALUES (9, 2, 'retransmitted_frames', 1000000000000, 1000050000000, 4);
        INSERT INTO verdict_evidence VALUES
            (2, 0, 'flow_event', NULL, 2, 'flow', 'retransmitted_frames', NULL, 1000000000000, 1000050000000, 4, 0.5, NULL, 9, 9, NULL, NULL),
            (2, 1, 'port_counter', 2, NULL, 'sender', 'pause_received_ns', 3, 1000000000000, 1000050000000, 30000000, 0, 0.6, 7, 8, NULL, NULL);
        INSERT INTO withheld VALUES ('congested', 2, 'part', 'answers that come to other queues');"""
    path = make_store("beside.db", SCHEMA, FIXTURE, after=more)
    shown = text("why", "--step", "0", store=path)
    flat = " ".join(shown.split())
    assert "the link's sender was told to pause" in flat, shown
    assert ("counted beside pausing: pause_received_ns of priority 3 at port far1 (sender): 30.000 ms in 50.0 ms (60 %), "
            "usual 0.000 ms; rows: port_counter 7-8") in flat, shown
    assert ("counted beside pausing, not decisive: retransmitted_frames at flow 2 (flow): 4 in 50.0 ms, usual 0.5; "
            "rows: flow_event 9") in flat, shown
    numbers = as_json("why", "--step", "0", store=path)["evidence"]
    equal([(n["decides"], n["metric"], n["amount"], n["usual"], n["share"], n["first_row"], n["last_row"], n["port_name"], n["flow"])
           for n in numbers], [(True, "pause_received_ns", 30000000, 0, 0.6, 7, 8, "far1", None),
                               (False, "retransmitted_frames", 4, 0.5, None, 9, 9, None, 2)])
    equal(as_json("why")["evidence"], [])
    equal(as_json("steps", store=path)["withheld"],
          [{"class": "congested", "port": 2, "port_name": "far1", "sight": "part", "missing": "answers that come to other queues"}])
    assert "port far1: congested is given only where it shows: answers that come to other queues not seen" in " ".join(
        text("steps", store=path).split())


@test
def why_names_the_cause_of_a_late_host():
    # 80 ms without a CPU in the 100 ms before an enqueue, where 2 ms are usual; 30 major faults beside it.
    more = """INSERT INTO verdict VALUES (2, 0, 'host late: no cpu', 1, NULL, NULL, NULL, 1, 75000000, 1000, 0.9, 'x',
            'on node-a: qpscope follow --pid 7 --what delays');
        INSERT INTO verdict_evidence VALUES
            (2, 1, 'host_delay', NULL, NULL, 'caller', 'run_queue_ns', NULL, 1000000000000, 1000100000000, 80000000, 2000000, 0.8, 4, 5, 1, 71),
            (2, 0, 'host_delay', NULL, NULL, 'caller', 'major_faults', NULL, 1000000000000, 1000100000000, 30, 1, NULL, 4, 4, 1, 71),
            (2, 0, 'post', NULL, NULL, 'library', 'post_to_wire_ns', NULL, 1000000000000, 1000100000000, 3000000, NULL, 0.03, 9, 9, 1, NULL);"""
    path = make_store("late_host.db", SCHEMA, FIXTURE, after=more)
    flat = " ".join(text("why", "--step", "0", store=path).split())
    assert "host late: no cpu: rank 1 (node-a, pid 1001), 75.0 ms ±1.00 us, in operation 0 of the step" in flat, flat
    assert "it means: its host was late to give the operation: the calling thread could have run, but waited for a CPU" in flat, flat
    assert "what would tell more, if it goes on: on node-a: qpscope follow --pid 7 --what delays" in flat, flat
    assert ("counted beside host late: no cpu: run_queue_ns at rank 1, thread 71 (caller): 80.000 ms in 100 ms (80 %), "
            "usual 2.000 ms; rows: host_delay 4-5") in flat, flat
    assert "not decisive: major_faults at rank 1, thread 71 (caller): 30 in 100 ms, usual 1; rows: host_delay 4" in flat, flat
    assert "not decisive: post_to_wire_ns at rank 1 (library): 3.000 ms in 100 ms (3 %); rows: post 9" in flat, flat
    document = as_json("why", "--step", "0", store=path)
    equal(document["verdicts"][0]["more"], "on node-a: qpscope follow --pid 7 --what delays")
    equal([(n["source"], n["metric"], n["amount"], n["usual"], n["rank"], n["tid"], n["decides"]) for n in document["evidence"]],
          [("host_delay", "run_queue_ns", 80000000, 2000000, 1, 71, True), ("host_delay", "major_faults", 30, 1, 1, 71, False),
           ("post", "post_to_wire_ns", 3000000, None, 1, None, False)])
    assert "host late: no cpu, rank 1" in text("steps", store=path, env={"COLUMNS": "200"})
    equal(as_json("steps", store=path)["steps"][0]["verdict"], "host late: no cpu")


@test
def why_tells_what_hangs_before_all_else():
    # 3 s without an end; the first failure is of rank 3.
    more = """INSERT INTO verdict VALUES (9, NULL, 'hang', 3, NULL, NULL, NULL, 12, 3000000000, 0, 0.7, 'who is missing', NULL);
        INSERT INTO failure VALUES (7, 1000200000000, 'queue pair error', 1, 1, NULL, 3, NULL, NULL);
        INSERT INTO verdict_evidence VALUES
            (9, 0, 'failure', NULL, NULL, 'library', 'failures', NULL, 1000100000000, 1003100000000, 1, NULL, NULL, 7, 7, 3, NULL);"""
    path = make_store("hang.db", SCHEMA, FIXTURE, after=more)
    shown = text("why", store=path)
    flat = " ".join(shown.split())
    assert shown.startswith("hang: rank 3 (node-a, pid 1003), 3.00 s"), shown
    assert "in step 2, which has not ended" in flat and "evidence: who is missing" in flat, shown
    assert "not decisive: failures at rank 3 (library): 1 in 3.00 s; rows: failure 7" in flat, shown
    assert flat.index("hang:") < flat.index("gpu late"), shown
    assert "hang" not in text("why", "--step", "1", store=path).split("lost")[0], shown
    equal([(h["class"], h["rank"], h["operation"], h["size_ns"]) for h in as_json("why", store=path)["hangs"]],
          [("hang", 3, 12, 3000000000)])
    equal([row["class"] for row in as_json("why", store=path)["summary"]], ["gpu late"])
    equal(as_json("why")["hangs"], [])
    shown = " ".join(text("steps", store=path).split())
    assert "HANG: AllReduce on communicator 1, begun at 2023-11-14T22:30:00.263200Z, has not ended for 3.00 s, waiting for rank 3 (node-a, pid 1003)" in shown, shown
    assert "(evaluation) (hangs: it has not ended)" in shown, shown
    assert "HANG" not in text("steps") and "hangs" not in text("steps")


@test
def why_puts_ranks_that_used_sockets_together():
    more = """INSERT INTO verdict VALUES (2, 0, 'fallback to sockets', NULL, NULL, NULL, NULL, 1, 0, 0, 0.8, 'x', NULL);"""
    more += "".join(f"""INSERT INTO verdict_evidence VALUES (2, 1, 'transport', NULL, NULL, 'library', 'tcp_bytes', NULL,
        1000000000000, 1000100000000, {1000 + rank}, NULL, NULL, {2 + rank}, {2 + rank}, {rank}, NULL);""" for rank in range(3))
    path = make_store("sockets.db", SCHEMA, FIXTURE, after=more)
    flat = " ".join(text("why", "--step", "0", store=path).split())
    assert "fallback to sockets: all ranks, cost not known" in flat, flat
    assert "tcp_bytes at 3 ranks (library): 3003 in 100 ms; rows: transport 2, 3, 4" in flat, flat
    assert "fallback to sockets, all ranks" in text("steps", store=path, env={"COLUMNS": "200"})


@test
def why_lists_the_first_culprits_and_counts_the_rest():
    many = "".join(f"INSERT INTO verdict VALUES ({20 + n}, 0, 'host late', {n}, NULL, NULL, NULL, 1, {n + 1}, 1, 0.5, 'x', NULL);"
                   for n in range(20))
    path = make_store("culprits.db", SCHEMA, FIXTURE, after=many)
    shown = text("why", store=path).split("\n\n")[0].splitlines()
    equal(len(shown), 1 + 8 + 1)
    equal(shown[-1], "(13 more, of fewer steps or smaller: --json has all)")
    equal([line.split()[3] for line in shown[1:3]], ["2", "19"])
    equal(len(as_json("why", store=path)["summary"]), 21)


@test
def why_says_what_was_not_seen():
    change = "UPDATE step SET late_operation = 12, slowest_rank = 0, late_ns = 1, late_bound_ns = 1 WHERE id = 2;"
    shown = text("why", "--step", "2", store=make_store("unseen.db", SCHEMA, FIXTURE, after=change))
    assert "not seen of rank 3: host ready, GPU ready, data" in shown, shown
    assert "not seen of rank 0" not in shown


# Behind the last step ranks 0 to 2 gave an AllReduce on communicator 1, 10 ms after it, and 0.1 ms after each other; rank 3 never did, and 3 s later nothing
# had ended.
MISSING = """INSERT INTO operation VALUES (13, 1, 'AllReduce', 6, NULL, NULL, 1048576, 'unknown', 3, 1000361200000, NULL, NULL, 'incomplete');
    INSERT INTO rank_operation (operation, member, rank, enqueued_ns, host_ready_ns, gpu_ready_known, arrival_ns, arrival_of, active_ns, observed_bytes,
        retransmitted_frames, marked_frames, status)
    SELECT 13, id, rank, 1000361200000 + rank * 100000, 1000361200000 + rank * 100000 + 1000000, 0, 1000361200000 + rank * 100000 + 1000000, 'host', 0, 0, 0, 0,
        'incomplete' FROM member WHERE communicator = 1 AND rank < 3;
    INSERT INTO verdict VALUES (9, NULL, 'hang', 3, NULL, NULL, NULL, 13, 3000000000, 0, 0.7, 'who is missing', NULL);"""


@test
def a_hang_has_ranks_that_wait_and_one_that_is_missing_since_when():
    path = make_store("missing.db", SCHEMA, FIXTURE, after=MISSING)
    last = max(time for row in rows("SELECT enqueued_ns, host_ready_ns, gpu_ready_ns, last_data_ns, end_ns FROM rank_operation WHERE rank = 3", store=path) for time in row.values() if time)
    for document in (as_json("why", store=path), as_json("timeline", store=path)):
        hang = document["hang"]
        equal([hang[key] for key in ("step", "number", "operation", "kind", "communicator", "began_ns", "to_ns", "ranks_count", "ranks_seen", "began_utc")],
              [None, 3, 13, "AllReduce", 1, 1000361200000, 1003361200000, 4, 3, "2023-11-14T22:30:00.361200Z"])
        equal(hang["from_ns"], 1000351200000)  # the last step's end
        equal([(row["rank"], row["state"], row["named"], row["last_sign_ns"], row["silent_ns"], row["host"]) for row in document["hang_ranks"]],
              [(3, "missing", True, last, 1003361200000 - last, "node-a")] +
              [(rank, "waits", False, 1000362200000 + rank * 100000, 2999000000 - rank * 100000, "node-a") for rank in range(3)])
    equal([row["rank"] for row in as_json("timeline", store=path)["ranks"]], [0, 1, 2])
    # Rank 1, alone in the communicator of ranks 0 and 1, and rank 2, who is in none of it but may hold it up.
    other = make_store("elsewhere.db", SCHEMA, FIXTURE, after="""INSERT INTO operation VALUES (13, 2, 'AllReduce', 6, NULL, NULL, 1048576, 'unknown', 1, 1000361200000, NULL, NULL, 'incomplete');
        INSERT INTO rank_operation (operation, member, rank, enqueued_ns, gpu_ready_known, active_ns, observed_bytes, retransmitted_frames, marked_frames, status)
        VALUES (13, 6, 1, 1000361200000, 0, 0, 0, 0, 0, 'incomplete');
        INSERT INTO verdict VALUES (9, NULL, 'hang', NULL, '0, 2', NULL, NULL, 13, 3000000000, 0, 0.7, 'x', NULL);""")
    equal([(row["rank"], row["state"], row["in_communicator"]) for row in as_json("timeline", store=other)["hang_ranks"]],
          [(0, "missing", True), (2, "may hold it up", False), (1, "waits", True), (3, "not in it", False)])
    # All have given it: rank 3 has sent nothing, and rank 2, without a wire, may hold it up. Nobody is late for it.
    silent = make_store("silent.db", SCHEMA, FIXTURE, after=MISSING + """UPDATE operation SET last_arrival_ns = 1000361300000, end_ns = 1000371300000 WHERE id = 13;
        UPDATE rank_operation SET arrival_ns = enqueued_ns, late_ns = -10000000, end_ns = 1000371300000, expected_bytes = 8, observed_bytes = 4 WHERE operation = 13;
        UPDATE rank_operation SET status = 'no wire', expected_bytes = 0, observed_bytes = 0 WHERE operation = 13 AND rank = 2;
        INSERT INTO rank_operation (operation, member, rank, enqueued_ns, gpu_ready_known, late_ns, active_ns, expected_bytes, observed_bytes, retransmitted_frames, marked_frames, status)
        SELECT 13, id, 3, 1000361200000, 0, -10000000, 0, 8, 0, 0, 0, 'incomplete' FROM member WHERE communicator = 1 AND rank = 3;
        UPDATE verdict SET rank = NULL, candidates = '2, 3' WHERE step IS NULL;""")
    drawn = as_json("timeline", store=silent)
    equal([(row["rank"], row["state"]) for row in drawn["hang_ranks"]], [(2, "may hold it up"), (3, "has sent nothing"), (0, "waits"), (1, "waits")])
    equal([(row["last_arrival_ns"], row["end_ns"], row["latest_rank"], row["late_ns"]) for row in drawn["operations"] if row["operation"] == 13], [(None, None, None, None)])
    equal({(row["late_ns"], row["end_ns"]) for row in drawn["ranks"] if row["operation"] == 13}, {(None, None)})
    lanes = re.findall(r"^rank (\d).*?\|(.*)\|$", text("timeline", store=silent, env={"COLUMNS": "140"}), re.M)
    equal({rank: lane[-1] for rank, lane in lanes}, {"0": "~", "1": "~", "2": "!", "3": "!"})
    words = text("why", store=silent, env={"COLUMNS": "200"})
    assert "-10.000" not in words, words
    shown = text("timeline", store=path, env={"COLUMNS": "140"})
    lanes = dict(re.findall(r"^rank (\d).*?\|(.*)\|$", shown, re.M))
    equal(sorted(lanes), ["0", "1", "2", "3"])
    equal({rank: lane[-1] for rank, lane in lanes.items()}, {"0": "~", "1": "~", "2": "~", "3": "!"})
    assert re.search(r"^ +3 +node-a, pid 1003 +missing +- ", shown, re.M) and re.search(r"^ +2 +node-a, pid 1002 +waits +0\.200 +1\.200 +2998\.800$", shown, re.M), shown
    assert "behind the last whole step" in " ".join(text("why", store=path).split())
    for words in (as_json("why", "--step", "1", store=path), as_json("timeline", "--step", "1", store=path)):
        assert "hang" not in words and words["step"]["step"] == 1, words


@test
def a_time_of_day_has_the_bound_of_the_clock_pairs():
    # 2 us between two pairs of one clock, 0.3 us of each, and 5 us of that clock's own.
    pairs = ("INSERT INTO clock_pair VALUES (2, 1000000000000, 1700001000000000000, 1700001037000000000, 300, 0, NULL), "
             "(2, 1001000000000, 1700001001000002000, 1700001038000002000, 300, 0, NULL);")
    path = make_store("utc.db", SCHEMA, FIXTURE, after=pairs)
    step = as_json("why", "--step", "1", store=path)["step"]
    equal((step["started_utc"], step["utc_bound_ns"], step["utc_host"]), ("2023-11-14T22:30:00.100000Z", 7300, "node-a"))
    assert "it began at 2023-11-14T22:30:00.100000Z ±7.30 us (UTC, by the CLOCK_REALTIME of node-a)" in " ".join(text("why", store=path).split())
    equal([row["started_utc"] for row in as_json("steps", store=path)["steps"]],
          ["2023-11-14T22:30:00.000000Z", "2023-11-14T22:30:00.100000Z", "2023-11-14T22:30:00.251200Z"])
    assert "UTC, from 2023-11-14 on, by the CLOCK_REALTIME of node-a, ±7.30 us" in text("steps", store=path)
    equal((as_json("why", "--step", "1")["step"]["utc_bound_ns"], as_json("why", "--step", "1")["step"]["utc_host"]), (None, None))
    bare = make_store("no_utc.db", SCHEMA, FIXTURE, after="DELETE FROM meta WHERE key = 'realtime_minus_reference_ns'; ")
    equal(as_json("why", store=bare)["step"]["started_utc"], None)
    assert "UTC," not in text("why", store=bare) + text("steps", store=bare)


@test
def the_healthy_step_is_the_median_of_whole_training_without_a_verdict():
    equal(as_json("why")["healthy"], None)  # step 0 is partial, 1 has a verdict, 2 is an evaluation
    steps = ", ".join(f"({number}, {1001000000000 + number}, {1001000000000 + number}, {ns}, 1, 1, {number == 6}, 0, NULL, NULL, NULL, NULL, '{kind}')" for number, ns, kind in
                      ((3, 90, "training"), (4, 70, "training"), (5, 80, "training"), (6, 75, "training"), (7, 60, "warm-up"), (8, 95, "training")))
    path = make_store("healthy.db", SCHEMA, FIXTURE, after=f"INSERT INTO step VALUES {steps};")
    equal(as_json("why", store=path)["healthy"], {"step": 5, "duration_ns": 80, "of_steps": 4})  # of 70, 80, 90 and 95: of two in the middle the shorter
    assert "to compare with: step 5, 80 ns, the median of the 4 whole training steps without a verdict: qpscope timeline --step 5" in " ".join(text("why", store=path).split())
    assert "to compare with" not in text("why", "--step", "5", store=path)


@test
def no_warm_up_is_the_worst_step_where_none_has_a_verdict():
    path = make_store("calm.db", SCHEMA, FIXTURE, after="DELETE FROM verdict_evidence; DELETE FROM verdict; UPDATE step SET kind = 'warm-up', late_ns = 99000000 WHERE id = 1;")
    equal(as_json("why", store=path)["step"]["step"], 0)
    equal(as_json("why", store=make_store("calm2.db", SCHEMA, FIXTURE, after="DELETE FROM verdict_evidence; DELETE FROM verdict;"))["step"]["step"], 1)
    assert "no training, but warm-up" in " ".join(text("why", "--step", "1", store=path).split())


@test
def timeline_draws_lanes_and_lists_operations():
    shown = text("timeline", env={"COLUMNS": "89"})
    lanes = dict(re.findall(r"^(rank [0-9?]+, comm \d+) +\|(.*)\|$", shown, re.M))
    wide = dict(re.findall(r"^(rank .*?) +\|(.*)\|$", text("timeline"), re.M))
    equal(sorted(wide), sorted(f"{lane}, node-a, pid 100{lane[5]}" for lane in lanes))
    equal({len(lane) for lane in wide.values()}, {61})
    equal(sorted(lanes), [f"rank {rank}, comm {comm}" for rank in range(4) for comm in ((1, 2) if rank < 2 else (1, 3))])
    equal({len(lane) for lane in lanes.values()}, {70})
    column = 151.2 / 70  # ms
    late, punctual = lanes["rank 2, comm 1"], lanes["rank 0, comm 1"]
    equal([lane.index(".") for lane in (late, punctual)], [int(10.2 / column), int(10 / column)])
    equal([lane.index("0") for lane in (late, punctual)], [int((10 + 53.3) / column), int((10 + 2) / column)])
    equal([lane.rindex("0") for lane in (late, punctual)], [int(91.2 / column) - 1] * 2)
    assert re.search(r"^0 +AllReduce +1 +1\.00 MiB +10\.000 +63\.500 +91\.200 +2 +(node-a, pid 1002 +)?51200 +complete$", shown, re.M), shown
    assert "?" in dict(re.findall(r"^(rank .*?) +\|(.*)\|$", text("timeline", "--step", "2", env={"COLUMNS": "89"}), re.M))["rank 3, comm 1"]
    document = as_json("timeline", "--step", "1")
    for shown_row, row in zip(document["operations"], rows("SELECT * FROM operation WHERE step = 1 ORDER BY place"),
                              strict=True):
        equal([shown_row[key] for key in ("operation", "place", "kind", "start_ns", "end_ns", "status")],
              [row[key] for key in ("id", "place", "kind", "start_ns", "end_ns", "status")])
    equal(len(document["ranks"]), 12)
    equal([row["arrival_ns"] for row in document["ranks"] if row["rank"] == 2 and row["place"] == 0],
          [1000100000000 + 10_000_000 + 53_300_000])


@test
def qps_shows_what_is_in_use():
    document = as_json("qps")
    expected = rows("SELECT qpn, remote_qpn, rank, peer_rank, role, device, port, state, remote_address, address "
                    "FROM queue_pair WHERE id <= 8 ORDER BY rank, device, port, qpn")
    for shown, row in zip(document["queue_pairs"], expected, strict=True):
        equal([shown["lqpn"], shown["rqpn"]], [row.pop("qpn"), row.pop("remote_qpn")])
        equal({key: shown[key] for key in row}, row)
    sent = {pair["rank"]: pair["payload_bytes"] for pair in document["queue_pairs"] if pair["role"] == "sender"}
    equal(sent, {rank: 1048576 * (1 + rank) for rank in range(4)})
    equal({pair["pid"] for pair in document["queue_pairs"]}, {1000, 1001, 1002, 1003})
    answers = {pair["rank"]: [pair[key] for key in ("timeouts", "got_naks", "got_rnr_naks", "got_cnps", "retransmitted_frames")]
               for pair in document["queue_pairs"] if pair["role"] == "sender"}
    equal(answers, {rank: [rank, 3 + rank, 2 * rank, 5 + rank, 0] for rank in range(4)})
    equal({(pair["side"] == pair["role"], pair["origin_rank"] == pair["rank"], pair["channel"], pair["pxn"], pair["path_mtu_bytes"],
            pair["timeout"], pair["generation"], pair["error_ns"]) for pair in document["queue_pairs"]},
          {(True, True, 1, 0, 4096, 20, 1, None)})
    signs = [[sign[key] for key in ("cause", "rank", "pid", "result", "text")] for sign in document["failures"]]
    equal(signs, [["async error", 2, 1002, 6, None], ["warning", None, 1002, None, "NET/IB: status=%d"]])
    equal(len(as_json("qps", "--all")["failures"]), 3)
    equal(len(as_json("qps", "--rank", "1")["failures"]), 1)
    equal(document["unattributed_flows"], [{"port": "far0", "vantage": "tx", "source": "10.0.0.9",
                                            "destination": "10.0.0.1", "rqpn": 65, "data_frames": 16,
                                            "payload_bytes": 65536}])
    equal({pair["rank"]: pair["on"] for pair in document["queue_pairs"]}, {rank: f"node-a, pid {1000 + rank}" for rank in range(4)})
    shown = text("qps", env={"COLUMNS": "120"})
    assert re.search(r"^rxe2/1 +0x000013 +RTS +2 +node-a, pid 1002 +3 +1 +sender +3\.00 MiB +0x000023 +10\.0\.0\.4 +1002$", shown, re.M)
    assert re.search(r"^rxe2/1 +0x000013 +RTS +2 +node-a, pid 1002 +3 +1 +sender +3\.00 MiB +0x000023$", text("qps"), re.M)
    assert "not shown: 1 destroyed, 1 flush, 1 foreign, 1 unused (--all shows them)" in shown, shown
    assert "1 flow of 64.0 KiB unattributed" in shown, shown


@test
def qps_shows_what_a_job_had_when_it_has_ended():
    path = make_store("ended.db", SCHEMA, FIXTURE, after="UPDATE queue_pair SET state = 'DESTROYED', destroyed_ns = 5;")
    equal(len(as_json("qps", store=path)["queue_pairs"]), 9)
    shown = text("qps", store=path)
    assert "none is in use any more: these were the job's" in shown, shown
    assert "not shown: 1 flush, 1 foreign, 1 unused (--all shows them)" in shown, shown
    assert "none is in use" not in text("qps")


@test
def qps_shows_what_was_counted():
    after = """UPDATE traffic_source SET kind = 'psn', fields = 'progress', missing = 'messages', grain_ns = 10000000;
        INSERT INTO endpoint VALUES (1, 1, 1, 1, 17, 0, '10.0.0.1', NULL, 33, 'RTS', NULL, 992000000000, NULL),
            (2, 1, 1, NULL, 70, 0, NULL, NULL, NULL, 'INIT', NULL, 992000000000, 993000000000);
        INSERT INTO reading VALUES (1, 1000, 2000, 10, 10, 5, 40, 0, 4096, 2, 0, 512, NULL, NULL, 0),
            (1, 2000, 3000, 10, 10, 5, 2, 0, 8192, 0, 0, 0, NULL, NULL, 0);"""
    path = make_store("counted.db", SCHEMA, FIXTURE, after=after)
    equal(as_json("qps")["endpoints"], [])
    counted = {"port": "far0", "lqpn": 17, "state": "RTS", "rank": 0, "peer_rank": 1, "rqpn": 33, "sent_packets": 42,
               "received_packets": 2, "sent_bytes_most": 12288, "source": "psn", "last_ns": 3000, "gone_ns": None}
    equal(as_json("qps", store=path)["endpoints"], [counted])
    equal([row["lqpn"] for row in as_json("qps", "--all", store=path)["endpoints"]], [17, 70])
    equal(as_json("qps", "--rank", "2", store=path)["endpoints"], [])
    assert re.search(r"^far0 +0x000011 +RTS +0 +1 +0x000021 +42 +2 +12\.0 KiB +psn$", text("qps", store=path), re.M)
    assert "counted at" not in text("qps")


@test
def qps_filters():
    def numbers(*arguments):
        return sorted(pair["lqpn"] for pair in as_json("qps", *arguments)["queue_pairs"])

    equal(numbers("--rank", "2"), [0x13, 0x22])
    equal(numbers("--rank", "2", "--all"), [0x13, 0x22, 67])
    equal(numbers("--device", "rxe0"), [0x11, 0x24])
    equal(numbers("--device", "rxe0/1", "--all"), [0x11, 0x24, 49, 65])
    equal(numbers("--device", "rxe0/2"), [])
    equal(len(numbers("--communicator", "1")), 8)
    equal(len(numbers("--communicator", "c1aaa")), 8)
    equal(numbers("--communicator", "2"), [])
    foreign = [pair for pair in as_json("qps", "--all")["queue_pairs"] if not pair["attributed"]]
    equal([(pair["lqpn"], pair["comm"], pair["role"]) for pair in foreign], [(65, "ib_write_bw", "foreign")])
    assert "no queue pairs in use that fit" in text("qps", "--rank", "9")
    assert "far0" in text("qps", "--all")


@test
def a_perfetto_trace_equals_the_rows():
    path = os.path.join(HERE, "whole.pftrace")
    shown = text("export", "perfetto", "-o", path)
    trace, different = perfetto_check.check(path, STORE)
    equal(different, [])
    # 3 steps; 3 times 4 + 2 + 2 + 4 operations of ranks, of which the one without an end is left out
    # and within each of them the time from its arrival on
    equal((len(trace.slices), len(trace.instants), len(trace.counters)), (3 + 2 * (36 - 1), 1, 2))
    late = [piece for piece in trace.slices if piece.name == "moving data" and piece.path[1] == "rank 2"]
    assert 1000100000000 + 63_300_000 in [piece.begin for piece in late], late
    for line in ("3 steps", "35 operations of ranks", "1 more left out", "1 verdicts", "2 flows"):
        assert line in shown, (line, shown)
    lanes = [track for track in trace.tracks if trace.path(track) == ("node node-a", "rank 0", "communicator 1")]
    equal(len(lanes), 2)  # place 3 is enqueued while place 0 runs
    equal(trace.clocks, {3: 1000 * 10**9, 1: 1700001000 * 10**9})
    # two messages of 512 KiB in 0.5 and 0.25 ms, then 64 bytes in a single frame
    first = 1000012000000
    equal(trace.counters[next(track for track in trace.counters if "windows" not in trace.path(track)[2])][:5],
          [(first, 524288 * 2000), (first + 500000, 524288 * 4000), (first + 750000, 0), (first + 2000000, 64 * 10**6),
           (first + 2001000, 0)])


@test
def a_perfetto_trace_of_some_steps_equals_their_rows():
    path = os.path.join(HERE, "some.pftrace")
    for argument, steps in (("1", (1, 1)), ("1..2", (1, 2)), ("0..99", (0, 99))):
        document = as_json("export", "perfetto", "-o", path, "--step", argument)
        trace, different = perfetto_check.check(path, STORE, steps)
        equal(different, [])
        equal(2 * document["slices"] + document["steps"], len(trace.slices))
        equal(document["counter_values"], sum(map(len, trace.counters.values())))
    to_stdout = subprocess.run([COMMAND, "export", "perfetto", "-o", "-", "-n", "1..2", "-s", STORE], capture_output=True,
                               timeout=60, check=True)
    as_json("export", "perfetto", "-o", path, "--step", "1..2")
    with open(path, "rb") as file:
        equal(to_stdout.stdout, file.read())
    assert b"2 steps" in to_stdout.stderr


@test
def a_perfetto_trace_with_too_many_values_has_means_and_says_so():
    path = os.path.join(HERE, "thin.pftrace")
    done = run("export", "perfetto", "-o", path, "--size", "4KiB", "--json", code=None)
    document = json.loads(done.stdout)
    assert document["thinned_tracks"] > 0 and document["without_details"] == document["slices"], document
    assert "does not hold all" in done.stderr, done.stderr
    trace = perfetto_check.Trace(path)
    whole = os.path.join(HERE, "whole.pftrace")
    text("export", "perfetto", "-o", whole)
    others = perfetto_check.Trace(whole)

    def carried(values):
        return sum(rate * (after[0] - time) for (time, rate), after in zip(values, values[1:]))

    by_name = {others.path(track): values for track, values in others.counters.items()}
    for track, values in trace.counters.items():
        expected = carried(by_name[trace.path(track)])
        assert abs(carried(values) - expected) < 0.001 * expected, (trace.path(track), carried(values), expected)
    equal(len(trace.counters), len(others.counters))
    assert sum(map(len, trace.counters.values())) < sum(map(len, others.counters.values()))


@test
def an_archive_aligns_what_is_added():
    other = os.path.join(HERE, "clocks.db")
    shutil.copy(STORE, other)
    with sqlite3.connect(other) as database:  # node-a's time of day is 5 ms ahead of the job's
        database.execute("INSERT INTO clock_pair VALUES (2, 1000000000000, 1700001000005000000, 1700001000005000000, 100, 0, NULL)")
    database.close()
    added = {"kineto.json": '{"schemaVersion": 1, "baseTimeNanoseconds": 1699000000000000000, "traceEvents": []}',
             "chrome.json": '{"traceEvents": []}', "other.pftrace": "\x0a\x00"}
    for name, content in added.items():
        with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
            file.write(content)
    path = os.path.join(HERE, "all.tar")
    arguments = [part for name in added for part in ("--add", f"node-a={os.path.join(HERE, name)}")]
    subprocess.run([COMMAND, "export", "perfetto", "-s", other, "-o", path, *arguments], check=True, timeout=60, capture_output=True)
    with tarfile.open(path) as archive:
        equal(archive.getnames(), ["perfetto_manifest.json", "qpscope.pftrace", *added])
        files = {name: archive.extractfile(name).read() for name in archive.getnames()}
    for name, content in added.items():
        equal(files[name].decode(), content)
    with open(os.path.join(HERE, "inside.pftrace"), "wb") as file:
        file.write(files["qpscope.pftrace"])
    equal(perfetto_check.check(os.path.join(HERE, "inside.pftrace"), other)[1], [])
    manifest = json.loads(files["perfetto_manifest.json"])["perfetto_manifest"]
    equal((manifest["version"], manifest["trace_time"]), (1, {"clock": "MONOTONIC", "file": "qpscope.pftrace"}))
    clocks = {entry["path"]: entry.get("clocks") for entry in manifest["files"]}
    there = {"file": "qpscope.pftrace", "clock": "REALTIME"}
    equal(clocks, {"qpscope.pftrace": None, "kineto.json": {"is": there, "offset_ns": 1699000000000000000 - 5_000_000},
                   "chrome.json": {"is": there, "offset_ns": -5_000_000},
                   "other.pftrace": {"clock": "REALTIME", "is": there, "offset_ns": -5_000_000}})
    assert not os.path.exists(path + ".part")
    done = subprocess.run([COMMAND, "export", "perfetto", "-s", other, "-o", path, "--add", "elsewhere=" + os.path.join(HERE, "chrome.json")],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "no agent of host elsewhere" in done.stderr, done


@test
def the_perfetto_check_notices_what_differs():
    path = os.path.join(HERE, "other.pftrace")
    text("export", "perfetto", "-o", path)
    for change in ("UPDATE rank_operation SET end_ns = end_ns + 1 WHERE id = 1", "DELETE FROM message WHERE id = 1",
                   "UPDATE message SET role = 'other' WHERE id = 2", "UPDATE verdict SET size_ns = 1",
                   "DELETE FROM traffic_window WHERE length_ns = 8000 AND frames = 10",
                   "UPDATE meta SET value = '5' WHERE key = 'realtime_minus_reference_ns'",
                   "UPDATE rank_operation SET status = 'x' WHERE id = 3", "UPDATE message SET rank_operation = NULL WHERE id = 1",
                   "INSERT INTO clock_pair VALUES (2, 1000000000000, 5, 5, 1, 0, NULL)", "UPDATE emitter SET host = 'node-b' WHERE id = 2", "UPDATE flow SET vantage = 'rx' WHERE id = 1"):
        other = os.path.join(HERE, "other.db")
        shutil.copy(STORE, other)
        with sqlite3.connect(other) as database:
            database.execute(change)
        database.close()
        _, different = perfetto_check.check(path, other)
        assert different, f"not noticed: {change}"


@test
def the_perfetto_check_notices_what_a_viewer_would_drop():
    def field(number, value):
        if isinstance(value, bytes):
            return field_tag(number, 2) + varint(len(value)) + value
        return field_tag(number, 0) + varint(value)

    def field_tag(number, kind):
        return varint(number << 3 | kind)

    def varint(value):
        return (bytes([value & 0x7F | 0x80]) + varint(value >> 7)) if value > 0x7F else bytes([value])

    def event(time, kind):
        name = field(23, b"x") if kind == 1 else b""
        return field(1, field(10, 1) + field(8, time) + field(58, 3) + field(11, field(9, kind) + field(11, 5) + name))

    track = field(1, field(10, 1) + field(13, 1) + field(60, field(1, 5) + field(2, b"t")))
    path = os.path.join(HERE, "made.pftrace")
    for events, fault in (([(10, 1), (20, 2), (20, 1), (30, 2)], None), ([(10, 1), (12, 1), (20, 2), (20, 2)], None),
                          ([(10, 1), (20, 2), (19, 1), (30, 2)], "overlap"), ([(10, 1)], "do not end"),
                          ([(10, 1), (12, 1), (22, 2), (20, 2)], "before one within it"), ([(10, 1), (9, 2)], "before it begins")):
        with open(path, "wb") as file:
            file.write(track + b"".join(event(*one) for one in events))
        try:
            perfetto_check.Trace(path)
            found = None
        except ValueError as error:
            found = str(error)
        assert (found is None) == (fault is None) and (fault or "") in (found or ""), (events, fault, found)


@test
def export_refuses_what_it_cannot_do():
    path = os.path.join(HERE, "none.pftrace")
    one_error(run("export", "perfetto", "-o", path, "--step", "7..9", code=1), "no step 7 to 9")
    assert not os.path.exists(path)
    one_error(run("export", "perfetto", "-o", "/nowhere/x", code=1), "/nowhere/x")
    one_error(run("export", "perfetto", "-o", "/dev/full", code=1), "/dev/full", "No space left")
    assert os.path.exists("/dev/full")
    for arguments in (["export"], ["export", "chrome"], ["export", "perfetto", "-o", "-", "--json"],
                      ["export", "perfetto", "--step", "5..3"]):
        assert "--help" in run(*arguments, code=2).stderr
    empty = os.path.join(HERE, "nothing.db")
    make_store("nothing.db", SCHEMA)
    text("export", "perfetto", "-o", path, store=empty)
    equal(perfetto_check.check(path, empty)[1], [])


@test
def an_empty_store_is_said_to_be_empty():
    empty = make_store("empty.db", SCHEMA)
    assert "no steps yet" in text("steps", store=empty)
    assert "nothing was lost" in text("steps", store=empty)
    assert "no steps yet" in text("why", store=empty)
    assert "no steps yet" in text("timeline", store=empty)
    assert "no queue pairs" in text("qps", store=empty)
    equal(as_json("steps", store=empty)["steps"], [])
    equal(as_json("why", store=empty)["step"], None)
    equal(as_json("timeline", store=empty)["operations"], [])
    one_error(run("why", "--step", "0", store=empty, code=1), "no step 0")


@test
def what_is_no_store_is_refused_in_one_line():
    path = os.path.join(HERE, "text.db")
    with open(path, "w", encoding="utf-8") as file:
        file.write("this is no database at all, only text\n" * 100)
    one_error(run("steps", store=path, code=1), path, "not a qpscope store")
    one_error(run("steps", "--json", store=path, code=1), path, "not a qpscope store")
    open(path + ".empty", "w", encoding="utf-8").close()
    for arguments in (["steps"], ["jobs"], ["query", "SELECT 1"], ["top"], ["export", "csv"], ["steps", "--follow"], []):
        one_error(run(*arguments, store=path + ".empty", code=1), "not a qpscope store", "it is empty")
        one_error(run(*arguments, store=path, code=1), path, "not a qpscope store")
    one_error(run("steps", store=HERE, code=1), HERE, "no regular file")
    one_error(run("steps", store=path + ".none", code=1), path + ".none", "no store", "qpscope-correlator")
    foreign = make_store("foreign.db", after="CREATE TABLE t (a);")
    one_error(run("steps", store=foreign, code=1), foreign, "another program")
    written = re.search(r"PRAGMA user_version = (\d+);", open(SCHEMA, encoding="utf-8").read()).group(1)
    newer = make_store("newer.db", SCHEMA, after="PRAGMA user_version = 77;")
    one_error(run("steps", store=newer, code=1), newer, "version 77", f"version {written}", "came with")
    older = make_store("older.db", SCHEMA, after="PRAGMA user_version = 1;")
    one_error(run("steps", store=older, code=1), older, "version 1", f"version {written}", "make it again", older + ".journal")
    damaged = os.path.join(HERE, "damaged.db")
    with open(STORE, "rb") as whole, open(damaged, "wb") as cut:
        cut.write(whole.read()[:8192])
    one_error(run("steps", store=damaged, code=1), damaged)


@test
def a_locked_store_is_said_to_be_locked():
    path = make_store("locked.db", SCHEMA, FIXTURE)
    holder = sqlite3.connect(path)
    holder.execute("BEGIN EXCLUSIVE")
    one_error(run("steps", store=path, code=1), path, "locked", "try again")
    holder.rollback()
    holder.close()
    text("steps", store=path)


@test
def a_store_that_is_being_written_is_read():
    path = make_store("live.db", SCHEMA, FIXTURE)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("DELETE FROM step WHERE id = 2")
    equal(len(as_json("steps", store=path)["steps"]), 3)
    writer.commit()
    equal(len(as_json("steps", store=path)["steps"]), 2)
    writer.close()


@test
def a_stranger_reads_a_finished_store_in_a_folder_that_is_not_his():
    folder = os.path.join(HERE, "a folder?%#")
    os.mkdir(folder)
    path = shutil.copy(make_store("wal.db", SCHEMA, FIXTURE, after="PRAGMA journal_mode = WAL;"), folder)
    os.chmod(folder, 0o555)
    os.chmod(path, 0o444)
    os.chmod(HERE, 0o755)
    options = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    equal(len(as_json("steps", store=path, **options)["steps"]), 3)
    os.chmod(folder, 0o755)


@test
def the_store_comes_from_the_environment():
    equal(text("steps", store=None, env={"QPSCOPE_STORE": STORE}), text("steps"))
    assert STORE in text(store=None, env={"QPSCOPE_STORE": STORE, "COLUMNS": "300"})


@test
def a_closed_pipe_ends_it_quietly():
    many = make_store("many.db", SCHEMA, after="WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
                      "WHERE i < 20000) INSERT INTO step SELECT i, i * 10, i * 10 + 10, 10, 1, 0, 0, 0, NULL, NULL, "
                      "NULL, NULL, 'training' FROM n;")
    for option in ("", "--json"):
        done = subprocess.run(["bash", "-c", f"'{COMMAND}' steps {option} --store '{many}' | head -n 1"],
                              capture_output=True, text=True, timeout=60, check=True)
        equal((done.stderr, len(done.stdout.splitlines())), ("", 1))
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([COMMAND, "steps", "--store", many], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)
    equal(done.returncode, 1)
    assert "cannot write to standard output: No space left on device" in done.stderr, done.stderr


@test
def colour_is_only_for_terminals_and_not_with_no_color():
    def on_terminal(**env):
        master, slave = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "100", **env}
        with subprocess.Popen([COMMAND, "steps", "--store", STORE], stdout=slave, env=environment) as child:
            os.close(slave)
            shown = b""
            try:
                while chunk := os.read(master, 65536):
                    shown += chunk
            except OSError:
                pass
            child.wait(timeout=60)
        os.close(master)
        return shown

    assert b"\033[" in on_terminal()
    assert b"\033" not in on_terminal(NO_COLOR="1")
    assert b"\033[" in on_terminal(NO_COLOR="")
    assert b"\033" not in on_terminal(TERM="dumb")
    assert "\033" not in text("steps")


@test
def usage_errors_have_exit_code_2():
    for arguments in (["nonsense"], ["steps", "--nonsense"], ["why", "--step", "x"], ["why", "--step", "1..2"],
                      ["qps", "--rank", "-1"], ["steps", "extra"]):
        done = run(*arguments, store=None, code=2)
        equal(done.stdout, "")
        assert "--help" in done.stderr, done.stderr
    assert "Subcommands:" in text("--help", store=None)
    assert re.match(r"^qpscope \d+\.\d+\.\d+$", text("--version", store=None).strip())
    names = re.findall(r"^  ([\w-]+) ", text("--help", store=None).split("Subcommands:")[1].split("Options:")[0], re.M)
    for name in names:
        shown = text(name, "--help", store=None)
        assert shown.startswith(f"Usage: qpscope {name} "), shown
        assert max(map(len, shown.splitlines())) <= 100, shown


if __name__ == "__main__":
    main()
