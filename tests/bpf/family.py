# SPDX-License-Identifier: BSD-2-Clause
"""What the ranks of tests/bpf/family.c were given, against the records of qpscope-host."""
from host import LATE

BY_INIT_RANK, BY_SPLIT, BY_SHRINK, BY_GROW = 1, 5, 6, 7
DESTROYED, ABORTED, PROCESS_ENDED = 1, 2, 3
FINALIZED, REVOKED = 2, 4
OF_ID, OF_PARENT, OF_HASH = 1, 2, 4

CREATORS = {"world": BY_INIT_RANK, "shrunk": BY_SHRINK, "grown": BY_GROW}  # else a split
ENDINGS = {"three": (DESTROYED, FINALIZED), "later": (ABORTED, 0), "whole": (PROCESS_ENDED, REVOKED)}


def lines_and_records(records, program):
    by_pointer = {c["pointer"]: c for c in records.communicators_of(program.pid) if c["pointer"] != "0x0"}
    lines = program.all("name")
    assert len(by_pointer) == len(lines) == 32, (len(by_pointer), len(lines))
    return [(line, by_pointer[line["communicator"]]) for line in lines]


def check_ranks(pairs):
    for line, record in pairs:
        for key in ("rank", "ranks_count", "hash"):
            assert record[key] == line[key], (key, line, record)
        assert record["cuda_device"] == 3, record
        assert (record["ending"], record["flags"] & (FINALIZED | REVOKED)) == ENDINGS.get(line["name"], (PROCESS_ENDED, 0)), record


def check_identities(pairs, grown_by_hash):
    """One a communicator, the same on every rank; of a grown one those that have no id need the hash to be joined."""
    names = {}
    for line, record in pairs:
        names.setdefault(line["name"], set()).add(record["identity"])
    all_names = [identity for identities in names.values() for identity in identities]
    assert None not in all_names and len(set(all_names)) == len(all_names), names
    one = {name: 1 if name != "grown" or grown_by_hash else 2 for name in names}
    assert {name: len(identities) for name, identities in names.items()} == one, names
    return len(names)


def check_family(records, program):
    pairs = lines_and_records(records, program)
    check_ranks(pairs)
    by_number = {record["communicator"]: line for line, record in pairs}
    queue_pairs = records.queue_pairs_of(program.pid)
    for line, record in pairs:
        assert record["creator"] == CREATORS.get(line["name"], BY_SPLIT) and not record["flags"] & LATE, record
        assert 0 < record["created_ns"] < record["ready_ns"] < record["destroyed_ns"], record
        assert record["parent"] == 0 if line["parent"] == "" or (line["name"], line["world_rank"]) == ("grown", 1) \
            else by_number[record["parent"]]["world_rank"] == line["world_rank"], (line, record)
        owned = {qpn for qpn, q in queue_pairs.items() if q["communicator"] == record["communicator"]}
        assert owned == set(line["qpns"]) and len(owned) == 2, (line, owned)
    absent = [c for c in records.communicators_of(program.pid) if c["pointer"] == "0x0"]
    assert len(absent) == 3 and all(c["ending"] == 5 and c["color"] == -1 for c in absent), absent
    kinds = {(line["name"], record["identity_kind"]) for line, record in pairs if line["name"] != "grown"}
    assert kinds == {(name, OF_ID if name == "world" else OF_PARENT) for name, _ in kinds}, kinds
    return f"{len(pairs)} members of {check_identities(pairs, False)} communicators"


def check_late_family(records, program):
    pairs = lines_and_records(records, program)
    check_ranks(pairs)
    assert all(record["flags"] & LATE and record["identity_kind"] == OF_HASH for _, record in pairs)
    return f"{len(pairs)} members of {check_identities(pairs, True)} communicators, each first seen in a call"
