# SPDX-License-Identifier: BSD-2-Clause
"""The matrix, and shares with their 95 % intervals, from outcomes of cases."""

import collections
import math
import statistics

from cases import CLASSES, is_right_class

NOTHING = "(nothing)"


def interval(hits, count):
    """Wilson's, 95 %: (share, low, high); None without cases."""
    if count == 0:
        return None
    z, share = 1.96, hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return share, max(0.0, middle - half), min(1.0, middle + half)


def share(hits, count):
    found = interval(hits, count)
    return {"hits": hits, "of": count, "share": found and found[0], "interval": found and list(found[1:])}


def loudest(outcome):
    """The class that was said of most steps, whatever its cause."""
    steps = collections.Counter()
    for said in outcome.said:
        steps[said["class"].partition(":")[0]] += said["steps"]
    return steps.most_common(1)[0][0] if steps else NOTHING


def matrix(outcomes):
    """True class (or fault that is none): what was said: number of cases."""
    table = collections.defaultdict(collections.Counter)
    for outcome in outcomes:
        table[CLASSES.get(outcome.fault, outcome.fault)][loudest(outcome)] += 1
    return {true: dict(row) for true, row in table.items()}


def by_share(outcomes):
    """Recall by how much of a step the fault costs."""
    edges = [0.0, 0.01, 0.03, 0.1, 0.3, math.inf]
    rows = []
    for low, high in zip(edges, edges[1:]):
        these = [o for o in outcomes if low <= o.share < high]
        rows.append({"from": low, "to": None if high == math.inf else high, **share(sum(o.found for o in these), len(these))})
    return rows


def statements(outcomes):
    """(right, placed, all) of what was said, each thing once a case."""
    right = placed = count = 0
    for outcome in outcomes:
        for said in outcome.said:
            count += 1
            placed += said["placed"]
            right += said["placed"] and is_right_class(outcome.fault, said["class"])
    return right, placed, count


def summary(outcomes):
    """Everything that is reported, as JSON has it."""
    faulty = [o for o in outcomes if o.fault in CLASSES]
    innocent = [o for o in outcomes if o.fault not in CLASSES]
    big = [o for o in faulty if o.share >= 0.03 or o.fault == "hang"]
    right, placed, count = statements(outcomes)
    quiet = [o for o in outcomes if o.fault == "none"]
    quiet_steps = sum(o.steps for o in quiet)
    sizes = [abs(o.size_error) for o in big if o.size_error is not None]
    delays = [o.delay_steps for o in big if o.delay_steps is not None]
    spoken = [o for o in big if any(s["in_time"] for s in o.said)]
    return {
        "cases": len(outcomes),
        "failed": [f"{o.case}: {o.error}" for o in outcomes if o.error],
        "precision": share(right, count),
        "precision_of_places": share(placed, count),
        "recall_above_3_percent": share(sum(o.found for o in big), len(big)),
        "recall_by_share": by_share([o for o in faulty if o.fault != "hang"]),
        "localised": share(sum(any(s["placed"] for s in o.said) for o in spoken), len(spoken)),
        "size_error_median": statistics.median(sizes) if sizes else None,
        "size_error_p90": sorted(sizes)[int(0.9 * (len(sizes) - 1))] if sizes else None,
        "delay_steps_median": statistics.median(delays) if delays else None,
        "delay_steps_max": max(delays) if delays else None,
        "quiet_steps": quiet_steps,
        "false_alarms_10000_steps": 10_000 * sum(o.false_steps for o in quiet) / quiet_steps if quiet_steps else None,
        "innocent_cases_with_verdict": share(sum(o.false_steps > 0 for o in innocent), len(innocent)),
        "by_fault": by_key(faulty, lambda o: o.fault),
        "by_shape": by_key(faulty, lambda o: o.shape),
        "matrix": matrix(outcomes),
    }


def by_key(outcomes, key):
    groups = collections.defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome)].append(outcome)
    rows = {}
    for name, these in groups.items():
        big = [o for o in these if o.share >= 0.03 or o.fault == "hang"]
        right, _, count = statements(these)
        rows[name] = {"recall_above_3_percent": share(sum(o.found for o in big), len(big)), "precision": share(right, count)}
    return rows


def text_of(part):
    if part["share"] is None:
        return "no cases"
    low, high = part["interval"]
    return f"{part['share']:6.1%}  [{low:.1%}, {high:.1%}]  {part['hits']} of {part['of']}"


def print_matrix(table):
    columns = sorted({said for row in table.values() for said in row})
    print(f"{'what it was':18}" + "".join(f"{column[:14]:>15}" for column in columns))
    for true, row in table.items():
        print(f"{true:18}" + "".join(f"{row.get(column, 0) or '.':>15}" for column in columns))


def print_summary(result):
    print_matrix(result["matrix"])
    print()
    for name in ("precision", "precision_of_places", "recall_above_3_percent", "localised", "innocent_cases_with_verdict"):
        print(f"{name.replace('_', ' '):32} {text_of(result[name])}")
    for row in result["recall_by_share"]:
        upper = "more" if row["to"] is None else f"{row['to']:.0%}"
        print(f"{'recall, cost ' + format(row['from'], '.0%') + ' to ' + upper + ' of a step':32} {text_of(row)}")
    for name in ("size_error_median", "size_error_p90", "delay_steps_median", "delay_steps_max", "quiet_steps"):
        print(f"{name.replace('_', ' '):32} {result[name]}")
    print(f"{'false alarms in 10 000 steps':32} {result['false_alarms_10000_steps']}")
    for key in ("by_fault", "by_shape"):
        print(f"\n{key.replace('_', ' '):24}{'recall above 3 %':46}precision")
        for name, row in result[key].items():
            print(f"{name:24}{text_of(row['recall_above_3_percent']):46}{text_of(row['precision'])}")
    for line in result["failed"]:
        print("failed:", line)
