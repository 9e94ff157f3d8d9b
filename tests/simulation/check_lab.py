#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_lab.py LAB.db MODEL.db: lays the model's AllReduces beside those of a lab job, both as `qpscope replay --store`
keeps them: the sizes of the slices on each queue pair, in order; how many credits an operation has; how many lie there
when the first data comes; whether every slice has its credit before it. Exit status 1 when they differ."""

import collections
import contextlib
import sqlite3
import sys

QUERY = """
SELECT operation.id, operation.buffer_bytes, rank_operation.rank, message.flow, message.role, message.first_ns,
       message.immediate, message.flags & 1, flow.source_rank, flow.destination_rank
FROM message JOIN rank_operation ON rank_operation.id = message.rank_operation
JOIN operation ON operation.id = rank_operation.operation JOIN flow ON flow.id = message.flow
WHERE operation.kind = 'AllReduce' AND rank_operation.status = 'complete' AND flow.vantage = 'tx'
ORDER BY message.first_ns, message.id
"""


def swapped(value):
    return int.from_bytes(value.to_bytes(4, "little"), "big")


def shapes(path):
    """buffer bytes: (sizes of slices on each queue pair, credits a connection, credits there before the first data)."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        rows = store.execute(QUERY).fetchall()
    sent = collections.defaultdict(list)  # (operation, rank): data that it sent; (operation, peer): credits that it gave
    found = collections.defaultdict(collections.Counter)
    given = collections.Counter()
    for operation, size, rank, flow, role, _, immediate, has_immediate, source, destination in rows:
        if role == "credit":
            given[operation, size, destination] += 1
        elif has_immediate:
            sent[operation, size, rank, flow].append((swapped(immediate), given[operation, size, source]))
    for (operation, size, rank, _), slices in sent.items():
        found[size]["slices " + " ".join(str(bytes_) for bytes_, _ in slices)] += 1
        behind = sum(credits < number + 1 for number, (_, credits) in enumerate(slices))
        found[size]["slices before their credit", behind] += 1
        found[size]["credits to a rank", given[operation, size, rank]] += 1
    return found


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    lab, model = shapes(sys.argv[1]), shapes(sys.argv[2])
    different = 0
    for size in sorted(set(lab) & set(model)):
        for what in sorted(set(lab[size]) | set(model[size]), key=str):
            there, here = lab[size][what], model[size][what]
            different += (there == 0) != (here == 0)
            print(f"AllReduce of {size}: {what}: lab {there}, model {here}")
    if not set(lab) & set(model):
        print("no size of AllReduce is in both")
        return 1
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
