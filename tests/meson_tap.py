#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""meson_tap.py [--failed] TESTLOG.json...: the results of `meson test` as TAP lines, each case of a TAP test counted as one; of
a test that was run again, the later log's. --failed: the names of those that failed, as `meson test` takes them."""
import json
import re
import sys


def lines(entry):
    """One line a case where the test printed TAP, else one line for the test."""
    name, result = entry["name"], entry["result"]
    cases = re.findall(r"^(ok|not ok) \d+ ?-? ?(.*)$", entry.get("stdout", ""), re.M)
    if cases and result in ("OK", "FAIL"):
        for verdict, case in cases:
            yield f"{verdict} - {name}: {case}"
        if result == "FAIL" and all(verdict == "ok" for verdict, _ in cases):
            yield f"not ok - {name} (ended badly)"
        return
    if result == "SKIP":
        text = (entry.get("stdout", "") + entry.get("stderr", "")).strip()
        yield f"ok - {name} # SKIP {text.splitlines()[-1] if text else 'no reason given'}"
    else:
        yield f"{'ok' if result in ('OK', 'EXPECTEDFAIL') else 'not ok'} - {name}{'' if result == 'OK' else ' ' + result}"


def main():
    only_failed = sys.argv[1] == "--failed"
    entries = {}
    for path in sys.argv[1 + only_failed:]:
        with open(path) as log:
            entries |= {entry["name"]: entry for entry in map(json.loads, log)}
    for name, entry in entries.items():
        if not only_failed:
            print(*lines(entry), sep="\n")
        elif any(line.startswith("not ok") for line in lines(entry)):
            print(name.rpartition(" / ")[2])


if __name__ == "__main__":
    main()
