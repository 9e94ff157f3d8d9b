#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# instructions.sh [BUILD-FOLDER]: instructions a frame of the whole path, counted by valgrind: the same on every machine of an architecture.
set -eu
build=${1:-build}
turns=10 warm=4 buffers=16000
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for name in "2000 flows" "64 flows" "16000 flows" "2000 flows, 1 us windows" "2000 flows, a million others"; do
    valgrind --tool=callgrind --callgrind-out-file="$folder/out" --collect-atstart=no --toggle-collect=turn_of_path \
        "$build/tests/bench/nic/bench_nic_plain" --turns "$turns" --only "$name" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
    total=$(sed -n 's/.*Collected : //p' "$folder/log")
    echo "$name: $((total / ((turns + warm) * buffers))) instructions a frame"
done
