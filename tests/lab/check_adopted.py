#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_adopted.py BUILD FOLDER...: what would be known of these jobs if their agent had come late, as TAP.

Of each job's captures a copy is made in which nobody says whose a queue pair is, and from which the calls of the first seconds are
missing (forget_owners); what the analysis of the copy says by itself is compared with the job's truth. No owner may be wrong. Exit status 1
when one is.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from check_when import judge_queues, queues_told  # noqa: E402
from tap import Tap  # noqa: E402
from truth import Truth  # noqa: E402

LATE_S = ("0", "3")  # after the first call


def adopted(build, folder, late_s):
    """Counts by subject and state, and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="qpscope-adopted-") as work:
        forgotten = os.path.join(work, "host.capture")
        subprocess.run([f"{build}/tests/golden/forget_owners", f"{folder}/host.capture", forgotten, late_s], check=True)
        subprocess.run([f"{build}/cli/qpscope", "replay", "--store", f"{work}/qpscope.db", f"{folder}/nic.capture", forgotten],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        counts, wrong = collections.defaultdict(collections.Counter), []
        for subject, state, what in judge_queues(Truth(folder), queues_told(work)):
            counts[subject][state] += 1
            if state == "wrong":
                wrong.append(f"{subject} {state}: {what}")
    return counts, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folders", nargs="+", metavar="folder")
    options, tap = parser.parse_args(), Tap()
    for folder in options.folders:
        for late_s in LATE_S:
            counts, wrong = adopted(options.build, folder, late_s)
            told = ", ".join(f"{subject} {states['right']} of {sum(states.values())}" for subject, states in counts.items())
            tap.check(f"no owner is wrong, agent {late_s} s late", wrong, f"{os.path.basename(os.path.normpath(folder))}: {told}")
    print(f"1..{tap.count}")
    return tap.status


if __name__ == "__main__":
    sys.exit(main())
