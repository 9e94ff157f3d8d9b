#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""qpscope report: what stands in the page equals what the other subcommands print of the same store, and the store's rows.

Rates are worked out here from messages and windows; what a browser makes of the page is tested in tests/page.
"""
import html.parser
import json
import os
import re

from harness import FIXTURE, HERE, SCHEMA, STORE, as_json, equal, main, make_store, one_error, rows, run, test, text

BUILT = "built without the page" not in run("report", "-o", "-", code=None).stderr


class Elements(html.parser.HTMLParser):
    """The text of the element "data", the names of all elements, and what they would load."""

    def __init__(self, page):
        super().__init__()
        self.data, self.names, self.loads, self.inside = "", [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        attributes = dict(attrs)
        self.loads += [attributes[name] for name in ("src", "href", "srcset", "data") if attributes.get(name)]
        self.inside = attributes.get("id") == "data"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


def page_of(*arguments, store=STORE):
    done = run("report", "-o", "-", *arguments, store=store, code=None)
    equal(done.returncode, 0)
    return done.stdout


def data_of(*arguments, store=STORE):
    return json.loads(Elements(page_of(*arguments, store=store)).data)


def bare(document):
    return {key: value for key, value in document.items() if key not in ("schema_version", "generator")}


def words(said):
    return " ".join(" ".join(part["text"] for part in said).split())


def page_test(function):
    """A test of a build that has the page."""
    if BUILT:
        test(function)


@page_test
def the_page_holds_what_the_subcommands_print():
    data = data_of()
    equal(data["steps"], bare(as_json("steps")))
    equal(data["why"], bare(as_json("why")))
    equal(data["queue_pairs"], bare(as_json("qps", "--all")))
    equal([detail["step"] for detail in data["details"]], [0, 1, 2])
    for detail in data["details"]:
        step = str(detail["step"])
        equal(detail["why"], bare(as_json("why", "--step", step)))
        equal(detail["timeline"], bare(as_json("timeline", "--step", step)))
        shown = " ".join(text("why", "--step", step, env={"COLUMNS": "10000"}).split())
        for part in detail["said"]:
            assert " ".join(part["text"].split()) in shown, part


@page_test
def the_page_says_what_steps_and_why_say():
    data = data_of()
    for part in data["steps_said"]:
        assert " ".join(part["text"].split()) in " ".join(text("steps", env={"COLUMNS": "10000"}).split()), part
    assert "batches lost: 5 batches, 2 gaps of 150 ms" in words(data["steps_said"])
    assert "gpu late: rank 2 (node-a, pid 1002), 51.2 ms ±25.0 us" in words(data["why_said"])
    assert "gpu late: rank 2 (node-a, pid 1002), 51.2 ms ±25.0 us" in words(data["details"][1]["said"])


@page_test
def lateness_and_cost_equal_the_rows():
    equal(data_of()["by_rank"], [[row["step"], row["rank"], row["late_ns"], row["cost_ns"]] for row in
                                 rows("SELECT step, rank, late_ns, cost_ns FROM rank_step ORDER BY step, rank")])
    equal(data_of()["details"][2]["rank_steps"], rows("SELECT rank, start_ns, end_ns, duration_ns, late_ns FROM rank_step "
                                                      "WHERE step = 2 ORDER BY rank"))


@page_test
def rates_follow_from_messages_and_windows():
    # Rank 0's data of place 0, from 12 ms of the step on: 512 KiB in 0.5 ms, 512 KiB in 0.25 ms, then 64 bytes in 1 us.
    flows = {(flow["rank"], flow["peer_rank"]): flow for flow in data_of()["details"][0]["flows"]}
    equal(flows[0, 1]["messages"], {"mean_over_ns": 0, "values": [12_000_000, 524288 * 2000, 12_500_000, 524288 * 4000,
                                                                  12_750_000, 0, 14_000_000, 64_000_000, 14_001_000, 0]})
    equal(flows[0, 1]["windows"], None)
    # Rank 1's windows of 8 us: 40960 and 20480 bytes, two empty, 8192 bytes.
    equal(flows[1, 2]["windows"]["values"], [12_000_000, 40960 * 125_000, 12_008_000, 20480 * 125_000, 12_016_000, 0,
                                             12_032_000, 8192 * 125_000, 12_040_000, 0])
    equal((flows[1, 2]["messages"], flows[1, 2]["device"], flows[1, 2]["lqpn"]), (None, "rxe1/1", 18))


@page_test
def long_rates_become_means():
    # 3000 messages of 1000 bytes in 10 us each, one every 30 us, make 6000 changes of the rate in a step of 100 ms.
    more = """INSERT INTO message (flow, role, first_ns, last_ns, payload_bytes, frames, flags)
        WITH RECURSIVE n(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < 2999)
        SELECT 3, 'data', 1000000000000 + value * 30000, 1000000010000 + value * 30000, 1000, 1, 0 FROM n;"""
    data = data_of("--step", "0", store=make_store("long.db", SCHEMA, FIXTURE, after=more))
    rate = next(flow for flow in data["details"][0]["flows"] if flow["rank"] == 2)["messages"]
    times, means = rate["values"][::2], rate["values"][1::2]
    equal((rate["mean_over_ns"], times[0], means[-1]), (50_001, 0, 0))
    # A mean stands until the next one; all begin an interval.
    assert len(times) <= 2000 and all(time % 50_001 == 0 for time in times) and times == sorted(set(times)), times
    assert all(one != other for one, other in zip(means, means[1:])), means
    carried = sum(mean * (to - since) for since, to, mean in zip(times, times[1:], means)) / 1e9
    assert abs(carried - 3_000_000) < 0.001 * 3_000_000, carried
    # From 0 to 50.001 us: 10 us and 10 us of two messages at 10^8 bytes/s.
    equal(rate["values"][1], 20_000 * 100_000_000 // 50_001)


@page_test
def many_flows_share_the_values():
    # As above in one flow, and 1000 more named ones: 500000 values in 1005 flows leave each 497, in means over 100 ms / 497.
    more = """INSERT INTO message (flow, role, first_ns, last_ns, payload_bytes, frames, flags)
        WITH RECURSIVE n(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < 2999)
        SELECT 3, 'data', 1000000000000 + value * 30000, 1000000010000 + value * 30000, 1000, 1, 0 FROM n;"""
    columns = [row["name"] for row in rows("SELECT name FROM pragma_table_info('queue_pair')")]
    own = [row["name"] for row in rows("SELECT name FROM pragma_table_info('flow')")]
    many = "WITH RECURSIVE n(value) AS (SELECT 1000 UNION ALL SELECT value + 1 FROM n WHERE value < 1999) "
    more += (f"INSERT INTO queue_pair {many} SELECT value, {', '.join('queue_pair.' + name for name in columns[1:])} FROM n, queue_pair "
             "WHERE queue_pair.id = (SELECT queue_pair FROM flow WHERE id = 3);"
             f"INSERT INTO flow {many} SELECT value, {', '.join('value' if name == 'queue_pair' else 'flow.' + name for name in own[1:])} FROM n, flow WHERE flow.id = 3;")
    data = data_of("--step", "0", store=make_store("shared.db", SCHEMA, FIXTURE, after=more))
    flows = data["details"][0]["flows"]
    rate = next(flow for flow in flows if flow["flow"] == 3)["messages"]
    share = 500_000 // len(flows)
    assert len(flows) >= 1001, len(flows)
    equal(rate["mean_over_ns"], 100_000_000 // share + 1)
    assert len(rate["values"]) <= 2 * (share + 1), len(rate["values"])


@page_test
def the_network_and_places_equal_the_rows():
    data = data_of()
    totals = rows("SELECT sum(retransmitted_frames) AS retransmitted_frames, sum(naks) AS naks, sum(cnps) AS cnps FROM flow")[0]
    equal({key: data["network"][key] for key in totals}, totals)
    path = make_store("network.db", SCHEMA, FIXTURE, after="UPDATE flow SET retransmitted_frames = 7, cnps = 3 WHERE id = 2;")
    network = data_of(store=path)["network"]
    equal((network["retransmitted_frames"], network["cnps"]), (7 + totals["retransmitted_frames"], 3 + totals["cnps"]))
    equal([place["rank"] for place in data["places"]], [row["rank"] for row in rows("SELECT DISTINCT rank FROM member WHERE rank IS NOT NULL ORDER BY rank")])
    equal(data["places"][2]["host"], rows("SELECT host FROM member JOIN process ON process.id = process JOIN emitter ON emitter.id = emitter WHERE rank = 2")[0]["host"])


@page_test
def events_are_those_of_the_flow_and_its_answers():
    more = """UPDATE flow_evidence SET pair = 9 WHERE flow = 2;
        INSERT INTO flow_event VALUES (1, 2, 'retransmitted_frames', 1000013000000, 1000013001000, 4),
            (2, 9, 'cnps', 1000013500000, 1000013501000, 2), (3, 9, 'retransmitted_frames', 1000013500000, 1000013501000, 7),
            (4, 2, 'timeouts', 1000260000000, 1000260001000, 1);
        INSERT INTO pin VALUES (2, 1000014000000, 1000015000000, 'stalled within a message', 1000, 900000);"""
    path = make_store("events.db", SCHEMA, FIXTURE, after=more)
    flow = next(flow for flow in data_of("--step", "0", store=path)["details"][0]["flows"] if flow["lqpn"] == 18)
    equal([[event[key] for key in ("metric", "from_ns", "amount", "of_all")] for event in flow["events"]],
          [["retransmitted_frames", 1000013000000, 4, 2], ["cnps", 1000013500000, 2, 2]])
    equal(flow["pins"], rows("SELECT cause, from_ns, to_ns, usual_ns, found_ns FROM pin", store=path))


@page_test
def names_from_outside_cannot_leave_their_place():
    nasty = "</script><script>alert(1)</script><!--<script>"
    change = f"UPDATE process SET command = '{nasty}'; UPDATE verdict SET evidence = '{nasty} & \"' || char(8232);"
    path = make_store("nasty.db", SCHEMA, FIXTURE, after=change)
    page = page_of(store=path)
    equal(Elements(page).names, Elements(page_of()).names)
    data = json.loads(Elements(page).data)
    equal({pair["comm"] for pair in data["queue_pairs"]["queue_pairs"]}, {nasty})
    equal(data["steps"]["verdicts"][0]["evidence"], nasty + ' & "\u2028')


@page_test
def the_page_loads_nothing():
    page = page_of()
    elements = Elements(page)
    equal(elements.loads, [])
    equal(len(re.findall(r"default-src 'none'", page)), 1)
    assert "connect-src" not in page and "@" + "CONNECT@" not in page
    assert "@" + "DATA@" not in page and "uPlot" in page
    assert HERE not in page


@page_test
def steps_are_chosen():
    equal([detail["step"] for detail in data_of("--step", "1..2")["details"]], [1, 2])
    one_error(run("report", "--step", "7", code=1, cwd=HERE), "there is no step 7")
    assert "--step" in run("report", "--step", "x", code=2, cwd=HERE).stderr
    # 40 steps like step 0, but one slower and slower: the worst eleven, and the one in the middle of the durations.
    more = "".join(f"INSERT INTO step SELECT {n}, start_ns + {n} * 1000000000, end_ns + {n} * 1000000000, duration_ns + {n} * 1000, "
                   f"bound_ns, 0, 0, 0, NULL, NULL, NULL, NULL, 'training' FROM step WHERE id = 0;" for n in range(3, 40))
    data = data_of(store=make_store("many.db", SCHEMA, FIXTURE, after=more))
    # Verdict, lateness, then length; sorted by length the middle one of 0, 2, 3, ... 39, 1 is the 21st.
    equal([detail["step"] for detail in data["details"]], [0, 1, 21] + list(range(31, 40)))
    equal(len(data["steps"]["steps"]), 40)


@page_test
def the_file_is_written_and_counted():
    path = os.path.join(HERE, "out.html")
    document = as_json("report", "-o", path)
    equal(bare(document), {"file": path, "steps": 3, "detailed_steps": 3})
    with open(path, encoding="utf-8") as file:
        equal(json.loads(Elements(file.read()).data)["steps"], bare(as_json("steps")))
    assert "3 steps, 3 of them with a time line" in text("report", "-o", path)
    one_error(run("report", "-o", os.path.join(HERE, "nowhere/out.html"), code=1), "cannot write", "nowhere/out.html")
    equal(run("report", "--json", "-o", "-", code=2).stdout, "")


@page_test
def a_full_disk_is_said():
    done = run("report", "-o", "/dev/full", code=1)
    one_error(done, "cannot write /dev/full", "No space left")


@page_test
def a_store_without_steps_gives_a_page():
    path = make_store("empty.db", SCHEMA)
    data = data_of(store=path)
    equal((data["details"], data["by_rank"], data["steps"]["steps"], data["why"]["step"]), ([], [], [], None))
    assert "no steps yet" in words(data["steps_said"])


if not BUILT:
    @test
    def a_build_without_the_page_says_what_to_do():
        one_error(run("report", "-o", "-", code=1), "built without the page", "install npm")


main()
