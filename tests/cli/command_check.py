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
    equal(len(document["gaps"]), 3)
    equal(document["lost"], {"gaps": 3, "unattributed_flows": 1, "unattributed_bytes": 65536, "late_members": 1,
                             "incomplete_operations": 1, "clocks_unknown": 0, "verdicts_withheld": None})
    equal(document["loss_counters"], [{"emitter": "host", "instance": "job", "port": 0, "name": "calls_missed_total",
                                       "total": 3}])
    assert STORE not in json.dumps(document) and HERE not in json.dumps(document)


@test
def steps_text_shows_durations_lateness_and_loss():
    lines = text("steps").splitlines()
    assert re.match(r"^ +1 +151\.200 ±0\.025 +4 +0 +2 +51200 ±25 +0: AllReduce +gpu late, rank 2$", lines[2]), lines[2]
    assert re.match(r"^ +2 +100\.000 ±0\.025 +4 +1 +- +- +- +-$", lines[3]), lines[3]
    footer = "\n".join(lines[4:])
    for words in ("step 0 is partial", "ring full: 12 events", "batches lost: 5 batches, 2 gaps of 150 ms",
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
                  "gpu late: rank 2, 51.2 ms ±25.0 us, in operation 0 of the step (AllReduce on communicator 1), "
                  "confidence 95 %", "evidence: rank 2 held credit", "AllReduce of 1.00 MiB"):
        assert words in flat, (words, shown)
    assert re.search(r"^gpu late +rank 2 +1 of 3 +51\.200 +51\.200$", shown, re.M), shown
    # rank 2: enqueued 0.2 ms after rank 0, credit 1 ms later, data 51.1 + 1 ms after that
    assert re.search(r"^ +2 +0\.200 +1\.200 +53\.300 +53\.300 +80\.200 +81\.200 +51\.200 +gpu +complete$", shown, re.M)
    assert re.search(r"^ +1 +0\.100 +1\.100 +≤2\.100 ", shown, re.M), shown


@test
def why_json_equals_the_rows():
    document = as_json("why")
    equal(document["step"]["step"], 1)
    equal(document["operation"]["operation"], 5)
    equal(document["summary"], [{"class": "gpu late", "rank": 2, "peer_rank": None, "device": None, "steps": 1,
                                 "steps_total": 3, "median_ns": 51200000, "largest_ns": 51200000}])
    for shown, row in zip(document["ranks"], rows("SELECT * FROM rank_operation WHERE operation = 5 ORDER BY rank"),
                          strict=True):
        row["gpu_ready_known"] = bool(row["gpu_ready_known"])
        equal(shown, {key: row[key] for key in shown})
    verdict = rows("SELECT * FROM verdict")[0]
    equal({key: document["verdicts"][0][key] for key in ("class", "rank", "size_ns", "bound_ns", "evidence")},
          {key: verdict[key] for key in ("class", "rank", "size_ns", "bound_ns", "evidence")})
    equal(document["gaps"], [])


@test
def why_without_a_verdict_says_so():
    shown = text("why", "--step", "0")
    assert "no verdict: the latest was rank 3, by 200 us ±25.0 us" in shown, shown
    assert "its start was not seen" in shown and "clocks' error" not in shown
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
def why_shows_medians_over_steps():
    more = "".join(
        f"INSERT INTO verdict VALUES ({10 + step}, {step}, 'network slow', 1, 2, 'rxe1/1', {1 + 4 * step}, {size}, 1, "
        f"0.5, 'x', NULL);" for step, size in ((0, 70_000_000), (1, 10_000_000), (2, 40_000_000)))
    path = make_store("median.db", SCHEMA, FIXTURE, after=more)
    equal(as_json("why", store=path)["summary"][0],
          {"class": "network slow", "rank": 1, "peer_rank": 2, "device": "rxe1/1", "steps": 3, "steps_total": 3,
           "median_ns": 40_000_000, "largest_ns": 70_000_000})
    shown = text("why", store=path)
    assert re.search(r"^network slow +link rank 1 to rank 2 \(rxe1/1\) +3 of 3 +40\.000 +70\.000$", shown, re.M), shown
    assert "network slow: link rank 1 to rank 2 (rxe1/1), 70.0 ms ±1 ns, in operation 0" in " ".join(shown.split()), shown
    assert "step 0 took" in shown


@test
def why_shows_what_was_counted_beside_the_gap():
    # Pause of 30 ms in a transfer of 50 ms, and 4 frames sent again where 0.5 would be usual.
    more = """INSERT INTO verdict VALUES (2, 0, 'pausing', 1, 2, 'rxe1/1', 1, 40000000, 1, 0.5, 'x', NULL);
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
    more = """INSERT INTO verdict VALUES (2, 0, 'host late: no cpu', 1, NULL, NULL, 1, 75000000, 1000, 0.9, 'x',
            'on node-a: qpscope follow --pid 7 --what delays');
        INSERT INTO verdict_evidence VALUES
            (2, 1, 'host_delay', NULL, NULL, 'caller', 'run_queue_ns', NULL, 1000000000000, 1000100000000, 80000000, 2000000, 0.8, 4, 5, 1, 71),
            (2, 0, 'host_delay', NULL, NULL, 'caller', 'major_faults', NULL, 1000000000000, 1000100000000, 30, 1, NULL, 4, 4, 1, 71),
            (2, 0, 'post', NULL, NULL, 'library', 'post_to_wire_ns', NULL, 1000000000000, 1000100000000, 3000000, NULL, 0.03, 9, 9, 1, NULL);"""
    path = make_store("late_host.db", SCHEMA, FIXTURE, after=more)
    flat = " ".join(text("why", "--step", "0", store=path).split())
    assert "host late: no cpu: rank 1, 75.0 ms ±1.00 us, in operation 0 of the step" in flat, flat
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
    more = """INSERT INTO verdict VALUES (9, NULL, 'hang', 3, NULL, NULL, 12, 3000000000, 0, 0.7, 'who is missing', NULL);
        INSERT INTO failure VALUES (7, 1000200000000, 'queue pair error', 1, 1, NULL, 3, NULL, NULL);
        INSERT INTO verdict_evidence VALUES
            (9, 0, 'failure', NULL, NULL, 'library', 'failures', NULL, 1000100000000, 1003100000000, 1, NULL, NULL, 7, 7, 3, NULL);"""
    path = make_store("hang.db", SCHEMA, FIXTURE, after=more)
    shown = text("why", store=path)
    flat = " ".join(shown.split())
    assert shown.startswith("hang: rank 3, 3.00 s"), shown
    assert "after the last whole step" in flat and "evidence: who is missing" in flat, shown
    assert "not decisive: failures at rank 3 (library): 1 in 3.00 s; rows: failure 7" in flat, shown
    assert flat.index("hang:") < flat.index("gpu late"), shown
    assert "hang" not in text("why", "--step", "1", store=path).split("lost")[0], shown
    equal([(h["class"], h["rank"], h["operation"], h["size_ns"]) for h in as_json("why", store=path)["hangs"]],
          [("hang", 3, 12, 3000000000)])
    equal([row["class"] for row in as_json("why", store=path)["summary"]], ["gpu late"])
    equal(as_json("why")["hangs"], [])
    assert "does not end: qpscope why says who is missing" in " ".join(text("steps", store=path).split())
    assert "does not end" not in text("steps")


@test
def why_puts_ranks_that_used_sockets_together():
    more = """INSERT INTO verdict VALUES (2, 0, 'fallback to sockets', NULL, NULL, NULL, 1, 0, 0, 0.8, 'x', NULL);"""
    more += "".join(f"""INSERT INTO verdict_evidence VALUES (2, 1, 'transport', NULL, NULL, 'library', 'tcp_bytes', NULL,
        1000000000000, 1000100000000, {1000 + rank}, NULL, NULL, {2 + rank}, {2 + rank}, {rank}, NULL);""" for rank in range(3))
    path = make_store("sockets.db", SCHEMA, FIXTURE, after=more)
    flat = " ".join(text("why", "--step", "0", store=path).split())
    assert "fallback to sockets: all ranks, cost not known" in flat, flat
    assert "tcp_bytes at 3 ranks (library): 3003 in 100 ms; rows: transport 2, 3, 4" in flat, flat
    assert "fallback to sockets, all ranks" in text("steps", store=path, env={"COLUMNS": "200"})


@test
def why_lists_the_first_culprits_and_counts_the_rest():
    many = "".join(f"INSERT INTO verdict VALUES ({20 + n}, 0, 'host late', {n}, NULL, NULL, 1, {n + 1}, 1, 0.5, 'x', NULL);"
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


@test
def timeline_draws_lanes_and_lists_operations():
    shown = text("timeline")
    lanes = dict(re.findall(r"^(rank [0-9?]+, comm \d+) +\|(.*)\|$", shown, re.M))
    equal(sorted(lanes), [f"rank {rank}, comm {comm}" for rank in range(4) for comm in ((1, 2) if rank < 2 else (1, 3))])
    equal({len(lane) for lane in lanes.values()}, {81})
    column = 151.2 / 81  # ms
    late, punctual = lanes["rank 2, comm 1"], lanes["rank 0, comm 1"]
    equal([lane.index(".") for lane in (late, punctual)], [int(10.2 / column), int(10 / column)])
    equal([lane.index("0") for lane in (late, punctual)], [int((10 + 53.3) / column), int((10 + 2) / column)])
    equal([lane.rindex("0") for lane in (late, punctual)], [int(91.2 / column) - 1] * 2)
    assert re.search(r"^0 +AllReduce +1 +1\.00 MiB +10\.000 +63\.500 +91\.200 +2 +51200 +complete$", shown, re.M), shown
    assert "?" in dict(re.findall(r"^(rank .*?) +\|(.*)\|$", text("timeline", "--step", "2"), re.M))["rank 3, comm 1"]
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
    shown = text("qps")
    assert re.search(r"^rxe2/1 +0x000013 +RTS +2 +3 +1 +sender +3\.00 MiB +0x000023 +10\.0\.0\.4 +1002$", shown, re.M)
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
    late = [piece for piece in trace.slices if piece.name == "moving data" and piece.path[0] == "rank 2"]
    assert 1000100000000 + 63_300_000 in [piece.begin for piece in late], late
    for line in ("3 steps", "35 operations of ranks", "1 more left out", "1 verdicts", "2 flows"):
        assert line in shown, (line, shown)
    lanes = [track for track in trace.tracks if trace.path(track) == ("rank 0", "communicator 1")]
    equal(len(lanes), 2)  # place 3 is enqueued while place 0 runs
    equal(trace.clocks, {3: 1000 * 10**9, 1: 1700001000 * 10**9})
    # two messages of 512 KiB in 0.5 and 0.25 ms, then 64 bytes in a single frame
    first = 1000012000000
    equal(trace.counters[next(track for track in trace.counters if "windows" not in trace.path(track)[1])][:5],
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
def the_perfetto_check_notices_what_differs():
    path = os.path.join(HERE, "other.pftrace")
    text("export", "perfetto", "-o", path)
    for change in ("UPDATE rank_operation SET end_ns = end_ns + 1 WHERE id = 1", "DELETE FROM message WHERE id = 1",
                   "UPDATE message SET role = 'other' WHERE id = 2", "UPDATE verdict SET size_ns = 1",
                   "DELETE FROM traffic_window WHERE length_ns = 8000 AND frames = 10",
                   "UPDATE meta SET value = '5' WHERE key = 'realtime_minus_reference_ns'",
                   "UPDATE rank_operation SET status = 'x' WHERE id = 3", "UPDATE flow SET vantage = 'rx' WHERE id = 1"):
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
    one_error(run("steps", store=path + ".empty", code=1), "not a qpscope store")
    one_error(run("steps", store=HERE, code=1), HERE, "no regular file")
    one_error(run("steps", store=path + ".none", code=1), path + ".none", "no store", "qpscope-correlator")
    foreign = make_store("foreign.db", after="CREATE TABLE t (a);")
    one_error(run("steps", store=foreign, code=1), foreign, "another program")
    newer = make_store("newer.db", SCHEMA, after="PRAGMA user_version = 7;")
    one_error(run("steps", store=newer, code=1), newer, "version 7", "version 3", "came with")
    older = make_store("older.db", SCHEMA, after="PRAGMA user_version = 1;")
    one_error(run("steps", store=older, code=1), older, "version 1", "version 3", "make it again", older + ".journal")
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
    equal(text(store=None, env={"QPSCOPE_STORE": STORE}), text("steps"))
    assert "Subcommands:" in text(store=None, env={"QPSCOPE_STORE": os.path.join(HERE, "none")})


@test
def a_closed_pipe_ends_it_quietly():
    many = make_store("many.db", SCHEMA, after="WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
                      "WHERE i < 20000) INSERT INTO step SELECT i, i * 10, i * 10 + 10, 10, 1, 0, 0, 0, NULL, NULL, "
                      "NULL, NULL FROM n;")
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
    names = re.findall(r"^  (\w+) ", text("--help", store=None).split("Subcommands:")[1].split("Options:")[0], re.M)
    for name in names:
        shown = text(name, "--help", store=None)
        assert shown.startswith(f"Usage: qpscope {name} "), shown
        assert max(map(len, shown.splitlines())) <= 100, shown


if __name__ == "__main__":
    main()
