#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""fetch.py NPM FOLDER: fetches the packages of package-lock.json, beside this file, into FOLDER. Prints nothing, or one line: why it
could not.

npm checks what it gets against the checksums of package-lock.json and runs none of it.
"""
import json
import os
import shutil
import subprocess
import sys


def is_there(folder):
    with open(os.path.join(folder, "package-lock.json"), encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    for place, package in packages.items():
        try:
            with open(os.path.join(folder, place, "package.json"), encoding="utf-8") as file:
                if place and json.load(file)["version"] != package["version"]:
                    return False
        except OSError:
            return False
    return True


def main():
    npm, folder = sys.argv[1:]
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), folder)
    if is_there(folder):
        return
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-timeout=20000", "--fetch-retries=1"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"npm could not fetch uPlot: {type(error).__name__}")
        return
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        print(f"npm could not fetch uPlot: {lines[0]}")


main()
