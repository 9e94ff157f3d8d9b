#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prometheus_check.py ROOT CORRELATOR PLAY SIMULATE: what deploy/prometheus and deploy/grafana ask, asked of a real Prometheus, as TAP.

A simulated job of 64 ranks is played live into a correlator, which a Prometheus scrapes with the rules and alerts of the
deployment. Each query of each panel and rule has to have data. The NIC and host sides, which need hardware, a
kernel's rights and a job, are played by a page with every metric that doc/metrics.md promises of them.
Skips, and says so, where prometheus or promtool is not installed (Debian package prometheus).
"""
import glob
import http.server
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

JOB_SECONDS = 24
RANKS, STEPS, LATE_RANK = 64, 30, 16
SIMULATE = ["--nodes", "8", "--gpus", "8", "--steps", str(STEPS), "--bytes", "2MiB", "--compute", "800ms", "--fault", "gpu", "--fault-rank", str(LATE_RANK),
            "--fault-delay", "100ms", "--one-file"]
STAND_IN_LABELS = '{device="mlx5_0/1",priority="3"}'
count = failed = 0


def say(name, problems):
    global count, failed
    count += 1
    failed += bool(problems)
    print(f"{'not ok' if problems else 'ok'} {count} - {name}", flush=True)
    for problem in problems:
        print(f"# {problem}", flush=True)


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **more)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(url, accept="*/*"):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=30) as reply:
        return reply.headers["Content-Type"], reply.read().decode()


def wait_for(what, seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"{what} within {seconds} s: no")


# What the files say, without a Prometheus.

def promised(root):
    """Names of doc/metrics.md -> type, each of sent, received and passed by itself."""
    with open(os.path.join(root, "doc/metrics.md"), encoding="utf-8") as file:
        found = re.findall(r"^\| `([^`]+)` \| (\w+) \|", file.read(), re.M)
    names = {}
    for name, kind in found:
        variants = [name.replace("{sent,received,passed}", way) for way in ("sent", "received", "passed")]
        names.update(dict.fromkeys(variants if "{" in name else [name], kind))
    return names


def queries(root):
    """(where, query) of dashboards, rules and alerts."""
    for path in sorted(glob.glob(os.path.join(root, "deploy/grafana/*.json"))):
        with open(path, encoding="utf-8") as file:
            board = json.load(file)
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield f"{os.path.basename(path)}: {panel['title']} {target['refId']}", target["expr"]
    for name in ("rules.yaml", "alerts.yaml"):
        with open(os.path.join(root, "deploy/prometheus", name), encoding="utf-8") as file:
            for rule, one, several in re.findall(r"- (?:record|alert): (\S+)\n +expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)", file.read()):
                yield f"{name}: {rule}", one or several


def concrete(query):
    return re.sub(r"\$(correlator|communicator|rank|host|device)\b", ".*", query).replace("$__rate_interval", "10s")


def unknown_names(root):
    known = promised(root)
    names = set(known) | {f"{name}_{part}" for name, kind in known.items() if kind == "histogram" for part in ("sum", "count", "bucket")}
    for where, query in queries(root):
        for name in set(re.findall(r"\bqpscope_\w+", query)) - names:
            yield f"{where}: {name} is no metric of doc/metrics.md"


def check_files(root):
    folder = os.path.join(root, "deploy/prometheus")
    done = run(sys.executable, os.path.join(root, "doc/make_metrics.py"), root, "--check")
    say("doc/metrics.md says what the programs say", done.stderr.splitlines() if done.returncode else [])
    say("every metric that is asked for is promised", sorted(unknown_names(root)))
    with open(os.path.join(folder, "alerts.yaml"), encoding="utf-8") as file:
        alerts = set(re.findall(r"- alert: (\w+)", file.read()))
    with open(os.path.join(folder, "runbooks.md"), encoding="utf-8") as file:
        books = set(re.findall(r"^## (\w+)", file.read(), re.M))
    say("every alert has a run-book, and the reverse", sorted(alerts ^ books))
    boards = [json.load(open(path, encoding="utf-8")) for path in glob.glob(os.path.join(root, "deploy/grafana/*.json"))]
    say("panels and variables are described", [f"{board['title']}: {item.get('title', item.get('name'))}" for board in boards
                                              for item in board["panels"] + board["templating"]["list"]
                                              if not item.get("description")])


def check_promtool(root):
    folder = os.path.join(root, "deploy/prometheus")
    for what in (["check", "config", "prometheus.yaml"], ["test", "rules", "tests.yaml"]):
        done = run("promtool", *what, cwd=folder)
        say("promtool " + " ".join(what), (done.stdout + done.stderr).splitlines() if done.returncode else [])


# The job, live.

class StandIn(http.server.BaseHTTPRequestHandler):
    """Every metric that is promised of a program, each one more than when it was asked for before."""
    names = {}
    asked = 0

    def do_GET(self):
        StandIn.asked += 1
        lines = [f"{name}{STAND_IN_LABELS if '_nic_port_' in name or '_nic_sent_' in name else ''} {StandIn.asked}"
                 for name in self.names]
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        try:
            self.wfile.write(("\n".join(lines) + "\n").encode())
        except BrokenPipeError:  # Prometheus did not wait
            pass

    def log_message(self, *_):
        pass


class Stage:
    """Correlator, stand-in and Prometheus, in a folder of their own; all end with it."""

    def __init__(self, root, correlator, folder):
        self.folder, self.processes = folder, []
        self.metrics, self.prometheus = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.intake = f"ipc://{folder}/intake"
        StandIn.names = [name for name in promised(root) if name.startswith(("qpscope_nic_", "qpscope_host_"))] + [
            "qpscope_cpu_seconds_total", "qpscope_resident_memory_bytes"]
        self.stand_in = http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
        threading.Thread(target=self.stand_in.serve_forever, daemon=True).start()
        self.start([correlator, "--intake", self.intake, "--clock", f"ipc://{folder}/clock", "--store", f"{folder}/job.db",
                    "--share", "50", "--http", self.metrics])
        wait_for("the correlator serves", 20, lambda: get(f"http://{self.metrics}/-/ready"))
        self.start(["prometheus", f"--config.file={self.configure(root)}", f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address={self.prometheus}", "--log.level=error"])
        wait_for("prometheus is ready", 60, lambda: get(f"http://{self.prometheus}/-/ready"))
        wait_for("prometheus has scraped", 30, lambda: self.ask("sum(up)") and float(self.ask("sum(up)")[0]["value"][1]) == 3)

    def configure(self, root):
        """The deployment's own configuration, with other addresses and a faster clock."""
        with open(os.path.join(root, "deploy/prometheus/prometheus.yaml"), encoding="utf-8") as file:
            text = file.read()
        stand_in = f"127.0.0.1:{self.stand_in.server_address[1]}"
        for old, new in (("127.0.0.1:9419", self.metrics), ("127.0.0.1:9417", stand_in), ("127.0.0.1:9418", stand_in), ("15s", "1s")):
            text = text.replace(old, new)
        for name in ("rules.yaml", "alerts.yaml"):
            shutil.copy(os.path.join(root, "deploy/prometheus", name), self.folder)
        path = os.path.join(self.folder, "prometheus.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, command):
        log = open(os.path.join(self.folder, os.path.basename(command[0]) + ".log"), "w", encoding="utf-8")
        self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def ask(self, query, since=None):
        """Samples of an instant, or with `since` of all seconds from then on."""
        arguments = {"query": query, "time": time.time()} if since is None else {
            "query": query, "start": since, "end": time.time(), "step": 1}
        kind = "query" if since is None else "query_range"
        try:
            text = get(f"http://{self.prometheus}/api/v1/{kind}?{urllib.parse.urlencode(arguments)}")[1]
        except urllib.error.HTTPError as error:
            return [error.read().decode()]
        return json.loads(text)["data"]["result"]

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
        codes = [process.wait(timeout=60) for process in self.processes]
        self.stand_in.shutdown()
        return codes


def numbers(result):
    """Those that are numbers, of all series."""
    return [float(value) for series in result for _, value in series.get("values", [series.get("value", (0, "NaN"))]) if value != "NaN"]


def without_data(stage, root, since):
    for where, query in queries(root):
        result = stage.ask(concrete(query), since)
        if result and isinstance(result[0], str):
            yield f"{where}: {result[0]}"
        elif not numbers(result) and not where.startswith("alerts.yaml"):
            yield f"{where}: no data: {query}"


def parse(text):
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line and line[0] != "#")}


SUMS = (  # what the store's rows come to -> the metric's name, or one of its samples
    ("SELECT count(*) FROM step WHERE partial = 0", "qpscope_step_duration_seconds_count"),
    ("SELECT sum(duration_ns) / 1e9 FROM step WHERE partial = 0", "qpscope_step_duration_seconds_sum"),
    ("SELECT sum(observed_bytes) FROM rank_operation", "qpscope_operation_wire_payload_bytes_total"),
    ("SELECT sum(active_ns) / 1e9 FROM rank_operation", "qpscope_operation_active_seconds_total"),
    ("SELECT count(*) FROM operation", "qpscope_operations_total"),
    ("SELECT count(*) FROM verdict", "qpscope_verdicts_total"),
    ("SELECT sum(size_ns) / 1e9 FROM verdict", "qpscope_verdict_size_seconds_total"),
    ("SELECT sum(max(late_ns, 0)) / 1e9 FROM rank_step", "qpscope_rank_late_seconds_total"),
    (f"SELECT sum(cost_ns) / 1e9 FROM rank_step WHERE rank = {LATE_RANK}", f'qpscope_rank_cost_seconds_total{{rank="{LATE_RANK}"}}'),
    ("SELECT sum(payload_bytes) FROM flow WHERE vantage = 'tx'", "qpscope_device_sent_payload_bytes_total"),
    ("SELECT sum(payload_bytes) FROM flow WHERE vantage = 'rx'", "qpscope_device_received_payload_bytes_total"),
    ("SELECT count(*) FROM member WHERE communicator = 1", "qpscope_rank_info"),
)


def differs_from_store(samples, store):
    database = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    for sql, name in SUMS:
        expected = database.execute(sql).fetchone()[0] or 0
        found = sum(value for sample, value in samples.items() if name in (sample, sample.split("{")[0]))
        if (expected == 0 and "verdict" not in name) or abs(found - expected) > 1e-9 * expected:
            yield f"{name}: {found}, by the store {expected} ({sql})"


def check_sums(correlator, capture, store):
    """A correlator that is told all at once, as by its journal, comes to what its store says, exactly."""
    shutil.copy(capture, store + ".journal")
    address = f"127.0.0.1:{free_port()}"
    folder = os.path.dirname(store)
    with subprocess.Popen([correlator, "--intake", f"ipc://{folder}/intake2", "--clock", f"ipc://{folder}/clock2", "--store", store,
                           "--http", address], stderr=subprocess.DEVNULL) as process:
        try:
            wait_for("the journal is analysed", 120, lambda: parse(get(f"http://{address}/metrics")[1])["qpscope_analyses_total"] >= 1)
            samples = parse(get(f"http://{address}/metrics")[1])
        finally:
            process.terminate()
    say("the store's rows come to the same", list(differs_from_store(samples, store)))


def bandwidth_is_wrong(samples):
    """All-reduces of n ranks move 2 (n - 1) / n of their message, by arithmetic."""
    def total(name):
        return sum(value for sample, value in samples.items() if sample.startswith(name) and 'operation="AllReduce"' in sample)
    message, bus = total("qpscope_operation_message_bytes_total"), total("qpscope_operation_bus_bytes_total")
    if message == 0 or abs(bus / message - 2 * (RANKS - 1) / RANKS) > 1e-9:
        yield f"bus bytes are {bus} of {message} message bytes"


def falls(stage, since):
    """Counters never fall while the correlator runs."""
    result = stage.ask('{__name__=~"qpscope_.*(_total|_sum|_count|_bucket)",job="qpscope-correlator"}', since)
    for series in result:
        values = [float(value) for _, value in series["values"]]
        if values != sorted(values):
            yield f"{series['metric']}: {values}"
    if len(result) < 100:
        yield f"only {len(result)} counters were scraped"


def check_live(root, correlator, play, simulate):
    with tempfile.TemporaryDirectory(prefix="qpscope-metrics-") as folder:
        if run(simulate, *SIMULATE, folder).returncode != 0:
            raise RuntimeError("the job could not be simulated")
        stage = Stage(root, correlator, folder)
        try:
            since = time.time()
            played = run(play, stage.intake, str(JOB_SECONDS), os.path.join(folder, "all.capture"))
            say("a job of 64 ranks is played", [played.stderr] if played.returncode else [])
            wait_for("the last step is told", 150, lambda: sum(
                value for name, value in parse(get(f"http://{stage.metrics}/metrics")[1]).items()
                if name.startswith("qpscope_step_duration_seconds_count")) >= STEPS - 1)
            time.sleep(3)
            say("each query of each panel and rule has data", list(without_data(stage, root, since)))
            say("counters do not fall", list(falls(stage, since)))
            say("the late rank costs most", [] if [series["metric"]["rank"] for series in stage.ask(
                "topk(1, qpscope_rank_cost_seconds_total)")] == [str(LATE_RANK)] else [stage.ask("topk(3, qpscope_rank_cost_seconds_total)")])
            say("the alert on it would ring", [] if any(value > 0.03 for value in numbers(stage.ask(
                f'qpscope:rank_cost:ratio5m{{rank="{LATE_RANK}"}}', since))) else ["its rule stays below"])
            kind, text = get(f"http://{stage.metrics}/metrics", "application/openmetrics-text; version=1.0.0")
            say("OpenMetrics to whom asks for it", [] if kind.startswith("application/openmetrics-text; version=1.0.0")
                and text.endswith("# EOF\n") and "# TYPE qpscope_verdicts counter\n" in text else [kind, text[-100:]])
            kind, text = get(f"http://{stage.metrics}/metrics")
            done = run("promtool", "check", "metrics", input=text)
            say("promtool has nothing against the page", (done.stdout + done.stderr).splitlines())
            served = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
            say("all that is served is promised", sorted(served - set(promised(root))))
            samples = parse(text)
            say("bus bandwidth is that of an all-reduce", list(bandwidth_is_wrong(samples)))
            say("label sets are bounded", [f"{len(samples)} samples"] if len(samples) > 5000 else [])
        finally:
            codes = stage.end()
        say("all end in order", [codes] if codes[0] != 0 else [])
        check_sums(correlator, os.path.join(folder, "all.capture"), os.path.join(folder, "again.db"))


def main():
    root, correlator, play, simulate = sys.argv[1:]
    check_files(root)
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        print("ok - a real Prometheus # SKIP the Debian package prometheus is not installed")
        print(f"1..{count + 1}")
    else:
        check_promtool(root)
        check_live(root, correlator, play, simulate)
        print(f"1..{count}")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
