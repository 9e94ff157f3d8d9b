#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The scenarios on this machine, over sockets: results must be right, and the truth must say what was asked for.
# usage: exercise_test.sh BUILD_FOLDER_OF_WORKLOAD RANKS SCENARIO...
set -euo pipefail
build=$(realpath "$1") ranks=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ "$*" = sockets ] || export NCCL_IB_DISABLE=1 # which that scenario sets by itself
export NCCL_NCHANNELS_PER_NET_PEER=2 # in the lab it is one
LD_LIBRARY_PATH=$build/nccl:$build LAB_TRUTH=$work/truth timeout 120 \
    "$build/exercise/exercise" --ranks "$ranks" --meet "$work" "$@"
begun=$(grep -c '"kind":"scenario"' "$work/truth")
communicators=$(grep -c '"kind":"communicator"' "$work/truth")
ended=$(grep -c '"kind":"communicator_end"' "$work/truth")
killed=$(grep -c '"what":"killed"' "$work/truth" || true)
if [ "$begun" != $((ranks * $#)) ] || [ "$communicators" != $((ended + killed)) ] || [ "$communicators" = 0 ]; then
    echo "FAILED: $begun scenarios begun, $communicators communicators made, $ended ended, $killed killed"
    exit 1
fi
if grep -q '"kind":"connection"' "$work/truth"; then
    echo "FAILED: a queue pair, though RDMA was forbidden"
    exit 1
fi
echo "ok: $begun scenarios begun by $ranks ranks, $communicators communicators made and ended, $killed ranks killed"
