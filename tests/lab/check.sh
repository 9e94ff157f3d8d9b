#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the lab's jobs in one guest with qpscope beside them, then judges everything against the truth. Prints TAP.
#   --seeds N   jobs of each fault (2)        --out DIR   keeps the output there (else it is removed)
set -uo pipefail
here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
seeds=2 out='' build=$top/build
while [ $# -gt 0 ]; do
    case $1 in
    --seeds) seeds=$2 ;;
    --out) out=$(realpath -m "$2") ;;
    --build) build=$(realpath "$2") ;;
    *) sed -n '3,4s/^# //p' "$0" >&2 && exit 2 ;;
    esac
    shift 2
done
[ -n "$out" ] || { out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT; }
mkdir -p "$out"
rm -f "$out/found.jsonl" "$out/beside.jsonl"
qpscope=$build/cli/qpscope bad=0

judge() { # judge JOB COMMAND...: a check that prints TAP, each line with the job's name
    local log
    log=$("${@:2}" 2>&1) || bad=1
    sed -E "s/^(ok|not ok) [0-9]+ - /\1 - $1: /; /^1\.\./d" <<<"$log"
    if grep -qE '^(not )?ok ' <<<"$log"; then
        echo "ok - $1: $(basename "$2") came to its end"
    else
        echo "not ok - $1: $(basename "$2") came to its end" && tail -n 5 <<<"$log" | sed 's/^/#   /' && bad=1
    fi
}
judge_plain() { # judge_plain JOB NAME COMMAND...: a check by its exit status
    local log
    if log=$("${@:3}" 2>&1); then
        echo "ok - $1: $2"
    else
        echo "not ok - $1: $2" && grep -v '^lab: standing' <<<"$log" | tail -n 12 | sed 's/^/#   /' && bad=1
    fi
    grep -E '^lab: (standing|guest stood)' <<<"$log" | sed 's/^/#   /'
}

# Two jobs of a fault are too few to judge small ones by, beside a machine that keeps a guest waiting for tens of ms.
"$here/plan.py" --seeds "$seeds" --least 80 --kills 3 >"$out/plan.sh"
head -n 1 "$out/plan.sh"
jobs=$(grep -c '^job_run' "$out/plan.sh")
"$here/prepare.sh" || { echo "not ok - the lab could not be prepared" && exit 1; }
judge_plain lab "every job ran and ended well" \
    "$here/run.sh" --out "$out" --build "$build" --plan "$out/plan.sh" --hook "$here/hook_qpscope.sh" --timeout $((400 + jobs * 110))

while read -r _ job _; do
    folder=$out/$job
    [ "$job" != exercised ] || continue
    if [ "$job" = devices ]; then # one agent beside both
        judge_plain "$job" "no daemon failed" grep -qx 'host 0' "$folder/ends.txt"
        judge exercised "$here/check_exercise.py" --prompt "$out/exercised" "$folder"
        continue
    fi
    judge_plain "$job" "left a store" test -f "$folder/qpscope.db"
    [ -f "$folder/qpscope.db" ] || continue
    judge_plain "$job" "no daemon failed" test -z "$(grep -vE " $([[ $job = killed || $job = restarted ]] && echo '(0|137)' || echo 0)\$" "$folder/ends.txt")"
    judge_plain "$job" "the truth agrees with itself" "$here/truth.py" "$folder"
    if [[ $job = killed || $job = restarted ]]; then
        judge "$job" "$here/check_killed.py" "$folder"
        continue
    fi
    judge "$job" "$here/check_owners.py" "$folder"
    [ "$job" != followed ] || judge "$job" "$here/check_followed.py" "$folder"
    [ "$job" = followed ] || judge "$job" "$here/check_job.py" --collect "$out/$([ "$job" = asked ] && echo beside || echo found).jsonl" "$folder"
    [ "$job" != asked ] || judge "$job" "$here/check_asked.py" "$folder"
    [ ! -f "$folder/correlator.metrics" ] || judge "$job" "$here/check_metrics.py" "$folder"
    [[ $job != @(quiet|together|flush|shifted) ]] || judge "$job" "$here/check_adopted.py" "$build" "$folder"
    judge_plain "$job" "replay says the same, byte for byte" "$here/check_replay.sh" "$qpscope" "$folder"
done < <(grep '^job_run' "$out/plan.sh")
judge faults "$here/matrix.py" --tap "$out/found.jsonl"
judge quiet python3 "$top/tests/golden/check_capture.py" "$build/tests/golden/capture_rows" "$out/quiet/nic.capture" \
    1="$out/quiet/far0.pcap" 2="$out/quiet/far1.pcap" 3="$out/quiet/far2.pcap" 4="$out/quiet/far3.pcap"
judge_plain quiet "the Perfetto file decodes to the store's rows" "$here/check_perfetto.sh" "$qpscope" "$out/quiet"
judge_plain psn "a job ran beside the source of sequence numbers" "$here/run.sh" --out "$out/psn" --build "$build" --ranks 2 \
    --steps 8 --pcap --hook "$here/hook_psn.sh"
judge psn "$here/check_psn.py" "$out/psn/job"
exit $bad
