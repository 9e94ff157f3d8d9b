#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_unwatched.py BUILD: a job that hangs, whose NIC sides are heard of to the end, and then only until soon after it began.

All ranks have given the operation that hangs, so that only the wire tells who is silent in it. What nobody watched may have ended.
"""
import glob
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile

HEADER = struct.Struct("<IHHQQQQII")  # of a batch: doc/records.md
FILE_HEADER_BYTES = 16
EARLIER_NS = 2_800_000_000  # the hang is watched for 3.2 s; usual steps and a second more are 1.02 s


def batches(capture):
    """Each with the time at which it was sent."""
    at = FILE_HEADER_BYTES
    while at < len(capture):
        length = int.from_bytes(capture[at:at + 4], "little")
        clear = subprocess.run(["zstd", "-dcq"], input=capture[at + 4:at + 4 + length], capture_output=True, check=True).stdout
        at += 4 + length
        while clear:
            header = HEADER.unpack_from(clear)
            yield header[6], clear[:HEADER.size + header[8]]
            clear = clear[HEADER.size + header[8]:]


def leave_out_the_last(path):
    with open(path, "rb") as file:
        whole = file.read()
    sent = list(batches(whole))
    kept = b"".join(batch for sent_ns, batch in sent if sent_ns <= sent[-1][0] - EARLIER_NS)
    frame = subprocess.run(["zstd", "-cq"], input=kept, capture_output=True, check=True).stdout
    with open(path, "wb") as file:
        file.write(whole[:FILE_HEADER_BYTES] + len(frame).to_bytes(4, "little") + frame)


def replay(build, folder, name):
    store = os.path.join(folder, name)
    subprocess.run([build + "/cli/qpscope", "replay", "--store", store, *sorted(glob.glob(folder + "/*.capture"))], check=True, capture_output=True)
    database = sqlite3.connect(store)
    hangs = database.execute("SELECT rank FROM verdict WHERE class = 'hang'").fetchall()
    silent = database.execute("SELECT count(*) FROM gap WHERE cause = 'silent'").fetchone()[0]
    database.close()
    return hangs, silent


def main():
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([build + "/tests/simulation/simulate", "--shape", "plain", "--fault", "hang", "--steps", "25", folder], check=True)
        watched, _ = replay(build, folder, "watched.db")
        nics = glob.glob(folder + "/nic-*.capture")
        for path in nics:
            leave_out_the_last(path)
        unwatched, silent = replay(build, folder, "unwatched.db")
    print(f"watched to the end: hangs of {watched}; until soon after it began: {unwatched}, {silent} of {len(nics)} NIC sides are said to be silent")
    sys.exit(not (watched == [(1,)] and unwatched == [] and silent == len(nics) > 0))


if __name__ == "__main__":
    main()
