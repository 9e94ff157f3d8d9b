#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""matrix.py [--tap] FILE: what check_job.py --collect found of many jobs, summed up: as tables for doc/results.md, or with
--tap as checks. The thresholds are of many jobs together, since a single one on an emulated machine may fall outside."""

import collections
import json
import statistics
import sys

FAULTS = ("host", "gpu", "link")
# The aims are 5 ms, no unfounded verdict and all durations: doc/results.md says how near the long matrix comes. The few
# jobs of one test run vary more, and these bounds are what an error in the analysis would break. There a fault counts that is
# larger than what ranks without one are late by: on a machine with other work to do that is hundreds of ms.
SIZE_MS = 15  # median error of the size of host and GPU faults, which are of 40 (in the test 80) to 200 ms
FOUND = 0.7  # of a fault's steps have the right verdict, for each kind of fault
UNFOUNDED = 0.05  # of all steps have a verdict that the truth does not show
DURATION, DURATIONS_WITHIN, DURATION_MOST = 0.01, 0.8, 0.1


class Summary:
    def __init__(self, path):
        self.jobs = [json.loads(line) for line in open(path)]
        self.of = collections.defaultdict(list)
        for job in self.jobs:
            self.of[job.get("fault", "none")].append(job)
        self.lossless = [job for job in self.jobs if not job["lost"]]
        self.durations = [abs(error) for job in self.lossless for error in job["durations"]]
        self.within = sum(error <= DURATION for error in self.durations)
        self.steps = sum(job["job_steps"] for job in self.lossless)
        self.unfounded = [f"{job['job']}: {line}" for job in self.lossless for line in job["unfounded"]]

    def errors(self, *faults):
        return sorted(abs(error) for fault in faults for job in self.of[fault] for error in job["errors_ms"])

    def found(self, fault):
        return sum(job["found"] for job in self.of[fault]), sum(job["steps"] for job in self.of[fault])

    def drown(self):
        """Leaves out the jobs whose host or GPU fault is no larger than what ranks are late by without one."""
        drowned = collections.defaultdict(list)
        for job in [job for fault in ("host", "gpu") for job in self.of[fault] if job["size_ms"] <= job["natural_ms"]]:
            self.of[job["fault"]].remove(job)
            line = f"{job['job']}: a fault of {job['size_ms']:.0f} ms; ranks without one are {job['natural_ms']:.0f} ms late"
            drowned[job["fault"]].append(line)
        return drowned


def print_tables(summary):
    print("| fault | jobs | right in every step | in most steps | steps with the right verdict | median error of the size | 90th percentile |")
    print("|---|---|---|---|---|---|---|")
    for fault in FAULTS:
        jobs, errors, (found, steps) = summary.of[fault], summary.errors(fault), summary.found(fault)
        whole = sum(job["found"] == job["steps"] for job in jobs)
        most = sum(job["found"] * 2 > job["steps"] for job in jobs)
        middle = f"{statistics.median(errors):.1f} ms | {errors[int(len(errors) * 0.9)]:.1f} ms" if errors else "- | -"
        print(f"| {fault} | {len(jobs)} | {whole} | {most} | {found} of {steps} | {middle} |")
    print(f"\n{len(summary.jobs) - len(summary.lossless)} of {len(summary.jobs)} jobs lost frames, which the store shows; the others")
    print(f"({len(summary.of['none'])} without a fault among them, {summary.steps} steps): {len(summary.unfounded)} verdicts that neither a fault nor the truth log explains; {summary.within} of {len(summary.durations)} step durations within 1 %,")
    print(f"median {statistics.median(summary.durations):.2%}, worst {max(summary.durations):.2%}.")


def print_checks(summary):
    checks, drowned = [], summary.drown()
    for fault in FAULTS:
        found, steps = summary.found(fault)
        skipped = " # SKIP the machine hides them" if steps == 0 and drowned[fault] else ""
        checks.append((f"{fault} faults: class and place ({found} of {steps} steps){skipped}", skipped or found >= FOUND * steps > 0, drowned[fault]))
    median = statistics.median(summary.errors("host", "gpu") or [0 if any(drowned.values()) else float("inf")])
    checks.append((f"median error of the size of host and GPU faults below {SIZE_MS} ms ({median:.2f} ms)", median < SIZE_MS, []))
    share = len(summary.unfounded) / max(summary.steps, 1)
    checks.append((f"no other verdict, but for lateness that the truth shows too ({len(summary.unfounded)} in {summary.steps} steps)", share <= UNFOUNDED, summary.unfounded))
    good = summary.within >= DURATIONS_WITHIN * len(summary.durations) > 0 and max(summary.durations) <= DURATION_MOST
    checks.append((f"step durations within 1 % ({summary.within} of {len(summary.durations)}, worst {max(summary.durations, default=1):.2%})", good, []))
    for number, (name, passed, details) in enumerate(checks, 1):
        print(f"{'ok' if passed else 'not ok'} {number} - {name}")
        for detail in details:
            print(f"#   {detail}")
    return 0 if all(passed for _, passed, _ in checks) else 1


def main():
    summary = Summary(sys.argv[-1])
    if sys.argv[1] == "--tap":
        return print_checks(summary)
    return print_tables(summary)


if __name__ == "__main__":
    sys.exit(main())
