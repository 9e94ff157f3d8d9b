#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""plan.py [--seeds N] [--secret S] [--least MS] [--by-hand] [--only-faults]: a plan for run.sh, on stdout.

For each of N seeds a job without a fault and one with each kind of fault, whose rank, size (MS to 200 ms) and first
step come from the secret, which qpscope never sees (by default the time: every run has new ones; it is printed in the
plan, so that a run can be made again). Without --only-faults also the special jobs that check.sh judges.
"""

import argparse
import random
import time

OTHER_TIME = "unshare --time --fork --monotonic 7 --boottime 7 --"
# name, variables of the hook, options of job_run. Jobs with a library that no job before them had settle for seconds: an emulated kernel
# takes 1 to 2 s to set its probes, where other work keeps the machine busy.
SPECIAL = (
    ("quiet", "QPSCOPE_ALL_WINDOWS=1 QPSCOPE_STALL=1.5", "--fault none --pcap --foreign 0,2 --library-name libcollectives.so.7 --settle 5000 --seed 11"),
    ("together", "", "--fault gpu --rank 1 --delay 90 --two-in-one --seed 12"),
    ("flush", "", "--fault none --gdr --qps 2 --seed 13 --steps 8"),
    ("shifted", f"QPSCOPE_NIC_PREFIX='{OTHER_TIME}' QPSCOPE_HOST_PREFIX='{OTHER_TIME}'", "--fault gpu --rank 2 --delay 120 --seed 14"),
    ("asked", "QPSCOPE_CORRELATOR_NICE=-10 QPSCOPE_CORRELATOR_OPTIONS='--share 60' QPSCOPE_METRICS=1",
     "--fault gpu --rank 2 --delay 120 --first-step 3 --seed 16 --steps 30"),
    ("exercised", "QPSCOPE_HOST_ONLY=stays",
     "--exercise 'modes several group group_async split split_shared split_part grow revoke many_queues pxn shrink' --no-tracer --settle 4000 "
     "--seed 18 --limit 200 --with-next"),
    ("devices", "QPSCOPE_HOST_ONLY=ends", "--exercise all --ranks 2 --two-in-one --no-tracer --settle 4000 --seed 19 --limit 100"),
    ("killed", "QPSCOPE_KILLS={kills} QPSCOPE_CORRELATOR_NICE=0", "--fault none --seed 15 --steps {steps} --limit {limit}"),
)
# They want a quick host side, which the emulated kernel is on a machine with nothing else to do: it loads the probes in 7 to 15 s.
BY_HAND = (
    ("followed", "QPSCOPE_FOLLOW='--for 4s --hits 100000'", "--fault none --seed 17 --steps 12"),
    ("restarted", "QPSCOPE_KILLS=2 QPSCOPE_CORRELATOR_NICE=0 QPSCOPE_HOST_PREFIX='nice -n -15'",
     "--fault none --seed 17 --steps 90 --limit 600"),
)
VARIABLES = "QPSCOPE_NIC_PREFIX QPSCOPE_HOST_PREFIX QPSCOPE_KILLS QPSCOPE_STALL QPSCOPE_FOLLOW QPSCOPE_ALL_WINDOWS QPSCOPE_CORRELATOR_NICE QPSCOPE_CORRELATOR_OPTIONS " \
            "QPSCOPE_HOST_ONLY QPSCOPE_METRICS"


def fault_jobs(seeds, chance, least_ms):
    for seed in range(1, seeds + 1):
        for fault in ("none", "host", "gpu", "link"):
            rank, delay, first = chance.randrange(4), chance.randrange(least_ms, 201), chance.randrange(3, 7)
            options = f"--fault {fault} --rank {rank} --delay {delay} --first-step {first} --seed {chance.randrange(1, 100000)}"
            yield f"{fault}-{seed}", "", options


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--secret", type=int, default=time.time_ns() // 1_000_000)
    parser.add_argument("--least", type=int, default=40, metavar="MS", help="size of the smallest fault (40)")
    parser.add_argument("--kills", type=int, default=6, help="of the job `killed`, in turn among the three daemons (6)")
    parser.add_argument("--by-hand", action="store_true", help="also the jobs `followed` and `restarted`")
    parser.add_argument("--only-faults", action="store_true")
    options = parser.parse_args()
    print(f"# secret {options.secret}")
    jobs = list(fault_jobs(options.seeds, random.Random(options.secret), options.least))
    for name, variables, job in [*(() if options.only_faults else SPECIAL), *(BY_HAND if options.by_hand else ()), *jobs]:
        print(f"unset {VARIABLES}")
        steps = 20 + 12 * options.kills
        fill = {"kills": options.kills, "steps": steps, "limit": 120 + 4 * steps}
        if variables:
            print(variables.format(**fill))
        print(f"job_run {name} {job.format(**fill)}")


if __name__ == "__main__":
    main()
