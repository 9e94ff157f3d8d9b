#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""replay_check.py QPSCOPE SCHEMA FIXTURE QPSCOPE-NIC PCAP...: replays captures that qpscope-nic records, and prints TAP.

What is expected is what qpscope-nic counts in the same file. Jobs with all their daemons are replayed in tests/lab.
"""
import glob
import json
import os
import subprocess
import sys

from harness import HERE, as_json, equal, main, one_error, rows, run, test, text

NIC, PCAPS = os.path.abspath(sys.argv[4]), sys.argv[5:]


def record(pcap):
    """The capture that is made of it, and the flows with data in it by destination QPN."""
    capture = os.path.join(HERE, os.path.basename(pcap) + ".capture")
    subprocess.run([NIC, "--file", pcap, "--record", capture], check=True, stdout=subprocess.DEVNULL, timeout=60)
    counted = subprocess.run([NIC, "--file", pcap, "--json"], check=True, capture_output=True, text=True, timeout=60)
    return capture, [row for row in map(json.loads, counted.stdout.splitlines()) if row["row"] == "flow"]


@test
def flows_of_a_capture_are_all_there():
    for pcap in PCAPS:
        capture, counted = record(pcap)
        store = capture + ".db"
        text("replay", capture, store=store)
        expected = sorted((flow["destination_qpn"], flow["data_frames"], flow["payload_bytes"]) for flow in counted)
        stored = rows("SELECT destination_qpn, data_frames, payload_bytes FROM flow", store)
        equal(sorted(tuple(row.values()) for row in stored), expected)
        assert sum(payload for _, _, payload in expected) > 0, pcap


@test
def order_and_repetition_make_no_difference():
    first, second = (record(pcap)[0] for pcap in PCAPS[:2])
    both = as_json("replay", first, second, store=None)
    equal(as_json("replay", second, first, store=None), both)
    equal(as_json("replay", second, first, *[second] * 100, store=None), both)
    store = os.path.join(HERE, "both.db")
    equal(run("replay", first, second, "--json", store=store).stdout, run("steps", "--json", store=store).stdout)


@test
def a_store_that_exists_is_not_replaced_unasked():
    capture, _ = record(PCAPS[0])
    store = os.path.join(HERE, "kept.db")
    text("replay", capture, store=store)
    one_error(run("replay", capture, store=store, code=1), store, "--force")
    text("replay", capture, "--force", store=store)


@test
def without_a_store_nothing_is_left_behind():
    capture, _ = record(PCAPS[0])
    folder = os.path.join(HERE, "temporary")
    os.mkdir(folder)
    shown = text("replay", capture, store=None, env={"TMPDIR": folder, "QPSCOPE_STORE": "/nowhere/x.db"})
    assert "no steps yet" in shown and "unattributed" in shown, shown
    equal(glob.glob(folder + "/*"), [])
    one_error(run("replay", capture, store=None, env={"TMPDIR": folder + "/none"}, code=1), "TMPDIR")


def last_frame(capture):
    """Where it begins: behind 16 bytes of header each frame has its length before it (doc/records.md)."""
    at, following = 16, 16
    while following < len(capture):
        at, following = following, following + 4 + int.from_bytes(capture[following:following + 4], "little")
    return at


@test
def a_capture_that_was_cut_counts_up_to_the_cut():
    capture, _ = record(PCAPS[0])
    with open(capture, "rb") as file:
        whole = file.read()
    cut = os.path.join(HERE, "cut.capture")
    with open(cut, "wb") as file:
        file.write(whole[:-3])
    done = subprocess.run([sys.argv[1], "replay", cut], capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 0)
    equal(done.stderr, f"qpscope: warning: {cut}: the file was cut at byte {last_frame(whole)}; what came before it stands\n")
    with open(cut, "wb") as file:
        file.write(whole[:20])
    one_error(run("replay", cut, store=None, code=1), cut, "the file was cut at byte", "nothing comes before it")


@test
def what_no_step_can_end_with_is_refused():
    for wrong in ("Allreduce2", "AllReduce:", "AllReduce:0", "AllReduce:4k", ""):
        assert "no operation is called" in run("replay", "--step-on", wrong, "x.capture", store=None, code=2).stderr


@test
def what_is_no_capture_is_refused():
    assert "--help" in run("replay", store=None, code=2).stderr
    one_error(run("replay", "/nowhere/x.capture", store=None, code=1), "/nowhere/x.capture", "No such file")
    one_error(run("replay", PCAPS[0], store=None, code=1), PCAPS[0], "not a capture file")
    one_error(run("replay", record(PCAPS[0])[0], PCAPS[0], store=None, code=1), PCAPS[0], "not a capture file")


if __name__ == "__main__":
    main()
