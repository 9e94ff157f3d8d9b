#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a job of two ranks in two guests, each with a kernel and clocks of its own, with qpscope's agents in both and the
# correlator in the first, over sealed TCP links; then holds qpscope's clocks against the machine's own clock, which both
# guests were laid beside (clock_witness.c). Prints TAP. A minute and a quarter on two cores.
#   --out DIR     keeps the output there (else it is removed)
#   --build DIR   Meson build folder
#   --steps N     steps of the job (40)
set -uo pipefail
here=$(dirname "$(realpath "$0")")
out='' build=$(realpath -m "$here/../../build") steps=40
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$(realpath -m "$2") ;;
    --build) build=$(realpath "$2") ;;
    --steps) steps=$2 ;;
    *) sed -n '6,8s/^# //p' "$0" >&2 && exit 2 ;;
    esac
    shift 2
done
[ -n "$out" ] || { out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT; }
boards=$(mktemp -d /dev/shm/qpscope-lab.XXXXXX)
mkdir -p "$out"/{a,b,meet}
(umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' | tee "$out/a/key" >"$out/b/key")

# guest NAME RANK NETDEV REALTIME: its clock's date is one of its own, so that nothing rests on equal clocks
guest() {
    local board=$boards/$1
    truncate -s 1M "$board"
    echo "$2" >"$out/$1/rank"
    "$here/run.sh" --out "$out/$1" --build "$build" --plan "$here/plan_pair.sh" --hook "$here/hook_pair.sh" --timeout 300 --guests 1 \
        --steps "$steps" --fault gpu --rank 1 --delay 120 --first-step 6 --seed 1 --machine "-smp 1 -m 2048 -rtc base=$4
        -netdev stream,id=link,addr.type=unix,addr.path=$boards/link,server=$3 -device virtio-net-pci,netdev=link,host_mtu=4200,mac=02:00:00:00:01:0$2
        -object memory-backend-file,id=board,mem-path=$board,share=on,size=1M -device ivshmem-plain,memdev=board
        -virtfs local,path=$out/meet,mount_tag=meet,security_model=none"
}

both_guests() { # 3 when one stood still
    local first second witness status
    rm -rf "$out"/meet/* "$boards"/*
    guest a 0 on 2026-03-01T12:00:00 2>>"$out/a/run.log" &
    first=$!
    until [ -S "$boards/link" ] || ! kill -0 $first 2>/dev/null; do sleep 0.2; done
    guest b 1 off 2026-03-01T12:00:07 2>>"$out/b/run.log" &
    second=$!
    sleep 1
    "$build/tests/lab/clock_witness" ask a="$boards/a" b="$boards/b" >"$out/witness.jsonl" &
    witness=$!
    wait $first
    status=$?
    wait $second || { second=$? && [ $status = 3 ] || status=$second; }
    kill $witness
    return $status
}

both_guests
status=$?
grep -hE '^lab: (standing|guest stood)' "$out"/{a,b}/run.log | sed 's/^/#   /'
if [ $status = 3 ]; then
    echo "# a guest stood still: both are run again"
    both_guests
    status=$?
fi
rm -rf "$boards"
if [ $status = 0 ]; then
    echo "ok - both halves of the job ran and ended well"
else
    echo "not ok - both halves of the job ran and ended well"
    tail -n 6 "$out"/{a,b}/run.log | sed 's/^/#   /'
fi
"$here/check_pair.py" "$out" || status=1
exit $status
