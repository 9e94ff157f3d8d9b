#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The job and its stand-in device on this machine, over sockets instead of soft-RoCE: every algorithm and protocol that
# the stand-in emulates must be taken, and give the right sums. usage: sockets_test.sh BUILD_FOLDER_OF_WORKLOAD
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lab/cache.sh
. "$here/../lab/cache.sh"
build=$(realpath "$1") ranks=4 steps=2

if [ "$(id -u)" != 0 ]; then
    echo "skipped: it needs root, to run the job below the Debian 13 tree"
    exit 77
fi
"$here/../lab/prepare.sh"
if [ -z "${SOCKETS_TEST_INSIDE:-}" ]; then
    SOCKETS_TEST_INSIDE=1 exec unshare -m "$0" "$@"
fi

mount -t tmpfs tmpfs "$lab_job_tree/lab"
mkdir "$lab_job_tree/lab/build"
mount --bind "$build" "$lab_job_tree/lab/build"
for place in proc dev sys; do mount --rbind "/$place" "$lab_job_tree/$place"; done

# job_run ALGORITHM PROTOCOL EXPECTED: EXPECTED is what the truth must say of the AllReduces
job_run() {
    local r pids=() failed='' meet=/lab/$1-$2 found wrong checked
    mkdir "$lab_job_tree$meet"
    for ((r = 0; r < ranks; r++)); do
        env LD_LIBRARY_PATH=/lab/build LAB_TRUTH="$meet/truth" NCCL_DEBUG=WARN NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo \
            NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_ALGO="$1" NCCL_PROTO="$2" NCCL_MIN_NCHANNELS=2 NCCL_MAX_NCHANNELS=2 \
            NCCL_HOSTID="host$r" timeout 60 chroot "$lab_job_tree" /lab/build/train --rank "$r" --ranks "$ranks" \
            --steps "$steps" --worlds 1 --elements 5000 --compute-us 1000 --meet "$meet" > "$lab_job_tree$meet/rank$r.log" 2>&1 &
        pids+=($!)
    done
    for r in "${pids[@]}"; do wait "$r" || failed=1; done
    found=$(grep -h '"operation":"AllReduce"' "$lab_job_tree$meet/truth" | grep -c "$3" || true)
    checked=$(grep -c '"kind":"check"' "$lab_job_tree$meet/truth" || true)
    wrong=$(grep '"kind":"check"' "$lab_job_tree$meet/truth" | grep -vc '"wrong":0' || true)
    # A step has 3 AllReduces and 8 operations of each rank; results are checked in the first and the last step.
    if [ -n "$failed" ] || [ "$found" != $((ranks * steps * 3)) ] || [ "$checked" != $((ranks * 2 * 8)) ] || [ "$wrong" != 0 ]; then
        echo "FAILED: $1 $2: $found AllReduces as $3, $checked results checked, $wrong wrong"
        tail -n 5 "$lab_job_tree$meet"/rank*.log
        return 1
    fi
    echo "ok: $1 $2: $found AllReduces as $3, $checked results checked, none wrong"
}

status=0
for algorithm in Ring Tree; do
    for protocol in Simple LL LL128; do
        job_run "$algorithm" "$protocol" "\"algorithm\":\"$algorithm\",\"protocol\":\"$protocol\"" || status=1
    done
done
exit $status
