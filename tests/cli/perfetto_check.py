#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perfetto_check.py TRACE STORE [A..B]: decodes a Perfetto trace and compares it with the rows of the store.

The trace must hold exactly what doc/man/qpscope.1.scd (PERFETTO) says for the store's rows, or for steps A to B.
The decoder knows protobuf's wire format and the public field numbers of perfetto's protos/perfetto/trace.
Exit code 0 when all is equal; else the first differences are printed.
"""
import collections
import sqlite3
import struct
import sys


# Protobuf's wire format.
def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a varint of more than 10 bytes")


def fields(data):
    """(field number, value) of a message; the value is an int, or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            length, at = varint(data, at)
            if at + length > len(data):
                raise ValueError(f"a field of {length} bytes goes beyond its message")
            value, at = data[at:at + length], at + length
        elif kind == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield tag >> 3, value


def message(data):
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


# The trace.
PACKET, SNAPSHOT, TIMESTAMP, SEQUENCE, EVENT, FLAGS, CLOCK, TRACK = 1, 6, 8, 10, 11, 13, 58, 60
MONOTONIC, REALTIME = 3, 1
SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4
ARROW_BEGINS, ARROW_ENDS = 47, 48  # flow_ids, terminating_flow_ids

Slice = collections.namedtuple("Slice", "path begin end name notes")


def note_value(note):
    if 4 in note:
        return signed(note[4][0])
    if 5 in note:
        return struct.unpack("<d", struct.pack("<Q", note[5][0]))[0]
    return note[6][0].decode()


class Trace:
    """Tracks, slices, instants, counters and clocks of a trace file."""

    def __init__(self, path):
        self.tracks, self.clocks, self.slices, self.instants, self.arrows = {}, None, [], [], []
        self.snapshots, self.flow_ids = [], collections.defaultdict(list)
        self.counters = collections.defaultdict(list)
        self.open = collections.defaultdict(list)
        self.spans = collections.defaultdict(list)
        with open(path, "rb") as file:
            data = file.read()
        for count, (number, packet) in enumerate(fields(data)):
            if number != PACKET:
                raise ValueError(f"field {number} is no packet")
            self.take(message(packet), count == 0)
        if any(self.open.values()):
            raise ValueError("slices do not end")
        self.finish_arrows()
        for identity, spans in self.spans.items():
            spans.sort()
            if any(later[0] < earlier[1] for earlier, later in zip(spans, spans[1:])):
                raise ValueError(f"slices overlap on track {self.path(identity)}: the viewer drops one")

    def take(self, packet, first):
        if packet[SEQUENCE] != [1] or (packet[FLAGS] == [1]) != first:
            raise ValueError("a packet without its sequence, or the first does not clear the state")
        if SNAPSHOT in packet:
            snapshot = message(packet[SNAPSHOT][0])
            readings = {clock[1][0]: signed(clock[2][0]) for clock in map(message, snapshot[1])}
            if self.clocks is None and REALTIME in readings:
                self.clocks = readings
            else:
                self.snapshots.append(readings)
            if snapshot[2] != [MONOTONIC] or MONOTONIC not in readings:
                raise ValueError("the trace's clock is not CLOCK_MONOTONIC")
            if any(3 < clock < 1 << 31 for clock in readings):
                raise ValueError(f"a clock of one's own has a number of others: {readings}")
        elif TRACK in packet:
            track = message(packet[TRACK][0])
            identity = track[1][0]
            if identity in self.tracks:
                raise ValueError(f"track {identity} is described twice")
            self.tracks[identity] = track
            if 3 in track and message(track[3][0])[6] != track[2]:
                raise ValueError("a process whose track has another name")
        elif EVENT in packet:
            if packet[CLOCK] != [MONOTONIC]:
                raise ValueError("an event on another clock")
            self.event(packet[TIMESTAMP][0], message(packet[EVENT][0]))
        else:
            raise ValueError("a packet that is nothing known")

    def path(self, identity):
        """Names from the outermost track to this one."""
        names = []
        while identity:
            track = self.tracks[identity]
            names.insert(0, track[2][0].decode())
            identity = track[5][0] if 5 in track else 0
        return tuple(names)

    def arrow(self, identity, time, event):
        """Binds to the slice around it, so there has to be one."""
        if not self.open[identity] or time < self.open[identity][-1][0]:
            raise ValueError(f"an arrow's end at {time} is in no slice of {self.path(identity)}")
        ends = [("begins", number) for number in event[ARROW_BEGINS]] + [("ends", number) for number in event[ARROW_ENDS]]
        if len(ends) != 1:
            raise ValueError(f"one instant with {len(ends)} arrows")
        operation = self.open[identity][0][2].get("rank_operation")
        self.flow_ids[ends[0][1]].append((ends[0][0], time, operation, event[23][0].decode()))

    def finish_arrows(self):
        for number, ends in self.flow_ids.items():
            if sorted(end[0] for end in ends) != ["begins", "ends"]:
                raise ValueError(f"arrow {number} has the ends {ends}")
            begin, end = sorted(ends)
            if begin[1] > end[1]:
                raise ValueError(f"arrow {number} goes backwards in time, and the viewer would turn it round")
            self.arrows.append((begin[2], begin[1], begin[3], end[2], end[1], end[3]))

    def event(self, time, event):
        kind, identity = event[9][0], event[11][0]
        if identity not in self.tracks:
            raise ValueError(f"an event on track {identity}, which is not described before it")
        is_counter_track = 8 in self.tracks[identity]
        if is_counter_track != (kind == COUNTER):
            raise ValueError("a counter's value on a track of slices, or the reverse")
        notes = {note[10][0].decode(): note_value(note) for note in map(message, event[4])}
        if kind == SLICE_BEGIN:
            if self.open[identity] and time < self.open[identity][-1][0]:
                raise ValueError(f"a slice begins before the one around it on track {self.path(identity)}")
            self.open[identity].append((time, event[23][0].decode(), notes, []))
        elif kind == SLICE_END:
            begin, name, notes, inner = self.open[identity].pop()
            if time < max([begin, *inner]):
                raise ValueError(f"slice {name} ends before it begins, or before one within it")
            if self.open[identity]:
                self.open[identity][-1][3].append(time)
            else:
                self.spans[identity].append((begin, time))
            self.slices.append(Slice(self.path(identity), begin, time, name, notes))
        elif kind == INSTANT and (ARROW_BEGINS in event or ARROW_ENDS in event):
            self.arrow(identity, time, event)
        elif kind == INSTANT:
            self.instants.append(Slice(self.path(identity), time, time, event[23][0].decode(), notes))
        elif kind == COUNTER:
            self.counters[identity].append((time, signed(event[30][0])))
        else:
            raise ValueError(f"event type {kind}")


# What the store says.
def without_null(row, names):
    return {name: row[name] for name in names if row[name] is not None}


class Store:
    def __init__(self, path, steps):
        self.database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.database.row_factory = sqlite3.Row
        self.steps = [row for row in self.rows("SELECT * FROM step") if steps is None or steps[0] <= row["id"] <= steps[1]]
        self.numbers = None if steps is None else {row["id"] for row in self.steps}
        self.hosts = {row["rank"]: row["host"] for row in self.rows(
            "SELECT m.rank, min(e.host) AS host FROM member AS m, process AS p, emitter AS e WHERE p.id = m.process AND e.id = p.emitter "
            "AND m.rank IS NOT NULL GROUP BY m.rank")}

    def rows(self, sql, *arguments):
        return self.database.execute(sql, arguments).fetchall()

    def wanted(self, step):
        return self.numbers is None or step in self.numbers

    def during(self, begin, end):
        if self.numbers is None:
            return True
        return end >= min(row["start_ns"] for row in self.steps) and begin <= max(row["end_ns"] for row in self.steps)

    def rank_path(self, rank):
        name = "rank unknown" if rank is None else f"rank {rank}"
        return (f"node {self.hosts[rank]}", name) if rank in self.hosts else (name,)

    def step_slices(self):
        for row in self.steps:
            notes = without_null(row, ("duration_ns", "bound_ns", "operations", "incomplete", "partial"))
            yield Slice(("steps",), row["start_ns"], max(row["start_ns"], row["end_ns"]), f"step {row['id']}",
                        notes | {"step": row["id"]})

    def operation_slices(self):
        operations = {row["id"]: row for row in self.rows("SELECT * FROM operation")}
        for row in self.rows("SELECT * FROM rank_operation"):
            operation = operations[row["operation"]]
            begin = row["enqueued_ns"] if row["enqueued_ns"] is not None else row["first_data_ns"]
            if not self.wanted(operation["step"]) or begin is None or row["end_ns"] is None:
                continue
            notes = without_null(row, ("operation", "observed_bytes", "expected_bytes", "status", "late_ns", "arrival_of",
                                       "arrival_ns", "host_ready_ns", "gpu_ready_ns", "first_data_ns", "last_data_ns",
                                       "active_ns", "retransmitted_frames", "marked_frames"))
            notes |= without_null(operation, ("step", "place", "buffer_bytes", "algorithm"))
            path = (*self.rank_path(row["rank"]), f"communicator {operation['communicator']}")
            yield Slice(path, begin, max(begin, row["end_ns"]),
                        f"{operation['kind']} {operation['sequence']}", notes | {"rank_operation": row["id"]})
            if row["arrival_ns"] is not None and begin <= row["arrival_ns"] <= max(begin, row["end_ns"]):
                yield Slice(path, row["arrival_ns"], max(begin, row["end_ns"]), "moving data", {})

    def verdict_instants(self):
        for row in self.rows("SELECT * FROM verdict"):
            if not self.wanted(row["step"]):
                continue
            operation = self.rows("SELECT * FROM operation WHERE id = ?", row["operation"])[0]
            arrivals = self.rows("SELECT arrival_ns FROM rank_operation WHERE operation = ? AND rank = ? ORDER BY id",
                                 row["operation"], row["rank"])
            times = [arrivals[0]["arrival_ns"] if arrivals else None, operation["last_arrival_ns"], operation["start_ns"]]
            time = next(time for time in times if time is not None)
            name = row["class"]
            name += "" if row["rank"] is None else f": rank {row['rank']}"
            name += "" if row["peer_rank"] is None else f" to rank {row['peer_rank']}"
            notes = without_null(row, ("step", "operation", "size_ns", "bound_ns", "confidence", "evidence"))
            yield Slice(("verdicts",), time, time, name, notes | {"verdict": row["id"]})

    def rate(self, intervals):
        changes = collections.Counter()
        for begin, end, size in intervals:
            if self.during(begin, end):
                length = max(end - begin, 1000)
                changes[begin] += size * 1_000_000_000 // length
                changes[begin + length] -= size * 1_000_000_000 // length
        values, value = [], 0
        for time in sorted(changes):
            value += changes[time]
            values.append((time, value))
        return values

    def flow_counters(self):
        """Track path -> values, of every named flow where it is seen best."""
        order = {"tx": 0, "rx": 1, "middle": 2}
        flows = [row for row in self.rows("SELECT * FROM flow") if row["queue_pair"] is not None]
        best = {}
        for row in flows:
            best[row["queue_pair"]] = min(best.get(row["queue_pair"], 2), order[row["vantage"]])
        for row in flows:
            if row["communicator"] is None or order[row["vantage"]] != best[row["queue_pair"]]:
                continue
            pair = self.rows("SELECT * FROM queue_pair WHERE id = ?", row["queue_pair"])[0]
            peer = "?" if row["destination_rank"] is None else row["destination_rank"]
            name = f"data to rank {peer}, communicator {row['communicator']}, {pair['device']}/{pair['port']} " \
                   f"QP 0x{pair['qpn']:06x}"
            messages = self.rows("SELECT first_ns, last_ns, payload_bytes FROM message WHERE flow = ? AND role = 'data'",
                                 row["id"])
            windows = self.rows("SELECT start_ns, start_ns + length_ns, payload_bytes FROM traffic_window WHERE flow = ?",
                                row["id"])
            path = self.rank_path(row["source_rank"])
            yield (*path, name), self.rate(map(tuple, messages))
            yield (*path, name + ", windows"), self.rate(map(tuple, windows))

    def seen_best(self):
        """Flows of a known communicator, each queue pair's where it is seen best."""
        order = {"tx": 0, "rx": 1, "middle": 2}
        best = {}
        for row in self.rows("SELECT * FROM flow WHERE queue_pair IS NOT NULL"):
            best[row["queue_pair"]] = min(best.get(row["queue_pair"], 2), order[row["vantage"]])
        return {row["id"]: row for row in self.rows("SELECT * FROM flow WHERE queue_pair IS NOT NULL AND communicator IS NOT NULL")
                if order[row["vantage"]] == best[row["queue_pair"]]}

    def arrows(self):
        flows, sent = self.seen_best(), {}
        parts = {row["id"]: row for row in self.rows("SELECT * FROM rank_operation")}
        steps = dict(self.rows("SELECT id, step FROM operation"))
        for row in self.rows("SELECT * FROM message WHERE role = 'data' AND rank_operation IS NOT NULL"):
            if row["flow"] in flows:
                key = row["rank_operation"], flows[row["flow"]]["destination_rank"]
                first, last = sent.get(key, (row["first_ns"], row["last_ns"]))
                sent[key] = min(first, row["first_ns"]), max(last, row["last_ns"])
        for (sender, peer), (first, last) in sent.items():
            for receiver in parts.values():
                if receiver["operation"] != parts[sender]["operation"] or receiver["rank"] != peer or peer is None:
                    continue
                if parts[sender]["rank"] is not None and sender != receiver["id"] and self.wanted(steps[receiver["operation"]]) and \
                        self.within(parts[sender], first) and self.within(receiver, last):
                    yield (sender, first, f"sends to rank {peer}", receiver["id"], last, f"has all of rank {parts[sender]['rank']}")

    @staticmethod
    def within(part, time):
        begin = part["enqueued_ns"] if part["enqueued_ns"] is not None else part["first_data_ns"]
        return begin is not None and part["end_ns"] is not None and begin <= time <= max(begin, part["end_ns"])

    def agent_clocks(self):
        """(time, what its clock read, its CLOCK_REALTIME) at each agent's first and last reading."""
        for agent in self.rows("SELECT * FROM emitter WHERE clock_offset_ns IS NOT NULL"):
            readings = self.rows("SELECT at_ns, realtime_ns FROM clock_pair WHERE emitter = ? ORDER BY at_ns", agent["id"])
            for at, realtime in {tuple(reading) for reading in (readings[:1] + readings[-1:])}:
                middle = agent["started_ns"] // 2 + agent["last_ns"] // 2
                drift = int((at - middle) * ((agent["clock_drift_ppb"] or 0) / 1e9))
                yield at, at - agent["clock_offset_ns"] - drift, realtime

    def clocks(self):
        found = dict(self.rows("SELECT key, value FROM meta"))
        begin = self.rows("SELECT min((SELECT min(start_ns) FROM operation), (SELECT min(start_ns) FROM step))")[0][0]
        if begin is None or "realtime_minus_reference_ns" not in found:
            return None
        return {MONOTONIC: begin, REALTIME: begin + int(found["realtime_minus_reference_ns"])}


def key(item):
    return (item[0], item[1], item[2], item[3], sorted(item[4].items()))


def differences(name, found, expected):
    """Both as multisets."""
    left = collections.Counter(map(repr, map(key, found)))
    right = collections.Counter(map(repr, map(key, expected)))
    for item in list((left - right).elements())[:3]:
        yield f"{name}: only in the trace: {item}"
    for item in list((right - left).elements())[:3]:
        yield f"{name}: only in the store: {item}"


def compare(trace, store):
    yield from differences("slices", trace.slices, [*store.step_slices(), *store.operation_slices()])
    own = lambda piece: piece.path == ("clocks of agents",)
    yield from differences("verdicts", [piece for piece in trace.instants if not own(piece)], list(store.verdict_instants()))
    as_slices = lambda arrows: [((), 0, 0, repr(arrow), {}) for arrow in arrows]
    yield from differences("arrows", as_slices(trace.arrows), as_slices(store.arrows()))
    clocks = [(readings[MONOTONIC], *sorted(reading for clock, reading in readings.items() if clock != MONOTONIC))
              for readings in trace.snapshots]
    if sorted(clocks) != sorted((at, *sorted(others)) for at, *others in store.agent_clocks()):
        yield f"agents' clocks: {sorted(clocks)[:3]} in the trace, {sorted(store.agent_clocks())[:3]} in the store"
    counters = lambda pairs: [(path, 0, 0, repr(values), {}) for path, values in pairs if values]
    yield from differences("counters", counters((trace.path(track), values) for track, values in trace.counters.items()),
                           counters(store.flow_counters()))
    if trace.clocks != store.clocks():
        yield f"clocks: {trace.clocks} in the trace, {store.clocks()} in the store"
    for track, values in trace.counters.items():
        if values[-1][1] != 0:
            yield f"the rate of {trace.path(track)} does not end at 0"


def check(trace_path, store_path, steps=None):
    """(the trace, what differs)."""
    trace = Trace(trace_path)
    return trace, list(compare(trace, Store(store_path, steps)))


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    steps = None
    if len(sys.argv) == 4:
        first, _, last = sys.argv[3].partition("..")
        steps = int(first), int(last or first)
    try:
        trace, different = check(sys.argv[1], sys.argv[2], steps)
    except (ValueError, IndexError, KeyError, struct.error) as error:
        sys.exit(f"{sys.argv[1]}: no trace that a viewer could read: {error}")
    if different:
        sys.exit("\n".join(different))
    print(f"{len(trace.slices)} slices, {len(trace.instants)} verdicts, {len(trace.counters)} counter tracks with "
          f"{sum(map(len, trace.counters.values()))} values equal the store's rows")


if __name__ == "__main__":
    main()
