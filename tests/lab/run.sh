#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the lab's job, or a plan of several, in a guest with soft-RoCE (or, with --here, on this machine's own kernel).
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lab/cache.sh
. "$here/cache.sh"

usage() {
    cat <<USAGE
usage: run.sh --out DIR [OPTIONS]
Boots one guest and runs one training job in it, or the jobs of a plan.
  --out DIR          where everything goes: DIR/JOB/..., DIR/console.log; must be new or empty
  --ranks N          ranks, each with its own soft-RoCE device (4; at most 8)
  --rails N          devices of each rank (1); rank r's second one has the number of ranks added to r
  --one-rail R       rank R uses its first only
  --steps N          training steps (12)
  --fault KIND       none, or one that tests/workload/fault.def lists (none)
  --rank R           the rank that the fault hits; -1: all (1)
  --delay MS         its size in milliseconds (100)
  --first-step F     the first step that it hits (4)
  --last-step L      the last one (the job's)
  --every N          of so many steps, one has it (1)
  --command C        of the fault wire: what tc is told
  --seed S           addresses, pairs and orders come from it (1)
  --channels C       channels of each communicator (2)
  --two-in-one       ranks 0 and 1 are threads of one process
  --gdr              the GPU-direct path, with its flush queue pairs
  --qps N            queue pairs of each connection (1)
  --algorithm A      Ring, Tree or auto (Ring)
  --protocol P       Simple, LL or auto (Simple)
  --net N            IB, or Socket for TCP (IB)
  --library-name F   the collective library under this file name
  --standin          train on the stand-in for NCCL 2.30 instead of RCCL
  --exercise "S..."  no training: these scenarios of tests/workload/exercise, on the stand-in
  --settle MS        how long a rank waits between loading the library and its first call (1000)
  --foreign A,B      one ib_write_bw beside the job, from rank A's device to rank B's
  --no-tracer        without the tracer of queue pairs
  --with-next        the job goes on into the plan's next one: neither is run again without the other
  --pcap             captures of each rank's far end: JOB/far<r>.pcap
  --train "ARGS"     further arguments for train
  --name JOB         the job's name (job)
  --hook SCRIPT      sourced in the guest around each job: before_job, during_job, after_job; may be repeated
  --plan FILE        bash, sourced in the guest: calls job_run JOB [OPTIONS], for several jobs in one boot
  --build DIR        Meson build folder (build, beside this repository's files)
  --guests N         a new guest after one that stood still, until there were N (4)
  --machine "ARGS"   further arguments for QEMU
  --timeout S        limit for all of it (600)
  --here             no guest: this machine's kernel, if it can load rdma_rxe
Exit status: 0 all jobs ended well, 1 not, 2 usage, 3 the last guest stood still.
A guest that stands still is ended, what stood is said, and the plan goes on in a new one with the jobs that are not done; a
job that stands still twice has failed.
USAGE
}

valued=' --out --build --plan --hook --guests --machine --timeout --name --ranks --rails --one-rail --steps --fault --rank --delay --first-step --last-step --every --command --net --seed --channels --qps
    --algorithm --protocol --library-name --foreign --train --exercise --settle '

option_check() { # OPTION [VALUE]
    [[ $valued =~ [[:space:]]$1[[:space:]] ]] || lab_die "unknown option $1" "run.sh --help lists the options" 2
    [ $# = 2 ] || lab_die "$1 wants a value" "run.sh --help lists the options" 2
}

out='' build=$(realpath -m "$here/../../build") plan='' guests_max=4 machine='' timeout_s=600 is_here='' hooks=() options=() name=job
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    --here) is_here=1 && shift && continue ;;
    --two-in-one | --gdr | --no-tracer | --pcap | --standin | --with-next) options+=("$1") && shift && continue ;;
    esac
    option_check "${@:1:2}"
    case $1 in
    --out) out=$2 ;;
    --build) build=$2 ;;
    --plan) plan=$(realpath "$2") ;;
    --hook) hooks+=("$(realpath "$2")") ;;
    --guests) guests_max=$2 ;;
    --machine) machine=$2 ;;
    --timeout) timeout_s=$2 ;;
    --name) name=$2 ;;
    *) options+=("$1" "$2") ;;
    esac
    shift 2
done

[ -n "$out" ] || lab_die "--out DIR is missing" "run.sh --help lists the options" 2
mkdir -p "$out/.lab"
rm -f "$out/.lab"/{status,stood.txt} "$out/console.log"
: > "$out/.lab/done"
[ -x "$build/tests/workload/train" ] ||
    lab_die "$build/tests/workload/train is not built" "build first (meson setup build && ninja -C build), or give --build DIR"
"$here/prepare.sh"
{
    printf 'lab_build=%q\nlab_plan=%q\nlab_name=%q\nlab_cache=%q\nQPSCOPE_LAB_KERNEL=%q\n' "$(realpath "$build")" "$plan" "$name" "$lab_cache" \
        "${lab_kernel_tree##*/}"
    echo "lab_hooks=(${hooks[*]@Q})"
    echo "lab_options=(${options[*]@Q})"
} > "$out/.lab/config.sh"

# guests_run: one guest, and another one after each that stood still
guests_run() {
    local job phase status stood=' ' guests
    SECONDS=0
    for ((guests = 1; guests <= guests_max; guests++)); do
        status=0
        # shellcheck disable=SC2086
        "$here/guest.sh" "$out" $((SECONDS < timeout_s ? timeout_s - SECONDS : 1)) $machine || status=$?
        [ $status = 3 ] || return $status
        read -r job phase < "$out/.lab/stood"
        if ((guests == guests_max)); then
            lab_say "guest stood still in phase $phase of job $job (guest $guests of $guests_max); look at $out/console.log"
            return 3
        elif [[ $stood = *" $job "* ]]; then
            lab_say "guest stood still in phase $phase of job $job, for the second time: the job has failed"
            echo "$job 1" >> "$out/.lab/done"
        else
            lab_say "guest stood still in phase $phase of job $job: it is run again, in a new guest, and what comes after it"
        fi
        stood+="$job "
    done
}

if [ -z "$is_here" ]; then
    guests_run
    exit
fi
[ "$(id -u)" = 0 ] || lab_die "--here needs root: it makes network devices" "run it with sudo"
modprobe rdma_rxe 2> /dev/null || [ -d /sys/module/rdma_rxe ] ||
    lab_die "this machine's kernel ($(uname -r)) has no soft-RoCE: rdma_rxe cannot be loaded" "run it without --here: the guest has it"
LAB_HERE=$(realpath "$out") exec timeout -k 5 "$timeout_s" unshare -m bash "$here/inside.sh"
