#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""meson_tap.py TESTLOG.json: the results of `meson test` as TAP lines, each case of a TAP test counted as one."""
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
    with open(sys.argv[1]) as log:
        for entry in map(json.loads, log):
            print(*lines(entry), sep="\n")


if __name__ == "__main__":
    main()
