#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays a job (arguments of simulate behind --) and lets `turns` hear it little by little, both stages in one and apart:
what is said in each turn is to be what one analysis of the same says. Exit status 1 when not."""

import argparse
import contextlib
import glob
import os
import sqlite3
import subprocess
import sys
import tempfile


def read(path):
    """Every row of every table, in their order."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        names = [row[0] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: store.execute(f"SELECT * FROM {name}").fetchall() for name in names if name[:6] != "sqlite"}


def play(turns, captures, folder):
    """Whether live and at once were the same, to the last row of the store."""
    os.mkdir(folder)
    if subprocess.run([*turns, "--stores", folder, *captures], check=False).returncode != 0:
        return False
    live, once = read(f"{folder}/live.db"), read(f"{folder}/once.db")
    wrong = [name for name in once if live[name] != once[name]]
    print(f"{sum(map(len, once.values()))} rows of the store, tables that differ: {wrong}")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build folder")
    parser.add_argument("--records", default="600", help="records of a window")
    parser.add_argument("--turns", default="30", help="in how many parts the job is heard")
    parser.add_argument("--every", default="6", help="after so many turns it is compared")
    parser.add_argument("--alike", action="store_true", help="the verdicts are to be those of one window, too")
    parser.add_argument("simulate", nargs="*", help="arguments of simulate")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        simulate = [f"{arguments.build}/tests/simulation/simulate", *arguments.simulate, folder]
        subprocess.run(simulate, check=True, stdout=subprocess.DEVNULL)
        captures = sorted(glob.glob(f"{folder}/*.capture"))
        turns = [f"{arguments.build}/tests/simulation/turns", "--records", arguments.records]
        turns += ["--turns", arguments.turns, "--every", arguments.every] + ["--alike"] * arguments.alike
        together = play(turns, captures, f"{folder}/together")
        apart = play([*turns, "--apart"], captures, f"{folder}/apart")
    return 0 if together and apart else 1


if __name__ == "__main__":
    sys.exit(main())
