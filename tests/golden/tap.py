# SPDX-License-Identifier: BSD-2-Clause
"""TAP output and running qpscope-nic: what the golden tests share."""
import json
import subprocess

results = []


def check(name, findings):
    """One TAP line: passes when `findings` is empty."""
    results.append(not findings)
    print(f"{'ok' if not findings else 'not ok'} {len(results)} - {name}", flush=True)
    for finding in findings:
        print(f"#   {finding}")


def skip(name, reason):
    results.append(True)
    print(f"ok {len(results)} - {name} # SKIP {reason}", flush=True)


def finish():
    """Prints the plan; the exit code."""
    print(f"1..{len(results)}")
    return 0 if results and all(results) else 1


def run_nic(program, *arguments):
    """Exit code, rows by their type, and what it said on standard error."""
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, timeout=60)
    rows = {"header": [], "flow": [], "message": [], "window": [], "summary": []}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        rows[row["row"]].append(row)
    return done.returncode, rows, done.stderr
