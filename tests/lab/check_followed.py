#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_followed.py FOLDER: for a while in the middle of the job, what its processes posted and what completed was
followed. In that time the posts of each queue pair must be what its own port saw it send, message by message, none of
them on the wire before it was posted. Prints TAP."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from check_job import Store  # noqa: E402
from tap import Tap  # noqa: E402

BEGINS_NS = 10_000_000_000  # to start the command and to set a dozen probes takes 4 s under emulation on a busy machine
EDGE_NS = 300_000_000  # a post or message so near to the begin or end may be on the other side for the other view

POSTS = """SELECT queue_pair, COUNT(*) AS posts, SUM(requests) AS requests, SUM(bytes) AS bytes, SUM(message IS NULL) AS unmatched
           FROM post WHERE posted_ns BETWEEN ? AND ? AND operation LIKE 'write%' GROUP BY queue_pair"""
MESSAGES = """SELECT flow.queue_pair, COUNT(*) AS requests, SUM(message.payload_bytes) AS bytes FROM message
              JOIN flow ON flow.id = message.flow WHERE flow.vantage = 'tx' AND message.first_ns BETWEEN ? AND ? GROUP BY flow.queue_pair"""


def main():
    store, tap = Store(os.path.join(sys.argv[1], "qpscope.db")), Tap()
    followed = store.rows("SELECT * FROM followed")
    tap.check("one request was made, and followed as asked", [] if [f["ended"] for f in followed] in (["in time"], ["hits spent"]) else [str(dict(f)) for f in followed],
              ", ".join(f"{(f['to_ns'] - f['from_ns']) / 1e9:.1f} s, {f['hits']} hits" for f in followed))
    asked_ns = max(float(line) for line in open(os.path.join(sys.argv[1], "follow.txt"))) * 1e9
    after_ns = followed[0]["from_ns"] - asked_ns
    tap.check("it began soon after it was asked for", [] if 0 < after_ns < BEGINS_NS else [f"after {after_ns / 1e9:.2f} s"], f"{after_ns / 1e9:.2f} s")
    end_ns = min(followed[0]["to_ns"], store.rows("SELECT MAX(posted_ns) AS ns FROM post")[0]["ns"] or 0)
    span = followed[0]["from_ns"], end_ns
    inside = span[0] + EDGE_NS, span[1] - EDGE_NS
    posts = {row["queue_pair"]: row for row in store.rows(POSTS, *inside)}
    least = {row["queue_pair"]: row for row in store.rows(MESSAGES, inside[0] + EDGE_NS, inside[1] - EDGE_NS)}
    most = {row["queue_pair"]: row for row in store.rows(MESSAGES, *span)}
    wrong = [f"queue pair {pair}: {row['requests']} requests of {row['bytes']} bytes posted, {most[pair]['requests'] if pair in most else 0} messages at most"
             for pair, row in posts.items() if pair not in most or row["requests"] > most[pair]["requests"] or row["bytes"] > most[pair]["bytes"]]
    wrong += [f"queue pair {pair}: {row['requests']} messages, {posts[pair]['requests'] if pair in posts else 0} requests posted"
              for pair, row in least.items() if pair not in posts or posts[pair]["requests"] < row["requests"] or posts[pair]["bytes"] < row["bytes"]]
    total = sum(row["posts"] for row in posts.values())
    tap.check("each queue pair's posts are what its port saw it send", wrong if total else ["nothing was posted"],
              f"{total} posts on {len(posts)} queue pairs")
    unmatched = sum(row["unmatched"] for row in posts.values())
    tap.check("posts have their messages", [] if total and unmatched <= 0.02 * total else [f"{unmatched} of {total} have none"], f"{total - unmatched} of {total}")
    early = store.rows("SELECT id, to_wire_ns FROM post_time WHERE to_wire_ns < -2 * bound_ns")
    tap.check("none was on the wire before it was posted", [f"post {row['id']}: {row['to_wire_ns']} ns" for row in early])
    # Credits ask for a completion now and then only; data always does.
    signalled = store.rows("""SELECT COUNT(*) AS n, SUM(completed_ns IS NULL) AS open, SUM(status <> 0) AS bad FROM post
                               WHERE operation = 'write with immediate' AND posted_ns < ?""", inside[1])[0]
    tap.check("data that was posted has completed", [] if signalled["n"] and signalled["open"] <= 0.05 * signalled["n"] and not signalled["bad"] else [str(dict(signalled))])
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
