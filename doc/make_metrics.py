#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make_metrics.py ROOT [--check]: the tables of doc/metrics.md, made of the .def files that the programs are made of.

Each table stands between "<!-- NAME -->" and "<!-- end -->". With --check nothing is written: exit code 1 and what differs, when
the page says anything else than the programs do.
"""
import difflib
import os
import re
import sys

ROW = re.compile(r'^(?:METRIC|COUNTER|TRAFFIC|PORT_METRIC)\((.*)\)$', re.M)
ARGUMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s",]+)')


def rows(root, path):
    """Arguments of each line of a .def file."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return [[word or text for text, word in ARGUMENT.findall(arguments)] for arguments in ROW.findall(file.read())]


def sample(name, kind):
    return name + {"COUNTER": "_total", "INFO": "_info"}.get(kind, "")


def line(name, kind, help_text):
    return f"| `{name}` | {kind.lower()} | {help_text} |"


def metrics(root, path):
    return [line(sample(name, kind), kind, help_text) for _, name, kind, _, help_text in rows(root, path)]


def counters(root, path, prefix):
    """As metric_counters (wire/metric/metric.h)."""
    for _, name, help_text in rows(root, path):
        kind = "COUNTER" if name.endswith("_total") else "GAUGE"
        base = name.removesuffix("_total")
        base = base.removesuffix("_ns") + "_seconds" if base.endswith("_ns") else base
        yield line(sample(f"{prefix}_{base}", kind), kind, help_text)


def traffic(root, prefix):
    for _, name, _, _, help_text in rows(root, "wire/metric/traffic.def"):
        yield line(f"{prefix}_{{sent,received,passed}}_{name}_total", "COUNTER", help_text)


def ports(root):
    for _, _, name, kind, help_text in rows(root, "wire/port_metric.def"):
        base = name.removesuffix("_total")
        base = base.removesuffix("_ns") + "_seconds" if kind == "DURATION" else base
        kind = "GAUGE" if kind == "STATE" else "COUNTER"
        yield line(sample(f"qpscope_nic_port_{base}", kind), kind, help_text)


def tables(root):
    return {
        "own": metrics(root, "wire/metric/own.def"),
        "correlator": metrics(root, "correlator/exposition/metric.def"),
        "devices": traffic(root, "qpscope_device"),
        "nic": metrics(root, "nic/exposition/metric.def"),
        "nic traffic": traffic(root, "qpscope_nic"),
        "nic ports": ports(root),
        "nic counters": [*counters(root, "nic/counter.def", "qpscope_nic"), *counters(root, "wire/counter.def", "qpscope_nic")],
        "host": metrics(root, "host/metric.def"),
        "host counters": [*counters(root, "host/counter.def", "qpscope_host"), *counters(root, "wire/counter.def", "qpscope_host")],
    }


def fill(page, root):
    for name, lines in tables(root).items():
        table = "\n".join(["| metric | type | what it says |", "|---|---|---|", *lines])
        page, count = re.subn(rf"<!-- {name} -->\n.*?<!-- end -->", lambda _: f"<!-- {name} -->\n{table}\n<!-- end -->", page,
                              flags=re.S)
        if count != 1:
            sys.exit(f"doc/metrics.md has {count} tables '{name}', not one")
    return page


def main():
    root = sys.argv[1]
    path = os.path.join(root, "doc/metrics.md")
    with open(path, encoding="utf-8") as file:
        page = file.read()
    filled = fill(page, root)
    if sys.argv[2:] == ["--check"]:
        different = list(difflib.unified_diff(page.splitlines(), filled.splitlines(), "doc/metrics.md", "the programs", lineterm=""))
        if different:
            sys.exit("\n".join(different) + f"\nmake it anew: {sys.argv[0]} {root}")
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(filled)


if __name__ == "__main__":
    main()
