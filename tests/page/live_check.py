#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""live_check.py CORRELATOR QPSCOPE SIMULATE PLAY_CAPTURES: the correlator's live page in a real browser while it hears a job. Prints TAP.

What stands in it is compared with the store's rows and with what qpscope prints of the same store. Skipped, with the reason, where there is no
Chromium or the build has no page.
"""
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402

CORRELATOR, QPSCOPE, SIMULATE, PLAY_CAPTURES = map(os.path.abspath, sys.argv[1:5])
LATE_RANK = 2
STEPS = 24
FAULT = ("--fault", "gpu", "--fault-delay", "5ms")
PATIENCE_S = 60
tests = []


def test(function):
    tests.append(function)
    return function


def equal(found, expected):
    assert found == expected, f"\nfound    {found}\nexpected {expected}"


def settled(check):
    """A check of things that are read one after the other, while the correlator still goes on: it has to hold in the end."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


class Job:
    """A correlator that serves its page, and a browser that looks at it before there is anything to see."""

    def __init__(self, folder, fault=FAULT):
        self.folder, self.store = folder, os.path.join(folder, "job.db")
        self.log = os.path.join(folder, "log")
        self.intake = f"ipc://{folder}/intake"
        subprocess.run([SIMULATE, "--shape", "plain", "-n", "4", "-g", "1", "-c", "1", "--bytes", "1MiB", "--steps", str(STEPS), "--waits", "--fault-rank", str(LATE_RANK),
                        "--fault-first", "10", *fault, "--one-file", folder], check=True, stdout=subprocess.DEVNULL)
        with open(self.log, "w", encoding="utf-8") as log:
            self.correlator = subprocess.Popen([CORRELATOR, "--intake", self.intake, "--clock", f"ipc://{folder}/clock", "--store", self.store, "--share", "50", "--http", "0", "--http-name", "train.example"], stderr=log)
        self.chromium = self.url = None

    def find_url(self):
        with open(self.log, encoding="utf-8") as log:
            found = re.search(r"metrics at port (\d+)", log.read())
        return found and f"http://127.0.0.1:{found.group(1)}"

    @staticmethod
    def wait(condition):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = condition()
            if found:
                return found
            time.sleep(0.1)
        raise RuntimeError("it never came")

    def look(self, program):
        self.chromium = browser.Browser(program)
        self.chromium.visit(self.url + "/")

    def play(self):
        subprocess.run([PLAY_CAPTURES, self.intake, "3", os.path.join(self.folder, "all.capture")], check=True)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
            assert answer.headers["Content-Type"].startswith("application/json"), answer.headers["Content-Type"]
            return json.load(answer)

    def status(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def command(self, *arguments):
        return json.loads(subprocess.run([QPSCOPE, *arguments, "--json", "--store", self.store], check=True, capture_output=True, text=True).stdout)

    def row(self, sql):
        with sqlite3.connect(f"file:{self.store}?mode=ro", uri=True) as database:
            database.row_factory = sqlite3.Row
            return database.execute(sql).fetchone()

    def close(self):
        if self.chromium:
            self.chromium.close()
        self.correlator.terminate()
        self.correlator.wait(PATIENCE_S)


@test
def it_opens_before_there_is_a_step(job):
    assert "no steps yet" in job.chromium.value("document.getElementById('said').textContent")
    equal(job.chromium.value("[data.live, data.by_rank.length, document.getElementById('live').hidden]"), [True, 0, False])


@test
def steps_appear_without_loading_anew(job):
    job.chromium.value("window.stays = 1")
    job.play()
    job.chromium.wait(f"steps.length >= {STEPS} - 1 && data.why.summary.length === 1")
    equal(job.chromium.value("window.stays"), 1)
    card = job.chromium.value("document.querySelector('.card-title').textContent")
    equal(card, f"Rank {LATE_RANK}: gpu late")
    assert job.chromium.value("document.getElementById('live').textContent").startswith("live")


@test
def a_slow_step_that_is_chosen_shows_the_late_rank(job):
    verdict = job.row(f"SELECT * FROM verdict WHERE rank = {LATE_RANK} ORDER BY step LIMIT 1")
    job.chromium.value(f"choose({{ step: {verdict['step']} }})")
    job.chromium.wait(f"view.detail !== null && view.detail.step === {verdict['step']}")
    place = job.chromium.value(f"(() => {{ view.canvas.scrollIntoView({{block: 'center'}}); return timelinePlace({LATE_RANK}, {verdict['operation']}); }})()")
    equal(place["label"], f"rank {LATE_RANK}, comm 1")
    equal(job.chromium.value("view.lanes.filter((lane) => lane.kind === 'operations')[0].label"), f"rank {LATE_RANK}, comm 1")
    job.chromium.mouse("mouseMoved", place["x"], place["y"])
    job.chromium.drawn()
    shown = job.chromium.value("document.getElementById('tip').textContent").splitlines()
    row = job.row(f"SELECT r.*, s.start_ns AS begin_ns FROM rank_operation AS r, step AS s WHERE r.operation = {verdict['operation']} AND r.rank = {LATE_RANK} "
                  f"AND s.id = {verdict['step']}")
    for key, words in (("enqueued_ns", "enqueued "), ("host_ready_ns", "host ready "), ("end_ns", "end ")):
        assert f"{words}{(row[key] - row['begin_ns']) / 1e6:.3f} ms" in shown, (key, shown)


@test
def it_follows_the_newest_step(job):
    job.chromium.value("document.getElementById('follow').checked = true")
    job.chromium.value("fetchOverview()")
    newest = job.row("SELECT max(id) AS step FROM step")["step"]
    job.chromium.wait(f"chosen.step === {newest} && view.detail !== null && view.detail.step === {newest}")


def same_overview(job):
    overview = job.get("/api/v1/overview")
    bare = {key: value for key, value in job.command("steps").items() if key not in ("schema_version", "generator")}
    equal((overview["steps"], overview["live"], overview["details"]), (bare, True, []))
    detail = job.get("/api/v1/steps/3")
    equal((detail["step"], detail["revision"], detail["schema_version"]), (3, overview["revision"], 1))
    equal(detail["timeline"]["ranks"], job.command("timeline", "--step", "3")["ranks"])


@test
def the_json_is_that_of_the_command(job):
    for path, arguments in (("steps", ["steps"]), ("why", ["why"]), ("why?step=3", ["why", "--step", "3"]), ("timeline?step=3", ["timeline", "--step", "3"]),
                            ("queue-pairs", ["qps", "--all"])):
        settled(lambda path=path, arguments=arguments: equal(job.get("/api/v1/" + path), job.command(*arguments)))
    settled(lambda: same_overview(job))


@test
def what_is_not_there_is_said(job):
    equal([job.status("/api/v1/" + path) for path in ("steps/999999", "nothing", "why?step=x", "why?step=999999", "steps/3x")], [404, 404, 400, 404, 404])


def raw(job, text):
    connection = socket.create_connection(("127.0.0.1", int(job.url.rsplit(":", 1)[1])), timeout=PATIENCE_S)
    connection.sendall(text.encode())
    return connection


@test
def clients_that_stall_delay_no_metrics(job):
    # More than may be connected: some have not said all that they ask for, others do not read the page, which does not fit the socket's buffers.
    stalled = [raw(job, "GET / HTTP/1.1\r\nHost: localhost\r\n" + ("\r\n" if number % 2 else "")) for number in range(48)]
    try:
        for _ in range(5):
            begun = time.monotonic()
            with urllib.request.urlopen(job.url + "/metrics", timeout=PATIENCE_S) as answer:
                assert b"qpscope_" in answer.read()
            took = time.monotonic() - begun
            assert took < 5, took  # silent clients are dropped after 10 s
    finally:
        for connection in stalled:
            connection.close()
    job.wait(lambda: job.status("/api/v1/steps") == 200)


@test
def a_name_of_elsewhere_is_refused(job):
    for path in ("/", "/api/v1/overview", "/metrics"):
        for host, status in (("localhost:1", "200"), ("127.0.0.1", "200"), ("train.example:80", "200"), ("evil.example", "421")):
            with raw(job, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n") as connection:
                reply = b"".join(iter(lambda: connection.recv(65536), b""))
            equal((path, host, reply.split(b" ")[1].decode()), (path, host, status))
            assert status == "200" or b"--http-name" in reply, reply


@test
def events_tell_of_the_present_revision(job):
    with urllib.request.urlopen(job.url + "/api/v1/events", timeout=PATIENCE_S) as answer:
        lines = [answer.readline().decode().strip() for _ in range(2)]
    equal(lines[1], f"data: {job.get('/api/v1/overview')['revision']}")


@test
def nothing_went_wrong_in_all_that(job):
    equal(job.chromium.problems, [])


def same_hang(job):
    verdict = job.row("SELECT rank, operation, size_ns FROM verdict WHERE class = 'hang'")
    hang = (detail := job.get("/api/v1/hang"))["timeline"]["hang"]
    equal((LATE_RANK, hang["operation"], hang["to_ns"] - hang["began_ns"]), (verdict["rank"], verdict["operation"], verdict["size_ns"]))
    equal(detail["timeline"]["hang_ranks"], job.command("timeline")["hang_ranks"])


@test
def what_hangs_comes_by_itself_and_has_a_time_line(job):
    equal(job.status("/api/v1/hang"), 404)
    folder = os.path.join(job.folder, "hang")
    os.mkdir(folder)
    other = Job(folder, ("--fault", "hang"))
    try:
        other.url = other.wait(other.find_url)
        other.chromium = job.chromium
        job.chromium.visit(other.url + "/")
        other.play()
        job.chromium.wait("hang !== null")
        job.chromium.value("choose({ step: hang.number })")
        job.chromium.wait("view.detail !== null && view.detail.timeline.hang !== undefined")
        lanes = job.chromium.value("view.lanes.filter((lane) => lane.kind === 'operations').map((lane) => [lane.ranks[0], lane.state.state])")
        equal(sorted(map(tuple, lanes)), [(rank, "has sent nothing" if rank == LATE_RANK else "waits") for rank in range(4)])
        settled(lambda: same_hang(other))
        equal(job.chromium.problems, [])
    finally:
        other.chromium = None
        other.close()
        job.chromium.visit(job.url + "/")
        job.chromium.wait("document.getElementById('live').textContent.startsWith('live')")


@test
def a_correlator_that_ends_is_said(job):
    job.correlator.terminate()
    equal(job.correlator.wait(PATIENCE_S), 0)
    job.chromium.wait("document.getElementById('live').textContent === 'the correlator does not answer'")


def skip(reason):
    print(f"1..1\nok 1 - the live page in a browser # SKIP {reason}")
    sys.exit(0)


def main():
    program = browser.find()
    if program is None:
        skip("chromium is not installed: the page was not tried in a browser")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="qpscope-live-") as folder:
        job = Job(folder)
        try:
            job.url = job.wait(job.find_url)
            if job.status("/") == 503:
                skip("this build has no page: npm is missing, or could not fetch uPlot")
            job.look(program)
            print(f"1..{len(tests)}")
            for number, function in enumerate(tests, 1):
                try:
                    function(job)
                    print(f"ok {number} - {function.__name__.replace('_', ' ')}", flush=True)
                except Exception as error:  # a test that breaks has failed
                    failed += 1
                    print(f"not ok {number} - {function.__name__.replace('_', ' ')}")
                    print("\n".join("# " + line for line in f"{type(error).__name__}: {error}".splitlines()), flush=True)
        finally:
            job.close()
    sys.exit(failed > 0)


main()
