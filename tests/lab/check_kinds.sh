#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a job on real RCCL for each kind of fault that the lab can make, in one guest, and judges what qpscope says. Prints
# TAP and a table. All of them take a quarter of an hour; kinds.py says which there are.
#   --out DIR     keeps the output there (else it is removed)
#   --build DIR   Meson build folder
#   NAME...       only these
set -uo pipefail
here=$(dirname "$(realpath "$0")")
out='' build=$here/../../build names=()
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$(realpath -m "$2") && shift ;;
    --build) build=$2 && shift ;;
    -*) sed -n '3,7s/^# //p' "$0" >&2 && exit 2 ;;
    *) names+=("$1") ;;
    esac
    shift
done
[ -n "$out" ] || { out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT; }
mkdir -p "$out"
"$here/kinds.py" plan "${names[@]}" >"$out/plan.sh" || exit
jobs=$(grep -c '^job_run' "$out/plan.sh")
"$here/run.sh" --out "$out" --build "$build" --plan "$out/plan.sh" --hook "$here/hook_qpscope.sh" --hook "$here/hook_kinds.sh" \
    --timeout $((400 + jobs * 100)) || { echo "not ok - every job ran and ended well" && bad=1; }
"$here/kinds.py" check "$out" "${names[@]}" && exit "${bad:-0}"
exit 1
