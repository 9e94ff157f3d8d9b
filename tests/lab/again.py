#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""again.py LOG...: the TAP lines of a stage that was run more than once, as one: a check is right when one of its runs was.

Checks are the same when their names are, without their numbers and without what was measured: what stands in parentheses, and
after a semicolon. One that only an earlier run printed counts as that run left it. Exit status 1 when one is right in no run.
"""

import collections
import re
import sys

LINE = re.compile(r"^(ok|not ok)(?: \d+)? ?-? ?(.*)$")


def name_of(text):
    return re.sub(r"\s*(\([^()]*\)|;.*$)", "", text)


def checks(lines):
    """(name, how many of that name came before) -> line."""
    found, counts = {}, collections.Counter()
    for line in lines:
        match = LINE.match(line)
        if match:
            name = name_of(match[2])
            found[name, counts[name]] = line.rstrip("\n")
            counts[name] += 1
    return found


def joined(runs):
    """Runs are lists of lines. The line of each check that says best of it."""
    best = {}
    for run in runs:
        for key, line in checks(run).items():
            if not best.get(key, "").startswith("ok"):
                best[key] = line
    return list(best.values())


def main():
    runs = []
    for path in sys.argv[1:]:
        with open(path, errors="replace") as log:
            runs.append(log.readlines())
    lines = joined(runs)
    print(*lines, sep="\n")
    return int(any(line.startswith("not ok") for line in lines))


if __name__ == "__main__":
    sys.exit(main())
