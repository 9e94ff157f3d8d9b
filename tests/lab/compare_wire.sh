#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the same job on RCCL and on the stand-in for NCCL, captures both, and prints where they differ on the wire.
#   --out DIR   keeps the output there (else it is removed)       --build DIR
#   --job "OPTIONS"   of run.sh, for both jobs ("--ranks 4 --steps 4 --seed 41")
set -euo pipefail
here=$(dirname "$(realpath "$0")")
out='' build=$(realpath -m "$here/../../build") options='--ranks 4 --steps 4 --seed 41'
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$(realpath -m "$2") ;;
    --build) build=$(realpath "$2") ;;
    --job) options=$2 ;;
    *) sed -n '3,5s/^# //p' "$0" >&2 && exit 2 ;;
    esac
    shift 2
done
[ -n "$out" ] || { out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT; }
mkdir -p "$out"
echo "job_run rccl $options --pcap
job_run standin $options --pcap --standin" > "$out/plan.sh"
"$here/run.sh" --out "$out" --build "$build" --plan "$out/plan.sh" --timeout 300
"$here/compare_wire.py" "$out/rccl" "$out/standin"
