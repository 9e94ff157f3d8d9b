#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# check_replay.sh QPSCOPE FOLDER: the captures of a job, replayed in both orders with no store there, give byte for byte
# the same steps and verdicts as the store that was written live.
set -euo pipefail
qpscope=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { # say STORE: what people and programs would see
    local step
    "$qpscope" steps --json --store "$1"
    "$qpscope" why --json --store "$1"
    for step in $("$qpscope" steps --json --store "$1" | jq '.steps[].step'); do
        "$qpscope" why --json --step "$step" --store "$1"
        "$qpscope" timeline --json --step "$step" --store "$1"
    done
}
say "$folder/qpscope.db" >"$work/live"
"$qpscope" replay --store "$work/a.db" "$folder/nic.capture" "$folder/host.capture" >"$work/a.txt"
"$qpscope" replay --store "$work/b.db" "$folder/host.capture" "$folder/nic.capture" >"$work/b.txt"
say "$work/a.db" >"$work/a"
say "$work/b.db" >"$work/b"
[ -s "$work/live" ] && cmp "$work/live" "$work/a" && cmp "$work/a" "$work/b"
