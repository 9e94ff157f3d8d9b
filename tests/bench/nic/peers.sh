#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# peers.sh [BUILD-FOLDER] [FRAMES]: one capture of 2000 flows read by qpscope-nic (all windows and messages), by tshark (frames a queue pair)
# and by tcpdump (a plain count), one after the other, three times each; the fastest run of each counts.
set -eu
build=${1:-build} frames=${2:-400000}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
python3 "$(dirname "$0")/make_capture.py" "$folder/capture.pcap" "$frames"

best() { # best NAME COMMAND: runs it three times
    name=$1 fastest=
    shift
    for _ in 1 2 3; do
        start=$(date +%s%N)
        sh -c "$*" >"$folder/out" 2>"$folder/err" || { cat "$folder/err" >&2; exit 1; }
        taken=$(($(date +%s%N) - start))
        if [ -z "$fastest" ] || [ "$taken" -lt "$fastest" ]; then fastest=$taken; fi
    done
    echo "$name: $((fastest / frames)) ns a frame"
}

best "qpscope-nic, a row a flow" "$build/nic/qpscope-nic --file $folder/capture.pcap --json"
best "qpscope-nic, a row a window" "$build/nic/qpscope-nic --file $folder/capture.pcap --json --windows"
best "tcpdump, a line a frame counted" "tcpdump -r $folder/capture.pcap -nn udp port 4791 | wc -l"
best "tshark, frames a queue pair" "tshark -r $folder/capture.pcap -T fields -e infiniband.bth.destqp | sort | uniq -c"
