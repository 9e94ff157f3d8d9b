#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs small jobs on bad networks in one guest (loss, reordering, duplication, a rate limit, ECN marking), and lays what
# qpscope says beside an independent reading of the same frames, the queue disciplines' own counters and the job's
# truth. Prints TAP.
#   --out DIR     keeps the output there (else it is removed)
#   --build DIR   Meson build folder
set -uo pipefail
here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
out='' build=$top/build bad=0
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$(realpath -m "$2") ;;
    --build) build=$(realpath "$2") ;;
    *) sed -n '6,7s/^# //p' "$0" >&2 && exit 2 ;;
    esac
    shift 2
done
[ -n "$out" ] || { out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT; }
mkdir -p "$out"

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

if "$here/run.sh" --out "$out" --build "$build" --plan "$here/plan_disturbed.sh" --hook "$here/hook_qpscope.sh" \
    --hook "$here/hook_disturb.sh" --timeout 900; then
    echo "ok - every job ran and ended well"
else
    echo "not ok - every job ran and ended well" && bad=1
fi
while read -r _ job ranks _; do
    ports=()
    for ((rank = 0; rank < ranks; rank++)); do ports+=("$((rank + 1))=$out/$job/far$rank.pcap"); done
    judge "$job" "$here/check_disturbed.py" "$build/tests/golden/capture_rows" "$out/$job"
    judge "$job" python3 "$top/tests/golden/check_capture.py" "$build/tests/golden/capture_rows" "$out/$job/nic.capture" $([ "$job" = rate ] || echo --part-of-windows) "${ports[@]}"
done < <(grep -oE 'disturbed_job [a-z-]+ [0-9]+ ' "$here/plan_disturbed.sh")
exit $bad
