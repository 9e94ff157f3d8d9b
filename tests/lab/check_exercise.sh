#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the scenarios of the stand-in NCCL in one guest with qpscope beside them, then judges what the host side said of
# them. Prints TAP.   --out DIR   keeps the output there (else it is removed)
set -uo pipefail
here=$(dirname "$(realpath "$0")")
out='' build=$(realpath -m "$here/../../build") bad=0
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$(realpath -m "$2") ;;
    --build) build=$(realpath "$2") ;;
    *) sed -n '3,4s/^# //p' "$0" >&2 && exit 2 ;;
    esac
    shift 2
done
[ -n "$out" ] || { out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT; }

if "$here/run.sh" --out "$out" --build "$build" --plan "$here/plan_exercise.sh" --hook "$here/hook_qpscope.sh" \
    --timeout 900 > "$out.log" 2>&1; then
    echo "ok - every scenario ran and ended well"
else
    echo "not ok - every scenario ran and ended well"
    tail -n 12 "$out.log" | sed 's/^/#   /'
    bad=1
fi
while read -r _ job _; do
    more=()
    [ "$job" != pxn ] || more=(--size-records)
    log=$("$here/check_exercise.py" --prompt "${more[@]}" "$out/$job" 2>&1) || bad=1
    sed -E "s/^(ok|not ok) [0-9]+ - /\1 - $job: /; /^1\.\./d" <<< "$log"
    grep -qE '^(not )?ok ' <<< "$log" || { echo "not ok - $job: nothing was judged" && bad=1; }
done < <(grep '^job_run' "$here/plan_exercise.sh")
rm -f "$out.log"
exit $bad
