#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is posted and what completes, followed on request and never else, as TAP: test_follow.py BUILD."""
import os
import subprocess
import sys
import tempfile
import time

from host import Host, Program, run_tests

BUILD = sys.argv[1]
HOST = f"{BUILD}/host/qpscope-host"
POSTED, COMPLETED = 1, 2
CUT = 1
IN_TIME, SPENT, REPLACED, REFUSED = 1, 2, 3, 4
ROUND_HITS = 2 + 1  # two posts and the poll that finds; then those that find nothing


class Poster:
    """A program that posts when told to, beside a qpscope-host that hears requests."""

    def __init__(self, tree, polls=0):
        self.folder = tempfile.TemporaryDirectory(prefix="qpscope-bpf-")
        self.control = f"ipc://{self.folder.name}/control"
        verbs = tree.path + tree.verbs
        self.host = Host(HOST, "--library", verbs, "--control", self.control)
        self.program = Program([f"{BUILD}/tests/bpf/bpf_test_poster", verbs, str(polls)], {})
        self.rounds = 0
        self.requests = []
        self.program.go()
        self.program.wait_for("made")

    def post(self):
        self.rounds += 1
        self.program.go()
        self.program.wait_for("polled")

    def follow(self, *options):
        """Does not wait for the command's end: it holds its link for longer than some requests last."""
        self.requests.append(subprocess.Popen([f"{BUILD}/cli/qpscope", "follow", "--control", self.control, *options],
                                              stdout=subprocess.DEVNULL))

    def wait_followed(self, number):
        end = time.monotonic() + 20
        while sum('"followed"' in line for line in list(self.host.lines)) < number:
            assert time.monotonic() < end, "the request never ended"
            time.sleep(0.01)

    def wait_set(self):
        """The probes are set when one round is seen; that round does not count."""
        end = time.monotonic() + 20
        while not any('"work"' in line for line in list(self.host.lines)):
            assert time.monotonic() < end, "nothing was ever followed"
            self.post()
            time.sleep(0.1)
        self.settled = self.rounds

    def finish(self):
        self.program.process.stdin.close()
        self.program.finish()
        assert [request.wait() for request in self.requests] == [0] * len(self.requests), "a request was not taken"
        records = self.host.stop()
        self.folder.cleanup()
        return records


def rows(records, kind):
    return [r for r in records.records if r["record"] == kind]


def check_round(poster, records, number):
    """Each post and each completion once, with its bytes, on its queue pair, in time."""
    queue_pairs = records.queue_pairs_of(poster.program.pid)
    posted = [line for line in poster.program.all("posted") if line["round"] == number]
    assert len(posted) == 2
    for line in posted:
        source = queue_pairs[line["posted"]]["queue_pair"]
        mine = [r for r in rows(records, "work") if r["source"] == source and r["request"] == line["request"]]
        assert [r["what"] for r in mine] == [POSTED, COMPLETED], (line, mine)
        post, completion = mine
        assert (post["requests"], post["opcode"], post["status"]) == (line["requests"], line["opcode"], 0), post
        assert line["before_ns"] <= post["at_ns"] <= line["after_ns"] <= completion["at_ns"], (line, mine)
        assert (completion["opcode"], completion["status"]) == (1, line["status"]), completion  # IBV_WC_RDMA_WRITE
        assert post["tid"] == completion["tid"] != poster.program.pid, mine
        cut = line["requests"] == 1  # of its six pieces four are read, and it says so
        assert (post["bytes"], post["flags"]) == ((15, CUT) if cut else (line["bytes"], 0)), post


def in_time(tree):
    poster = Poster(tree)
    poster.post()  # before anybody asks
    poster.follow("--for", "1500ms")
    poster.wait_set()
    for _ in range(5):
        poster.post()
    poster.wait_followed(1)
    poster.post()
    poster.post()  # after
    records = poster.finish()
    for number in range(poster.settled + 1, poster.settled + 6):
        check_round(poster, records, number)
    followed, = rows(records, "followed")
    work = rows(records, "work")
    assert followed["end"] == IN_TIME and followed["what"] == 1, followed
    assert 1.5e9 <= followed["to_ns"] - followed["from_ns"] < 1.5e9 + 1e9, followed
    assert all(r["at_ns"] <= followed["to_ns"] for r in work), "followed after its end"
    first = poster.program.all("posted")[0]
    assert all(r["at_ns"] > first["after_ns"] for r in work), "followed before it was asked"
    assert records.counters["work_unknown_total"] == 0
    assert records.counters["posts_total"] + records.counters["completions_total"] == len(work)
    return f"{len(work)} posts and completions as posted, none before, none after"


def spent(tree):
    """A poll that finds nothing is a hit as well; after the last one nothing is told."""
    poster = Poster(tree, polls=1000)
    poster.follow("--for", "60s", "--hits", "200")
    poster.wait_set()
    poster.wait_followed(1)
    poster.post()
    records = poster.finish()
    followed, = rows(records, "followed")
    assert (followed["end"], followed["hits"]) == (SPENT, 200), followed
    assert len(rows(records, "work")) <= 2 * ROUND_HITS, rows(records, "work")
    return "ended by the 200th hit"


def others_untouched(tree):
    """Only the process that was named; another that has the same file mapped is not probed."""
    poster, other = Poster(tree), None
    try:
        other = Program([f"{BUILD}/tests/bpf/bpf_test_poster", tree.path + tree.verbs, "0"], {"STANDIN_FIRST_QPN": "900"})
        other.go()
        other.wait_for("made")
        time.sleep(0.2)
        poster.follow("--for", "2s", "--pid", str(poster.program.pid))
        poster.wait_set()
        other.go()
        other.wait_for("polled")
        poster.post()
        poster.wait_followed(1)
        other.process.stdin.close()
        other.finish()
    finally:
        if other is not None:
            other.process.kill()
    records = poster.finish()
    theirs = {q["queue_pair"] for q in records.queue_pairs_of(other.pid).values()}
    assert len(theirs) == 2 and not any(r["source"] in theirs for r in rows(records, "work"))
    return "another process with the same library had no hit"


def replaced_and_refused(tree):
    poster = Poster(tree)
    poster.follow("--for", "60s")
    poster.wait_set()
    poster.follow("--for", "1s")
    poster.wait_followed(2)
    poster.follow("--for", "1s", "--pid", str(os.getpid()))  # has no queue pair
    poster.wait_followed(3)
    records = poster.finish()
    ends = [r["end"] for r in rows(records, "followed")]
    assert ends == [REPLACED, IN_TIME, REFUSED], ends
    assert rows(records, "followed")[2]["hits"] == 0
    assert any("cannot follow what is posted" in line for line in poster.host.log)
    return "a new request ends the one before; one that finds nothing says so"


sys.exit(run_tests(HOST, BUILD, [in_time, spent, others_untouched, replaced_and_refused], sys.argv[2:]))
