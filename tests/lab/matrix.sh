#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The long matrix: N seeds of each fault and as many jobs without one, each in fresh processes, judged against the truth;
# doc/results.md holds a dated result. About 35 s a job, so some 45 minutes for 20 seeds on two cores: nothing else should
# run on the machine.
#   --seeds N    seeds (20)         --out DIR     where everything goes (needed)
#   --secret S   the plan's secret (the time)     --judge   only judges what lies in DIR again, from the captures
set -uo pipefail
here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
seeds=20 out='' secret=$(date +%s) judge='' build=$top/build jobs_a_boot=16
while [ $# -gt 0 ]; do
    case $1 in
    --seeds) seeds=$2 && shift ;;
    --out) out=$(realpath -m "$2") && shift ;;
    --secret) secret=$2 && shift ;;
    --build) build=$(realpath "$2") && shift ;;
    --judge) judge=1 ;;
    *) sed -n '3,7s/^# //p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
[ -n "$out" ] || { echo "matrix.sh: --out DIR is needed" >&2 && exit 2; }
mkdir -p "$out"

run_chunks() {
    local chunk
    "$here/plan.py" --seeds "$seeds" --secret "$secret" --only-faults | grep '^job_run' >"$out/plan"
    rm -f "$out"/chunk.*
    split -l "$jobs_a_boot" "$out/plan" "$out/chunk."
    for chunk in "$out"/chunk.*; do
        echo "matrix.sh: $(basename "$chunk"), $(wc -l <"$chunk") jobs" >&2
        "$here/run.sh" --out "$out" --build "$build" --plan "$chunk" --hook "$here/hook_qpscope.sh" \
            --timeout $((120 + jobs_a_boot * 90)) >>"$out/run.log" 2>&1 || echo "matrix.sh: something failed, see $out/run.log" >&2
    done
}

[ -n "$judge" ] || run_chunks
rm -f "$out/found.jsonl" "$out/judged.txt"
while read -r _ job _; do
    store=$out/$job/qpscope.db
    if [ -n "$judge" ]; then
        store=$out/$job/again.db
        "$build/cli/qpscope" replay --force --store "$store" "$out/$job/nic.capture" "$out/$job/host.capture" >/dev/null
    fi
    { echo "== $job" && "$here/check_job.py" --store "$store" --collect "$out/found.jsonl" "$out/$job"; } \
        >>"$out/judged.txt" 2>&1
done <"$out/plan"
grep -B9 "^not ok" "$out/judged.txt" || true
"$here/matrix.py" "$out/found.jsonl"
