#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# One command that shows qpscope at work: builds it, boots a small guest with soft-RoCE devices, runs a training job on a
# real collective library (RCCL) in it with one rank made slow, watches it from both sides, and prints what was found.
set -euo pipefail
top=$(dirname "$(dirname "$(realpath "$0")")")

usage() {
    cat <<'TEXT'
Usage: deploy/demo.sh [OPTIONS]

Runs a real job over soft-RoCE with one rank made slow, and shows what qpscope says about it.
Needs no GPU, no RDMA hardware and no KVM; installs the Debian packages that are missing.

  --fault KIND   what goes wrong: none, host, gpu or link (gpu)
  --rank N       the rank it happens to (2)
  --delay MS     how late it makes that rank, in milliseconds (80)
  --steps N      steps of the job (16)
  --ranks N      ranks of the job, 2 to 8 (4)
  --seed N       seed of the job's shuffled addresses and connections (1)
  --out DIR      where the results go (out/demo)
  --check        also compares the result with the job's own truth log
  --here         runs on this machine's own kernel (needs rdma_rxe) instead of in a guest
  -h, --help     this text

Exit code 0: shown (and with --check: right); 1: something failed; 2: wrong usage.
TEXT
}

fault=gpu rank=2 delay=80 steps=16 ranks=4 seed=1 out=$top/out/demo check=0 here=()
while [ $# -gt 0 ]; do
    case $1 in
    --fault | --rank | --delay | --steps | --ranks | --seed | --out)
        [ $# -ge 2 ] || { echo "demo.sh: $1 needs a value; see --help" >&2 && exit 2; }
        printf -v "${1#--}" %s "$2" && shift
        ;;
    --check) check=1 ;;
    --here) here=(--here) ;;
    -h | --help) usage && exit 0 ;;
    *) echo "demo.sh: unknown option '$1'; see --help" >&2 && exit 2 ;;
    esac
    shift
done
whole() { # whole NAME LOW HIGH
    [[ ${!1} =~ ^[0-9]+$ ]] && [ "${!1}" -ge "$2" ] && [ "${!1}" -le "$3" ] ||
        { echo "demo.sh: --$1 must be a whole number from $2 to $3, not '${!1}'" >&2 && exit 2; }
}
case $fault in none | host | gpu | link) ;; *) echo "demo.sh: --fault must be none, host, gpu or link, not '$fault'" >&2 && exit 2 ;; esac
whole ranks 2 8 && whole rank 0 $((ranks - 1)) && whole delay 1 10000 && whole steps 6 1000 && whole seed 0 1000000
out=$(realpath -m "$out")

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || step() { printf '\n%s\n' "$*"; }

step "Packages, build and lab"
"$top/deploy/install.sh"
mkdir -p "$out"
build=$top/build
{ [ -f "$build/build.ninja" ] || meson setup "$build" "$top"; } >"$out/build.log" 2>&1 && ninja -C "$build" >>"$out/build.log" 2>&1 ||
    { tail -n 20 "$out/build.log" >&2 && echo "demo.sh: the build failed; all of it is in $out/build.log" >&2 && exit 1; }
"$top/tests/lab/prepare.sh"

step "A job of $ranks ranks, $steps steps; fault: $fault$([ "$fault" = none ] || echo ", rank $rank, $delay ms")"
began=$(date +%s)
rm -rf "$out/job"
"$top/tests/lab/run.sh" --out "$out" --build "$build" --ranks "$ranks" --steps "$steps" --fault "$fault" --rank "$rank" \
    --delay "$delay" --seed "$seed" --hook "$top/tests/lab/hook_qpscope.sh" "${here[@]}"
job=$out/job store=$out/job/qpscope.db
[ -f "$store" ] || { echo "demo.sh: the job left no store; look at $out/console.log and $job/*.log" >&2 && exit 1; }
echo "The job and its watching took $(($(date +%s) - began)) s."

qpscope=$build/cli/qpscope
step "Steps (qpscope steps)"
"$qpscope" steps --store "$store"
step "Why (qpscope why)"
"$qpscope" why --store "$store"
"$qpscope" export perfetto --store "$store" -o "$job/trace.pftrace"

step "Where it lies, and how to look at it"
cat <<TEXT
  captures  $job/nic.capture, $job/host.capture
            $qpscope replay $job/*.capture       the same analysis again, from the files alone
  store     $store
            $qpscope qps --store $store          every queue pair with its communicator and ranks
            $qpscope timeline --step 5 --store $store
            sqlite3 $store 'SELECT * FROM late_ranks LIMIT 10'
  trace     $job/trace.pftrace
            open it in https://ui.perfetto.dev (it stays in your browser)
TEXT
if [ "$check" = 1 ]; then
    step "Against the job's own truth log"
    "$top/tests/lab/check_job.py" "$job"
fi
